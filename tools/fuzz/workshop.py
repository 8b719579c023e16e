"""The folder that commands run in: tables and models as they should be."""

import csv
import logging
import socket
import threading
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import likeminds

# Seconds that a service may take for an answer.
SECONDS = 30.0


@dataclass
class Workshop:
    """A folder, what the model in it says, and what is started when it is needed."""

    folder: Path
    content: bytes
    items: np.ndarray
    scores: np.ndarray
    started: ExitStack = field(default_factory=ExitStack)

    @cached_property
    def address(self) -> tuple[str, int]:
        """The address of a service of a copy of the model, without keys, on this machine alone."""
        import uvicorn  # noqa: PLC0415 - an extra

        from likeminds.service.app import make_app  # noqa: PLC0415
        from likeminds.service.settings import Settings  # noqa: PLC0415

        state = self.folder / "service"
        state.mkdir()
        (state / "served.likeminds").write_bytes(self.content)
        settings = Settings(
            model=str(state / "served.likeminds"),
            state=str(state),
            database=f"sqlite:///{state / 'service.db'}",
            refresh_every=0.0,
            rate=0.0,
            seconds=SECONDS,
        )
        # Servers tell asyncio of connections that end in the middle.
        logging.getLogger("asyncio").setLevel(logging.CRITICAL)
        listening = socket.create_server(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(make_app(settings), log_level="critical"))
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()

        def end() -> None:
            server.should_exit = True
            thread.join(SECONDS)

        self.started.callback(end)
        return "127.0.0.1", int(listening.getsockname()[1])

    @cached_property
    def cluster(self) -> Any:
        """A Dask cluster of two workers in this process."""
        import distributed  # noqa: PLC0415 - an extra

        workers = {"n_workers": 2, "threads_per_worker": 1, "processes": False}
        client = distributed.Client(**workers, dashboard_address=None, silence_logs=50)
        return self.started.enter_context(client)

    @classmethod
    def in_folder(cls, folder: Path) -> "Workshop":
        """Write labels, features and a model."""
        rng = np.random.default_rng(0)
        items = rng.normal(size=(12, 3))
        rows = [
            (f"p{person}", f"i{item}", int(items[item, person % 3] + rng.normal() > 0))
            for person in range(6)
            for item in range(12)
        ]
        write_csv(folder / "labels.csv", ["person", "item", "label"], rows)
        features = [(f"i{item}", *values) for item, values in enumerate(items.tolist())]
        write_csv(folder / "features.csv", ["item", "a", "b", "c"], features)
        write_csv(folder / "few.csv", ["item", "label"], [("i1", 1), ("i2", 0)])
        (folder / "empty.csv").touch()
        (folder / "latin.csv").write_bytes("person,item,label\ncaf\xe9,i1,1\n".encode("latin-1"))
        (folder / "folder").mkdir()
        said = likeminds.Annotations(
            users=[row[0] for row in rows],
            items=[row[1] for row in rows],
            labels=[row[2] for row in rows],
            features=items,
            item_ids=[f"i{item}" for item in range(12)],
            feature_names=["a", "b", "c"],
            features_per="item",
        )
        model = likeminds.HierarchicalRanker().fit(said)
        path = folder / "model.likeminds"
        likeminds.save(model, path, with_data=True)
        return cls(folder, path.read_bytes(), items, all_scores(model, items))

    def mend(self) -> None:
        """Put the model back as it was."""
        (self.folder / "model.likeminds").write_bytes(self.content)


def all_scores(model: likeminds.HierarchicalRanker, items: np.ndarray) -> np.ndarray:
    """Return all users' scores of all items."""
    return np.array([model.decision_function(items, [p] * len(items)) for p in model.users_])


def write_csv(path: Path, header: list[str], rows: list[tuple[object, ...]]) -> None:
    """Write a table as Python's own writer does."""
    with path.open("w", newline="", encoding="utf-8", errors="surrogatepass") as file:
        csv.writer(file).writerows([header, *rows])
