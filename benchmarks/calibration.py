"""How well probabilities of labels are calibrated: the table in docs/probabilities.md.

``python -m benchmarks.calibration --data FOLDER --seeds 5 verbagg trolley`` writes
docs/calibration.json, which the page quotes (``python -m tools.quoted_numbers``). FOLDER holds
files laid out as for `benchmarks.shared_items`. A fifth of the users are held out as new users,
and 30 % of the labels of all others. The calibration error is the mean, over ten bins of equally
many labels, of the gap between predicted and true shares. Both are means over seeds.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from benchmarks.shared_crowds import read_crowds
from likeminds import Annotations, HierarchicalRanker, split_within_users
from likeminds.mixed_model.likelihoods import label_probability
from likeminds.rankers.probabilities import prediction_rows

PAGE = Path(__file__).parents[1] / "docs" / "calibration.json"
_TEST, _NEW, _BINS = 0.3, 0.2, 10
# Transforms of scores into probabilities that are compared.
WAYS = ("predict_proba", "all of the variance", "none of the variance")


def measure(said: Annotations, seed: int = 0) -> dict[str, list[tuple[float, float]]]:
    """Return calibration error and log loss of each transform, for known and new users."""
    rng = np.random.default_rng(seed)
    drawn = rng.random(said.n_users) < _NEW
    new = drawn[said.user_codes]
    train, test = split_within_users(said[~new], _TEST, random_state=seed, stratify=False)
    ranker = HierarchicalRanker(loss="logistic", unknown="consensus").fit(train)
    found = {}
    for who, part in (("known", test), ("new", said[new])):
        posterior, rows, places, _ = prediction_rows(ranker, part, None)
        eta, variance = posterior.linear_predictor(rows, places)
        chances = (
            ranker.predict_proba(part)[:, 1],
            label_probability(eta, np.sqrt(variance)),
            label_probability(eta, 0.0 * eta),
        )
        found[who] = [
            (calibration_error(chance, part.labels), log_loss(chance, part.labels))
            for chance in chances
        ]
    return found


def calibration_error(chance: np.ndarray, labels: np.ndarray) -> float:
    """Return the mean gap, over bins of equally many labels, of predicted and true shares."""
    bins = np.array_split(np.argsort(chance, kind="stable"), _BINS)
    return float(np.mean([abs(chance[b].mean() - labels[b].mean()) for b in bins]))


def log_loss(chance: np.ndarray, labels: np.ndarray) -> float:
    """Return the mean of minus the logarithm of the predicted probability of the labels."""
    right = np.where(labels, chance, 1.0 - chance)
    return float(-np.log(np.maximum(right, 1e-12)).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=100, help="the first seed")
    parser.add_argument("names", nargs="+")
    given = parser.parse_args()
    found = {}
    for crowd in read_crowds(given.data):
        if crowd.name not in given.names:
            continue
        runs = [measure(crowd.said, given.first + seed) for seed in range(given.seeds)]
        found[crowd.name] = {
            who: dict(zip(WAYS, np.mean([run[who] for run in runs], axis=0).tolist(), strict=True))
            for who in ("known", "new")
        }
    PAGE.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
