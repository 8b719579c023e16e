"""Measure what docs/schools.md claims: python tools/schools_accuracy.py.

How often the number of schools is right on simulated crowds, how well people are assigned, how
many random annotators are found, and how long a large crowd takes.
"""

import time
import warnings
from collections import Counter
from itertools import product

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
SEEDS = range(10, 16)
KINDS = ("plain", "turned around", "shuffled")


def schools() -> None:
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
    for name, n in total.items():
        share = np.mean(np.array(rand[name]) >= 0.9)
        print(f"{name}: number right {right[name]} of {n}, adjusted Rand >= 0.9 in {share:.0%}")


def annotators(n_users: int = 120, n_each: int = 12) -> None:
    """Count verdicts on people whose labels were shuffled, or turned around."""
    for n_schools, n_labels in product((1, 2), (10, 20, 40, 100)):
        counts: Counter[tuple[str, str]] = Counter()
        for seed in SEEDS:
            plain = make_schools(
                n_users, n_labels, 600, 10, n_schools, contested=0.5, random_state=seed
            ).annotations
            rng = np.random.default_rng(seed)
            kind = rng.permutation(np.arange(n_users) // n_each).clip(max=2)
            kind = np.array([2, 1, 0])[kind]  # a tenth shuffled, a tenth turned around
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
        print(f"{n_schools} school(s), {n_labels} labels each:")
        for name in KINDS:
            told = {verdict: n for (k, verdict), n in sorted(counts.items()) if k == name}
            print(f"    {name}: {told}")


def size(n_users: int = 100_000, n_features: int = 64) -> None:
    """Time a large crowd, whose weights are made rather than fitted."""
    small = make_schools(400, 20, 500, n_features, 4, random_state=0)
    ranker = ThreeLevelRanker(n_groups=3, max_iter=3).fit(small.annotations)
    which = np.random.default_rng(0).integers(400, size=n_users)
    ranker.users_ = np.arange(n_users)
    for name in ("group_", "personal_", "coef_"):
        setattr(ranker, name, getattr(ranker, name)[which])
    begin = time.perf_counter()
    find_schools(ranker, small.annotations)
    print(f"{n_users:,} people x {n_features} features: {time.perf_counter() - begin:.1f} s")


if __name__ == "__main__":
    size()
    annotators()
    schools()
