"""Lots by which some labels are drawn: by whose they are and what about, not by their order."""

import zlib
from collections.abc import Hashable, Iterable

import numpy as np
from numpy.typing import NDArray

from likeminds._util.array_types import Bool, Index

Lots = NDArray[np.uint64]


def drawn(share: float, people: Index, numbers: Index) -> Bool:
    """Draw about this share of labels, by their people and the numbers of their items.

    Examples
    --------
    >>> people, items = np.divmod(np.arange(1000), 20)
    >>> some = drawn(0.2, people, items)
    >>> int(some.sum())
    205
    >>> np.array_equal(drawn(0.2, people[::-1], items[::-1]), some[::-1])
    True
    """
    if share >= 1.0:
        return np.ones(len(people), dtype=np.bool_)
    return np.asarray(lots_of(people, numbers) < np.uint64(int(share * 2.0**64)))


def hashes_of(ids: Iterable[Hashable], seed: int = 0) -> Lots:
    """Return a number for each id that depends on its text and the seed alone.

    Examples
    --------
    >>> np.array_equal(hashes_of(["7", "ann"]), hashes_of([7, "ann"]))
    True
    """
    return np.array([zlib.crc32(f"{seed} {one}".encode()) for one in ids], dtype=np.uint64)


def lots_of(people: Index | Lots, numbers: Index | Lots) -> Lots:
    """Return a lot for each label, by its person and the number of its item."""
    lots = people.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + numbers.astype(np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        lots = (lots ^ (lots >> np.uint64(shift))) * np.uint64(factor)
    lots ^= lots >> np.uint64(31)
    return np.asarray(lots)
