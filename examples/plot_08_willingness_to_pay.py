"""
Willingness to pay
==================

``wtp`` estimates the willingness to pay from a mixed logit. It is the ratio of the weight of a
feature, such as *local company*, to the weight of the price. Its unit is cents per kilowatt-hour,
and it varies over households.
"""

import matplotlib.pyplot as plt
import numpy as np

import likeminds

households = likeminds.load_electricity()
ranker = likeminds.HierarchicalRanker(covariance="full").fit(households)
paid = ranker.wtp("price", draws=60)
print(paid)

# %%
# For each feature, the ratio of the means with its interval (Fieller's, which is not symmetric),
# and the ratios of households.

names = list(ranker.feature_names_)
price = names.index("price")
cheap = ranker.coef_[:, price] < -0.1  # the ratio needs a weight of the price
shown = [row for row in paid.rows if "rates" not in row["feature"]]
figure, axes = plt.subplots(figsize=(8, 3.6), layout="constrained")
rng = np.random.default_rng(0)
for height, row in enumerate(shown):
    column = names.index(row["feature"])
    users = -ranker.coef_[cheap, column] / ranker.coef_[cheap, price]
    axes.scatter(users, height + rng.uniform(-0.25, 0.25, len(users)), s=6, color="0.7")
    axes.hlines(height, row["from"], row["to"], color="#D55E00", linewidth=6)
    axes.scatter(row["at the mean"], height, color="black", zorder=3)
axes.axvline(0, color="0.6", linewidth=1)
axes.set_yticks(range(len(shown)), [row["feature"].replace("_", " ") for row in shown])
axes.set_xlim(-4, 10)
axes.set_xlabel(
    "cents per kilowatt-hour: households (grey), ratio of means with 95 % interval (orange)"
)
local = next(row for row in shown if row["feature"] == "local_company")
axes.set_title(
    f"A local supplier is worth {local['at the mean']:.1f} cents at the mean, nothing to some",
    loc="left",
)
plt.show()
