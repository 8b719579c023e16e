"""How well probabilities of labels are calibrated: the table in docs/probabilities.md.

``python -m benchmarks.calibration --data FOLDER verbagg trolley`` prints it. FOLDER holds files
laid out as for `benchmarks.shared_items`. 30 % of everybody's labels are held out; the calibration
error is the mean, over ten bins of equally many labels, of the gap of promised and true shares.
"""

import argparse
from pathlib import Path

import numpy as np

from benchmarks.shared_crowds import read_crowds
from likeminds import Annotations, HierarchicalRanker, split_within_people
from likeminds.prior.beliefs import label_probability
from likeminds.rankers.grading import scores_and_variances

_TEST, _BINS = 0.3, 10


def measure(said: Annotations, seed: int = 0) -> dict[str, float]:
    """Return calibration errors and log losses, with and without what is not known."""
    train, test = split_within_people(said, _TEST, random_state=seed)
    ranker = HierarchicalRanker(loss="logistic").fit(train)
    eta, _, _ = scores_and_variances(ranker, test, None)
    found = {}
    for name, chance in (
        ("predict_proba", ranker.predict_proba(test)[:, 1]),
        ("sigma of the score", label_probability(eta, 0.0 * eta)),
    ):
        found[f"{name}: error"] = calibration_error(chance, test.labels)
        right = np.where(test.labels, chance, 1.0 - chance)
        found[f"{name}: log loss"] = float(-np.log(np.maximum(right, 1e-12)).mean())
    return found


def calibration_error(chance: np.ndarray, labels: np.ndarray) -> float:
    """Return the mean gap, over bins of equally many labels, of promised and true shares."""
    bins = np.array_split(np.argsort(chance, kind="stable"), _BINS)
    return float(np.mean([abs(chance[b].mean() - labels[b].mean()) for b in bins]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("names", nargs="+")
    given = parser.parse_args()
    for crowd in read_crowds(given.data):
        if crowd.name in given.names:
            found = measure(crowd.said)
            print(f"| {crowd.name} | " + " | ".join(f"{v:.3f}" for v in found.values()) + " |")


if __name__ == "__main__":
    main()
