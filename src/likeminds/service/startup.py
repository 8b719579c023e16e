"""Start the service: in one process, or in several workers that share a port."""

import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from multiprocessing.connection import wait
from socket import socket
from types import FrameType
from typing import Any

from likeminds._util.lazy_imports import require
from likeminds.service.metrics import log, start_logging
from likeminds.service.settings import Settings, is_loopback
from likeminds.service.store import open_store

# The forkserver imports this module once, and workers inherit its memory.
PRELOADED = "likeminds.service.fork_preload"
# Seconds between the end of a worker and the start of another: if workers cannot start, the pause
# limits the load.
_PAUSE = 1.0
# Seconds for a worker to complete its requests.
_PATIENCE = 10.0

Serve = Callable[[socket], None]


def require_keys(host: str, database: str, *, visitors: bool) -> None:
    """Raise ValueError if other machines could call the service without keys."""
    if is_loopback(host) or visitors:
        return
    with closing(open_store(database)) as store:
        if store.api_keys():
            return
    raise ValueError(
        f"Without API keys, the service cannot listen on {host}, only on this machine: add a key "
        "with likeminds keys MODEL --add read, or admit visitors with --visitors."
    )


def listen(host: str, port: int) -> socket:
    """Return a socket on an address; for port 0, the system chooses a free one."""
    uvicorn = require("uvicorn", "The service", "serve")
    listening: socket = uvicorn.Config("", host=host, port=port, log_level="warning").bind_socket()
    return listening


def run(settings: Settings, listening: socket, workers: int) -> None:
    """Serve on a socket until a signal ends it."""
    start_logging()
    if workers == 1:
        serve_on(settings, listening)
    else:
        Workers(partial(serve_on, settings), listening, workers).run()


def serve_on(settings: Settings, listening: socket) -> None:
    """Serve on a socket, in this process."""
    uvicorn = require("uvicorn", "The service", "serve")
    from likeminds.service.app import make_app  # noqa: PLC0415 - keys need no FastAPI

    start_logging()
    config = uvicorn.Config(
        make_app(settings),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=5,
        limit_concurrency=1000,
    )
    uvicorn.Server(config).run([listening])


class Workers:
    """Several processes that serve on one socket; a process that ends is replaced.

    They are forked from a process that has only imported the service, so imported modules are in
    memory once.
    """

    def __init__(self, serve: Serve, listening: socket, n_workers: int) -> None:
        can_fork = "forkserver" in multiprocessing.get_all_start_methods()
        self._context: Any = multiprocessing.get_context("forkserver" if can_fork else "spawn")
        if can_fork:
            self._context.set_forkserver_preload([PRELOADED])
        self._serve, self._listening = serve, listening
        self._ending = threading.Event()
        self._running = [self._start() for _ in range(n_workers)]

    def run(self) -> None:
        """Replace workers that end, until a signal ends the service."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._end)
        while not self._ending.is_set():
            wait([one.sentinel for one in self._running], timeout=_PAUSE)
            for place, one in enumerate(self._running):
                if one.exitcode is not None and not self._ending.is_set():
                    log("worker ended", logging.ERROR, code=one.exitcode)
                    time.sleep(_PAUSE)
                    self._running[place] = self._start()
        for one in self._running:
            one.terminate()
        for one in self._running:
            one.join(_PATIENCE)
            if one.is_alive():
                one.kill()

    def _start(self) -> Any:
        process = self._context.Process(target=_work, args=(self._serve, self._listening))
        process.start()
        return process

    def _end(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self._ending.set()


def _work(serve: Serve, listening: socket) -> None:
    threading.Thread(target=_end_with_parent, daemon=True, name="likeminds-parent").start()
    serve(listening)


def _end_with_parent() -> None:
    """End this process when its parent has ended."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
