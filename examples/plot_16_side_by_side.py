"""
Is it worth it on your data?
============================

Hold the rankers side by side on the same splits before you believe anybody, this page included.
``compare`` does it by the paper's protocol; differences are paired by person.
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
# Dots are repeats, with other labels held out.

found.boxplot()
plt.show()
