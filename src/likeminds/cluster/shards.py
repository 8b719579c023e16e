"""Users on a Dask cluster: rows are shuffled by user once, and fits then visit the shards."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from likeminds._util.lazy_imports import require
from likeminds._util.map_reduce import UserBlock
from likeminds._util.text_format import counted
from likeminds.cluster.checkpoints import Journal, mark_of
from likeminds.cluster.client import (
    Client,
    Future,
    Tell,
    release,
    release_memory_of_workers,
    silent,
)
from likeminds.cluster.executor import ClusterSession, DaskExecutor, Traffic
from likeminds.cluster.in_place_posteriors import (
    find_posteriors_in_place,
    finish,
    order_as_files,
    write_users_of,
)
from likeminds.cluster.item_broadcast import (
    FeatureSource,
    ItemBroadcast,
    is_in_rows,
    read_catalogue,
)
from likeminds.cluster.partitions import LabelTable, PartitionColumns
from likeminds.cluster.rankings import mean_auc, posteriors_of_new_users
from likeminds.cluster.shuffle import Shuffle
from likeminds.data.annotations import Annotations, LabelSource
from likeminds.data.covariates import Covariates
from likeminds.data.out_of_core.parquet_parts import files_in
from likeminds.mixed_model.losses import ChoiceLoss
from likeminds.mixed_model.posterior import Posterior
from likeminds.rankers.ranker import Ranker
from likeminds.rankers.statistics_rankers import StatisticsRanker
from likeminds.rankers.training_checks import record_training
from likeminds.rankers.training_data import LabelCounts, SharedTable, TrainingData
from likeminds.storage.models import folder_of_users
from likeminds.storage.user_files import user_files_of


@dataclass
class Shards(LabelSource[Ranker, Posterior]):
    """Users in shards on the workers of a cluster: all rows of a user are in one shard.

    Rankers fit shards as they fit `Annotations`: ``HierarchicalRanker().fit(shards)`` sends a small
    state to the shards and sums their answers. The ranker equals one that is fitted in one process.

    Attributes
    ----------
    client : distributed.Client
        The cluster.
    catalogue : ItemBroadcast
        The items and their features, which are sent to every worker.
    parts : list of futures
        The labels of each shard, or their statistics.
    counts : LabelCounts
        Counts of all labels.
    journal : Journal
        The checkpoint: see `checkpointed`.
    traffic : Traffic
        The traffic of the last fit.
    labels : LabelTable
        The reading of labels.
    user_features : Covariates, optional
        Covariates of users.
    tell : callable
        Called as ``tell(what, done, total)`` while partitions are read and shards visited.
    saved_in : Path, optional
        The folder of posteriors: see `saved_to`.
    through_client : bool, optional
        Whether the client writes them; by default, only if workers do not see the folder.
    are_statistics : bool
        Whether shards have statistics of labels instead of rows.
    shuffled : int
        The number of bytes that the shuffle sent.

    Examples
    --------
    >>> from distributed import Client
    >>> from likeminds import HierarchicalRanker, load_electricity
    >>> homes = load_electricity()
    >>> parts = [homes[start : start + 1000] for start in range(0, 4000, 1000)]
    >>> here = {"n_workers": 1, "processes": False, "dashboard_address": ":0"}
    >>> with Client(**here) as client:
    ...     named = {"item_ids": homes.item_ids, "n_shards": 3}
    ...     shards = Shards.from_parts(parts, client, homes.features, **named)
    ...     ranker = HierarchicalRanker(n_groups=1).fit(shards)
    >>> ranker.coef_.shape
    (84, 6)
    """

    client: Client
    catalogue: ItemBroadcast
    parts: list[Future]
    counts: LabelCounts
    journal: Journal
    traffic: Traffic
    labels: LabelTable = field(default_factory=LabelTable)
    user_features: Covariates | None = None
    tell: Tell = silent
    saved_in: Path | None = None
    through_client: bool | None = None
    are_statistics: bool = False
    shuffled: int = 0

    @classmethod
    def from_parts(
        cls,
        parts: Iterable[object],
        client: Client,
        features: FeatureSource | None = None,
        *,
        item_ids: Iterable[Hashable] | None = None,
        feature_names: Iterable[str] | None = None,
        n_shards: int | None = None,
        user: str = "user",
        item: str = "item",
        label: str = "label",
        weight: str | None = None,
        choice_set: str | None = None,
        positive: Hashable | None = None,
        threshold: float | str | None = None,
        grades: bool | Sequence[Hashable] | None = None,
        user_features: Mapping[Hashable, Any] | str | Path | object = None,
        statistics: bool = False,
        tell: Tell = silent,
    ) -> "Shards":
        """Bring the rows of partitions together by user, in one shuffle.

        Parameters
        ----------
        parts : iterable
            The partitions: data frames, Arrow tables, `Annotations`, paths of Parquet or CSV files
            that workers can read, or delayed or future ones of these. Partitions in memory are sent
            with the tasks: for large ones, pass paths or delayed objects.
        client : distributed.Client
            The cluster.
        features : array, mapping, data frame, path, or list of str, optional
            The features of items, which are sent to every worker: an array (n_items, n_features), a
            mapping from item to features, or a table with a row per item. A list names columns of
            the partitions. Without features, items have learned effects and factors.
        item_ids : array of shape (n_items,), optional
            The items, if features are an array.
        feature_names : sequence of str, optional
            The names of the features.
        n_shards : int, optional
            The number of shards; by default one for each thread of the cluster.
        user, item, label, weight, choice_set : str
            The names of the columns. Columns of weights and choice sets are optional, and found
            by their usual names. Columns ``picks_worst`` and ``tied`` mark rows as in
            `Annotations`.
        positive, threshold, grades : optional
            The reading of labels, as in `Annotations`: more than two numbers are grades.
        user_features : mapping, data frame or path, optional
            Covariates of users, as in `Annotations`.
        statistics : bool, default=False
            Reduce partitions to statistics of users when they are read, and send these instead of
            rows, if they are smaller. `ThreeLevelRanker` and other rankers of statistics need
            nothing else. Other rankers, searches, item effects and scores need rows, and raise an
            error. Features that are columns may then differ between the rows of an item.
        tell : callable, optional
            Called as ``tell(what, done, total)`` while partitions are read and shards visited.
        """
        require("distributed", "Labels on a cluster", "dask")
        if n_shards is None:
            n_shards = max(sum(client.nthreads().values()), 1)
        if statistics and features is None:
            raise ValueError(
                "Statistics need features: pass features=, or leave out statistics=True."
            )
        if statistics and threshold == "median":
            raise ValueError(
                'threshold="median" needs all ratings of a user, but a partition may have only '
                "some: leave out statistics=True."
            )
        catalogue, names = None, []
        if is_in_rows(features):
            names = list(features or ())
        else:
            catalogue = read_catalogue(features, item, item_ids, feature_names)
        columns = PartitionColumns(user, item, label, weight, choice_set)
        known = None if user_features is None else Covariates.read(user_features, user)
        how: dict[str, Any] = {"positive": positive, "threshold": threshold, "grades": grades}
        shuffle = Shuffle(
            client,
            tell,
            columns=columns,
            n_shards=n_shards,
            features=names,
            statistics=statistics,
        )
        shards, items, labels, counts, n_bytes = shuffle.run(parts, catalogue, **how)
        return cls(
            client,
            items,
            shards,
            counts,
            Journal(),
            Traffic(),
            labels,
            known and known.written_as(counts.user_ids),
            tell,
            are_statistics=statistics,
            shuffled=n_bytes,
        )

    @classmethod
    def from_folder(
        cls, folder: str | Path, client: Client, features: FeatureSource | None = None, **more: Any
    ) -> "Shards":
        """Read a folder of Parquet or CSV files, one partition each: see `from_parts`."""
        files = [str(one.absolute()) for one in files_in(Path(folder))]
        return cls.from_parts(files, client, features, **more)

    @classmethod
    def from_frame(
        cls, frame: Any, client: Client, features: FeatureSource | None = None, **more: Any
    ) -> "Shards":
        """Take a Dask data frame, partition by partition: see `from_parts`."""
        return cls.from_parts(frame.to_delayed(), client, features, **more)

    def checkpointed(self, folder: str | Path, *, resume: bool = False) -> "Shards":
        """Return the same shards, whose next fit writes a checkpoint: the sums of its passes.

        Parameters
        ----------
        folder : path
            The folder of small files, each written atomically.
        resume : bool, default=False
            Continue the fit that was written there, instead of starting a new one.
        """
        return replace(self, journal=Journal(Path(folder), resume), traffic=Traffic())

    def saved_to(self, folder: str | Path, *, through_client: bool | None = None) -> "Shards":
        """Return the same shards, whose next fit leaves posteriors of users on the workers.

        The fit saves the ranker: a folder with the prior, and a file for the users of each shard,
        which workers write as ``save(ranker, folder, users_per_file=...)`` does. The ranker reads
        its users from there, like a loaded one.

        Parameters
        ----------
        folder : path
            The folder of the model.
        through_client : bool, optional
            Whether the client writes users, one shard at a time, because workers do not see the
            folder. By default, this is tested.
        """
        place = Path(folder).resolve()
        return replace(self, saved_in=place, through_client=through_client, traffic=Traffic())

    @property
    def table(self) -> SharedTable:
        """Facts that hold for the rows of all shards."""
        items = self.catalogue
        return SharedTable(
            items.features,
            items.ids,
            items.names,
            has_items=True,
            per_item=not items.in_rows,
            reading=self.labels.reading,
            user_features=self.user_features,
        )

    def __len__(self) -> int:
        return len(self.parts)

    def __repr__(self) -> str:
        counts = self.counts
        labels = counted(counts.n_labels, "label")
        if counts.loss == ChoiceLoss.name:
            labels = counted(counts.n_positive, "choice")
        what = f"Shards: {labels} by {len(counts.user_ids):,} people"
        if not self.are_statistics:
            what += f" on {len(self.catalogue.ids):,} items"
        return f"{what}, in {len(self)} shards" + " of statistics" * self.are_statistics

    def fit_ranker(self, ranker: Ranker) -> None:
        """Fit a ranker to the users, and release all futures of the fit."""
        if not isinstance(ranker, StatisticsRanker):
            self._refuse_statistics(type(ranker).__name__)
        self._record_training(ranker)
        self.traffic = Traffic()
        self.journal.open(self._about(ranker))
        session = ClusterSession(self.client, self.tell, journal=self.journal, traffic=self.traffic)
        saved = nullcontext() if self.saved_in is None else folder_of_users(self.saved_in)
        with saved as folder:
            places = list(self.counts.places)
            both = zip(self.parts, places, strict=True)
            parts = [session.make(UserBlock.of_some, data, users) for data, users in both]
            rows: DaskExecutor[UserBlock[Annotations]] = DaskExecutor(session, parts, places)
            in_place = None if folder is None else partial(find_posteriors_in_place, self, folder)
            try:
                ranker._learn_from(
                    TrainingData(
                        rows,
                        self.table,
                        self.counts,
                        posteriors_in_place=in_place,
                        can_collect=False,
                    )
                )
            finally:
                session.release()
            ranker.__dict__.pop("annotations_", None)
            if folder is not None and user_files_of(ranker) is None:  # solved in this process
                write_users_of(ranker, folder, len(self))
            elif folder is not None:
                order_as_files(ranker, self.counts.places)
                finish(ranker, folder)
        release_memory_of_workers(self.client)

    def _record_training(self, ranker: Ranker) -> None:
        """Record the training data as other fits do; labels of one class raise ValueError."""
        counts, names = self.counts, self.catalogue.names
        if not counts.class_weight.all():
            raise ValueError(
                "All labels are of one class, so a ranking cannot be learned: a ranker "
                "needs positive and negative labels."
            )
        n_choices = counts.n_positive if counts.loss == ChoiceLoss.name else 0
        reading = self.labels.reading
        record_training(ranker, names, reading, n_labels=counts.n_labels, n_choices=n_choices)

    def _about(self, ranker: Ranker) -> dict[str, object]:
        """Return the facts of a fit that must equal those of its checkpoint."""
        counts, known = self.counts, self.user_features
        parameters = ranker.get_params().items()
        return {
            "ranker": type(ranker).__name__,
            "parameters": {k: repr(v) for k, v in parameters if k not in ("callback", "verbose")},
            "users": len(counts.user_ids),
            "labels": counts.n_labels,
            "positive": counts.n_positive,
            "data": mark_of((self.catalogue.features, counts.row_weight, counts.class_weight)),
            "shards": [len(places) for places in counts.places],
            "reading": repr(self.labels.reading),
            "covariates": known and mark_of([one.tolist() for one in known.columns]),
        }

    def score(self, ranker: Ranker) -> float:
        """Return the mean over these users of the AUC of their rows: ``ranker.score(shards)``."""
        self._refuse_statistics("A score")
        return mean_auc(self, ranker)

    def newcomers(self, ranker: Ranker) -> Posterior:
        """Return the posteriors of these users as new users: ``ranker.newcomer(shards)``."""
        self._refuse_statistics("newcomer")
        return posteriors_of_new_users(self, ranker)

    def _refuse_statistics(self, what: str) -> None:
        if self.are_statistics:
            raise TypeError(
                f"{what} needs rows of users, but these shards have only statistics: make shards "
                "without statistics=True."
            )

    def release(self) -> None:
        """Release the labels on the cluster."""
        release(self.parts)
