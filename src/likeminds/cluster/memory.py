"""Memory that workers return to the system after a shuffle.

Arrow's pool and the C library keep freed memory; after a shuffle it can be several times the data.
"""

import ctypes
import sys
from contextlib import suppress
from typing import Any

import pyarrow as pa

from likeminds._util.lazy_imports import require

# Seconds to wait until all have given back.
_PATIENCE = 5


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
