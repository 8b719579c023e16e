"""Checkpoints: the sums of passes over users on disk, from which an interrupted fit resumes.

A fit is a function of these sums, so each is written atomically to a small file, without pickle. A
resumed fit reads them in the same order, as long as its passes are the same. After the last one, it
visits users again. Workers write the states of blocks for the next pass, one file for each part,
which is deleted after its use.
"""

import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeminds._util.atomic_files import write_whole
from likeminds._util.map_reduce import SumTuple
from likeminds._util.per_user_arrays import CollectedRows
from likeminds.data.identifiers import as_objects
from likeminds.losses.rows import Rows
from likeminds.losses.statistics import ClassMoments, Statistics
from likeminds.mixed_model.item_effects.em_steps import ItemEffectSums
from likeminds.mixed_model.item_effects.item_responses import SparseItemSums
from likeminds.mixed_model.laplace import Moments, WarmStart
from likeminds.solvers.trust_region import BlockCurvature
from likeminds.solvers.variable_projection import CachedFit, Deviations
from likeminds.storage.safetensors import tag, untag

_HEADER, _ABOUT = "fit.json", "about"
# Classes of values in files, besides numbers, arrays, ids and lists of these.
_KINDS: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        *(Moments, WarmStart, ItemEffectSums, SparseItemSums, SumTuple, CollectedRows),
        *(Statistics, ClassMoments, Rows, CachedFit, Deviations, BlockCurvature),
    )
}


@dataclass
class Journal:
    """The sums of passes, in their order, written to ``folder``.

    ``replayed`` counts the sums read from there, ``n_noted`` all sums there.
    """

    folder: Path | None = None
    resume: bool = False
    replayed: int = 0
    n_noted: int = 0
    _to_replay: list[Path] = field(default_factory=list)
    _obsolete: list[Path] = field(default_factory=list)

    def open(self, about: Mapping[str, object]) -> None:
        """Begin a fit, or resume one with the same data and parameters."""
        self.replayed = self.n_noted = 0
        self._to_replay, self._obsolete = [], []
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        header, text = self.folder / _HEADER, json.dumps(about, sort_keys=True)
        there = sorted(self.folder.glob("visit-*.npz"))
        if self.resume and header.exists():
            if header.read_text() != text:
                raise ValueError(
                    f"The checkpoint in {self.folder} is from another fit, with other data or "
                    "parameters: resume that one, or pass another folder."
                )
            self._to_replay = there
            return
        for file in [*there, *self.folder.glob("own-*.npz")]:
            file.unlink()
        write_whole(header, text.encode())

    def replay(self, request: object) -> Any:
        """Return the next sum, if the request is the same; None if there is none."""
        if not self._to_replay:
            return None
        answer, texts = from_bytes(self._to_replay[0].read_bytes())
        if texts["mark"] != mark_of(request):  # the passes differ from here on
            for file in self._to_replay:
                file.unlink()
            self._to_replay = []
            return None
        del self._to_replay[0]
        self.n_noted += 1
        self.replayed += 1
        return answer

    def note(self, request: object, answer: object) -> None:
        """Write a sum, and delete states of blocks that are no longer needed."""
        if self.folder is None:
            return
        obsolete, self._obsolete = self._obsolete, []
        content = to_bytes(answer, mark=mark_of(request))
        write_whole(self.folder / f"visit-{self.n_noted:06d}.npz", content)
        self.n_noted += 1
        for file in obsolete:
            file.unlink(missing_ok=True)

    def own_files(self, visit: int, n_parts: int) -> list[Path]:
        """Return the files of the states of each part's blocks after a pass, if any."""
        folder, parts = self.folder, range(n_parts)
        return [] if folder is None else [folder / f"own-{visit:06d}-{n:05d}.npz" for n in parts]

    def forget(self, visit: int, n_parts: int) -> None:
        """Delete the states of blocks after a pass when the next sum is written."""
        self._obsolete += self.own_files(visit, n_parts)


def to_bytes(value: object, **more: str) -> bytes:
    """Return a value as the content of an .npz file, with some texts.

    Examples
    --------
    >>> content = to_bytes([1.5, None, np.arange(3)], mark="x")
    >>> value, texts = from_bytes(content)
    >>> value, texts
    ([1.5, None, array([0, 1, 2])], {'mark': 'x'})
    """
    arrays: dict[str, NDArray[Any]] = {}
    about = {"value": _described(value, arrays), "texts": more}
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **(arrays | {_ABOUT: np.array(json.dumps(about))}))
    return content.getvalue()


def from_bytes(content: bytes) -> tuple[Any, dict[str, str]]:
    """Return the value that `to_bytes` wrote."""
    with np.load(io.BytesIO(content), allow_pickle=False) as found:
        about = json.loads(str(found[_ABOUT]))
        return _rebuilt(about["value"], found), about["texts"]


def _described(value: object, arrays: dict[str, NDArray[Any]]) -> object:
    """Return a value as JSON types; its arrays are appended to ``arrays``."""
    if isinstance(value, np.ndarray) and value.dtype == object:
        return {"ids": [tag(one) for one in value.tolist()]}
    if isinstance(value, np.ndarray):
        arrays[str(len(arrays))] = value
        return {"array": str(len(arrays) - 1)}
    if isinstance(value, list | tuple):
        return [_described(one, arrays) for one in value]
    if isinstance(value, FunctionType | type):
        return f"{value.__module__}.{value.__qualname__}"
    if is_dataclass(value):
        parts = {one.name: _described(getattr(value, one.name), arrays) for one in fields(value)}
        return {"kind": type(value).__name__, "parts": parts}
    return value.item() if isinstance(value, np.generic) else value


def _rebuilt(about: object, arrays: Mapping[str, NDArray[Any]]) -> Any:
    if isinstance(about, list):
        return [_rebuilt(one, arrays) for one in about]
    if not isinstance(about, dict):
        return about
    if "array" in about:
        return arrays[about["array"]]
    if "ids" in about:
        return as_objects([untag(one) for one in about["ids"]])
    new: Any = object.__new__(_KINDS[about["kind"]])
    for name, part in about["parts"].items():
        object.__setattr__(new, name, _rebuilt(part, arrays))
    return new


def mark_of(state: object) -> str:
    """Return a checksum of all numbers of a state.

    Examples
    --------
    >>> mark_of((1.0, np.arange(3))) == mark_of((1.0, np.arange(3)))
    True
    >>> mark_of((1.0, np.arange(3))) == mark_of((1.0, np.arange(4)))
    False
    """
    arrays: dict[str, NDArray[Any]] = {}
    digest = hashlib.sha256(repr(_described(state, arrays)).encode())
    for one in arrays.values():
        digest.update(f"{one.shape}{one.dtype}".encode() + np.ascontiguousarray(one).tobytes())
    return digest.hexdigest()
