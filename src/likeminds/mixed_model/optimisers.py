"""Optimisers of the marginal likelihood: Fisher scoring for all of Omega, else L-BFGS.

EM moves Omega to the second moments of the posteriors. It is slow if labels carry little
information, as posteriors then equal the prior. Fisher scoring divides EM's step by the
information. Take the basis of L (L L' = Omega) and the eigenvectors of the mean posterior
covariance, with eigenvalues 1 - k_a. Then the entry (a, b) of Omega has the information of k_a k_b
U users whose weights are observed without error.

Pseudo-users, a fixed share of the users, shrink Omega towards their covariance. All their weights
are N(0, s^2). J grows by

    pseudo/2 [log |Omega| + log |T^-1| ],  T = diag(s^2, ..., s^2, v^2)

where s and v minimise it: the penalty is on unequal variances of directions, not on their sum. Or T
has a variance for each coordinate, so the penalty is on correlations only. For a diagonal Omega,
the same steps are taken with its diagonal.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import optimize

from likeminds._util.array_types import Float
from likeminds.mixed_model.gaussian_prior import OFF_ZERO, GaussianPrior, ItemPosteriors, MeanShifts
from likeminds.mixed_model.laplace import Moments, WarmStarts
from likeminds.mixed_model.likelihoods import GaussianLikelihood, Likelihood
from likeminds.mixed_model.marginal_likelihood import (
    FULL,
    LEAST_KNOWN,
    CovarianceStructure,
    MarginalLikelihood,
    PriorModel,
    slope_by_log_precision,
)
from likeminds.solvers.solver import Callback

# Variances grow or shrink by at most exp(2) in a step of scoring.
LONGEST_LOG_STEP = 2.0
# The factor that shortens steps which do not lower J, and the length at which they end.
SHORTER, SHORTEST = 0.4, 1e-3


@dataclass(frozen=True)
class EvaluatedModel:
    """A model, the moments of the posteriors under it, and J."""

    model: PriorModel
    moments: Moments
    value: float


def evaluate_model(objective: MarginalLikelihood, model: PriorModel) -> EvaluatedModel:
    """Return the moments under a model, and J, which includes the pseudo-users."""
    return valued(objective, model, objective.e_step(model))


def evaluate_directions(objective: MarginalLikelihood, model: PriorModel) -> EvaluatedModel:
    """Return the moments under a model, and J of the prior with a few directions."""
    moments = objective.e_step(model)
    return EvaluatedModel(model, moments, objective.value(model, moments))


def valued(objective: MarginalLikelihood, model: PriorModel, moments: Moments) -> EvaluatedModel:
    """Return J, given the moments under a model, with the penalty of the pseudo-users."""
    pseudo = objective.structure.pseudo * moments.n_users
    log_determinant, variances = _pseudo_variances(model.prior, objective)
    penalty = 0.5 * pseudo * (log_determinant - float(np.log(variances).sum()))
    value = moments.objective + penalty + objective.ridge_penalty(model)
    return EvaluatedModel(model, moments, value + objective.item_penalty(moments))


class StepLength:
    """Extrapolation of steps that converge linearly, after two with decreasing gains.

    If each step is r times as long as the one before, gains shrink by r^2. All further steps
    together are then 1 / (1 - r) times as long as the next. Only Omega and item factors are
    extrapolated.

    Examples
    --------
    >>> pace = StepLength()
    >>> for gain in (4.0, 1.0):
    ...     pace.record(pace.factor, gain)
    >>> pace.factor
    2.0
    """

    def __init__(self, longest: float = 4.0) -> None:
        # The largest factor (1 is without extrapolation): doubled if J falls by it, else halved.
        self._gains: list[float] = []
        self._longest = longest
        self.was_single = True

    @property
    def factor(self) -> float:
        """The factor of the length of the next step."""
        before, last = self._gains[-2:] if len(self._gains) > 1 else (0.0, 0.0)
        if not 0.0 < last < before:
            return 1.0
        return float(min(1.0 / (1.0 - np.sqrt(last / before)), self._longest))

    def record(self, share: float, gain: float) -> None:
        """Record the factor and the gain of a step."""
        self.was_single = share <= 1.0
        if self.factor == 1.0:
            self._gains.append(gain)
            return
        self._gains = []
        self._longest = max(self._longest * (2.0 if share > 1.0 else 0.5), 1.5)


def step(
    objective: MarginalLikelihood, at: EvaluatedModel, pace: StepLength | None = None
) -> EvaluatedModel:
    """Return the next model; J does not rise."""
    move, pace = ScoringStep(objective, at), StepLength(1.0) if pace is None else pace
    share = pace.factor
    while share > SHORTEST:
        new = evaluate_model(objective, move.to(share))
        if new.value <= at.value:
            pace.record(share, at.value - new.value)
            return new
        share = 1.0 if share > 1.0 else share * SHORTER
    pace.record(0.0, 0.0)
    return at


class ScoringStep:
    """A step of scoring from a model."""

    def __init__(self, objective: MarginalLikelihood, at: EvaluatedModel) -> None:
        self._model = model = at.model
        prior, moments, n_weights = model.prior, at.moments, objective.n_weights
        users = moments.n_users
        self._is_diagonal = objective.structure.kind == "diagonal"
        posterior, turn = np.linalg.eigh(moments.covariance / users)
        if self._is_diagonal:
            posterior, turn = np.diag(moments.covariance) / users, np.eye(len(turn))
        reliability = np.maximum(1.0 - posterior, LEAST_KNOWN)  # k_a
        self._root = prior.root @ turn
        inverse = turn.T @ prior.inverse_root
        _, variances = _pseudo_variances(prior, objective)
        pseudo = objective.structure.pseudo * users
        identity = np.eye(len(reliability))
        score = turn.T @ moments.second @ turn - users * identity
        score += pseudo * ((inverse * variances) @ inverse.T - identity)
        if self._is_diagonal:
            information = users * (identity - moments.covariance / users) ** 2
            information += (LEAST_KNOWN**2 * users + pseudo) * identity
            self._growth, self._axes = np.linalg.solve(information, np.diag(score)), identity
        else:
            growth = score / (users * np.outer(reliability, reliability) + pseudo)
            self._growth, self._axes = np.linalg.eigh(growth)
        mean_root = self._root[:n_weights]
        slope = turn.T @ moments.first - model.ridge * (
            mean_root.T @ objective.mean_deviation(model)
        )
        information = np.diag(users * reliability) + model.ridge * (mean_root.T @ mean_root)
        self._shift = self._root @ np.linalg.solve(information, slope)
        if objective.n_factors or self._is_diagonal:
            self._shift = _free_shift(objective, at)
        self._sharper = 0.0
        if isinstance(model.likelihood, GaussianLikelihood):
            by_log = -slope_by_log_precision(moments, model.likelihood)
            self._sharper = by_log / (0.5 * max(moments.comparisons, 1.0))

    def to(self, share: float) -> PriorModel:
        """Return the model after a share of the whole step; beyond it, only Omega moves on."""
        model = self._model
        growth = np.exp(np.clip(share * self._growth, -LONGEST_LOG_STEP, LONGEST_LOG_STEP))
        root = (self._root @ self._axes) * np.sqrt(growth)
        prior = GaussianPrior.of_covariance(
            model.prior.mean + min(share, 1.0) * self._shift, root @ root.T
        )
        if self._is_diagonal:
            prior = prior.without_correlations()
        likelihood = model.likelihood
        if isinstance(likelihood, GaussianLikelihood):
            # A regression's precision grows or shrinks by at most exp(1) in a step.
            sharper = np.clip(share * self._sharper, -1.0, 1.0)
            likelihood = GaussianLikelihood(likelihood.precision * float(np.exp(sharper)))
        return replace(model, prior=prior, likelihood=likelihood)


def update_tau2(variance: float, squares: Float, variances: Float, share: float = 1.0) -> float:
    """Return tau^2 after a step of Fisher scoring.

    ``squares`` are posterior means of b_j^2, ``variances`` the posterior variances of b_j.
    """
    reliability = 1.0 - variances / variance
    information = float((reliability**2).sum()) + LEAST_KNOWN * len(variances) + OFF_ZERO
    growth = share * (float((squares / variance - 1.0).sum()) + OFF_ZERO) / information
    growth = float(np.clip(growth, -LONGEST_LOG_STEP, LONGEST_LOG_STEP))
    return max(variance * float(np.exp(growth)), 1e-8)


def _free_shift(objective: MarginalLikelihood, at: EvaluatedModel) -> Float:
    """Return the step of the mean if some of its coordinates stay at zero."""
    model, n_weights, free = at.model, objective.n_weights, objective.n_free
    slope = model.prior.inverse_root.T @ at.moments.first
    slope[:n_weights] -= model.ridge * objective.mean_deviation(model)
    shift = np.zeros_like(slope)
    shift[:free] = objective.covariance_of_mean(model, at.moments)[:free, :free] @ slope[:free]
    return shift


def _pseudo_variances(prior: GaussianPrior, objective: MarginalLikelihood) -> tuple[float, Float]:
    """Return log |Omega|, plus the squares of pseudo-users under Omega, and their variances.

    The variances are those nearest to Omega, so squares do not depend on it. Only a fixed variance
    of factor weights adds to the logarithm.
    """
    inverse, n_weights = prior.inverse_root, objective.n_weights
    precision = np.einsum("ij,ij->j", inverse, inverse)
    variances = 1.0 / precision
    if not objective.structure.own:
        variances[:n_weights] = n_weights / max(float(precision[:n_weights].sum()), 1e-300)
    log_determinant, fixed = -2.0 * float(np.linalg.slogdet(inverse)[1]), objective.n_free
    if objective.structure.factor_variance is not None:
        variances[fixed:] = objective.structure.factor_variance
        log_determinant += float((precision[fixed:] * variances[fixed:] - 1.0).sum())
    return log_determinant, variances


# Tolerance and steps of the fit of all of Omega before its structure is chosen.
ROUGH = 1e-4
ROUGH_STEPS = 15
# The tolerance of modes over that of the objective: Newton's method leaves an error of about the
# square of its last gain.
EXACTER = 100.0


@dataclass(frozen=True)
class PriorFit:
    """The learned prior, and the history of its fit."""

    model: PriorModel
    trace: list[float]  # the objective at the start of the last descent, and after each step
    converged: bool
    interrupted: bool
    warm_starts: WarmStarts
    n_groups: int = 0  # the number of leading directions
    criterion: list[float] = field(default_factory=list)  # objective plus penalty by n_groups
    # (p, p): the posterior covariance of the prior's mean.
    mean_covariance: Float = field(default_factory=lambda: np.zeros((0, 0)))
    mean_variance_beyond: float = 0.0  # that of the mean beyond the coordinates: see `wide_fit`
    structure: CovarianceStructure = FULL
    items: ItemPosteriors | None = None
    shifts: MeanShifts | None = None  # with item factors: those given, in the units of factors
    sampling: Any = None  # a `fit_prior.SubsampleRecord`, if fitted to a sample of the users
    moments: Moments | None = None  # under the model, if computed


def first_guess(size: int, n_weights: int) -> Float:
    """Return standard deviations with which scores differ by about one."""
    residual = np.full(size, 1.0 / np.sqrt(max(n_weights, 1)))
    residual[n_weights:] = 0.5
    return residual


def fit_roughly(
    start: MarginalLikelihood, n_steps: int, enough: float = ROUGH, at: EvaluatedModel | None = None
) -> EvaluatedModel:
    """Fit all of Omega to a low tolerance; ``at`` is the start, if it has been evaluated."""
    at = evaluate_model(start, start.model) if at is None else valued(start, at.model, at.moments)
    for _ in range(n_steps):
        new = step(start, at)
        gain, at = at.value - new.value, new
        at = follow_ridge(start, at)
        if gain <= enough * abs(at.value):
            break
    return at


def follow_ridge(start: MarginalLikelihood, at: EvaluatedModel) -> EvaluatedModel:
    """Update the ridge penalty of the consensus by its fixed point."""
    ridge = start.learn_ridge(at.model, at.moments)
    deviation = start.mean_deviation(at.model)
    more = 0.5 * (ridge - at.model.ridge) * float(deviation @ deviation)
    return EvaluatedModel(replace(at.model, ridge=ridge), at.moments, at.value + more)


def score(
    objective: MarginalLikelihood, *, tol: float, max_iter: int, callback: Callback | None = None
) -> PriorFit:
    """Fit all of Omega by Fisher scoring from the objective's model; J never rises."""
    at = evaluate_model(objective, objective.model)
    advance = partial(step, objective)
    at, trace, converged, stopped = take_steps(at, advance, tol, max_iter, callback)
    return PriorFit(at.model, trace, converged, stopped, objective.warm_starts, moments=at.moments)


def take_steps(
    at: EvaluatedModel,
    advance: Callable[[EvaluatedModel, StepLength], EvaluatedModel],
    tol: float,
    max_iter: int,
    callback: Callback | None,
) -> tuple[EvaluatedModel, list[float], bool, bool]:
    """Step until J falls by less than a share ``tol``; return J by step, converged, stopped."""
    trace, converged, stopped, pace = [at.value], False, False, StepLength()
    try:
        while not (converged or stopped) and len(trace) <= max_iter:
            new = advance(at, pace)
            gain, at = at.value - new.value, new
            trace.append(at.value)
            converged = pace.was_single and gain <= tol * abs(at.value)
            if callback is not None:
                stopped = bool(callback(len(trace) - 1, at.value, gain))
    except KeyboardInterrupt:
        stopped = True
    return at, trace, converged and not stopped, stopped


def descend(
    objective: MarginalLikelihood,
    *,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
    tilt: Float | None = None,
) -> PriorFit:
    """Minimise the objective by L-BFGS from its model; it never rises from step to step.

    ``tilt`` is a gradient that is added to that of J per user: see `fit_prior`.
    """
    watch = _StepRecorder(objective, callback, tilt)
    n_free = len(watch.best) - objective.n_logs
    # Logarithms of standard deviations and of the precision stay within these bounds.
    bounds = [(None, None)] * n_free + [(-9.0, 7.0)] * objective.n_logs
    try:
        found = optimize.minimize(
            watch.evaluate,
            watch.best,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            callback=watch.step,
            options={"maxiter": max_iter, "ftol": tol, "gtol": tol, "maxcor": 20},
        )
        # A line search without a lower point has converged up to rounding.
        converged = not watch.stopped and found.nit < max_iter
    except KeyboardInterrupt:
        converged, watch.stopped = False, True
    n_users = objective.n_users
    return PriorFit(
        model=objective.model_at(watch.best),
        trace=[value * n_users for value in watch.trace],
        converged=converged,
        interrupted=watch.stopped,
        warm_starts=objective.warm_starts,
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
    """Return the start: the prior mean of the consensus, and scores with variance near one."""
    mean = np.zeros(size)
    mean[:n_weights] = centre
    prior = GaussianPrior(mean, np.zeros((size, 0)), first_guess(size, n_weights))
    return PriorModel(prior, likelihood, ridge=1.0, centre=centre)
