"""Fits to shards: the steps of one process, over blocks of users on the cluster."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import iadd
from typing import TYPE_CHECKING, Any, Self, TypeVar

from likeminds._util.array_types import Float, IdArray, Index
from likeminds._util.map_reduce import (
    Executor,
    SumTuple,
    UserBlock,
    in_order,
    in_this_thread,
    one_blas_thread,
)
from likeminds.choice_models.importance_sampling import refuse_many_draws
from likeminds.cluster.checkpoints import mark_of
from likeminds.cluster.client import Future, identity, release
from likeminds.cluster.executor import ClusterSession, DaskExecutor
from likeminds.cluster.in_place_posteriors import (
    find_posteriors_in_place,
    finish,
    order_as_files,
    write_users_of,
)
from likeminds.cluster.label_table import LabelTable
from likeminds.data.annotations import Annotations
from likeminds.data.splits import folds_within_users
from likeminds.losses import as_loss
from likeminds.losses.statistics import AbstractStatistics, Form, Statistics
from likeminds.mixed_model.losses import ChoiceLoss
from likeminds.mixed_model.optimisers import PriorFit
from likeminds.mixed_model.responses import Responses
from likeminds.rankers.candidates import FromStatistics
from likeminds.rankers.hierarchical import HierarchicalRanker
from likeminds.rankers.ranker import Ranker
from likeminds.rankers.search import RankerCV
from likeminds.rankers.statistics_rankers import StatisticsRanker
from likeminds.rankers.three_level import ThreeLevelRanker
from likeminds.rankers.training_checks import warn_of_one_class
from likeminds.rankers.training_data import ScoredLabels, SharedTable, TrainingData
from likeminds.rankers.validation import record_training
from likeminds.solvers.newton_three_level import FastSolver

if TYPE_CHECKING:
    from likeminds.cluster.shards import Shards

T = TypeVar("T")

# Statistics of no more than so many bytes are merged and solved here: passes would take longer.
_LITTLE = 1 << 26


def fit_prior(shards: "Shards", ranker: HierarchicalRanker) -> None:
    """Fit a ranker with a learned prior."""
    _begin(shards, ranker)
    known = ranker._specification()
    n_users, n_features = len(shards.counts.user_ids), shards.catalogue.features.shape[1]
    refuse_many_draws(known.n_draws, n_users, n_features - len(known.fixed))
    shards.journal.open(about_fit(shards, ranker))
    session = ClusterSession(shards.client, shards.journal, shards.traffic, shards.tell)
    with shards.folder() as folder:

        def find_posteriors(
            model: Ranker, tasks: Responses, learned: PriorFit
        ) -> ScoredLabels | None:
            assert folder is not None
            assert isinstance(model, HierarchicalRanker)
            with session.in_reach():
                return find_posteriors_in_place(model, tasks, learned, shards, folder)

        data = TrainingData(
            _placed(shards, session, shards.parts),
            shards.table,
            shards.counts,
            posteriors_in_place=None if folder is None else find_posteriors,
            can_collect=False,
        )
        try:
            ranker._learn_from(data)
        finally:
            session.release()
        ranker.__dict__.pop("annotations_", None)
        if folder is not None:
            order_as_files(ranker, shards)
            finish(ranker, folder)


def _placed(
    shards: "Shards", session: ClusterSession, parts: Sequence[Future]
) -> DaskExecutor[UserBlock[Any]]:
    """Return an executor of parts, with the positions of their users."""
    places = list(shards.counts.places)
    both = zip(parts, places, strict=True)
    made = [session.make(UserBlock.of_some, data, users) for data, users in both]
    return DaskExecutor(session, made, places)


def about_fit(shards: "Shards", ranker: Ranker) -> dict[str, object]:
    """Return what a checkpoint has to agree with."""
    counts, known = shards.counts, shards.user_features
    digest = hashlib.sha256(shards.catalogue.features.tobytes())
    digest.update(counts.row_weight.tobytes())
    parameters = ranker.get_params().items()
    return {
        "ranker": type(ranker).__name__,
        "parameters": {k: repr(v) for k, v in parameters if k not in ("callback", "verbose")},
        "people": len(counts.user_ids),
        "labels": counts.n_labels,
        "positive": counts.n_positive,
        "data": digest.hexdigest(),
        "shards": [len(places) for places in counts.places],
        "reading": repr(shards.labels.reading),
        "covariates": known and mark_of([one.tolist() for one in known.columns]),
    }


def fit_statistics_ranker(shards: "Shards", ranker: StatisticsRanker) -> None:
    """Fit a ranker of statistics, which are merged here; three levels leave many where they are."""
    _begin(shards, ranker)
    session = ClusterSession(shards.client, shards.journal, shards.traffic, shards.tell)
    ranker.__dict__.pop("statistics_", None)
    try:
        _fit_parts(shards, ranker, session)
    finally:
        session.release()
    _save_users(shards, ranker)


def _fit_parts(shards: "Shards", ranker: StatisticsRanker, session: ClusterSession) -> None:
    in_rows, graded = shards.catalogue.in_rows, as_loss(ranker.loss).takes_grades
    parts = [session.make(_reduced, one, shards.labels, graded) for one in shards.parts]
    by_passes = isinstance(ranker, ThreeLevelRanker) and isinstance(ranker._solver(), FastSolver)
    sizes = session.gathered(session.submit(_size_of, one, in_rows) for one in parts)
    if by_passes and sum(sizes) > _LITTLE:
        blocks = _placed(shards, session, parts)
        release(parts)
        summary = StatisticsSummary.of(blocks, shards.counts.user_ids)
        scale = [f"{one:.6g}" for one in summary.feature_scale()]
        shards.journal.open(about_fit(shards, ranker) | {"scale": scale})
        warn_of_one_class(summary.user_ids, summary.has_pairs)
        ranker._fit_blocks(summary, blocks)
        return
    work = identity if in_rows else _without_table  # which is here already
    found = session.gathered(session.submit(work, one) for one in parts)
    ranker._fit_statistics(_merged(shards, found))


@dataclass(frozen=True)
class StatisticsSummary(AbstractStatistics):
    """What a fit needs to know of statistics in several blocks of users, which stay there."""

    user_ids: IdArray
    origin: Float
    class_weight: Float
    sums: SumTuple

    @classmethod
    def of(cls, blocks: Executor[UserBlock[Statistics]], user_ids: IdArray) -> Self:
        """Sum up the statistics of blocks, which have the same origin."""
        parts = list(blocks.map(_summarise, None))
        weight = in_order(((users, weight) for users, weight, _, _ in parts), len(user_ids))
        sums = reduce(iadd, (sums for _, _, sums, _ in parts))
        return cls(user_ids, parts[0][3], weight, sums)

    def feature_sums(self) -> SumTuple:
        """Return the sums over all blocks."""
        return self.sums


def _summarise(
    block: UserBlock[Statistics], *_unused: None
) -> tuple[Index | slice, Float, SumTuple, Float]:
    found = block.data
    return block.users, found.class_weight, found.feature_sums(), found.origin


def _size_of(found: Statistics, own_table: bool) -> int:
    """Return the bytes that statistics take, about."""
    rows = found.rows
    table = rows.table.nbytes if own_table else 0
    return int(found.dense.scatter.nbytes + 17 * len(rows.index) + table)


def fit_search(shards: "Shards", search: RankerCV) -> None:
    """Choose a ranker's parameters by statistics of folds, merged here, and held-out rows."""
    tuning = search._make_tuning()
    if not isinstance(tuning, FromStatistics):
        raise TypeError(
            f"{type(tuning.ranker).__name__} learns from rows, so every candidate would have "
            "to visit them anew: on a cluster, only rankers of statistics are tuned."
        )
    _begin(shards, search)
    session = ClusterSession(shards.client, shards.journal, shards.traffic)
    how = search.n_folds, search.random_state, tuning.form, tuning.graded
    found = session.gathered(session.submit(_folds_of, one, how) for one in shards.parts)
    folds = [[one[k] for one in found if one[k] is not None] for k in range(search.n_folds)]
    folds = [fold for fold in folds if fold]
    statistics = [_merged(shards, [one[0] for one in fold]) for fold in folds]
    held_out = [shards.table.joined([one[1] for one in fold]) for fold in folds]
    search._search(held_out, statistics, _no_rows, _no_rows)
    _save_users(shards, search)


def _save_users(shards: "Shards", ranker: Ranker) -> None:
    """Write the users of a ranker that was solved here, if that is asked for."""
    with shards.folder() as folder:
        if folder is not None:
            write_users_of(ranker, folder, len(shards))


def statistics_of(rows: Annotations, graded: bool, form: Form = "auto") -> Statistics:
    """Reduce rows to statistics, which do not hold the table of items."""
    return _without_table(Statistics.from_annotations(rows, form, graded=graded))


def _without_table(found: Statistics) -> Statistics:
    return replace(found, rows=replace(found.rows, table=found.rows.table[:0]))


@in_this_thread()
@one_blas_thread()
def _reduced(rows: Annotations | Statistics, labels: LabelTable, graded: bool) -> Statistics:
    """Reduce a shard to statistics: by all grades of all shards, or by yes or no."""
    if isinstance(rows, Statistics):
        if graded or rows.grades is None:
            return rows
        return rows.in_two_classes(labels.are_positive(rows.grades))
    found = Statistics.from_annotations(rows, graded=graded)
    return found.with_grades(labels.grades) if graded and labels.grades is not None else found


def _folds_of(
    rows: Annotations, how: tuple[int, int, Form, bool]
) -> list[tuple[Statistics, Annotations] | None]:
    """Return, for each fold, its statistics and its rows; None where it has none."""
    n_folds, seed, form, graded = how
    number = folds_within_users(rows, n_folds, seed)
    folds = [rows[number == k] if (number == k).any() else None for k in range(n_folds)]
    return [
        None if one is None else (statistics_of(one, graded, form), SharedTable.without(one))
        for one in folds
    ]


def _merged(shards: "Shards", found: Sequence[Statistics]) -> Statistics:
    if shards.catalogue.in_rows:
        return Statistics.joined(found)
    table = shards.catalogue.features  # which rows point into
    return Statistics.joined([replace(one, rows=replace(one.rows, table=table)) for one in found])


def _no_rows(*_: object) -> Annotations:
    raise AssertionError("Rankers of statistics need no rows.")


def _begin(shards: "Shards", ranker: Ranker) -> None:
    """Note what a fit notes of its annotations; refuse labels that are all alike."""
    counts = shards.counts
    if not counts.class_weight.all():
        raise ValueError(
            "All labels are of one class, so there is nothing to rank by: a ranker "
            "needs positive and negative labels."
        )
    n_choices = counts.n_positive if counts.loss == ChoiceLoss.name else 0
    names, reading = shards.catalogue.names, shards.labels.reading
    record_training(ranker, names, reading, n_labels=counts.n_labels, n_choices=n_choices)
