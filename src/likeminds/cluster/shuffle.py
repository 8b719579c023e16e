"""One shuffle of partitions by user: of rows, or of their statistics."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from operator import getitem
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likeminds._util.array_types import Bool, Float, FloatArray, IdArray
from likeminds._util.lazy_imports import require
from likeminds._util.map_reduce import in_this_thread, one_blas_thread
from likeminds.cluster.client import Future, FutureScope, identity, release_memory_of_workers
from likeminds.cluster.item_broadcast import (
    ItemBroadcast,
    catalogue_in_rows,
    features_in,
    in_partition,
    items_in,
    join_catalogue,
    near_in,
)
from likeminds.cluster.partitions import (
    Counted,
    LabelTable,
    PartitionColumns,
    by_shard,
    count_labels,
    ids_as_texts,
    join_pieces,
    kinds_of_columns,
    mixed_ids,
    read_label_table,
    read_part,
    shards_of,
)
from likeminds.data.annotations import Annotations
from likeminds.losses.rows import Rows, ones
from likeminds.losses.statistics import ClassMoments, Statistics
from likeminds.mixed_model.losses import LogisticLoss
from likeminds.rankers.training_data import LabelCounts

# A partition on the cluster, and its name in errors.
Part = tuple[Future, str]

# Bytes of a row's place in the table, of its label, of a weight and of a grade.
_PLACE, _LABEL, _WEIGHT, _GRADE = 4, 1, 8, 2


@dataclass(frozen=True)
class PartitionStatistics:
    """Statistics of the users of one shard in one partition, packed for sending.

    Users have matrices if these are smaller than their rows, otherwise rows.
    """

    user_ids: IdArray
    many: NDArray[np.int32]  # positions of users with matrices, (p,)
    weight: Float  # by kind of label, (p, K)
    mean: Float  # (p, K, d)
    scatter: Float  # the upper halves of matrices, (p, K, d (d + 1) / 2)
    few: NDArray[np.int32]  # positions of users with rows, (q,)
    counts: NDArray[np.int32]  # their numbers of rows
    index: NDArray[np.uint32]  # places of rows in the table, (r,)
    positive: Bool  # their labels
    row_weight: Float | None  # None if all are one
    grade: NDArray[np.uint16] | None  # numbers of grades
    table: FloatArray | None  # None for the features of all items

    @classmethod
    def of(cls, found: Statistics, *, with_table: bool) -> "PartitionStatistics":
        """Pack statistics, with or without their rows of the table."""
        dense, rows = found.dense, found.rows
        table = None
        if with_table:
            used, index = np.unique(rows.index, return_inverse=True)
            rows, table = replace(rows, index=index), rows.table[used]
        upper = np.triu_indices(found.n_features)
        return cls(
            found.user_ids,
            dense.users.astype(np.int32),
            dense.weight,
            dense.mean,
            dense.scatter[..., upper[0], upper[1]],
            rows.users.astype(np.int32),
            rows.counts.astype(np.int32),
            rows.index.astype(np.uint32),
            rows.positive,
            None if (rows.weight == 1.0).all() else np.ascontiguousarray(rows.weight),
            None if rows.grade is None else rows.grade.astype(np.uint16),
            table,
        )

    @property
    def nbytes(self) -> int:
        """The number of bytes to send, with the text of ids."""
        arrays = [one for one in vars(self).values() if one is not None]
        ids = self.user_ids
        texts = sum(len(str(one)) for one in ids.tolist()) if ids.dtype == object else ids.nbytes
        return int(texts + sum(one.nbytes for one in arrays if one is not ids))

    def statistics(self, catalogue: ItemBroadcast, grades: Float | None) -> Statistics:
        """Unpack statistics."""
        origin, d = catalogue.origin, catalogue.features.shape[1]
        upper = np.triu_indices(d)
        scatter = np.empty((*self.weight.shape, d, d))
        scatter[..., upper[0], upper[1]] = self.scatter
        scatter[..., upper[1], upper[0]] = self.scatter
        weight = self.row_weight
        rows = Rows(
            catalogue.features if self.table is None else self.table,
            self.index.astype(np.intp),
            self.positive,
            ones(len(self.index)) if weight is None else weight,
            self.few.astype(np.intp),
            np.append(0, np.cumsum(self.counts)).astype(np.intp),
            None if self.grade is None else self.grade.astype(np.intp),
        )
        dense = ClassMoments(self.many.astype(np.intp), self.weight, self.mean, scatter)
        return Statistics(self.user_ids, origin, dense, rows, "auto", grades)


def enough_for_arrays(n_features: int, n_kinds: int, row_bytes: float) -> int:
    """Return the least number of rows at which a user's matrices take fewer bytes.

    Examples
    --------
    >>> enough_for_arrays(8, 2, row_bytes=5)
    144
    """
    arrays = 8 * n_kinds * (1 + n_features + n_features * (n_features + 1) // 2)
    return math.ceil(arrays / row_bytes)


@in_this_thread()
@one_blas_thread()
def reduce_part(
    table: pa.Table,
    name: str,
    n_shards: int,
    catalogue: ItemBroadcast,
    labels: LabelTable,
) -> list[PartitionStatistics | None]:
    """Return the statistics of each shard's users in a partition; None for shards without any."""
    if not table.num_rows:
        return [None] * n_shards
    with in_partition(name):
        rows = _rows_in(table, catalogue, labels)
    found = Statistics.from_annotations(rows, "factored", graded=True)
    if labels.grades is not None:  # grades have the same numbers in all partitions
        found = found.with_grades(labels.grades)
    enough = enough_for_arrays(found.n_features, found.n_kinds, _row_bytes(rows, catalogue))
    found = replace(found, origin=catalogue.origin).with_arrays(enough)
    mine = shards_of(found.user_ids.tolist(), n_shards)
    return [
        PartitionStatistics.of(found.of_users(mine == n), with_table=catalogue.in_rows)
        if (mine == n).any()
        else None
        for n in range(n_shards)
    ]


def join_statistics(
    pieces: Sequence[PartitionStatistics | None], catalogue: ItemBroadcast, labels: LabelTable
) -> Statistics | None:
    """Return the statistics of a shard; None if it is empty."""
    parts = [one.statistics(catalogue, labels.grades) for one in pieces if one is not None]
    if not parts:
        return None
    found = Statistics.joined(parts)
    return replace(found, rows=found.rows.compact()) if catalogue.in_rows else found


def _rows_in(table: pa.Table, catalogue: ItemBroadcast, labels: LabelTable) -> Annotations:
    """Return the rows of a partition, which may have features per row."""
    if catalogue.in_rows:
        places, features = features_in(table, catalogue.names)
        ids = np.arange(len(features))
        there = pa.DictionaryArray.from_arrays(places.astype(np.int32), pa.array(ids))
        table = table.set_column(table.column_names.index("item"), "item", there)
        catalogue = replace(catalogue, ids=ids, features=features)
    found = join_pieces([table], catalogue, labels)
    assert found is not None
    return found


def _row_bytes(rows: Annotations, catalogue: ItemBroadcast) -> float:
    """Return the bytes of a label as a row, with its share of the table if that is sent."""
    weighted = rows.weights is not None and bool((rows.weights != 1.0).any())
    found: float = _PLACE + _LABEL + _WEIGHT * weighted + _GRADE * (rows.grades is not None)
    if catalogue.in_rows:
        found += rows.features.nbytes / len(rows)
    return found


@dataclass
class Shuffle(FutureScope):
    """One shuffle by user; with ``statistics``, it reduces partitions first.

    ``features`` are the columns of partitions that have features of items.
    """

    _: KW_ONLY
    columns: PartitionColumns
    n_shards: int
    features: Sequence[str] = ()
    statistics: bool = False

    def run(
        self, parts: Iterable[object], catalogue: ItemBroadcast | None, **how: Any
    ) -> tuple[list[Future], ItemBroadcast, LabelTable, LabelCounts, int]:
        """Return shards, facts about all of them, and the number of bytes sent.

        It releases all other futures. ``how`` has the arguments of `read_label_table`.
        """
        try:
            items = None if catalogue is None else self.make(identity, catalogue)
            tables = self._read(parts, items)
            seen, kinds = zip(*self._each(_survey, tables), strict=True)
            labels = read_label_table(seen, column=self.columns.label, **how)
            roles = mixed_ids(kinds)
            if roles:
                tables = [(self.make(ids_as_texts, one, roles), name) for one, name in tables]
            if catalogue is None and self.statistics:
                found = self._each(near_in, tables, self.features)
                catalogue = catalogue_in_rows(found, self.features)
            elif catalogue is None:
                found = self._each(items_in, tables, self.features)
                catalogue = join_catalogue(found, self.features)
            items = self.make(identity, catalogue) if items is None else items
            shards, sizes = self._joined(tables, items, labels)
            counting = [self.submit(_count, one, labels) for one in shards]
            counted = list(self.results(counting, "shuffling by user"))
            n_bytes = sum(self.results(sizes))
        finally:
            self.release()
        release_memory_of_workers(self.client)
        there = [number for number, one in enumerate(counted) if one is not None]
        counts = LabelCounts.joined([counted[number] for number in there])
        if self.statistics:
            assert labels.binary is not None
            n_positive = int(np.array(labels.counts) @ labels.binary)
            counts = replace(counts, n_labels=sum(labels.counts), n_positive=n_positive)
        return [shards[number] for number in there], catalogue, labels, counts, n_bytes

    def _read(self, parts: Iterable[object], items: Future | None) -> list[Part]:
        dask = require("dask", "Labels on a cluster", "dask")
        tables = []
        for number, part in enumerate(parts):
            # The cluster computes delayed partitions.
            given = self.client.compute(part) if dask.is_dask_collection(part) else part
            name = f"Partition {number}"
            name += f" ({Path(part).name})" if isinstance(part, str | Path) else ""
            table = self.make(read_part, given, name, self.columns, items, self.features)
            tables.append((table, name))
        if not tables:
            raise ValueError("There are no partitions: pass at least one.")
        return tables

    def _joined(
        self, tables: list[Part], items: Future, labels: LabelTable
    ) -> tuple[list[Future], list[Future]]:
        """Return the shards, and the number of bytes from each partition."""
        n_shards, join = self.n_shards, join_statistics if self.statistics else join_pieces
        if self.statistics:
            given = (n_shards, items, labels)
            pieces = [self.make(reduce_part, table, name, *given) for table, name in tables]
        else:
            pieces = [self.make(by_shard, table, n_shards) for table, _ in tables]
        sizes = [self.submit(_size_of, one) for one in pieces]
        shards = []
        for n in range(n_shards):
            mine = [self.make(getitem, one, n) for one in pieces]
            shards.append(self.submit(join, mine, items, labels))
        self.release()  # partitions and pieces are only needed for the shards
        return shards, sizes

    def _each(self, work: Callable[..., object], tables: list[Part], *given: object) -> list[Any]:
        waiting = [self.submit(work, table, name, *given) for table, name in tables]
        return list(self.results(waiting, "reading partitions"))


def _survey(table: pa.Table, name: str) -> tuple[Counted, tuple[str, dict[str, str]]]:
    return count_labels(table, name), kinds_of_columns(table, name)


def _size_of(pieces: Sequence[Any]) -> int:
    return sum(one.nbytes for one in pieces if one is not None)


def _count(shard: Annotations | Statistics | None, labels: LabelTable) -> LabelCounts | None:
    """Count a shard; statistics lack the numbers of labels and items."""
    if not isinstance(shard, Statistics):
        return None if shard is None else LabelCounts.of(shard)
    weight, nothing = shard.class_weight.sum(axis=0), np.zeros(0)
    if shard.grades is not None:
        assert labels.reading is not None
        assert isinstance(labels.reading.threshold, float)
        yes = shard.grades > labels.reading.threshold
        weight = np.array([weight[~yes].sum(), weight[yes].sum()])
    labelled = (nothing, nothing.astype(np.intp), frozenset({LogisticLoss.name}), np.zeros(3))
    return LabelCounts(shard.user_ids, shard.has_pairs, 0, 0, weight, *labelled, None)
