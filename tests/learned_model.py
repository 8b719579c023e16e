"""Small problems of the learned model: the one place that knows how its parts are put together.

Tests hold the parts against definitions; a part that moves or changes its name moves here alone.
"""

import pickle
from dataclasses import replace

import numpy as np

from likeminds.mixed_model.design import Design, labels_of_rows
from likeminds.mixed_model.gaussian_prior import OFF_ZERO, GaussianPrior, ItemPosteriors
from likeminds.mixed_model.item_effects.item_responses import ItemEffects
from likeminds.mixed_model.laplace import EStepParams, WarmStarts, find_mode
from likeminds.mixed_model.likelihoods import (
    ChoiceLikelihood,
    GaussianLikelihood,
    LogisticLikelihood,
)
from likeminds.mixed_model.losses import PRIOR_LOSSES
from likeminds.mixed_model.marginal_likelihood import (
    DIAGONAL,
    LOW_RANK,
    MarginalLikelihood,
    PriorModel,
)
from likeminds.mixed_model.optimisers import first_model
from likeminds.mixed_model.user_posteriors import FittedPrior

__all__ = [
    "DIAGONAL",
    "LIKELIHOODS",
    "LOW_RANK",
    "OFF_ZERO",
    "Design",
    "EStepParams",
    "FittedPrior",
    "GaussianPrior",
    "ItemPosteriors",
    "MarginalLikelihood",
    "PickledShards",
    "PriorModel",
    "WarmStarts",
    "all_modes",
    "coordinates_of",
    "find_mode",
    "first_model",
    "make_objective",
    "make_prior",
    "responses_of",
    "responses_with_items",
]

LIKELIHOODS = {
    "logistic": LogisticLikelihood(),
    "choice": ChoiceLikelihood(),
    "auc": GaussianLikelihood(3.0),
}


def coordinates_of(said, *, standardize=True, intercept=True, **more):
    """Return how the model sees the features of annotations."""
    table, weight = said.features, labels_of_rows(said)
    return Design.of_table(table, weight, standardize=standardize, intercept=intercept, **more)


def responses_of(said, loss="logistic"):
    """Return what each person said, block by block, and its coordinates."""
    kind = PRIOR_LOSSES[loss]
    coordinates = coordinates_of(said, intercept=kind.has_intercept)
    return kind.responses(said, coordinates), coordinates


def responses_with_items(said, variance=1.0, **known):
    """Return the same where items have effects and factors, of which some things are known."""
    coordinates = coordinates_of(said)
    items = replace(ItemPosteriors.unknown(said.item_ids, variance), **known)
    rows = PRIOR_LOSSES["logistic"].responses(said, coordinates, items=True)
    return ItemEffects.of(rows, items), coordinates


def make_prior(rng, size, rank=1):
    """Return some prior with directions and a residual."""
    return GaussianPrior(
        rng.normal(0, 0.4, size), rng.normal(0, 1, (size, rank)), rng.uniform(0.3, 0.8, size)
    )


def make_objective(said, rng, loss="logistic", *, rank=1):
    """Return the objective at some prior of the family that is learned."""
    responses, coordinates = responses_of(said, loss)
    prior = make_prior(rng, coordinates.size, rank)
    residual = prior.residual.copy()  # one for the weights, one for the intercept
    residual[: coordinates.n_weights] = residual[0]
    model = PriorModel(replace(prior, residual=residual), LIKELIHOODS[loss], ridge=0.7)
    unit = rng.uniform(0.5, 2.0, coordinates.size)
    return MarginalLikelihood(responses, coordinates.n_weights, model, unit, mode_tol=1e-12)


def _sent(thing):
    return pickle.loads(pickle.dumps(thing))


class PickledShards:
    """People in shards, which get works and states as bytes, and answer in bytes."""

    def __init__(self, responses, n_shards):
        self.n_users = responses.n_users
        mine = np.arange(responses.n_users) % n_shards
        self._shards = [_sent(responses.of_users(mine == shard)) for shard in range(n_shards)]
        self.largest = 0

    def map_reduce(self, work, state, own=None):
        own, total, kept = own or [None] * len(self._shards), None, []
        for shard, mine in zip(self._shards, own, strict=True):
            answer, its = shard.map_reduce(*_sent((work, state)), mine)
            self.largest = max(self.largest, len(pickle.dumps(answer)))
            total = _sent(answer) if total is None else total + _sent(answer)
            kept.append(its)
        return total, kept

    def map(self, work, state, own=None):
        for shard, mine in zip(self._shards, own or [None] * len(self._shards), strict=True):
            yield from shard.map(*_sent((work, state)), mine)


def all_modes(responses, prior, likelihood):
    found = {}
    for number in range(len(responses.plan)):
        mode = find_mode(responses.data(number), prior, likelihood)
        points = prior.mean + mode.system.z(mode.state) @ prior.root.T
        found.update(zip(mode.data.users.tolist(), points, strict=True))
    return np.array([found[person] for person in sorted(found)])
