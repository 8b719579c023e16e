"""
Are consensus, schools and loners found again?
==============================================

The paper's simulation, where the truth is known: five schools each care about a block of features
of their own, and seventeen people in a hundred have something personal besides. From labels
alone, the three levels should come back.
"""

import matplotlib.pyplot as plt
import numpy as np

import likeminds

truth = likeminds.make_simulation(n_users=100, n_samples=400, n_positive=40, random_state=0)
ranker = likeminds.ThreeLevelRanker(n_groups=5).fit(truth.annotations)

# %%
# Weights are known up to their length, since a ranking does not change when all are doubled; both
# sides are scaled to unit length per person.


def to_unit(weights):
    """Return rows of unit length."""
    return weights / np.linalg.norm(weights, axis=1, keepdims=True)


true, learned = to_unit(truth.coef), to_unit(ranker.coef_)
angle = np.sum(true * learned, axis=1)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.6), sharey=True, layout="constrained")
for axes, weights, name in ((left, true, "true"), (right, learned, "learned from labels")):
    image = axes.imshow(weights, cmap="RdBu_r", vmin=-0.4, vmax=0.4, aspect="auto")
    axes.set_xlabel("features")
    axes.set_title(name, loc="left")
left.set_ylabel("people")
figure.colorbar(image, ax=right, label="weight, people of unit length")
figure.suptitle(
    f"Five blocks, and rows that stick out: found again, with a mean cosine of {angle.mean():.2f}",
    x=0.01,
    ha="left",
)
plt.show()
