"""
Credible intervals of ranks
===========================

With few labels, the ranks of a user's items are uncertain. ``rank_interval`` returns credible
intervals. The weights of simulated users are known, so the coverage of the intervals can be
measured. Features determine these items completely, hence ``item_effects=False``. With item
effects, intervals of unlabelled items are wider.
"""

import matplotlib.pyplot as plt
import numpy as np

import likeminds

crowd = likeminds.make_schools(150, 30, 300, 10, n_schools=2, random_state=4)
ranker = likeminds.HierarchicalRanker(item_effects=False).fit(crowd.annotations)
items = np.random.default_rng(0).standard_normal((25, 10))

# %%
# Share of true ranks inside the 90 % intervals, over all users:

inside = []
for person, weights in enumerate(crowd.coef):
    low, high = ranker.rank_interval(person, items)
    rank = 1 + np.argsort(np.argsort(-(items @ weights)))
    inside.append((low <= rank) & (rank <= high))
covered = np.mean(inside)
print(f"{covered:.0%} of the true ranks are inside")

# %%
# The intervals of one user:

person = int(np.argmin(np.abs(np.mean(inside, axis=1) - covered)))
low, high = ranker.rank_interval(person, items)
guess = 1 + np.argsort(np.argsort(-ranker.decision_function(items, users=[person] * 25)))
truth = 1 + np.argsort(np.argsort(-(items @ crowd.coef[person])))
order = np.argsort(guess)
figure, axes = plt.subplots(figsize=(7, 5), layout="constrained")
axes.hlines(guess[order], low[order], high[order], color="#0072B2", linewidth=5, alpha=0.35)
axes.scatter(guess[order], guess[order], color="#0072B2", label="predicted rank, 90 % interval")
axes.scatter(truth[order], guess[order], color="#D55E00", marker="x", label="true rank")
axes.invert_yaxis()
axes.set_xlabel("rank among 25 new items")
axes.set_ylabel("items, by their predicted rank")
axes.legend(frameon=False, loc="upper right")
missed = int(25 - np.sum(inside[person]))
axes.set_title(
    f"Intervals contain {covered:.0%} of true ranks; for user {person}, they miss {missed} of 25",
    loc="left",
)
plt.show()
