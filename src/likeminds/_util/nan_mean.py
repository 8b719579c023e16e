"""Means that leave out missing values."""

import numpy as np

from likeminds._util.array_types import Float


def nan_mean(values: Float) -> Float:
    """Return the mean over the last axis of the finite values; NaN where there are none.

    Examples
    --------
    >>> nan_mean(np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan]]))
    array([ 2., nan])
    """
    finite = np.isfinite(values)
    count = finite.sum(axis=-1)
    total = np.where(finite, values, 0.0).sum(axis=-1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
