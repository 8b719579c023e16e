"""Learning the prior together with the items: alternately, down one objective.

J is minus the logarithm of the marginal likelihood, approximately. People are integrated out
(Laplace), the b_j of what is left (Laplace with a diagonal curvature k_j), and the f_j by a bound:

    J = sum_i [Laplace_i + v_i'P_i v_i / 2]  +  sum_j [b_j^2 / tau^2 + log(1 + tau^2 k_j)] / 2
        + sum_j [|f_j|^2 + share (tr T_j - log |T_j| - r)] / 2  +  (ridge, prior of Omega)

with P_i = share/4 sum_j T_j over a person's labels. The number of factors, and the share of
their uncertainty that is penalised, are those that predict held-out labels best.
"""

from dataclasses import dataclass, replace

import numpy as np

from likeminds._support.arrays import Bool, Float, Index
from likeminds._support.threads import one_blas_thread
from likeminds.prior.crossed import CrossedTasks
from likeminds.prior.descent import (
    EXACTER,
    ROUGH,
    ROUGH_STEPS,
    Learned,
    descend,
    first_model,
    follow_ridge,
)
from likeminds.prior.factors import FIRST_UNIT, scores_at, with_factors
from likeminds.prior.forms import Form, choose_form, form_of
from likeminds.prior.grading import Graded
from likeminds.prior.item_steps import step_both, step_items, with_items
from likeminds.prior.likelihoods import Likelihood
from likeminds.prior.objective import DIAGONAL, Model, Objective
from likeminds.prior.posterior import Pulls
from likeminds.prior.scoring import Visited, visit_crowd
from likeminds.solvers.base import Callback

# Numbers of factors that are tried, until so many in a row predict no better; and the shares
# of their uncertainty that are penalised.
_RUNGS = (1, 2, 3, 4, 6, 8)
_PATIENCE = 2
_SHARES = (1.0, 0.4)
# A factor has a number for each person and each item: with fewer labels for each of them, none is
# looked for, since none would be found (and a small crowd is fitted at once).
_LABELS_PER_NUMBER = 5
# The share of labels that is held out for this choice.
_LEFT_OUT = 0.15
# What has to be gained for each of them to be noticed: a thousandth of a bit. Factors that shrink
# to nothing gain less, but that for almost everybody.
_NOTICED = 0.001 * float(np.log(2.0))
# Steps of the quasi-Newton method between two of the items' steps.
_AT_ONCE = 8


@dataclass(frozen=True)
class _State:
    """The state of learning: the objective holds the items, ``Visited`` the model."""

    objective: Objective
    at: Visited

    @classmethod
    def first(cls, objective: Objective, model: Model) -> "_State":
        """Return the state at a model."""
        return cls(objective, visit_crowd(objective, model))


def learn_crossed(
    tasks: CrossedTasks,
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
    shifts: Float | None = None,
    earlier: Learned | None = None,
    anew: bool = False,
) -> Learned:
    """Learn the priors of people and of items; the parameters are those of `learning.learn`.

    ``n_factors`` is how many features of items are learned; None leaves it to the data. From an
    ``earlier`` state, the number of factors stays.
    """
    model = first_model(size, n_weights, likelihood, centre)
    start = Objective(tasks, n_weights, model, model.prior.residual, shifts=shifts)
    with one_blas_thread():
        if earlier is None:
            state = _with_chosen_factors(start, n_factors)
        else:
            state = _go_on(start, earlier)
        if earlier is not None and anew:
            state = _learn_roughly(state)
        start = replace(state.objective, model=state.at.model)
        if earlier is not None and not anew:
            form = form_of(earlier)
        elif n_weights:
            form = choose_form(start, n_groups, covariance, state.at)
        else:
            shape = DIAGONAL if covariance == DIAGONAL.kind else start.shape
            form = Form(state.at.model, shape, 0, [])
        enough = min(start.enough, EXACTER * tol)
        exact = replace(start, model=form.model, shape=form.shape, enough=enough)
        found = _alternate(exact, tol=tol, max_iter=max_iter, callback=callback)
    return replace(found, criterion=form.criterion, n_groups=form.n_groups, shape=form.shape)


def _go_on(start: Objective, earlier: Learned) -> _State:
    """Return the state in which learning ended before."""
    tasks, items = start.tasks, earlier.items
    assert isinstance(tasks, CrossedTasks)
    assert items is not None
    unit = np.append(start.unit, np.full(items.n_factors, FIRST_UNIT))
    objective = replace(start, tasks=tasks.with_items(items), unit=unit, pulls=earlier.pulls)
    return _State.first(objective, earlier.model)


def _with_chosen_factors(start: Objective, n_factors: int | None) -> _State:
    """Learn everything roughly, with the number of factors asked for, or a chosen one."""
    if n_factors is None:
        return _learn_roughly(_chosen_factors(start))
    state = _learn_roughly(_State.first(start, start.model))
    for rung in [n for n in _RUNGS if n < n_factors] + [n_factors] * (n_factors > 0):
        state = _with_rung(state, rung, _SHARES[-1])
    return state


def _chosen_factors(start: Objective) -> _State:
    """Return the state that predicts held-out labels best, its objective then of all labels."""
    tasks = start.tasks
    assert isinstance(tasks, CrossedTasks)
    out = _left_out(tasks)
    rows = tasks.labels.rows
    numbers = len(rows.people) + int(tasks.labelled.sum())
    if not out.any() or int(rows.counts.sum()) < _LABELS_PER_NUMBER * numbers:
        return _State.first(start, start.model)
    some = replace(start, tasks=tasks.with_left_out(out), pulls=Pulls())
    state = _learn_roughly(_State.first(some, some.model))
    best = _climb((state, _losses(state, out)), _SHARES[0], out)
    for share in _SHARES[1:]:
        if not best[0].objective.n_factors:
            break
        tried = _with_share(best[0], share)
        losses = _losses(tried, out)
        if _is_better(losses, best[1], _who(tasks, out)):
            best = _climb((tried, losses), share, out)
    state = best[0]
    chosen = state.objective.tasks
    assert isinstance(chosen, CrossedTasks)
    whole = replace(state.objective, tasks=chosen.with_left_out(None))
    return _State.first(whole, state.at.model)


def _left_out(tasks: CrossedTasks) -> Bool:
    """Choose labels by who gave them to what, whatever their order; never the padding."""
    rows = tasks.labels.rows
    person = np.repeat(rows.people, rows.counts).astype(np.uint64)
    lot = person * np.uint64(0x9E3779B97F4A7C15) + tasks.item[:-1].astype(np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        lot = (lot ^ (lot >> np.uint64(shift))) * np.uint64(factor)
    lot ^= lot >> np.uint64(31)
    return np.append(lot < np.uint64(int(_LEFT_OUT * 2.0**64)), False)


_Tried = tuple[_State, Float]


def _climb(start: _Tried, share: float, out: Bool) -> _Tried:
    """Add factors while held-out labels are predicted better for it; return the best of all."""
    tasks = start[0].objective.tasks
    assert isinstance(tasks, CrossedTasks)
    most = min(tasks.n_people, int(tasks.labelled.sum()))
    best, state, failed = start, start[0], 0
    for rung in _RUNGS:
        if rung <= start[0].objective.n_factors:
            continue
        if failed == _PATIENCE or rung >= most:
            break
        state = _with_rung(state, rung, share)
        losses = _losses(state, out)
        failed = 0 if _is_better(losses, best[1], _who(tasks, out)) else failed + 1
        if not failed:
            best = state, losses
    return best


def _with_share(state: _State, share: float) -> _State:
    """Learn as many factors with another share of their uncertainty penalised."""
    tasks = state.objective.tasks
    assert isinstance(tasks, CrossedTasks)
    moved = with_items(state.objective, replace(tasks.items, share=share))
    return _learn_roughly(_State.first(moved, state.at.model))


def _who(tasks: CrossedTasks, out: Bool) -> Index:
    """Return the people who gave the labels that are left out."""
    rows = tasks.labels.rows
    return np.repeat(np.arange(len(rows.people)), rows.counts)[out[:-1]]


def _is_better(losses: Float, others: Float, person: Index) -> bool:
    """Say whether losses are smaller: noticeably, and by more than a standard error over people."""
    gain = np.bincount(person, weights=others - losses)
    return bool(gain.sum() > max(np.sqrt(float(gain @ gain)), _NOTICED * len(losses)))


def _losses(state: _State, out: Bool) -> Float:
    """Return the losses of the held-out labels."""
    tasks = state.objective.tasks
    assert isinstance(tasks, CrossedTasks)
    eta = scores_at(state.objective, state.at.model)[out]
    rows, likelihood = tasks.labels.rows, state.at.model.likelihood
    positive, weight = rows.positive[out[:-1]], rows.weight[out[:-1]]
    if rows.grade is not None and isinstance(likelihood, Graded):
        return weight * likelihood.each(eta, rows.grade[out[:-1]], rows.owner[out[:-1]])
    return np.asarray(weight * (np.logaddexp(0.0, eta) - positive * eta))


def _with_rung(state: _State, n_factors: int, share: float) -> _State:
    more = n_factors - state.objective.n_factors
    guess = with_factors(state.objective, state.at.model, more, share)
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
    objective: Objective,
    *,
    tol: float,
    max_iter: int,
    callback: Callback | None,
) -> Learned:
    """Learn people's prior given the items, and the items given people, in turns; J never rises."""
    is_whole = not objective.shape.has_directions
    at = (visit_crowd if is_whole else _by_directions)(objective, objective.model)
    trace, converged, stopped = [at.value], False, False
    try:
        while not (converged or stopped) and len(trace) <= max_iter:
            before = at.value
            if is_whole:
                objective, at = step_both(objective, at)
            else:
                at = _descend_a_little(objective, at, tol)
                objective, at = step_items(objective, at, _by_directions)
            trace.append(at.value)
            gain = before - at.value
            converged = gain <= tol * abs(at.value)
            if callback is not None:
                stopped = bool(callback(len(trace) - 1, at.value, gain))
    except KeyboardInterrupt:
        stopped = True
    tasks = objective.tasks
    assert isinstance(tasks, CrossedTasks)
    return Learned(
        at.model,
        trace,
        converged and not stopped,
        stopped,
        objective.pulls,
        unsure=objective.covariance_of_mean(at.model, at.found),
        items=tasks.items,
    )


def _by_directions(objective: Objective, model: Model) -> Visited:
    """Return the moments under a model, and J of the prior with a few directions."""
    found = objective.visit(model)
    return Visited(model, found, objective.value(model, found))


def _descend_a_little(objective: Objective, at: Visited, tol: float) -> Visited:
    found = descend(replace(objective, model=at.model), tol=tol, max_iter=_AT_ONCE)
    new = _by_directions(objective, found.model)
    return new if new.value <= at.value else at
