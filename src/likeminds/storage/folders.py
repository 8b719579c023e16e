"""Create, replace and clean up folders of models with separate files of users."""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np

from likeminds._util.atomic_files import file_lock, make_folder
from likeminds._util.checks import listing
from likeminds._util.lazy_rows import LazyRows
from likeminds.rankers.capabilities import ReadableModel, arrays_of_users
from likeminds.rankers.ranker import Ranker
from likeminds.storage.user_files import (
    USERS,
    StoredIds,
    StoredRows,
    UserFiles,
    WrittenFile,
    index_of,
    write_users,
)

# The file with the card and the prior, in the folder of the users' files.
MAIN = "model.likeminds"
_PEOPLE = "people-*.safetensors"
_LOCK = ".lock"

M = TypeVar("M", bound=ReadableModel)


@dataclass
class UserFolder:
    """A folder being written: first the files of users, last the model's own file.

    ``mark`` is part of the names of new files. ``kept`` are files of the previous model. They stay
    until the next save, for processes that have that model open.
    """

    path: Path
    kept: set[str]
    mark: str = field(default_factory=lambda: secrets.token_hex(4))

    @property
    def main(self) -> Path:
        """The file with the card and the prior."""
        return self.path / MAIN

    def file(self, number: int) -> Path:
        """Return the path of a new file of users."""
        return self.path / f"people-{self.mark}-{number:05d}.safetensors"

    def clear(self, *, failed: bool) -> None:
        """Remove files of users that no model uses, or those of a failed save."""
        for file in self.path.glob(_PEOPLE):
            is_new = file.name.split("-")[1] == self.mark
            if is_new if failed else not is_new and file.name not in self.kept:
                with suppress(FileNotFoundError):
                    file.unlink()


@contextmanager
def open_folder(path: Path, kept: set[str]) -> Iterator[UserFolder]:
    """Write a model to a folder under a lock; after an error, delete all new files."""
    is_new = not path.exists()
    _refuse_other_folder(path)
    make_folder(path, "the model")
    lock = path / _LOCK
    lock.touch()
    with file_lock(lock):
        folder = UserFolder(path, kept)
        try:
            yield folder
        except BaseException:
            folder.clear(failed=True)
            if is_new and not folder.main.exists():
                lock.unlink()
                with suppress(OSError):
                    path.rmdir()
            raise
        folder.clear(failed=False)


def _refuse_other_folder(path: Path) -> None:
    if not path.is_dir() or (path / MAIN).is_file():
        return
    other = [one.name for one in path.iterdir() if one.name != _LOCK and not one.match(_PEOPLE)]
    if other:
        raise FileExistsError(
            f"The folder {path} has other files ({listing(sorted(other))}). Save the model to "
            "another folder."
        )


def write_user_files(model: Ranker, folder: UserFolder, users_per_file: int) -> Ranker:
    """Write the users of a ranker to files; return a copy that reads them from there."""
    users, arrays = model.users_, arrays_of_users(model)
    written = []
    for number, start in enumerate(range(0, len(users), users_per_file)):
        some = slice(start, start + users_per_file)
        own = {name: np.asarray(values[some]) for name, values in arrays.items()}
        written.append(write_users(folder.file(number), users[some], own))
    return with_users_in(model, folder.path, written)


def with_users_in(model: Ranker, folder: Path, written: Sequence[WrittenFile]) -> Ranker:
    """Return a copy of a ranker whose users are in the written files."""
    hashes, order = index_of(np.concatenate([one.hashes for one in written]))
    files = UserFiles(folder, [one.file for one in written], hashes, order)
    forms = joint_forms(written)
    stored: dict[str, LazyRows] = {
        name: (StoredIds if name == USERS else StoredRows)(files, name, *form)
        for name, form in forms.items()
    }
    return _replaced(model, stored)


def joint_forms(written: Sequence[WrittenFile]) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Return dtype and shape of each array of users; raise if they differ between files."""
    first = dict(written[0].forms)
    if any(one.forms[USERS] != first[USERS] for one in written):
        first[USERS] = ("|O", ())
    if any(one.forms | {USERS: first[USERS]} != first for one in written):
        raise ValueError(
            "Files of users have different arrays, so they belong to different models."
        )
    return first


def _replaced(model: M, stored: dict[str, LazyRows]) -> M:
    """Return a copy of a ranker, and of rankers in it, that reads users from files."""
    changed = copy(model)
    for name, rows in stored.items():
        setattr(changed, name, rows)
    for name, value in vars(model).items():
        if name.endswith("_") and isinstance(value, ReadableModel):
            setattr(changed, name, _replaced(value, stored))
    return changed
