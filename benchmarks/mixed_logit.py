"""The learned prior beside a mixed logit: ``python -m benchmarks.mixed_logit --data FOLDER``.

Writes ``docs/mixed-logit.json``, and the page that shows it. The data sets are those of
`benchmarks.accuracy`; of each person's labels (whole groups, where rows were shown together) 30 %
are held out. GPBoost gets a random intercept and a random coefficient for each feature by person,
standardised features, and as many seconds of a processor as ``--seconds`` says; where it takes
longer it is out, and is not asked about the other attributes of the same data.
"""

import argparse
import json
import time
from collections import Counter
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from benchmarks.accuracy import MOST_PEOPLE, ROOT, UserDataSet, data_sets
from benchmarks.peers import mixed_logit
from benchmarks.tables import markdown
from benchmarks.time_limit import in_time
from likeminds import Annotations, HierarchicalRanker, auc_by_user, split_within_users


def judged(data: UserDataSet, seed: int, limit: float) -> dict[str, Any]:
    """Fit both on one split."""
    train, test = split_within_users(data.annotations, 0.3, random_state=seed)
    start = time.process_time()
    ours = HierarchicalRanker().fit(train)
    seconds = time.process_time() - start
    found = {"ours": _aucs(test, ours.decision_function(test)), "our seconds": seconds}
    theirs = in_time(limit, mixed_logit, train, test, 1)
    if theirs is not None:
        found |= {"theirs": _aucs(test, theirs[0]), "their seconds": theirs[1]}
    return found


def _aucs(test: Annotations, scores: np.ndarray) -> np.ndarray:
    return auc_by_user(test.labels, scores, test.users).values


def row(data: UserDataSet, seeds: range, limit: float) -> dict[str, Any]:
    """Return means over splits; without those of GPBoost if it was not in time."""
    runs = []
    for seed in seeds:
        runs.append(judged(data, seed, limit))
        if "theirs" not in runs[-1]:
            break
    found = {
        "data": data.name if data.attribute is None else f"{data.name}, {data.attribute}",
        "users": data.annotations.n_users,
        "features": data.annotations.n_features,
        "splits": len(runs),
        "ours": mean(float(np.nanmean(run["ours"])) for run in runs),
        "our seconds": mean(run["our seconds"] for run in runs),
    }
    if "theirs" not in runs[-1]:
        return found
    gained = [run["ours"] - run["theirs"] for run in runs]
    # Splits share the people: their errors are averaged, not divided by how many there are.
    error = mean(float(np.nanstd(each) / np.sqrt((~np.isnan(each)).sum())) for each in gained)
    return found | {
        "theirs": mean(float(np.nanmean(run["theirs"])) for run in runs),
        "gain": mean(float(np.nanmean(each)) for each in gained),
        "error": error,
        "their seconds": mean(run["their seconds"] for run in runs),
    }


def as_page(found: dict[str, Any]) -> str:
    """Return the page: what is compared, and a table."""
    some = found["attributes"]
    asked = "" if some is None else f" --attributes {some}"
    made = (
        f"Made by `python -m benchmarks.mixed_logit --data FOLDER --seconds {found['limit']:.0f}"
        f"{asked}` (GPBoost installed). The table has the mean AUC over people on held-out labels "
        f"(30 %), in per cent, over {found['seeds']} splits (one for each attribute, if there are "
        "several). The difference has its standard error over people. Seconds are CPU seconds of a "
        "fit, for GPBoost with the scores. Larger crowds have "
        f"{found['most']} people drawn at random. GPBoost fits a random intercept and a random "
        "coefficient of each feature by person, with its defaults. HierarchicalRanker has nothing "
        "to tune. If GPBoost exceeds the time limit on one attribute, the others are left out."
    )
    head = ["data", "people x features", "splits", "HierarchicalRanker", "GPBoost", "difference"]
    head += ["our seconds", "GPBoost's"]
    table = markdown(head, [_cells(row, found["limit"]) for row in found["rows"]])
    parts = ["# Comparison with the mixed logit", made, *filter(None, [found.get("note")]), table]
    return "\n\n".join(parts) + "\n"


def _cells(row: dict[str, Any], limit: float) -> list[str]:
    first = [row["data"], f"{row['users']} x {row['features']}", str(row["splits"])]
    first.append(f"{100 * row['ours']:.1f}")
    if "theirs" not in row:
        return [*first, f"not in {limit:.0f} s", "-", f"{row['our seconds']:.2f}", "-"]
    ratio = row["their seconds"] / row["our seconds"]
    return [
        *first,
        f"{100 * row['theirs']:.1f}",
        f"{100 * row['gain']:+.1f} ± {100 * row['error']:.1f}",
        f"{row['our seconds']:.2f}",
        f"{row['their seconds']:.1f} ({ratio:.0f}x)",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with NAME.npz files")
    parser.add_argument("--users", type=int, default=MOST_PEOPLE, help="at most so many")
    parser.add_argument("--seconds", type=float, default=600, help="what GPBoost may take")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--attributes", type=int, help="of each data set, so many; default: all")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "mixed-logit.md")
    chosen = parser.parse_args()
    rows: list[dict[str, Any]] = []
    late: set[str] = set()
    seen: Counter[str] = Counter()
    for data in data_sets(chosen.data, chosen.users):
        seen[data.name] += 1
        if data.name in late or seen[data.name] > (chosen.attributes or seen[data.name]):
            continue
        seeds = range(200, 200 + (chosen.seeds if data.attribute is None else 1))
        rows.append(row(data, seeds, chosen.seconds))
        if "theirs" not in rows[-1]:
            late.add(data.name)
        print(rows[-1], flush=True)
    asked = {"limit": chosen.seconds, "attributes": chosen.attributes, "seeds": chosen.seeds}
    found = {**asked, "most": chosen.users, "rows": rows}
    chosen.out.with_suffix(".json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    chosen.out.write_text(as_page(found), encoding="utf-8")


if __name__ == "__main__":
    main()
