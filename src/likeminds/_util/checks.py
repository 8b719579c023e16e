"""Checks of input, whose errors name the problem, its place, and the fix."""

from collections import Counter
from collections.abc import Sequence, Sized
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from likeminds._util.array_types import FloatArray, Index
from likeminds._util.map_reduce import in_threads
from likeminds._util.text_format import close_matches as close_matches  # noqa: PLC0414
from likeminds._util.text_format import did_you_mean as did_you_mean  # noqa: PLC0414
from likeminds._util.text_format import listing as listing  # noqa: PLC0414

V = TypeVar("V")

# Products of squares of larger numbers may overflow.
LARGEST = 1e100
# Above the first, one weight reduces all other rows to rounding errors; below the second,
# products of weights underflow.
_HEAVIEST, _LIGHTEST = 1e12, 1e-100
# The numbers of a large array that are checked together.
_BLOCK = 1 << 19


def as_matrix(values: ArrayLike, name: str) -> FloatArray:
    """Return a finite two-dimensional array; single precision is kept, other types are double."""
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
        raise ValueError(f"{name} must have length {length}, but has length {len(array)}.")
    refuse_not_finite(array, name)
    return array


def as_weights(
    values: ArrayLike | None, length: int, name: str = "weights", *, all_zero: bool = False
) -> FloatArray | None:
    """Return non-negative finite weights, one per row, or None; ``all_zero`` permits only zeros."""
    if values is None:
        return None
    array = as_vector(values, name, length=length).astype(np.float64, copy=False)
    negative = np.flatnonzero(array < 0)
    if negative.size:
        raise ValueError(f"{name} must not be negative; they are in row(s) {listing(negative)}.")
    outside = np.flatnonzero((array > _HEAVIEST) | ((array > 0) & (array < _LIGHTEST)))
    if outside.size:
        raise ValueError(
            f"{name} must be zero or between {_LIGHTEST:g} and {_HEAVIEST:g}; row(s) "
            f"{listing(outside)} are outside. Multiply all weights by the same number."
        )
    if not (all_zero or array.any()):
        raise ValueError(f"{name} are all zero. Give at least one row a positive weight.")
    return array


def same_length(**columns: Sized) -> None:
    """Raise ValueError for columns of different lengths, with all lengths."""
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        described = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise ValueError(f"Lengths differ: {described}. Each needs one entry per row.")


def both_or_neither(first: object, second: object, name: str) -> bool:
    """Return whether both are given; raise ValueError if only one is."""
    if (first is None) != (second is None):
        raise ValueError(f"Only one of the two has {name}: give {name} to both or to neither.")
    return first is not None


def read_only(value: V) -> V:
    """Return a read-only view of an array (the caller's stays writeable), or another object."""
    if isinstance(value, np.ndarray) and value.flags.writeable:
        value = value.view()
        value.flags.writeable = False
    return value


def as_names(names: Sequence[str] | None, length: int) -> tuple[str, ...]:
    """Return distinct names of features, by default x0, x1, ..."""
    if names is None:
        return tuple(f"x{position}" for position in range(length))
    texts = tuple(str(name) for name in names)
    if len(texts) != length:
        raise ValueError(f"There are {length} features, but {len(texts)} feature names. Name each.")
    repeated = sorted(name for name, times in Counter(texts).items() if times > 1)
    if repeated:
        raise ValueError(f"Feature names must be distinct; repeated: {listing(repeated)}.")
    return texts


def as_rows(rows: ArrayLike | slice, length: int) -> Index:
    """Return the numbers of some of the rows, given as a mask, a slice or numbers."""
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
        raise IndexError(f"Row(s) {listing(outside)} do not exist: there are {length} rows.")
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
    """Raise ValueError for rows with NaN, infinity, or numbers too large to compute with."""
    if not array.size or _has_small_squares(array):
        return
    # Two cheap passes and no temporary array in the usual case; NaN compares as false.
    if float(array.min()) >= -LARGEST and float(array.max()) <= LARGEST:
        return
    bad = ~np.isfinite(array)
    is_finite = not bad.any()
    if is_finite:
        bad = np.abs(array) > LARGEST
    rows = listing(np.flatnonzero(bad.any(axis=1) if array.ndim == 2 else bad))
    if not is_finite:
        raise ValueError(
            f"{name} contains NaN or infinity in row(s) {rows}. "
            "Drop these rows or impute the values first."
        )
    raise ValueError(
        f"{name} contains numbers beyond {LARGEST:g} in row(s) {rows}: their squares "
        "would overflow. Measure in a larger unit, or leave out such values."
    )


def _has_small_squares(array: FloatArray) -> bool:
    """Check sums of squares in one pass over a large array, by threads; False is inconclusive."""
    if array.size <= _BLOCK or not array.flags.c_contiguous:
        return False
    flat = array.reshape(-1)
    blocks = (flat[start : start + _BLOCK] for start in range(0, flat.size, _BLOCK))
    return all(in_threads(lambda block: float(np.vdot(block, block)) <= LARGEST**2, blocks))


def refuse_outside_unit(**shares: float) -> None:
    """Raise ValueError for shares that are not between 0 and 1."""
    for name, share in shares.items():
        if not 0 <= share <= 1:
            raise ValueError(f"{name} must be between 0 and 1, but is {share}.")
