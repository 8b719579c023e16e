"""
Somebody new: how soon do we know their taste?
==============================================

A stranger needs no refit. With no label they get the consensus; each label moves them. And the
ranker can say which item to ask about next: those that tell most about where the person stands.
"""

import matplotlib.pyplot as plt
import numpy as np

import likeminds

SIZES, N_THERE, N_NEW = (0, 1, 2, 4, 8, 16), 150, 12
crowd = likeminds.make_schools(N_THERE + N_NEW, 40, 400, 12, n_schools=3, random_state=0)
said = crowd.annotations
ranker = likeminds.HierarchicalRanker().fit(said.of_users(said.user_ids[:N_THERE]))

# %%
# Newcomers answer by their true weights, about items of a pool; they are judged on others.

rng = np.random.default_rng(0)
pool, unseen = rng.standard_normal((2, 120, 12))


def ask_next(answers, most):
    """Ask one item at a time, each chosen by what was answered before."""
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
# The mean over the newcomers:

means = {name: np.mean(curve, axis=0)[:, None] for name, curve in curves.items()}
gain = np.subtract(*(mean[:, 0] for mean in means.values()))
best = int(gain.argmax())
likeminds.plots.learning_curves(
    SIZES,
    means,
    title=f"Asking the right items gains most with {SIZES[best]} labels: +{gain[best]:.0f} points",
    size_label="labels of a newcomer",
    label="AUC on items nobody was asked about, per cent",
)
plt.show()
