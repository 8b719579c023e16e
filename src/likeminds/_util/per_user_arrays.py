"""Arrays of users: rows collected and sent per user, rows grouped by user, means without NaN."""

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeminds._util.array_types import Float, Index


@dataclass
class CollectedRows:
    """Numbers of some people; the sum of two is the numbers of both.

    Attributes
    ----------
    people : list of arrays of shape (b,)
        Who they are, by position.
    numbers : list of lists of arrays of shape (b, ...)
        What they have.

    Examples
    --------
    >>> found = CollectedRows([np.array([2, 0])], [[np.array([0.2, 0.0])]])
    >>> found += CollectedRows([np.array([1])], [[np.array([0.1])]])
    >>> found.in_order()
    [array([0. , 0.1, 0.2])]
    """

    people: list[Index]
    numbers: list[list[NDArray[Any]]]

    def __iadd__(self, other: "CollectedRows") -> "CollectedRows":
        self.people = self.people + other.people
        self.numbers = self.numbers + other.numbers
        return self

    def in_order(self) -> list[NDArray[Any]]:
        """Return the numbers in the order of people, those of one person as they came."""
        order = np.argsort(np.concatenate(self.people), kind="stable")
        columns = zip(*self.numbers, strict=True)
        return [np.concatenate(column)[order] for column in columns]


@dataclass(frozen=True)
class SubsetRows:
    """What some of the people have, found by their positions among all of them.

    Examples
    --------
    >>> SubsetRows(np.array([0.4, 0.7]), np.array([4, 7]))[np.array([7, 4, 4])]
    array([0.7, 0.4, 0.4])
    """

    values: NDArray[Any]
    people: Index

    def __getitem__(self, people: Index) -> NDArray[Any]:
        return np.asarray(self.values[np.searchsorted(self.people, people)])


@dataclass(frozen=True)
class SeparateArray:
    """Stands for an array that is sent apart from the state it belongs to."""

    number: int


def take_apart(state: Any, arrays: list[NDArray[Any]]) -> Any:
    """Return a state without what people have in it, which is added to ``arrays``.

    A dataclass names the arrays with a row for each person in ``people_have``. What is cached
    beside the fields of a dataclass stays behind, too.
    """

    def change(value: Any, of_users: bool) -> Any:
        if not (of_users and isinstance(value, np.ndarray) and len(value)):
            return value
        arrays.append(value)
        return SeparateArray(len(arrays) - 1)

    return _changed(state, change)


def put_together(state: Any, arrays: list[Any]) -> Any:
    """Return the state that was taken apart, with other arrays in place of its own.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Known:
    ...     people_have = ("ages",)
    ...     ages: NDArray[Any]
    ...     limit: int = 18
    >>> arrays = []
    >>> known = take_apart(Known(np.array([30, 41])), arrays)
    >>> put_together(known, [arrays[0][:1]])
    Known(ages=array([30]), limit=18)
    """
    return _changed(
        state, lambda one, _: arrays[one.number] if isinstance(one, SeparateArray) else one
    )


def _changed(value: Any, change: Callable[[Any, bool], Any], of_users: bool = False) -> Any:
    """Return a state whose parts are changed; what stays as it is may have parts of its own.

    ``change`` is told of every part whether it is one that people have.
    """
    new = change(value, of_users)
    if new is not value:
        return new
    if isinstance(value, tuple):
        return tuple(_changed(one, change) for one in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    parts = fields(value)
    if not all(one.init for one in parts):
        return value
    theirs = getattr(value, "people_have", ())
    changed = {
        one.name: _changed(getattr(value, one.name), change, one.name in theirs) for one in parts
    }
    return replace(value, **changed)


def of_users(state: Any, people: Index | slice) -> Any:
    """Return a state with what some people have in it, in their order.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Known:
    ...     people_have = ("ages",)
    ...     ages: NDArray[Any]
    >>> of_users(Known(np.array([30, 41, 52])), np.array([2, 0]))
    Known(ages=array([52, 30]))
    """
    arrays: list[NDArray[Any]] = []
    apart = take_apart(state, arrays)
    return put_together(apart, [array[people] for array in arrays])


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


def order_by(codes: Index, n_codes: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows in the order of their codes, and where each code begins.

    Rows of one code keep their order. Many codes and row numbers share one 64-bit key, because
    sorting plain numbers is several times faster than sorting positions by a key.

    Examples
    --------
    >>> order, offsets = order_by(np.array([2, 0, 2, 0]), 3)
    >>> order
    array([1, 3, 0, 2])
    >>> offsets
    array([0, 2, 2, 4])
    """
    offsets = np.zeros(n_codes + 1, dtype=np.intp)
    np.cumsum(np.bincount(codes, minlength=n_codes), out=offsets[1:])
    rows = np.arange(len(codes), dtype=np.intp)
    if (codes[1:] >= codes[:-1]).all():
        return rows, offsets
    if n_codes <= 1 << 16:  # numbers so short are put in order without comparing them
        return np.argsort(codes.astype(np.uint16), kind="stable"), offsets
    if max(len(codes), n_codes) >= 1 << 32:
        return np.argsort(codes, kind="stable"), offsets
    keys = codes.astype(np.uint64) << np.uint64(32)
    keys |= rows.view(np.uint64)
    keys.sort()
    keys &= np.uint64((1 << 32) - 1)
    return keys.view(np.intp), offsets
