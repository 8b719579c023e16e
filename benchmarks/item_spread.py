"""How well effects of items are found that have few labels: a table of docs/shared-items.md.

``python -m benchmarks.item_spread --draws 8`` prints it. Simulated people say yes to items they
share, without features and without factors: the log-odds are a_i + b_j. The spread of the b_j is
learned; b_j, learned, should have a slope of 1 with the true ones, and 90 % intervals cover 90 %.
"""

import argparse
from typing import NamedTuple

import numpy as np

from likeminds import Annotations, HierarchicalRanker

N_PEOPLE, N_ITEMS, SPREAD = 200, 600, 1.5
LABELS_PER_ITEM = (3, 6, 12, 36)
_Z90 = 1.6449


class Found(NamedTuple):
    """What a fit makes of one crowd."""

    spread: float
    slope: float
    covered: float


def measure(labels_per_item: int, seed: int, n_items: int = N_ITEMS) -> Found:
    """Return the learned spread of b_j, the slope of the true ones on these, and the coverage."""
    rng = np.random.default_rng(seed)
    n_labels = labels_per_item * n_items
    place = rng.choice(N_PEOPLE * n_items, n_labels, replace=False)
    person, item = np.divmod(place, n_items)
    readily, effect = rng.normal(0.0, 1.0, N_PEOPLE), rng.normal(0.0, SPREAD, n_items)
    label = rng.random(n_labels) < 1 / (1 + np.exp(-readily[person] - effect[item]))
    ranker = HierarchicalRanker(n_item_factors=0).fit(Annotations(person, item, label))
    true, learned = effect[ranker.items_.astype(np.intp)], ranker.item_effect_
    away = (true - true.mean()) - (learned - learned.mean())
    slope = float(np.polyfit(learned, true, 1)[0])
    covered = float((np.abs(away) < _Z90 * ranker.item_effect_error_).mean())
    return Found(float(np.sqrt(ranker.crowd_.items.variance)), slope, covered)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--items", type=int, default=N_ITEMS)
    given = parser.parse_args(arguments)
    print(f"| labels per item | spread learned (true: {SPREAD}) | slope | 90 % intervals cover |")
    print("|---|---|---|---|")
    for labels in LABELS_PER_ITEM:
        found = [measure(labels, seed, given.items) for seed in range(given.draws)]
        spread, slope, covered = np.mean(found, axis=0)
        print(f"| {labels} | {spread:.2f} | {slope:.2f} | {covered:.0%} |", flush=True)


if __name__ == "__main__":
    main()
