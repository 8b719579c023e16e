"""Clocks: on shared machines, calls are compared in turns, not one after the other."""

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import TypeVar

from joblib import cpu_count
from threadpoolctl import threadpool_info

R = TypeVar("R")


def timed(work: Callable[[], R]) -> tuple[R, float]:
    """Return the result of one call, and its seconds."""
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def seconds(work: Callable[[], object]) -> float:
    """Return how long one call takes."""
    return timed(work)[1]


def in_turns(works: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Return the median time of each, all measured in every round after one to warm up."""
    for work in works.values():
        work()
    rounds = [{name: seconds(work) for name, work in works.items()} for _ in range(repeats)]
    return {name: median(times[name] for times in rounds) for name in works}


def busy_seconds() -> float | None:
    """Return how long all cores together have been busy since the machine started (Linux)."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return None
    user, nice, system, _idle, _wait, *rest = map(int, stat.read_text().split()[1:9])
    return (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK")


def n_cores() -> int:
    """Return how many cores this process may use."""
    return int(cpu_count())


def blas_threads() -> int:
    """Return the number of threads of BLAS."""
    pools = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    return max(pools, default=1)
