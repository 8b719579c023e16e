"""Ranking metrics, one value per user, and the mean over users for whom it is defined.

A metric pooled over users would also reward predictions of users' shares of positive labels.
"""

import operator
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likeminds._util.array_types import Bool, Float, FloatArray, IdArray, Index
from likeminds._util.checks import as_vector, as_weights, listing, same_length
from likeminds._util.lazy_imports import pa
from likeminds._util.map_reduce import ThreadExecutor
from likeminds._util.per_user_arrays import order_by
from likeminds._util.result_tables import ResultTable
from likeminds._util.text_format import counted
from likeminds.data.column_roles import as_arrow
from likeminds.data.identifiers import encode

__all__ = ["MetricByUser", "auc_by_user", "mean_auc", "ndcg_at_k", "precision_at_k"]


# Rows processed at a time, with temporaries of a few MB that fit in a core's cache.
_BLOCK_ROWS = 1 << 18


@dataclass(frozen=True, eq=False)
class MetricByUser(ResultTable):
    """A metric by user, with its mean and standard error.

    Attributes
    ----------
    users : ndarray
        The distinct users, in the order of ``values``.
    values : ndarray of float64
        The metric of each user; NaN if it is undefined.

    Examples
    --------
    >>> result = MetricByUser(np.array(["ann", "bob", "zoe"]), np.array([0.5, np.nan, 1.0]))
    >>> result.mean, result.standard_error, result.n_defined
    (0.75, 0.25, 2)
    >>> result.undefined.tolist()
    ['bob']
    """

    users: IdArray
    values: Float

    @property
    def mean(self) -> float:
        """The mean over the users for whom the metric is defined; NaN without any."""
        return float(self._defined.mean()) if self.n_defined else float("nan")

    @property
    def standard_error(self) -> float:
        """The standard error of the mean, over users; NaN with fewer than two."""
        if self.n_defined < 2:
            return float("nan")
        return float(self._defined.std(ddof=1) / np.sqrt(self.n_defined))

    @property
    def n_defined(self) -> int:
        """The number of users for whom the metric is defined."""
        return len(self._defined)

    @property
    def undefined(self) -> IdArray:
        """The users for whom the metric is not defined."""
        return self.users[np.isnan(self.values)]

    def to_arrow(self) -> "pa.Table":
        """Return a table of pyarrow: user, and value (missing if it is undefined)."""
        values = pa.array(self.values, from_pandas=True)
        return pa.table({"user": as_arrow(self.users.tolist()), "value": values})

    def _headline(self) -> str:
        return f"Mean {self.mean:.3f} over {counted(self.n_defined, 'user')}"

    @property
    def _defined(self) -> Float:
        return self.values[~np.isnan(self.values)]


def auc_by_user(
    labels: ArrayLike,
    scores: ArrayLike,
    users: Iterable[Hashable],
    weights: ArrayLike | None = None,
) -> MetricByUser:
    """Return the area under each user's ROC curve.

    The AUC is the share of pairs of a positive and a negative that the scores order correctly. Tied
    scores count half, and the weight of a pair is the product of its two weights.

    Parameters
    ----------
    labels : array of shape (n_rows,)
        Two values (bool, 0/1, -1/+1); the larger one is positive.
    scores : array of shape (n_rows,)
        Finite scores; larger means more likely positive.
    users : iterable of n_rows ids
        The user of each row, in any order.
    weights : array of shape (n_rows,), optional
        Non-negative weights of the rows.

    Returns
    -------
    MetricByUser
        NaN for users with rows (or weight) in one class only.

    Examples
    --------
    >>> users = ["ann", "ann", "ann", "bob", "bob", "zoe"]
    >>> result = auc_by_user([1, 0, 0, 1, 0, 1], [0.9, 0.1, 0.9, 0.2, 0.7, 0.5], users)
    >>> result.users.tolist(), result.values
    (['ann', 'bob', 'zoe'], array([0.75, 0.  ,  nan]))
    >>> result.mean
    0.375
    """
    return _by_user(_auc, labels, scores, users, weights)


def mean_auc(
    labels: ArrayLike,
    scores: ArrayLike,
    users: Iterable[Hashable],
    weights: ArrayLike | None = None,
) -> float:
    """Return the mean, over users with both classes, of the area under the ROC curve.

    Parameters are those of :func:`auc_by_user`.

    Examples
    --------
    >>> mean_auc([1, 0, 1, 0, 1], [0.9, 0.1, 0.2, 0.7, 0.5], [1, 1, 2, 2, 3])
    0.5
    """
    result = auc_by_user(labels, scores, users, weights)
    if not result.n_defined:
        raise ValueError(
            "The AUC is undefined for all users: no user has both a positive and a negative "
            f"row of positive weight (users: {listing(result.users)}). "
            "Score rows of users who have both."
        )
    return result.mean


def precision_at_k(
    labels: ArrayLike, scores: ArrayLike, users: Iterable[Hashable], k: int
) -> MetricByUser:
    """Return the share of positives among each user's ``k`` best-scored rows.

    If a tie straddles the k-th place, the result is the expected share with ties broken at random.
    For users with fewer than ``k`` rows, it is the share of positives among all their rows.

    Parameters
    ----------
    labels, scores, users
        As in :func:`auc_by_user`.
    k : int
        The number of best rows that count, at least 1.

    Returns
    -------
    MetricByUser
        Defined for all users.

    Examples
    --------
    >>> precision_at_k([1, 0, 1, 0], [4, 3, 2, 1], ["ann"] * 4, k=2).values
    array([0.5])
    """
    return _by_user(partial(_precision, k=_at_least_one(k)), labels, scores, users)


def ndcg_at_k(
    labels: ArrayLike, scores: ArrayLike, users: Iterable[Hashable], k: int
) -> MetricByUser:
    """Return the normalised discounted cumulative gain of each user's ``k`` best rows.

    A positive at rank r gains 1 / log2(1 + r), averaged over the ranks of its ties. The sum is
    divided by that of the ideal order.

    Parameters
    ----------
    labels, scores, users
        As in :func:`auc_by_user`.
    k : int
        The number of best rows that count, at least 1.

    Returns
    -------
    MetricByUser
        NaN for users without positives.

    Examples
    --------
    >>> ndcg_at_k([0, 1, 0], [3, 2, 1], ["ann"] * 3, k=2).values.round(4)
    array([0.6309])
    """
    return _by_user(partial(_ndcg, k=_at_least_one(k)), labels, scores, users)


class _UserBlock(NamedTuple):
    """The rows of users with the same number of rows: users x rows."""

    positive: Bool
    scores: FloatArray
    weights: FloatArray | None

    def best_first(self) -> "_UserBlock":
        order = np.argsort(-self.scores, axis=1)
        rows = np.arange(len(order))[:, np.newaxis], order
        weights = None if self.weights is None else self.weights[rows]
        return _UserBlock(self.positive[rows], self.scores[rows], weights)


def _by_user(
    metric: Callable[[_UserBlock], FloatArray],
    labels: ArrayLike,
    scores: ArrayLike,
    users: Iterable[Hashable],
    weights: ArrayLike | None = None,
) -> MetricByUser:
    scores, positive = as_vector(scores, "scores"), _is_positive(labels)
    codes, distinct = encode(users, "users")
    same_length(labels=positive, scores=scores, users=codes)
    weights = as_weights(weights, len(scores))
    values = np.empty(len(distinct))
    row_at, starts = order_by(codes, len(distinct))
    sizes = np.diff(starts)

    def fill(block: Index) -> None:
        rows = row_at[starts[block, np.newaxis] + np.arange(sizes[block[0]])]
        values[block] = metric(
            _UserBlock(positive[rows], scores[rows], None if weights is None else weights[rows])
        )

    ThreadExecutor(list(_equal_sized(sizes)), many_threads=len(codes) > _BLOCK_ROWS).each(fill)
    return MetricByUser(distinct, values)


def _equal_sized(sizes: Index) -> Iterator[Index]:
    """Yield users with the same number of rows: at most sqrt(2 n) blocks without padding."""
    by_size = np.argsort(sizes, kind="stable")
    borders = np.flatnonzero(np.diff(sizes[by_size])) + 1
    for alike in np.split(by_size, borders):
        step = max(1, _BLOCK_ROWS // sizes[alike[0]])
        yield from (alike[at : at + step] for at in range(0, len(alike), step))


def _auc(block: _UserBlock) -> FloatArray:
    positive, scores, weights = block.best_first()
    gains = positive if weights is None else weights * positive
    losses = ~positive if weights is None else weights * ~positive
    above = np.zeros((len(gains), gains.shape[1] + 1), np.int64 if weights is None else np.float64)
    np.cumsum(gains, axis=1, out=above[:, 1:])
    total_gain, total_loss = above[:, -1], losses.sum(axis=1)
    ties = _ties(scores)
    if ties is None:
        beaten_by = above[:, 1:]
    else:
        first, last = ties
        strictly = np.take_along_axis(above, first, axis=1)
        beaten_by = (strictly + np.take_along_axis(above, last + 1, axis=1)) / 2
    right_order = np.einsum("ij,ij->i", beaten_by, losses, dtype=np.float64, casting="unsafe")
    # Rounding errors of the sums must not raise a perfect ranking above one.
    return np.minimum(ratio(ratio(right_order, total_gain), total_loss), 1.0)


def _precision(block: _UserBlock, k: int) -> FloatArray:
    k = min(k, block.scores.shape[1])
    kth_best = -np.partition(-block.scores, k - 1, axis=1)[:, k - 1 : k]
    above, tied = block.scores > kth_best, block.scores == kth_best
    sure = np.count_nonzero(above & block.positive, axis=1)
    places_left = k - np.count_nonzero(above, axis=1)
    share_of_tied = np.count_nonzero(tied & block.positive, axis=1) / tied.sum(axis=1)
    return cast("FloatArray", (sure + places_left * share_of_tied) / k)


def _ndcg(block: _UserBlock, k: int) -> FloatArray:
    positive, scores, _ = block.best_first()
    n_rows = scores.shape[1]
    discount = 1 / np.log2(np.arange(2, n_rows + 2))
    discount[k:] = 0
    ideal = np.concatenate([[0.0], np.cumsum(discount)])
    ties = _ties(scores)
    if ties is None:
        gained = positive @ discount
    else:
        first, last = ties
        shared = (ideal[last + 1] - ideal[first]) / (last + 1 - first)
        gained = np.einsum("ij,ij->i", shared, positive)
    return ratio(gained, ideal[np.count_nonzero(positive, axis=1)])


def _ties(sorted_scores: FloatArray) -> tuple[Index, Index] | None:
    """Return the first and last place of each place's tie; None without ties."""
    differs = sorted_scores[:, 1:] != sorted_scores[:, :-1]
    if differs.all():
        return None
    n_users, n_rows = sorted_scores.shape
    place = np.arange(n_rows)
    edge = np.ones((n_users, 1), dtype=np.bool_)
    begins, ends = np.hstack([edge, differs]), np.hstack([differs, edge])
    first = np.maximum.accumulate(np.where(begins, place, 0), axis=1)
    last = np.minimum.accumulate(np.where(ends, place, n_rows)[:, ::-1], axis=1)[:, ::-1]
    return first, last


def ratio(above: NDArray[np.number], below: NDArray[np.number], least: float = 0.0) -> Float:
    """Divide; the result is NaN if the divisor is not above ``least``."""
    result = np.full(np.shape(above), np.nan)
    np.divide(above, below, out=result, where=below > least)
    return result


def _is_positive(labels: ArrayLike) -> Bool:
    """Return which labels have the larger one of two values."""
    array = np.asarray(labels)
    if array.dtype.kind not in "biu" or array.ndim != 1:
        array = as_vector(array, "labels")
    if not array.size:
        raise ValueError("labels is empty: there are no rows to score. Pass at least one row.")
    if array.dtype == np.bool_:
        return array
    low, high = array.min(), array.max()
    positive = array == high
    others = np.flatnonzero(~positive & (array != low))
    if others.size:
        raise ValueError(
            f"labels must have two values, but has {low}, {high} and {array[others[0]]} "
            f"(in row(s) {listing(others)}). Convert them first, for instance by labels >= "
            "threshold."
        )
    if low == high and low not in (-1, 0, 1):
        raise ValueError(
            f"labels are all {low}, but a single value must be 1 (positive), 0 or -1 (negative). "
            "Pass booleans instead."
        )
    return positive if low != high else np.full(len(array), low == 1)


def _at_least_one(k: int) -> int:
    if operator.index(k) < 1:
        raise ValueError(f"k must be at least 1, but is {k}.")
    return operator.index(k)
