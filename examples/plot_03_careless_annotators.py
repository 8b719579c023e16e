"""
Careless, or simply of another opinion?
=======================================

An annotator whom the majority does not predict is usually thrown out. But there are two kinds:
those whose labels follow no rule, and those who follow another one. ``diagnose`` tells them apart
with labels that were held out: somebody whose *own* function predicts them is different, and only
somebody whom nothing predicts is random.
"""

import matplotlib.pyplot as plt
import numpy as np

import likeminds

crowd = likeminds.make_schools(90, 60, 300, 12, n_schools=1, random_state=2).annotations
rng = np.random.default_rng(0)
labels = crowd.labels.copy()
for person in range(8):  # the first eight answer at random
    mine = crowd.user_codes == person
    labels[mine] = rng.permutation(labels[mine])
for person in range(8, 16):  # the next eight mean the opposite of everybody else
    labels[crowd.user_codes == person] ^= True
mixed = likeminds.Annotations(crowd.users, crowd.items, labels, crowd.features, features_per="item")

found = likeminds.diagnose(likeminds.HierarchicalRanker().fit(mixed), mixed)
print(found.counts)

# %%
# Who was called what: nearly all of the shuffled are found, and the eight with the opposite
# opinion are not among them.

axes = likeminds.plots.auc_by_user(found)
axes.set_title(
    f"{found.counts['random']} people answer at random; {found.counts['different']} whom the "
    "consensus gets wrong do not",
    loc="left",
)
plt.show()
random = set(found.of("random").tolist())
print(f"random: {len(random & set(range(8)))} of 8 shuffled, {len(random - set(range(8)))} others")
print(f"different: {len(set(found.of('different').tolist()) & set(range(8, 16)))} of 8 opposite")
