"""
Statements that every school agrees with
========================================

Users vote on statements of a town: agree or disagree. The statements have no features. A majority
can consist of one group. ``find_schools`` also finds statements that every school agrees with
(bridging), and divisive statements. Users who did not vote count by their predicted vote.
"""

import matplotlib.pyplot as plt
import numpy as np

import likeminds

# Effect of a statement, and its weights on two dimensions: traffic and nightlife.
STATEMENTS = {
    "Trees along the main street": (1.8, 0.0, 0.0),
    "A crossing by the school": (1.5, 0.2, 0.0),
    "Benches at every bus stop": (1.4, 0.0, 0.1),
    "Lamps on the path by the river": (0.9, 0.0, 0.2),
    "No cars in the centre": (0.2, 2.2, 0.0),
    "A speed limit of 30 everywhere": (0.1, 2.0, 0.0),
    "Cycle lanes instead of parking": (0.3, 1.8, 0.2),
    "A car park under the square": (0.1, -2.2, 0.0),
    "Two hours of free parking": (0.2, -2.0, 0.0),
    "A second bridge for cars": (-0.1, -1.8, 0.0),
    "Bars open until three": (0.2, 0.0, 2.2),
    "Concerts in the park": (0.0, 0.2, 2.0),
    "Buses all night": (0.1, 0.3, 1.8),
    "Quiet from ten in the evening": (0.3, 0.0, -1.8),
    "No music on the square": (0.0, -0.2, -1.6),
    "Paint the town hall blue": (-1.0, 0.0, 0.0),
    "Fell the old oak": (-1.4, 0.2, 0.0),
    "Sell the swimming pool": (-1.6, 0.0, 0.0),
}
CAMPS = np.repeat([(1.0, -0.6), (-1.0, -0.6), (0.0, 1.6)], (90, 70, 80), axis=0)

rng = np.random.default_rng(0)
liked, *apart = np.array(list(STATEMENTS.values())).T
chance = 1 / (1 + np.exp(-(liked + CAMPS @ np.array(apart))))
person, statement = np.nonzero(rng.random(chance.shape) < 0.9)
votes = likeminds.Annotations(
    users=person,
    items=np.array(list(STATEMENTS), dtype=object)[statement],
    labels=rng.random(len(person)) < chance[person, statement],
)
votes

# %%
# The names of schools list the statements on which they differ.

ranker = likeminds.HierarchicalRanker().fit(votes)
schools = likeminds.find_schools(ranker, votes)
print(schools)

# %%
# The share of each school that would say yes, with 90 % intervals.

shown = [*schools.agreed[:4], *schools.divisive[:6]]
figure, axes = plt.subplots(figsize=(8.5, 4.8), layout="constrained")
for number, school in enumerate(schools):
    soft = [schools.soft_labels.of_row(one.row) for one in shown]
    axes.errorbar(
        [100 * one["by_school"][number] for one in soft],
        -np.arange(len(shown)) - 0.12 * number,
        xerr=[164.5 * one["error_by_school"][number] for one in soft],
        fmt="o^sDv"[number],
        color=("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00")[number],
        label=f"school {school.number}, {school.size} people",
    )
axes.set_yticks(-np.arange(len(shown)), [str(one.item) for one in shown])
axes.axvline(50, color="0.6", linewidth=1)
axes.axhline(-3.6, color="0.8", linewidth=1)
axes.set_xlabel("share that would say yes, %")
axes.set_xlim(0, 100)
figure.legend(loc="outside lower center", ncols=3, frameon=False)
axes.set_title(
    f"Statements that all {len(schools)} schools agree with (above) and divisive ones (below)",
    loc="left",
)
plt.show()
