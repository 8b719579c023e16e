"""Crowds who judge the same items: ``python -m benchmarks.shared_items --data FOLDER``.

Of everybody's labels 30 % are held out, with three seeds; or whole items, described by their
texts. FOLDER holds ``NAME.npz`` with ``user``, ``item`` and one of ``label`` (0/1), ``grade``
(above the person's own median is a yes) and ``vote`` (1, 0 a pass, -1); ``X`` and ``features`` or
``text`` describe items, ``polis_group`` is Polis's group of each person. What is absent is left
out. Every result is kept in ``--cache`` as soon as it is there, so that a run that was interrupted
continues; ``--again METHOD`` measures a method anew. Writes ``shared-items.json`` and, between two
marks, the tables of ``shared-items-measured.md``; with ``--only``, results are kept and
nothing is written: ``--redraw`` does that.
"""

import argparse
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy import ROOT
from benchmarks.shared_crowds import ALONE, SharedCrowd, read_crowds, simulated
from benchmarks.shared_methods import (
    OURS,
    RIDGE,
    WITHOUT,
    Method,
    methods_for,
    ridge_on_items,
)
from benchmarks.shared_page import keep_earlier, summarise, write_page
from benchmarks.shared_polis import agreement_of_groups, bridging
from benchmarks.time_limit import in_time
from likeminds import Annotations, auc_by_user
from likeminds._util.atomic_files import write_whole
from likeminds.rankers.baselines.popularity import has_shared_items

# Seed 0 was looked at while the model was made.
SEEDS = (10, 11, 12)
# Whole items are few, and people share them: that takes more splits.
NEW_SEEDS = tuple(range(10, 18))
# For these, whole items are held out as well.
NEW_ITEMS = (OURS, WITHOUT, RIDGE, "Popularity")


@dataclass(frozen=True)
class Task:
    """One thing to measure: a method on one split of one crowd."""

    kind: str
    crowd: SharedCrowd
    seed: int
    method: str
    measure: Callable[[], Any]

    @property
    def key(self) -> str:
        """What its result is called."""
        return "--".join([self.kind, self.crowd.name, str(self.seed), self.method])


def tasks(crowds: Iterable[SharedCrowd], limit: float, *, quick: bool) -> Iterator[Task]:
    """Yield all there is to measure, seed by seed, so that an unfinished run has whole splits."""
    listed = list(crowds)
    for seed in SEEDS[:1] if quick else SEEDS:
        for crowd in listed:
            yield from _of_crowd(crowd, seed, limit, quick=quick)
    for seed in NEW_SEEDS[:2] if quick else NEW_SEEDS:
        for crowd in listed:
            yield from _of_new_items(crowd, seed, limit)


def _of_new_items(crowd: SharedCrowd, seed: int, limit: float) -> Iterator[Task]:
    described = crowd.texts is not None and not crowd.said.n_features
    if not (described and (crowd.polis_group is not None or crowd.family == "offensive")):
        return
    for name in NEW_ITEMS:

        def new(name: str = name) -> Any:
            train, test = crowd.whole_items(seed)
            methods = methods_for(train, shared=True, words_only=True) | {RIDGE: ridge_on_items}
            return _judged(crowd, (train, test), methods[name], limit)

        yield Task("new items", crowd, seed, name, new)


def _of_crowd(crowd: SharedCrowd, seed: int, limit: float, *, quick: bool) -> Iterator[Task]:
    shared = crowd.family not in ALONE and has_shared_items(crowd.said)
    methods = methods_for(crowd.said, shared=shared, quick=quick, words_only=crowd.words_only)
    for name, method in methods.items():

        def within(method: Method = method) -> Any:
            return _judged(crowd, crowd.within(seed), method, limit)

        yield Task("within", crowd, seed, name, within)
    if crowd.polis_group is not None:
        yield Task("bridging", crowd, seed, OURS, lambda: bridging(crowd, seed))
        yield Task("groups", crowd, 0, OURS, lambda: agreement_of_groups(crowd))


def _judged(
    crowd: SharedCrowd, split: tuple[Annotations, Annotations], method: Method, limit: float
) -> dict[str, Any]:
    """Return everybody's AUC, None for who has none, or just that it took too long."""
    train, test = split
    scored = in_time(limit, method, train, test)
    if scored is None:
        return {"late": limit}
    found = auc_by_user(test.labels, scored[0], test.users)
    everybody = np.full(crowd.said.n_users, np.nan)
    everybody[np.searchsorted(crowd.said.user_ids, found.users)] = found.values
    everybody[~crowd.counted] = np.nan
    aucs = [None if np.isnan(auc) else round(auc, 5) for auc in everybody.tolist()]
    return {"aucs": aucs, "seconds": scored[1]}


class Kept:
    """Results in a folder, a file each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, task: Task) -> Path:
        """Return where a result is kept."""
        return self.folder / f"{task.key.replace('/', '_')}.json"

    def get(self, task: Task) -> Any:
        """Return a result, or None where there is none yet."""
        path = self.path(task)
        return json.loads(path.read_text()) if path.is_file() else None

    def measure(self, task: Task) -> None:
        """Measure what is not there yet, and keep it."""
        if self.get(task) is not None:
            return
        if any("late" in json.loads(path.read_text()) for path in self._alike(task)):
            return
        result = task.measure()
        write_whole(self.path(task), json.dumps(result).encode())
        said = "too late" if "late" in result else _brief(result)
        print(f"{task.key}: {said}", flush=True)

    def _alike(self, task: Task) -> Iterator[Path]:
        """Yield what there is of the same method: other splits, other attributes of the data."""
        crowd = task.crowd
        named = crowd.name if crowd.name == crowd.family else f"{crowd.family}, *"
        pattern = "--".join([task.kind, named, "*", task.method])
        return self.folder.glob(f"{pattern}.json")


def _brief(result: dict[str, Any]) -> str:
    if "aucs" not in result:
        return json.dumps(result)
    aucs = np.array(result["aucs"], dtype=np.float64)
    return f"{100 * np.nanmean(aucs):.2f} in {result['seconds']:.1f} s"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with NAME.npz files")
    parser.add_argument("--cache", type=Path, default=ROOT / ".shared_items", help="results")
    parser.add_argument("--seconds", type=float, default=600, help="of a processor, for one method")
    parser.add_argument("--only", nargs="+", help="just these data sets, no page")
    parser.add_argument("--methods", nargs="+", help="just these methods")
    parser.add_argument("--kinds", nargs="+", help="within, new items, bridging, groups")
    parser.add_argument("--seeds", nargs="+", type=int, help="just these splits")
    parser.add_argument("--again", nargs="+", default=[], help="methods to measure anew")
    parser.add_argument("--redraw", action="store_true", help="write the page, measure nothing")
    parser.add_argument("--note", default="", help="a sentence for the page about this run")
    parser.add_argument("--keep", action="store_true", help="keep earlier rows of other data")
    parser.add_argument("--quick", action="store_true", help="tiny simulated crowds, one seed")
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="where the page goes")
    chosen = parser.parse_args(arguments)
    crowds = list(simulated() if chosen.quick else read_crowds(chosen.data, chosen.only))
    kept = Kept(chosen.cache)
    asked = list(tasks(crowds, chosen.seconds, quick=chosen.quick))
    for task in [] if chosen.redraw else asked:
        named = [(chosen.only, task.crowd.family), (chosen.methods, task.method)]
        named += [(chosen.kinds, task.kind), (chosen.seeds, task.seed)]
        if any(wanted is not None and name not in wanted for wanted, name in named):
            continue
        if task.method in chosen.again:
            kept.path(task).unlink(missing_ok=True)
        kept.measure(task)
    if chosen.only is not None:
        return
    results = [(task, kept.get(task)) for task in asked]
    summary = summarise([(task, result) for task, result in results if result is not None])
    summary["note"] = chosen.note
    earlier = chosen.out / "shared-items.json"
    if chosen.keep and earlier.is_file():
        keep_earlier(summary, json.loads(earlier.read_text(encoding="utf-8")))
    chosen.out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(summary, indent=1) + "\n"
    (chosen.out / "shared-items.json").write_text(text, encoding="utf-8")
    write_page(summary, chosen.out)


if __name__ == "__main__":
    main()
