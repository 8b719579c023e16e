"""The executor: send a small state to every block of users, and sum the answers.

``work`` is a module-level function of a block, the state, and the block's own state of the last
pass. It does not change its arguments. It returns the block's share of a sum, and the block's own
state for the next pass. State and sum can be pickled; their size does not depend on the number of
users. So blocks may be in this process (`ThreadExecutor`) or on the workers of a cluster
(`likeminds.cluster.executor.DaskExecutor`). Lost blocks can be computed again.

Blocks are summed in their order, so the result is the same with any number of threads.
"""

import math
import operator
import os
import sys
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from typing import Any, Generic, TypeVar, cast

import numpy as np
from threadpoolctl import ThreadpoolController

from likeminds._util.array_types import Float, Index

B = TypeVar("B")
B_co = TypeVar("B_co", covariant=True)
C = TypeVar("C")
S = TypeVar("S")
R = TypeVar("R")
T = TypeVar("T")

_add: Callable[[Any, Any], Any] = operator.iadd

# Blocks per thread that are computed ahead: a slow block does not delay others, and memory is
# bounded.
_AHEAD = 8

# The blocks' own states between passes; only their executor reads them.
Own = Any


@dataclass(frozen=True)
class UserBlock(Generic[T]):
    """Data of some users, with their positions among all users."""

    users: Index | slice
    data: T

    @classmethod
    def of_all(cls, data: T) -> "ThreadExecutor[UserBlock[T]]":
        """Return an executor whose only block has all users."""
        return cls.of_some(data, slice(None))

    @classmethod
    def of_some(cls, data: T, users: Index | slice) -> "ThreadExecutor[UserBlock[T]]":
        """Return an executor whose only block has some users."""
        return ThreadExecutor([cls(users, data)], many_threads=False)


def in_order(parts: Iterable[tuple[Index | slice, Float]], n_users: int) -> Float:
    """Return the rows of all users in their order, given some users and their rows at a time."""
    found: Float | None = None
    for users, rows in parts:
        if isinstance(users, slice):
            return rows
        if found is None:
            found = np.empty((n_users, *rows.shape[1:]), rows.dtype)
        found[users] = rows
    assert found is not None
    return found


class Executor(ABC, Generic[B_co]):
    """Blocks of users, in this process or elsewhere."""

    @abstractmethod
    def map_reduce(
        self,
        work: Callable[[B_co, S, Any], tuple[R, Any]],
        state: S,
        own: Own = None,
        *,
        start: R | None = None,
    ) -> tuple[R, Own]:
        """Return the sum of the blocks' answers, and their new states.

        ``work(block, state, own)`` returns the block's share of the sum (any object with ``+=``)
        and its new state. ``own`` has the blocks' states of an earlier pass; without it, blocks get
        None. The sum starts from ``start``, which may be changed.
        """

    @abstractmethod
    def map(self, work: Callable[[B_co, S, Any], R], state: S, own: Own = None) -> Iterator[R]:
        """Yield the answer of each block, in the order of blocks."""

    def derive(
        self,
        work: "Callable[[B_co, S], Executor[C]]",
        state: S,
        *,
        consume: bool = False,
        here: "Callable[[Index], Executor[C]] | None" = None,
    ) -> "Executor[C]":
        """Return the blocks that ``work(block, state)`` makes in the process of each block.

        ``consume`` releases the original blocks; ``here`` makes blocks of some users, by their
        positions, in this process.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class ThreadExecutor(Executor[B]):
    """Blocks in this process; without ``many_threads``, one thread works on all of them.

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
        """Return the sum (``start`` without blocks), and the states of blocks: see `Executor`."""
        total, carried = start, []
        for part, carry in self.map(work, state, own):
            total = part if total is None else _add(total, part)
            carried.append(carry)
        return cast(R, total), carried

    def map(self, work: Callable[[B, S, Any], R], state: S, own: Own = None) -> Iterator[R]:
        """Yield the answer of each block: see `Executor`."""
        carried = [None] * len(self.blocks) if own is None else own

        def answer(number: int) -> R:
            return work(self.blocks[number], state, carried[number])

        numbers = range(len(self.blocks))
        return in_threads(answer, numbers) if self.many_threads else map(answer, numbers)

    def derive(
        self,
        work: Callable[[B, S], Executor[C]],
        state: S,
        *,
        consume: bool = False,  # noqa: ARG002 - the caller holds the blocks
        here: Callable[[Index], Executor[C]] | None = None,  # noqa: ARG002 - all are here
    ) -> Executor[C]:
        """Return the result of ``work`` on the only block: see `Executor`."""
        (block,) = self.blocks
        return work(block, state)

    def each(self, work: Callable[[B], None]) -> None:
        """Run ``work``, which returns nothing, on every block."""
        for _ in self.map(lambda block, state, own: work(block), None):  # noqa: ARG005
            pass


def of_rows(work: Callable[[slice], Float], n_rows: int, at_once: int) -> Float:
    """Return a number for each row, computed ``at_once`` rows at a time."""
    found = np.empty(n_rows)

    def fill(some: slice) -> None:
        found[some] = work(some)

    ThreadExecutor([slice(at, at + at_once) for at in range(0, n_rows, at_once)]).each(fill)
    return found


@dataclass
class SumTuple:
    """Several sums at once."""

    parts: list[Any]

    def __init__(self, *parts: object) -> None:
        self.parts = list(parts)

    def __iadd__(self, other: "SumTuple") -> "SumTuple":
        self.parts = [_add(first, second) for first, second in zip(self, other, strict=True)]
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(self.parts)


class _ThreadState(threading.local):
    """Whether a thread is in the pool, and its scratch array."""

    is_of_pool = False
    array: Float = np.empty(0)


_own = _ThreadState()


class _Limit:
    """The limit of BLAS threads, one per process: set by the first thread, reset by the last."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Reset the limit, in a process without the threads that used it."""
        self._lock = threading.Lock()
        self._inside = 0
        self._limits: Any = None

    def enter(self) -> None:
        with self._lock:
            if not self._inside:
                self._limits = _controller().limit(limits=1, user_api="blas")
            self._inside += 1

    def leave(self) -> None:
        with self._lock:
            self._inside = max(self._inside - 1, 0)
            if not self._inside and self._limits is not None:
                self._limits.restore_original_limits()
                self._limits = None


_limit = _Limit()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread: with small matrices, its threads mostly wait for each other."""
    _limit.enter()
    try:
        yield
    finally:
        _limit.leave()


def in_threads(work: Callable[[T], R], blocks: Iterable[T]) -> Iterator[R]:
    """Yield the results of blocks in order, using a thread per core; a worker runs them itself."""
    blocks = iter(blocks)
    first = list(islice(blocks, 2))
    if len(first) < 2:
        yield from map(work, first)
        return
    with one_blas_thread():
        if n_cores() < 2 or _own.is_of_pool:
            yield from map(work, chain(first, blocks))
        else:
            yield from _in_pool(_pool(), work, chain(first, blocks))


def _in_pool(pool: ThreadPoolExecutor, work: Callable[[T], R], blocks: Iterable[T]) -> Iterator[R]:
    waiting: deque[Future[R]] = deque()
    try:
        for block in blocks:
            waiting.append(pool.submit(work, block))
            if len(waiting) > _AHEAD * n_cores():
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()
        wait(waiting)


@contextmanager
def in_this_thread() -> Iterator[None]:
    """Run all work in this thread, since the others are busy with other blocks."""
    before = _own.is_of_pool
    _own.is_of_pool = True
    try:
        yield
    finally:
        _own.is_of_pool = before


def scratch(shape: tuple[int, ...]) -> Float:
    """Return this thread's scratch array, undefined: allocating costs more than filling it."""
    size = math.prod(shape)
    if _own.array.size < size:
        _own.array = np.empty(size)
    return _own.array[:size].reshape(shape)


def n_cores() -> int:
    """Return how many cores this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(
        n_cores(), "likeminds", initializer=lambda: setattr(_own, "is_of_pool", True)
    )


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    # Finding the libraries takes milliseconds, limiting them microseconds.
    return ThreadpoolController()


def _start_anew() -> None:
    """Reset state that a fork does not copy: threads, and holders of locks."""
    _limit.forget()
    _pool.cache_clear()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_start_anew)
