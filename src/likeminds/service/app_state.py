"""The state of a worker: the model, the database, and cached keys."""

import logging
import os
import secrets
import threading
import time
from contextlib import suppress
from pathlib import Path

from likeminds._util.atomic_files import FileVersion, write_whole
from likeminds._util.text_format import mask
from likeminds.service.database import StoreDownError
from likeminds.service.metrics import Metrics, log
from likeminds.service.model_generation import ModelGeneration
from likeminds.service.settings import Settings
from likeminds.service.store import LabelStore, Role, open_store
from likeminds.storage.models import main_file

# Seconds between checks of the files and of the database, so workers agree within a second.
_LOOK_EVERY = 0.3
# Seconds to wait for other workers to read a model before serving it without them.
_WAIT_FOR_OTHERS = 10.0


class AppState:
    """The current model and database of a worker.

    Assigning `current` swaps the model: each request reads it once. `keys` maps the hash of a key
    to its role and id. `forgotten` has the hashes of deleted users.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.store: LabelStore = open_store(settings.database)
        self.keys: dict[str, tuple[Role, str]] = {}
        self.forgotten: frozenset[str] = frozenset()
        self.is_down = False
        self._refused: FileVersion | None = None
        self._prepared: ModelGeneration | None = None
        self._since = 0.0
        self._stop = threading.Event()
        self.current = self._read(self._newest(None)[0])
        self.barrier = SwapBarrier(Path(settings.state) / "workers")
        self.barrier.announce(self.current.generation)
        self._look_up()  # the keys are needed to admit callers
        self.metrics.set("likeminds_database_up", 1.0)

    @property
    def is_open(self) -> bool:
        """Whether any local caller has full access: without keys, on loopback."""
        return self.settings.local and not self.keys and not self.settings.visitors

    def start(self) -> None:
        """Watch for another model, other keys, and deleted users, in the background."""
        threading.Thread(target=self._watch, daemon=True, name="likeminds-watch").start()

    def close(self) -> None:
        """Stop watching, and close the database."""
        self._stop.set()
        self.barrier.leave()
        self.store.close()

    def refresh_lookups(self) -> None:
        """Read keys and deleted users; keep the last ones while the database is down."""
        try:
            self._look_up()
            if self.is_down:
                log("database is up")
            self.is_down = False
        except StoreDownError as error:
            if not self.is_down:
                log("database is down", logging.ERROR, reason=str(error))
            self.is_down = True
        self.metrics.set("likeminds_database_up", float(not self.is_down))

    def _look_up(self) -> None:
        rows, self.forgotten = self.store.api_keys(), self.store.forgotten()
        self.keys = {row.key_hash: (Role[row.role.upper()], row.key_id) for row in rows}

    def swap_model(self) -> bool:
        """Swap a replaced model once all workers have read the new one; return whether it was."""
        path, version = self._newest(self.current)
        if version in {self.current.version, self._refused}:
            return False
        if self._prepared is None or self._prepared.version != version:
            try:
                self._prepared = self._read(path)
            except Exception as error:
                # If a new model raises any error, the old one is still served.
                self._refused = version
                self.metrics.count("likeminds_swaps_refused_total")
                log("model refused", logging.ERROR, file=path.name, reason=mask(str(error)))
                return False
            self._since = time.monotonic()
            self.barrier.announce(self._prepared.generation)
        late = time.monotonic() > self._since + _WAIT_FOR_OTHERS
        if not late and not self.barrier.are_ready(self._prepared.generation):
            return False
        self.current, self._prepared = self._prepared, None
        self.metrics.count("likeminds_swaps_total")
        log("model swapped", file=path.name, generation=self.current.generation)
        return True

    def _read(self, path: Path) -> ModelGeneration:
        settings = self.settings
        pictures = None if settings.pictures is None else Path(settings.pictures)
        started = time.perf_counter()
        read = ModelGeneration.read(path, Path(settings.state), settings.items, pictures)
        self.metrics.set("likeminds_model_users", len(read.model.users_))
        self.metrics.set("likeminds_model_items", len(read.catalogue))
        self.metrics.set("likeminds_model_read_seconds", time.perf_counter() - started)
        return read

    def _newest(self, current: ModelGeneration | None) -> tuple[Path, FileVersion]:
        """Return the refitted model's file, if there is one, else the model's."""
        path = main_file(Path(self.settings.model))
        try:
            version, refreshed = FileVersion.of(path.stat()), self.settings.refreshed
        except FileNotFoundError:
            if current is not None:  # being replaced, or deleted: keep the current one
                return current.path, current.version
            raise FileNotFoundError(f"There is no model at {self.settings.model}.") from None
        with suppress(FileNotFoundError):
            return refreshed, FileVersion.of(refreshed.stat())
        return path, version

    def _watch(self) -> None:
        while not self._stop.wait(_LOOK_EVERY):
            try:
                self.refresh_lookups()
                self.swap_model()
            except Exception as error:
                log("check failed", logging.ERROR, reason=type(error).__name__)


class SwapBarrier:
    """Files in a shared folder, which name the generation that each worker is ready to serve."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._own = folder / f"{os.getpid()}-{secrets.token_hex(4)}"

    def announce(self, generation: str) -> None:
        """Write which generation of the model this worker is ready to serve."""
        with suppress(OSError):  # workers also swap if the disk is full
            write_whole(self._own, generation.encode())

    def leave(self) -> None:
        """Delete this worker's file."""
        with suppress(OSError):
            self._own.unlink()

    def are_ready(self, generation: str) -> bool:
        """Return whether all other live workers are ready to serve a generation."""
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
