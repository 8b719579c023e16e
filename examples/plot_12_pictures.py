"""
Rankings of pictures by users who disagree
==========================================

Items may be pictures. Both the shoes and the labels are simulated: some users find flat and soft
shoes comfortable, some sturdy ones, and some accept a heel. Features are computed from the pixels.
"""

import matplotlib.pyplot as plt
import numpy as np

import likeminds

shoes = likeminds.make_sketch_shoes(160, 60, 50, attributes=["comfortable"], n_components=20)
labels = shoes.annotations.of_attribute("comfortable")
ranker = likeminds.HierarchicalRanker().fit(labels)
labels

# %%
# The two users who agree least, and the consensus.

by_user = ranker.coef_ @ labels.features.T
alike = np.corrcoef(by_user)
one, other = np.unravel_index(np.argmin(alike), alike.shape)
rows = {
    str(ranker.users_[one]): by_user[one],
    "consensus": ranker.consensus_ @ labels.features.T,
    str(ranker.users_[other]): by_user[other],
}
figure, grid = plt.subplots(3, 6, figsize=(8.5, 4.6), layout="constrained")
for line, (name, scores) in zip(grid, rows.items(), strict=True):
    for axes, place in zip(line, np.argsort(-scores)[:6], strict=True):
        axes.imshow(shoes.pictures[place])
        axes.set(xticks=[], yticks=[])
    line[0].set_ylabel(name)
best = [set(np.argsort(-scores)[:6]) for scores in rows.values()]
figure.suptitle(
    f"The six most comfortable shoes: {ranker.users_[one]} and {ranker.users_[other]} have "
    f"{len(best[0] & best[2]) or 'none'} in common",
    x=0.01,
    ha="left",
)
plt.show()

# %%
# The card of a user shows their weights and the consensus by feature.

likeminds.plots.user_card(ranker, ranker.users_[one], labels, shoes.pictures)
plt.show()
