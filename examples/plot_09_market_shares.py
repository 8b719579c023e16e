"""
Market shares and a demand curve
================================

Three contracts compete for 361 households. ``shares`` averages the choice probabilities of all
households. A varying price gives the demand curve.
"""

import matplotlib.pyplot as plt
import numpy as np

import likeminds

ranker = likeminds.HierarchicalRanker(covariance="full").fit(likeminds.load_electricity())
print(ranker.feature_names_)

# %%
# The price of the local contract goes from 6 to 12 cents. Nothing else changes.

prices = np.linspace(6, 12, 13)
drawn = {"cheap, five years": [], "local, one year": [], "by time of day": []}
for price in prices:
    market = {
        "cheap, five years": [7.0, 5, 0, 1, 0, 0],
        "local, one year": [price, 1, 1, 0, 0, 0],
        "by time of day": [0.0, 0, 0, 1, 1, 0],
    }
    for row in ranker.shares(market).rows:
        drawn[row["item"]].append(100 * row["share"])

figure, axes = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
looks = zip(("-", "--", ":"), ("#0072B2", "#D55E00", "#009E73"), strict=True)
for (name, shares), (line, colour) in zip(drawn.items(), looks, strict=True):
    axes.plot(prices, shares, line, color=colour, linewidth=2, label=name)
axes.set(
    xlabel="price of the local contract, cents per kilowatt-hour", ylabel="share of households, %"
)
axes.set_ylim(0, 100)
axes.legend(frameon=False)
local = drawn["local, one year"]
axes.set_title(
    f"Share of the local contract from 6 to 12 cents: from {local[0]:.0f} % to {local[-1]:.0f} %",
    loc="left",
)
plt.show()
