"""People who stay where they are: each shard's posteriors are found there, and written there."""

import secrets
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeminds._util.array_types import Float, IdArray, Index
from likeminds._util.lazy_imports import require
from likeminds._util.per_user_arrays import of_users
from likeminds.cluster.executor import identity, release
from likeminds.data.annotations import Annotations
from likeminds.mixed_model.fitted_prior import FittedPrior
from likeminds.mixed_model.gaussian_prior import MeanShifts
from likeminds.mixed_model.item_effects.item_responses import ItemEffects
from likeminds.mixed_model.losses import LogisticLoss
from likeminds.mixed_model.user_posteriors import PosteriorFinder, find_user_posteriors
from likeminds.rankers.capabilities import arrays_of_users
from likeminds.rankers.probabilities import scores_and_variances, share_scored
from likeminds.rankers.training_data import ScoredLabels, SharedTable, rows_by_lot
from likeminds.storage.folders import UserFolder, with_people_in, write_apart
from likeminds.storage.models import write_model
from likeminds.storage.user_files import WrittenFile, people_of, write_users

# Seconds for which those who fail wait for the others.
_PATIENCE = 60


@dataclass(frozen=True)
class PosteriorFolder:
    """Where the people of a fit are kept.

    Attributes
    ----------
    folder : Path
        The folder of the model.
    through_client : bool, optional
        Whether people come here, shard by shard, to be written: where workers do not see the
        folder. By default it is tried out.
    """

    folder: Path
    through_client: bool | None = None

    def is_seen(self, client: Any) -> bool:
        """Say whether all workers see the folder, and what is in it."""
        if self.through_client is not None:
            return not self.through_client
        token = secrets.token_hex(8)
        probe = self.folder / f".{token}"
        probe.write_text(token)
        try:
            return all(client.run(_reads, str(probe.resolve()), token).values())
        finally:
            probe.unlink()


@dataclass(frozen=True)
class InPlaceTask:
    """What a worker has to know to leave the people of a shard where they are.

    Attributes
    ----------
    places : array of shape (b,)
        Their positions among all people.
    z : array of shape (b, k), optional
        Their covariates.
    share : float
        The share of their labels whose scores are wanted.
    file : Path, optional
        Where people go; without it, they come to the client.
    """

    places: Index
    z: Float | None
    share: float
    file: Path | None


def settle_there(
    ranker: Any, tasks: Any, learned: Any, crowd: Any, folder: UserFolder
) -> ScoredLabels | None:
    """Find everybody's posterior where they are; give the ranker people that are read from there.

    Parameters
    ----------
    ranker : HierarchicalRanker
        Which has learned the prior.
    tasks : RemoteResponses
        Everybody's labels.
    learned : PriorFit
        What it has learned.
    crowd : Shards
        Where they are.
    folder : UserFolder
        Where people go.

    Returns
    -------
    ScoredLabels, optional
        Some labels with their scores, where that tells anything.
    """
    client, is_seen = crowd.client, crowd.kept_in.is_seen(crowd.client)
    ranker._set_levels(np.zeros((0, len(ranker.crowd_.prior.mean))))
    bare = client.submit(identity, _without_people(ranker), pure=False)
    shifts = _shifts(ranker.crowd_, crowd)
    answers, unknown = _asked(ranker, tasks, learned, shifts, crowd.census.places)
    share = _share(ranker, crowd)
    stays = [
        InPlaceTask(
            places,
            None if shifts is None else shifts.z[places],
            share,
            folder.file(number) if is_seen else None,
        )
        for number, places in enumerate(crowd.census.places)
    ]
    given = zip(answers, unknown, stays, crowd.said, strict=True)
    waiting = [client.submit(_settled, *one, bare, pure=False) for one in given]
    release([*answers, *unknown, bare])
    written, scored = _collected(waiting, folder)
    _take_over(ranker, with_people_in(ranker, folder.path, written))
    return _joined(crowd, [one for one in scored if one is not None])


def _collected(waiting: list[Any], folder: UserFolder) -> tuple[list[WrittenFile], list[Any]]:
    """Return what shards have written, and tell of some labels; write what they send instead."""
    written: list[WrittenFile] = []
    scored: list[Any] = []
    try:
        for number, future in enumerate(waiting):
            found, some = future.result()
            if not isinstance(found, WrittenFile):  # one shard at a time is here
                found = write_users(folder.file(number), *found)
            written.append(found)
            scored.append(some)
            release(waiting[number : number + 1])
    except BaseException:
        _await(waiting[len(written) :])
        raise
    finally:
        release(waiting)
    return written, scored


def _joined(crowd: Any, scored: list[tuple[Any, ...]]) -> ScoredLabels | None:
    """Put together what shards tell of some of their labels."""
    if not scored:
        return None
    rows, *numbers = zip(*scored, strict=True)
    return ScoredLabels(crowd.table.joined(rows), *map(np.concatenate, numbers))


def order_as_files(ranker: Any, crowd: Any) -> None:
    """Put what the crowd's part has of each person in the order of files: that of shards."""
    order = np.concatenate(crowd.census.places)
    ranker.crowd_ = of_users(ranker.crowd_, order)
    if ranker.grading_ is not None:
        ranker.grading_ = of_users(ranker.grading_, order)


def _shifts(prior: FittedPrior, crowd: Any) -> MeanShifts | None:
    """Return how far everybody's mean is from that of all, by their covariates."""
    traits = prior.traits
    if traits is None:
        return None
    return MeanShifts(
        traits.encoder.of_users(crowd.user_features, crowd.census.user_ids), traits.slopes
    )


def _share(ranker: Any, crowd: Any) -> float:
    """Return the share of labels whose scores tell what scores say of labels."""
    if not isinstance(ranker._prior_loss(), LogisticLoss):
        return 0.0
    return share_scored(crowd.catalogue.features.shape[1], crowd.census.n_labels)


def _asked(
    ranker: Any, tasks: Any, learned: Any, shifts: MeanShifts | None, places: list[Index]
) -> tuple[list[Any], list[Any]]:
    """Ask all shards for posteriors, and for those of people of whom no covariate is known."""
    crowd, quick = ranker.crowd_, learned.sampling is not None
    finder = PosteriorFinder.of(crowd, ranker.covariance_rank, shifts, quick=quick)
    has_items = isinstance(tasks, ItemEffects)
    labels = tasks.labels if has_items else tasks
    bound: Callable[[Any], Any] = tasks.bound if has_items else identity
    answers = labels.submit_map(find_user_posteriors, bound(finder), learned.pulls.own)
    if shifts is None or not len(crowd.traits.told(len(crowd.prior.mean))):  # no effect is left
        return answers, [None] * len(answers)
    unknown = np.concatenate([one[~np.any(shifts[one] != 0.0, axis=1)] for one in places])
    state = bound(finder.of_unknown(crowd))
    return answers, labels.submit_map_of(find_user_posteriors, state, unknown)


def put_away(ranker: Any, folder: UserFolder, n_files: int) -> None:
    """Write the people of a ranker that was solved here; it reads them from there from now on."""
    stored = write_apart(ranker, folder, -(-len(ranker.users_) // n_files))
    finish(stored, folder)
    _take_over(ranker, stored)


def finish(ranker: Any, folder: UserFolder) -> None:
    """Write the model's own file, last; a function that watched the fit has no place in it."""
    bare = _bare(ranker)
    write_model(bare, folder.main, people=people_of(bare))
    ranker._read_from = bare._read_from


def _await(futures: list[Any]) -> None:
    """Let tasks that have begun come to their end, so that what they write can be cleared up."""
    wait = require("distributed", "A crowd on a cluster", "dask").wait
    with suppress(TimeoutError):
        wait(futures, timeout=_PATIENCE)


def _take_over(ranker: Any, stored: Any) -> None:
    for name in ("users_", *arrays_of_users(stored)):
        setattr(ranker, name, getattr(stored, name))
    ranker.__dict__.pop("statistics_", None)  # which have as much of each person as their weights


def _bare(ranker: Any) -> Any:
    """Return a copy that knows the crowd, and goes to every worker."""
    bare = copy(ranker)
    if "callback" in bare.get_params(deep=False):
        bare.callback, bare.verbose = None, False
    bare.__dict__.pop("annotations_", None)
    return bare


def _without_people(ranker: Any) -> Any:
    """Return a copy that has nothing of anybody, and goes to every worker."""
    bare = _bare(ranker)
    bare.__dict__.pop("_positions", None)
    bare.users_, bare.crowd_ = ranker.users_[:0], of_users(ranker.crowd_, slice(0, 0))
    return bare


def _settled(
    answers: list[Any], unknown: list[Any] | None, stay: InPlaceTask, said: Annotations, ranker: Any
) -> tuple[WrittenFile | tuple[IdArray, dict[str, NDArray[Any]]], tuple[Any, ...] | None]:
    """Make people of what the blocks of a shard answered, on the worker that has them.

    With them comes what is told of some of their labels: rows, scores, variances, and people.
    """
    mine, crowd = copy(ranker), ranker.crowd_
    mine.users_ = said.user_ids
    shifts = None if stay.z is None else stay.z @ crowd.traits.slopes.T
    finder = PosteriorFinder.of(crowd, ranker.covariance_rank, shifts)
    points, known = finder.without_labels(crowd, crowd.told(shifts, said.n_users))
    order = np.argsort(stay.places)
    for people, found, inner in [*answers, *(unknown or [])]:
        rows = order[np.searchsorted(stay.places, people, sorter=order)]
        points[rows], known[rows, : inner.shape[1]] = found, inner
    mine.information_ = known
    mine._set_levels(points)
    scored, some = None, rows_by_lot(said, stay.share, stay.places)
    if some is not None:
        scores, variances, people = scores_and_variances(mine, some, None)
        scored = SharedTable.without(some), scores, variances, stay.places[people]
    arrays = arrays_of_users(mine)
    if stay.file is None:
        return (mine.users_, arrays), scored
    return write_users(stay.file, mine.users_, arrays), scored


def _reads(path: str, token: str) -> bool:
    try:
        return Path(path).read_text() == token
    except OSError:
        return False
