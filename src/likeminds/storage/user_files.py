"""Separate files with a model's users, read on demand.

A model of very many users is a folder with a main file (card, prior and index of ids) and files of
users. The main file lists the files of users with checksums, so files of two models cannot be
mixed. It is written last, so an interrupted save keeps the previous model.
"""

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeminds._util.array_types import IdArray, Index
from likeminds._util.lazy_rows import LazyIds, LazyRows
from likeminds.data.identifiers import as_objects
from likeminds.rankers.capabilities import ReadableModel
from likeminds.storage.safetensors import (
    ArrayFile,
    ModelFileError,
    all_finite,
    tag,
    untag,
    write_arrays,
)

USERS = "users_"
# The most files open at a time; each takes a file descriptor.
_OPEN = 200
_ABOUT = "likeminds-people"
# The suffix of the array with the ends of ids in the array of bytes.
ENDS = "/ends"
_HASH_BYTES = 8


@dataclass(frozen=True)
class UserFile:
    """One file of users: its name, the checksum of its header, and the format of ids."""

    name: str
    n_users: int
    checksum: str
    kind: str


@dataclass(frozen=True)
class WrittenFile:
    """A file of users, hashes of their ids, and type and shape of each array without its rows."""

    file: UserFile
    hashes: NDArray[np.uint64]
    forms: dict[str, tuple[str, tuple[int, ...]]]


def write_users(target: Path, users: IdArray, arrays: Mapping[str, NDArray[Any]]) -> WrittenFile:
    """Write some users and their rows of arrays to a file, atomically."""
    kind = kind_of(users)
    plain = {
        name: np.asarray(values).astype(values.dtype.newbyteorder("<"), copy=False)
        for name, values in arrays.items()
    }
    wrong = next((name for name, values in plain.items() if not all_finite(values)), None)
    if wrong is not None:
        raise ValueError(
            f"{wrong} has NaN or infinite numbers, so nothing was saved. Check the training data "
            "for extreme values, and fit again."
        )
    about = json.dumps({"people": len(users), "kind": kind})
    write_arrays(target, plain | to_arrays(users, USERS, kind), {_ABOUT: about})
    checksum = ArrayFile(target, header_only=True).metadata["checksum"]
    forms = {name: (values.dtype.str, values.shape[1:]) for name, values in plain.items()}
    forms[USERS] = (users.dtype.str if kind == "number" else "|O", ())
    file = UserFile(target.name, len(users), checksum, kind)
    return WrittenFile(file, hashes_of(users.tolist()), forms)


class UserFiles:
    """The files of users of one model, opened on demand.

    ``hashes`` has sorted hashes of ids, and ``order`` the positions of their users. ``ends`` are
    the positions after the last user of each file.
    """

    def __init__(
        self,
        folder: Path,
        files: Sequence[UserFile],
        hashes: NDArray[np.uint64],
        order: NDArray[Any],
    ) -> None:
        self.folder, self.files = folder, tuple(files)
        self.hashes, self.order = hashes, order
        self.ends = np.cumsum([one.n_users for one in files], dtype=np.intp)
        self._opened: OrderedDict[int, ArrayFile] = OrderedDict()
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self.files)

    @property
    def n_users(self) -> int:
        """The number of users."""
        return int(self.ends[-1]) if len(self.ends) else 0

    def slice_of(self, number: int) -> slice:
        """Return the positions of the users of a file."""
        return slice(int(self.ends[number]) - self.files[number].n_users, int(self.ends[number]))

    def array(self, number: int, name: str) -> NDArray[Any]:
        """Return a mapped array, checked on first use; copy its rows, as the file may change."""
        with self._lock:
            file = self.opened(number)
            file.check_unchanged()
            first = not file.was_read(name)
            with file.errors_of_content():
                found = file.array(name)
                if first and not all_finite(found):
                    raise file.not_finite(name)
            if first:  # the check has read all rows, but few are needed
                file.let_go()
            return found

    def opened(self, number: int) -> ArrayFile:
        """Open a file; raise if it is damaged or belongs to another model."""
        with self._lock:
            if number not in self._opened:
                self._opened[number] = self._open(number)
            self._opened.move_to_end(number)
            while len(self._opened) > _OPEN:
                self._opened.popitem(last=False)
            return self._opened[number]

    def _open(self, number: int) -> ArrayFile:
        listed = self.files[number]
        path = self.folder / listed.name
        if not path.is_file():
            raise ModelFileError(
                f"{self.folder} lacks the file {listed.name} with {listed.n_users:,} users. If the "
                "model was replaced since it was loaded, load it again; else save it again."
            )
        file = ArrayFile(path, mapped=True)
        file.check_header()
        if file.metadata["checksum"] != listed.checksum:
            raise ModelFileError(
                f"{path} has users of another model than {self.folder}: files of two models were "
                "mixed. Save the model again."
            )
        return file

    def check(self) -> None:
        """Read and check all files, one after the other."""
        for number in range(len(self)):
            for name in self.opened(number).names:
                self.array(number, name)


class StoredRows(LazyRows):
    """A learned array with a row per user, in the files of users."""

    def __init__(self, files: UserFiles, name: str, dtype: str, shape: Sequence[int]) -> None:
        self.files, self.name = files, name
        self.dtype, self.shape = np.dtype(dtype), (files.n_users, *shape)

    def __repr__(self) -> str:
        size = " x ".join(str(size) for size in self.shape)
        return f"{self.name} ({size}) in {len(self.files)} files of {self.files.folder}"

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Return the rows from ``start`` to ``stop``."""
        first, last = np.searchsorted(self.files.ends, [start, stop - 1], side="right").tolist()
        parts = []
        for number in range(first, last + 1) if stop > start else ():
            rows = self.files.slice_of(number)
            own = slice(max(start, rows.start) - rows.start, min(stop, rows.stop) - rows.start)
            parts.append(self._rows(number, own))
        if len(parts) == 1:
            return parts[0]
        return np.concatenate([np.empty((0, *self.shape[1:]), self.dtype), *parts])

    def pick(self, places: Index) -> NDArray[Any]:
        """Return the rows at some positions."""
        found = np.empty((len(places), *self.shape[1:]), self.dtype)
        numbers = np.searchsorted(self.files.ends, places, side="right")
        for number in np.unique(numbers).tolist():
            in_file = numbers == number
            found[in_file] = self._some(number, places[in_file] - self.files.slice_of(number).start)
        return found

    def _rows(self, number: int, own: slice) -> NDArray[Any]:
        return self.files.array(number, self.name)[own].copy()

    def _some(self, number: int, own: Index) -> NDArray[Any]:
        return self.files.array(number, self.name)[own]


class StoredIds(StoredRows, LazyIds):
    """Ids of users, in the files of users; looked up in the index of the model."""

    @cached_property
    def places(self) -> "PlacesById":
        """The position of each user."""
        return PlacesById(self)

    def sample(self, n: int) -> Index:
        """Return the positions of the n users whose ids have the smallest hashes."""
        return np.sort(self.files.order[:n].astype(np.intp))

    def types(self) -> set[type]:
        """Return the Python types of the ids."""
        kinds = {one.kind for one in self.files.files}
        if "json" in kinds:
            return set(map(type, self))
        return {str if kind == "text" else type(self[0].item()) for kind in kinds}

    def _rows(self, number: int, own: slice) -> IdArray:
        kind, content = self.files.files[number].kind, self.files.array(number, self.name)
        if kind == "number":
            return content[own].astype(self.dtype)
        ends = self.files.array(number, self.name + ENDS)
        before = ends[own.start - 1 : own.start] if own.start else np.zeros(1, np.int64)
        cuts = np.concatenate([before, ends[own]])
        return from_arrays(content, cuts, kind)

    def _some(self, number: int, own: Index) -> IdArray:
        found = np.empty(len(own), self.dtype)
        for row, place in enumerate(own.tolist()):
            found[row] = self._rows(number, slice(place, place + 1))[0]
        return found


class PlacesById(Mapping[Hashable, int]):
    """The positions of users by id: searches the sorted hashes, then compares the id."""

    def __init__(self, ids: StoredIds) -> None:
        self._ids = ids

    def __getitem__(self, one: Hashable) -> int:
        hashed = hashes_of([one])[0]
        hashes = self._ids.files.hashes
        first, last = (np.searchsorted(hashes, hashed, side=side) for side in ("left", "right"))
        for place in self._ids.files.order[first:last].tolist():
            if self._ids[place] == one:
                return int(place)
        raise KeyError(one)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)


def user_files_of(model: ReadableModel) -> UserFiles | None:
    """Return the files of a ranker's users; None if they are in memory."""
    users = model.users_ if USERS in model._fitted_names() else None
    return users.files if isinstance(users, StoredIds) else None


def kind_of(ids: IdArray) -> str:
    """Return the format of ids: numbers, texts, or JSON (tuples, and mixed types)."""
    if ids.dtype.kind in "iufb":
        return "number"
    return "text" if all(type(one) is str for one in ids.tolist()) else "json"


def to_arrays(ids: IdArray, name: str, kind: str) -> dict[str, NDArray[Any]]:
    """Return ids as arrays."""
    if kind == "number":
        return {name: ids.astype(ids.dtype.newbyteorder("<"), copy=False)}
    try:
        texts = [_text(one, kind).encode() for one in ids.tolist()]
    except (TypeError, UnicodeEncodeError) as error:
        raise TypeError(
            f"{name} has ids that cannot be saved: {error}. Use numbers, texts or tuples."
        ) from error
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    return {name: np.frombuffer(b"".join(texts), dtype=np.uint8), name + ENDS: ends}


def from_arrays(content: NDArray[Any], ends: NDArray[np.int64] | None, kind: str) -> IdArray:
    """Return the ids in arrays or slices; ``ends`` has one entry more than ids."""
    if ends is None:
        return content
    whole = content[int(ends[0]) : int(ends[-1])].tobytes() if len(ends) else b""
    cuts = (ends - ends[0]).tolist()
    texts = [whole[a:b].decode() for a, b in pairwise(cuts)]
    return as_objects(texts if kind == "text" else [untag(json.loads(text)) for text in texts])


def hashes_of(ids: Iterable[Hashable]) -> NDArray[np.uint64]:
    """Return a number for each id, the same for equal ids of any type."""
    digests = b"".join(
        hashlib.blake2b(_mark(one).encode(), digest_size=_HASH_BYTES).digest() for one in ids
    )
    return np.frombuffer(digests, dtype="<u8")


def index_of(hashes: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], Index]:
    """Return sorted hashes and the positions of their ids."""
    order = np.argsort(hashes, kind="stable")
    return hashes[order], order


def _text(one: Hashable, kind: str) -> str:
    return str(one) if kind == "text" else json.dumps(tag(one))


def _mark(one: Hashable) -> str:
    """Return a text for an id; equal ids, and only these, have equal texts."""
    if isinstance(one, str):
        return "s" + one
    if isinstance(one, tuple):
        return "t" + json.dumps([_mark(part) for part in one])
    number = one.item() if isinstance(one, np.generic) else one
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    return f"n{int(number)}" if isinstance(number, bool | int) else f"n{number!r}"
