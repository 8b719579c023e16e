"""Posteriors that workers compute and write for each shard, without sending them to the client."""

import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from likeminds._util.array_types import Float, IdArray, Index
from likeminds._util.lazy_imports import require
from likeminds._util.per_user_arrays import of_users
from likeminds.cluster.client import Client, Future, identity, release
from likeminds.cluster.executor import DaskExecutor
from likeminds.data.annotations import Annotations
from likeminds.mixed_model.gaussian_prior import MeanShifts
from likeminds.mixed_model.item_effects.item_responses import ItemEffects
from likeminds.mixed_model.losses import LogisticLoss
from likeminds.mixed_model.optimisers import PriorFit
from likeminds.mixed_model.responses import ResponseBlock, Responses
from likeminds.mixed_model.user_posteriors import FittedPrior, PosteriorFinder, find_user_posteriors
from likeminds.rankers.capabilities import arrays_of_users
from likeminds.rankers.hierarchical import HierarchicalRanker
from likeminds.rankers.ranker import Ranker
from likeminds.rankers.training_data import ScoredLabels, SharedTable, sample_rows, scored_share
from likeminds.storage.folders import UserFolder, with_users_in, write_user_files
from likeminds.storage.models import write_model
from likeminds.storage.user_files import WrittenFile, user_files_of, write_users

if TYPE_CHECKING:
    from likeminds.cluster.shards import Shards

R = TypeVar("R", bound=Ranker)
# Users' ids and arrays, if the client writes them.
Unwritten = tuple[IdArray, dict[str, NDArray[Any]]]
# Rows without their table, scores, variances and positions.
Scored = tuple[Annotations, Float, Float, Index]

# Seconds to wait for the other tasks after one has failed.
_PATIENCE = 60


def is_visible(folder: Path, client: Client) -> bool:
    """Return whether all workers see a folder and its content."""
    token = secrets.token_hex(8)
    probe = folder / f".{token}"
    probe.write_text(token)
    try:
        return all(client.run(_reads, str(probe.resolve()), token).values())
    finally:
        probe.unlink()


def folder_on_workers(ranker: Ranker, client: Client) -> Path | None:
    """Return the folder of a ranker's users, if all workers see it."""
    there = user_files_of(ranker)
    return there.folder if there is not None and is_visible(there.folder, client) else None


def _reads(path: str, token: str) -> bool:
    try:
        return Path(path).read_text() == token
    except OSError:
        return False


@dataclass(frozen=True)
class InPlaceTask:
    """The input of a task that finds and writes the posteriors of a shard's users."""

    places: Index  # their positions among all users
    z: Float | None  # their covariates
    share: float  # the share of their labels whose scores are returned
    file: Path | None  # None to send users to the client


def find_posteriors_in_place(
    shards: "Shards", folder: UserFolder, ranker: Ranker, responses: Responses, learned: PriorFit
) -> ScoredLabels | None:
    """Find posteriors on the workers; the ranker then reads them from the folder.

    If probabilities are calibrated, return some labels with their scores.
    """
    assert isinstance(ranker, HierarchicalRanker)
    client, through_client = shards.client, shards.through_client
    if through_client is None:
        through_client = not is_visible(folder.path, client)
    ranker._set_levels(np.zeros((0, len(ranker.prior_.prior.mean))))
    bare = client.submit(identity, _without_users(ranker), pure=False)
    shifts = _shifts(ranker.prior_, shards)
    answers, unknown = _submit_posteriors(ranker, responses, learned, shifts, shards.counts.places)
    share = 0.0
    if isinstance(ranker._prior_loss(), LogisticLoss):
        share = scored_share(shards.catalogue.features.shape[1], shards.counts.n_labels)
    stays = [
        InPlaceTask(
            places,
            None if shifts is None else shifts.z[places],
            share,
            None if through_client else folder.file(number),
        )
        for number, places in enumerate(shards.counts.places)
    ]
    given = zip(answers, unknown, stays, shards.parts, strict=True)
    waiting = [client.submit(_posteriors_of_shard, *one, bare, pure=False) for one in given]
    release([*answers, *unknown, bare])
    with _executor_of(responses).session.in_reach():
        written, scored = _collected(waiting, folder)
    _copy_users(ranker, with_users_in(ranker, folder.path, written))
    if not scored:
        return None
    rows, *numbers = zip(*scored, strict=True)
    return ScoredLabels(shards.table.joined(rows), *map(np.concatenate, numbers))


def _collected(
    waiting: Sequence[Future], folder: UserFolder
) -> tuple[list[WrittenFile], list[Scored]]:
    """Return the files of shards, and their scored labels; write the users that workers sent."""
    written: list[WrittenFile] = []
    scored: list[Scored] = []
    try:
        for number, future in enumerate(waiting):
            found, some = future.result()
            if not isinstance(found, WrittenFile):  # one shard at a time is in memory
                found = write_users(folder.file(number), *found)
            written.append(found)
            scored += [] if some is None else [some]
            release(waiting[number : number + 1])
    except BaseException:
        # Tasks that have begun run to their end, so their files can be deleted.
        wait = require("distributed", "Labels on a cluster", "dask").wait
        with suppress(TimeoutError):
            wait(waiting[len(written) :], timeout=_PATIENCE)
        raise
    finally:
        release(waiting)
    return written, scored


def order_as_files(ranker: Ranker, places: Sequence[Index]) -> None:
    """Sort the prior's arrays of users in the order of files, which is that of shards."""
    assert isinstance(ranker, HierarchicalRanker)
    order = np.concatenate(places)
    ranker.prior_ = of_users(ranker.prior_, order)
    if ranker.grading_ is not None:
        ranker.grading_ = of_users(ranker.grading_, order)


def _shifts(prior: FittedPrior, shards: "Shards") -> MeanShifts | None:
    """Return the shifts of users' prior means by their covariates."""
    traits = prior.covariate_effects
    if traits is None:
        return None
    z = traits.encoder.of_users(shards.user_features, shards.counts.user_ids)
    return MeanShifts(z, traits.slopes, np.ones(len(traits.slopes)))


def _submit_posteriors(
    ranker: HierarchicalRanker,
    responses: Responses,
    learned: PriorFit,
    shifts: MeanShifts | None,
    places: Sequence[Index],
) -> tuple[list[Future], Sequence[Future | None]]:
    """Find posteriors in all shards, and those of users without any covariate."""
    fitted_prior, quick = ranker.prior_, learned.sampling is not None
    finder = PosteriorFinder.of(fitted_prior, ranker.covariance_rank, shifts, quick=quick)
    bind: Callable[[Any], Any] = responses.bound if isinstance(responses, ItemEffects) else identity
    executor = _executor_of(responses)
    answers = executor.submit_map(find_user_posteriors, bind(finder), learned.warm_starts.own)
    traits = fitted_prior.covariate_effects
    if (
        shifts is None
        or traits is None
        or not len(traits.variance_reduction(len(fitted_prior.prior.mean)))
    ):
        return answers, [None] * len(answers)
    unknown = np.concatenate([one[~np.any(shifts[one] != 0.0, axis=1)] for one in places])
    state = bind(finder.without_covariates(fitted_prior))
    return answers, executor.submit_map_of_users(find_user_posteriors, state, unknown)


def _executor_of(responses: Responses) -> DaskExecutor[ResponseBlock]:
    executor = responses.labels if isinstance(responses, ItemEffects) else responses
    assert isinstance(executor, DaskExecutor)
    return executor


def write_users_of(ranker: Ranker, folder: UserFolder, n_files: int) -> None:
    """Write the users of a ranker that was fitted here; the ranker then reads them from files."""
    stored = write_user_files(ranker, folder, -(-len(ranker.users_) // n_files))
    finish(stored, folder)
    _copy_users(ranker, stored)


def finish(ranker: Ranker, folder: UserFolder) -> None:
    """Write the model's own file, without the callback of the fit."""
    bare = _bare(ranker)
    write_model(bare, folder.main, users=user_files_of(bare))
    ranker._read_from = bare._read_from


def _copy_users(ranker: Ranker, stored: Ranker) -> None:
    for name in ("users_", *arrays_of_users(stored)):
        setattr(ranker, name, getattr(stored, name))
    ranker.__dict__.pop("statistics_", None)  # arrays as large as the weights of users


def _bare(ranker: R) -> R:
    """Return a copy for every worker, without callback and training data."""
    bare = copy(ranker)
    if "callback" in bare.get_params(deep=False):
        bare.set_params(callback=None, verbose=False)
    bare.__dict__.pop("annotations_", None)
    return bare


def _without_users(ranker: HierarchicalRanker) -> HierarchicalRanker:
    """Return a copy without arrays of users."""
    bare = _bare(ranker)
    bare.__dict__.pop("_positions", None)
    bare.users_, bare.prior_ = ranker.users_[:0], of_users(ranker.prior_, slice(0, 0))
    return bare


def _posteriors_of_shard(
    answers: list[Any],
    unknown: list[Any] | None,
    stay: InPlaceTask,
    rows: Annotations,
    ranker: HierarchicalRanker,
) -> tuple[WrittenFile | Unwritten, Scored | None]:
    """Write the users of a shard from its blocks' answers; score some of their labels."""
    mine, fitted_prior = copy(ranker), ranker.prior_
    mine.users_ = rows.user_ids
    shifts = None
    if stay.z is not None and fitted_prior.covariate_effects is not None:
        shifts = stay.z @ fitted_prior.covariate_effects.slopes.T
    finder = PosteriorFinder.of(fitted_prior, ranker.covariance_rank, shifts)
    points, known = finder.without_labels(
        fitted_prior, fitted_prior.variance_reduction(shifts, rows.n_users)
    )
    order = np.argsort(stay.places)
    for users, found, inner in [*answers, *(unknown or [])]:
        where = order[np.searchsorted(stay.places, users, sorter=order)]
        points[where], known[where, : inner.shape[1]] = found, inner
    mine.information_ = known
    mine._set_levels(points)
    scored, some = None, sample_rows(rows, stay.share, stay.places)
    if some is not None:
        own = ScoredLabels.of(mine, some)
        users = stay.places[own.users]
        scored = SharedTable.without(some), own.scores, own.variances, users
    arrays = arrays_of_users(mine)
    if stay.file is None:
        return (mine.users_, arrays), scored
    return write_users(stay.file, mine.users_, arrays), scored
