"""Posteriors of new items from a few labels, and residuals of items that new users labelled."""

from dataclasses import dataclass, replace

import numpy as np

from likeminds._util.array_types import Float, FloatArray, IdArray, Index
from likeminds._util.per_user_arrays import solve
from likeminds.data.identifiers import encode, lookup
from likeminds.mixed_model.item_posteriors import ItemPosteriors
from likeminds.mixed_model.ordinal_responses import PointwiseLoss

# Steps of Newton's method, and what they may leave to go.
_STEPS = 100
_ENOUGH = 1e-8


def fold_in(
    unknown: ItemPosteriors,
    item: Index,
    told: PointwiseLoss,
    *,
    weight: FloatArray,
    eta: Float,
    sure: Float,
    v: Float,
) -> ItemPosteriors:
    """Return the posteriors of items of which only the prior is known, given labels."""
    n_items, size = len(unknown.effects), 1 + unknown.n_factors
    new = item >= 0
    item, rows = item[new], np.column_stack([np.ones(new.sum()), v[new]])
    weight, sure = weight[new], sure[new]
    prior = np.append(1.0 / unknown.variance, np.ones(unknown.n_factors))
    state = np.zeros((n_items, size))
    order = np.argsort(item, kind="stable")
    starts = np.searchsorted(item[order], np.arange(n_items))
    held = np.diag(prior)
    for _ in range(_STEPS):
        scores = eta.copy()
        scores[new] += np.einsum("na,na->n", rows, state[item])
        pull, h = (part[new] for part in told.at(scores))
        h = weight * h
        left = 1.0 / (1.0 + h * sure)
        pull = left * weight * pull
        slope = np.add.reduceat((rows * pull[:, None])[order], starts, axis=0) - state * prior
        outer = (rows[:, :, None] * rows[:, None, :]) * (left * h)[:, None, None]
        information = np.add.reduceat(outer[order], starts, axis=0)
        step = solve(told.bound * information + held, slope[:, :, None])[:, :, 0]
        # Steps longer than a few units overshoot where labels are all alike.
        longest = np.abs(step).max(axis=1, keepdims=True)
        state = state + step / np.maximum(longest / 2.0, 1.0)
        if float(longest.max()) < _ENOUGH:
            break
    covariance = np.linalg.inv(information + held)
    return replace(
        unknown,
        effects=state[:, 0],
        doubt=covariance[:, 0, 0],
        factors=state[:, 1:],
        unsure=np.ascontiguousarray(covariance[:, 1:, 1:]),
    )


@dataclass(frozen=True)
class Answered:
    """The residuals of labelled items: E[eta + noise | label] - eta.

    A score eta is the mean utility of an item to a user. A label tells more of the labelled item:
    its noise is this user's own taste for it, which other items do not share. The mean utility,
    given the label, is what the item is worth to this user.
    """

    people: Index  # (n,): the place of the user of each label
    items: IdArray  # (n,): the item of each label
    residuals: Float  # (n,): the residual of each label

    def at(self, people: Index, items: IdArray) -> Float:
        """Return the mean residual of each pair of user and item, zero without a label."""
        item, known = encode(self.items, "items")
        asked = lookup(items, known, "items")
        n = len(known)
        labelled, code = np.unique(self.people * n + item, return_inverse=True)
        mean = np.bincount(code, self.residuals) / np.bincount(code)
        pairs = people * n + asked
        place = np.minimum(np.searchsorted(labelled, pairs), len(labelled) - 1)
        return np.where((asked >= 0) & (labelled[place] == pairs), mean[place], 0.0)
