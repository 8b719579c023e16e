"""Each user's rows as combinations of items: scores in, pulls out, and inner products of rows.

With few labels a user, all that a posterior needs of wide features are the scores of items
under a few vectors of weights, and the inner products of a user's rows, which no step changes.
So the table of items is passed over twice in a step, by two thin products, whatever is learned.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter

import numpy as np
from scipy import sparse

from likeminds._util.array_types import Bool, Float, FloatArray, Index
from likeminds.data.annotations import Annotations
from likeminds.mixed_model.design import Design
from likeminds.mixed_model.losses import PriorLoss
from likeminds.mixed_model.responses import InMemoryResponses, PaddedRows, of_each_user, task_of


@dataclass(frozen=True)
class KernelBlock:
    """A few users' rows, without their features."""

    # The labels; its rows hold the intercept's coordinate alone, shape (b, n, 0 or 1).
    task: PaddedRows
    gram: Float  # (b, n, n): the inner products of a user's rows in the features
    first: int  # the number of the block's first row among all rows

    @property
    def shape(self) -> tuple[int, int]:
        """How many users there are, and rows of each."""
        n_users, n_rows, _ = self.task.rows.shape
        return n_users, n_rows

    def take(self, rows: Float) -> Float:
        """Return the block's part of an array with a row for each row: (b, n, columns)."""
        n_users, n_rows = self.shape
        part = rows[self.first : self.first + n_users * n_rows]
        return part.reshape(n_users, n_rows, *rows.shape[1:])


@dataclass(frozen=True)
class KernelRows(InMemoryResponses):
    """Each user's rows, as a table of items and the labels of each row."""

    # (m, d): items in coordinates: centred, and scaled. In the precision of the features.
    table: FloatArray
    # (rows, m): the items that rows are made of: one each, or a difference of two.
    mixing: sparse.csr_matrix
    blocks: Sequence[KernelBlock]  # the labels of a few users each
    users: Sequence[Index]  # the positions of each block's users among those who have labels

    @classmethod
    def of_annotations(
        cls, annotations: Annotations, loss: PriorLoss, coordinates: Design
    ) -> "KernelRows":
        """Group labels by user, as a loss does."""
        items, place = np.unique(annotations.feature_rows, return_inverse=True)
        table = coordinates.moved(annotations.features, items)
        tasks = loss.tasks(_numbered(annotations), _numbers(intercept=coordinates.intercept))
        blocks: list[KernelBlock] = []
        parts: list[sparse.csr_matrix] = []
        first = 0
        for task in tasks.map(task_of, None):
            for named in _compared(_ItemKernelBlock.of(task, place)).pieces():
                blocks.append(KernelBlock(named.task, named.gram(table), first))
                parts.append(named.mixing(len(items)))
                first += parts[-1].shape[0]
        everybody = np.sort(np.concatenate([block.task.users for block in blocks]))
        users = [np.searchsorted(everybody, block.task.users) for block in blocks]
        return cls(table, sparse.vstack(parts, format="csr"), blocks, users)

    @property
    def plan(self) -> Sequence[Index]:
        """The users (positions in the rows) of each block."""
        return self.users

    @property
    def n_users(self) -> int:
        """How many users have labels."""
        return sum(len(users) for users in self.users)

    @property
    def n_bytes(self) -> int:
        """What the blocks take."""
        return sum(block.gram.nbytes for block in self.blocks)

    def task(self, number: int) -> PaddedRows:
        """Return one block's labels."""
        return self.blocks[number].task

    def scores(self, weights: Float) -> Float:
        """Return the rows times weights of the features, shape (d, k): (rows, k)."""
        of_items = self.table @ weights.astype(self.table.dtype)
        return np.asarray(self.mixing @ of_items.astype(np.float64))

    def back(self, pulls: Float) -> Float:
        """Return pulls of rows, shape (rows, k), as weights of the features: (d, k)."""
        by_item = np.asarray(self._unmixing @ pulls)
        return np.asarray(self.table.T @ by_item.astype(self.table.dtype), dtype=np.float64)

    @cached_property
    def _unmixing(self) -> sparse.csr_matrix:
        return self.mixing.T.tocsr()

    def of_users(self, chosen: Bool) -> "KernelRows":
        """Return the rows of some of the users (a mask over those who have labels)."""
        position = np.cumsum(chosen) - 1
        blocks, plan, kept, first = [], [], [], 0
        for block, users in zip(self.blocks, self.users, strict=True):
            own = np.flatnonzero(chosen[users])
            if not len(own):
                continue
            n_rows = block.shape[1]
            rows = block.first + own[:, None] * n_rows + np.arange(n_rows)
            task = of_each_user(block.task, itemgetter(own))
            blocks.append(KernelBlock(task, block.gram[own], first))
            plan.append(position[users[own]])
            kept.append(rows.ravel())
            first += rows.size
        mixing = self.mixing[np.concatenate(kept)]
        used = np.unique(mixing.indices)
        parts = (mixing.data, np.searchsorted(used, mixing.indices), mixing.indptr)
        mixing = sparse.csr_matrix(parts, shape=(mixing.shape[0], len(used)))
        return KernelRows(self.table[used], mixing, blocks, plan)


@dataclass(frozen=True)
class _ItemKernelBlock:
    """A block whose rows are known by the items they are made of."""

    task: PaddedRows  # the labels, with the intercept's coordinate alone
    items: Index  # (b, n, t): the items of each row (places in the table)
    signs: Float  # (b, n, t): how often they count: 1, -1, or 0 where there is none

    @classmethod
    def of(cls, task: PaddedRows, place: Index) -> "_ItemKernelBlock":
        """Read the numbers of labels that stand in the place of features."""
        number = task.rows[:, :, :1]
        label = np.abs(number).astype(np.intp) - 1
        items = np.where(label >= 0, place[label], 0)
        return cls(replace(task, rows=task.rows[:, :, 1:]), items, np.sign(number))

    def pieces(self) -> Iterator["_ItemKernelBlock"]:
        """Yield smaller blocks, such that inner products stay in the cache."""
        n_users, n_rows, _ = self.items.shape
        # The inner products of a block's rows take no more than this.
        at_once = max(1, (1 << 20) // (8 * n_rows**2))
        for start in range(0, n_users, at_once):
            own = slice(start, start + at_once)
            task = of_each_user(self.task, itemgetter(own))
            yield _ItemKernelBlock(task, self.items[own], self.signs[own])

    def mixing(self, n_items: int) -> sparse.csr_matrix:
        """Return the items that rows are made of: (rows, n_items)."""
        n_rows, each = self.items.shape[0] * self.items.shape[1], self.items.shape[2]
        begin = np.arange(n_rows + 1) * each
        parts = (self.signs.ravel(), self.items.ravel(), begin)
        return sparse.csr_matrix(parts, shape=(n_rows, n_items))

    def gram(self, table: FloatArray) -> Float:
        """Return the inner products of each user's rows: (b, n, n)."""
        n_users, n_rows, each = self.items.shape
        gram = np.empty((n_users, n_rows, n_rows))
        # What is gathered at a time to multiply a user's rows with each other.
        at_once = max(1, (1 << 21) // (n_rows * table.itemsize * table.shape[1]))
        for start in range(0, n_users, at_once):
            piece = slice(start, start + at_once)
            signs = self.signs[piece].astype(table.dtype)[..., None]
            rows = table[self.items[piece, :, 0]]
            rows *= signs[:, :, 0]
            for other in range(1, each):
                rows += table[self.items[piece, :, other]] * signs[:, :, other]
            gram[piece] = rows @ rows.transpose(0, 2, 1)
        return gram


def _compared(named: _ItemKernelBlock) -> _ItemKernelBlock:
    """Return choices between two as labels of their differences, which is the same."""
    task = named.task
    if task.set_size != 2 or np.any(task.log_count):
        return named
    half = replace(
        task,
        rows=task.rows[:, ::2] - task.rows[:, 1::2],
        response=task.response[:, ::2],
        weight=task.weight[:, ::2],
        places=None,
        set_size=1,
        log_count=0.0,
    )
    items = np.concatenate([named.items[:, ::2], named.items[:, 1::2]], axis=2)
    signs = np.concatenate([named.signs[:, ::2], -named.signs[:, 1::2]], axis=2)
    return _ItemKernelBlock(half, items, signs)


def _numbered(annotations: Annotations) -> Annotations:
    """Return labels whose only feature is their number, from 1 (0 stands for nothing)."""
    n_labels = len(annotations)
    return annotations._with(
        features=np.arange(1.0, n_labels + 1.0)[:, None],
        feature_rows=np.arange(n_labels),
        feature_names=("number",),
        features_per="row",
    )


def _numbers(*, intercept: bool) -> Design:
    return Design(np.zeros(1), np.ones(1), None, intercept)
