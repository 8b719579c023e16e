"""
Recovery of consensus, groups and personal weights
==================================================

In the paper's simulation, the true weights are known. Five groups of users weigh different blocks
of features, and 17 of 100 users also have personal weights. ``ThreeLevelRanker`` recovers the
three levels from labels.
"""

import matplotlib.pyplot as plt
import numpy as np

import likeminds

truth = likeminds.make_simulation(n_users=100, n_samples=400, n_positive=40, random_state=0)
ranker = likeminds.ThreeLevelRanker(n_groups=5).fit(truth.annotations)

# %%
# Rankings determine weights up to a factor, so the weights of each user are scaled to unit length.


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
left.set_ylabel("users")
figure.colorbar(image, ax=right, label="weight, scaled to unit length")
figure.suptitle(
    f"True and estimated weights: mean cosine of {angle.mean():.2f}",
    x=0.01,
    ha="left",
)
plt.show()
