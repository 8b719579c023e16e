"""Threads over blocks of users, made once, with one BLAS thread each."""

import math
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain, islice
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from likeminds._util.array_types import Float

T = TypeVar("T")
R = TypeVar("R")

# Results that may wait for their turn, for each thread: slow blocks delay no others, and results
# do not pile up.
_AHEAD = 8


class _ThreadState(threading.local):
    """Whether a thread is one of the pool, and its scratch array."""

    is_of_pool = False
    array: Float = np.empty(0)


_own = _ThreadState()


class _Limit:
    """The limit of BLAS threads, one per process: set by the first thread, reset by the last."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start anew, in a process that has none of the threads that were inside."""
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
    """Limit BLAS to one thread, and restore the limit afterwards.

    Several threads gain little on the small matrices of a user; on a busy machine they wait for
    each other, and the same work takes fifty times as long.
    """
    _limit.enter()
    try:
        yield
    finally:
        _limit.leave()


def in_threads(work: Callable[[T], R], blocks: Iterable[T]) -> Iterator[R]:
    """Yield the result of each block in order, computed by as many threads as there are cores.

    The order makes sums the same whatever the number of threads. Work that is done in a thread
    and asks for threads itself has that one.
    """
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
    """Do all work in this thread: the others have blocks of their own."""
    before = _own.is_of_pool
    _own.is_of_pool = True
    try:
        yield
    finally:
        _own.is_of_pool = before


def scratch(shape: tuple[int, ...]) -> Float:
    """Return this thread's scratch array in a shape, its values undefined.

    Allocating large temporaries costs more than filling them.
    """
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
    """Forget what a fork has not copied: threads, and who holds locks."""
    _limit.forget()
    _pool.cache_clear()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_start_anew)
