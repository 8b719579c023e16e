"""Accuracy of item effects with few labels: a table of docs/development/item-effects.md.

``python -m benchmarks.item_spread`` writes it, and docs/development/item-spread.json. Simulated
people say yes to items they share, without factors: the log-odds are a_i + b_j, with
``--features N`` also x_j'theta. Spreads of b_j and of a_i are learned; b_j, learned, should have a
slope of 1 with the true ones, and 90 % intervals of effects and of ranks cover 90 %.
"""

import argparse
from typing import Any, NamedTuple

import numpy as np

from benchmarks.tables import DOCS, markdown, publish
from likeminds import Annotations, HierarchicalRanker

N_PEOPLE, N_ITEMS, SPREAD = 200, 600, 1.5
LABELS_PER_ITEM = (2, 3, 6, 12, 36)
_Z90 = 1.6449
_NAME = "development/item-spread"
_HEAD = [
    "labels per item",
    f"spread learned (true: {SPREAD})",
    "of people (true: 1)",
    "slope of true on learned effects",
    "90 % intervals of effects cover",
    "of ranks",
]


class Found(NamedTuple):
    """What a fit makes of one crowd."""

    spread: float
    of_users: float
    slope: float
    covered: float
    ranks_covered: float


def measure(labels_per_item: int, seed: int, n_items: int = N_ITEMS, n_features: int = 0) -> Found:
    """Return what is learned of a crowd that is drawn, and what its intervals cover."""
    rng = np.random.default_rng(seed)
    n_labels = labels_per_item * n_items
    place = rng.choice(N_PEOPLE * n_items, n_labels, replace=False)
    person, item = np.divmod(place, n_items)
    readily, effect = rng.normal(0.0, 1.0, N_PEOPLE), rng.normal(0.0, SPREAD, n_items)
    chance = rng.random(n_labels)
    X = rng.normal(size=(n_items, n_features))
    whole = effect + X @ rng.normal(0.0, 1.0, n_features)
    label = chance < 1 / (1 + np.exp(-readily[person] - whole[item]))
    known = {"features": X, "item_ids": np.arange(n_items)} if n_features else {}
    ranker = HierarchicalRanker(n_item_factors=0).fit(Annotations(person, item, label, **known))
    judged = ranker.items_.astype(np.intp)
    true, learned = effect[judged], ranker.item_effect_
    away = (true - true.mean()) - (learned - learned.mean())
    slope = float(np.polyfit(learned, true, 1)[0])
    covered = float((np.abs(away) < _Z90 * ranker.item_effect_error_).mean())
    # What is asked about one person holds of all: they differ in how readily they say yes.
    asked = Annotations(np.zeros(len(judged)), judged, np.arange(len(judged)) % 2, **known)
    low, high = ranker.rank_interval(ranker.users_[0], asked)
    rank = 1 + np.argsort(np.argsort(-whole[judged]))
    ranks_covered = float(((low <= rank) & (rank <= high)).mean())
    crowd = ranker.prior_
    of_users = float(np.sqrt(crowd.prior.covariance[-1, -1]))
    return Found(float(np.sqrt(crowd.items.variance)), of_users, slope, covered, ranks_covered)


def as_table(found: dict[str, Any]) -> str:
    """Return means over draws, by labels per item."""
    rows = [
        [labels, *(f"{row[name]:.2f}" for name in Found._fields[:3])]
        + [f"{row[name]:.0%}" for name in Found._fields[3:]]
        for labels, row in found["rows"].items()
    ]
    return markdown(_HEAD, rows)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--items", type=int, default=N_ITEMS)
    parser.add_argument("--features", type=int, default=0, help="printed and not written")
    given = parser.parse_args(arguments)
    rows = {}
    for labels in LABELS_PER_ITEM:
        draws = range(given.draws)
        found = [measure(labels, seed, given.items, given.features) for seed in draws]
        rows[str(labels)] = dict(zip(Found._fields, np.mean(found, axis=0).tolist(), strict=True))
    table = as_table({"rows": rows})
    print(table)
    if given.items == N_ITEMS and not given.features:
        measured = {"draws": given.draws, "rows": rows}
        publish(_NAME, measured, DOCS / "development" / "item-effects.md", table)


if __name__ == "__main__":
    main()
