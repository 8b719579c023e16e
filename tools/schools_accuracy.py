"""Measure the figures of docs/schools.md: python -m tools.schools_accuracy.

How often the number of schools is right on simulated crowds, how well people are assigned, and
how many random annotators are found. Writes docs/schools-accuracy.json, which the page quotes
(``python -m tools.quoted_numbers``).
"""

import json
import warnings
from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score

from likeminds import (
    Annotations,
    HierarchicalRanker,
    ThreeLevelRanker,
    diagnose,
    find_schools,
    make_schools,
)

warnings.simplefilter("ignore")
PAGE = Path(__file__).parents[1] / "docs" / "schools-accuracy.json"
SEEDS = range(10, 16)
KINDS = ("plain", "reversed", "shuffled")


def schools() -> dict[str, dict[str, float]]:
    """Count how often the number of schools is right, by ranker."""
    right, rand, total = Counter(), {}, Counter()
    for n_users, n_schools, seed in product((60, 200), range(1, 6), SEEDS):
        crowd = make_schools(n_users, 40, 400, 16, n_schools, contested=0.5, random_state=seed)
        rankers = {
            "ThreeLevelRanker, n_groups = schools - 1": ThreeLevelRanker(
                n_groups=max(1, n_schools - 1)
            ),
            "ThreeLevelRanker, n_groups = schools + 1": ThreeLevelRanker(n_groups=n_schools + 1),
            "HierarchicalRanker": HierarchicalRanker(),
        }
        for name, ranker in rankers.items():
            found = find_schools(ranker.fit(crowd.annotations), crowd.annotations)
            total[name] += 1
            right[name] += max(len(found), 1) == n_schools
            rand.setdefault(name, []).append(adjusted_rand_score(crowd.school, found.labels))
    return {
        name: {
            "right": right[name],
            "of": n,
            "Rand >= 0.9": float(np.mean(np.array(rand[name]) >= 0.9)),
        }
        for name, n in total.items()
    }


def annotators(n_users: int = 120, n_each: int = 12) -> dict[str, dict[str, float]]:
    """Count verdicts on people whose labels were shuffled, or reversed."""
    shares = {}
    for n_schools, n_labels in product((1, 2), (10, 20, 40, 100)):
        counts: Counter[tuple[str, str]] = Counter()
        for seed in SEEDS:
            plain = make_schools(
                n_users, n_labels, 600, 10, n_schools, contested=0.5, random_state=seed
            ).annotations
            rng = np.random.default_rng(seed)
            kind = rng.permutation(np.arange(n_users) // n_each).clip(max=2)
            kind = np.array([2, 1, 0])[kind]  # a tenth shuffled, a tenth reversed
            labels = plain.labels.copy()
            for person in range(n_users):
                rows = plain.user_codes == person
                if kind[person] == 2:
                    labels[rows] = rng.permutation(labels[rows])
                elif kind[person] == 1:
                    labels[rows] = ~labels[rows]
            crowd = Annotations(
                plain.users, plain.items, labels, plain.features, features_per="item"
            )
            found = diagnose(ThreeLevelRanker().fit(crowd), crowd)
            counts.update((KINDS[k], v) for k, v in zip(kind, found.verdict, strict=True))
        each = n_each * len(SEEDS)
        random = sum(n for (_, verdict), n in counts.items() if verdict == "random")
        opposed = counts["reversed", "reversed"] + counts["reversed", "different"]
        shares[f"{n_schools} x {n_labels}"] = {
            "found": counts["shuffled", "random"] / each,
            "false": random - counts["shuffled", "random"],
            "random": random,
            "reversed": opposed / each,
        }
    return shares


if __name__ == "__main__":
    results = {"annotators": annotators(), "schools": schools()}
    PAGE.write_text(json.dumps(results, indent=1) + "\n")
