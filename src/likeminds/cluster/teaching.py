"""Rankers taught by shards: the same steps as in this process, with sums in place of rows."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any

import numpy as np

from likeminds._support.arrays import Bool, FloatArray, IdArray, Index
from likeminds.cluster.reading import Catalogue
from likeminds.cluster.visiting import ShardTasks, let_go, make_shard, people_of
from likeminds.data.annotations import Annotations
from likeminds.losses import as_loss
from likeminds.losses.statistics import Statistics
from likeminds.prior.coordinates import Coordinates
from likeminds.prior.likelihoods import Likelihood
from likeminds.prior.losses import ALL_LOSSES, GRADE_LOSSES, PriorLoss
from likeminds.prior.settling import posterior_of
from likeminds.prior.tasks import Tasks
from likeminds.rankers.fitting import warn_of_one_class
from likeminds.rankers.widths import WIDE


def teach_prior(crowd: Any, ranker: Any) -> None:
    """Fit a `HierarchicalRanker` to shards."""
    census, catalogue, client = crowd.census, crowd.catalogue, crowd.client
    ranker.annotations_ = _begin(crowd, ranker)
    loss = _loss_of(ranker, census)
    if not loss.one_class_teaches:
        warn_of_one_class(census.user_ids, census.has_pairs)
    ranker.loss_, ranker.grade_scores_, ranker.grading_ = loss.name, {}, None
    ranker.positive_share_ = census.n_positive / census.n_labels
    coordinates = Coordinates.of_table(
        catalogue.features,
        census.by_item,
        standardize=ranker.standardize,
        intercept=loss.has_intercept,
    )
    crowd.journal.open(_about(crowd, ranker, loss), len(crowd.said))
    submit = partial(client.submit, pure=False)
    shards = [
        submit(make_shard, said, loss, loss.likelihood, coordinates, places)
        for said, places in zip(crowd.said, census.places, strict=True)
    ]
    try:
        people = client.gather([submit(people_of, shard) for shard in shards])
        everybody = np.sort(np.concatenate(people))
        tasks = ShardTasks(
            client,
            shards,
            [np.searchsorted(everybody, some) for some in people],
            partial(_locally, crowd, loss, coordinates, people),
            crowd.journal,
            crowd.traffic,
        )
        try:
            _learn(ranker, tasks, loss, coordinates, census.user_ids)
        finally:
            tasks.release()
    finally:
        let_go(shards)


def teach_statistics(crowd: Any, ranker: Any) -> None:
    """Fit a ranker that needs statistics alone: shards reduce their rows, and these are merged."""
    _begin(crowd, ranker)
    graded = as_loss(ranker.loss).takes_grades
    waiting = [crowd.client.submit(_statistics_of, said, graded, pure=False) for said in crowd.said]
    try:
        found = crowd.client.gather(waiting)
    finally:
        let_go(waiting)
    # Rows of people who have few point into the table of items, which is here already.
    table = crowd.catalogue.features
    parts = [replace(one, rows=replace(one.rows, table=table)) for one in found]
    for name in ("statistics_", "annotations_"):
        ranker.__dict__.pop(name, None)
    ranker._fit_statistics(reduce(Statistics.merge, parts))


def _statistics_of(said: Annotations, graded: bool) -> Statistics:
    found = Statistics.from_annotations(said, graded=graded)
    return replace(found, rows=replace(found.rows, table=found.rows.table[:0]))


def _learn(
    ranker: Any, tasks: Tasks, loss: PriorLoss, coordinates: Coordinates, users: IdArray
) -> None:
    """Learn the prior, and find everybody's posterior."""
    nobody = ranker.__dict__.pop("annotations_")
    learned, traits = ranker._learn(tasks, loss.likelihood, nobody, coordinates)
    ranker._interrupted = learned.interrupted
    ranker._warn_if_unfinished(learned)
    ranker.users_, ranker.grading_, ranker.wide_ = users, None, False
    ranker._set_prior(learned, coordinates, traits)
    points, ranker.information_ = posterior_of(
        tasks,
        len(users),
        ranker.crowd_,
        pulls=learned.pulls,
        rank=ranker.covariance_rank,
        quick=learned.sampling is not None,
    )
    ranker._set_levels(points)


def _begin(crowd: Any, ranker: Any) -> Annotations:
    """Note what a fit notes of its annotations; refuse labels that are all alike."""
    if not crowd.census.counted.all():
        raise ValueError(
            "Everybody's labels are of one class, so there is nothing to rank by: a ranker "
            "needs positive and negative labels."
        )
    one = _rows(crowd.catalogue, ["nobody"], np.zeros(1, np.intp), np.ones(1, np.bool_))
    ranker._as_annotations(one, None, None, None)
    ranker.n_labels_ = crowd.census.n_labels
    return one


def _loss_of(ranker: Any, census: Any) -> PriorLoss:
    name = census.loss if ranker.loss == "auto" else ranker.loss
    loss = ALL_LOSSES.get(name) if isinstance(name, str) else None
    if loss is None or loss.name in GRADE_LOSSES:
        raise ValueError(
            f"loss={ranker.loss!r} cannot be learned on a cluster: labels there are yes or no."
        )
    if not ranker._specification().is_plain:
        raise ValueError("draws, fixed and signs cannot be learned on a cluster.")
    size = min(int((census.by_item > 0).sum()), ranker.n_features_in_)
    if ranker.wide is True or (ranker.wide == "auto" and size > WIDE):
        raise ValueError(
            f"With more than {WIDE} features, priors are learned in the space of rows, which is "
            "not done on a cluster: reduce the features (likeminds.features.Reduce), or ask for "
            "wide=False."
        )
    wants_items = ranker.item_effects is True
    if wants_items or (ranker.item_effects == "auto" and loss.takes_items and census.is_shared):
        raise ValueError(
            "Effects of items that several people judged are not learned on a cluster: ask for "
            "item_effects=False, or fit in one process."
        )
    return loss


def _about(crowd: Any, ranker: Any, loss: PriorLoss) -> dict[str, Any]:
    """Return what a checkpoint has to agree with."""
    census = crowd.census
    digest = hashlib.sha256(crowd.catalogue.features.tobytes())
    digest.update(census.by_item.tobytes())
    given = {name: repr(value) for name, value in ranker.get_params().items() if name != "callback"}
    return {
        "ranker": type(ranker).__name__,
        "parameters": given,
        "loss": loss.name,
        "people": len(census.user_ids),
        "labels": census.n_labels,
        "positive": census.n_positive,
        "data": digest.hexdigest(),
        "shards": [len(places) for places in census.places],
    }


def _locally(
    crowd: Any,
    loss: PriorLoss,
    coordinates: Coordinates,
    people: Sequence[Index],
    chosen: list[Bool],
) -> Tasks:
    """Bring the labels of some people here, as tasks of this process."""
    census, waiting = crowd.census, []
    for said, mask, theirs, places in zip(crowd.said, chosen, people, census.places, strict=True):
        if mask.any():
            wanted = np.isin(places, theirs[mask])
            waiting.append(crowd.client.submit(_rows_of_some, said, wanted, pure=False))
    try:
        found = crowd.client.gather(waiting)
    finally:
        let_go(waiting)
    users, items, labels, weights, groups = ([one[column] for one in found] for column in range(5))
    has_weights, has_groups = weights[0] is not None, groups[0] is not None
    if has_groups:
        ends = np.cumsum([0, *(int(one.max()) + 1 for one in groups)])
        groups = [one + end for one, end in zip(groups, ends, strict=False)]
    said = _rows(
        crowd.catalogue,
        np.concatenate(users),
        np.concatenate(items),
        np.concatenate(labels),
        weights=np.concatenate(weights) if has_weights else None,
        groups=np.concatenate(groups) if has_groups else None,
    )
    likelihood: Likelihood = loss.likelihood
    return loss.tasks(loss.prepare(said, likelihood), coordinates)


def _rows_of_some(said: Annotations, wanted: Bool) -> tuple[Any, ...]:
    rows = wanted[said.user_codes]
    weights = None if said.weights is None else said.weights[rows]
    groups = None if said.group_codes is None else said.group_codes[rows]
    return said.users[rows], said.item_codes[rows], said.labels[rows], weights, groups


def _rows(
    catalogue: Catalogue,
    users: IdArray | Sequence[str],
    places: Index,
    labels: Bool,
    *,
    weights: FloatArray | None = None,
    groups: Index | None = None,
) -> Annotations:
    return Annotations(
        users=users,
        items=catalogue.ids[places],
        labels=labels,
        features=catalogue.features,
        item_ids=catalogue.ids,
        feature_names=list(catalogue.names),
        features_per="item",
        weights=weights,
        groups=groups,
    )
