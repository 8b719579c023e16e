"""Rows in Spark (extra ``spark``): executors reduce them to statistics, which this process merges.

`statistics_of_batches` is for ``DataFrame.mapInArrow``, and for ``map_batches`` of ``ray.data``:
see the page on clusters.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from likeminds.cluster.checkpoints import from_bytes, to_bytes
from likeminds.cluster.item_broadcast import FeatureSource, ItemBroadcast, read_catalogue
from likeminds.cluster.partitions import (
    LabelTable,
    PartitionColumns,
    join_pieces,
    read_label_table,
    read_part,
)
from likeminds.cluster.rankings import mean_of_sums, sum_of_auc
from likeminds.data.annotations import Annotations, LabelSource
from likeminds.losses import as_loss
from likeminds.losses.statistics import Statistics
from likeminds.mixed_model.posterior import Posterior
from likeminds.rankers.ranker import Ranker
from likeminds.rankers.statistics_rankers import StatisticsRanker, statistics_of
from likeminds.rankers.training_checks import record_training

R = TypeVar("R", bound=StatisticsRanker)

# A row for each partition: the statistics of its users, as the content of an .npz.
SCHEMA = "statistics binary"
_SCORES = "total double, users long"


@dataclass(frozen=True)
class SparkReader:
    """Reads partitions on executors, which get a copy."""

    columns: PartitionColumns
    catalogue: ItemBroadcast
    labels: LabelTable

    @classmethod
    def of(
        cls,
        counts: Mapping[Hashable, int],
        features: FeatureSource,
        *,
        columns: PartitionColumns | None = None,
        item_ids: Iterable[Hashable] | None = None,
        feature_names: Iterable[str] | None = None,
        **how: Any,
    ) -> "SparkReader":
        """Read labels by their counts; ``how`` are the arguments of `SparkRows` for labels."""
        columns = columns or PartitionColumns()
        counted = ("The table", list(counts), list(counts.values()))
        labels = read_label_table([counted], column=columns.label, **how)
        catalogue = read_catalogue(features, columns.item, item_ids, feature_names)
        return cls(columns, catalogue, labels)

    def annotations(self, batches: Iterable[pa.RecordBatch]) -> Annotations | None:
        """Return the rows of a partition; None if it is empty."""
        some = [batch for batch in batches if batch.num_rows]
        if not some:
            return None
        whole = pa.Table.from_batches(some)
        table = read_part(whole, "A partition", self.columns, self.catalogue, ())
        return join_pieces([table], self.catalogue, self.labels)


def statistics_of_batches(
    batches: Iterable[pa.RecordBatch], reading: SparkReader, graded: bool = False
) -> Iterator[pa.RecordBatch]:
    """Reduce the rows of a partition to one row of statistics, if any; see ``SCHEMA``.

    Examples
    --------
    >>> import likeminds
    >>> homes = likeminds.load_electricity()
    >>> rows = pa.table({"user": homes.users[:40], "item": homes.items[:40],
    ...                  "label": homes.labels[:40]})
    >>> reading = SparkReader.of({False: 30, True: 10}, homes.features, item_ids=homes.item_ids)
    >>> found = list(statistics_of_batches(rows.to_batches(), reading))
    >>> merged_statistics(found, reading.catalogue).user_ids.tolist()
    ['household-001']
    """
    rows = reading.annotations(batches)
    if rows is None:
        return
    found = statistics_of(rows, graded)
    table = found.rows.table[:0]  # the origin of the catalogue
    small = replace(found, rows=replace(found.rows, table=table))
    yield pa.record_batch({"statistics": [to_bytes(small)]})


def merged_statistics(
    found: Iterable[pa.Table | pa.RecordBatch], catalogue: ItemBroadcast
) -> Statistics:
    """Merge the results of `statistics_of_batches` for all partitions.

    Rows of a user may be in several partitions: statistics are sums.
    """
    parts = []
    for rows in found:
        for content in rows["statistics"].to_pylist():
            numbers: Statistics = from_bytes(content)[0]
            rows_of_users = replace(numbers.rows, table=catalogue.features)
            parts.append(replace(numbers, rows=rows_of_users))
    if not parts:
        raise ValueError("There are no annotations: all partitions are empty.")
    return Statistics.joined(parts)


def fit_statistics(
    ranker: R, found: Iterable[pa.Table | pa.RecordBatch], reading: SparkReader
) -> R:
    """Fit a ranker, such as `ThreeLevelRanker`, to results of `statistics_of_batches`.

    ``found`` has the tables of all partitions, in any order. The fitted ranker is returned.
    """
    refuse_visits(ranker)
    labels, catalogue = reading.labels, reading.catalogue
    if labels.binary is not None and len(set(labels.binary.tolist())) < 2:
        raise ValueError(
            "All labels are of one class, so a ranking cannot be learned: a ranker needs "
            "positive and negative labels."
        )
    statistics = merged_statistics(found, catalogue)
    record_training(ranker, catalogue.names, labels.reading, n_labels=sum(labels.counts))
    for name in ("statistics_", "annotations_"):
        ranker.__dict__.pop(name, None)
    ranker._fit_statistics(statistics)
    return ranker


def refuse_visits(ranker: Ranker) -> None:
    """Raise TypeError for a ranker that needs more than statistics."""
    if not isinstance(ranker, StatisticsRanker):
        raise TypeError(
            f"{type(ranker).__name__} visits users many times, but Spark keeps no state between "
            "visits. Write the rows, frame.write.parquet(folder), and fit it to "
            "likeminds.cluster.Shards.from_folder(folder, client, features). Or fit a ranker of "
            "statistics, such as ThreeLevelRanker."
        )


class SparkFrame(Protocol):
    """The methods of a pyspark data frame that `SparkRows` uses."""

    columns: list[str]
    select: Callable[..., "SparkFrame"]
    repartition: Callable[..., "SparkFrame"]
    mapInArrow: Callable[..., "SparkFrame"]  # noqa: N815 - Spark's name
    groupBy: Callable[..., Any]  # noqa: N815
    toArrow: Callable[[], pa.Table]  # noqa: N815


class SparkRows(LabelSource[Ranker, Posterior]):
    """Labels in a Spark data frame, for rankers of statistics.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        One row for each label.
    features : array of shape (n_items, n_features), mapping, data frame or path
        The features of items, which are sent to every executor.
    item_ids, feature_names : sequences, optional
        The items and the names of the features, if features are an array.
    by_user : int, optional
        The number of partitions to shuffle rows into by user. Without it, partitions stay as they
        are: rows of one user may be in several, and each returns statistics of its own rows.
    positive, threshold, grades
        The reading of labels, as in `Shards.from_parts`.
    user, item, label, weight, choice_set : str, optional
        The names of the columns, as in `Shards.from_parts`.

    Examples
    --------
    Spark needs Java, so this is not run::

        frame = spark.read.parquet("labels")
        labels = SparkRows(frame, "items.csv")
        ranker = likeminds.ThreeLevelRanker().fit(labels)
    """

    def __init__(
        self,
        frame: SparkFrame,
        features: FeatureSource,
        *,
        item_ids: Iterable[Hashable] | None = None,
        feature_names: Iterable[str] | None = None,
        by_user: int | None = None,
        positive: Hashable | None = None,
        threshold: float | None = None,
        grades: bool | Sequence[Hashable] | None = None,
        **called: str,
    ) -> None:
        columns = PartitionColumns(**PartitionColumns(**called).found_in(frame.columns))
        wanted = [name for name in astuple(columns) if name is not None]
        missing = [name for name in wanted if name not in frame.columns]
        if missing:
            raise ValueError(f"The frame has no column {', '.join(missing)}: name another.")
        self.frame = frame.select(*wanted)
        if by_user is not None:
            self.frame = self.frame.repartition(by_user, columns.user)
        counts = {row[0]: row[1] for row in self.frame.groupBy(columns.label).count().collect()}
        if None in counts:
            raise ValueError(f"The frame has rows without a {columns.label}: leave them out.")
        self.reading = SparkReader.of(
            counts,
            features,
            columns=columns,
            item_ids=item_ids,
            feature_names=feature_names,
            positive=positive,
            threshold=threshold,
            grades=grades,
        )

    def fit_ranker(self, ranker: Ranker) -> None:
        """Fit a ranker of statistics: executors reduce their rows, and this process merges them."""
        refuse_visits(ranker)
        assert isinstance(ranker, StatisticsRanker)
        graded = as_loss(ranker.loss).takes_grades
        work = partial(statistics_of_batches, reading=self.reading, graded=graded)
        found = self.frame.mapInArrow(work, SCHEMA).toArrow()
        fit_statistics(ranker, [found], self.reading)

    def score(self, ranker: Ranker) -> float:
        """Return the mean over users of the AUC of their rows, shuffled by user first."""
        rows = self.frame.repartition(self.reading.columns.user)
        found = rows.mapInArrow(partial(_scores_of_batches, self.reading, ranker), _SCORES)
        total = found.groupBy().sum("total", "users").collect()[0]
        return mean_of_sums(total[:1], total[1:])

    def newcomers(self, ranker: Ranker) -> Posterior:
        """Raise TypeError: only Dask, or one process, computes posteriors of new users."""
        raise TypeError(
            f"Spark cannot compute posteriors of new users of {type(ranker).__name__}: pass their "
            "rows as Annotations, or likeminds.cluster.Shards."
        )


def _scores_of_batches(
    reading: SparkReader, ranker: Ranker, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    rows = reading.annotations(batches)
    if rows is not None:
        total, users = sum_of_auc(rows, ranker)
        yield pa.record_batch({"total": [total], "users": [users]})
