"""The answers of visits on disk: a fit that was interrupted goes on where it was.

Learning is a function of what visits answer. So these are what is written, one small file for
each, whole or not at all; a fit that is started again gets them from there, in the same order, as
long as it asks the same, and visits people only from then on. What people keep between visits is
written by the workers, one file for each shard, so that the folder is one that all of them see.
"""

import hashlib
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from likeminds._support.files import write_whole
from likeminds.prior.posterior import Moments

_HEADER = "fit.json"
_MARK = "mark"
# What people keep is there for so many of the last times it was written.
_OWN_KEPT = 3


@dataclass
class Journal:
    """What visits answered, in their order.

    Attributes
    ----------
    folder : Path, optional
        Where it is written; without it, nothing is.
    every : int
        After how many visits.
    resume : bool
        Whether to go on with what is there.
    replayed : int
        How many answers came from there.
    n_shards, n_noted : int
        How many shards there are, and how many answers were written.
    """

    folder: Path | None = None
    every: int = 1
    resume: bool = False
    replayed: int = 0
    n_shards: int = 0
    n_noted: int = 0
    _left: list[Path] = field(default_factory=list)
    _pending: list[bytes] = field(default_factory=list)

    def open(self, about: Mapping[str, Any], n_shards: int) -> None:
        """Begin a fit, or go on with one: it has to be about the same."""
        self.replayed = self.n_noted = 0
        self._left, self._pending, self.n_shards = [], [], n_shards
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        header, text = self.folder / _HEADER, json.dumps(about, sort_keys=True)
        there = sorted(self.folder.glob("visit-*.npz"))
        kept = list(self.folder.glob("own-*.npz"))
        if self.resume and header.exists():
            if header.read_text() != text:
                raise ValueError(
                    f"The checkpoint in {self.folder} is of another fit (other data, or other "
                    "parameters of the ranker): resume that one, or give another folder."
                )
            self._left = there
            return
        for file in [*there, *kept]:
            file.unlink()
        write_whole(header, text.encode())

    def replay(self, state: Any) -> Any:
        """Return the next answer, if it was to the same question; None if there is none."""
        if not self._left:
            return None
        with np.load(io.BytesIO(self._left[0].read_bytes()), allow_pickle=False) as found:
            values = {name: found[name] for name in found.files}
        if str(values.pop(_MARK)) != mark_of(state):
            for file in self._left:  # from here on, it is asked something else
                file.unlink()
            self._left = []
            return None
        del self._left[0]
        self.n_noted += 1
        self.replayed += 1
        return Moments(
            **{name: value.item() if not value.ndim else value for name, value in values.items()}
        )

    def note(self, state: Any, answer: Any, write: Callable[[list[str]], None]) -> None:
        """Write an answer down, from time to time.

        Parameters
        ----------
        state, answer : object
            What was asked, and the sum of what came back.
        write : callable
            Lets workers write what their people keep, to one file for each shard.
        """
        if self.folder is None or type(answer) is not Moments:
            return
        content = io.BytesIO()
        values: dict[str, Any] = {one.name: getattr(answer, one.name) for one in fields(answer)}
        np.savez(content, **(values | {_MARK: mark_of(state)}))
        self._pending.append(content.getvalue())
        if len(self._pending) < self.every:
            return
        last = self.n_noted + len(self._pending)
        write([str(self._own_file(last, shard)) for shard in range(self.n_shards)])
        for one in self._pending:
            write_whole(self.folder / f"visit-{self.n_noted:06d}.npz", one)
            self.n_noted += 1
        self._pending = []
        for shard in range(self.n_shards):
            self._own_file(last - _OWN_KEPT * self.every, shard).unlink(missing_ok=True)

    def own_file(self, visit: int, shard: int) -> str | None:
        """Return the file with what a shard's people kept after a visit, if there is one."""
        if self.folder is None or not self._own_file(visit, shard).exists():
            return None
        return str(self._own_file(visit, shard))

    def _own_file(self, visit: int, shard: int) -> Path:
        assert self.folder is not None
        return self.folder / f"own-{visit:06d}-{shard:05d}.npz"


def write_own(visited: tuple[Any, Any], file: str) -> None:
    """Write what the blocks of a shard keep, whole or not at all."""
    content = io.BytesIO()
    kept = visited[1]
    there = {str(number): one for number, one in enumerate(kept) if one is not None}
    np.savez(content, n_blocks=len(kept), **there)
    write_whole(Path(file), content.getvalue())


def read_own(file: str) -> tuple[None, list[Any]]:
    """Return what `write_own` wrote, as a visit would return it."""
    with np.load(io.BytesIO(Path(file).read_bytes()), allow_pickle=False) as found:
        n_blocks = int(found["n_blocks"])
        there = set(found.files)
        return None, [found[str(n)] if str(n) in there else None for n in range(n_blocks)]


def mark_of(state: Any) -> str:
    """Return a checksum of all numbers of a state.

    Examples
    --------
    >>> mark_of((1.0, np.arange(3))) == mark_of((1.0, np.arange(3)))
    True
    >>> mark_of((1.0, np.arange(3))) == mark_of((1.0, np.arange(4)))
    False
    """
    digest = hashlib.sha256()
    _add(digest, state)
    return digest.hexdigest()


def _add(digest: Any, value: Any) -> None:
    digest.update(type(value).__name__.encode())
    if is_dataclass(value):
        for one in fields(value):
            _add(digest, getattr(value, one.name))
    elif isinstance(value, np.ndarray):
        digest.update(f"{value.shape}{value.dtype}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, tuple | list):
        for one in value:
            _add(digest, one)
    else:
        digest.update(repr(value).encode())
