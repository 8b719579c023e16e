"""Rankers taught by shards: the same steps as in this process, with sums in place of rows."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from likeminds._util.map_reduce import UserBlock
from likeminds._util.threads import in_this_thread, one_blas_thread
from likeminds.choice_models.importance_sampling import refuse_many_draws
from likeminds.cluster.checkpoint_codec import mark_of
from likeminds.cluster.executor import ClusterSession, DaskExecutor, identity, release
from likeminds.cluster.in_place_posteriors import finish, order_as_files, put_away, settle_there
from likeminds.cluster.label_table import LabelTable
from likeminds.cluster.partition_statistics import as_asked
from likeminds.cluster.partitions import one_row
from likeminds.data.annotations import Annotations
from likeminds.data.splits import folds_within_users
from likeminds.losses import as_loss
from likeminds.losses.statistics import Form, Statistics, StatisticsSummary
from likeminds.mixed_model.losses import ChoiceLoss
from likeminds.rankers.candidates import FromStatistics
from likeminds.rankers.three_level import ThreeLevelRanker
from likeminds.rankers.training_checks import warn_of_one_class
from likeminds.rankers.training_data import SharedTable, TrainingData
from likeminds.rankers.validation import as_annotations
from likeminds.solvers.newton_three_level import FastSolver

# Statistics of no more than so many bytes are merged and solved here: visits would take longer.
_LITTLE = 1 << 26


def teach_prior(crowd: Any, ranker: Any) -> None:
    """Fit a ranker with a learned prior to shards: its own steps, over blocks on the cluster."""
    _begin(crowd, ranker)
    known = ranker._specification()
    n_users, n_features = len(crowd.census.user_ids), crowd.catalogue.features.shape[1]
    refuse_many_draws(known.n_draws, n_users, n_features - len(known.fixed))
    crowd.journal.open(about_fit(crowd, ranker))
    session = ClusterSession(crowd.client, crowd.journal, crowd.traffic, crowd.tell)
    with crowd.folder() as folder:

        def settle(ranker: Any, tasks: Any, learned: Any) -> Any:
            with session.in_reach():
                return settle_there(ranker, tasks, learned, crowd, folder)

        data = TrainingData(
            _placed(crowd, session, crowd.said),
            crowd.table,
            crowd.census,
            settle=None if folder is None else settle,
            can_collect=False,
        )
        try:
            ranker._learn_from(data)
        finally:
            session.release()
        ranker.__dict__.pop("annotations_", None)
        if folder is not None:
            order_as_files(ranker, crowd)
            finish(ranker, folder)


def _placed(crowd: Any, session: ClusterSession, shards: Sequence[Any]) -> DaskExecutor[Any]:
    """Return an executor of what shards have, with the positions of their users."""
    places = crowd.census.places
    both = zip(shards, places, strict=True)
    parts = [session.make(UserBlock.of_some, data, people) for data, people in both]
    return DaskExecutor(session, parts, places)


def about_fit(crowd: Any, ranker: Any) -> dict[str, Any]:
    """Return what a checkpoint has to agree with."""
    census = crowd.census
    digest = hashlib.sha256(crowd.catalogue.features.tobytes())
    digest.update(census.row_weight.tobytes())
    parameters = ranker.get_params().items()
    given = {name: repr(value) for name, value in parameters if name not in ("callback", "verbose")}
    return {
        "ranker": type(ranker).__name__,
        "parameters": given,
        "people": len(census.user_ids),
        "labels": census.n_labels,
        "positive": census.n_positive,
        "data": digest.hexdigest(),
        "shards": [len(places) for places in census.places],
        "reading": repr(crowd.labels.reading),
        "covariates": crowd.user_features
        and mark_of([one.tolist() for one in crowd.user_features.columns]),
    }


def teach_statistics(crowd: Any, ranker: Any) -> None:
    """Fit a ranker that needs statistics alone: shards reduce their rows, and these are merged.

    Three levels are learned by visits where there is too much to merge.
    """
    _begin(crowd, ranker)
    graded = as_loss(ranker.loss).takes_grades
    site = ClusterSession(crowd.client, crowd.journal, crowd.traffic, crowd.tell)
    ranker.__dict__.pop("statistics_", None)
    try:
        _teach_parts(crowd, ranker, site, graded)
    finally:
        site.release()
    _put_away(crowd, ranker)


def _teach_parts(crowd: Any, ranker: Any, site: ClusterSession, graded: bool) -> None:
    """Learn three levels from statistics that stay where they are; of little, merge them here."""
    futures = [site.make(_reduced, said, crowd.labels, graded) for said in crowd.said]
    if isinstance(ranker, ThreeLevelRanker) and isinstance(ranker._solver(), FastSolver):
        sizes = site.gathered(
            site.submit(_size_of, one, crowd.catalogue.in_rows) for one in futures
        )
        if sum(sizes) > _LITTLE:
            blocks = _placed(crowd, site, futures)
            release(futures)
            summary = StatisticsSummary.of(blocks, crowd.census.user_ids)
            scale = [f"{one:.6g}" for one in summary.feature_scale()]
            crowd.journal.open(about_fit(crowd, ranker) | {"scale": scale})
            warn_of_one_class(summary.user_ids, summary.has_pairs)
            ranker._fit_blocks(summary, blocks)
            return
    work = identity if crowd.catalogue.in_rows else _without_table  # which is here already
    found = site.gathered(site.submit(work, one) for one in futures)
    ranker._fit_statistics(_merged(crowd, found))


def _size_of(found: Statistics, own_table: bool) -> int:
    """Return the bytes that statistics take, about."""
    rows = found.rows
    table = rows.table.nbytes if own_table else 0
    return int(found.dense.scatter.nbytes + 17 * len(rows.index) + table)


def teach_search(crowd: Any, search: Any) -> None:
    """Choose a ranker's parameters: shards reduce their rows to statistics of folds, once.

    Candidates are fitted to what is merged of these, and judged by the rows that are held out,
    which come here as places in the table of items.
    """
    tuning = search._way_of_tuning()
    if not isinstance(tuning, FromStatistics):
        raise TypeError(
            f"{type(tuning.ranker).__name__} learns from rows, so that every candidate would have "
            "to visit them anew: on a cluster, only rankers of statistics are tuned."
        )
    _begin(crowd, search)
    site = ClusterSession(crowd.client, crowd.journal, crowd.traffic)
    how = search.n_folds, search.random_state, tuning.form, tuning.graded
    found = site.gathered(site.submit(_folds_of, said, how) for said in crowd.said)
    folds = [[one[k] for one in found if one[k] is not None] for k in range(search.n_folds)]
    folds = [fold for fold in folds if fold]
    statistics = [_merged(crowd, [one[0] for one in fold]) for fold in folds]
    held_out = [crowd.table.joined([one[1] for one in fold]) for fold in folds]
    search._search(held_out, statistics, _no_rows, _no_rows)
    _put_away(crowd, search)


def _put_away(crowd: Any, ranker: Any) -> None:
    """Leave the people of a ranker that was solved here where they are to be kept."""
    with crowd.folder() as folder:
        if folder is not None:
            put_away(ranker, folder, len(crowd.said))


def statistics_of(said: Annotations, graded: bool, form: Form = "auto") -> Statistics:
    """Reduce rows to statistics, which do not hold the table of items."""
    return _without_table(Statistics.from_annotations(said, form, graded=graded))


def _without_table(found: Statistics) -> Statistics:
    return replace(found, rows=replace(found.rows, table=found.rows.table[:0]))


@in_this_thread()
@one_blas_thread()
def _reduced(said: Annotations | Statistics, labels: LabelTable, graded: bool) -> Statistics:
    """Reduce what a shard has to statistics that stay there, by all grades that anybody gave."""
    if isinstance(said, Statistics):
        return as_asked(said, labels, graded)
    found = Statistics.from_annotations(said, graded=graded)
    return found.with_grades(labels.grades) if graded and labels.grades is not None else found


def _folds_of(said: Annotations, how: tuple[Any, ...]) -> list[Any]:
    """Return, for each fold, its statistics and its rows; None where nobody has any."""
    n_folds, seed, form, graded = how
    number = folds_within_users(said, n_folds, seed)
    folds = [said[number == k] for k in range(n_folds)]
    return [
        (statistics_of(fold, graded, form), SharedTable.without(fold)) if len(fold) else None
        for fold in folds
    ]


def _merged(crowd: Any, found: Sequence[Statistics]) -> Statistics:
    # Rows of people who have few point into the table of items, which is here already.
    if crowd.catalogue.in_rows:
        return Statistics.joined(found)
    table = crowd.catalogue.features
    return Statistics.joined([replace(one, rows=replace(one.rows, table=table)) for one in found])


def _no_rows(*_: Any) -> Annotations:
    raise AssertionError("Rankers of statistics need no rows.")


def _begin(crowd: Any, ranker: Any) -> None:
    """Note what a fit notes of its annotations; refuse labels that are all alike."""
    if not crowd.census.class_weight.all():
        raise ValueError(
            "Everybody's labels are of one class, so there is nothing to rank by: a ranker "
            "needs positive and negative labels."
        )
    as_annotations(ranker, one_row(crowd.catalogue, crowd.labels), None, None, None)
    census = crowd.census
    ranker.n_labels_ = census.n_labels
    ranker.n_choices_ = census.n_positive if census.loss == ChoiceLoss.name else 0
