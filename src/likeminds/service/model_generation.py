"""The model that is served, one generation at a time."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from likeminds._util.atomic_files import FileVersion, file_lock, write_whole
from likeminds._util.lazy_rows import LazyIds
from likeminds.rankers.capabilities import NAMELESS, ReadableModel
from likeminds.service.catalogue import ItemCatalogue, UnknownNameError, read_catalogue
from likeminds.service.scoring import AttributeScorer
from likeminds.storage import safetensors
from likeminds.storage.models import load, main_file, read_card, read_users

# Bytes that are copied at a time.
_PIECE = 1 << 22


class NoAttributeError(ValueError):
    """A request without an attribute, to a model with several."""


@dataclass(frozen=True, eq=False)
class ModelGeneration:
    """One immutable generation of a model with its items."""

    path: Path
    version: FileVersion
    model: ReadableModel
    card: dict[str, Any]
    scorers: dict[str, AttributeScorer]

    @classmethod
    def read(cls, path: Path, state: Path, items: Path, pictures: Path | None) -> "ModelGeneration":
        """Read a model and its items; a damaged one raises an error before the first request.

        ``state`` is the folder for the service's own copy of a large model. ``items`` is the
        folder of items and texts that the model lacks.
        """
        path = main_file(path)
        version = FileVersion.of(path.stat())
        file = own_copy(path, state)
        # Users in files of their own are checked when a request needs them.
        model, card = load(file, verify=not read_users(file)), read_card(file)
        catalogue = read_catalogue(items, pictures, model)
        if catalogue is None:
            raise ValueError(
                f"{path} was saved without its training items: pass the items with --features "
                "or --images."
            )
        _ = catalogue.positions
        scorers = {
            name: AttributeScorer(name, ranker, catalogue)
            for name, ranker in model.rankers_.items()
        }
        for scorer in scorers.values():
            scorer.warm()
        return cls(path, version, model, card, scorers)

    @property
    def generation(self) -> str:
        """A short name of this version of the model."""
        return f"{self.version.modified:x}-{self.version.inode:x}"

    @property
    def catalogue(self) -> ItemCatalogue:
        """The items."""
        return next(iter(self.scorers.values())).catalogue

    @property
    def attributes(self) -> list[str]:
        """The names of the attributes; empty for a model without attributes."""
        return [name for name in self.scorers if name != NAMELESS]

    @cached_property
    def users(self) -> Mapping[str, Any]:
        """The ids of the model's users, by their text."""
        known = self.model.users_
        if isinstance(known, LazyIds):
            return IdsByText(known)
        return {str(one): one for one in known.tolist()}

    def scorer(self, attribute: str | None) -> AttributeScorer:
        """Return the scorer of an attribute, which is optional if there is only one."""
        if attribute is None:
            if len(self.scorers) > 1:
                raise NoAttributeError(f"Name an attribute, one of {', '.join(self.scorers)}.")
            return next(iter(self.scorers.values()))
        if attribute not in self.attributes:
            raise UnknownNameError("attribute", attribute, self.attributes)
        return self.scorers[attribute]


def own_copy(path: Path, state: Path) -> Path:
    """Return a file with the content of a model's file, which only the service writes to.

    A model that `load` maps into memory is copied to the state folder, since truncating a mapped
    file ends all processes that read it. Workers share the copy, which links to the users' files.
    """
    version = FileVersion.of(path.stat())
    if version.size <= safetensors.READ_AT_ONCE or path.parent == state:
        return path
    folder = state / f"served-{version.modified:x}-{version.inode:x}-{version.size:x}"
    copy = folder / path.name
    lock = state / "copy.lock"
    lock.touch()
    with file_lock(lock, lambda: None):
        if not copy.exists():
            for other in state.glob("served-*"):  # readers have the old file open
                shutil.rmtree(other, ignore_errors=True)
            folder.mkdir(parents=True)
            for one in read_users(path):
                (folder / one.name).symlink_to((path.parent / one.name).absolute())
            with path.open("rb") as file:
                write_whole(copy, iter(lambda: file.read(_PIECE), b""))
    return copy


class IdsByText(Mapping[str, Any]):
    """Ids in files, by their text, without a copy in memory."""

    def __init__(self, known: LazyIds) -> None:
        self._known = known

    def __getitem__(self, text: str) -> Any:
        if text in self._known.places:
            return text
        for kind in (int, float):  # a number that is written as a text
            with suppress(ValueError):
                number = kind(text)
                if str(number) == text and number in self._known.places:
                    return number
        raise KeyError(text)

    def __iter__(self) -> Iterator[str]:
        return map(str, self._known)

    def __len__(self) -> int:
        return len(self._known)
