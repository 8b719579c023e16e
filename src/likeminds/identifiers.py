"""Ids of any hashable kind, as small integers and back."""

import math
from collections.abc import Hashable, Iterable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from likeminds._checks import IntArray, listing

IdArray = NDArray[Any]


def encode(ids: Iterable[Hashable], name: str) -> tuple[IntArray, IdArray]:
    """Return one code per entry and the distinct ids that the codes point at.

    The distinct ids are sorted where they can be compared, and in the order of
    their first appearance where they cannot (tuples next to strings, say).

    Examples
    --------
    >>> codes, distinct = encode(["zoe", "ann", "zoe"], "users")
    >>> codes
    array([1, 0, 1])
    >>> distinct
    array(['ann', 'zoe'], dtype=object)
    """
    array = as_id_array(ids, name)
    if array.dtype.kind in "iu" and array.size:
        return _encode_integers(array)
    if array.dtype.kind != "O":
        distinct, codes = np.unique(array, return_inverse=True)
        return codes, distinct
    return _encode_objects(array)


def lookup(ids: Iterable[Hashable], known: IdArray, name: str) -> IntArray:
    """Return the position of each id in ``known``, -1 for those that are not there.

    Examples
    --------
    >>> lookup(["zoe", "bob"], np.array(["ann", "zoe"], dtype=object), "users")
    array([ 1, -1])
    """
    codes, distinct = encode(ids, name)
    position = {value: code for code, value in enumerate(known.tolist())}
    found = np.array([position.get(value, -1) for value in distinct.tolist()], dtype=np.intp)
    return found[codes]


def as_id_array(ids: Iterable[Hashable], name: str) -> IdArray:
    """Return ids as a one-dimensional array: numbers as numbers, all else as objects.

    Text becomes an array of Python strings, so that what is given back is what was
    put in; missing ids (None, NaN) are refused.
    """
    array = ids if isinstance(ids, np.ndarray) else _to_array(ids)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, but has shape {array.shape}.")
    if array.dtype.kind in "US":
        array = array.astype(object)
    missing = _missing(array)
    if missing.size:
        raise ValueError(f"{name} must not be missing; they are in row(s) {listing(missing)}.")
    return array


def _to_array(ids: Iterable[Hashable]) -> IdArray:
    # An array-like with its own conversion (a data frame's column) knows best. A plain
    # list is taken object by object when numpy would merge kinds ([1, "a"] -> text) or
    # read tuples as a second dimension.
    if hasattr(ids, "__array__"):
        return np.asarray(ids)
    values = list(ids)
    kinds = {type(value) for value in values}
    if len(kinds) == 1 and issubclass(kinds.pop(), int | float | np.number):
        return np.asarray(values)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _missing(array: IdArray) -> IntArray:
    if array.dtype.kind == "f":
        return np.flatnonzero(np.isnan(array))
    if array.dtype.kind != "O":
        return np.empty(0, dtype=np.intp)
    return np.array(
        [i for i, value in enumerate(array.tolist()) if _is_missing(value)], dtype=np.intp
    )


def _is_missing(value: object) -> bool:
    # pandas' own markers are known by name: comparing them raises, importing them costs.
    return (
        value is None
        or (isinstance(value, float) and math.isnan(value))
        or type(value).__name__ in {"NAType", "NaTType"}
    )


def _encode_integers(array: IdArray) -> tuple[IntArray, IdArray]:
    low, high = int(array.min()), int(array.max())
    if high - low > 4 * array.size:
        distinct, codes = np.unique(array, return_inverse=True)
        return codes, distinct
    # A dense range needs no sort: mark what occurs and number the marks.
    offset = (array - low).astype(np.intp)
    present = np.zeros(high - low + 1, dtype=bool)
    present[offset] = True
    number = np.cumsum(present) - 1
    return number[offset], (np.flatnonzero(present) + low).astype(array.dtype)


def _encode_objects(array: IdArray) -> tuple[IntArray, IdArray]:
    values = array.tolist()
    try:
        position = {value: code for code, value in enumerate(dict.fromkeys(values))}
    except TypeError as error:
        raise ValueError(f"Ids must be hashable: {error}.") from error
    ordered: list[Any] = list(position)
    try:
        ordered.sort()
    except TypeError:
        pass  # not comparable: the order of appearance stands
    else:
        position = {value: code for code, value in enumerate(ordered)}
    distinct = np.empty(len(ordered), dtype=object)
    distinct[:] = ordered
    codes = np.fromiter((position[value] for value in values), dtype=np.intp, count=len(values))
    return codes, cast("IdArray", distinct)
