"""Answers of visits as arrays and a description, without pickling, and back."""

import hashlib
import io
import json
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeminds._util.map_reduce import SumTuple
from likeminds._util.per_user_arrays import CollectedRows
from likeminds.losses.rows import Rows
from likeminds.losses.statistics import ClassMoments, Statistics
from likeminds.mixed_model.item_effects.e_step import ItemEffectSums
from likeminds.mixed_model.item_effects.scatter_sums import SparseItemSums
from likeminds.mixed_model.laplace import Moments, WarmStart
from likeminds.solvers.trust_region import BlockCurvature
from likeminds.solvers.variable_projection import CachedFit, Deviations

# What may be in an answer, besides numbers, arrays and lists of such.
_KINDS: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        *(
            Moments,
            WarmStart,
            ItemEffectSums,
            SparseItemSums,
            SumTuple,
            CollectedRows,
            Statistics,
            ClassMoments,
            Rows,
        ),
        *(CachedFit, Deviations, BlockCurvature),
    )
}
_ABOUT = "about"


def to_bytes(value: Any, **more: str) -> bytes:
    """Return a value as the content of an .npz file, with some texts beside it.

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
    """Return what `to_bytes` was given."""
    with np.load(io.BytesIO(content), allow_pickle=False) as found:
        about = json.loads(str(found[_ABOUT]))
        return _rebuilt(about["value"], found), about["texts"]


def _described(value: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    if isinstance(value, np.ndarray):
        arrays[str(len(arrays))] = value
        return {"array": str(len(arrays) - 1)}
    if isinstance(value, list | tuple):
        return [_described(one, arrays) for one in value]
    if is_dataclass(value) and not isinstance(value, type):
        if _KINDS.get(type(value).__name__) is not type(value):
            raise TypeError(f"{type(value).__name__} is not among what a checkpoint can hold.")
        parts = {one.name: _described(getattr(value, one.name), arrays) for one in fields(value)}
        return {"kind": type(value).__name__, "parts": parts}
    return value.item() if isinstance(value, np.generic) else value


def _rebuilt(about: Any, arrays: Any) -> Any:
    if isinstance(about, list):
        return [_rebuilt(one, arrays) for one in about]
    if not isinstance(about, dict):
        return about
    if "array" in about:
        return arrays[about["array"]]
    new: Any = object.__new__(_KINDS[about["kind"]])
    for name, part in about["parts"].items():
        object.__setattr__(new, name, _rebuilt(part, arrays))
    return new


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
    if callable(value) and hasattr(value, "__qualname__"):
        digest.update(f"{value.__module__}.{value.__qualname__}".encode())
    elif is_dataclass(value):
        for one in fields(value):
            _add(digest, getattr(value, one.name))
    elif isinstance(value, np.ndarray) and value.dtype != object:
        digest.update(f"{value.shape}{value.dtype}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, tuple | list):
        for one in value:
            _add(digest, one)
    else:
        digest.update(repr(value).encode())
