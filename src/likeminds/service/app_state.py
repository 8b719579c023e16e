"""What a worker holds: the model, the database, and what it looks up often."""

import logging
import threading
import time
from contextlib import suppress
from pathlib import Path

from likeminds._util.atomic_files import FileVersion
from likeminds._util.text_format import mask
from likeminds.service.keys import Role
from likeminds.service.metrics import Metrics, log
from likeminds.service.model_generation import ModelGeneration
from likeminds.service.settings import Settings
from likeminds.service.store import LabelStore, StoreDownError, open_store
from likeminds.service.workers import SwapBarrier
from likeminds.storage.folders import main_file

# Seconds between two looks at the files and at the database: workers agree within a second.
_LOOK_EVERY = 0.3
# Seconds to wait for other workers to read a model before serving it without them.
_WAIT_FOR_OTHERS = 10.0


class AppState:
    """The current model and database of a worker; readers take ``served`` once per request.

    Attributes
    ----------
    settings : Settings
        How the service is set up.
    store : LabelStore
        The database.
    served : ModelGeneration
        The model; assigning another one is the swap, so that readers see one or the other.
    keys : dict
        The role, and the id, of each key, by its hash.
    forgotten : frozenset of str
        Hashes of the people who were deleted.
    metrics : Metrics
        What is counted.
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
        self.served = self._read(self._current(None)[0])
        self.peers = SwapBarrier(Path(settings.state) / "workers")
        self.peers.announce(self.served.generation)
        self.look_up()
        if self.is_down:  # without its keys it would not know whom to let in
            raise StoreDownError("The keys cannot be read.")

    @property
    def is_open(self) -> bool:
        """Whether anybody who can reach the service may do everything: without keys, locally."""
        return self.settings.local and not self.keys and not self.settings.visitors

    def start(self) -> None:
        """Keep looking for another model, other keys, and people who were deleted."""
        threading.Thread(target=self._watch, daemon=True, name="likeminds-watch").start()

    def close(self) -> None:
        """Stop looking, and close the database."""
        self._stop.set()
        self.peers.leave()
        self.store.close()

    def look_up(self) -> None:
        """Look up keys and deleted people; what was known stays if the database is away."""
        try:
            known = self.store.api_keys()
            keys = {one.key_hash: (Role[one.role.upper()], one.key_id) for one in known}
            self.forgotten = self.store.forgotten()
            self.keys = keys
            if self.is_down:
                log("database is back")
            self.is_down = False
        except StoreDownError as error:
            if not self.is_down:
                log("database is away", logging.ERROR, reason=str(error))
            self.is_down = True
        self.metrics.set("likeminds_database_up", float(not self.is_down))

    def look_at_model(self) -> bool:
        """Swap the model if its file was replaced, with the other workers; say whether it was."""
        path, version = self._current(self.served)
        if version in {self.served.version, self._refused}:
            return False
        if self._prepared is None or self._prepared.version != version:
            try:
                self._prepared = self._read(path)
            except Exception as error:
                # Whatever is wrong with a new model, the old one is served on.
                self._refused = version
                self.metrics.count("likeminds_swaps_refused_total")
                log("model refused", logging.ERROR, file=path.name, reason=mask(str(error)))
                return False
            self._since = time.monotonic()
            self.peers.announce(self._prepared.generation)
        late = time.monotonic() > self._since + _WAIT_FOR_OTHERS
        if not late and not self.peers.are_ready(self._prepared.generation):
            return False
        self.served, self._prepared = self._prepared, None
        self.metrics.count("likeminds_swaps_total")
        log("model swapped", file=path.name, generation=self.served.generation)
        return True

    def _read(self, path: Path) -> ModelGeneration:
        settings = self.settings
        pictures = None if settings.pictures is None else Path(settings.pictures)
        started = time.perf_counter()
        served = ModelGeneration.read(path, Path(settings.state), settings.items, pictures)
        self.metrics.set("likeminds_model_people", len(served.model.people_))
        self.metrics.set("likeminds_model_items", len(served.catalogue))
        self.metrics.set("likeminds_model_read_seconds", time.perf_counter() - started)
        return served

    def _current(self, served: ModelGeneration | None) -> tuple[Path, FileVersion]:
        """Return the refreshed file of the current model, or the model where there is none."""
        path = main_file(Path(self.settings.model))
        try:
            version = FileVersion.of(path.stat())
        except FileNotFoundError:
            if served is not None:  # between two models, or gone: what was read is there
                return served.path, served.version
            raise FileNotFoundError(f"There is no model at {self.settings.model}.") from None
        refreshed = self.settings.refreshed_from(version)
        with suppress(FileNotFoundError):
            return refreshed, FileVersion.of(refreshed.stat())
        return path, version

    def _watch(self) -> None:
        while not self._stop.wait(_LOOK_EVERY):
            try:
                self.look_up()
                self.look_at_model()
            except Exception as error:
                log("look failed", logging.ERROR, reason=type(error).__name__)
