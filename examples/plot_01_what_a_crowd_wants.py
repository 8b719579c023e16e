"""
Consensus and differences of households
=======================================

361 households chose among four electricity contracts at a time. ``HierarchicalRanker`` estimates
the weights that all households share (the consensus) and the weights of each household.
"""

import matplotlib.pyplot as plt
import numpy as np

import likeminds

households = likeminds.load_electricity()
ranker = likeminds.HierarchicalRanker().fit(households)
households

# %%
# A row of ``coef_`` is a household, a column a feature. The weight times the standard deviation of
# the feature is the effect of the feature on the household's ranking.

spread = households.features.std(axis=0)
weights = ranker.coef_ * spread
consensus = ranker.consensus_ * spread
order = np.argsort(np.abs(consensus))
names = [ranker.feature_names_[place].replace("_", " ") for place in order]
share = np.maximum((weights > 0).mean(axis=0), (weights < 0).mean(axis=0))

figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
axes.axvline(0, color="0.6", linewidth=1)
axes.boxplot(
    weights[:, order], orientation="horizontal", whis=(5, 95), showfliers=False, widths=0.5
)
axes.scatter(consensus[order], np.arange(1, 7), color="#D55E00", zorder=3, label="consensus")
axes.set_yticks(np.arange(1, 7), names)
axes.set_xlabel("weight times the feature's standard deviation; boxes hold half of the households")
axes.legend(frameon=False, loc="lower right")
most, least = order[np.argmax(share[order])], order[np.argmin(share[order])]
axes.set_title(
    f"On {ranker.feature_names_[most].replace('_', ' ')} {share[most]:.0%} agree; "
    f"on {ranker.feature_names_[least].replace('_', ' ')} only {share[least]:.0%} do",
    loc="left",
)
plt.show()

# %%
# If a box lies on one side of the line, most households agree on the feature. A box across the
# line is a feature that some households want and others avoid.
