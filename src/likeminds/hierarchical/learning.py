"""Learning the prior: quasi-Newton steps on the objective, one leading direction after another."""

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from likeminds._threads import one_blas_thread
from likeminds.hierarchical.likelihoods import Logistic, Regression
from likeminds.hierarchical.objective import Model, Objective
from likeminds.hierarchical.posterior import Moments
from likeminds.hierarchical.prior import Prior
from likeminds.hierarchical.tasks import Tasks
from likeminds.rows import Float
from likeminds.solvers.base import Callback

# Larger crowds find their directions, and where to start, on this many of the people.
_SAMPLE = 1000
# How exactly the objective is minimised before a direction is judged, and in how many steps.
_ROUGH = 1e-5
_ROUGH_STEPS = 100
# A stage is over when a fresh start gains less than this (in units of log-likelihood, as the
# criterion is), or after so many of them.
_NEGLIGIBLE = 1.0
_FRESH_STARTS = 4
# Directions that do not pay are followed by so many more before the search ends: a pair of
# them may pay where one does not.
_PATIENCE = 2
# Logarithms of standard deviations and of the precision stay within these bounds.
_SMALLEST, _LARGEST = -9.0, 7.0
# Steps the quasi-Newton method remembers.
_MEMORY = 20
# What the regression's precision starts from: that of labels nothing is known about.
_FIRST_PRECISION = 2.0


@dataclass(frozen=True)
class Learned:
    """Where learning stopped, and how it came there.

    Attributes
    ----------
    model : Model
        The prior and what belongs to it.
    trace : list of float
        The objective at the start of the last descent, and after each of its steps.
    converged, interrupted : bool
        Whether it ended by the tolerance; whether it was stopped from outside.
    pulls : array
        Where the next visit to the crowd may start.
    criterion : dict
        For each number of directions tried, what was compared: smaller is better.
    """

    model: Model
    trace: list[float]
    converged: bool
    interrupted: bool
    pulls: Float
    criterion: dict[int, float] = field(default_factory=dict)


def learn(
    tasks: Tasks,
    n_weights: int,
    size: int,
    n_groups: int | None,
    *,
    logistic: bool,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
) -> Learned:
    """Find the leading directions (on a sample of a large crowd), then descend on everybody.

    Parameters
    ----------
    tasks : Tasks
        The labels.
    n_weights, size : int
        The number of coordinates that are weights, and of all of them.
    n_groups : int or None
        The number of leading directions; None leaves it to the data.
    logistic : bool
        Whether labels are logistic, or rows are a regression.
    tol, max_iter, callback
        As in `HierarchicalRanker`.
    """
    few = tasks if tasks.n_people <= 2 * _SAMPLE else tasks.sample(_SAMPLE)
    model = _first_model(size, n_weights, logistic=logistic)
    start = Objective(few, n_weights, model, model.prior.residual, np.zeros(few.n_places))
    with one_blas_thread():  # the matrices are small, even where there are many of them
        rough = _grown(start, n_groups)
        if few is not tasks:
            start = replace(start, tasks=tasks, pulls=np.zeros(tasks.n_places))
        start = replace(start, model=rough.model)
        found = descend(start, tol=tol, max_iter=max_iter, callback=callback)
    return replace(found, criterion=rough.criterion)


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
        # A line search that finds nothing lower has arrived, as far as rounding can tell.
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
    """Keeps the best vector and the objective of each step, and tells the callback."""

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


def _first_model(size: int, n_weights: int, *, logistic: bool) -> Model:
    """Return where everybody starts: no consensus, and scores that differ by about one."""
    residual = np.full(size, 1.0 / np.sqrt(max(n_weights, 1)))
    residual[n_weights:] = 0.5
    prior = Prior(np.zeros(size), np.zeros((size, 0)), residual)
    return Model(prior, Logistic() if logistic else Regression(_FIRST_PRECISION), ridge=1.0)


def _grown(start: Objective, n_groups: int | None) -> Learned:
    """Add directions while that pays (or as many as asked for)."""
    current, found = _settled(start)
    for _ in range(2):  # the ridge was a guess
        current, found = _settled(replace(start, model=current.model))
    best, criterion = current, {0: _criterion(current)}
    most = start.n_weights if n_groups is None else n_groups
    while current.model.prior.rank < most:
        wider = replace(start, model=current.model).with_new_direction(current.model, found)
        if wider is None:
            break
        current, found = _settled(replace(start, model=wider))
        rank = wider.prior.rank
        criterion[rank] = _criterion(current)
        if n_groups is not None or criterion[rank] == min(criterion.values()):
            best = current
        if n_groups is None and rank - best.model.prior.rank == _PATIENCE:
            break
    return replace(best, criterion=criterion)


def _settled(start: Objective) -> tuple[Learned, Moments]:
    """Descend roughly, again while a fresh start still gains, then let the ridge follow."""
    learned = descend(start, tol=_ROUGH, max_iter=_ROUGH_STEPS)
    for _ in range(_FRESH_STARTS):
        again = descend(replace(start, model=learned.model), tol=_ROUGH, max_iter=_ROUGH_STEPS)
        gain, learned = again.trace[0] - again.trace[-1], again
        if gain < _NEGLIGIBLE:
            break
    found = start.visit(learned.model)
    ridge = start.learned_ridge(learned.model, found)
    return replace(learned, model=replace(learned.model, ridge=ridge)), found


def _criterion(learned: Learned) -> float:
    """Return half of Akaike's criterion: what the labels of as many other people would cost."""
    size, rank = learned.model.prior.loadings.shape
    return float(learned.trace[-1] + size * rank - 0.5 * rank * (rank - 1))
