"""Integer codes for ids of any hashable type, and conversion of ids to the type of known ones."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from likeminds._util.array_types import IdArray, Index, SupportsArray
from likeminds._util.checks import listing
from likeminds._util.lazy_rows import LazyIds


@dataclass(frozen=True, eq=False)
class IntegerCodes:
    """A column of ids as integer codes, without a Python object per row."""

    codes: Index
    distinct: IdArray

    def __len__(self) -> int:
        return len(self.codes)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(np.asarray(self).tolist())

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> IdArray:
        return np.array(self.distinct[self.codes], dtype=dtype, copy=copy)


def encode(ids: Iterable[Hashable], name: str) -> tuple[Index, IdArray]:
    """Return one code per entry and the distinct ids that the codes point at.

    The distinct ids are sorted if they can be compared. Texts that are all whole numbers are sorted
    as numbers. Ids that cannot be compared (tuples and strings, say) are in order of appearance.
    """
    if isinstance(ids, IntegerCodes):
        places, known = encode(ids.distinct, name)
        return places[ids.codes], known
    array = as_id_array(ids, name)
    if array.dtype.kind in "iu" and array.size:
        return _encode_integers(array)
    if array.dtype.kind == "b" and array.size:
        codes, distinct = _encode_integers(array.view(np.uint8))
        return codes, distinct.view(np.bool_)
    if array.dtype.kind == "f" and _are_small_integers(array):  # a sort takes ten times as long
        codes, distinct = _encode_integers(array.astype(np.intp))
        return codes, distinct.astype(array.dtype)
    if array.dtype.kind != "O":
        distinct, codes = np.unique(array, return_inverse=True)
        return codes, distinct
    return _encode_objects(array, name)


def lookup(ids: Iterable[Hashable], known: IdArray | Mapping[Hashable, int], name: str) -> Index:
    """Return the position of each id in ``known``, -1 for unknown ids.

    For repeated lookups among the same ids, pass their `positions` instead.
    """
    codes, distinct = encode(ids, name)
    position = known if isinstance(known, Mapping) else positions(known)
    found = np.array([position.get(value, -1) for value in distinct.tolist()], dtype=np.intp)
    return found[codes]


def positions(known: IdArray | LazyIds) -> Mapping[Hashable, int]:
    """Return a mapping from distinct ids to their positions."""
    if isinstance(known, LazyIds):
        return known.places
    return {value: code for code, value in enumerate(known.tolist())}


def encode_pairs(first: Index, second: Index) -> Index:
    """Return one code per distinct pair of two codes, in the order of the pairs."""
    if not first.size:
        return np.empty(0, dtype=np.intp)
    codes, _ = _encode_integers(first * (int(second.max()) + 1) + second)
    return codes


def compact(codes: Index, size: int) -> tuple[Index, Index]:
    """Renumber codes below ``size`` without gaps; return them and the old code of each new one."""
    if 8 * codes.size < size:  # few rows of many: do not touch every id there is
        left, renumbered = np.unique(codes, return_inverse=True)
        return renumbered, left
    # A dense range needs no sort: mark what occurs and number the marks.
    present = np.zeros(size, dtype=bool)
    present[codes] = True
    return (np.cumsum(present) - 1)[codes], np.flatnonzero(present)


def join_ids(first: IdArray, second: IdArray) -> IdArray:
    """Concatenate ids without converting their types."""
    if first.dtype.kind != second.dtype.kind:
        first, second = first.astype(object), second.astype(object)
    return np.concatenate([first, second])


def join_codes(
    first: tuple[Index, IdArray], second: tuple[Index, IdArray]
) -> tuple[Index, IdArray]:
    """Concatenate two columns of codes, over the distinct ids of both."""
    codes, distinct = encode(join_ids(first[1], second[1]), "ids")
    ours, theirs = np.split(codes, [len(first[1])])
    return np.concatenate([ours[first[0]], theirs[second[0]]]), distinct


def as_distinct(ids: Iterable[Hashable], name: str) -> IdArray:
    """Return ids as an array; raise ValueError for ids that occur twice."""
    array = as_id_array(ids, name)
    codes, distinct = encode(array, name)
    repeated = distinct[np.bincount(codes, minlength=len(distinct)) > 1]
    if repeated.size:
        raise ValueError(
            f"{name} must be distinct, but these occur more than once: {listing(repeated)}. "
            "Keep one of each."
        )
    return array


def as_id_array(ids: Iterable[Hashable], name: str) -> IdArray:
    """Return ids as a one-dimensional array: numbers as numbers, all else as objects.

    Texts stay Python strings; dates and times become texts as in CSV. Missing ids (None, NaN)
    raise ValueError.
    """
    array = ids if isinstance(ids, np.ndarray) else _to_array(ids, name)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, but has shape {array.shape}.")
    if array.dtype.kind in "UST":
        array = array.astype(object)
    missing = missing_rows(array)
    if missing.size:
        raise ValueError(f"{name} must not be missing, but are in row(s) {listing(missing)}.")
    return _without_times(array)


def _to_array(ids: Iterable[Hashable], name: str) -> IdArray:
    if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
        raise TypeError(f"{name} must be a list or an array with one entry per row, not {ids!r}.")
    # An array-like (a data frame's column) converts itself. A plain list is taken object by object
    # if numpy would merge kinds ([1, "a"] -> text) or read tuples as a second dimension.
    if isinstance(ids, SupportsArray):
        return np.asarray(ids)
    values = list(ids)
    kinds = {type(value) for value in values}
    if len(kinds) == 1 and issubclass(kinds.pop(), int | float | np.number):
        numbers = np.asarray(values)
        # Whole numbers too large for one integer type would come back as rounded floats.
        if numbers.dtype.kind != "f" or isinstance(values[0], float | np.floating):
            return numbers
    return as_objects(values)


def missing_rows(array: IdArray) -> Index:
    """Return the positions of missing values."""
    if array.dtype.kind == "f":
        return np.flatnonzero(np.isnan(array))
    if array.dtype.kind in "mM":
        return np.flatnonzero(np.isnat(array))
    if array.dtype.kind != "O":
        return np.empty(0, dtype=np.intp)
    return np.array(
        [i for i, value in enumerate(array.tolist()) if is_missing(value)], dtype=np.intp
    )


def is_missing(value: object) -> bool:
    """Return whether a value is missing: None, NaN, or the markers of pandas."""
    # The markers of pandas are compared by name: == raises, and an import takes time.
    return (
        value is None
        or (isinstance(value, float | np.floating) and math.isnan(value))
        or type(value).__name__ in {"NAType", "NaTType"}
    )


def _without_times(array: IdArray) -> IdArray:
    """Convert dates and times of any unit to texts, which all kinds of files can hold."""
    if array.dtype.kind in "mM":
        values = array.tolist()
        if array.size and isinstance(values[0], int):  # too fine for Python: nanoseconds
            unit = array.dtype.str.replace("ns", "us")
            whole = array.astype(unit)
            exact = whole.astype(array.dtype) == array
            both = zip(whole.tolist(), array, exact, strict=True)
            values = [coarse if same else fine for coarse, fine, same in both]
        return as_objects([str(value).replace("T", " ") for value in values])
    if array.dtype.kind != "O":
        return array
    values = array.tolist()
    if not any(issubclass(kind, date | time | timedelta) for kind in set(map(type, values))):
        return array
    times = (date, time, timedelta)
    return as_objects([str(value) if isinstance(value, times) else value for value in values])


def as_objects(values: Sequence[Any]) -> IdArray:
    """Return values as an array of objects, tuples included."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _encode_integers(array: IdArray) -> tuple[Index, IdArray]:
    low, high = int(array.min()), int(array.max())
    if high - low > 4 * array.size or high > np.iinfo(np.intp).max:
        return np.unique(array, return_inverse=True)[::-1]
    # Widen before subtracting: 100 - (-100) does not fit a small integer type.
    codes, left = compact(array.astype(np.intp) - low, high - low + 1)
    return codes, (left + low).astype(array.dtype)


def _are_small_integers(array: IdArray) -> bool:
    """Return whether decimals are whole numbers in a range small enough for a table."""
    if not array.size or not np.abs(array).max() < 1 << 31 or np.ptp(array) > 4 * array.size:
        return False
    return bool((array == np.rint(array)).all())


def _encode_objects(array: IdArray, name: str) -> tuple[Index, IdArray]:
    values = array.tolist()
    try:
        ordered: list[Any] = list(dict.fromkeys(values))
    except TypeError as error:
        raise ValueError(f"{name} must be hashable: {error}.") from error
    # Ids that cannot be compared stay in the order of appearance.
    with suppress(TypeError):
        whole = all(
            isinstance(value, str) and len(value) <= 40 and value.isascii() and value.isdecimal()
            for value in ordered
        )
        ordered = sorted(ordered, key=(lambda text: (int(text), text)) if whole else None)
    position = {value: code for code, value in enumerate(ordered)}
    distinct = as_objects(ordered)
    codes = np.fromiter((position[value] for value in values), dtype=np.intp, count=len(values))
    return codes, distinct


_NUMBER = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?\s*")
_WHOLE = re.compile(r"-?[1-9]\d*|0")


def coerce_ids(ids: Iterable[Hashable], known: IdArray, name: str) -> IdArray:
    """Convert distinct ids to the type of the known ones.

    If one side has numbers and the other texts, the number 7 and the text "7" are the same id. New
    ids get the type of the known ones. An id that equals a known number, but is written in another
    way (007), raises ValueError.
    """
    array = as_id_array(ids, name)
    kinds = _kinds(array), _kinds(known)
    if not array.size or not len(known) or (kinds[0] == kinds[1] and len(kinds[0]) == 1):
        return array
    exact = positions(known)
    values = array.tolist()
    if all(value in exact for value in values):
        return array
    # If known ids are of both kinds, ids are taken as they are.
    target = kinds[1] if len(kinds[0]) == 1 else set()
    whole = target == {"number"} and _types_of(known) <= {int}
    candidates = _candidates(values, known)
    found = [
        value if value in exact else _meant(value, candidates, target, name) for value in values
    ]
    if whole:  # new ids have the type of the known ones
        found = [int(v) if isinstance(v, str) and _WHOLE.fullmatch(v) else v for v in found]
    times = Counter(found)
    twice = [value for value, meant in zip(values, found, strict=True) if times[meant] > 1]
    if twice:
        raise ValueError(
            f"{name}: {_written(twice)} are the same known id. Write ids as in the earlier labels."
        )
    numbers = np.array(found) if set(map(type, found)) <= {int} else None
    if numbers is not None and numbers.dtype.kind == "i":
        return numbers
    return as_objects(found)


def _candidates(values: Sequence[Any], known: IdArray) -> dict[Any, list[Any]]:
    """Return the known ids that equal one of some ids, as texts or as numbers."""
    asked: set[Any] = {form for value in values for form in _forms(value)}
    asked |= {number for value in values if (number := _number(value)) is not None}
    found = defaultdict(list)
    for value in known if isinstance(known, LazyIds) else known.tolist():
        for key in (*_forms(value), _number(value)):
            if key in asked:
                found[key].append(value)
    return found


def _meant(
    value: Hashable, candidates: Mapping[Any, list[Any]], target: set[str], name: str
) -> Any:
    number = _number(value)
    alike = [] if number is None else candidates.get(number, [])
    for form in _forms(value):
        hits = candidates.get(form, [])
        if len(hits) == 1 and len(alike) <= 1:
            return hits[0]
        alike = alike or hits
    if alike:
        raise ValueError(
            f"{name}: {value!r} may be the known {_written(alike)}, which is the same number "
            "written in another way, or a new one. Write ids as in the earlier labels."
        )
    return _forms(value)[-1] if target == {"text"} and _kind(value) == "number" else value


def _kinds(ids: IdArray) -> set[str]:
    if ids.dtype.kind in "iuf":
        return {"number"}
    return {_KINDS.get(kind, "other") for kind in _types_of(ids)}


_KINDS = {str: "text", int: "number", float: "number", Decimal: "number"}


def _kind(value: Hashable) -> str:
    return _KINDS.get(type(value), "other")


def _types_of(ids: IdArray) -> set[type]:
    return ids.types() if isinstance(ids, LazyIds) else set(map(type, ids.tolist()))


def _forms(value: Hashable) -> list[str]:
    """Return the texts that an id may be written as, the usual one last."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, float) and value.is_integer():
        return [repr(value), str(int(value))]
    return [str(value)] if _kind(value) == "number" else []


def _number(value: Hashable) -> Any:
    """Return the number that an id or its text is; None for other ids."""
    if isinstance(value, str):
        return Decimal(value.strip()) if _NUMBER.fullmatch(value) else None
    return value if _kind(value) == "number" else None


def _written(values: Sequence[Any]) -> str:
    return listing([repr(value) for value in values])
