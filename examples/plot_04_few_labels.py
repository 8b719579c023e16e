"""
Accuracy by number of labels per user
=====================================

One model for all users ignores their disagreement. One model per user needs many labels.
``HierarchicalRanker`` learns from the labels how similar users are.
"""

import matplotlib.pyplot as plt

import likeminds
from likeminds.baselines import ConsensusOnly, OnePerUser

SIZES = (5, 10, 20, 40, 80)
crowd = likeminds.make_schools(120, 120, 1000, 20, n_schools=3, random_state=3).annotations
known, test = likeminds.split_within_users(crowd, test_size=40 / 120, random_state=0)


def first_labels(size):
    """Return the first labels of each user."""
    if size == max(SIZES):
        return known
    return likeminds.split_within_users(known, test_size=1 - size / 80, random_state=1)[0]


rankers = {
    "learned prior (HierarchicalRanker)": likeminds.HierarchicalRanker,
    "one model for all (ConsensusOnly)": ConsensusOnly,
    "one model per person (OnePerUser)": OnePerUser,
}
curves = {
    name: [[100 * make().fit(first_labels(size)).score(test)] for size in SIZES]
    for name, make in rankers.items()
}

# %%
# With five labels per user, the consensus matters most. With eighty, one model per user is nearly
# as accurate.

ours, *others = curves.values()
gain = [mine[0] - max(one[place][0] for one in others) for place, mine in enumerate(ours)]
best = max(range(len(SIZES)), key=gain.__getitem__)
axes = likeminds.plots.learning_curves(
    SIZES,
    curves,
    title=f"HierarchicalRanker gains most with {SIZES[best]} labels each: "
    f"+{gain[best]:.0f} points of AUC",
    label="AUC on held-out labels, per cent, mean over users",
)
plt.show()
