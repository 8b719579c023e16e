"""Sums over labels by item, in blocks of users who labelled few of the items."""

from copy import copy
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy import sparse

from likeminds._util.array_types import Float, Index


@dataclass(frozen=True)
class BlockItems:
    """The items of the labels of a block of users, and sums over labels by item."""

    item: Index  # (b, n): the item of each label; the padding's is one past the last
    items: Index  # (k,): the items, each once
    # (n_labels,): the positions of labels in the block, item by item, and their users.
    place: Index
    user: Index
    start: Index  # (k + 1,): where the labels of each item begin

    @classmethod
    def of(cls, item: Index, n_items: int) -> "BlockItems":
        """Sort the labels of a block; ``item`` has shape (b, n), and ``n_items`` is padding."""
        flat = item.ravel()
        place = np.argsort(flat, kind="stable")[: int((flat < n_items).sum())]
        items, first = np.unique(flat[place], return_index=True)
        start = np.append(first, len(place))
        return cls(item, items, place, place // max(item.shape[1], 1), start)

    def sums(self, numbers: Float) -> Float:
        """Return sums of numbers, one per label, shape (k, 1)."""
        if not len(self.items):
            return np.zeros((0, 1))
        return np.add.reduceat(numbers.ravel()[self.place], self.start[:-1])[:, None]

    def sums_of_rows(self, weight: Float, rows: Float) -> Float:
        """Return weighted sums of rows, (b n, p), one per label."""
        return np.asarray(self._weighted(self._by_label, weight) @ rows)

    def sums_of_users(self, weight: Float, numbers: Float) -> Float:
        """Return weighted sums of users' numbers, (b, m), one weight per label."""
        return np.asarray(self._weighted(self._by_user, weight) @ numbers)

    def sums_of_items(self, weight: Float, numbers: Float) -> Float:
        """Return each user's weighted sum of their items' numbers, (k, m)."""
        return np.asarray(self._weighted(self._by_user, weight).T @ numbers)

    @cached_property
    def _by_label(self) -> sparse.csr_matrix:
        return self._matrix(self.place, self.item.size)

    @cached_property
    def _by_user(self) -> sparse.csr_matrix:
        return self._matrix(self.user, len(self.item))

    def _matrix(self, columns: Index, n_columns: int) -> sparse.csr_matrix:
        shape = (len(self.items), n_columns)
        return sparse.csr_matrix((np.zeros(len(columns)), columns, self.start), shape=shape)

    def _weighted(self, matrix: sparse.csr_matrix, weight: Float) -> sparse.csr_matrix:
        """Return a matrix with other entries at the same places, without validation."""
        weighted = copy(matrix)
        weighted.data = weight.ravel()[self.place]
        return weighted


@dataclass
class SparseItemSums:
    """Sums of some of the items, added up in place.

    Examples
    --------
    >>> total = SparseItemSums(np.array([2]), [np.ones((1, 1))], 3)
    >>> total += SparseItemSums(np.array([0, 2]), [np.ones((2, 1))], 3)
    >>> total.whole[0].ravel()
    array([1., 0., 2.])
    """

    items: Index  # (k,): which items; all of them after the first addition
    sums: list[Float]  # (k, ...): their sums
    n_items: int

    def __iadd__(self, other: "SparseItemSums") -> "SparseItemSums":
        for total, part in zip(self.whole, other.sums, strict=True):
            total[other.items] += part
        return self

    @property
    def whole(self) -> list[Float]:
        """The sums of all items."""
        if len(self.items) < self.n_items:
            totals = [np.zeros((self.n_items, part.shape[1])) for part in self.sums]
            for total, part in zip(totals, self.sums, strict=True):
                total[self.items] = part
            self.items, self.sums = np.arange(self.n_items), totals
        return self.sums


def packed(matrices: Float) -> Float:
    """Return the upper triangles of symmetric matrices, (n, r, r), as rows."""
    upper, _ = _triangle(matrices.shape[2])
    return matrices.reshape(len(matrices), matrices.shape[2] ** 2)[:, upper]


def unpacked(rows: Float, r: int) -> Float:
    """Return the symmetric matrices, (n, r, r), of which rows are the upper triangles."""
    _, place = _triangle(r)
    return np.asarray(rows[:, place])


@lru_cache(maxsize=64)
def _triangle(r: int) -> tuple[Index, Index]:
    """Return the flat positions of the upper triangle, and the position in it of every entry."""
    row, column = np.triu_indices(r)
    place = np.zeros((r, r), dtype=np.intp)
    place[row, column] = np.arange(len(row))
    return r * row + column, np.maximum(place, place.T)
