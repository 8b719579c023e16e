"""Where each person stands between the consensus, a school, and a view of their own."""

import numpy as np
from scipy.special import ndtr

from likeminds._util.array_types import Bool, Float
from likeminds.metrics.paired import discoveries
from likeminds.schools.weight_levels import WeightLevels

# The share of people who are no loners, at most, among those called loners, where the personal
# level is zero for nobody.
_FALSE_LONERS = 0.05
# The standard deviation of a normal distribution over its median absolute deviation.
_NORMAL = 1.4826


def score_variances(weights: Float, spread: Float) -> Float:
    """Return the variance over the items of the scores that some weights give.

    Examples
    --------
    >>> score_variances(np.array([[2.0, 0.0], [1.0, 1.0]]), np.eye(2))
    array([4., 2.])
    """
    return np.asarray(np.maximum(np.einsum("nd,nd->n", weights @ spread, weights), 0.0))


def likeness(weights: Float, consensus: Float, spread: Float) -> Float:
    """Return the correlation over the items of everybody's scores with the consensus's.

    1 is the same ranking, -1 the reverse. Where only one of the two has variance, the
    correlation is taken as 0; where neither has, as 1.

    Parameters
    ----------
    weights : array of shape (n_users, n_features)
        Everybody's.
    consensus : array of shape (n_features,)
        What all agree on.
    spread : array of shape (n_features, n_features)
        The covariance of the items' features.

    Returns
    -------
    array of shape (n_users,)

    Examples
    --------
    >>> likeness(np.array([[2.0, 0.0], [1.0, 1.0], [0.0, 0.0]]), np.array([1.0, 0.0]), np.eye(2))
    array([1.        , 0.70710678, 0.        ])
    """
    own, shared = (np.sqrt(score_variances(w, spread)) for w in (weights, consensus[None]))
    size = own * shared
    together = weights @ (spread @ consensus) / np.where(size > 0, size, 1.0)
    return np.asarray(np.where(size > 0, together, own == shared), dtype=np.float64)


def shares(levels: WeightLevels, spread: Float) -> Float:
    """Return the share of each level in the variance of everybody's scores.

    Returns
    -------
    array of shape (n_users, 3)
        Of consensus, group and personal: the variance of each one's scores over the sum of the
        three (which is the variance of the whole where they are uncorrelated).
    """
    parts = np.column_stack(
        [
            np.repeat(score_variances(levels.consensus[None], spread), len(levels.users)),
            score_variances(levels.group, spread),
            score_variances(levels.personal, spread),
        ]
    )
    total = parts.sum(axis=1, keepdims=True)
    return np.asarray(np.where(total > 0, parts / np.where(total > 0, total, 1.0), [1.0, 0.0, 0.0]))


def loners(levels: WeightLevels, spread: Float) -> Bool:
    """Return whose personal level is not zero, or is larger than chance would make it.

    Where the personal level is exactly zero for most, those for whom it is not. Where it is
    merely small, those for whom it is larger than chance lets it be among so many: the cube root
    of a sum of squares is nearly normal (Wilson and Hilferty), the median and the median absolute
    deviation say where and how wide it is for ordinary people, and false discoveries are held to
    5 % (Benjamini and Hochberg).
    """
    if levels.own is not None:
        return levels.own
    size = score_variances(levels.personal, spread)
    if size.max(initial=0.0) <= 1e-12 * score_variances(levels.coef, spread).max(initial=0.0):
        return np.zeros(len(size), dtype=np.bool_)
    root = np.cbrt(size)
    middle = np.median(root)
    width = _NORMAL * np.median(np.abs(root - middle))
    if not width:
        return np.asarray(root > middle)
    return discoveries(ndtr(-(root - middle) / width), _FALSE_LONERS)
