"""
Cold start: accuracy for new users
==================================

A new user needs no refit. Without labels, they get the consensus; each label moves their ranking.
``next_items`` selects the most informative items to ask about (active learning).
"""

import matplotlib.pyplot as plt
import numpy as np

import likeminds

SIZES, N_THERE, N_NEW = (0, 1, 2, 4, 8, 16), 150, 12
crowd = likeminds.make_schools(N_THERE + N_NEW, 40, 400, 12, n_schools=3, random_state=0)
said = crowd.annotations
ranker = likeminds.HierarchicalRanker().fit(said.of_users(said.user_ids[:N_THERE]))

# %%
# New users label items of a pool by their true weights. They are scored on other items.

rng = np.random.default_rng(0)
pool, unseen = rng.standard_normal((2, 120, 12))


def ask_next(answers, most):
    """Ask about one item at a time, each selected by the answers so far."""
    order = []
    for _ in range(most):
        rest = np.setdiff1d(np.arange(len(pool)), order)
        known = ranker.newcomer(pool[order], answers[order])
        order.append(int(rest[known.next_items(pool[rest], n=1)[0]]))
    return order


curves = {"asked what next_items proposes": [], "asked about items at random": []}
for weights in crowd.coef[N_THERE:]:
    answers = pool @ weights > np.quantile(pool @ weights, 0.7)
    liked = unseen @ weights > np.quantile(unseen @ weights, 0.7)
    orders = ask_next(answers, max(SIZES)), rng.permutation(len(pool))
    for order, curve in zip(orders, curves.values(), strict=True):
        learned = [ranker.newcomer(pool[order[:n]], answers[order[:n]]) for n in SIZES]
        scores = [one.decision_function(unseen) for one in learned]
        curve.append([100 * likeminds.mean_auc(liked, one, np.zeros(120)) for one in scores])

# %%
# The mean over the new users:

means = {name: np.mean(curve, axis=0)[:, None] for name, curve in curves.items()}
gain = np.subtract(*(mean[:, 0] for mean in means.values()))
best = int(gain.argmax())
likeminds.plots.learning_curves(
    SIZES,
    means,
    title=f"Selected items gain most with {SIZES[best]} labels: +{gain[best]:.0f} points",
    size_label="labels of a new user",
    label="AUC on other items, per cent",
)
plt.show()
