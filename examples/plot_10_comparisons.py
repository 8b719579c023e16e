"""
Comparisons by users who disagree
=================================

Sixty users compare six dishes, in fifteen pairs each. Two thirds of them rank the dishes one way,
one third the other way. A single Bradley-Terry ranking describes neither group.
"""

import matplotlib.pyplot as plt
import numpy as np

import likeminds

DISHES = np.array(["tuna", "eel", "egg", "squid", "crab", "tofu"])
WORTH = np.array([2.0, 1.0, 0.3, -0.3, -1.0, -2.0])
rng = np.random.default_rng(0)
camp = np.where(np.arange(60) < 20, -1, 1)
person = np.repeat(np.arange(60), 15)
a = rng.integers(6, size=900)
b = (a + rng.integers(1, 6, size=900)) % 6
swap = camp[person] * (WORTH[a] - WORTH[b]) + rng.logistic(size=900) < 0
pairs = likeminds.Annotations.from_comparisons(
    users=person, winners=DISHES[np.where(swap, b, a)], losers=DISHES[np.where(swap, a, b)]
)
pairs

# %%
# Dishes have no features: each has an effect that all users share, and a factor that users weigh
# differently. Both are learned.

ranker = likeminds.HierarchicalRanker().fit(pairs)
places = [ranker.items_.tolist().index(dish) for dish in DISHES]
consensus = ranker.item_effect_[places]
scores = consensus + ranker.factor_weights_ @ ranker.item_factors_[places].T
schools = likeminds.find_schools(ranker, pairs)
print(schools)

# %%
# Thin lines are users, thick lines the schools, the dashed line is the consensus.

figure, axes = plt.subplots(figsize=(7.5, 4.4), layout="constrained")
for row, label in zip(scores, schools.labels, strict=True):
    axes.plot(row, color=("#0072B2", "#D55E00", "0.5")[label], alpha=0.25, linewidth=1)
for number in range(len(schools)):
    axes.plot(
        scores[schools.labels == number].mean(axis=0),
        color=("#0072B2", "#D55E00", "0.5")[number],
        linewidth=3,
        label=f"school {number + 1}, {np.sum(schools.labels == number)} people",
    )
axes.plot(consensus, "k--", linewidth=3, label="consensus")
axes.set_xticks(range(6), DISHES)
axes.set_ylabel("score")
axes.legend(frameon=False)
axes.set_title(
    f"{len(schools)} schools rank in opposite orders; the consensus fits neither",
    loc="left",
)
plt.show()
