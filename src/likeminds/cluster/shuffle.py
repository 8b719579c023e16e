"""What partitions say, brought together by person in one shuffle: rows, or statistics of them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from operator import getitem
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from likeminds._util.lazy_imports import require
from likeminds.cluster.executor import identity, release
from likeminds.cluster.item_broadcast import (
    ItemBroadcast,
    catalogue_in_rows,
    is_in_rows,
    items_in,
    join_catalogue,
    near_in,
)
from likeminds.cluster.label_table import Counted, LabelTable, count_labels, read_label_table
from likeminds.cluster.memory import give_back_everywhere
from likeminds.cluster.partition_statistics import join_statistics, reduce_part
from likeminds.cluster.partitions import (
    PartitionColumns,
    by_shard,
    ids_as_texts,
    join_pieces,
    kinds_of_ids,
    mixed_ids,
    read_part,
)
from likeminds.data.annotations import Annotations
from likeminds.losses.statistics import Statistics
from likeminds.mixed_model.losses import LogisticLoss
from likeminds.rankers.training_data import LabelCounts, PartCounts

# Called as tell(what, done, total) while something goes on.
Tell = Callable[[str, int, int], None]


def silent(what: str, done: int, total: int) -> None:
    """Tell nobody."""
    del what, done, total


@dataclass(frozen=True)
class ShuffledData:
    """What everybody said, in shards, and what is known of it.

    Attributes
    ----------
    said : list of futures
        Labels, or statistics of them.
    catalogue, labels, census
        Items, how labels were read, and what is known of all of them.
    n_bytes : int
        What the pieces that shards were made of take, where they have to travel.
    """

    said: list[Any]
    catalogue: ItemBroadcast
    labels: LabelTable
    census: LabelCounts
    n_bytes: int


@dataclass(frozen=True)
class Shuffle:
    """One shuffle by person.

    Attributes
    ----------
    client : distributed.Client
        The cluster.
    columns : PartitionColumns
        What the columns of partitions are called.
    n_shards : int
        How many shards are made.
    statistics : bool
        Whether partitions are reduced to statistics first.
    tell : callable
        Told how far it is.
    """

    client: Any
    columns: PartitionColumns
    n_shards: int
    statistics: bool = False
    tell: Tell = silent

    def run(
        self, parts: Iterable[Any], features: Any, catalogue: ItemBroadcast | None, **how: Any
    ) -> ShuffledData:
        """Bring what partitions say together; leave nothing else on the cluster.

        ``how`` labels are read is said as in `read_label_table`.
        """
        named = list(features) if features is not None and is_in_rows(features) else []
        work = _ShuffleJobs(self.client, self.tell)
        try:
            items = None if catalogue is None else work.submit(identity, catalogue)
            tables = self._read(work, parts, items, named)
            counted, kinds = zip(*work.each(_seen, tables), strict=True)
            labels = read_label_table(counted, **how)
            tables = self._with_same_ids(work, tables, mixed_ids(kinds))
            if catalogue is None:
                look, put = _NEAR if self.statistics else _ITEMS
                catalogue = put(work.each(look, tables, named), named)
                items = work.submit(identity, catalogue)
            said, sizes = self._joined(work, tables, items, labels)
            found = work.done("bringing people together", self._counts(work, said, labels))
            n_bytes = sum(self.client.gather(sizes))
        finally:
            work.release()
        give_back_everywhere(self.client)
        there = [number for number, one in enumerate(found) if one is not None]
        census = LabelCounts.of([found[number] for number in there])
        if self.statistics:
            census = replace(census, n_labels=labels.n_labels, n_positive=labels.n_positive)
        return ShuffledData([said[number] for number in there], catalogue, labels, census, n_bytes)

    def _read(
        self, work: "_ShuffleJobs", parts: Iterable[Any], items: Any, named: Sequence[str]
    ) -> list[tuple[Any, str]]:
        """Return partitions as tables, and what they are called."""
        tables = []
        for number, part in enumerate(parts):
            given = self.client.compute(part) if hasattr(part, "__dask_graph__") else part
            name = _name_of(part, number)
            tables.append((work.submit(read_part, given, name, self.columns, items, named), name))
        if not tables:
            raise ValueError("There is no partition: give one at least.")
        return tables

    def _with_same_ids(
        self, work: "_ShuffleJobs", tables: list[tuple[Any, str]], roles: Sequence[str]
    ) -> list[tuple[Any, str]]:
        """Return partitions with ids of some roles as texts, where only some have such."""
        if not roles:
            return tables
        return [(work.submit(ids_as_texts, table, roles), name) for table, name in tables]

    def _joined(
        self, work: "_ShuffleJobs", tables: list[tuple[Any, str]], items: Any, labels: LabelTable
    ) -> tuple[list[Any], list[Any]]:
        """Return the shards, and how many bytes each partition gives them."""
        if self.statistics:
            given = (self.n_shards, items, labels)
            pieces = [work.submit(reduce_part, table, name, *given) for table, name in tables]
        else:
            pieces = [work.submit(by_shard, table, self.n_shards) for table, _ in tables]
        join = join_statistics if self.statistics else join_pieces
        sizes = [self.client.submit(_size_of, one, pure=False) for one in pieces]
        said = [
            self.client.submit(
                join, [work.submit(getitem, one, n) for one in pieces], items, labels, pure=False
            )
            for n in range(self.n_shards)
        ]
        work.release()  # partitions and pieces go as soon as shards are made of them
        return said, sizes

    def _counts(self, work: "_ShuffleJobs", said: list[Any], labels: LabelTable) -> list[Any]:
        if self.statistics:
            return [work.submit(_count_statistics, one, labels) for one in said]
        return [work.submit(_count, one) for one in said]


class _ShuffleJobs:
    """What is done on the cluster for a shuffle, and taken away again."""

    def __init__(self, client: Any, tell: Tell) -> None:
        self.client, self.tell = client, tell
        self._made: list[Any] = []

    def submit(self, work: Any, *given: Any) -> Any:
        """Have something done."""
        self._made.append(self.client.submit(work, *given, pure=False))
        return self._made[-1]

    def each(self, work: Any, tables: list[tuple[Any, str]], *given: Any) -> list[Any]:
        """Return what is found in each partition."""
        waiting = [self.submit(work, table, name, *given) for table, name in tables]
        return self.done("reading partitions", waiting)

    def done(self, what: str, waiting: list[Any]) -> list[Any]:
        """Return results, and tell how many are done."""
        distributed = require("distributed", "A crowd on a cluster", "dask")
        completed = distributed.as_completed(waiting, loop=self.client.loop)
        for number, _ in enumerate(completed, start=1):
            self.tell(what, number, len(waiting))
        return list(self.client.gather(waiting))

    def release(self) -> None:
        """Tell the cluster that nobody here wants any of it."""
        release(self._made)
        self._made.clear()


# What is asked of partitions that say themselves what items are like, and what is made of it.
_NEAR, _ITEMS = (near_in, catalogue_in_rows), (items_in, join_catalogue)


def _seen(table: pa.Table, name: str) -> tuple[Counted, tuple[str, dict[str, str]]]:
    return count_labels(table, name), kinds_of_ids(table, name)


def _size_of(pieces: Sequence[Any]) -> int:
    return sum(one.nbytes for one in pieces if one is not None)


def _name_of(part: Any, number: int) -> str:
    return f"Partition {number}" + (f" ({Path(part).name})" if isinstance(part, str | Path) else "")


def _count(rows: Annotations | None) -> PartCounts | None:
    return None if rows is None else PartCounts.of(rows)


def _count_statistics(found: Statistics | None, labels: LabelTable) -> PartCounts | None:
    """Return what statistics say; they do not know how many labels and items there are."""
    if found is None:
        return None
    weight, nothing = found.class_weight.sum(axis=0), np.zeros(0)
    if found.grades is not None:
        yes = labels.are_positive(found.grades)
        weight = np.array([weight[~yes].sum(), weight[yes].sum()])
    rest = (0, 0, weight, nothing, nothing.astype(np.intp), LogisticLoss.name, None)
    return PartCounts(found.user_ids, found.has_pairs, *rest)
