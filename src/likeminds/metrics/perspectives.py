"""Errors of the labels predicted for each annotator, as in the LeWiDi shared tasks."""

from collections.abc import Hashable, Iterable

import numpy as np
from numpy.typing import ArrayLike

from likeminds._util.array_types import Float
from likeminds._util.checks import as_vector, same_length
from likeminds.data.identifiers import encode
from likeminds.metrics.by_user import MetricByUser


def error_rate_by_user(
    labels: ArrayLike, predicted: ArrayLike, users: Iterable[Hashable]
) -> MetricByUser:
    """Return, for each annotator, the share of labels that are not as predicted.

    LeWiDi averages over items: pass the items as ``users``, and take the ``mean``.

    Parameters
    ----------
    labels, predicted : arrays of shape (n_rows,)
        The labels, and those that were predicted; numbers or texts.
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
        The grades, and those that were predicted.
    users : iterable of n_rows ids
        The annotator (or the item) of each row.
    levels : array, optional
        All grades of the scale; distances are divided by the range of these. By default those that
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
