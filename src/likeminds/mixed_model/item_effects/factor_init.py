"""Factors: features of items that are learned, and where their search starts."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from likeminds._util.array_types import Bool, Float
from likeminds.mixed_model.blocks import ResponseBlock
from likeminds.mixed_model.item_effects.responses import BEND, ItemEffects, ItemRows
from likeminds.mixed_model.item_effects.scatter_sums import SparseItemSums
from likeminds.mixed_model.map_newton import WarmStart
from likeminds.mixed_model.marginal_likelihood import MarginalLikelihood, PriorModel
from likeminds.mixed_model.numerics import ROUNDING

# The variance of the weights of a new factor.
_FIRST_VARIANCE = 0.1
# The unit of these weights: see `MarginalLikelihood`.
FIRST_UNIT = 0.5
# Weights with less variance than this are nothing: they change log-odds by less than a tenth.
NOTHING = 0.01
# Added to the curvature of a label, by whose root its residual is divided.
_LEAST_CURVATURE = 0.05


@dataclass(frozen=True)
class FactorStart:
    """An objective and a model to start from."""

    objective: MarginalLikelihood
    model: PriorModel


def with_factors(
    objective: MarginalLikelihood, model: PriorModel, n_more: int, share: float
) -> FactorStart:
    """Add factors: the leading directions of the labels' residuals."""
    tasks = objective.tasks
    assert isinstance(tasks, ItemEffects)
    items = tasks.items
    factors = np.hstack([items.factors, _leading(objective, n_more)])
    r = factors.shape[1]
    unsure = np.zeros((len(factors), r, r))
    old = items.n_factors
    unsure[:, :old, :old] = items.unsure
    known = 1.0 + BEND * _FIRST_VARIANCE * tasks.counts
    for new in range(old, r):
        unsure[:, new, new] = 1.0 / known
    items = replace(items, factors=factors, unsure=unsure, share=share)
    prior = model.prior
    for _ in range(n_more):
        prior = prior.with_coordinate(0.0, np.sqrt(_FIRST_VARIANCE))
    unit = np.append(objective.unit, np.full(n_more, FIRST_UNIT))
    bigger = replace(
        objective, tasks=tasks.with_items(items), unit=unit, pulls=objective.pulls.copy()
    )
    return FactorStart(bigger, replace(model, prior=prior))


def are_there(objective: MarginalLikelihood, model: PriorModel, least: float) -> Bool:
    """Say which factors have not shrunk to nothing, as people weigh them."""
    return np.asarray(model.prior.covariance.diagonal()[objective.n_free :] >= least)


def without_vanished(objective: MarginalLikelihood, model: PriorModel, least: float) -> FactorStart:
    """Leave out the factors that have shrunk to nothing."""
    tasks, kept = objective.tasks, are_there(objective, model, least)
    assert isinstance(tasks, ItemEffects)
    items, prior = tasks.items, model.prior
    items = replace(items, factors=items.factors[:, kept], unsure=items.unsure[:, kept][:, :, kept])
    stays = np.append(np.ones(objective.n_free, dtype=np.bool_), kept)
    prior = replace(
        prior,
        mean=prior.mean[stays],
        loadings=prior.loadings[stays],
        residual=prior.residual[stays],
    )
    smaller = replace(objective, tasks=tasks.with_items(items), unit=objective.unit[stays])
    return FactorStart(smaller, replace(model, prior=prior))


def _leading(objective: MarginalLikelihood, n_factors: int) -> Float:
    """Return the leading right singular vectors of the residuals, people x items, mean square 1.

    Only the products of the residuals' square, items x items, with a few vectors are needed.
    Residuals that are all zero have none: the factors are zero.
    """
    tasks = objective.tasks
    assert isinstance(tasks, ItemEffects)
    n_items = len(tasks.items.effects)

    def squared(vectors: Float) -> Float:
        vectors = vectors.reshape(n_items, -1)
        found: SparseItemSums
        found, _ = tasks.map_reduce(_times_square, vectors, objective.pulls.own)
        return found.whole[0]

    if n_factors < n_items - 1:
        square = LinearOperator((n_items, n_items), squared, matmat=squared, dtype=np.float64)
        start = np.random.default_rng(0).standard_normal(n_items)
        if not squared(start).any():  # ARPACK cannot start
            return np.zeros((n_items, n_factors))
        values, vectors = eigsh(square, k=n_factors, v0=start)
    else:
        values, vectors = np.linalg.eigh(squared(np.eye(n_items)))
    strongest = np.argsort(-values)[:n_factors]
    strongest = strongest[values[strongest] > ROUNDING * values.max()]
    factors = np.zeros((n_items, n_factors))
    factors[:, : len(strongest)] = vectors[:, strongest]
    length = np.sqrt((factors**2).mean(axis=0))
    # The sign is arbitrary: the largest is positive.
    largest = np.abs(factors).argmax(axis=0)
    length *= np.where(factors[largest, np.arange(n_factors)] < 0, -1.0, 1.0)
    return np.asarray(factors / np.where(length == 0, 1.0, length))


def _times_square(
    block: ResponseBlock, vectors: Float, kept: WarmStart | None
) -> tuple[SparseItemSums, None]:
    """Return the square of a block's residuals, items x items, times vectors (m, k)."""
    tasks = block.tasks
    assert isinstance(tasks, ItemRows)
    of_block = tasks.of_block(block.number)
    task = tasks.labels.task(block.number)
    weight, places = task.weight, task.places
    assert places is not None
    pull = np.zeros(weight.shape) if kept is None else kept.pull
    miss = np.abs(pull) / np.maximum(weight, 1e-300)
    residual = pull / np.sqrt(np.maximum(miss * (1.0 - miss), 0.0) + _LEAST_CURVATURE)
    residual = tasks.row_items.signed(residual, places)
    by_user = of_block.sums_of_items(residual, vectors[of_block.items])
    squared = of_block.sums_of_users(residual, by_user)
    return SparseItemSums(of_block.items, [squared], len(vectors)), None
