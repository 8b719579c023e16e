"""Integrate item effects out one by one by quadrature, after the fit of users.

During the fit (`fit_items`), b_j is a mode and tau is estimated from modes: with few labels, both
are biased towards zero, as usual with Laplace's method. Here users stay fixed, and

    L_j(b) = product over labels of the mean of P(y_ij | b + the rest of the score)

is computed at a few b. The mean is over the user's posterior without this label: a normal
distribution, approximately known from the posterior with it. Then

    tau maximises   sum_j log int L_j(b) N(b; 0, tau^2) db     (with its prior, `item_posteriors`)

and b_j and its variance are the moments of the integrand. Integrals are sums over equidistant
points, with errors of a few thousandths. The same sums for the normal approximation of L_j, whose
moments are known, correct them: if tau is small, labels inform less than these errors.
"""

from dataclasses import replace

import numpy as np

from likeminds._util.array_types import Bool, Float
from likeminds.mixed_model.item_effects.e_step import ItemMarginalLikelihood
from likeminds.mixed_model.item_effects.item_responses import ItemRows
from likeminds.mixed_model.item_effects.scatter_sums import SparseItemSums
from likeminds.mixed_model.item_posteriors import ItemPosteriors, update_tau2
from likeminds.mixed_model.laplace import EStepParams, WarmStart
from likeminds.mixed_model.likelihoods import RowLikelihood
from likeminds.mixed_model.marginal_likelihood import PriorModel
from likeminds.mixed_model.numerics import ROUNDING
from likeminds.mixed_model.primal_dual import information_left
from likeminds.mixed_model.responses import ResponseBlock

# The points of L_j, in standard deviations from the mean.
_POINTS = 1.25 * np.arange(-4.0, 5.0)


def integrate_effects(
    objective: ItemMarginalLikelihood, model: PriorModel
) -> tuple[ItemPosteriors, PriorModel]:
    """Estimate tau and b_j again; the mean of b_j becomes part of the model's intercept."""
    items = objective.item_responses.items
    # Bounds of tau^2, which is infinite if labels can be separated perfectly.
    bounds = items.variance / 4.0, items.variance * 4.0
    # If tau^2 changes by more than a factor, points are chosen again, at most three times.
    for _ in range(3):
        before, objective = items, objective.with_items(items)
        logs, labelled = log_likelihoods(objective, model), objective.item_responses.labelled
        items, centre = integrated(before, logs, labelled, bounds)
        if objective.n_free > objective.n_weights:  # there is an intercept
            mean = model.prior.mean.copy()
            mean[objective.n_weights] += centre
            model = replace(model, prior=replace(model.prior, mean=mean))
        if 1.0 / 1.25 < items.variance / before.variance < 1.25:
            break
    return items, model


def log_likelihoods(objective: ItemMarginalLikelihood, model: PriorModel) -> Float:
    """Return the logarithm of L_j at every item's `points_of`."""
    found: SparseItemSums
    found, _ = objective.tasks.map_reduce(
        _block_log_likelihoods, objective.e_step_params(model), objective.warm_starts.own
    )
    return np.hstack(found.whole)


def integrated(
    items: ItemPosteriors, log_likelihood: Float, labelled: Bool, bounds: tuple[float, float]
) -> tuple[ItemPosteriors, float]:
    """Return items with new tau (within ``bounds`` of tau^2) and centred b_j, and their mean."""
    own = items.take(np.flatnonzero(labelled))
    b, log_likelihood, tau2 = points_of(own), log_likelihood[labelled], items.variance
    mean, variance = _moments(own, b, log_likelihood, tau2)
    # Steps to tau^2 at most, and the tolerance.
    for _ in range(100):
        before, tau2 = tau2, update_tau2(tau2, mean**2 + variance, variance)
        tau2 = float(np.clip(tau2, *bounds))
        mean, variance = _moments(own, b, log_likelihood, tau2)
        if abs(tau2 - before) <= 1e-10 * before:
            break
    centre = float(mean.mean())
    effects, variances = np.zeros(len(labelled)), np.full(len(labelled), tau2)
    effects[labelled], variances[labelled] = mean - centre, variance
    return replace(items, effects=effects, effect_variance=variances, variance=tau2), centre


def points_of(items: ItemPosteriors) -> Float:
    """Return the points of every L_j, shape (m, number of points)."""
    return np.asarray(items.effects[:, None] + np.sqrt(items.effect_variance)[:, None] * _POINTS)


def _moments(
    items: ItemPosteriors, b: Float, log_likelihood: Float, tau2: float
) -> tuple[Float, Float]:
    """Return mean and variance of every b_j, given log L_j at some points, and tau^2."""
    information = np.maximum(1.0 / items.effect_variance - 1.0 / items.variance, 0.0)
    linear = items.effects / items.effect_variance
    normal = 1.0 / (information + 1.0 / tau2)
    mean, variance = _sums(log_likelihood - 0.5 * b**2 / tau2, b)
    normal_mean, normal_sum = _sums(linear[:, None] * b - 0.5 * b**2 / normal[:, None], b)
    return mean - normal_mean + normal * linear, normal * variance / normal_sum


def _sums(logs: Float, b: Float) -> tuple[Float, Float]:
    """Return mean and variance of b, (m,), given log densities at some points."""
    weight = np.exp(logs - logs.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    mean = np.einsum("jk,jk->j", weight, b)
    return mean, np.einsum("jk,jk->j", weight, (b - mean[:, None]) ** 2)


def _block_log_likelihoods(
    block: ResponseBlock, params: EStepParams, start: WarmStart | None
) -> tuple[SparseItemSums, WarmStart | None]:
    """Return the logarithm of L_j of a block's labels."""
    tasks, mode, likelihood = block.tasks, params.mode_of(block, start), params.likelihood
    places = mode.task.places
    assert places is not None
    assert isinstance(tasks, ItemRows)
    assert isinstance(likelihood, RowLikelihood)
    curvature, task, of_block = mode.derivatives.curvature, mode.task, tasks.of_block(block.number)
    h = np.maximum(curvature.diagonal, ROUNDING)
    left = information_left(mode.system, mode.covariance, curvature)
    # The share of the information on a score that comes from its own label, below one.
    own = np.where(h > ROUNDING, np.minimum(1.0 - left / h, 1.0 - 1e-6), 0.0)
    variance = own / h / (1.0 - own)
    others = likelihood.row_scores(mode.eta, task) - variance * mode.derivatives.residuals
    unit = np.append(np.sqrt(tasks.items.effect_variance), 0.0)[of_block.item]
    unit = tasks.row_items.signed(unit, places)
    sums = []
    for point in _POINTS:
        cost = likelihood.each(others + point * unit, task.response, task.users[:, None], variance)
        sums.append(of_block.sums(-task.weight * cost))
    return SparseItemSums(of_block.items, sums, len(tasks.items.effects)), mode.warm_start
