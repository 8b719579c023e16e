"""Threads over blocks of people, with one BLAS thread each."""

import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from likeminds._support.arrays import Float

T = TypeVar("T")
R = TypeVar("R")

_kept = threading.local()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread, and restore the limit afterwards.

    The matrices of a person are small. Several threads gain little on them even on an idle
    machine; on a busy one they wait for each other, and the same work takes fifty times as
    long.
    """
    with _controller().limit(limits=1, user_api="blas"):
        yield


def in_threads(work: Callable[[T], R], blocks: Iterable[T]) -> Iterator[R]:
    """Yield the result of each block in order, computed by as many threads as there are cores.

    NumPy releases the global interpreter lock while it computes, so that threads suffice. Each
    has one BLAS thread, and the order makes sums the same whatever their number.
    """
    waiting = list(blocks)
    if len(waiting) < 2:
        yield from map(work, waiting)
        return
    with one_blas_thread(), ThreadPoolExecutor(_n_cores()) as pool:
        yield from pool.map(work, waiting)


def scratch(shape: tuple[int, ...]) -> Float:
    """Return this thread's scratch array in the shape asked for, its values undefined.

    Allocating memory costs the system more than filling it: large temporaries are reused.
    """
    size = math.prod(shape)
    if not hasattr(_kept, "array") or _kept.array.size < size:
        _kept.array = np.empty(size)
    array: Float = _kept.array[:size].reshape(shape)
    return array


def _n_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    # Finding the libraries takes milliseconds, limiting them microseconds.
    return ThreadpoolController()
