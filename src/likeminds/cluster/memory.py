"""Memory that workers keep between the blocks of a visit, and what they give back afterwards.

Dask tells workers to give memory back to the system as soon as it is free
(``MALLOC_TRIM_THRESHOLD_``), which also makes the C library ask the system for every larger array.
Visits work on many blocks of a few megabytes, one after the other: to get and clear their memory
anew each time is a third of their time. So it is kept as long as a visit lasts.

What is free is not given back where something above it in the heap is still in use, nor what Arrow
keeps for itself: after the shuffle that can be several times what stays. So it is asked for.
"""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from threading import Lock
from typing import Any

import pyarrow as pa

from likeminds._util.lazy_imports import require

# What the C library calls its two limits, and what they are without any wish.
_TRIM, _MMAP = -1, -3
_LARGE, _USUAL = 32 << 20, 128 << 10
_ENVIRONMENT = "MALLOC_TRIM_THRESHOLD_"
# Seconds to wait until all have given back.
_PATIENCE = 5


@lru_cache(maxsize=1)
def _mallopt() -> Any:
    """Return the function that sets limits; None where there is none, or nobody trims."""
    if sys.platform != "linux" or not os.environ.get(_ENVIRONMENT, "").isdecimal():
        return None
    return getattr(ctypes.CDLL(None), "mallopt", None)


_lock, _inside = Lock(), [0]


@contextmanager
def kept_memory() -> Iterator[None]:
    """Keep memory that is freed, and give it back afterwards.

    Examples
    --------
    >>> with kept_memory():
    ...     sum(range(3))
    3
    """
    _enter(1)
    try:
        yield
    finally:
        _enter(-1)


def _enter(step: int) -> None:
    """Set the limits when the first one comes, and back when the last one goes."""
    mallopt = _mallopt()
    if mallopt is None:
        return
    with _lock:
        _inside[0] += step
        if step > 0 and _inside[0] == 1:
            mallopt(_MMAP, _LARGE)
            mallopt(_TRIM, 4 * _LARGE)
        elif _inside[0] == 0:
            mallopt(_MMAP, _USUAL)
            mallopt(_TRIM, int(os.environ[_ENVIRONMENT]))


def give_back() -> None:
    """Give memory that is free back to the system, as far as there is a way to.

    Examples
    --------
    >>> give_back()
    """
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def give_back_everywhere(client: Any) -> None:
    """Let all workers give back what is free, once they have let go of what nobody wants.

    It is a task like others, so that it comes after what they were told before. Nobody waits long
    for a worker that is lost in the meantime, or has much to do for others.
    """
    distributed = require("distributed", "A crowd on a cluster", "dask")
    waiting = [client.submit(give_back, workers=[one], pure=False) for one in client.nthreads()]
    with suppress(TimeoutError), client.as_current():  # it need not be everybody's client
        distributed.wait(waiting, timeout=_PATIENCE)
