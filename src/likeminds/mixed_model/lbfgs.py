"""Steps down the objective of the prior's parameters, from a start."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from likeminds._util.array_types import Float
from likeminds._util.lazy_imports import LazyModule
from likeminds.mixed_model.fisher_scoring import (
    EvaluatedModel,
    StepLength,
    step,
    valued,
    visit_crowd,
)
from likeminds.mixed_model.gaussian_prior import GaussianPrior
from likeminds.mixed_model.item_posteriors import ItemPosteriors
from likeminds.mixed_model.laplace_moments import Moments, WarmStarts
from likeminds.mixed_model.likelihoods import Likelihood
from likeminds.mixed_model.marginal_likelihood import (
    FULL,
    CovarianceStructure,
    MarginalLikelihood,
    PriorModel,
)
from likeminds.solvers.solver import Callback

optimize: Any = LazyModule("scipy.optimize")

# How exactly the whole of Omega is learned before its form is chosen, and in how many steps: what
# comes after starts from it.
ROUGH = 1e-4
ROUGH_STEPS = 15
# Modes are found so much more exactly than the objective is minimised (what Newton's method
# leaves is about the square of what it gained last).
EXACTER = 100.0
# Logarithms of standard deviations and of the precision stay within these bounds.
_SMALLEST, _LARGEST = -9.0, 7.0
# Steps the quasi-Newton method remembers.
_MEMORY = 20


@dataclass(frozen=True)
class PriorFit:
    """The learned prior, and how it was found."""

    model: PriorModel  # the prior and what belongs to it
    # The objective at the start of the last descent, and after each of its steps.
    trace: list[float]
    # Whether it ended by the tolerance; whether it was stopped from outside.
    converged: bool
    interrupted: bool
    pulls: WarmStarts  # where the search for modes may start next
    n_groups: int = 0  # how many of the prior's directions stand out
    # For each number of directions, from none, objective plus penalty: smaller is better.
    criterion: list[float] = field(default_factory=list)
    # (p, p): the posterior covariance of the prior's mean.
    unsure: Float = field(default_factory=lambda: np.zeros((0, 0)))
    # The mean variance of the mean in directions beyond the coordinates: see `wide`.
    unsure_beyond: float = 0.0
    shape: CovarianceStructure = FULL  # the form of Omega
    items: ItemPosteriors | None = None  # posteriors of items, where they have effects of their own
    # How it was learned from a sample of the people, where it was: see `sampling`.
    sampling: Any = None
    seen: Moments | None = None  # the moments under the model, where its last visit has found them


def first_guess(size: int, n_weights: int) -> Float:
    """Return standard deviations with which scores differ by about one."""
    residual = np.full(size, 1.0 / np.sqrt(max(n_weights, 1)))
    residual[n_weights:] = 0.5
    return residual


def learn_roughly(
    start: MarginalLikelihood, n_steps: int, enough: float = ROUGH, at: EvaluatedModel | None = None
) -> EvaluatedModel:
    """Learn the whole of Omega, not very exactly; from where it was visited, if it was."""
    at = visit_crowd(start, start.model) if at is None else valued(start, at.model, at.found)
    for _ in range(n_steps):
        new = step(start, at)
        gain, at = at.value - new.value, new
        at = follow_ridge(start, at)
        if gain <= enough * abs(at.value):
            break
    return at


def follow_ridge(start: MarginalLikelihood, at: EvaluatedModel) -> EvaluatedModel:
    """Update the ridge penalty of the consensus by its fixed point."""
    ridge = start.learn_ridge(at.model, at.found)
    away = start.away(at.model)
    more = 0.5 * (ridge - at.model.ridge) * float(away @ away)
    return EvaluatedModel(replace(at.model, ridge=ridge), at.found, at.value + more)


def score(
    objective: MarginalLikelihood, *, tol: float, max_iter: int, callback: Callback | None = None
) -> PriorFit:
    """Learn the whole of Omega from where the objective's model stands; J never rises."""
    at = visit_crowd(objective, objective.model)
    trace, converged, stopped, pace = [at.value], False, False, StepLength()
    try:
        while not (converged or stopped) and len(trace) <= max_iter:
            new = step(objective, at, pace)
            gain, at = at.value - new.value, new
            trace.append(at.value)
            converged = pace.is_even and gain <= tol * abs(at.value)
            if callback is not None:
                stopped = bool(callback(len(trace) - 1, at.value, gain))
    except KeyboardInterrupt:
        stopped = True
    converged = converged and not stopped
    return PriorFit(at.model, trace, converged, stopped, objective.pulls, seen=at.found)


def descend(
    objective: MarginalLikelihood,
    *,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
    tilt: Float | None = None,
) -> PriorFit:
    """Minimise the objective from where its model stands; it never rises from step to step.

    With ``tilt``, that times how far the vector has moved is added to J per person: see `sampling`.
    """
    watch = _StepRecorder(objective, callback, tilt)
    n_free = len(watch.best) - objective.n_logs
    bounds = [(None, None)] * n_free + [(_SMALLEST, _LARGEST)] * objective.n_logs
    try:
        found = optimize.minimize(
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
    n_users = objective.n_users
    return PriorFit(
        model=objective.model_at(watch.best),
        trace=[value * n_users for value in watch.trace],
        converged=converged,
        interrupted=watch.stopped,
        pulls=objective.pulls,
    )


class _StepRecorder:
    """Keeps the best vector and the objective of each step, and calls the callback."""

    def __init__(
        self, objective: MarginalLikelihood, callback: Callback | None, tilt: Float | None = None
    ) -> None:
        self._objective, self._tilt = objective, tilt
        self._callback = callback
        self._slope = np.zeros(0)
        self.best = self._start = objective.start
        self.trace: list[float] = []
        self.stopped = False

    def evaluate(self, vector: Float) -> tuple[float, Float]:
        value, self._slope = self._objective(vector)
        if self._tilt is not None:
            value += float(self._tilt @ (vector - self._start))
            self._slope = self._slope + self._tilt
        if not self.trace:
            self.trace.append(value)
        return value, self._slope

    def step(self, intermediate_result: Any) -> None:
        self.best = np.array(intermediate_result.x)
        self.trace.append(float(intermediate_result.fun))
        if self._callback is None:
            return
        number, residual = len(self.trace) - 1, float(np.linalg.norm(self._slope))
        if self._callback(number, self.trace[-1] * self._objective.n_users, residual):
            self.stopped = True
            raise StopIteration


def first_model(
    size: int, n_weights: int, likelihood: Likelihood, centre: Float | float = 0.0
) -> PriorModel:
    """Return the start: a mean where it is thought to be, and scores that differ by about one."""
    mean = np.zeros(size)
    mean[:n_weights] = centre
    prior = GaussianPrior(mean, np.zeros((size, 0)), first_guess(size, n_weights))
    return PriorModel(prior, likelihood, ridge=1.0, centre=centre)
