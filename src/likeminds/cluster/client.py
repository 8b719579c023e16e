"""Connections to a Dask cluster, futures of a fit, and the release of workers' memory."""

import ctypes
import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from likeminds._util.lazy_imports import require

R = TypeVar("R")
# Called as tell(what, done, total) to report progress.
Tell = Callable[[str, int, int], None]

# Workers on this machine ignore interrupts, which the fit handles.
_PRELOAD = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
_LOCAL = "local:"
# Dask's default returns freed memory at once (above 64 KiB), which takes much of a fit's time.
_SPAWN = "distributed.nanny.pre-spawn-environ"
_ENVIRONMENT = {
    f"{_SPAWN}.MALLOC_TRIM_THRESHOLD_": 128 << 20,
    f"{_SPAWN}.MALLOC_MMAP_THRESHOLD_": 32 << 20,
}
# The time to wait for a scheduler, and the seconds for workers to release memory.
_PATIENCE, _RELEASE_PATIENCE = "5s", 5


class Future(Protocol):
    """The methods of a result on the cluster that a fit uses."""

    result: Callable[[], Any]
    release: Callable[[], None]


class Client(Protocol):
    """The methods of `distributed.Client` that a fit uses."""

    submit: Callable[..., Future]
    gather: Callable[..., Any]
    compute: Callable[..., Future]
    run: Callable[..., dict[str, Any]]
    nthreads: Callable[[], dict[str, int]]
    as_current: Callable[[], AbstractContextManager[object]]


def release(futures: Iterable[Future | None]) -> None:
    """Release futures: the cluster drops tasks that have not started."""
    for one in futures:
        if one is not None:
            one.release()


def silent(what: str, done: int, total: int) -> None:
    """Report no progress."""
    del what, done, total


@dataclass
class FutureScope:
    """The futures of a fit on a cluster, which are released at its end.

    ``tell`` is called as ``tell(what, done, total)`` while results arrive.
    """

    client: Client
    tell: Tell = silent
    _made: list[Future] = field(default_factory=list, init=False)

    def submit(self, work: Callable[..., object], *given: object) -> Future:
        """Run a function on the cluster, without caching its result."""
        return self.client.submit(work, *given, pure=False)

    def make(self, work: Callable[..., object], *given: object) -> Future:
        """Compute a result that stays on the cluster until `release`."""
        self._made.append(self.submit(work, *given))
        return self._made[-1]

    def results(
        self, futures: Iterable[Future], what: str | None = None, *, direct: bool = False
    ) -> Iterator[Any]:
        """Yield results in order, and release each after its use; after an error, all of them.

        ``what`` is the name in reports of progress; ``direct`` takes large results straight from
        workers.
        """
        waiting = list(futures)
        try:
            for done, one in enumerate(waiting, start=1):
                yield self.client.gather(one, direct=True) if direct else one.result()
                one.release()
                if what is not None:
                    self.tell(what, done, len(waiting))
        finally:
            release(waiting)

    def release(self) -> None:
        """Release all futures."""
        release(self._made)
        self._made.clear()


def identity(given: R) -> R:
    """Return the argument: its future is sent to the cluster once, and all tasks share it."""
    return given


@contextmanager
def cluster_at(address: str) -> Iterator[Client]:
    """Connect to the scheduler at ``tcp://host:8786``, or start ``local:4`` worker processes."""
    distributed = require("distributed", "A fit on a cluster", "dask")
    if address.startswith(_LOCAL):
        with _local(distributed, address) as client:
            yield client
        return
    try:
        client = distributed.Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ConnectionError(
            f"There is no scheduler at {address}: start one (dask scheduler) and workers "
            "(dask worker ADDRESS), or pass local:4 for four processes on this machine."
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
def _local(distributed: ModuleType, address: str) -> Iterator[Client]:
    number = address.removeprefix(_LOCAL)
    if not number.isdecimal() or int(number) < 1:
        raise ValueError(
            f"local:N takes a number of worker processes, as in local:4; not {address!r}."
        )
    dask = require("dask", "A fit on a cluster", "dask")
    quietly = {"silence_logs": logging.CRITICAL, "dashboard_address": "127.0.0.1:0"}
    given = {"n_workers": int(number), "threads_per_worker": 1, "preload": [_PRELOAD]}
    with (
        dask.config.set(_ENVIRONMENT),
        distributed.LocalCluster(**given, **quietly) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


def release_memory() -> None:
    """Return free memory of Arrow and of the C library to the system.

    Examples
    --------
    >>> release_memory()
    """
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def release_memory_of_workers(client: Client) -> None:
    """Make all workers return free memory after their tasks, and wait a few seconds for them."""
    distributed = require("distributed", "Labels on a cluster", "dask")
    workers = client.nthreads()
    waiting = [client.submit(release_memory, workers=[one], pure=False) for one in workers]
    with suppress(TimeoutError), client.as_current():  # wait uses the default client
        distributed.wait(waiting, timeout=_RELEASE_PATIENCE)
