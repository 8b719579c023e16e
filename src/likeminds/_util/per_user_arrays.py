"""Numbers that people have, one row each: what they answer, and what is sent to where they are."""

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeminds._util.array_types import Index


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

    def change(value: Any, of_people: bool) -> Any:
        if not (of_people and isinstance(value, np.ndarray) and len(value)):
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


def _changed(value: Any, change: Callable[[Any, bool], Any], of_people: bool = False) -> Any:
    """Return a state whose parts are changed; what stays as it is may have parts of its own.

    ``change`` is told of every part whether it is one that people have.
    """
    new = change(value, of_people)
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


def of_people(state: Any, people: Index | slice) -> Any:
    """Return a state with what some people have in it, in their order.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Known:
    ...     people_have = ("ages",)
    ...     ages: NDArray[Any]
    >>> of_people(Known(np.array([30, 41, 52])), np.array([2, 0]))
    Known(ages=array([52, 30]))
    """
    arrays: list[NDArray[Any]] = []
    apart = take_apart(state, arrays)
    return put_together(apart, [array[people] for array in arrays])
