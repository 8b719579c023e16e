"""
Comparison of rankers on the same splits
========================================

``compare`` scores rankers on the same repeated splits, by the protocol of the paper. Differences
are paired by user.
"""

import matplotlib.pyplot as plt

import likeminds

households = likeminds.load_electricity()
some = households.of_users(households.user_ids[:80])
rankers = [
    "HierarchicalRanker",
    "ThreeLevelRanker",
    "RidgeToConsensus",
    "OnePerUser",
    "ConsensusOnly",
    "Popularity",
]
found = likeminds.compare(some, rankers, repeats=3, progress=False)
print(found)

# %%
# Dots are repeated splits.

found.boxplot()
plt.show()
