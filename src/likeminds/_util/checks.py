"""Checks of input, with errors that say what is wrong, where, and what to do."""

from collections import Counter
from collections.abc import Sequence, Sized
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likeminds._util.array_types import FloatArray, Index
from likeminds._util.text_format import visible
from likeminds._util.threads import in_threads

# Products of squares of larger numbers may overflow.
LARGEST = 1e100
# Beside a row of more weight than the first, all others are lost to rounding; below the second,
# products of weights underflow.
_HEAVIEST, _LIGHTEST = 1e12, 1e-100
# Numbers of a large array that are looked at together.
_BLOCK = 1 << 19
# How many bad values a message names before it says "and N more".
_NAMED = 5


def listing(values: Sequence[Any] | NDArray[Any]) -> str:
    """Name the first few values, and count the rest.

    Examples
    --------
    >>> listing([3, 1, 4, 1, 5, 9, 2])
    '3, 1, 4, 1, 5 and 2 more'
    """
    named = ", ".join(visible(str(value), keep="") for value in values[:_NAMED])
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
    refuse_not_finite(array, name)
    return array


def as_vector(values: ArrayLike, name: str, *, length: int | None = None) -> FloatArray:
    """Return a finite one-dimensional float array, of the given length if there is one."""
    array = _numeric(values, name)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, but has shape {array.shape}.")
    if length is not None and len(array) != length:
        raise ValueError(f"{name} has {len(array)} entries, but there are {length} rows.")
    refuse_not_finite(array, name)
    return array


def as_weights(
    values: ArrayLike | None, length: int, name: str = "weights", *, all_zero: bool = False
) -> FloatArray | None:
    """Return non-negative finite weights, one per row, or None for "all alike".

    Those of a part of the rows may be ``all_zero``.
    """
    if values is None:
        return None
    array = as_vector(values, name, length=length).astype(np.float64, copy=False)
    negative = np.flatnonzero(array < 0)
    if negative.size:
        raise ValueError(f"{name} must not be negative; they are in row(s) {listing(negative)}.")
    outside = np.flatnonzero((array > _HEAVIEST) | ((array > 0) & (array < _LIGHTEST)))
    if outside.size:
        raise ValueError(
            f"{name} must be zero or from {_LIGHTEST:g} to {_HEAVIEST:g}, which they are not in "
            f"row(s) {listing(outside)}. Multiply all of them by the same number."
        )
    if not (all_zero or array.any()):
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


def both_or_neither(first: object, second: object, name: str) -> bool:
    """Return whether both are there, and refuse it when only one is."""
    if (first is None) != (second is None):
        raise ValueError(f"Only one of the two has {name}: give {name} to both or to neither.")
    return first is not None


def read_only(value: Any) -> Any:
    """Return a read-only view of an array, and anything else as it is."""
    # A view, so that an array that is somebody else's stays writeable for them.
    if isinstance(value, np.ndarray) and value.flags.writeable:
        value = value.view()
        value.flags.writeable = False
    return value


def as_names(names: Sequence[str] | None, length: int) -> tuple[str, ...]:
    """Return distinct names of features, by default x0, x1, ...

    Examples
    --------
    >>> as_names(None, 2)
    ('x0', 'x1')
    """
    if names is None:
        return tuple(f"x{position}" for position in range(length))
    texts = tuple(str(name) for name in names)
    if len(texts) != length:
        raise ValueError(f"There are {length} features, but {len(texts)} feature names.")
    repeated = sorted(name for name, times in Counter(texts).items() if times > 1)
    if repeated:
        raise ValueError(f"Feature names must be distinct; repeated: {listing(repeated)}.")
    return texts


def as_rows(rows: ArrayLike | slice, length: int) -> Index:
    """Return the numbers of some of the rows, given as a mask, a slice or numbers.

    Examples
    --------
    >>> as_rows([True, False, True], 3)
    array([0, 2])
    """
    array = np.arange(length)[rows] if isinstance(rows, slice) else np.asarray(rows)
    if array.ndim != 1 or (array.dtype.kind not in "biu" and array.size):
        raise TypeError(
            "Choose rows by a mask of true/false, by a list of row numbers or by a slice; "
            f"got {array.ndim} dimension(s) of type {array.dtype}."
        )
    if array.dtype.kind == "b":
        if len(array) != length:
            raise ValueError(f"The mask has {len(array)} entries, but there are {length} rows.")
        return np.flatnonzero(array)
    outside = array[(array < -length) | (array >= length)]
    if outside.size:
        raise IndexError(f"There are {length} rows, but not {listing(outside)}.")
    return array.astype(np.intp, copy=False)


def _numeric(values: ArrayLike, name: str) -> FloatArray:
    try:
        array = np.asarray(values)  # raises for rows of unequal length
        if array.dtype == np.float32:
            return array
        if array.dtype.kind != "c":
            return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"{name} must be numbers, but could not be read as such: {error}. "
            "Encode text and categories as numbers first (for instance one-hot)."
        ) from error
    raise ValueError(f"Complex data not supported: {name} has complex numbers.")


def refuse_not_finite(array: FloatArray, name: str) -> None:
    """Say which rows have NaN, infinity, or numbers too large to compute with, if any."""
    if not array.size or _has_small_squares(array):
        return
    # Two cheap passes and no temporary array in the usual case; NaN compares as false.
    if float(array.min()) >= -LARGEST and float(array.max()) <= LARGEST:
        return
    bad = ~np.isfinite(array)
    if bad.any():
        rows = np.flatnonzero(bad.any(axis=1) if array.ndim == 2 else bad)
        raise ValueError(
            f"{name} contains NaN or infinity in row(s) {listing(rows)}. "
            "Drop these rows or impute the values first."
        )
    bad = np.abs(array) > LARGEST
    rows = np.flatnonzero(bad.any(axis=1) if array.ndim == 2 else bad)
    raise ValueError(
        f"{name} contains numbers beyond {LARGEST:g} in row(s) {listing(rows)}: their squares "
        "cannot be computed with. Measure in a larger unit, or leave out what is no number."
    )


def _has_small_squares(array: FloatArray) -> bool:
    """Say whether sums of squares show that all is well: one pass over a large array, by threads.

    False says nothing: the array is small, or has gaps, or squares do not tell.
    """
    if array.size <= _BLOCK or not array.flags.c_contiguous:
        return False
    flat = array.reshape(-1)
    blocks = (flat[start : start + _BLOCK] for start in range(0, flat.size, _BLOCK))
    return all(in_threads(lambda block: float(np.vdot(block, block)) <= LARGEST**2, blocks))


def refuse_outside_unit(**shares: float) -> None:
    """Refuse shares that are not between 0 and 1."""
    for name, share in shares.items():
        if not 0 <= share <= 1:
            raise ValueError(f"{name} must be between 0 and 1, but is {share}.")
