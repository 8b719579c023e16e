"""A crowd on a Dask cluster: rows brought together by person once, then visited."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from operator import getitem
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from likeminds._support.arrays import IdArray
from likeminds._support.optional import require
from likeminds.cluster.census import Census, count, joint_census
from likeminds.cluster.checkpoints import Journal
from likeminds.cluster.reading import Catalogue, Columns, by_shard, join_pieces, read_part
from likeminds.cluster.teaching import teach_prior, teach_statistics
from likeminds.cluster.visiting import Traffic, let_go
from likeminds.data.identifiers import as_id_array
from likeminds.rankers.fitting import StatisticsRanker
from likeminds.rankers.hierarchical import HierarchicalRanker
from likeminds.rankers.inputs import Elsewhere


@dataclass
class Shards(Elsewhere):
    """People in shards on the workers of a cluster: all rows of a person in one of them.

    Rankers are fitted to it as to `Annotations`: ``HierarchicalRanker().fit(shards)`` visits the
    shards with a small state, sums what comes back, and is an ordinary ranker in the end, equal
    to the one that is fitted here.

    Attributes
    ----------
    client : distributed.Client
        The cluster.
    catalogue : Catalogue
        The items and their features, which every worker has.
    said : list of futures
        The labels of each shard.
    census : Census
        What is known of all of them.
    journal : Journal
        What visits answered, where it is kept: see `checkpointed`.
    traffic : Traffic
        What the last fit sent and received.

    Examples
    --------
    >>> from distributed import Client
    >>> from likeminds import HierarchicalRanker, load_electricity
    >>> homes = load_electricity()
    >>> parts = [homes[start : start + 1000] for start in range(0, 4000, 1000)]
    >>> here = {"n_workers": 1, "processes": False, "dashboard_address": ":0"}
    >>> with Client(**here) as client:
    ...     named = {"item_ids": homes.item_ids, "group": "group"}
    ...     shards = Shards.from_parts(parts, client, homes.features, n_shards=3, **named)
    ...     ranker = HierarchicalRanker(n_groups=1).fit(shards)
    >>> ranker.coef_.shape
    (84, 6)
    """

    client: Any
    catalogue: Catalogue
    said: list[Any]
    census: Census
    journal: Journal
    traffic: Traffic

    @classmethod
    def from_parts(
        cls,
        parts: Iterable[Any],
        client: Any,
        features: ArrayLike | Mapping[Hashable, ArrayLike],
        *,
        item_ids: Iterable[Hashable] | None = None,
        feature_names: Iterable[str] | None = None,
        n_shards: int | None = None,
        user: str = "user",
        item: str = "item",
        label: str = "label",
        weight: str | None = None,
        group: str | None = None,
        positive: Hashable | None = None,
        threshold: float | None = None,
    ) -> "Shards":
        """Bring the rows of partitions together by person, in one shuffle.

        Parameters
        ----------
        parts : iterable
            The partitions: data frames, Arrow tables, `Annotations`, paths of Parquet files that
            workers can read, or delayed or future ones of these. Those that are given as data
            travel with the tasks: for large ones, give paths or delayed ones.
        client : distributed.Client
            The cluster.
        features : array of shape (n_items, n_features), or mapping from item to features
            What items are like; every worker gets it.
        item_ids : array of shape (n_items,), optional
            The items, where features are an array.
        feature_names : sequence of str, optional
            The names of the features.
        n_shards : int, optional
            How many shards; by default two for each thread of the cluster.
        user, item, label, weight, group, positive, threshold
            See `Columns`.
        """
        distributed = require("distributed", "A crowd on a cluster", "dask")
        columns = Columns(user, item, label, weight, group, positive, threshold)
        catalogue = _catalogue(features, item_ids, feature_names)
        if n_shards is None:
            n_shards = 2 * max(sum(client.nthreads().values()), 1)
        submit = partial(client.submit, pure=False)
        items = submit(_same, catalogue)
        pieces = []
        for number, part in enumerate(parts):
            given = client.compute(part) if hasattr(part, "__dask_graph__") else part
            table = submit(read_part, given, _name_of(part, number), columns, items)
            pieces.append(submit(by_shard, table, n_shards))
        if not pieces:
            raise ValueError("There is no partition: give one at least.")
        mine = [[submit(getitem, one, number) for one in pieces] for number in range(n_shards)]
        said = [submit(join_pieces, some, items) for some in mine]
        counted = [submit(count, one) for one in said]
        distributed.wait([*said, *counted])
        found = client.gather(counted)
        there = [number for number, one in enumerate(found) if one is not None]
        if not there:
            raise ValueError("There are no annotations: all partitions are empty.")
        census = joint_census([found[number] for number in there])
        return cls(client, catalogue, [said[n] for n in there], census, Journal(), Traffic())

    @classmethod
    def from_parquet(cls, folder: str | Path, client: Any, features: Any, **more: Any) -> "Shards":
        """Read a folder of Parquet files, one partition each: see `from_parts`."""
        files = sorted(Path(folder).glob("*.parquet"))
        if not files:
            raise FileNotFoundError(f"There are no Parquet files in {folder}.")
        return cls.from_parts(map(str, files), client, features, **more)

    @classmethod
    def from_frame(cls, frame: Any, client: Any, features: Any, **more: Any) -> "Shards":
        """Take a Dask data frame, partition by partition: see `from_parts`."""
        return cls.from_parts(frame.to_delayed(), client, features, **more)

    def checkpointed(self, folder: str | Path, *, resume: bool = False, every: int = 1) -> "Shards":
        """Return the same crowd, whose next fit writes down what visits answer.

        Parameters
        ----------
        folder : path
            Where; small files, each written whole or not at all.
        resume : bool, default=False
            Go on with the fit that was written there, instead of beginning anew.
        every : int, default=1
            After how many visits to write.
        """
        journal = Journal(Path(folder), every, resume)
        return Shards(self.client, self.catalogue, self.said, self.census, journal, Traffic())

    def __len__(self) -> int:
        return len(self.said)

    def __repr__(self) -> str:
        census = self.census
        return (
            f"Shards: {census.n_labels:,} labels by {len(census.user_ids):,} people on "
            f"{len(self.catalogue.ids):,} items, in {len(self)} shards"
        )

    def teach(self, ranker: Any) -> None:
        """Fit a ranker to the crowd; leave nothing of the fit on the cluster."""
        self.traffic = Traffic()
        if isinstance(ranker, HierarchicalRanker):
            teach_prior(self, ranker)
        elif isinstance(ranker, StatisticsRanker) and not ranker.item_effects:
            teach_statistics(self, ranker)
        else:
            raise ValueError(
                f"{type(ranker).__name__} as it is set cannot be fitted on a cluster: "
                "HierarchicalRanker can, and rankers that need statistics alone, without item "
                "effects."
            )

    def release(self) -> None:
        """Take the labels off the cluster."""
        let_go(self.said)


def _same(catalogue: Catalogue) -> Catalogue:
    return catalogue


def _name_of(part: Any, number: int) -> str:
    return f"Partition {number}" + (f" ({Path(part).name})" if isinstance(part, str | Path) else "")


def _catalogue(
    features: Any, item_ids: Iterable[Hashable] | None, names: Iterable[str] | None
) -> Catalogue:
    if isinstance(features, Mapping):
        item_ids, features = list(features), [features[one] for one in features]
    table = np.asarray(features)
    if table.dtype.kind != "f":
        table = table.astype(np.float64)
    if table.ndim != 2:
        raise ValueError(f"features have {table.ndim} axes instead of two: items x features.")
    ids: IdArray = np.arange(len(table)) if item_ids is None else as_id_array(item_ids, "items")
    if len(ids) != len(table):
        raise ValueError(f"There are {len(ids)} items, but features of {len(table)}.")
    called = [f"x{j}" for j in range(table.shape[1])] if names is None else list(names)
    return Catalogue(ids, table, tuple(called))
