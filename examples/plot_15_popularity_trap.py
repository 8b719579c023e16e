"""
Leakage through a popularity column
===================================

The popularity of an item predicts labels well. If it is computed from all labels before they are
split, it contains the held-out labels. Scores on these labels are then far too high.
"""

import matplotlib.pyplot as plt
import numpy as np

import likeminds

rng = np.random.default_rng(0)
n_users, n_films = 150, 400
quality = rng.normal(0, 0.5, n_films)
person, film = np.nonzero(rng.random((n_users, n_films)) < 0.05)
labels = rng.random(len(person)) < 1 / (1 + np.exp(-quality[film]))
genres = rng.standard_normal((n_films, 3))


def annotations(rows, column=None):
    """Return rows with genres and, if given, one more column."""
    features = genres if column is None else np.column_stack([genres, column])
    return likeminds.Annotations(
        person[rows], film[rows], labels[rows], features, features_per="item"
    )


def popularity(rows):
    """Return each film's share of yes, pulled to a half by two labels."""
    yes, seen = (np.bincount(film[rows], weights, n_films) for weights in (labels[rows], None))
    return (yes + 1) / (seen + 2)


train = rng.random(len(person)) < 0.7
test = ~train

# %%
# Compare three models on the same held-out labels. Two have a column: from all labels, or from the
# training labels. The third has item effects instead. The last bar is the AUC of the true model.

everything = np.ones(len(person), dtype=bool)
results = {}
for name, column in (
    ("column from all labels", popularity(everything)),
    ("column from training labels", popularity(train)),
):
    ranker = likeminds.HierarchicalRanker(item_effects=False).fit(annotations(train, column))
    results[name] = ranker.score(annotations(test, column))
ranker = likeminds.HierarchicalRanker().fit(annotations(train))
results["no column: item effects"] = ranker.score(annotations(test))
results["the true quality"] = likeminds.mean_auc(labels[test], quality[film[test]], person[test])

figure, axes = plt.subplots(figsize=(8, 3.2), layout="constrained")
colours = ("#D55E00", "#0072B2", "#0072B2", "0.6")
bars = axes.barh(list(results), [100 * value for value in results.values()], color=colours)
axes.bar_label(bars, fmt="%.1f", padding=3)
axes.invert_yaxis()
axes.set_xlim(50, 82)
axes.set_xlabel("AUC on held-out labels, per cent, mean over users")
claimed, true = results["column from all labels"], results["the true quality"]
axes.set_title(
    f"With leakage: AUC {100 * claimed:.0f}; of the true model: {100 * true:.0f}",
    loc="left",
)
plt.show()

# %%
# The column from training labels leaks, too: each training label contributes to its own column, so
# the model overweights it. Item effects have neither problem. The model estimates them and their
# variance together with all other parameters.
