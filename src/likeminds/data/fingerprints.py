"""An order-independent hash of the labels a model was trained on."""

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from likeminds._util.array_types import Float, FloatArray
from likeminds.data.annotations import Annotations

_Words = NDArray[np.uint64]

# Rows of the table of features that are processed at a time.
_ROWS_AT_ONCE = 1 << 14
_LANES = 2


def fingerprint(annotations: Annotations) -> str:
    """Return a 128-bit hash of labels and features: the same in any order of the rows.

    It covers users' ids, labels, weights, and names and values of the features. Items count by
    their features, whatever their ids; attributes, choice sets and covariates do not count. Two
    data sets collide with a probability of 1 in 10^38, or by intent: the hash is not a signature.

    Examples
    --------
    >>> from likeminds import load_electricity
    >>> households = load_electricity()
    >>> fingerprint(households) == fingerprint(households[::-1])
    True
    >>> fingerprint(households) == fingerprint(households[1:])
    False
    """
    names = _digests(enumerate(annotations.feature_names)).sum(axis=0, dtype=np.uint64)
    items = _of_features(annotations.features)
    users = _digests(annotations.user_ids.tolist())
    weight = np.ones(1) if annotations.weights is None else annotations.weights
    graded = np.asarray(annotations.outcomes, dtype=np.float64) + 0.0
    outcomes = annotations.labels if annotations.grades is None else _bits(graded)
    total = 0
    for lane in range(_LANES):
        rows = items[annotations.feature_rows, lane]
        rows = _mixed(rows + names[lane]) + users[annotations.user_codes, lane]
        rows = _mixed(rows + outcomes)
        rows = _mixed(rows + _bits(np.asarray(weight, dtype=np.float64)))
        total = (total << 64) + int(rows.sum(dtype=np.uint64))
    return f"{total:032x}"


def joint_fingerprint(first: str, second: str) -> str:
    """Return the fingerprint of the rows of both."""
    words = [int(text[start : start + 16], 16) for text in (first, second) for start in (0, 16)]
    high, low = (words[0] + words[2]) % (1 << 64), (words[1] + words[3]) % (1 << 64)
    return f"{high:016x}{low:016x}"


def _digests(ids: Iterable[object]) -> _Words:
    """Return hashes of the representations of ids: shape (n, lanes)."""
    raw = b"".join(
        hashlib.blake2b(repr(value).encode(), digest_size=8 * _LANES).digest() for value in ids
    )
    return np.frombuffer(raw, dtype="<u8").reshape(-1, _LANES)


def _of_features(table: FloatArray) -> _Words:
    """Return hashes of the rows of a table: shape (n, lanes)."""
    places = _digests(range(table.shape[1])) | np.uint64(1)
    words = np.empty((len(table), _LANES), dtype=np.uint64)
    for start in range(0, len(table), _ROWS_AT_ONCE):
        piece = slice(start, start + _ROWS_AT_ONCE)
        # Single precision counts as the double it equals, and -0 as 0.
        bits = _mixed(_bits(table[piece].astype(np.float64) + 0.0))
        for lane in range(_LANES):
            words[piece, lane] = (bits * places[:, lane]).sum(axis=1, dtype=np.uint64)
    return words


def _bits(numbers: Float) -> _Words:
    return np.ascontiguousarray(numbers).view(np.uint64)


def _mixed(words: _Words) -> _Words:
    """Mix the bits of each word (the finaliser of splitmix64)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
