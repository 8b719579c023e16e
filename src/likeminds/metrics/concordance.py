"""Concordance: the share of pairs of unequal grades that scores order correctly, by user.

With two grades, it is the area under the ROC curve. Pairs are not listed. The ranks of two unequal
scores first differ in one bit. For each bit, a sort by grade and a running total count the pairs
that first differ in it: O(n log^2 n).
"""

from collections.abc import Hashable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likeminds._util.array_types import Float, Index
from likeminds._util.checks import as_vector, as_weights, listing, same_length
from likeminds.data.identifiers import encode, encode_pairs
from likeminds.metrics.by_user import MetricByUser, auc_by_user, ratio


class _Pairs(NamedTuple):
    """Weights of pairs by user: ordered alike; with unequal grades, scores, or both."""

    alike: Float
    unequal_grades: Float
    unequal_scores: Float
    unequal: Float


def concordance_by_user(
    grades: ArrayLike,
    scores: ArrayLike,
    users: Iterable[Hashable],
    weights: ArrayLike | None = None,
) -> MetricByUser:
    """Return the share of each user's pairs of unequal grades that scores order correctly.

    Tied scores count half, and the weight of a pair is the product of its two weights. With two
    grades, this is :func:`auc_by_user`.

    Parameters
    ----------
    grades : array of shape (n_rows,)
        Finite numbers (or true and false), of which only the order matters.
    scores, users, weights
        As in :func:`auc_by_user`.

    Returns
    -------
    MetricByUser
        NaN for users whose grades are all the same.

    Examples
    --------
    >>> users = ["ann", "ann", "ann", "bob", "bob"]
    >>> concordance_by_user([1, 2, 3, 5, 5], [0.1, 0.9, 0.5, 0.2, 0.7], users).values.round(3)
    array([0.667,   nan])
    """
    if np.asarray(grades).dtype == np.bool_:
        return auc_by_user(grades, scores, users, weights)
    distinct, pairs = _pairs(grades, scores, users, weights)
    tied = pairs.unequal_grades - pairs.unequal
    return MetricByUser(distinct, _share(pairs.alike + 0.5 * tied, pairs.unequal_grades))


def measure_of(outcomes: NDArray[np.generic]) -> str:
    """Return the name of the metric: "AUC" for true and false, else "concordance"."""
    return "AUC" if outcomes.dtype == np.bool_ else "concordance"


def mean_concordance(
    grades: ArrayLike,
    scores: ArrayLike,
    users: Iterable[Hashable],
    weights: ArrayLike | None = None,
) -> float:
    """Return the mean concordance over users; with two grades, the mean AUC.

    Parameters are those of :func:`concordance_by_user`.

    Examples
    --------
    >>> mean_concordance([1, 2, 3, 1, 5], [0.1, 0.2, 0.7, 0.9, 0.5], [1, 1, 1, 2, 2])
    0.5
    """
    result = concordance_by_user(grades, scores, users, weights)
    if not result.n_defined:
        raise ValueError(
            "The concordance is undefined for all users: no user has rows of two grades "
            f"(users: {listing(result.users)}). Pass users with two grades or more."
        )
    return result.mean


def kendall_tau_by_user(
    grades: ArrayLike,
    scores: ArrayLike,
    users: Iterable[Hashable],
    weights: ArrayLike | None = None,
) -> MetricByUser:
    """Return Kendall's rank correlation (tau-b) of each user's grades and scores.

    Parameters are those of :func:`concordance_by_user`; NaN if grades or scores are all the same.

    Examples
    --------
    >>> kendall_tau_by_user([1, 2, 3], [0.1, 0.9, 0.5], ["ann"] * 3).values.round(3)
    array([0.333])
    """
    distinct, pairs = _pairs(grades, scores, users, weights)
    scale = np.sqrt(pairs.unequal_grades * pairs.unequal_scores)
    return MetricByUser(distinct, _share(2.0 * pairs.alike - pairs.unequal, scale))


def _pairs(
    grades: ArrayLike,
    scores: ArrayLike,
    users: Iterable[Hashable],
    weights: ArrayLike | None,
) -> tuple[NDArray[np.generic], _Pairs]:
    grade = np.unique(as_vector(np.asarray(grades), "grades"), return_inverse=True)[1]
    score = np.unique(as_vector(scores, "scores"), return_inverse=True)[1]
    user, distinct = encode(users, "users")
    same_length(grades=grade, scores=score, users=user)
    given = as_weights(weights, len(grade))
    weight = np.ones(len(grade)) if given is None else np.asarray(given, dtype=np.float64)
    same_grade, same_score = encode_pairs(user, grade), encode_pairs(user, score)

    def unequal(codes: Index) -> Float:
        """Return, by user, the weight of pairs of rows with unequal codes."""
        owner = np.empty(codes.max() + 1, dtype=np.intp)
        owner[codes] = user
        alike = np.bincount(owner, np.bincount(codes, weight) ** 2, len(distinct))
        return np.asarray(0.5 * (np.bincount(user, weight) ** 2 - alike))

    by_grade, by_score = unequal(same_grade), unequal(same_score)
    by_both = unequal(encode_pairs(same_grade, score))
    # Ranks from zero within each user, the same for tied scores.
    first = np.full(len(distinct), len(user))
    np.minimum.at(first, user, same_score)
    alike = _ordered_alike(user, grade, same_score - first[user], weight, len(distinct))
    return distinct, _Pairs(alike, by_grade, by_score, by_grade + by_score - by_both)


def _ordered_alike(user: Index, grade: Index, score: Index, weight: Float, n_users: int) -> Float:
    """Return, by user, the weight of pairs whose grades and scores are ordered alike."""
    total = np.zeros(n_users)
    for bit in range(int(score.max()).bit_length()):
        prefix = score >> (bit + 1)
        order = np.lexsort((grade, prefix, user))
        who, g, lower = user[order], grade[order], prefix[order]
        is_higher = (score[order] >> bit) & 1 == 1
        w = weight[order]
        below = np.concatenate([[0.0], np.cumsum(np.where(is_higher, 0.0, w))])
        new_set = np.append(True, (np.diff(who) != 0) | (np.diff(lower) != 0))
        new_grade = new_set | np.append(True, np.diff(g) != 0)
        places = np.arange(len(order))
        first_of_set = np.maximum.accumulate(np.where(new_set, places, 0))
        first_of_grade = np.maximum.accumulate(np.where(new_grade, places, 0))
        beaten = below[first_of_grade] - below[first_of_set]
        total += np.bincount(who, weights=np.where(is_higher, w * beaten, 0.0), minlength=n_users)
    return total


def _share(above: Float, below: Float) -> Float:
    # Sums of squares that cancel leave rounding errors, far below the weight of any pair.
    return np.minimum(ratio(above, below, 1e-12 * max(float(below.max()), 1e-300)), 1.0)
