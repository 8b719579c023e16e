"""Partitions brought together by user in one shuffle: rows, or statistics of them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from operator import getitem
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from likeminds._util.lazy_imports import require
from likeminds.cluster.client import (
    Client,
    Future,
    identity,
    release,
    release_memory_of_workers,
)
from likeminds.cluster.item_broadcast import (
    ItemBroadcast,
    catalogue_in_rows,
    items_in,
    join_catalogue,
    near_in,
)
from likeminds.cluster.label_table import Counted, LabelTable, count_labels, read_label_table
from likeminds.cluster.partition_statistics import join_statistics, reduce_part
from likeminds.cluster.partitions import (
    PartitionColumns,
    by_shard,
    ids_as_texts,
    join_pieces,
    kinds_of_columns,
    mixed_ids,
    read_part,
)
from likeminds.data.annotations import Annotations
from likeminds.losses.statistics import Statistics
from likeminds.mixed_model.losses import LogisticLoss
from likeminds.rankers.training_data import LabelCounts

# Called as tell(what, done, total) while something goes on.
Tell = Callable[[str, int, int], None]
# A partition on the cluster, and its name in errors.
Part = tuple[Future, str]


def silent(what: str, done: int, total: int) -> None:
    """Report no progress."""
    del what, done, total


@dataclass(frozen=True)
class ShuffledData:
    """Shards, and what is known of all of them; ``n_bytes`` is what had to travel for it."""

    parts: list[Future]
    catalogue: ItemBroadcast
    labels: LabelTable
    counts: LabelCounts
    n_bytes: int


@dataclass(frozen=True)
class Shuffle:
    """One shuffle by user; with ``statistics``, partitions are reduced to these first.

    ``features`` are the columns of partitions that have features of items.
    """

    client: Client
    columns: PartitionColumns
    n_shards: int
    features: Sequence[str] = ()
    statistics: bool = False
    tell: Tell = silent
    _made: list[Future] = field(default_factory=list)

    def run(
        self, parts: Iterable[object], catalogue: ItemBroadcast | None, **how: Any
    ) -> ShuffledData:
        """Bring partitions together; leave nothing else on the cluster.

        ``how`` has the arguments of `read_label_table`.
        """
        try:
            items = None if catalogue is None else self._submit(identity, catalogue)
            tables = self._read(parts, items)
            seen, kinds = zip(*self._each(_survey, tables), strict=True)
            labels = read_label_table(seen, column=self.columns.label, **how)
            roles = mixed_ids(kinds)
            if roles:
                tables = [(self._submit(ids_as_texts, one, roles), name) for one, name in tables]
            if catalogue is None and self.statistics:
                found = self._each(near_in, tables, self.features)
                catalogue = catalogue_in_rows(found, self.features)
            elif catalogue is None:
                found = self._each(items_in, tables, self.features)
                catalogue = join_catalogue(found, self.features)
            items = self._submit(identity, catalogue) if items is None else items
            shards, sizes = self._joined(tables, items, labels)
            counting = [self._submit(_count, one, labels) for one in shards]
            counted = self._done("shuffling by user", counting)
            n_bytes = sum(self.client.gather(sizes))
        finally:
            self._release()
        release_memory_of_workers(self.client)
        there = [number for number, one in enumerate(counted) if one is not None]
        counts = LabelCounts.joined([counted[number] for number in there])
        if self.statistics:
            counts = replace(counts, n_labels=labels.n_labels, n_positive=labels.n_positive)
        full = [shards[number] for number in there]
        return ShuffledData(full, catalogue, labels, counts, n_bytes)

    def _read(self, parts: Iterable[object], items: Future | None) -> list[Part]:
        dask = require("dask", "Labels on a cluster", "dask")
        tables = []
        for number, part in enumerate(parts):
            # Delayed partitions are computed on the cluster.
            given = self.client.compute(part) if dask.is_dask_collection(part) else part
            name = f"Partition {number}"
            name += f" ({Path(part).name})" if isinstance(part, str | Path) else ""
            table = self._submit(read_part, given, name, self.columns, items, self.features)
            tables.append((table, name))
        if not tables:
            raise ValueError("There is no partition: give one at least.")
        return tables

    def _joined(
        self, tables: list[Part], items: Future, labels: LabelTable
    ) -> tuple[list[Future], list[Future]]:
        """Return the shards, and how many bytes each partition gives them."""
        n_shards, join = self.n_shards, join_statistics if self.statistics else join_pieces
        if self.statistics:
            given = (n_shards, items, labels)
            pieces = [self._submit(reduce_part, table, name, *given) for table, name in tables]
        else:
            pieces = [self._submit(by_shard, table, n_shards) for table, _ in tables]
        sizes = [self.client.submit(_size_of, one, pure=False) for one in pieces]
        shards = []
        for n in range(n_shards):
            mine = [self._submit(getitem, one, n) for one in pieces]
            shards.append(self.client.submit(join, mine, items, labels, pure=False))
        self._release()  # partitions and pieces go as soon as shards are made of them
        return shards, sizes

    def _submit(self, work: Callable[..., object], *given: object) -> Future:
        self._made.append(self.client.submit(work, *given, pure=False))
        return self._made[-1]

    def _each(self, work: Callable[..., object], tables: list[Part], *given: object) -> list[Any]:
        waiting = [self._submit(work, table, name, *given) for table, name in tables]
        return self._done("reading partitions", waiting)

    def _done(self, what: str, waiting: list[Future]) -> list[Any]:
        """Return results, and report how many are done."""
        distributed = require("distributed", "Labels on a cluster", "dask")
        completed = distributed.as_completed(waiting, loop=self.client.loop)
        for number, _ in enumerate(completed, start=1):
            self.tell(what, number, len(waiting))
        return list(self.client.gather(waiting))

    def _release(self) -> None:
        release(self._made)
        self._made.clear()


def _survey(table: pa.Table, name: str) -> tuple[Counted, tuple[str, dict[str, str]]]:
    return count_labels(table, name), kinds_of_columns(table, name)


def _size_of(pieces: Sequence[Any]) -> int:
    return sum(one.nbytes for one in pieces if one is not None)


def _count(shard: Annotations | Statistics | None, labels: LabelTable) -> LabelCounts | None:
    """Count a shard; statistics do not know how many labels and items there are."""
    if not isinstance(shard, Statistics):
        return None if shard is None else LabelCounts.of(shard)
    weight, nothing = shard.class_weight.sum(axis=0), np.zeros(0)
    if shard.grades is not None:
        yes = labels.are_positive(shard.grades)
        weight = np.array([weight[~yes].sum(), weight[yes].sum()])
    labelled = (nothing, nothing.astype(np.intp), frozenset({LogisticLoss.name}), np.zeros(3))
    return LabelCounts(shard.user_ids, shard.has_pairs, 0, 0, weight, *labelled, None)
