"""The learned prior beside a mixed logit: ``python -m benchmarks.mixed_logit --data FOLDER``.

Writes ``docs/mixed-logit.md``. The data sets are those of `benchmarks.accuracy`; of each person's
labels (whole groups, where rows were shown together) 30 % are held out. GPBoost gets a random
intercept and a random coefficient for each feature by person, standardised features, and as many
seconds of a processor as ``--seconds`` says; where it takes longer it is out, and is not asked
about the other attributes of the same data.
"""

import argparse
import time
from collections import Counter
from pathlib import Path
from statistics import mean

import numpy as np

from benchmarks.accuracy import MOST_PEOPLE, ROOT, DataSet, data_sets
from benchmarks.peers import mixed_logit
from benchmarks.time_limit import in_time
from likeminds import Annotations, HierarchicalRanker, auc_by_user, split_within_users


def judged(data: DataSet, seed: int, limit: float) -> dict[str, object]:
    """Fit both on one split."""
    train, test = split_within_users(data.annotations, 0.3, random_state=seed)
    start = time.perf_counter()
    ours = HierarchicalRanker().fit(train)
    seconds = time.perf_counter() - start
    found = {"ours": _aucs(test, ours.decision_function(test)), "our seconds": seconds}
    theirs = in_time(limit, mixed_logit, train, test)
    if theirs is not None:
        found |= {"theirs": _aucs(test, theirs[0]), "their seconds": theirs[1]}
    return found


def _aucs(test: Annotations, scores: np.ndarray) -> np.ndarray:
    return auc_by_user(test.labels, scores, test.users).values


def row(data: DataSet, seeds: range, limit: float) -> tuple[str, bool]:
    """Return a line of the table, and whether GPBoost was in time."""
    runs = []
    for seed in seeds:
        runs.append(judged(data, seed, limit))
        if "theirs" not in runs[-1]:
            break
    name = data.name if data.attribute is None else f"{data.name}, {data.attribute}"
    n_users, n_features = data.annotations.n_users, data.annotations.n_features
    what = f"| {name} | {n_users} x {n_features} | {len(runs)}"
    ours = mean(float(np.nanmean(run["ours"])) for run in runs)
    our_seconds = mean(run["our seconds"] for run in runs)
    if "theirs" not in runs[-1]:
        late = f"not in {limit:.0f} s"
        return f"{what} | {100 * ours:.1f} | {late} | - | {our_seconds:.2f} | - |", False
    theirs = mean(float(np.nanmean(run["theirs"])) for run in runs)
    gained = [run["ours"] - run["theirs"] for run in runs]
    gain = mean(float(np.nanmean(each)) for each in gained)
    # Splits share the people: their errors are averaged, not divided by how many there are.
    error = mean(float(np.nanstd(each) / np.sqrt((~np.isnan(each)).sum())) for each in gained)
    times = mean(run["their seconds"] for run in runs)
    line = (
        f"{what} | {100 * ours:.1f} | {100 * theirs:.1f} | {100 * gain:+.1f} ± "
        f"{100 * error:.1f} | {our_seconds:.2f} | {times:.1f} ({times / our_seconds:.0f}x) |"
    )
    return line, True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with NAME.npz files")
    parser.add_argument("--users", type=int, default=MOST_PEOPLE, help="at most so many")
    parser.add_argument("--seconds", type=float, default=600, help="what GPBoost may take")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--attributes", type=int, help="of each data set, so many; default: all")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "mixed-logit.md")
    chosen = parser.parse_args()
    asked = "" if chosen.attributes is None else f" --attributes {chosen.attributes}"
    lines = [
        "# Comparison with the mixed logit",
        "",
        f"Made by `python -m benchmarks.mixed_logit --data FOLDER --seconds {chosen.seconds:.0f}"
        f"{asked}` (GPBoost installed). The table has the mean AUC over people on held-out labels "
        f"(30 %), in per cent, over {chosen.seeds} splits (one for each attribute, if there are "
        "several). The difference has its standard error over people. Seconds are those of a fit, "
        "for GPBoost with the scores, in one run on a machine with other jobs. Larger crowds have "
        f"{chosen.users} people drawn at random. GPBoost fits a random intercept and a random "
        "coefficient of each feature by person, with its defaults. HierarchicalRanker has nothing "
        "to tune. If GPBoost exceeds the time limit on one attribute, the others are left out.",
        "",
        "| data | people x features | splits | HierarchicalRanker | GPBoost | difference | "
        "our seconds | GPBoost's |",
        "|---" * 8 + "|",
    ]
    late: set[str] = set()
    seen: Counter[str] = Counter()
    for data in data_sets(chosen.data, chosen.users):
        seen[data.name] += 1
        if data.name in late or seen[data.name] > (chosen.attributes or seen[data.name]):
            continue
        seeds = range(200, 200 + (chosen.seeds if data.attribute is None else 1))
        line, was_in_time = row(data, seeds, chosen.seconds)
        if not was_in_time:
            late.add(data.name)
        lines.append(line)
        print(line, flush=True)
    chosen.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
