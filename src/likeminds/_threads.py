"""Threads where they pay: over blocks of people, not inside small matrices."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run with one BLAS thread, and give back what there was.

    The matrices of a person are small. Several threads gain little on them even on an idle
    machine; on a busy one they wait for each other, and the same work takes fifty times as
    long.
    """
    with _controller().limit(limits=1, user_api="blas"):
        yield


def for_each(work: Callable[[T], None], blocks: Iterable[T]) -> None:
    """Do the work of each block, on all cores, with one BLAS thread each."""
    n_workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    with one_blas_thread(), ThreadPoolExecutor(n_workers) as pool:
        for _ in pool.map(work, blocks):
            pass


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    # Finding the libraries takes milliseconds, limiting them microseconds.
    return ThreadpoolController()
