"""
Annotators who answer at random, and annotators who disagree
============================================================

The consensus fails to predict two kinds of annotators: some answer at random, others have another
opinion. ``diagnose`` separates them on held-out labels. Annotators are *random* if neither the
consensus nor their own ranking predicts these labels. They are *reversed* if the consensus
predicts the opposite.
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
for person in range(8, 16):  # the next eight have the opposite opinion
    labels[crowd.user_codes == person] ^= True
mixed = likeminds.Annotations(crowd.users, crowd.items, labels, crowd.features, features_per="item")

found = likeminds.diagnose(likeminds.HierarchicalRanker().fit(mixed), mixed)
print(found.counts)

# %%
# ``diagnose`` finds the annotators with shuffled labels and those with the opposite opinion.

axes = likeminds.plots.auc_by_user(found)
axes.set_title(
    f"{found.counts['random']} annotators answer at random; {found.counts['reversed']} have "
    "the opposite opinion",
    loc="left",
)
plt.show()
random = set(found.of("random").tolist())
print(f"random: {len(random & set(range(8)))} of 8 shuffled, {len(random - set(range(8)))} others")
print(f"reversed: {len(set(found.of('reversed').tolist()) & set(range(8, 16)))} of 8 opposite")
