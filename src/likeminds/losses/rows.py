"""All users' rows, grouped by user, in cache-sized blocks.

Rows are pointers into a table of features that is never copied. For shared items, a label takes a
few bytes, whatever the number of features.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from likeminds._util.array_types import Bool, Float, FloatArray, Index
from likeminds._util.map_reduce import scratch
from likeminds._util.per_user_arrays import order_by
from likeminds.data.annotations import Annotations

NEGATIVE, POSITIVE = 0, 1

# Rows are processed in blocks that stay in the processor's cache.
_BLOCK_BYTES = 1 << 22
# Users share a block when their numbers of rows differ by no more than this factor.
_PADDING = 1.25
# Tables with more than this multiple of the rows in use are reduced to them.
_MOST_UNUSED = 2
# The largest ratio of squared mean to variance for sums of squares without centring.
_MOST_OFFSET = 100.0


@dataclass(frozen=True)
class RowBlock:
    """A few users' rows, padded to a common length (padding has weight 0)."""

    users: Index  # their positions among all users, shape (b,)
    rows: Float  # features from the origin, each user's lighter class first; shape (b, n, d)
    weight: Float  # of each row, in the class of its label, else 0; shape (b, 2, n)
    grade: Index | None = None  # of each row, ascending (padding: one more); shape (b, n)

    @cached_property
    def class_weight(self) -> Float:
        """Sum of the weights, shape (b, 2)."""
        return np.asarray(self.weight.sum(axis=2))

    @cached_property
    def class_mean(self) -> Float:
        """Mean of the rows of each class, shape (b, 2, d); 0 without rows."""
        mean: Float = self.weight @ self.rows
        mean /= np.where(self.class_weight > 0, self.class_weight, 1.0)[:, :, None]
        return mean

    def centred(self) -> Float:
        """Each row minus the mean of its class, shape (b, n, d)."""
        negative, positive = self.class_mean[:, None, NEGATIVE], self.class_mean[:, None, POSITIVE]
        own_mean = np.where(self.weight[:, POSITIVE, :, None] > 0, positive, negative)
        return np.subtract(self.rows, own_mean, out=own_mean)

    def squares(self, lighter: Index) -> Float:
        """Sum of w x x' over the rows of each class, shape (b, 2, d, d).

        The heavier class is computed as all rows less the lighter class, whose rows come first.
        This loses no digits, because losses divide the heavier class by at least its own weight.
        """
        rows = self.rows
        root = np.sqrt(self.weight.sum(axis=1))
        if not (root == 1.0).all():
            rows = rows * root[:, :, None]
        users = np.arange(len(rows))
        is_lighter = self.weight[users, lighter] > 0
        longest = int(is_lighter.sum(axis=1).max())
        head = rows[:, :longest] * is_lighter[:, :longest, None]
        squares = np.empty((len(rows), 2, rows.shape[2], rows.shape[2]))
        squares[users, lighter] = head.transpose(0, 2, 1) @ head
        total = rows.transpose(0, 2, 1) @ rows
        squares[users, 1 - lighter] = total - squares[users, lighter]
        return squares


@dataclass(frozen=True)
class Rows:
    """Pointers into a table of features, grouped by user, lighter class (or grade) first."""

    table: FloatArray  # the features, never copied; shape (m, d)
    index: Index  # the row of the table of each label, shape (r,)
    positive: Bool  # the labels, shape (r,)
    weight: Float  # weights of labels, more than 0; shape (r,)
    # Positions of users with rows here among all users, ascending; shape (p,)
    users: Index = field(metadata={"stored": "people"})
    offsets: Index  # where each user's rows begin, shape (p + 1,)
    grade: Index | None = None  # the number of each row's grade, from 0; shape (r,)

    @classmethod
    def of_annotations(
        cls, annotations: Annotations, index: Index | None = None, grade: Index | None = None
    ) -> "Rows":
        """Group all users' labels; leave out labels of weight zero.

        ``index`` has a number per label, instead of its row in the table of features.
        """
        index = annotations.feature_rows if index is None else index
        weight = ones(len(annotations))
        if annotations.weights is not None:
            weight = annotations.weights.astype(np.float64)
        counts = slice(None) if weight.all() else weight > 0
        return cls.group(
            annotations.features,
            index=index[counts],
            positive=annotations.labels[counts],
            weight=weight[counts],
            users=annotations.user_codes[counts],
            n_users=annotations.n_users,
            grade=None if grade is None else grade[counts],
        )

    @classmethod
    def group(
        cls,
        table: FloatArray,
        *,
        index: Index,
        positive: Bool,
        weight: Float,
        users: Index,
        n_users: int,
        grade: Index | None = None,
    ) -> "Rows":
        """Group rows in any order; ``users`` has one entry per row."""
        n_kinds, kind = 2, grade
        if kind is None:
            class_weight = _class_weight(users, positive, weight, n_users)
            positive_is_heavier = class_weight[:, POSITIVE] > class_weight[:, NEGATIVE]
            kind = (positive == positive_is_heavier[users]).astype(np.int8)
        else:
            n_kinds = int(kind.max(initial=0)) + 1
        order, offsets = order_by(n_kinds * users + kind, n_kinds * n_users)
        begin = offsets[::n_kinds]
        present = np.flatnonzero(np.diff(begin))
        return cls(
            table,
            index[order],
            positive[order],
            weight if _are_one(weight) else weight[order],
            present,
            np.append(begin[present], begin[-1]),
            None if grade is None else grade[order],
        )

    @cached_property
    def counts(self) -> Index:
        """The number of rows of each user here."""
        return np.diff(self.offsets)

    @property
    def owner(self) -> Index:
        """The user of each row."""
        return np.repeat(self.users, self.counts)

    def class_weight(self, n_users: int, n_kinds: int = 2) -> Float:
        """Return the weights by user and class (or grade), shape (n_users, n_kinds)."""
        kind = self.positive if self.grade is None else self.grade
        return _class_weight(self.owner, kind, self.weight, n_users, n_kinds)

    def of(self, chosen: Bool) -> "Rows":
        """Return the rows of some of the users (a mask over ``users``)."""
        rows = np.repeat(chosen, self.counts)
        return replace(
            self,
            index=self.index[rows],
            positive=self.positive[rows],
            weight=self.weight[: rows.sum()] if _are_one(self.weight) else self.weight[rows],
            users=self.users[chosen],
            offsets=np.append(0, np.cumsum(self.counts[chosen])),
            grade=None if self.grade is None else self.grade[rows],
        )

    def compact(self) -> "Rows":
        """Return the same rows, with a smaller table if most rows of it are unused."""
        if _MOST_UNUSED * len(self.index) >= len(self.table):
            return self
        used, index = np.unique(self.index, return_inverse=True)
        return replace(self, table=self.table[used], index=index)

    @classmethod
    def join(cls, parts: Sequence["Rows"], n_users: int) -> "Rows":
        """Return the rows of all parts, regrouped; equal tables are shared."""
        tables = {id(part.table): part.table for part in parts}
        begin = np.append(0, np.cumsum([len(table) for table in tables.values()]))
        shift = dict(zip(tables, begin.tolist(), strict=False))
        grades = [part.grade for part in parts if part.grade is not None]
        one, *others = tables.values()
        weight = ones(sum(len(part.index) for part in parts))
        if not all(_are_one(part.weight) for part in parts):
            weight = np.concatenate([part.weight for part in parts])
        return cls.group(
            np.concatenate([one, *others]) if others else one,
            index=np.concatenate([part.index + shift[id(part.table)] for part in parts]),
            positive=np.concatenate([part.positive for part in parts]),
            weight=weight,
            users=np.concatenate([part.owner for part in parts]),
            n_users=n_users,
            grade=np.concatenate(grades) if len(grades) == len(parts) else None,
        )

    def blocks(self, origin: Float) -> Iterator[RowBlock]:
        """Yield all rows, a cache-sized block of users at a time."""
        return (self.block(chosen, origin) for chosen in self.plan())

    def plan(
        self, padding: float = _PADDING, row_bytes: int | None = None, apart: int = 0
    ) -> Iterator[Index]:
        """Divide the users (positions in ``users``) into blocks of about equal length.

        A user's rows are padded to at most ``padding`` times their number. ``row_bytes`` is the
        size of a row, by default a row of the table. Users with fewer rows than ``apart`` have
        separate blocks.
        """
        by_count = np.argsort(self.counts, kind="stable")
        counts = self.counts[by_count]
        row_bytes = row_bytes or 8 * max(1, self.table.shape[1])
        start = 0
        while start < len(counts):
            most = int(counts[start] * padding)
            stop = start + max(1, _BLOCK_BYTES // (most * row_bytes))
            if counts[start] < apart:
                most = min(most, apart - 1)
            stop = min(stop, int(np.searchsorted(counts, most, side="right")))
            yield by_count[start:stop]
            start = stop

    def moments(self, chosen: Index) -> tuple[Float, Float, Float, Float]:
        """Return weight, mean and scatter by class of some users, and the origin of the means.

        The origin is the user's first row, so centring the sums of squares loses no digits.
        """
        if self.grade is not None:
            return self._graded_moments(chosen)
        contiguous = self._contiguous_moments(int(chosen[0])) if len(chosen) == 1 else None
        if contiguous is not None:
            return contiguous
        first = self.offsets[chosen]
        origin = self.table[self.index[first]].astype(np.float64)
        block = self.block(chosen, origin, passing=True)
        scatter = block.squares(lighter=self.positive[first].astype(np.intp))
        weighted = block.class_weight[:, :, None] * block.class_mean
        scatter -= weighted[..., None] * block.class_mean[..., None, :]
        return block.class_weight, block.class_mean, scatter, origin

    def _graded_moments(self, chosen: Index) -> tuple[Float, Float, Float, Float]:
        """Return `moments` by grade."""
        assert self.grade is not None
        origin = self.table[self.index[self.offsets[chosen]]].astype(np.float64)
        block = self.block(chosen, origin)
        n_kinds, (n_users, _, d) = int(self.grade.max()) + 1, block.rows.shape
        weight, mean = np.zeros((n_users, n_kinds)), np.zeros((n_users, n_kinds, d))
        scatter = np.zeros((n_users, n_kinds, d, d))
        for kind in range(n_kinds):
            counted = block.weight.sum(axis=1) * (block.grade == kind)
            weight[:, kind] = counted.sum(axis=1)
            share = counted / np.where(weight[:, kind] > 0, weight[:, kind], 1.0)[:, None]
            mean[:, kind] = np.einsum("bn,bnd->bd", share, block.rows)
            centred = (block.rows - mean[:, None, kind]) * np.sqrt(counted)[:, :, None]
            scatter[:, kind] = centred.transpose(0, 2, 1) @ centred
        return weight, mean, scatter, origin

    def _contiguous_moments(self, one: int) -> tuple[Float, Float, Float, Float] | None:
        """Return `moments` of a user from the table itself, without a copy of the rows, or None.

        This needs contiguous rows of weight one, and means that are not large compared with the
        standard deviations.
        """
        own_rows = slice(self.offsets[one], self.offsets[one + 1])
        index, n_rows = self.index[own_rows], int(self.counts[one])
        lowest = int(index.min())
        if int(index.max()) - lowest + 1 != n_rows:
            return None
        present = np.zeros(n_rows, dtype=bool)
        present[index - lowest] = True
        rows = self.table[lowest : lowest + n_rows]
        if rows.dtype != np.float64 or not present.all() or (self.weight[own_rows] != 1.0).any():
            return None
        total, sums = rows.T @ rows, np.empty((1, 2, rows.shape[1]))
        whole = np.ones(n_rows) @ rows
        from_zero = whole**2 / n_rows
        if (from_zero > _MOST_OFFSET * (total.diagonal() - from_zero)).any():
            return None
        lighter = int(self.positive[own_rows][0])
        head = self.table[index[self.positive[own_rows] == bool(lighter)]]
        squares = np.empty((1, 2, *total.shape))
        squares[0, lighter], sums[0, lighter] = head.T @ head, head.sum(axis=0)
        squares[0, 1 - lighter] = total - squares[0, lighter]
        sums[0, 1 - lighter] = whole - sums[0, lighter]
        weight = np.zeros((1, 2))
        weight[0, lighter], weight[0, 1 - lighter] = len(head), n_rows - len(head)
        mean = sums / np.maximum(weight, 1.0)[:, :, None]
        squares -= sums[..., None] * mean[..., None, :]
        return weight, mean, squares, np.zeros((1, rows.shape[1]))

    def block(self, chosen: Index, origin: Float, *, passing: bool = False) -> RowBlock:
        """Return the rows of some users, less an origin for all or one for each user.

        A ``passing`` block is valid only until this thread makes another.
        """
        begin, end = self.offsets[chosen, None], self.offsets[chosen + 1, None]
        position = begin + np.arange(self.counts[chosen].max())
        inside = position < end
        position = np.where(inside, position, begin)
        weight = np.where(inside, self.weight[position], 0.0)
        positive = self.positive[position]
        by_class = [np.where(positive, 0.0, weight), np.where(positive, weight, 0.0)]
        shape = (*position.shape, self.table.shape[1])
        rows = scratch(shape) if passing else np.empty(shape)
        if self.table.dtype == rows.dtype:
            np.take(self.table, self.index[position], axis=0, out=rows, mode="clip")
        else:
            rows[...] = self.table[self.index[position]]
        rows -= origin if origin.ndim == 1 else origin[:, None]
        grade = None
        if self.grade is not None:
            grade = np.where(inside, self.grade[position], self.grade.max() + 1)
        return RowBlock(self.users[chosen], rows, np.stack(by_class, axis=1), grade)


def ones(n_rows: int) -> Float:
    """Return weights of one, which take the memory of one number."""
    return np.broadcast_to(np.float64(1.0), n_rows)


def _are_one(weight: FloatArray) -> bool:
    return weight.strides == (0,)


def has_both_classes(class_weight: Float) -> Bool:
    """Return which users have pairs to rank, given the weight of each class (or grade)."""
    return np.asarray((class_weight > 0).sum(axis=1) > 1)


def class_weight_of(annotations: Annotations) -> Float:
    """Return the weight of each user's negative and positive labels, shape (n_users, 2)."""
    labels, weights = annotations.labels, annotations.weights
    return _class_weight(annotations.user_codes, labels, weights, annotations.n_users)


def _class_weight(
    users: Index, kind: Bool | Index, weight: FloatArray | None, n_users: int, n_kinds: int = 2
) -> Float:
    total = np.bincount(n_kinds * users + kind, weights=weight, minlength=n_kinds * n_users)
    # Without rows, bincount returns integers.
    return total.reshape(n_users, n_kinds).astype(np.float64, copy=False)
