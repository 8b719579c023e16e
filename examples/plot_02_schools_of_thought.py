"""
Are there schools of thought, and how many?
===========================================

Two crowds disagree equally loudly. In one there are three camps; in the other, people differ
gradually. ``find_schools`` has to tell these apart: *one cloud* is an answer, too.
"""

import matplotlib.pyplot as plt

import likeminds

camps = likeminds.make_schools(200, 40, 400, 24, n_schools=3, random_state=1).annotations
of_camps = likeminds.find_schools(likeminds.HierarchicalRanker().fit(camps), camps)
print(of_camps)

# %%
# People near each other on the map rank alike. Schools are named after the items that set them
# apart, since these features have no names that mean anything.

likeminds.plots.people_map(of_camps)
plt.show()

# %%
# The households differ gradually. Their features have names, and so have the directions in which
# they differ.

households = likeminds.load_electricity()
of_households = likeminds.find_schools(likeminds.HierarchicalRanker().fit(households), households)
print(of_households)

likeminds.plots.people_map(of_households)
plt.show()
