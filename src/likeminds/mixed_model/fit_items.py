"""Fit the prior of users and of items, in alternation, by one objective.

J is minus the log marginal likelihood, approximately. Users are integrated out (Laplace), then the
b_j (Laplace with a diagonal curvature k_j), and the f_j by a bound:

    J = sum_i [Laplace_i + v_i'P_i v_i / 2]  +  sum_j [b_j^2 / tau^2 + log(1 + tau^2 k_j)] / 2
        + sum_j [|f_j|^2 + share (tr T_j - log |T_j| - r)] / 2  +  (ridge, prior of Omega)

with P_i = share/4 sum_j T_j over a user's labels. `choose_factors` chooses the number of factors.

At the minimum of J, tau and the b_j are too near to zero if items have few labels, as usual with
Laplace's method. So both are estimated again with users fixed, by another objective:

    L_j(b) = product over labels of the mean of P(y_ij | b + the rest of the score)

is computed at a few b. The mean is over the user's posterior without this label: a normal
distribution, approximately known from the posterior with it. Then

    tau maximises   sum_j log int L_j(b) N(b; 0, tau^2) db     (with its prior, `gaussian_prior`)

and b_j and its variance are the moments of the integrand. Integrals are sums over equidistant
points, with errors of a few thousandths. The same sums for the normal approximation of L_j, whose
moments are known, correct them: if tau is small, labels inform less than these errors.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from likeminds._util.array_types import Bool, Float
from likeminds._util.map_reduce import one_blas_thread
from likeminds.mixed_model.gaussian_prior import ROUNDING, GaussianPrior, ItemPosteriors, MeanShifts
from likeminds.mixed_model.item_effects.em_steps import (
    ItemMarginalLikelihood,
    step_both,
    step_items,
)
from likeminds.mixed_model.item_effects.item_responses import ItemEffects, ItemRows, SparseItemSums
from likeminds.mixed_model.laplace import EStepParams, WarmStart
from likeminds.mixed_model.likelihoods import Likelihood, RowLikelihood
from likeminds.mixed_model.marginal_likelihood import (
    DIAGONAL,
    FULL,
    PriorModel,
)
from likeminds.mixed_model.model_selection import (
    FitState,
    StructureStart,
    choose_factors,
    choose_structure,
    evaluated,
    fit_items_roughly,
    have_not_vanished,
    with_shrinkage,
)
from likeminds.mixed_model.optimisers import (
    EXACTER,
    EvaluatedModel,
    PriorFit,
    StepLength,
    descend,
    evaluate_directions,
    evaluate_model,
    first_guess,
    first_model,
    take_steps,
    update_tau2,
)
from likeminds.mixed_model.primal_dual import information_left
from likeminds.mixed_model.responses import ResponseBlock
from likeminds.solvers.solver import Callback


def learn_crossed(
    responses: ItemEffects,
    n_weights: int,
    size: int,
    n_groups: int | None,
    *,
    likelihood: Likelihood,
    tol: float,
    max_iter: int,
    covariance: str = "auto",
    centre: Float | float = 0.0,
    n_factors: int | None = None,
    callback: Callback | None = None,
    shifts: MeanShifts | None = None,
    earlier: PriorFit | None = None,
    anew: bool = False,
) -> PriorFit:
    """Fit the priors of users and of items; for parameters, see `fit_prior.learn`.

    ``n_factors`` is the number of item factors; None chooses it by held-out labels. From an
    ``earlier`` state, the number of factors stays.
    """
    model = first_model(size, n_weights, likelihood, centre)
    start = ItemMarginalLikelihood(responses, n_weights, model, model.prior.residual, shifts=shifts)
    with one_blas_thread():
        if earlier is None:
            state = choose_factors(start, n_factors)
        elif anew:
            n_earlier = 0 if earlier.items is None else earlier.items.n_factors
            # The first fit chose the structure without effects of covariates, too.
            shape = earlier.structure
            if shape.factor_variance is None:
                shape = with_shrinkage(replace(start, shifts=None), n_earlier).structure
            state = fit_items_roughly(_resume(replace(start, structure=shape), earlier))
        else:
            state = _resume(start, earlier)
        objective, at = state
        start = replace(objective, model=at.model)
        if earlier is not None and not anew:
            form: StructureStart | PriorFit = earlier
        elif n_weights:
            form = choose_structure(start, n_groups, covariance, at)
        else:
            shape = DIAGONAL if covariance == DIAGONAL.kind else start.structure
            form = StructureStart(at.model, shape, 0, [])
        enough = min(start.mode_tol, EXACTER * tol)
        exact = replace(start, model=form.model, structure=form.structure, mode_tol=enough)
        descend_to = partial(_alternate, tol=tol, max_iter=max_iter, callback=callback)
        found = descend_to(exact)
        if n_factors is None and earlier is None and not found.interrupted:
            found = _without_vanished(exact, found, descend_to)
        # Laplace's method is exact for a quadratic loss.
        if not likelihood.is_quadratic and not found.interrupted:
            items, model = integrate_effects(_at(exact, found), found.model)
            found = replace(found, model=model, items=items)
        found = _centred(exact, found)
    return replace(
        found, criterion=form.criterion, n_groups=form.n_groups, structure=form.structure
    )


def _without_vanished(
    objective: ItemMarginalLikelihood,
    found: PriorFit,
    descend_to: Callable[[ItemMarginalLikelihood], PriorFit],
) -> PriorFit:
    """Fit again without vanished factors, if there are any."""
    objective, prior = _at(objective, found), found.model.prior
    kept, items = have_not_vanished(objective, found.model), objective.item_responses.items
    if kept.all():
        return found
    items = replace(
        items,
        factors=items.factors[:, kept],
        factor_covariance=items.factor_covariance[:, kept][:, :, kept],
    )
    stays = np.append(np.ones(objective.n_free, dtype=np.bool_), kept)
    mean, loadings, residual = prior.mean[stays], prior.loadings[stays], prior.residual[stays]
    prior = replace(prior, mean=mean, loadings=loadings, residual=residual)
    model, unit = replace(found.model, prior=prior), objective.unit[stays]
    return descend_to(replace(objective.with_items(items), unit=unit, model=model))


def _centred(objective: ItemMarginalLikelihood, found: PriorFit) -> PriorFit:
    """Move the mean factor weight into item effects; further optimisation of J would undo this."""
    objective = _at(objective, found)
    if not objective.n_factors:
        return found
    objective, model = with_centred_factors(objective, evaluate_model(objective, found.model))
    return replace(found, model=model, items=objective.item_responses.items)


def with_centred_factors(
    objective: ItemMarginalLikelihood, at: EvaluatedModel
) -> tuple[ItemMarginalLikelihood, PriorModel]:
    """Move the mean factor weight into item effects; scores do not change.

    Weights of f_j have prior mean zero. But if almost all users agree on items, J has its minimum
    at a tau near zero and weights of f_j of one sign. Their mean belongs to the item effects b_j,
    which new users and the consensus share.
    """
    items, prior = objective.item_responses.items, at.model.prior
    n_factors = items.n_factors
    average = (prior.root @ at.moments.first)[-n_factors:] / at.moments.n_users
    covariance = prior.covariance[-n_factors:, -n_factors:]
    # The squared mean as a share of the mean square, in the direction where it is largest: above
    # this, weights are almost all of one sign, and below, the mean is noise.
    if average @ np.linalg.solve(covariance, average) <= 0.5:
        return objective, at.model
    information = 1.0 / items.effect_variance - 1.0 / items.variance
    variance = items.variance + float(average @ average)
    moved = replace(
        items,
        effects=items.effects + items.factors @ average,
        effect_variance=1.0 / (information + 1.0 / variance),
        variance=variance,
    )
    centred = _less_mean(prior, average, is_whole=objective.structure.kind == FULL.kind)
    return objective.with_items(moved), replace(at.model, prior=centred)


def _less_mean(prior: GaussianPrior, average: Float, *, is_whole: bool) -> GaussianPrior:
    """Subtract the squared mean of the last weights from Omega; if not whole, from its diagonal."""
    mean = np.pad(average, (len(prior.mean) - len(average), 0))
    whitened = prior.inverse_root @ mean
    # At least a twentieth of the second moments remains.
    share = min(1.0, (1.0 - 0.05) / float(whitened @ whitened))
    covariance = prior.covariance - share * np.outer(mean, mean)
    if is_whole:
        centred = GaussianPrior.of_covariance(prior.mean, covariance, prior.beyond)
        return replace(centred, shifts=prior.shifts)
    scale = np.sqrt(covariance.diagonal() / prior.covariance.diagonal())
    return replace(prior, residual=prior.residual * scale)


def _at(objective: ItemMarginalLikelihood, found: PriorFit) -> ItemMarginalLikelihood:
    """Return the objective with the items of a fit."""
    assert found.items is not None
    unit = objective.unit[: objective.n_free + found.items.n_factors]  # without vanished ones
    return replace(
        objective.with_items(found.items),
        unit=unit,
        shifts=found.shifts,
        warm_starts=found.warm_starts,
    )


def _resume(start: ItemMarginalLikelihood, earlier: PriorFit) -> FitState:
    """Return the final state of an earlier fit."""
    assert earlier.items is not None
    unit = np.append(start.unit, first_guess(earlier.items.n_factors, 0))
    objective = replace(start.with_items(earlier.items), unit=unit, warm_starts=earlier.warm_starts)
    return evaluated(objective, earlier.model)


def _alternate(
    objective: ItemMarginalLikelihood,
    *,
    tol: float,
    max_iter: int,
    callback: Callback | None,
) -> PriorFit:
    """Fit users' prior given the items, and the items given users, in turns; J never rises."""
    is_whole = not objective.structure.has_directions
    at = (evaluate_model if is_whole else evaluate_directions)(objective, objective.model)

    def advance(at: EvaluatedModel, pace: StepLength) -> EvaluatedModel:
        nonlocal objective
        if is_whole:
            objective, new = step_both(objective, at, pace)
        else:
            at = _descend_a_little(objective, at, tol)
            objective, new = step_items(objective, at, evaluate_directions)
        return new

    at, trace, converged, stopped = take_steps(at, advance, tol, max_iter, callback)
    return PriorFit(
        at.model,
        trace,
        converged,
        stopped,
        objective.warm_starts,
        mean_covariance=objective.covariance_of_mean(at.model, at.moments),
        items=objective.item_responses.items,
        shifts=objective.shifts,
    )


def _descend_a_little(
    objective: ItemMarginalLikelihood, at: EvaluatedModel, tol: float
) -> EvaluatedModel:
    # Steps of the quasi-Newton method between two of the items' steps.
    found = descend(replace(objective, model=at.model), tol=tol, max_iter=8)
    new = evaluate_directions(objective, found.model)
    return new if new.value <= at.value else at


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
        if objective.n_free > objective.n_weights:  # the mean goes into the intercept
            mean = model.prior.mean.copy()
            mean[objective.n_weights] += centre
            model = replace(model, prior=replace(model.prior, mean=mean))
        if 1.0 / 1.25 < items.variance / before.variance < 1.25:
            break
    return items, model


def log_likelihoods(objective: ItemMarginalLikelihood, model: PriorModel) -> Float:
    """Return the logarithm of L_j at every item's `points_of`."""
    found: SparseItemSums
    found, _ = objective.responses.map_reduce(
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
    responses, mode, likelihood = block.responses, params.mode_of(block, start), params.likelihood
    places = mode.data.places
    assert places is not None
    assert isinstance(responses, ItemRows)
    assert isinstance(likelihood, RowLikelihood)
    curvature, data, of_block = (
        mode.derivatives.curvature,
        mode.data,
        responses.of_block(block.number),
    )
    h = np.maximum(curvature.diagonal, ROUNDING)
    left = information_left(mode.system, mode.covariance, curvature)
    # The share of the information on a score that comes from its own label, below one.
    own = np.where(h > ROUNDING, np.minimum(1.0 - left / h, 1.0 - 1e-6), 0.0)
    variance = own / h / (1.0 - own)
    others = likelihood.row_scores(mode.eta, data) - variance * mode.derivatives.residuals
    unit = np.append(np.sqrt(responses.items.effect_variance), 0.0)[of_block.item]
    unit = responses.row_items.signed(unit, places)
    sums = []
    for point in _POINTS:
        cost = likelihood.each(others + point * unit, data.response, data.users[:, None], variance)
        sums.append(of_block.sums(-data.weight * cost))
    return SparseItemSums(of_block.items, sums, len(responses.items.effects)), mode.warm_start
