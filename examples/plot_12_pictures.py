"""
Which of these shoes are comfortable? It depends on whom you ask
================================================================

Items may be pictures. These are drawn by the program, and so is the crowd that disagrees about
them: some find flat and soft comfortable, some sturdy, some do not mind a heel. Features come
from the pixels alone.
"""

import matplotlib.pyplot as plt
import numpy as np

import likeminds

shoes = likeminds.make_sketch_shoes(160, 60, 50, attributes=["comfortable"], n_components=20)
labels = shoes.annotations.of_attribute("comfortable")
ranker = likeminds.HierarchicalRanker().fit(labels)
labels

# %%
# The two people who agree least, and the consensus between them.

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
# A person's card says the same by feature, beside what all agree on.

likeminds.plots.user_card(ranker, ranker.users_[one], labels, shoes.pictures)
plt.show()
