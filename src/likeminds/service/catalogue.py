"""The items that are ranked: their ids, features, texts and pictures."""

import difflib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from likeminds._util.array_types import Bool, FloatArray, IdArray
from likeminds._util.atomic_files import write_whole
from likeminds._util.checks import listing
from likeminds.data.identifiers import as_id_array
from likeminds.rankers.capabilities import ReadableModel

# An unknown name is compared with at most so many names.
_COMPARED = 20_000
_ENDINGS = ("", ".png", ".jpg", ".jpeg", ".webp", ".gif")
_KINDS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}
# Bytes of the largest picture that is served.
_LARGEST = 20 << 20
_IDS, _FEATURES, _TEXTS = "ids.json", "features.npy", "texts.json"


class UnknownNameError(LookupError):
    """An unknown user, item, attribute or feature, with the closest names."""

    def __init__(self, what: str, name: str, known: Iterable[str]) -> None:
        self.closest = difflib.get_close_matches(name, list(islice(known, _COMPARED)))
        hint = f" Closest: {', '.join(self.closest)}." if self.closest else ""
        super().__init__(f"There is no {what} {name!r}.{hint}")


@dataclass(frozen=True, eq=False)
class ItemCatalogue:
    """Items by id: requests have texts of ids, the model has its own ids.

    ``texts`` maps an id, as text, to the item's title or text. ``pictures`` is a folder of
    pictures that are named after the ids.
    """

    ids: IdArray
    features: FloatArray
    texts: Mapping[str, str] = field(default_factory=dict)
    pictures: Path | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def names(self) -> list[str]:
        """The ids as texts."""
        return [str(one) for one in self.ids.tolist()]

    @cached_property
    def binary(self) -> Bool:
        """Which features have only the values 0 and 1."""
        return np.asarray(((self.features == 0) | (self.features == 1)).all(axis=0))

    @cached_property
    def positions(self) -> dict[str, int]:
        """The position of each item, by the text of its id."""
        where = {name: place for place, name in enumerate(self.names)}
        if len(where) < len(self.ids):
            twice = [name for name, times in Counter(self.names).items() if times > 1]
            raise ValueError(
                f"Several items have the same id as text: {listing(twice)}. Rename them."
            )
        return where

    def position(self, name: str) -> int:
        """Return the position of an item; an unknown one raises `UnknownNameError`."""
        found = self.positions.get(name)
        if found is None:
            raise UnknownNameError("item", name, self.positions)
        return found

    def facts(self, place: int) -> dict[str, Any]:
        """Return an item's id, its text, if any, and whether there is a picture."""
        name = self.names[place]
        picture = self.picture_of(name) is not None
        return {"item": name, "text": self.texts.get(name), "picture": picture}

    def picture_of(self, name: str) -> Path | None:
        """Return the file of an item's picture, inside the folder after links are resolved."""
        if self.pictures is None or "\0" in name or not name:
            return None
        folder = self.pictures.resolve()
        for ending in _ENDINGS:
            try:
                file = (folder / f"{name}{ending}").resolve(strict=True)
            except (OSError, RuntimeError, ValueError):
                continue
            if file.is_relative_to(folder) and file.is_file():
                return file
        return None


def read_picture(file: Path) -> tuple[bytes, str] | None:
    """Return the content and the media type of a picture; None for other or too large files."""
    if file.stat().st_size > _LARGEST:
        return None
    content = file.read_bytes()
    kind = next((kind for start, kind in _KINDS.items() if content.startswith(start)), None)
    return None if kind is None else (content, kind)


def write_catalogue(
    folder: Path, ids: IdArray, features: FloatArray, texts: Mapping[Any, str]
) -> None:
    """Write items for the workers of a service, which map the features into memory."""
    write_texts(folder, texts)
    plain = [one.item() if isinstance(one, np.generic) else one for one in ids.tolist()]
    scratch = folder / f"new-{_FEATURES}"
    np.save(scratch, features)
    scratch.replace(folder / _FEATURES)
    write_whole(folder / _IDS, json.dumps(plain).encode())


def write_texts(folder: Path, texts: Mapping[Any, str]) -> None:
    """Write the texts of items whose features are in the model."""
    folder.mkdir(parents=True, exist_ok=True)
    named = {str(item): str(text) for item, text in texts.items()}
    write_whole(folder / _TEXTS, json.dumps(named).encode())


def read_catalogue(
    folder: Path, pictures: Path | None, model: ReadableModel
) -> ItemCatalogue | None:
    """Read the written items, or the model's own; None if there are neither.

    Written texts replace the model's names of items.
    """
    file = folder / _TEXTS
    texts = {str(item): name for item, name in model.item_names.items()}
    texts |= json.loads(file.read_text()) if file.exists() else {}
    if (folder / _IDS).exists():
        ids = as_id_array(json.loads((folder / _IDS).read_text()), "items")
        features = np.load(folder / _FEATURES, mmap_mode="r", allow_pickle=False)
        return ItemCatalogue(ids, features, texts, pictures)
    own = model.training_items()
    return None if own is None else ItemCatalogue(*own, texts, pictures)
