"""Clocks: on shared machines, calls are compared in turns, not one after the other."""

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import TypeVar

from joblib import cpu_count
from threadpoolctl import threadpool_info

R = TypeVar("R")


def timed(work: Callable[[], R], clock: Callable[[], float] = time.perf_counter) -> tuple[R, float]:
    """Return the result of one call, and its seconds; `time.process_time` ignores other load."""
    start = clock()
    result = work()
    return result, clock() - start


def seconds(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the duration of one call."""
    return timed(work, clock)[1]


def in_turns(
    works: Mapping[str, Callable[[], object]],
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Return the median time of each, measured in turns after a warm-up round."""
    for work in works.values():
        work()
    rounds = [{name: seconds(work, clock) for name, work in works.items()} for _ in range(repeats)]
    return {name: median(times[name] for times in rounds) for name in works}


def n_cores() -> int:
    """Return how many cores this process may use."""
    return int(cpu_count())


def blas_threads() -> int:
    """Return the number of threads of BLAS."""
    pools = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    return max(pools, default=1)
