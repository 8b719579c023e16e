"""The crowd's opinion as a column, for known and for new items: its table in shared-items.md.

``python -m benchmarks.item_column --data FOLDER`` prints it. FOLDER holds ``verbagg.npz``, laid out
as for `benchmarks.shared_items`. A part of everybody's labels is held out, or whole items are.
"""

import argparse
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.shared_crowds import read_crowds
from likeminds import Annotations, ThreeLevelRanker, mean_auc, split_within_people
from likeminds.baselines import ConsensusOnly, Popularity, PopularityWithFeatures

SEEDS = range(6)
_TEST = 0.3
# Rankers by what they are called in the table; nothing is tuned.
RANKERS: dict[str, Callable[[], Any]] = {
    "`ThreeLevelRanker()`": ThreeLevelRanker,
    "with `item_effects=True`": lambda: ThreeLevelRanker(item_effects=True),
    "the opinion as it is": lambda: ThreeLevelRanker(item_effects=True),
    "`ConsensusOnly()`": ConsensusOnly,
    "`PopularityWithFeatures()`: the same with `item_effects=True`": PopularityWithFeatures,
    "`Popularity()`": Popularity,
}
_AS_IT_IS = "the opinion as it is"


def splits(said: Annotations, seed: int) -> Iterator[tuple[Annotations, Annotations]]:
    """Yield training and test rows: with labels held out, and with whole items."""
    yield split_within_people(said, _TEST, random_state=seed)
    items = np.unique(said.item_codes)
    rng = np.random.default_rng(seed)
    new = np.isin(said.item_codes, rng.choice(items, round(_TEST * len(items)), replace=False))
    yield said[~new], said[new]


def measure(said: Annotations, seeds: range = SEEDS) -> dict[str, list[float]]:
    """Return the mean AUC of each ranker: on labels, and on whole items."""
    found: dict[str, list[float]] = {}
    for name, make in RANKERS.items():
        aucs = [[_auc(name, make(), *split) for split in splits(said, seed)] for seed in seeds]
        found[name] = np.mean(aucs, axis=0).tolist()
    return found


def _auc(name: str, ranker: Any, train: Annotations, test: Annotations) -> float:
    # Without features to regress it on, the opinion stays as it is.
    nothing = patch(
        "likeminds.rankers.item_columns.features_of_items", lambda _, __, n: np.zeros((n, 0))
    )
    with nothing if name == _AS_IT_IS else nullcontext():
        ranker.set_params(unknown="consensus").fit(train)
    return mean_auc(test.labels, ranker.decision_function(test), test.users)


def as_table(found: dict[str, list[float]]) -> str:
    """Return the table."""
    rows = [f"| {name} | {labels:.3f} | {items:.3f} |" for name, (labels, items) in found.items()]
    return "\n".join(["| | labels | whole items |", "|---|---|---|", *rows]).replace(" 0.", " .")


def main(arguments: list[str] | None = None) -> None:
    """Print the table of one crowd."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--crowd", default="verbagg")
    asked = parser.parse_args(arguments)
    crowd = next(one for one in read_crowds(asked.data) if one.name == asked.crowd)
    print(as_table(measure(crowd.said.with_enough_labels(3))))


if __name__ == "__main__":
    main()
