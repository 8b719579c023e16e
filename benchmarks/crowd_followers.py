"""Whether people weigh what all see in items: ``python -m benchmarks.crowd_followers``.

The items' effects b_j of a first fit become one more feature of a second, in which every person has
a weight of it with a learned variance: who follows the crowd, who does not. Writes
docs/development/crowd-followers.json and its table in item-effects.md: mean AUC on labels held out
of either, and their difference, paired by person, over three splits that no other page uses. (For
new items the feature would be a leak; here all are known.) ``--data`` is the folder of
`benchmarks.shared_items`.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.shared_crowds import SharedCrowd, read_crowds, simulated
from benchmarks.tables import DOCS, markdown, publish
from likeminds import Annotations, HierarchicalRanker, auc_by_user
from likeminds._util.array_types import Float
from likeminds.metrics.paired import over_users

NAMES = ("verbagg", "trolley", "polis_brexit", "polis_taxes", "offensive")
SEEDS = (20, 21, 22)


def gains(crowd: SharedCrowd, seeds: tuple[int, ...] = SEEDS) -> tuple[Float, Float]:
    """Return everybody's AUC without and with the weight, means over splits."""
    found = np.array([_one_split(crowd, seed) for seed in seeds])
    with np.errstate(invalid="ignore"):
        known = np.isfinite(found).all(axis=(0, 1)) & crowd.counted
    without, with_weight = found[:, :, known].mean(axis=0)
    return without, with_weight


def _one_split(crowd: SharedCrowd, seed: int) -> list[Float]:
    train, test = crowd.within(seed)
    first = HierarchicalRanker(unknown="consensus").fit(train)
    ids = np.unique(np.concatenate([train.items, test.items]))
    place = np.searchsorted(ids, first.items_)
    column = np.zeros((len(ids), 1))
    column[place, 0] = first.item_effect_
    features = column
    if train.n_features:
        features = np.hstack([_features(train, ids), column])

    def widened(said: Annotations) -> Annotations:
        return Annotations(said.users, said.items, said.labels, features, item_ids=ids)

    second = HierarchicalRanker(n_item_factors=first.n_item_factors_, unknown="consensus").fit(
        widened(train)
    )
    scored = (first.decision_function(test), second.decision_function(widened(test)))
    return [_by_user(crowd, test, scores) for scores in scored]


def _features(said: Annotations, ids: np.ndarray) -> Float:
    place = {item: row for row, item in enumerate(said.item_ids.tolist())}
    return np.asarray(said.features)[[place[item] for item in ids.tolist()]]


def _by_user(crowd: SharedCrowd, test: Annotations, scores: Float) -> Float:
    found = auc_by_user(test.labels, scores, test.users)
    everybody = np.full(crowd.said.n_users, np.nan)
    everybody[np.searchsorted(crowd.said.user_ids, found.users)] = found.values
    return everybody


def as_table(found: dict[str, Any]) -> str:
    """Return what was measured, a row for each data set."""
    rows = []
    for name, row in found.items():
        apart = "{:+.2f} [{:+.2f}, {:+.2f}]".format(*(100 * value for value in row["difference"]))
        rows.append([name, f"{100 * row['without']:.1f}", f"{100 * row['with']:.1f}", apart])
    return markdown(["data", "without", "with the weight", "difference"], rows)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with NAME.npz files")
    parser.add_argument("--quick", action="store_true", help="a tiny simulated crowd, printed only")
    chosen = parser.parse_args(arguments)
    found = {}
    for crowd in simulated() if chosen.quick else read_crowds(chosen.data):
        if not chosen.quick and crowd.name not in NAMES:
            continue
        without, with_weight = gains(crowd, SEEDS[:1] if chosen.quick else SEEDS)
        found[crowd.name] = {
            "without": float(without.mean()),
            "with": float(with_weight.mean()),
            "difference": [float(value) for value in over_users(with_weight - without)[:3]],
        }
        if chosen.quick:
            break
    print(as_table(found))
    if not chosen.quick:
        page = DOCS / "development" / "item-effects.md"
        publish("development/crowd-followers", found, page, as_table(found))


if __name__ == "__main__":
    main()
