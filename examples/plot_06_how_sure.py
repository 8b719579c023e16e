"""
How sure is a ranking, and is it right to be?
=============================================

Whoever has given few labels may have their favourites anywhere near the top. ``rank_interval``
says how far; on a simulated crowd, where the truth is known, one can count how often it is right.
(Items here are what their features say and nothing else, hence ``item_effects=False``; with item
effects, an item that nobody has judged could be better or worse than it looks, and intervals are
wider.)
"""

import matplotlib.pyplot as plt
import numpy as np

import likeminds

crowd = likeminds.make_schools(150, 30, 300, 10, n_schools=2, random_state=4)
ranker = likeminds.HierarchicalRanker(item_effects=False).fit(crowd.annotations)
items = np.random.default_rng(0).standard_normal((25, 10))

# %%
# The share of the true ranks that lie inside the 90 % intervals, over all people:

inside = []
for person, weights in enumerate(crowd.coef):
    low, high = ranker.rank_interval(person, items)
    rank = 1 + np.argsort(np.argsort(-(items @ weights)))
    inside.append((low <= rank) & (rank <= high))
covered = np.mean(inside)
print(f"{covered:.0%} of the true ranks are inside")

# %%
# One of them:

person = int(np.argmin(np.abs(np.mean(inside, axis=1) - covered)))
low, high = ranker.rank_interval(person, items)
guess = 1 + np.argsort(np.argsort(-ranker.decision_function(items, users=[person] * 25)))
truth = 1 + np.argsort(np.argsort(-(items @ crowd.coef[person])))
order = np.argsort(guess)
figure, axes = plt.subplots(figsize=(7, 5), layout="constrained")
axes.hlines(guess[order], low[order], high[order], color="#0072B2", linewidth=5, alpha=0.35)
axes.scatter(guess[order], guess[order], color="#0072B2", label="rank by the model, 90 % interval")
axes.scatter(truth[order], guess[order], color="#D55E00", marker="x", label="true rank")
axes.invert_yaxis()
axes.set_xlabel("rank among 25 new items")
axes.set_ylabel("items, the best by the model on top")
axes.legend(frameon=False, loc="upper right")
missed = int(25 - np.sum(inside[person]))
axes.set_title(
    f"Intervals hold {covered:.0%} of all true ranks; of person {person}'s 25 they miss {missed}",
    loc="left",
)
plt.show()
