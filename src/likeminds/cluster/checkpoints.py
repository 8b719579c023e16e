"""The answers of visits on disk: a fit that was interrupted goes on where it was.

Learning is a function of what visits answer. So these are what is written, one small file for
each, whole or not at all; a fit that is started again gets them from there, in the same order, as
long as it asks the same, and visits people only from then on.
"""

import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from likeminds._support.files import write_whole
from likeminds.prior.posterior import Moments

_HEADER = "fit.json"
_MARK = "mark"


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
    """

    folder: Path | None = None
    every: int = 1
    resume: bool = False
    replayed: int = 0
    _left: list[Path] = field(default_factory=list)
    _pending: list[bytes] = field(default_factory=list)
    _written: int = 0

    def open(self, about: Mapping[str, Any]) -> None:
        """Begin a fit, or go on with one: it has to be about the same."""
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
        for file in there:
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
        self._written += 1
        self.replayed += 1
        return Moments(
            **{name: value.item() if not value.ndim else value for name, value in values.items()}
        )

    def note(self, state: Any, answer: Any) -> None:
        """Write an answer down."""
        if self.folder is None or type(answer) is not Moments:
            return
        content = io.BytesIO()
        values: dict[str, Any] = {one.name: getattr(answer, one.name) for one in fields(answer)}
        np.savez(content, **(values | {_MARK: mark_of(state)}))
        self._pending.append(content.getvalue())
        if len(self._pending) >= self.every:
            for content_of_one in self._pending:
                write_whole(self.folder / f"visit-{self._written:06d}.npz", content_of_one)
                self._written += 1
            self._pending = []


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
