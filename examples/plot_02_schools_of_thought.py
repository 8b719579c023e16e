"""
Schools: groups of users who rank alike
=======================================

Two crowds disagree to the same degree. The users of one form three groups; those of the other
differ gradually. ``find_schools`` returns groups (schools) only for the first.
"""

import matplotlib.pyplot as plt

import likeminds

camps = likeminds.make_schools(200, 40, 400, 24, n_schools=3, random_state=1).annotations
of_camps = likeminds.find_schools(likeminds.HierarchicalRanker().fit(camps), camps)
print(of_camps)

# %%
# Users near each other on the map rank alike. The features have no names, so the names of schools
# list the items on which they differ.

likeminds.plots.people_map(of_camps)
plt.show()

# %%
# The households differ gradually, along directions that are described by features.

households = likeminds.load_electricity()
of_households = likeminds.find_schools(likeminds.HierarchicalRanker().fit(households), households)
print(of_households)

likeminds.plots.people_map(of_households)
plt.show()
