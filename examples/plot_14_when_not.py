"""
Users who agree: one ranking for all
====================================

The more users disagree, the more personal rankings gain over one ranking for all.
``HierarchicalRanker`` learns how much users disagree. If they agree, it equals one ranking for
all.
"""

import matplotlib.pyplot as plt
import numpy as np

import likeminds
from likeminds.baselines import ConsensusOnly, OnePerUser

STRENGTHS = (0.0, 0.5, 1.0, 1.5, 2.0)
rankers = {
    "HierarchicalRanker": likeminds.HierarchicalRanker,
    "one ranking for all": ConsensusOnly,
    "one ranking per person": OnePerUser,
}
found = {name: [] for name in rankers}
for strength in STRENGTHS:
    crowd = likeminds.make_schools(
        120,
        30,
        400,
        15,
        n_schools=2,
        school_strength=strength,
        personal_strength=0.2,
        random_state=6,
    )
    train, test = likeminds.split_within_users(crowd.annotations, test_size=0.3, random_state=0)
    for name, make in rankers.items():
        found[name].append([100 * make().fit(train).score(test)])

# %%
# Without disagreement (left end), personal rankings gain nothing.

gain = np.subtract(found["HierarchicalRanker"], found["one ranking for all"])[:, 0]
likeminds.plots.learning_curves(
    STRENGTHS,
    found,
    title=f"Gain over one ranking for all: {gain[0]:+.1f} points without disagreement, "
    f"{gain[-1]:+.1f} with most",
    size_label="disagreement of the two schools",
    label="AUC on held-out labels, per cent",
)
plt.show()
