"""Integrate item effects out one by one by quadrature, once users are fitted.

During the fit (`fit_items`), b_j is a mode and tau is estimated from modes: with few labels, both
are too near to zero, as usual with Laplace's method. Here users stay fixed, and

    L_j(b) = product over labels of the mean of P(y_ij | b + the rest of the score)

is computed at a few b. The mean is over the user's posterior without this label: a normal
distribution, approximately known from the posterior with it. Then

    tau maximises   sum_j log int L_j(b) N(b; 0, tau^2) db     (with its prior, `item_posteriors`)

and b_j and its variance are the moments of the integrand. Integrals are sums over equidistant
points, with errors of a few thousandths. The same sums for the normal approximation of L_j, whose
moments are known, correct them: where tau is small, labels tell less than these errors.
"""

from dataclasses import replace

import numpy as np

from likeminds._util.array_types import Bool, Float
from likeminds.mixed_model.item_effects.item_responses import ItemEffects, ItemRows
from likeminds.mixed_model.item_effects.scatter_sums import SparseItemSums
from likeminds.mixed_model.item_posteriors import ItemPosteriors, update_tau2
from likeminds.mixed_model.laplace import EStepParams, WarmStart
from likeminds.mixed_model.likelihoods import RowLikelihood
from likeminds.mixed_model.marginal_likelihood import MarginalLikelihood, PriorModel
from likeminds.mixed_model.numerics import ROUNDING
from likeminds.mixed_model.primal_dual import information_left
from likeminds.mixed_model.responses import ResponseBlock

# Where L_j is computed: so many standard deviations from the mean.
_POINTS = 1.25 * np.arange(-4.0, 5.0)


def integrate_effects(
    objective: MarginalLikelihood, model: PriorModel
) -> tuple[ItemPosteriors, PriorModel]:
    """Return items with tau and b_j found anew, and the model with their mean in its intercept."""
    tasks = objective.tasks
    assert isinstance(tasks, ItemEffects)
    has_intercept = objective.n_free > objective.n_weights
    # In all, it becomes at most so many times larger or smaller: where labels can be separated
    # perfectly, it would grow for ever.
    bounds = tasks.items.variance / 4.0, tasks.items.variance * 4.0
    # Where tau^2 becomes so many times larger or smaller, points are chosen anew, at most so often.
    for _ in range(3):
        before, likely = tasks.items, likely_effects(replace(objective, tasks=tasks), model)
        items, centre = integrated(before, likely, tasks.labelled, bounds)
        if has_intercept:  # without one, what all items have in common does not matter
            mean = model.prior.mean.copy()
            mean[objective.n_weights] += centre
            model = replace(model, prior=replace(model.prior, mean=mean))
        tasks = tasks.with_items(items)
        if 1.0 / 1.25 < items.variance / before.variance < 1.25:
            break
    return items, model


def likely_effects(objective: MarginalLikelihood, model: PriorModel) -> Float:
    """Return the logarithm of L_j at every item's `points_of`."""
    found: SparseItemSums
    found, _ = objective.tasks.map_reduce(
        _of_block, objective.e_step_params(model), objective.warm_starts.own
    )
    return np.hstack(found.whole)


def integrated(
    items: ItemPosteriors, likely: Float, labelled: Bool, bounds: tuple[float, float]
) -> tuple[ItemPosteriors, float]:
    """Return items with tau and b_j found anew, and the mean taken from the latter.

    ``likely`` is what `likely_effects` returns; tau^2 stays within ``bounds``.
    """
    there = items.take(np.flatnonzero(labelled))
    b, likely, variance = points_of(there), likely[labelled], items.variance
    mean, doubt = _moments(there, b, likely, variance)
    # Steps to tau^2, and what they may leave of it.
    for _ in range(100):
        before, variance = variance, update_tau2(variance, mean**2 + doubt, doubt)
        variance = float(np.clip(variance, *bounds))
        mean, doubt = _moments(there, b, likely, variance)
        if abs(variance - before) <= 1e-10 * before:
            break
    centre = float(mean.mean())
    effects, doubts = np.zeros(len(labelled)), np.full(len(labelled), variance)
    effects[labelled], doubts[labelled] = mean - centre, doubt
    return replace(items, effects=effects, effect_variance=doubts, variance=variance), centre


def points_of(items: ItemPosteriors) -> Float:
    """Return where L_j is computed, shape (m, number of points)."""
    return np.asarray(items.effects[:, None] + np.sqrt(items.effect_variance)[:, None] * _POINTS)


def _moments(
    items: ItemPosteriors, b: Float, likely: Float, variance: float
) -> tuple[Float, Float]:
    """Return mean and variance of every b_j, given log L_j at some points, and tau^2."""
    known = np.maximum(1.0 / items.effect_variance - 1.0 / items.variance, 0.0)
    pull = items.effects / items.effect_variance
    normal = 1.0 / (known + 1.0 / variance)
    mean, doubt = _sums(likely - 0.5 * b**2 / variance, b)
    about, spread = _sums(pull[:, None] * b - 0.5 * b**2 / normal[:, None], b)
    return mean - about + normal * pull, normal * doubt / spread


def _sums(logs: Float, b: Float) -> tuple[Float, Float]:
    """Return mean and variance of b, (m,), given the logarithms of its density at some points."""
    weight = np.exp(logs - logs.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    mean = np.einsum("jk,jk->j", weight, b)
    return mean, np.einsum("jk,jk->j", weight, (b - mean[:, None]) ** 2)


def _of_block(
    block: ResponseBlock, terms: EStepParams, kept: WarmStart | None
) -> tuple[SparseItemSums, WarmStart | None]:
    """Return the logarithm of L_j of a block's labels."""
    tasks, mode, likelihood = block.tasks, terms.mode_of(block, kept), terms.likelihood
    places = mode.task.places
    assert places is not None
    assert isinstance(tasks, ItemRows)
    assert isinstance(likelihood, RowLikelihood)
    curvature, task, of_block = mode.derivatives.curvature, mode.task, tasks.of_block(block.number)
    h = np.maximum(curvature.diagonal, ROUNDING)
    left = information_left(mode.system, mode.covariance, curvature)
    # Of what a score is known by, the least share that is not from its own label.
    told = np.where(h > ROUNDING, np.minimum(1.0 - left / h, 1.0 - 1e-6), 0.0)
    variance = told / h / (1.0 - told)
    others = likelihood.row_scores(mode.eta, task) - variance * mode.derivatives.residuals
    unit = np.append(np.sqrt(tasks.items.effect_variance), 0.0)[of_block.item]
    unit = tasks.row_items.signed(unit, places)
    sums = []
    for point in _POINTS:
        cost = likelihood.each(others + point * unit, task.response, task.users[:, None], variance)
        sums.append(of_block.sums(-task.weight * cost))
    return SparseItemSums(of_block.items, sums, len(tasks.items.effects)), mode.warm_start
