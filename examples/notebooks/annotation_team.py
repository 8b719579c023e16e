# %% [markdown]
# # An annotation team that disagrees
#
# Forty annotators labelled 150 comments as offensive or not. A majority vote hides whether a split
# vote is due to carelessness or to different opinions. Comments and labels are simulated here, so
# the results can be compared with the truth. Read your own labels with `likeminds.read_export` or
# `Annotations.from_csv`.

# %%
import numpy as np

import likeminds

rng = np.random.default_rng(0)
n_users, n_comments = 40, 150
traits = rng.normal(size=(n_comments, 3))  # how much it swears, threatens, mocks
weights = np.tile([1.0, 2.0, 0.5], (n_users, 1))
weights[25:] = [2.5, 1.5, -1.0]  # fifteen people mind swearing, and take mockery for a joke
person, comment = np.nonzero(rng.random((n_users, n_comments)) < 0.5)
chance = 1 / (1 + np.exp(-np.sum(weights[person] * traits[comment], axis=1)))
labels = rng.random(len(person)) < chance
labels[person < 3] = rng.random(np.sum(person < 3)) < 0.5  # three of them just click
crowd = likeminds.Annotations(
    [f"annotator {i:02d}" for i in person],
    [f"comment {j:03d}" for j in comment],
    labels,
    {f"comment {j:03d}": row for j, row in enumerate(traits)},
    feature_names=["swearing", "threat", "mockery"],
)
crowd

# %% [markdown]
# ## Fit a ranker
#
# `HierarchicalRanker` learns a consensus, groups of annotators who rank alike, and how far they
# differ.

# %%
train, test = likeminds.split_within_users(crowd, test_size=0.3, random_state=0)
ranker = likeminds.HierarchicalRanker().fit(train)
majority = likeminds.baselines.Popularity().fit(train)
print(
    f"AUC on held-out labels: {ranker.score(test):.3f}; by the majority: {majority.score(test):.3f}"
)

# %% [markdown]
# ## Annotators who answer at random
#
# If their own ranking predicts an annotator's held-out labels, they are *different*. If neither
# their own ranking nor the consensus does, they are *random*.

# %%
ranker = likeminds.HierarchicalRanker().fit(crowd)
found = likeminds.diagnose(ranker, crowd)
print(found.counts)
print("random:", *found.of("random"))
likeminds.plots.auc_by_user(found)

# %% [markdown]
# ## Groups of annotators

# %%
clicked = set(found.of("random"))
careful = crowd.of_users([one for one in crowd.user_ids if one not in clicked])
ranker = likeminds.HierarchicalRanker().fit(careful)
schools = likeminds.find_schools(ranker, careful)
print(schools)
likeminds.plots.people_map(schools)

# %% [markdown]
# ## Soft labels
#
# A soft label is the share of all annotators who would call a comment offensive, with its standard
# error. Annotators who did not label the comment count by their predicted label. Soft labels are a
# better target for a classifier than the majority of three.

# %%
soft = schools.soft_labels
table = soft.table().to_pandas().sort_values("share", ascending=False)
table.head()

# %% [markdown]
# Distance of soft labels from the true shares, compared with the shares among given labels:

# %%
spoken = [i for i in range(n_users) if f"annotator {i:02d}" not in clicked]
scores = traits @ weights[spoken].T
truth = (1 / (1 + np.exp(-scores))).mean(axis=1)
ids = [int(str(item)[-3:]) for item in careful.item_ids]
asked = np.array([careful.labels[careful.item_codes == j].mean() for j in range(len(ids))])
print(
    f"mean distance from the truth: {np.abs(soft.share - truth[ids]).mean():.3f} for soft labels,"
)
print(f"{np.abs(asked - truth[ids]).mean():.3f} for the votes that were cast")

# %% [markdown]
# The most divisive comments, to be discussed in the guidelines:

# %%
for one in schools.divisive[:3]:
    swearing, threat, mockery = traits[int(str(one.item)[-3:])]
    print(f"{one.item}: swearing {swearing:+.1f}, threat {threat:+.1f}, mockery {mockery:+.1f}")
