"""Metrics for learning with disagreement (LeWiDi): soft labels, and labels by annotator.

The soft label of an item is the share of users who give it each grade.
"""

from collections.abc import Hashable, Iterable

import numpy as np
from numpy.typing import ArrayLike

from likeminds._util.array_types import Float, IdArray
from likeminds._util.checks import as_matrix, as_vector, as_weights, listing, same_length
from likeminds.data.identifiers import encode
from likeminds.metrics.by_user import MetricByUser


def soft_labels(
    grades: ArrayLike,
    items: Iterable[Hashable],
    levels: ArrayLike | None = None,
    weights: ArrayLike | None = None,
) -> tuple[IdArray, Float]:
    """Return the items, and the share of each grade among their labels.

    Parameters
    ----------
    grades : array of shape (n_rows,)
        The grades (or labels), numbers.
    items : iterable of n_rows ids
        The item of each row.
    levels : array of shape (n_grades,), optional
        All grades, ascending; by default, those that occur.
    weights : array of shape (n_rows,), optional
        The weights of the rows.

    Returns
    -------
    items : array of shape (n_items,)
    shares : array of shape (n_items, n_grades)

    Examples
    --------
    >>> items, shares = soft_labels([1, 3, 1, 2], ["cat", "cat", "dog", "dog"])
    >>> shares
    array([[0.5, 0. , 0.5],
           [0.5, 0.5, 0. ]])
    """
    given = as_vector(np.asarray(grades), "grades")
    codes, ids = encode(items, "items")
    same_length(grades=given, items=codes)
    known = np.unique(given) if levels is None else np.sort(as_vector(levels, "levels"))
    place = np.searchsorted(known, given)
    strange = given[known[np.minimum(place, len(known) - 1)] != given]
    if strange.size:
        raise ValueError(f"grades has {listing(np.unique(strange))}, not in levels=. Add it.")
    weight = as_weights(weights, len(given))
    flat = np.bincount(codes * len(known) + place, weights=weight, minlength=len(ids) * len(known))
    counts = flat.reshape(len(ids), len(known))
    return ids, np.asarray(counts / counts.sum(axis=1, keepdims=True))


def manhattan_distance(first: ArrayLike, second: ArrayLike) -> Float:
    """Return the Manhattan distance of each pair of rows of shares, from 0 to 2.

    Examples
    --------
    >>> manhattan_distance([[0.5, 0.5]], [[0.0, 1.0]])
    array([1.])
    """
    ours, theirs = _shares(first, second)
    return np.asarray(np.abs(ours - theirs).sum(axis=1))


def wasserstein_distance(
    first: ArrayLike, second: ArrayLike, levels: ArrayLike | None = None
) -> Float:
    """Return the Wasserstein distance between the grades of each pair of rows of shares.

    Parameters
    ----------
    first, second : arrays of shape (n_rows, n_grades)
        Shares of the grades, ascending; each row sums to one.
    levels : array of shape (n_grades,), optional
        The grades; by default, 0, 1, 2, ...

    Examples
    --------
    >>> wasserstein_distance([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    array([1., 2.])
    """
    ours, theirs = _shares(first, second)
    grades = np.arange(ours.shape[1], dtype=np.float64)
    if levels is not None:
        grades = np.asarray(as_vector(levels, "levels", length=ours.shape[1]), dtype=np.float64)
    apart = np.cumsum(ours - theirs, axis=1)[:, :-1]
    return np.asarray(np.abs(apart) @ np.diff(grades))


def cross_entropy(labels: ArrayLike, predicted: ArrayLike) -> Float:
    """Return the cross-entropy of each row: -sum(labels * log(predicted)).

    Predicted shares are clipped below at 1e-12, so the result is finite.

    Parameters
    ----------
    labels, predicted : arrays of shape (n_rows, n_grades)
        Shares of the grades; each row sums to one.

    Examples
    --------
    >>> cross_entropy([[0.5, 0.5], [0.0, 1.0]], [[0.5, 0.5], [0.0, 1.0]]).round(3)
    array([0.693, 0.   ])
    """
    ours, theirs = _shares(labels, predicted)
    return np.asarray((ours * -np.log(np.maximum(theirs, 1e-12))).sum(axis=1)) + 0.0


def _shares(first: ArrayLike, second: ArrayLike) -> tuple[Float, Float]:
    ours, theirs = (
        np.asarray(as_matrix(shares, name), dtype=np.float64)
        for shares, name in ((first, "first"), (second, "second"))
    )
    if ours.shape != theirs.shape:
        raise ValueError(f"first and second must have one shape: {ours.shape}, {theirs.shape}.")
    for shares, name in ((ours, "first"), (theirs, "second")):
        wrong = np.flatnonzero((shares < 0).any(axis=1) | (np.abs(shares.sum(axis=1) - 1) > 1e-6))
        if wrong.size:
            raise ValueError(f"Row(s) {listing(wrong)} of {name} must be shares that sum to one.")
    return ours, theirs


def error_rate_by_user(
    labels: ArrayLike, predicted: ArrayLike, users: Iterable[Hashable]
) -> MetricByUser:
    """Return, for each annotator, the share of labels that differ from the predicted ones.

    LeWiDi averages over items: pass the items as ``users``, and take the ``mean``.

    Parameters
    ----------
    labels, predicted : arrays of shape (n_rows,)
        Observed and predicted labels; numbers or texts.
    users : iterable of n_rows ids
        The annotator (or the item) of each row.

    Examples
    --------
    >>> error_rate_by_user([0, 1, 1], [0, 1, 0], ["ann", "bob", "bob"]).values
    array([0. , 0.5])
    """
    given, other = np.asarray(labels), np.asarray(predicted)
    same_length(labels=given, predicted=other)
    return _mean_by((given != other).astype(np.float64), users)


def absolute_distance_by_user(
    grades: ArrayLike,
    predicted: ArrayLike,
    users: Iterable[Hashable],
    levels: ArrayLike | None = None,
) -> MetricByUser:
    """Return, for each annotator, the mean absolute distance of grades, as a share of the scale.

    LeWiDi averages over items: pass the items as ``users``, and take the ``mean``.

    Parameters
    ----------
    grades, predicted : arrays of shape (n_rows,)
        Observed and predicted grades.
    users : iterable of n_rows ids
        The annotator (or the item) of each row.
    levels : array, optional
        All grades of the scale: distances are divided by its range. By default, the grades that
        occur in ``grades``.

    Examples
    --------
    >>> absolute_distance_by_user([1, 5, 3], [2, 5, 5], ["ann", "ann", "bob"], levels=[1, 5]).values
    array([0.125, 0.5  ])
    """
    given = np.asarray(as_vector(grades, "grades"), dtype=np.float64)
    other = np.asarray(as_vector(predicted, "predicted"), dtype=np.float64)
    same_length(grades=given, predicted=other)
    scale = given if levels is None else np.asarray(as_vector(levels, "levels"), dtype=np.float64)
    width = float(np.ptp(scale))
    if width == 0.0:
        raise ValueError("The scale has one grade only: pass levels= with all its grades.")
    return _mean_by(np.abs(given - other) / width, users)


def _mean_by(values: Float, users: Iterable[Hashable]) -> MetricByUser:
    codes, distinct = encode(users, "users")
    same_length(labels=values, users=codes)
    return MetricByUser(distinct, np.bincount(codes, weights=values) / np.bincount(codes))
