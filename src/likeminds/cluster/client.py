"""A cluster by its address, or one of worker processes on this machine."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from likeminds._util.lazy_imports import require

# Workers on this machine leave it to the fit what an interrupt means.
_PATIENT = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
_LOCAL = "local:"
# Dask lets workers return freed memory at once (64 KiB), which costs a fit much of its time.
_SPAWN = "distributed.nanny.pre-spawn-environ"
_ENVIRONMENT = {
    f"{_SPAWN}.MALLOC_TRIM_THRESHOLD_": 128 << 20,
    f"{_SPAWN}.MALLOC_MMAP_THRESHOLD_": 32 << 20,
}
# Seconds to wait for an answer.
_PATIENCE = "5s"


@contextmanager
def cluster_at(address: str) -> Iterator[Any]:
    """Connect to a cluster, and leave it as it was; one on this machine ends with its processes.

    Parameters
    ----------
    address : str
        That of a scheduler, ``tcp://host:8786``; or ``local:4``, for so many worker processes.
    """
    distributed = require("distributed", "A fit on a cluster", "dask")
    if address.startswith(_LOCAL):
        with _local(distributed, address) as client:
            yield client
        return
    try:
        client = distributed.Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ConnectionError(
            f"Nobody answers at {address}: start a scheduler there (dask scheduler) and workers "
            "(dask worker ADDRESS), or say local:4 for four processes on this machine."
        ) from error
    try:
        if not client.nthreads():
            raise ConnectionError(
                f"The scheduler at {address} has no workers: start some (dask worker {address})."
            )
        yield client
    finally:
        client.close()


@contextmanager
def _local(distributed: Any, address: str) -> Iterator[Any]:
    number = address.removeprefix(_LOCAL)
    if not number.isdecimal() or int(number) < 1:
        raise ValueError(
            f"local:N takes a number of worker processes, as in local:4; not {address!r}."
        )
    dask = require("dask", "A fit on a cluster", "dask")
    quietly = {"silence_logs": logging.CRITICAL, "dashboard_address": "127.0.0.1:0"}
    given = {"n_workers": int(number), "threads_per_worker": 1, "preload": [_PATIENT], **quietly}
    with (
        dask.config.set(_ENVIRONMENT),
        distributed.LocalCluster(**given) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client
