"""Learning the prior: which form it takes, and steps down the objective."""

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from likeminds._support.arrays import Float
from likeminds._support.threads import one_blas_thread
from likeminds.prior.items import Items
from likeminds.prior.likelihoods import Likelihood
from likeminds.prior.objective import Model, Objective
from likeminds.prior.prior import Prior
from likeminds.prior.scoring import Visited, step, visit_crowd
from likeminds.prior.tasks import Tasks
from likeminds.solvers.base import Callback

# Larger crowds find their directions, and where to start, on this many of the people.
_SAMPLE = 1000
# How exactly the whole of Omega is learned before its directions are judged, and in how many
# steps: what comes after starts from it.
ROUGH = 1e-4
ROUGH_STEPS = 15
# Modes are found so much more exactly than the objective is minimised (what Newton's method
# leaves is about the square of what it gained last).
EXACTER = 100.0
# The share of the pseudo-people that is tried, too.
_FEWER = 0.1
# What a direction has to gain for each label to be noticed: a hundredth of a bit.
_NOTICED = 0.01 * float(np.log(2.0))
# Numbers of directions tried beyond the best one before the search ends.
_PATIENCE = 2
# Logarithms of standard deviations and of the precision stay within these bounds.
_SMALLEST, _LARGEST = -9.0, 7.0
# Steps the quasi-Newton method remembers.
_MEMORY = 20


@dataclass(frozen=True)
class Learned:
    """The learned prior, and how it was found.

    Attributes
    ----------
    model : Model
        The prior and what belongs to it.
    trace : list of float
        The objective at the start of the last descent, and after each of its steps.
    converged, interrupted : bool
        Whether it ended by the tolerance; whether it was stopped from outside.
    pulls : array
        Where the search for modes may start next.
    n_groups : int
        How many of the prior's directions stand out.
    criterion : list of float
        For each number of directions, from none, objective plus penalty: smaller is better.
    unsure : array of shape (p, p)
        The posterior covariance of the prior's mean.
    is_whole : bool
        Whether all of Omega was learned, not only a few directions.
    items : Items, optional
        Posteriors of items, where they have effects of their own.
    """

    model: Model
    trace: list[float]
    converged: bool
    interrupted: bool
    pulls: Float
    n_groups: int = 0
    criterion: list[float] = field(default_factory=list)
    unsure: Float = field(default_factory=lambda: np.zeros((0, 0)))
    is_whole: bool = False
    items: Items | None = None


def learn(
    tasks: Tasks,
    n_weights: int,
    size: int,
    n_groups: int | None,
    *,
    likelihood: Likelihood,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
    shifts: Float | None = None,
    earlier: Learned | None = None,
) -> Learned:
    """Choose the form of the prior (on a sample of a large crowd), then learn it from everybody.

    Parameters
    ----------
    tasks : Tasks
        The labels.
    n_weights, size : int
        The number of coordinates that are weights, and of all of them.
    n_groups : int or None
        The number of leading directions; None leaves it to the data.
    likelihood : Likelihood
        The likelihood of labels; a regression's precision is where learning starts.
    tol, max_iter, callback
        As in `HierarchicalRanker`.
    shifts : array of shape (n_people, size), optional
        How far everybody's mean is from that of all: see `covariates`.
    earlier : Learned, optional
        Where to go on from, in the same form.
    """
    few = tasks if tasks.n_people <= 2 * _SAMPLE else tasks.sample(_SAMPLE)
    model = first_model(size, n_weights, likelihood)
    unit, pulls = model.prior.residual, np.zeros(few.n_places)
    start = Objective(few, n_weights, model, unit, pulls, shifts=shifts)
    with one_blas_thread():  # the matrices are small, even where there are many of them
        form = choose_form(start, n_groups) if earlier is None else _form_of(earlier)
        if few is not tasks:
            start = replace(start, tasks=tasks, pulls=np.zeros(tasks.n_places))
        start = replace(start, model=form.model, enough=min(start.enough, EXACTER * tol))
        finish = score if form.is_whole else descend
        found = finish(start, tol=tol, max_iter=max_iter, callback=callback)
        unsure = start.covariance_of_mean(found.model, start.visit(found.model))
    return replace(
        found,
        criterion=form.criterion,
        n_groups=form.n_groups,
        is_whole=form.is_whole,
        unsure=unsure,
    )


def first_guess(size: int, n_weights: int) -> Float:
    """Return standard deviations with which scores differ by about one."""
    residual = np.full(size, 1.0 / np.sqrt(max(n_weights, 1)))
    residual[n_weights:] = 0.5
    return residual


@dataclass(frozen=True)
class Form:
    """Whether the whole of Omega is learned or a few directions, and where to start."""

    model: Model
    is_whole: bool
    n_groups: int
    criterion: list[float]


def _form_of(earlier: Learned) -> Form:
    return Form(earlier.model, earlier.is_whole, earlier.n_groups, earlier.criterion)


def choose_form(start: Objective, n_groups: int | None, at: Visited | None = None) -> Form:
    """Learn the whole of Omega roughly, and see how many of its directions stand out.

    All of Omega is kept where that is worth its p (p + 1) / 2 numbers by Akaike's criterion
    (half of it: what the labels of as many other people would cost). Else as many directions
    are as pay for themselves. Where people have fewer labels than there are coordinates the
    pseudo-people may outweigh their labels, so that no direction gets any variance: then
    fewer of them are tried, too. ``at`` is where the rough learning ended, if it is done.
    """
    size = len(start.unit)
    if at is None:
        at = _learn_roughly(start, ROUGH_STEPS if n_groups != 0 else 1)
    if n_groups is not None:
        return Form(_truncate(start, at, n_groups), False, n_groups, [])
    first = _judge_form(start, at)
    if at.found.objective + 0.5 * size * (size + 1) <= min(first.criterion):
        return replace(first, model=at.model, is_whole=True)
    if at.found.comparisons >= size * at.found.n_people:
        return first
    freer = replace(start, pseudo=_FEWER * start.pseudo)
    second = _judge_form(freer, _learn_roughly(freer, ROUGH_STEPS))
    # With as many directions as before, the model with more shrinkage is the better one.
    finds_more = second.n_groups > first.n_groups and min(second.criterion) < min(first.criterion)
    return second if finds_more else first


def _learn_roughly(start: Objective, n_steps: int) -> Visited:
    """Learn the whole of Omega, not very exactly."""
    at = visit_crowd(start, start.model)
    for _ in range(n_steps):
        new = step(start, at)
        gain, at = at.value - new.value, new
        at = follow_ridge(start, at)
        if gain <= ROUGH * abs(at.value):
            break
    return at


def _judge_form(start: Objective, at: Visited) -> Form:
    """Return the leading directions of Omega that lower the criterion.

    Each has p numbers, which Akaike's criterion counts once. But as the strongest of all
    directions one that is nothing but noise gains up to p, too; and a gain of less than a
    hundredth of a bit per label hardly changes how people rank items. The smaller of the two is
    counted on top.
    """
    size = len(start.unit)
    cost = size + min(size, _NOTICED * at.found.comparisons)
    criterion: list[float] = []
    for rank in range(start.n_weights + 1):
        value = start.visit(_truncate(start, at, rank)).objective
        criterion.append(value + rank * cost)
        if rank - int(np.argmin(criterion)) == _PATIENCE:
            break
    best = int(np.argmin(criterion))
    return Form(_truncate(start, at, best), False, best, criterion)


def _truncate(start: Objective, at: Visited, rank: int) -> Model:
    return replace(at.model, prior=at.model.prior.truncated(rank, start.n_weights))


def follow_ridge(start: Objective, at: Visited) -> Visited:
    """Update the ridge penalty of the consensus by its fixed point."""
    ridge = start.learn_ridge(at.model, at.found)
    theta = at.model.prior.mean[: start.n_weights]
    more = 0.5 * (ridge - at.model.ridge) * float(theta @ theta)
    return Visited(replace(at.model, ridge=ridge), at.found, at.value + more)


def score(
    objective: Objective, *, tol: float, max_iter: int, callback: Callback | None = None
) -> Learned:
    """Learn the whole of Omega from where the objective's model stands; J never rises."""
    at = visit_crowd(objective, objective.model)
    trace, converged, stopped = [at.value], False, False
    try:
        while not (converged or stopped) and len(trace) <= max_iter:
            new = step(objective, at)
            gain, at = at.value - new.value, new
            trace.append(at.value)
            converged = gain <= tol * abs(at.value)
            if callback is not None:
                stopped = bool(callback(len(trace) - 1, at.value, gain))
    except KeyboardInterrupt:
        stopped = True
    return Learned(at.model, trace, converged and not stopped, stopped, objective.pulls)


def descend(
    objective: Objective, *, tol: float, max_iter: int, callback: Callback | None = None
) -> Learned:
    """Minimise the objective from where its model stands; it never rises from step to step."""
    watch = _Watch(objective, callback)
    n_free = len(watch.best) - objective.n_logs
    bounds = [(None, None)] * n_free + [(_SMALLEST, _LARGEST)] * objective.n_logs
    try:
        found = minimize(
            watch.evaluate,
            watch.best,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            callback=watch.step,
            options={"maxiter": max_iter, "ftol": tol, "gtol": tol, "maxcor": _MEMORY},
        )
        # A line search that finds nothing lower has converged to within rounding.
        converged = not watch.stopped and found.nit < max_iter
    except KeyboardInterrupt:
        converged, watch.stopped = False, True
    n_people = objective.tasks.n_people
    return Learned(
        model=objective.model_at(watch.best),
        trace=[value * n_people for value in watch.trace],
        converged=converged,
        interrupted=watch.stopped,
        pulls=objective.pulls,
    )


class _Watch:
    """Keeps the best vector and the objective of each step, and calls the callback."""

    def __init__(self, objective: Objective, callback: Callback | None) -> None:
        self._objective = objective
        self._callback = callback
        self._slope = np.zeros(0)
        self.best = objective.start
        self.trace: list[float] = []
        self.stopped = False

    def evaluate(self, vector: Float) -> tuple[float, Float]:
        value, self._slope = self._objective(vector)
        if not self.trace:
            self.trace.append(value)
        return value, self._slope

    def step(self, intermediate_result: OptimizeResult) -> None:
        self.best = np.array(intermediate_result.x)
        self.trace.append(float(intermediate_result.fun))
        if self._callback is None:
            return
        number, residual = len(self.trace) - 1, float(np.linalg.norm(self._slope))
        if self._callback(number, self.trace[-1] * self._objective.tasks.n_people, residual):
            self.stopped = True
            raise StopIteration


def first_model(size: int, n_weights: int, likelihood: Likelihood) -> Model:
    """Return the start: a mean of zero, and scores that differ by about one."""
    prior = Prior(np.zeros(size), np.zeros((size, 0)), first_guess(size, n_weights))
    return Model(prior, likelihood, ridge=1.0)
