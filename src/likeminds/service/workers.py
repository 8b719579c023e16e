"""Processes that share a port, a mapped model, and the memory of all that they import."""

import gc
import logging
import multiprocessing
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import wait
from types import FrameType
from typing import Any

from likeminds.service.metrics import log

# Seconds between the end of a worker and the start of another: one that cannot start does not
# keep the machine busy.
_PAUSE = 1.0
# Seconds in which a worker may end what it does.
_PATIENCE = 10.0

Serve = Callable[[socket.socket], None]


class Workers:
    """Several processes that do the same; one that ends is replaced.

    They are forked from a process that has imported the service and done nothing else, so that
    code, and what libraries make at their import, is in memory once.

    Parameters
    ----------
    serve : callable, by its module's name
        What a worker does, with the socket that all of them listen on.
    listening : socket
        That socket.
    n_workers : int
        How many.
    """

    def __init__(self, serve: Serve, listening: socket.socket, n_workers: int) -> None:
        can_fork = "forkserver" in multiprocessing.get_all_start_methods()
        self._context: Any = multiprocessing.get_context("forkserver" if can_fork else "spawn")
        if can_fork:
            self._context.set_forkserver_preload([f"{__package__}.preloaded"])
        self._serve, self._listening = serve, listening
        self._ending = threading.Event()
        self._running = [self._start() for _ in range(n_workers)]

    def run(self) -> None:
        """Replace workers that end, until a signal ends them all."""
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
        arguments = self._serve, self._listening
        process = self._context.Process(target=_work, args=arguments, daemon=False)
        process.start()
        return process

    def _end(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self._ending.set()


def share_memory() -> None:
    """Make all objects that are there permanent: collecting garbage would copy their pages."""
    gc.collect()
    gc.freeze()


def _work(serve: Serve, listening: socket.socket) -> None:
    threading.Thread(target=_end_with_parent, daemon=True, name="likeminds-parent").start()
    serve(listening)


def _end_with_parent() -> None:
    """End when nobody is left who would end this process."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
