"""Learning the prior together with the items: alternately, down one objective.

J is minus the logarithm of the marginal likelihood, approximately. People are integrated out
(Laplace), the b_j of what is left (Laplace with a diagonal curvature k_j), and the f_j by a bound:

    J = sum_i [Laplace_i + v_i'P_i v_i / 2]  +  sum_j [b_j^2 / tau^2 + log(1 + tau^2 k_j)] / 2
        + sum_j [|f_j|^2 + share (tr T_j - log |T_j| - r)] / 2  +  (ridge, prior of Omega)

with P_i = share/4 sum_j T_j over a person's labels. Whether there are factors at all, labels say
that are held out: they are predicted better. How many there are, the learned variances of people's
weights say: those of factors that are not needed shrink to nothing.

Beside many features, labels are few for the whole of Omega: it then predicts worse than if people
weighed no feature at all, and with factors worse still. There, factors are looked for beside
weights that are shrunk, and have to predict better than the few directions there would be instead.

Where J is least, tau and the b_j are too near to zero if items have few labels. So, at the end,
both are found anew, people staying as they are and the b_j integrated out without Laplace's method:
that is another objective than J, see `integrating`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from likeminds._util.array_types import Float
from likeminds._util.threads import one_blas_thread
from likeminds.mixed_model.factor_init import (
    FIRST_UNIT,
    LITTLE,
    NOTHING,
    are_there,
    with_factors,
    without_vanished,
)
from likeminds.mixed_model.fisher_scoring import EvaluatedModel, StepLength, visit_crowd
from likeminds.mixed_model.gaussian_prior import MeanShifts
from likeminds.mixed_model.held_out_loss import HeldOut, held_out_losses
from likeminds.mixed_model.item_effects_e_step import ItemEffects
from likeminds.mixed_model.item_effects_m_step import step_both, step_items, with_centred_factors
from likeminds.mixed_model.laplace_moments import WarmStarts
from likeminds.mixed_model.lbfgs import (
    EXACTER,
    ROUGH,
    ROUGH_STEPS,
    PriorFit,
    descend,
    first_model,
    follow_ridge,
)
from likeminds.mixed_model.likelihoods import Likelihood
from likeminds.mixed_model.marginal_likelihood import (
    DIAGONAL,
    CovarianceStructure,
    MarginalLikelihood,
    PriorModel,
)
from likeminds.mixed_model.model_selection import (
    StructureStart,
    choose_rank,
    choose_structure,
    enough_for_full,
    structure_of,
)
from likeminds.mixed_model.quadrature import integrate_effects
from likeminds.solvers.solver import Callback

# Numbers of factors that are tried, and of those, how many to see whether there is any at all.
_RUNGS = (1, 2, 3, 4, 6, 8)
_FIRST = 2
# The share of their uncertainty that is penalised: with less, factors are found that are none, and
# with more, some are lost that there are.
_SHARE = 0.6
# A factor has a number for each person and each item: with fewer labels for each of them, none is
# looked for, since none would be found (and a small crowd is fitted at once).
_LABELS_PER_NUMBER = 5
# The share of labels that is held out for these choices.
_LEFT_OUT = 0.15
# Where labels are few for the whole of Omega, factors are looked for beside weights that are shrunk
# by as many pseudo-people as there are people.
_SHRUNK = CovarianceStructure(pseudo=1.0)
# What has to be gained for each of them to be noticed: a thousandth of a bit. Factors that shrink
# to nothing gain less, but that for almost everybody.
_NOTICED = 0.001 * float(np.log(2.0))
# Steps of the quasi-Newton method between two of the items' steps.
_AT_ONCE = 8


@dataclass(frozen=True)
class _State:
    """The state of learning: the objective holds the items, ``EvaluatedModel`` the model."""

    objective: MarginalLikelihood
    at: EvaluatedModel

    @classmethod
    def first(cls, objective: MarginalLikelihood, model: PriorModel) -> "_State":
        """Return the state at a model."""
        return cls(objective, visit_crowd(objective, model))


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
    """Learn the priors of people and of items; the parameters are those of `learning.learn`.

    ``n_factors`` is how many features of items are learned; None leaves it to the data. From an
    ``earlier`` state, the number of factors stays.
    """
    model = first_model(size, n_weights, likelihood, centre)
    start = MarginalLikelihood(tasks, n_weights, model, model.prior.residual, shifts=shifts)
    with one_blas_thread():
        if earlier is None:
            state = _with_chosen_factors(start, n_factors)
        elif anew:
            state = _learn_roughly(_go_on(_shrunk(start, _n_factors(earlier)), earlier))
        else:
            state = _go_on(start, earlier)
        start = replace(state.objective, model=state.at.model)
        if earlier is not None and not anew:
            form = structure_of(earlier)
        elif n_weights:
            form = choose_structure(start, n_groups, covariance, state.at)
        else:
            shape = DIAGONAL if covariance == DIAGONAL.kind else start.shape
            form = StructureStart(state.at.model, shape, 0, [])
        enough = min(start.enough, EXACTER * tol)
        exact = replace(start, model=form.model, shape=form.shape, enough=enough)
        descend_to = partial(_alternate, tol=tol, max_iter=max_iter, callback=callback)
        found = descend_to(exact)
        if n_factors is None and earlier is None and not found.interrupted:
            found = _without_vanished(exact, found, descend_to)
        # Laplace's method misses nothing of what is normal.
        if not likelihood.is_quadratic and not found.interrupted:
            found = _with_effects_integrated(exact, found)
        found = _centred(exact, found)
    return replace(found, criterion=form.criterion, n_groups=form.n_groups, shape=form.shape)


def _without_vanished(
    objective: MarginalLikelihood,
    found: PriorFit,
    descend_to: Callable[[MarginalLikelihood], PriorFit],
) -> PriorFit:
    """Learn without the factors that have shrunk to nothing, if there are such."""
    there = _there(objective, found)
    if are_there(there, found.model, NOTHING).all():
        return found
    left = without_vanished(there, found.model, NOTHING)
    return descend_to(replace(left.objective, model=left.model))


def _n_factors(earlier: PriorFit) -> int:
    return 0 if earlier.items is None else earlier.items.n_factors


def _with_effects_integrated(objective: MarginalLikelihood, found: PriorFit) -> PriorFit:
    """Find tau and the b_j anew, people staying as they are: see `integrating`."""
    items, model = integrate_effects(_there(objective, found), found.model)
    return replace(found, model=model, items=items)


def _centred(objective: MarginalLikelihood, found: PriorFit) -> PriorFit:
    """Give items what all want of factors, last: J would rather have it in the factors again."""
    there = _there(objective, found)
    if not there.n_factors:
        return found
    there, model = with_centred_factors(there, visit_crowd(there, found.model))
    assert isinstance(there.tasks, ItemEffects)
    return replace(found, model=model, items=there.tasks.items)


def _there(objective: MarginalLikelihood, found: PriorFit) -> MarginalLikelihood:
    """Return the objective with the items that were found."""
    tasks, items = objective.tasks, found.items
    assert isinstance(tasks, ItemEffects)
    assert items is not None
    return replace(objective, tasks=tasks.with_items(items), pulls=found.pulls)


def _go_on(start: MarginalLikelihood, earlier: PriorFit) -> _State:
    """Return the state in which learning ended before."""
    tasks, items = start.tasks, earlier.items
    assert isinstance(tasks, ItemEffects)
    assert items is not None
    unit = np.append(start.unit, np.full(items.n_factors, FIRST_UNIT))
    objective = replace(start, tasks=tasks.with_items(items), unit=unit, pulls=earlier.pulls)
    return _State.first(objective, earlier.model)


def _with_chosen_factors(start: MarginalLikelihood, n_factors: int | None) -> _State:
    """Learn everything roughly, with the number of factors asked for, or as many as there are."""
    if n_factors is not None:
        start = _shrunk(start, n_factors)
        state = _learn_roughly(_State.first(start, start.model))
        for rung in [n for n in _RUNGS if n < n_factors] + [n_factors] * (n_factors > 0):
            state = _with_rung(state, rung)
        return state
    state = _learn_roughly(_with_any_factors(start))
    state = _climb(state) if state.objective.n_factors else state
    if not state.objective.n_factors and state.objective.shape != start.shape:
        return _learn_roughly(_State.first(start, start.model))
    return state


def _shrunk(start: MarginalLikelihood, n_factors: int) -> MarginalLikelihood:
    """Return the objective with the pseudo-people beside whom factors would be found."""
    if not (n_factors and _is_too_much(start)):
        return start
    return replace(start, shape=_with_any_factors(start).objective.shape)


def _is_too_much(start: MarginalLikelihood) -> bool:
    """Say whether labels are few for the whole of Omega."""
    tasks = start.tasks
    assert isinstance(tasks, ItemEffects)
    return start.n_weights > 0 and not enough_for_full(start, tasks.counts.sum(), tasks.n_people)


def _with_any_factors(start: MarginalLikelihood) -> _State:
    """Return a state with factors if held-out labels are predicted better; it is of all labels."""
    tasks = start.tasks
    assert isinstance(tasks, ItemEffects)
    held_out = tasks.holding_out(_LEFT_OUT)
    numbers, n_labels = tasks.n_people + int(tasks.labelled.sum()), int(tasks.counts.sum())
    if held_out.counts.sum() == n_labels or n_labels < _LABELS_PER_NUMBER * numbers:
        return _State.first(start, start.model)
    some = replace(start, tasks=held_out, pulls=WarmStarts())
    state = none = _learn_roughly(_State.first(some, some.model))
    before = _lost(none)
    if _is_too_much(start):
        few = choose_rank(none.objective, none.at).model
        before = min(before, held_out_losses(none.objective, few), key=lambda lost: lost.total)
        some = replace(some, shape=_SHRUNK, pulls=WarmStarts())
        state = _learn_roughly(_State.first(some, some.model))
    for rung in _possible(tasks)[:_FIRST]:
        state = _with_rung(state, rung)
        if _is_better(_lost(state), before):
            break
    else:  # with all labels from the start, as where none is asked for
        return _State.first(start, start.model)
    chosen = state.objective.tasks
    assert isinstance(chosen, ItemEffects)
    whole = replace(state.objective, tasks=chosen.holding_out(0.0))
    return _State.first(whole, state.at.model)


def _lost(state: _State) -> HeldOut:
    return held_out_losses(state.objective, state.at.model)


def _climb(state: _State) -> _State:
    """Add factors until those added last shrink to nothing; return those that do not."""
    tasks = state.objective.tasks
    assert isinstance(tasks, ItemEffects)
    for rung in _possible(tasks):
        before = state.objective.n_factors
        if rung <= before:
            continue
        state = _with_rung(state, rung)
        if not are_there(state.objective, state.at.model, LITTLE)[before:].any():
            break
    left = without_vanished(state.objective, state.at.model, LITTLE)
    return _State.first(left.objective, left.model)


def _possible(tasks: ItemEffects) -> list[int]:
    """Return the numbers of factors that there may be."""
    most = min(tasks.n_people, int(tasks.labelled.sum()))
    return [rung for rung in _RUNGS if rung < most]


def _is_better(losses: HeldOut, others: HeldOut) -> bool:
    """Say whether losses are smaller: noticeably, and by more than a standard error over people."""
    gain = others.losses - losses.losses
    return bool(gain.sum() > max(np.sqrt(float(gain @ gain)), _NOTICED * losses.n_labels))


def _with_rung(state: _State, n_factors: int) -> _State:
    more = n_factors - state.objective.n_factors
    guess = with_factors(state.objective, state.at.model, more, _SHARE)
    return _learn_roughly(_State.first(guess.objective, guess.model))


def _learn_roughly(state: _State) -> _State:
    """Learn the whole of Omega and the items, not very exactly."""
    objective, at = state.objective, state.at
    for _ in range(ROUGH_STEPS):
        before = at.value
        objective, at = step_both(objective, at)
        gain = before - at.value
        at = follow_ridge(objective, at)
        if gain <= ROUGH * abs(at.value):
            break
    return _State(objective, at)


def _alternate(
    objective: MarginalLikelihood,
    *,
    tol: float,
    max_iter: int,
    callback: Callback | None,
) -> PriorFit:
    """Learn people's prior given the items, and the items given people, in turns; J never rises."""
    is_whole = not objective.shape.has_directions
    at = (visit_crowd if is_whole else _by_directions)(objective, objective.model)
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
            converged = pace.is_even and gain <= tol * abs(at.value)
            if callback is not None:
                stopped = bool(callback(len(trace) - 1, at.value, gain))
    except KeyboardInterrupt:
        stopped = True
    unsure = objective.covariance_of_mean(at.model, at.found)
    tasks = objective.tasks
    assert isinstance(tasks, ItemEffects)
    return PriorFit(
        at.model,
        trace,
        converged and not stopped,
        stopped,
        objective.pulls,
        unsure=unsure,
        items=tasks.items,
    )


def _by_directions(objective: MarginalLikelihood, model: PriorModel) -> EvaluatedModel:
    """Return the moments under a model, and J of the prior with a few directions."""
    found = objective.visit(model)
    return EvaluatedModel(model, found, objective.value(model, found))


def _descend_a_little(
    objective: MarginalLikelihood, at: EvaluatedModel, tol: float
) -> EvaluatedModel:
    found = descend(replace(objective, model=at.model), tol=tol, max_iter=_AT_ONCE)
    new = _by_directions(objective, found.model)
    return new if new.value <= at.value else at
