"""Refuse bad input in one voice: what is wrong, where, and what to do."""

from collections.abc import Sequence, Sized
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.floating[Any]]
IntArray = NDArray[np.integer[Any]]

# How many offenders a message names before it says "and N more".
_NAMED = 5


def listing(values: Sequence[Any] | NDArray[Any]) -> str:
    """Name the first few values, and count the rest.

    Examples
    --------
    >>> listing([3, 1, 4, 1, 5, 9, 2])
    '3, 1, 4, 1, 5 and 2 more'
    """
    named = ", ".join(str(value) for value in values[:_NAMED])
    rest = len(values) - _NAMED
    return f"{named} and {rest} more" if rest > 0 else named


def as_matrix(values: ArrayLike, name: str) -> FloatArray:
    """Return a finite two-dimensional float array, or say which rows are not.

    Single precision is kept; everything else that is numeric becomes double.
    """
    array = _numeric(values, name)
    if array.ndim != 2:
        raise ValueError(
            f"{name} must be two-dimensional (rows x columns), but has {array.ndim} dimension(s). "
            "Reshape your data: values.reshape(-1, 1) if it is one feature, "
            "values.reshape(1, -1) if it is one row."
        )
    if array.shape[0] == 0 or array.shape[1] == 0:
        raise ValueError(f"{name} is empty: it has shape {array.shape}. Pass at least one row.")
    _refuse_not_finite(array, name)
    return array


def as_vector(values: ArrayLike, name: str, *, length: int | None = None) -> FloatArray:
    """Return a finite one-dimensional float array, of the given length if there is one."""
    array = _numeric(values, name)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, but has shape {array.shape}.")
    if length is not None and len(array) != length:
        raise ValueError(f"{name} has {len(array)} entries, but there are {length} rows.")
    _refuse_not_finite(array, name)
    return array


def as_weights(values: ArrayLike | None, length: int, name: str = "weights") -> FloatArray | None:
    """Return non-negative finite weights, one per row, or None for "all alike"."""
    if values is None:
        return None
    array = as_vector(values, name, length=length).astype(np.float64, copy=False)
    negative = np.flatnonzero(array < 0)
    if negative.size:
        raise ValueError(f"{name} must not be negative; they are in row(s) {listing(negative)}.")
    if not array.any():
        raise ValueError(f"{name} are all zero: there is nothing left to learn from.")
    return array


def same_length(**columns: Sized) -> None:
    """Refuse columns of different lengths, and say how long each one is.

    Examples
    --------
    >>> same_length(users=[1, 2], labels=[0])
    Traceback (most recent call last):
    ...
    ValueError: Lengths differ: users has 2, labels has 1. Each needs one entry per row.
    """
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        described = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise ValueError(f"Lengths differ: {described}. Each needs one entry per row.")


def _numeric(values: ArrayLike, name: str) -> FloatArray:
    array = np.asarray(values)
    if array.dtype == np.float32:
        return array
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} has complex numbers.")
    try:
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must be numbers, but could not be read as such: {error}. "
            "Encode text and categories as numbers first (for instance one-hot)."
        ) from error


def _refuse_not_finite(array: FloatArray, name: str) -> None:
    # The sum is finite exactly when every value is, save for an overflow that the
    # second look rules out: one cheap pass in the usual case, no temporary array.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(array.sum()):
            return
    bad = ~np.isfinite(array)
    if bad.any():
        rows = np.flatnonzero(bad.any(axis=1) if array.ndim == 2 else bad)
        raise ValueError(
            f"{name} contains NaN or infinity in row(s) {listing(rows)}. "
            "Drop these rows or impute the values first."
        )
