"""Ids as arrays of a file: each can be read without the others, and found by its hash."""

import hashlib
import json
from collections.abc import Hashable, Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeminds._util.array_types import IdArray, Index

# The suffix of the array that says where each id ends in the array of bytes.
ENDS = "/ends"
_HASH_BYTES = 8


def kind_of(ids: IdArray) -> str:
    """Return how ids are written: as numbers, texts, or JSON (tuples, and kinds that are mixed)."""
    if ids.dtype.kind in "iufb":
        return "number"
    return "text" if all(type(one) is str for one in ids.tolist()) else "json"


def to_arrays(ids: IdArray, name: str, kind: str) -> dict[str, NDArray[Any]]:
    """Return the arrays that hold some ids."""
    if kind == "number":
        return {name: ids.astype(ids.dtype.newbyteorder("<"), copy=False)}
    try:
        texts = [_text(one, kind).encode() for one in ids.tolist()]
    except (TypeError, UnicodeEncodeError) as error:
        raise TypeError(f"{name} holds ids that cannot be written to a file: {error}.") from error
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    return {name: np.frombuffer(b"".join(texts), dtype=np.uint8), name + ENDS: ends}


def from_arrays(content: NDArray[Any], ends: NDArray[np.int64] | None, kind: str) -> IdArray:
    """Return the ids of arrays, or of slices of them: ``ends`` has one entry more than ids."""
    if ends is None:
        return content
    whole = content[int(ends[0]) : int(ends[-1])].tobytes() if len(ends) else b""
    cuts = (ends - ends[0]).tolist()
    texts = [whole[a:b].decode() for a, b in pairwise(cuts)]
    found = np.empty(len(texts), dtype=object)
    found[:] = texts if kind == "text" else [untag(json.loads(text)) for text in texts]
    return found


def hashes_of(ids: Iterable[Hashable]) -> NDArray[np.uint64]:
    """Return a number for each id, the same for equal ones whatever their type."""
    digests = b"".join(
        hashlib.blake2b(_mark(one).encode(), digest_size=_HASH_BYTES).digest() for one in ids
    )
    return np.frombuffer(digests, dtype="<u8")


def index_of(hashes: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], Index]:
    """Return sorted hashes, and the places of the ids that have them."""
    order = np.argsort(hashes, kind="stable")
    return hashes[order], order


def _text(one: Hashable, kind: str) -> str:
    return str(one) if kind == "text" else json.dumps(tag(one))


def _mark(one: Hashable) -> str:
    """Return a text that two ids share if, and only if, they are equal."""
    if isinstance(one, str):
        return "s" + one
    if isinstance(one, tuple):
        return "t" + json.dumps([_mark(part) for part in one])
    number = one.item() if isinstance(one, np.generic) else one
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    return f"n{int(number)}" if isinstance(number, bool | int) else f"n{number!r}"


def tag(value: object) -> object:
    """Return an id as JSON has it."""
    # JSON has no tuples; a list can only be one, because lists are not ids.
    return [tag(part) for part in value] if isinstance(value, tuple) else value


def untag(value: object) -> object:
    """Return an id from what JSON has of it."""
    return tuple(untag(part) for part in value) if isinstance(value, list) else value
