"""What shards are asked once a ranker is fitted: how well it ranks, and who is new to it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from likeminds._util.array_types import Index
from likeminds.cluster.executor import identity, release
from likeminds.cluster.in_place_posteriors import PosteriorFolder
from likeminds.data.annotations import Annotations
from likeminds.data.covariates import Covariates
from likeminds.data.identifiers import lookup
from likeminds.metrics.concordance import concordance_by_user
from likeminds.mixed_model.posterior import Posterior
from likeminds.rankers.capabilities import some_of
from likeminds.rankers.validation import joint_reading, places_of
from likeminds.storage.models import load
from likeminds.storage.user_files import people_of


def score(crowd: Any, ranker: Any) -> float:
    """Return the mean over people of the AUC of their rows; each shard returns two numbers."""
    total, count = 0.0, 0
    for some, many in _answers(crowd, score_of, _for_each(crowd, ranker)):
        total, count = total + some, count + many
    if not count:
        raise ValueError("Nobody has labels of both kinds, so that there is no AUC.")
    return total / count


def newcomers(crowd: Any, ranker: Any) -> Posterior:
    """Return the posteriors of everybody in the shards, as of people not seen in training."""
    bare = crowd.client.submit(identity, some_of(ranker, slice(0, 0)), pure=False)
    try:
        found: list[Posterior] = list(_answers(crowd, _fold_in, [bare] * len(crowd.said)))
    finally:
        release([bare])
    order = np.argsort(np.concatenate(crowd.census.places), kind="stable")
    first, ways = found[0], found[0].ways
    if ways is not None:
        gradings = [one.ways.grading for one in found if one.ways is not None]
        use = np.concatenate([one.use for one in gradings])[order]
        shifts = np.concatenate([one.shifts for one in gradings])[order]
        ways = replace(ways, grading=replace(ways.grading, use=use, shifts=shifts))
    return replace(
        first,
        users=crowd.census.user_ids,
        points=np.concatenate([one.points for one in found])[order],
        known=np.concatenate([one.known for one in found])[order],
        ways=ways,
    )


def _for_each(crowd: Any, ranker: Any) -> Iterator[Any]:
    """Give each shard a ranker of its people: where it is, or the ranker itself."""
    there = people_of(ranker)
    is_seen = there is not None and PosteriorFolder(there.folder).is_seen(crowd.client)
    for places in crowd.census.places:
        users = crowd.census.user_ids[places]
        known = places_of(ranker, users)
        yield there.folder if there is not None and is_seen else some_of(ranker, known[known >= 0])


def _answers(crowd: Any, work: Any, rankers: Any) -> Iterator[Any]:
    waiting = [
        crowd.client.submit(_with_people, work, said, one, _covariates(crowd, places), pure=False)
        for said, one, places in zip(crowd.said, rankers, crowd.census.places, strict=True)
    ]
    try:
        for future in waiting:
            yield future.result()
    finally:
        release(waiting)


def _covariates(crowd: Any, places: Index) -> Covariates | None:
    """Return what is known about the people of a shard."""
    known: Covariates | None = crowd.user_features
    return known and known.of(crowd.census.user_ids[places].tolist())


def _with_people(work: Any, said: Annotations, ranker: Any, people: Covariates | None) -> Any:
    return work(said if people is None else said.with_user_features(people), ranker)


def score_of(said: Annotations, whose: Any) -> tuple[float, int]:
    """Return the sum of the people's AUCs, and how many have one."""
    ranker = whose if hasattr(whose, "decision_function") else load(whose)
    joint_reading(ranker, said)
    scores = ranker.decision_function(said)
    values = concordance_by_user(said.outcomes, scores, said.users, said.weights).values
    there = np.isfinite(values)
    return float(values[there].sum()), int(there.sum())


def _fold_in(said: Annotations, ranker: Any) -> Posterior:
    found: Posterior = ranker.newcomer(said)
    order = lookup(said.user_ids, found.users, "users")
    points, known = found.points[order], found.known[order]
    return replace(found, users=found.users[order], points=points, known=known)
