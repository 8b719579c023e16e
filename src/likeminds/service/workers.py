"""Worker processes that share a port, a mapped model, and the memory of their imports."""

import gc
import logging
import multiprocessing
import os
import secrets
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import wait
from pathlib import Path
from types import FrameType
from typing import Any

from likeminds._util.atomic_files import write_whole
from likeminds.service.metrics import log

# Imported once, before workers are forked; multiprocessing ignores a module that is missing.
PRELOADED = "likeminds.service.fork_preload"
# Seconds between the end of a worker and the start of another: one that cannot start does not
# keep the machine busy.
_PAUSE = 1.0
# Seconds in which a worker may end what it does.
_PATIENCE = 10.0

Serve = Callable[[socket.socket], None]


class Workers:
    """Several processes that serve on one socket; one that ends is replaced.

    They are forked from a process that has imported the service and done nothing else, so code,
    and what libraries make at their import, is in memory once.
    """

    def __init__(self, serve: Serve, listening: socket.socket, n_workers: int) -> None:
        can_fork = "forkserver" in multiprocessing.get_all_start_methods()
        self._context: Any = multiprocessing.get_context("forkserver" if can_fork else "spawn")
        if can_fork:
            self._context.set_forkserver_preload([PRELOADED])
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
        process = self._context.Process(target=_work, args=(self._serve, self._listening))
        process.start()
        return process

    def _end(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self._ending.set()


def share_memory() -> None:
    """Make all present objects permanent: collecting garbage would copy their pages."""
    gc.collect()
    gc.freeze()


def _work(serve: Serve, listening: socket.socket) -> None:
    threading.Thread(target=_end_with_parent, daemon=True, name="likeminds-parent").start()
    serve(listening)


def _end_with_parent() -> None:
    """End this process when its parent has ended."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


class SwapBarrier:
    """The generation that each worker is ready to serve, as files in a folder that they share."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._own = folder / f"{os.getpid()}-{secrets.token_hex(4)}"

    def announce(self, generation: str) -> None:
        """Note which generation of the model this worker is ready to serve."""
        with suppress(OSError):  # a full disk must not keep a worker from swapping
            write_whole(self._own, generation.encode())

    def leave(self) -> None:
        """Delete this worker's note."""
        with suppress(OSError):
            self._own.unlink()

    def are_ready(self, generation: str) -> bool:
        """Say whether all other workers that are alive are ready to serve a generation."""
        for file in self._folder.glob("*-*"):
            if file == self._own:
                continue
            if not _is_alive(file.name.partition("-")[0]):
                with suppress(OSError):
                    file.unlink()
                continue
            with suppress(OSError):
                if file.read_text() != generation:
                    return False
        return True


def _is_alive(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, ValueError):
        return False
    except OSError:  # another user's process
        pass
    return True
