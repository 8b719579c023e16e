"""Rows of partitions brought together by person, in one shuffle."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from operator import getitem
from pathlib import Path
from typing import Any

from likeminds._support.optional import require
from likeminds.cluster.catalogue import Catalogue, is_in_rows, items_in, join_catalogue
from likeminds.cluster.census import Census, count, joint_census
from likeminds.cluster.labels import LabelTable, count_labels, read_label_table
from likeminds.cluster.memory import give_back_everywhere
from likeminds.cluster.partitions import Columns, by_shard, join_pieces, read_part
from likeminds.cluster.site import let_go, same

# Called as tell(what, done, total) while something goes on.
Tell = Callable[[str, int, int], None]


def silent(what: str, done: int, total: int) -> None:
    """Tell nobody."""
    del what, done, total


@dataclass(frozen=True)
class Gathered:
    """Everybody's labels in shards, and what is known of them."""

    said: list[Any]
    catalogue: Catalogue
    labels: LabelTable
    census: Census


@dataclass(frozen=True)
class Shuffle:
    """One shuffle by person.

    Attributes
    ----------
    client : distributed.Client
        The cluster.
    columns : Columns
        What the columns of partitions are called.
    n_shards : int
        How many shards are made.
    tell : callable
        Told how far it is.
    """

    client: Any
    columns: Columns
    n_shards: int
    tell: Tell = silent

    def run(
        self,
        parts: Iterable[Any],
        features: Any,
        catalogue: Catalogue | None,
        *,
        positive: Hashable | None,
        threshold: float | str | None,
        grades: bool | Sequence[Hashable] | None,
    ) -> Gathered:
        """Bring the rows of partitions together; leave nothing else on the cluster."""
        distributed = require("distributed", "A crowd on a cluster", "dask")
        named = list(features) if features is not None and is_in_rows(features) else []
        made: list[Any] = []

        def submit(work: Any, *given: Any) -> Any:
            made.append(self.client.submit(work, *given, pure=False))
            return made[-1]

        def each(work: Any, *given: Any) -> list[Any]:
            pairs = zip(tables, names, strict=True)
            waiting = [submit(work, table, name, *given) for table, name in pairs]
            self._watch(distributed, "reading partitions", waiting)
            return list(self.client.gather(waiting))

        try:
            items = None if catalogue is None else submit(same, catalogue)
            tables, names = [], []
            for number, part in enumerate(parts):
                given = self.client.compute(part) if hasattr(part, "__dask_graph__") else part
                names.append(_name_of(part, number))
                tables.append(submit(read_part, given, names[-1], self.columns, items, named))
            if not tables:
                raise ValueError("There is no partition: give one at least.")
            how: dict[str, Any] = {"positive": positive, "threshold": threshold, "grades": grades}
            labels = read_label_table(each(count_labels), **how)
            if catalogue is None:
                catalogue = join_catalogue(each(items_in, named), named)
                items = submit(same, catalogue)
            pieces = [submit(by_shard, table, self.n_shards) for table in tables]
            said = [
                self.client.submit(
                    join_pieces,
                    [submit(getitem, one, n) for one in pieces],
                    items,
                    labels,
                    pure=False,
                )
                for n in range(self.n_shards)
            ]
            let_go(made)  # partitions and pieces go as soon as shards are made of them
            counted = [submit(count, one) for one in said]
            self._watch(distributed, "bringing people together", counted)
            found = self.client.gather(counted)
        finally:
            let_go(made)
        give_back_everywhere(self.client)
        there = [number for number, one in enumerate(found) if one is not None]
        census = joint_census([found[number] for number in there])
        return Gathered([said[number] for number in there], catalogue, labels, census)

    def _watch(self, distributed: Any, what: str, waiting: list[Any]) -> None:
        """Tell how many are done; what fails is raised by whoever asks for it."""
        completed = distributed.as_completed(waiting, loop=self.client.loop)
        for done, _ in enumerate(completed, start=1):
            self.tell(what, done, len(waiting))


def _name_of(part: Any, number: int) -> str:
    return f"Partition {number}" + (f" ({Path(part).name})" if isinstance(part, str | Path) else "")
