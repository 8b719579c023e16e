"""Partitions reduced to statistics where they are read, which shards merge."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likeminds._util.array_types import Bool, Float, FloatArray, IdArray
from likeminds._util.map_reduce import in_this_thread, one_blas_thread
from likeminds.cluster.item_broadcast import ItemBroadcast, features_in, in_partition
from likeminds.cluster.label_table import LabelTable
from likeminds.cluster.partitions import join_pieces, shards_of
from likeminds.data.annotations import Annotations
from likeminds.losses.rows import Rows, ones
from likeminds.losses.statistics import ClassMoments, Statistics

# Bytes of a row's place in the table, of its label, of a weight and of a grade.
_PLACE, _LABEL, _WEIGHT, _GRADE = 4, 1, 8, 2


@dataclass(frozen=True)
class PartitionStatistics:
    """Statistics of the users of one shard in one partition, as they travel.

    Users whose matrices are smaller than their rows have those, the others have rows.
    """

    user_ids: IdArray
    many: NDArray[np.int32]  # positions of users with matrices, (p,)
    weight: Float  # by kind of label, (p, K)
    mean: Float  # (p, K, d)
    scatter: Float  # the upper halves of matrices, (p, K, d (d + 1) / 2)
    few: NDArray[np.int32]  # positions of users with rows, (q,)
    counts: NDArray[np.int32]  # how many rows these have
    index: NDArray[np.uint32]  # places of rows in the table, (r,)
    positive: Bool  # their labels
    row_weight: Float | None  # unless all are one
    grade: NDArray[np.uint16] | None  # numbers of grades
    table: FloatArray | None  # without it, the features of all items

    @classmethod
    def of(cls, found: Statistics, *, with_table: bool) -> "PartitionStatistics":
        """Pack statistics, with the rows of the table that they need or without."""
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
        """How many bytes travel; ids that are texts count as these."""
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
    """Return from how many rows on a user's matrices are smaller than the rows.

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
    if labels.grades is not None:  # which have the same numbers in all partitions
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
    """Return the rows of a partition, which may have their features themselves."""
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
    """Return what a label takes as a row: with its share of the table, where that travels."""
    weighted = rows.weights is not None and bool((rows.weights != 1.0).any())
    found: float = _PLACE + _LABEL + _WEIGHT * weighted + _GRADE * (rows.grades is not None)
    if catalogue.in_rows:
        found += rows.features.nbytes / len(rows)
    return found
