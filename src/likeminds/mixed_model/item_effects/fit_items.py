"""Fit the prior of users and of items, in alternation, by one objective.

J is minus the log marginal likelihood, approximately. Users are integrated out (Laplace), then the
b_j (Laplace with a diagonal curvature k_j), and the f_j by a bound:

    J = sum_i [Laplace_i + v_i'P_i v_i / 2]  +  sum_j [b_j^2 / tau^2 + log(1 + tau^2 k_j)] / 2
        + sum_j [|f_j|^2 + share (tr T_j - log |T_j| - r)] / 2  +  (ridge, prior of Omega)

with P_i = share/4 sum_j T_j over a user's labels. `factor_selection` chooses the number of factors.

At the minimum of J, tau and the b_j are too near to zero if items have few labels. So both are
estimated again at the end, with users fixed and the b_j integrated out without Laplace's method.
That objective is not J: see `quadrature`.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from likeminds._util.array_types import Float
from likeminds._util.map_reduce import one_blas_thread
from likeminds.mixed_model.gaussian_prior import MeanShifts
from likeminds.mixed_model.item_effects.e_step import ItemMarginalLikelihood
from likeminds.mixed_model.item_effects.factor_selection import (
    FIRST_UNIT,
    FitState,
    choose_factors,
    fit_roughly,
    have_not_vanished,
    with_shrinkage,
    without_vanished,
)
from likeminds.mixed_model.item_effects.item_responses import ItemEffects
from likeminds.mixed_model.item_effects.m_step import step_both, step_items, with_centred_factors
from likeminds.mixed_model.item_effects.quadrature import integrate_effects
from likeminds.mixed_model.likelihoods import Likelihood
from likeminds.mixed_model.marginal_likelihood import (
    DIAGONAL,
    PriorModel,
)
from likeminds.mixed_model.model_selection import (
    StructureStart,
    choose_structure,
    structure_of,
)
from likeminds.mixed_model.optimisers import (
    EXACTER,
    EvaluatedModel,
    PriorFit,
    StepLength,
    descend,
    evaluate_model,
    first_model,
)
from likeminds.solvers.solver import Callback


def learn_crossed(
    tasks: ItemEffects,
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
    shifts: Float | MeanShifts | None = None,
    earlier: PriorFit | None = None,
    anew: bool = False,
) -> PriorFit:
    """Fit the priors of users and of items; the parameters are those of `fit_prior.learn`.

    ``n_factors`` is the number of item factors; None chooses it by held-out labels. From an
    ``earlier`` state, the number of factors stays.
    """
    model = first_model(size, n_weights, likelihood, centre)
    start = ItemMarginalLikelihood(tasks, n_weights, model, model.prior.residual, shifts=shifts)
    with one_blas_thread():
        if earlier is None:
            state = choose_factors(start, n_factors)
        elif anew:
            n_earlier = 0 if earlier.items is None else earlier.items.n_factors
            state = fit_roughly(_resume(with_shrinkage(start, n_earlier), earlier))
        else:
            state = _resume(start, earlier)
        start = replace(state.objective, model=state.at.model)
        if earlier is not None and not anew:
            form = structure_of(earlier)
        elif n_weights:
            form = choose_structure(start, n_groups, covariance, state.at)
        else:
            shape = DIAGONAL if covariance == DIAGONAL.kind else start.structure
            form = StructureStart(state.at.model, shape, 0, [])
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
    objective = _at(objective, found)
    if have_not_vanished(objective, found.model).all():
        return found
    return descend_to(without_vanished(objective, found.model))


def _centred(objective: ItemMarginalLikelihood, found: PriorFit) -> PriorFit:
    """Move the mean factor weight into item effects; further optimisation of J would undo this."""
    objective = _at(objective, found)
    if not objective.n_factors:
        return found
    objective, model = with_centred_factors(objective, evaluate_model(objective, found.model))
    return replace(found, model=model, items=objective.item_responses.items)


def _at(objective: ItemMarginalLikelihood, found: PriorFit) -> ItemMarginalLikelihood:
    """Return the objective with the items of a fit."""
    assert found.items is not None
    unit = objective.unit[: objective.n_free + found.items.n_factors]  # vanished ones are left out
    return replace(objective.with_items(found.items), unit=unit, warm_starts=found.warm_starts)


def _resume(start: ItemMarginalLikelihood, earlier: PriorFit) -> FitState:
    """Return the state in which an earlier fit ended."""
    assert earlier.items is not None
    unit = np.append(start.unit, np.full(earlier.items.n_factors, FIRST_UNIT))
    objective = replace(start.with_items(earlier.items), unit=unit, warm_starts=earlier.warm_starts)
    return FitState.first(objective, earlier.model)


def _alternate(
    objective: ItemMarginalLikelihood,
    *,
    tol: float,
    max_iter: int,
    callback: Callback | None,
) -> PriorFit:
    """Fit users' prior given the items, and the items given users, in turns; J never rises."""
    is_whole = not objective.structure.has_directions
    at = (evaluate_model if is_whole else _by_directions)(objective, objective.model)
    trace, converged, stopped, pace = [at.value], False, False, StepLength()
    try:
        while not (converged or stopped) and len(trace) <= max_iter:
            before = at.value
            if is_whole:
                objective, at = step_both(objective, at, pace)
            else:
                at = _descend_a_little(objective, at, tol)
                objective, at = step_items(objective, at, _by_directions)
            trace.append(at.value)
            gain = before - at.value
            converged = pace.was_single and gain <= tol * abs(at.value)
            if callback is not None:
                stopped = bool(callback(len(trace) - 1, at.value, gain))
    except KeyboardInterrupt:
        stopped = True
    return PriorFit(
        at.model,
        trace,
        converged and not stopped,
        stopped,
        objective.warm_starts,
        mean_covariance=objective.covariance_of_mean(at.model, at.moments),
        items=objective.item_responses.items,
    )


def _by_directions(objective: ItemMarginalLikelihood, model: PriorModel) -> EvaluatedModel:
    """Return the moments under a model, and J of the prior with a few directions."""
    found = objective.e_step(model)
    return EvaluatedModel(model, found, objective.value(model, found))


def _descend_a_little(
    objective: ItemMarginalLikelihood, at: EvaluatedModel, tol: float
) -> EvaluatedModel:
    # Steps of the quasi-Newton method between two of the items' steps.
    found = descend(replace(objective, model=at.model), tol=tol, max_iter=8)
    new = _by_directions(objective, found.model)
    return new if new.value <= at.value else at
