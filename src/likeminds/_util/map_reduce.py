"""One way to visit people: block by block, with a small state; what comes back is summed.

Everything that learns from a crowd asks it for the same thing: *send a small state to every block
of people, sum what comes back*. A learned prior sends itself and gets moments; the three-level
solver sends the consensus and the strong directions and gets value and gradient.

What is done at a block is a *work*: a function at the top of a module, which takes the block, the
state and what the block keeps, and changes none of them. State and result can be pickled, and
their size does not depend on how many people there are. What people have of their own (where the
search for their modes starts, their coordinates) stays with their block: a work returns it beside
its result, the next work gets it, and nobody else reads it but by `ask`. So blocks may be in this
process, with threads, or on other machines, and whatever is lost can be computed again: those who
learn cannot tell.

Here are the two implementations for one process (`ThreadExecutor`, by one thread or several).
Blocks are
summed in their order, so that the result is the same with any number of threads. Where nothing is
summed and every block has a place of its own for what it finds (statistics, scores, metrics by
person), `ThreadExecutor.each` visits them in the same way.
"""

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from likeminds._util.array_types import Float, Index
from likeminds._util.threads import in_threads

B = TypeVar("B")
B_co = TypeVar("B_co", covariant=True)
C = TypeVar("C")
S = TypeVar("S")
R = TypeVar("R")
T = TypeVar("T")

_add: Callable[[Any, Any], Any] = operator.iadd

# What all blocks keep of their own, as the people it belongs to hold it: opaque to all others.
Own = Any


@dataclass(frozen=True)
class UserBlock(Generic[T]):
    """Data of some users, with their positions among all users."""

    people: Index | slice
    data: T

    @classmethod
    def of_all(cls, data: T) -> "ThreadExecutor[UserBlock[T]]":
        """Return an executor whose only block has all users."""
        return cls.of_some(data, slice(None))

    @classmethod
    def of_some(cls, data: T, people: Index | slice) -> "ThreadExecutor[UserBlock[T]]":
        """Return an executor whose only block has some users."""
        return ThreadExecutor([cls(people, data)], many_threads=False)


def in_order(parts: Iterable[tuple[Index | slice, Float]], n_users: int) -> Float:
    """Return the rows of all users in their order, given some users and their rows at a time.

    Examples
    --------
    >>> in_order([(np.array([2, 0]), np.array([0.2, 0.0])), (np.array([1]), np.array([0.1]))], 3)
    array([0. , 0.1, 0.2])
    """
    found: Float | None = None
    for people, rows in parts:
        if isinstance(people, slice):
            return rows
        if found is None:
            found = np.empty((n_users, *rows.shape[1:]), rows.dtype)
        found[people] = rows
    assert found is not None
    return found


class Executor(ABC, Generic[B_co]):
    """People in blocks, wherever they are."""

    @abstractmethod
    def map_reduce(
        self,
        work: Callable[[B_co, S, Any], tuple[R, Any]],
        state: S,
        own: Own = None,
        *,
        start: R | None = None,
    ) -> tuple[R, Own]:
        """Return the sum of what blocks answer, and what they keep from now on.

        Parameters
        ----------
        work : callable
            Called as ``work(block, state, own)`` for every block; returns its share of the sum
            (anything that can be added up by ``+=``) and what the block keeps.
        state : object
            The same for all blocks.
        own : object, optional
            What blocks keep, as an earlier visit returned it; without it, each gets None.
        start : object, optional
            What the sum starts from; it may be changed.
        """

    @abstractmethod
    def map(self, work: Callable[[B_co, S, Any], R], state: S, own: Own = None) -> Iterator[R]:
        """Yield what each block answers, in their order: parts that people have of their own."""

    def derive(
        self,
        work: "Callable[[B_co, S], Executor[C]]",
        state: S,
        *,
        consume: bool = False,
        here: "Callable[[Index], Executor[C]] | None" = None,
    ) -> "Executor[C]":
        """Return the blocks that ``work(block, state)`` makes, which stay where the block is.

        ``consume`` releases the blocks that they are made of; ``here`` makes those of some users,
        by their positions, in this process.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class ThreadExecutor(Executor[B]):
    """People in this process.

    Attributes
    ----------
    blocks : sequence
        The blocks.
    many_threads : bool
        Whether all cores share them: else calls cost more than what they compute.

    Examples
    --------
    >>> def longer(block, state, own):
    ...     kept = (0 if own is None else own) + state * len(block)
    ...     return kept, kept
    >>> people = ThreadExecutor(["ab", "abc"])
    >>> total, own = people.map_reduce(longer, 10)
    >>> total
    50
    >>> total, own = people.map_reduce(longer, 1, own)
    >>> total, list(people.map(lambda block, state, own: (block, own), None, own))
    (55, [('ab', 22), ('abc', 33)])
    """

    blocks: Sequence[B]
    many_threads: bool = True

    def map_reduce(
        self,
        work: Callable[[B, S, Any], tuple[R, Any]],
        state: S,
        own: Own = None,
        *,
        start: R | None = None,
    ) -> tuple[R, Own]:
        """Return the sum of what blocks answer, and what they keep: see `Executor`."""
        total, kept = start, []
        for part, mine in self.map(work, state, own):
            total = part if total is None else _add(total, part)
            kept.append(mine)
        if total is None:
            raise ValueError("There is nobody to visit.")
        return total, kept

    def map(self, work: Callable[[B, S, Any], R], state: S, own: Own = None) -> Iterator[R]:
        """Yield what each block answers: see `Executor`."""
        kept = [None] * len(self.blocks) if own is None else own

        def answer(number: int) -> R:
            return work(self.blocks[number], state, kept[number])

        numbers = range(len(self.blocks))
        return in_threads(answer, numbers) if self.many_threads else map(answer, numbers)

    def derive(
        self,
        work: Callable[[B, S], Executor[C]],
        state: S,
        *,
        consume: bool = False,  # noqa: ARG002 - whoever holds the blocks releases them
        here: Callable[[Index], Executor[C]] | None = None,  # noqa: ARG002 - they are
    ) -> Executor[C]:
        """Return what ``work`` makes of the only block: see `Executor`."""
        (block,) = self.blocks
        return work(block, state)

    def each(self, work: Callable[[B], None]) -> None:
        """Let every block put what it finds where nobody else does."""
        for _ in self.map(lambda block, state, own: work(block), None):  # noqa: ARG005
            pass


def of_rows(work: Callable[[slice], Float], n_rows: int, at_once: int) -> Float:
    """Return a number for each of many rows, computed for some of them at a time.

    Examples
    --------
    >>> of_rows(lambda some: np.arange(5.0)[some] ** 2, 5, at_once=2)
    array([ 0.,  1.,  4.,  9., 16.])
    """
    found = np.empty(n_rows)

    def fill(some: slice) -> None:
        found[some] = work(some)

    ThreadExecutor([slice(at, at + at_once) for at in range(0, n_rows, at_once)]).each(fill)
    return found


@dataclass
class SumTuple:
    """Several sums at once.

    Examples
    --------
    >>> total = SumTuple(1.0, 2)
    >>> total += SumTuple(0.5, 1)
    >>> list(total)
    [1.5, 3]
    """

    parts: list[Any]

    def __init__(self, *parts: Any) -> None:
        self.parts = list(parts)

    def __iadd__(self, other: "SumTuple") -> "SumTuple":
        self.parts = [_add(mine, its) for mine, its in zip(self, other, strict=True)]
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(self.parts)
