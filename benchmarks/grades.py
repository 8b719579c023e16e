"""Grades, learned from as such or cut: ``python -m benchmarks.grades --data FOLDER``.

FOLDER holds ``NAME.npz`` with ``user``, ``item`` and ``grade``, and perhaps ``X`` (items x
features) and ``label`` (0/1: where somebody cut the grades already). Otherwise the usual cut is
the person's own median. Of everybody's grades 30 % are held out, with three seeds. Both ways are
judged by the concordance of the grades, and by the AUC of the cut; people with fewer than three
labels of either kind are left out. Every result is kept in ``--cache`` as soon as it is there.
Writes ``grades.json`` and, between two marks, the table of ``grades.md``.
"""

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy import ROOT
from likeminds import Annotations, HierarchicalRanker, ThreeLevelRanker, auc_by_user
from likeminds._util.array_types import Bool, Float, Index
from likeminds._util.atomic_files import write_whole
from likeminds.data.splits import folds_within_users
from likeminds.metrics import concordance_by_user
from likeminds.metrics.paired import over_users

NAMES = ("offensive", "jokes", "movies")
SEEDS = (10, 11, 12)
BEGIN, END = "<!-- measured by benchmarks/grades.py: begin -->", "<!-- end -->"
# Folds of which one is held out; and the least labels of either kind that people are judged by.
_TEST, _FEWEST = 0.3, 3
CUT, AUTO = "cut", "grades"
# The others are there to see what was chosen among.
_LOSSES = {AUTO: "auto", "cumulative": "cumulative", "gaussian": "gaussian"}
_THREE = "three levels, "


@dataclass(frozen=True, eq=False)
class GradedCrowd:
    """The same rows as grades and as yes or no."""

    name: str
    graded: Annotations
    cut: Annotations

    @property
    def counted(self) -> Bool:
        """Who gave enough labels of either kind."""
        return np.asarray(self.cut.label_counts().min(axis=1) >= _FEWEST)

    def split(self, seed: int) -> tuple[Index, Index]:
        """Return rows to learn from, and rows held out."""
        ten = folds_within_users(self.cut, 10, random_state=seed)
        out = ten < round(10 * _TEST)
        return np.flatnonzero(~out), np.flatnonzero(out)


def read_crowds(folder: Path) -> Iterator[GradedCrowd]:
    """Yield the crowds that are there."""
    for name in NAMES:
        path = folder / f"{name}.npz"
        if path.is_file():
            yield read_graded(path)


def read_graded(path: Path) -> GradedCrowd:
    """Read the crowd of a file."""
    with np.load(path, allow_pickle=False) as table:
        return _crowd(path.stem, {key: table[key] for key in table.files})


def _crowd(name: str, columns: dict[str, Any]) -> GradedCrowd:
    said = {key: columns[key] for key in ("user", "item")}
    described = "X" in columns and columns["X"].shape[1]
    features = columns["X"].astype(np.float64) if described else None
    both = {"users": said["user"], "items": said["item"], "features": features}
    graded = Annotations(labels=columns["grade"].astype(np.float64), **both)
    if "label" in columns:
        return GradedCrowd(name, graded, Annotations(labels=columns["label"], **both))
    cut = Annotations(labels=columns["grade"], **both, threshold="median")
    return GradedCrowd(name, graded, cut)


def simulated() -> Iterator[GradedCrowd]:
    """Yield a tiny crowd that grades from 1 to 5."""
    rng = np.random.default_rng(0)
    users, items = np.divmod(np.arange(20 * 20), 20)
    X, taste = rng.normal(size=(20, 3)), rng.normal(size=(20, 3)) + 1.0
    liked = np.einsum("nd,nd->n", X[items], taste[users]) + rng.logistic(size=len(users))
    grade = np.clip(np.round(3 + liked), 1, 5)
    yield _crowd("simulated", {"user": users, "item": items, "grade": grade, "X": X})


def methods_for(crowd: GradedCrowd) -> dict[str, tuple[Any, bool]]:
    """Return rankers by name, and whether they learn from grades."""
    found: dict[str, tuple[Any, bool]] = {CUT: (HierarchicalRanker(unknown="consensus"), False)}
    found |= {
        name: (HierarchicalRanker(loss=loss, unknown="consensus"), True)
        for name, loss in _LOSSES.items()
    }
    if crowd.graded.n_features:
        found |= {_THREE + CUT: (ThreeLevelRanker(), False)}
        found |= {_THREE + AUTO: (ThreeLevelRanker(), True)}
    return found


def measure(crowd: GradedCrowd, seed: int, ranker: Any, *, graded: bool) -> dict[str, Any]:
    """Return everybody's concordance and AUC, None where there is none."""
    train, test = crowd.split(seed)
    begun = time.process_time()
    ranker.fit((crowd.graded if graded else crowd.cut)[train])
    seconds = time.process_time() - begun
    scores = ranker.decision_function(crowd.graded[test])
    users = crowd.graded.users[test]
    assert crowd.graded.grades is not None
    found = {
        "concordance": concordance_by_user(crowd.graded.grades[test], scores, users),
        "auc": auc_by_user(crowd.cut.labels[test], scores, users),
    }
    results: dict[str, Any] = {"seconds": seconds, "loss": getattr(ranker, "loss_", "auc")}
    for name, metric in found.items():
        values = np.full(crowd.graded.n_users, np.nan)
        values[np.searchsorted(crowd.graded.user_ids, metric.users)] = metric.values
        values[~crowd.counted] = np.nan
        results[name] = [None if np.isnan(value) else round(value, 5) for value in values]
    return results


def summarise(results: dict[str, dict[str, list[dict[str, Any]]]]) -> dict[str, Any]:
    """Return means over people and seeds, and paired differences from learning from the cut."""
    summary: dict[str, Any] = {}
    for crowd, methods in results.items():
        summary[crowd] = {}
        for method, seeds in methods.items():
            rival = methods.get(_THREE + CUT if method.startswith(_THREE) else CUT)
            row: dict[str, Any] = {"seconds": float(np.median([s["seconds"] for s in seeds]))}
            row["losses"] = sorted({s["loss"] for s in seeds})
            row["seeds"] = len(seeds)
            for metric in ("concordance", "auc"):
                ours = _mean_over_seeds(seeds, metric)
                row[metric] = float(np.nanmean(ours))
                if rival is not None and rival is not seeds:
                    apart = over_users(ours - _mean_over_seeds(rival, metric))
                    row[f"{metric} gained"] = [apart.mean, apart.low, apart.high]
            summary[crowd][method] = row
    return summary


def _mean_over_seeds(seeds: list[dict[str, Any]], metric: str) -> Float:
    return np.asarray(np.mean([np.array(s[metric], dtype=np.float64) for s in seeds], axis=0))


def as_table(summary: dict[str, Any]) -> str:
    """Return the table of the page."""
    lines = [
        "| | learned from | splits | concordance | gained | AUC of the cut | gained | seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for crowd, methods in summary.items():
        for method, row in methods.items():
            named = method
            if method.endswith(AUTO) and not method.startswith(_THREE):
                named = f"**{method}** ({', '.join(row['losses'])})"
            cells = [crowd, named, str(row["seeds"])]
            for metric in ("concordance", "auc"):
                gained = row.get(f"{metric} gained")
                told = "" if gained is None else "{:+.4f} ({:+.4f} to {:+.4f})".format(*gained)
                cells += [f"{row[metric]:.4f}", told]
            cells.append(f"{row['seconds']:.1f}")
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def write_page(summary: dict[str, Any], out: Path) -> None:
    """Put the table between the marks of the page, or into a page of its own."""
    page = out / "grades.md"
    text = page.read_text(encoding="utf-8") if page.is_file() else f"{BEGIN}\n{END}\n"
    before, rest = text.split(BEGIN)
    after = rest.split(END, 1)[1]
    page.write_text(f"{before}{BEGIN}\n{as_table(summary)}\n{END}{after}", encoding="utf-8")
    (out / "grades.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    print(f"Written: {page}")


def _of_split(crowd: GradedCrowd, seed: int, cache: Path, *, new: bool) -> dict[str, Any] | None:
    """Return the results of all methods on a split; None unless all are there."""
    results = {}
    for method, (ranker, graded) in methods_for(crowd).items():
        path = cache / f"{crowd.name}--{seed}--{method}.json"
        if new and not path.is_file():
            found = measure(crowd, seed, ranker, graded=graded)
            write_whole(path, json.dumps(found).encode())
            print(f"{crowd.name}, {seed}, {method}: {found['seconds']:.1f} s", flush=True)
        if not path.is_file():
            return None
        results[method] = json.loads(path.read_text())
    return results


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with NAME.npz files")
    parser.add_argument("--cache", type=Path, default=ROOT / ".grades", help="results")
    parser.add_argument("--only", nargs="+", help="just these data sets")
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="how many splits")
    parser.add_argument("--redraw", action="store_true", help="write the page, measure nothing")
    parser.add_argument("--quick", action="store_true", help="a tiny simulated crowd, one seed")
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="where the page goes")
    chosen = parser.parse_args(arguments)
    chosen.cache.mkdir(parents=True, exist_ok=True)
    chosen.out.mkdir(parents=True, exist_ok=True)
    crowds = list(simulated() if chosen.quick else read_crowds(chosen.data))
    results: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for seed in SEEDS[: 1 if chosen.quick else chosen.seeds]:
        for crowd in crowds:
            wanted = chosen.only is None or crowd.name in chosen.only
            kept = _of_split(crowd, seed, chosen.cache, new=wanted and not chosen.redraw)
            if kept is None:
                continue  # gains are over splits that everything was measured on
            for method, found in kept.items():
                results.setdefault(crowd.name, {}).setdefault(method, []).append(found)
    write_page(summarise(results), chosen.out)


if __name__ == "__main__":
    main()
