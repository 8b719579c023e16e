"""The answers of visits on disk: a fit that was interrupted goes on where it was.

Learning is a function of what visits answer. So these are what is written, one small file for
each, whole or not at all; a fit that is started again gets them from there, in the same order, as
long as it asks the same, and visits people only from then on. What people keep between visits is
written by the workers, one file for each shard, so that the folder is one that all of them see. It
is deleted when nobody can ask for it any more.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from likeminds._util.atomic_files import write_whole
from likeminds.cluster.checkpoint_codec import from_bytes, mark_of, to_bytes

_HEADER = "fit.json"


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
    n_noted : int
        How many answers are written.
    """

    folder: Path | None = None
    every: int = 1
    resume: bool = False
    replayed: int = 0
    n_noted: int = 0
    _left: list[Path] = field(default_factory=list)
    _pending: list[bytes] = field(default_factory=list)
    _unwanted: list[str] = field(default_factory=list)

    def open(self, about: Mapping[str, Any]) -> None:
        """Begin a fit, or go on with one: it has to be about the same."""
        self.replayed = self.n_noted = 0
        self._left, self._pending, self._unwanted = [], [], []
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        header, text = self.folder / _HEADER, json.dumps(about, sort_keys=True)
        there = sorted(self.folder.glob("visit-*.npz"))
        if self.resume and header.exists():
            if header.read_text() != text:
                raise ValueError(
                    f"The checkpoint in {self.folder} is of another fit (other data, or other "
                    "parameters of the ranker): resume that one, or give another folder."
                )
            self._left = there
            return
        for file in [*there, *self.folder.glob("own-*.npz")]:
            file.unlink()
        write_whole(header, text.encode())

    def replay(self, asked: Any) -> Any:
        """Return the next answer, if it was to the same question; None if there is none."""
        if not self._left:
            return None
        answer, texts = from_bytes(self._left[0].read_bytes())
        if texts["mark"] != mark_of(asked):
            for file in self._left:  # from here on, it is asked something else
                file.unlink()
            self._left = []
            return None
        del self._left[0]
        self.n_noted += 1
        self.replayed += 1
        return answer

    def note(self, asked: Any, answer: Any, write: Callable[[], None]) -> None:
        """Write an answer down, from time to time.

        Parameters
        ----------
        asked, answer : object
            What was asked, and the sum of what came back.
        write : callable
            Lets workers write what their people keep.
        """
        if self.folder is None:
            return
        self._pending.append(to_bytes(answer, mark=mark_of(asked)))
        if len(self._pending) < self.every:
            return
        unwanted, self._unwanted = self._unwanted, []
        write()
        for one in self._pending:
            write_whole(self.folder / f"visit-{self.n_noted:06d}.npz", one)
            self.n_noted += 1
        self._pending = []
        for file in unwanted:
            Path(file).unlink(missing_ok=True)

    def own_file(self, visit: int, shard: int) -> str:
        """Return the name of the file with what a shard's people keep after a visit."""
        assert self.folder is not None
        return str(self.folder / f"own-{visit:06d}-{shard:05d}.npz")

    def forget(self, visit: int, n_shards: int) -> None:
        """Nobody will ask for what people kept after a visit; its files go with the next note."""
        if self.folder is not None:
            self._unwanted += [self.own_file(visit, shard) for shard in range(n_shards)]


def write_own(visited: tuple[Any, Any], file: str) -> None:
    """Write what the blocks of a shard keep, whole or not at all."""
    write_whole(Path(file), to_bytes(visited[1]))


def read_own(file: str) -> tuple[None, Any]:
    """Return what `write_own` wrote, as a visit would return it."""
    return None, from_bytes(Path(file).read_bytes())[0]
