"""Maximum simulated likelihood: coefficients that make the labels most likely, no penalties.

Draws are made around everybody's modes, the likelihood that they give is maximised over theta,
Omega and the weights that are the same for everybody, and new draws are made where that led. The
farther that is, the less the old draws can be trusted: it goes no farther than the gain that they
promised is borne out by the new ones (a trust region). Random numbers are the same in every round.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from likeminds._util.array_types import Float
from likeminds._util.lazy_imports import LazyModule
from likeminds._util.threads import one_blas_thread
from likeminds.choice_models.covariance_parameters import (
    Bounds,
    CovarianceParameters,
    FullCovariance,
    LowRankCovariance,
    ScaledCovariance,
)
from likeminds.choice_models.importance_sampling import (
    Coefficients,
    ImportanceSampler,
    SimulationProblem,
)
from likeminds.choice_models.specification import Specification
from likeminds.mixed_model.design import Design
from likeminds.mixed_model.gaussian_prior import GaussianPrior
from likeminds.mixed_model.laplace import WarmStarts
from likeminds.mixed_model.optimisers import PriorFit
from likeminds.mixed_model.responses import Responses

optimize: Any = LazyModule("scipy.optimize")

# Rounds of draws at most; the gain, in units of log-likelihood, at which they end.
_ROUNDS = 50
_GAIN = 0.02
# The share of the bounds that a round may use: at first, and at the end; by how much it grows and
# shrinks, where more or less than such shares of the promised gain are borne out.
_REACH_FIRST, _SHORTEST = 0.5, 0.01
_LONGER, _SHORTER = 2.0, 0.3
_GOOD, _BAD = 0.75, 0.25
# How far a mean may move in a round, in standard deviations of the weights; weights that are the
# same for everybody, in units of standardised features.
_REACH, _REACH_FIXED = 2.0, 0.5
# Steps of the quasi-Newton method in a round, and how many it remembers.
_STEPS, _MEMORY = 50, 20
# Half the distance over which slopes are differenced.
_APART = 1e-4

Callback = Callable[[int, float, float], bool | None]


@dataclass(frozen=True)
class LikelihoodSurface:
    """The simulated log-likelihood as a function of one vector around some coefficients.

    The vector holds the means (in standard deviations), the weights that are the same for
    everybody, and what the form of Omega is made of.
    """

    simulation: ImportanceSampler
    at: Coefficients
    form: CovarianceParameters

    @property
    def start(self) -> Float:
        """The vector of the coefficients themselves."""
        return np.concatenate([np.zeros(len(self._unit) + len(self.at.fixed)), self.form.start])

    @property
    def bounds(self) -> Bounds:
        """How far each entry may move; means of weights whose sign is known keep it."""
        reach: Bounds = []
        signs = self.simulation.setting.signs
        for mean, unit, sign in zip(self.at.mean, self._unit, signs, strict=True):
            zero = -mean / unit
            low, high = (max(-_REACH, zero), _REACH) if sign > 0 else (-_REACH, _REACH)
            reach.append((low, min(high, zero)) if sign < 0 else (low, high))
        reach += [(-_REACH_FIXED, _REACH_FIXED)] * len(self.at.fixed)
        return reach + self.form.bounds

    @property
    def _unit(self) -> Float:
        return np.sqrt(self.at.covariance.diagonal())

    def coefficients(self, vector: Float) -> Coefficients:
        """Return the coefficients that a vector stands for."""
        size, n_fixed = len(self._unit), len(self.at.fixed)
        mean, fixed, rest = np.split(vector, [size, size + n_fixed])
        covariance = self.form.covariance(rest)
        return Coefficients(self.at.mean + mean * self._unit, covariance, self.at.fixed + fixed)

    def __call__(self, vector: Float) -> tuple[float, Float]:
        """Return the log-likelihood, and its gradient."""
        at = self.coefficients(vector)
        found = self.simulation.at(at)
        precision = np.linalg.inv(at.covariance)
        n_users = len(found.by_user)
        by_mean = precision @ found.first
        by_covariance = 0.5 * (precision @ found.second @ precision - n_users * precision)
        rest = vector[len(self._unit) + len(self.at.fixed) :]
        slope = [by_mean * self._unit, found.by_fixed, self.form.slope(rest, by_covariance)]
        return found.value, np.concatenate(slope)

    def scores(self) -> Float:
        """Return each user's gradient at the start, shape (n_users, size of the vector)."""
        found = self.simulation.moments(self.at)
        precision = np.linalg.inv(self.at.covariance)
        by_covariance = 0.5 * (precision @ found.second @ precision - precision)
        by_form = [self.form.slope(self.form.start, one) for one in by_covariance]
        by_mean = found.first @ precision * self._unit
        return np.concatenate([by_mean, found.by_fixed, np.array(by_form)], axis=1)

    def information(self, n_first: int | None = None) -> Float:
        """Return minus the second derivatives at the start, by differences of slopes.

        With ``n_first``, by the first entries of the vector alone.
        """
        start = self.start
        steps = _APART * np.eye(len(start))[:n_first]
        rows = [self(start - step)[1] - self(start + step)[1] for step in steps]
        matrix = np.array(rows)[:, :n_first] / (2.0 * _APART)
        return 0.5 * (matrix + matrix.T)


@dataclass(frozen=True)
class MaximumLikelihood:
    """Coefficients of the greatest simulated likelihood, and the value in each round."""

    coefficients: Coefficients
    trace: list[float]
    converged: bool
    interrupted: bool


def form_of(
    kind: str, setting: SimulationProblem, at: Coefficients, n_groups: int
) -> CovarianceParameters:
    """Return the form of Omega of a kind: "full", "diagonal" or "low_rank"."""
    if kind == "diagonal":
        return ScaledCovariance(np.diag(at.covariance.diagonal()))
    if kind == "full":
        return FullCovariance(np.asarray(np.linalg.cholesky(at.covariance), dtype=np.float64))
    n_weights = int((setting.varies < setting.n_weights).sum())
    whole = GaussianPrior.of_covariance(at.mean, at.covariance)
    prior = whole.truncated(min(n_groups, n_weights), n_weights)
    # Weights share one residual; the intercept, where there is one, has its own.
    together = np.maximum(np.arange(len(at.mean)) - n_weights + 1, 0)
    return LowRankCovariance(prior.loadings * prior.residual[:, None], prior.residual, together)


def maximise(
    setting: SimulationProblem,
    at: Coefficients,
    *,
    kind: str,
    n_groups: int,
    n_draws: int,
    max_iter: int,
    callback: Callback | None = None,
) -> MaximumLikelihood:
    """Maximise the simulated likelihood, from coefficients that are not far from its maximum."""
    reach, converged, stopped = _REACH_FIRST, False, False
    surface = surface_of(setting, at, kind, n_groups, n_draws)
    value = surface(surface.start)[0]
    trace = [value]
    try:
        while len(trace) <= min(_ROUNDS, max_iter) and not (converged or stopped):
            vector, promised = _climb(surface, reach)
            converged = promised - value <= _GAIN
            if converged:
                break
            new = surface_of(setting, surface.coefficients(vector), kind, n_groups, n_draws)
            new_value = new(new.start)[0]
            kept = (new_value - value) / (promised - value)
            reach = min(
                1.0, reach * (_LONGER if kept > _GOOD else 1.0 if kept > _BAD else _SHORTER)
            )
            if new_value > value:
                surface, value = new, new_value
            trace.append(value)
            converged = reach < _SHORTEST
            if callback is not None:
                stopped = bool(callback(len(trace) - 1, -value, promised - value))
    except KeyboardInterrupt:
        stopped = True
    return MaximumLikelihood(surface.at, trace, converged and not stopped, stopped)


def surface_of(
    setting: SimulationProblem, at: Coefficients, kind: str, n_groups: int, n_draws: int
) -> LikelihoodSurface:
    """Return the surface around some coefficients, with draws that were made for them."""
    simulation = ImportanceSampler(setting, at, n_draws)
    return LikelihoodSurface(simulation, at, form_of(kind, setting, at, n_groups))


def _climb(surface: LikelihoodSurface, reach: float) -> tuple[Float, float]:
    """Maximise within a share of the bounds."""
    start = surface.start
    near = [
        (x + reach * (low - x), x + reach * (high - x))
        for x, (low, high) in zip(start, surface.bounds, strict=True)
    ]
    n_users = surface.simulation.setting.tasks.n_users

    def fall(vector: Float) -> tuple[float, Float]:
        value, slope = surface(vector)
        return -value / n_users, -slope / n_users

    found = optimize.minimize(
        fall,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=near,
        options={"maxiter": _STEPS, "maxcor": _MEMORY, "ftol": 1e-9, "gtol": 1e-5},
    )
    return np.asarray(found.x), -float(found.fun) * n_users


# Where a mean starts that has the wrong sign, in standard deviations.
_NEAR_ZERO = 0.1
# Between what the variance of the logarithm of a weight starts.
_FIRST_VARIANCE = (0.05, 1.0)


def refine(
    specification: Specification,
    learned: PriorFit,
    tasks: Responses,
    coordinates: Design,
    *,
    shifts: Float | None,
    max_iter: int,
    callback: Callback | None = None,
) -> PriorFit:
    """Return the prior of the greatest simulated likelihood, from one that is near.

    After an interrupt it is the near one, in what is simulated.
    """
    if learned.interrupted and not specification.logs.any():
        return learned
    likelihood = learned.model.likelihood
    setting = specification.setting(tasks, likelihood, coordinates, shifts)
    specification.refuse_unidentified(tasks, likelihood, coordinates)
    start = _start(setting, learned.model.prior)
    kind, n_groups, n_draws = learned.shape.kind, learned.n_groups, specification.n_draws
    with one_blas_thread():
        found = maximise(
            setting,
            start,
            kind=kind,
            n_groups=n_groups,
            n_draws=n_draws,
            max_iter=0 if learned.interrupted else max_iter,
            callback=callback,
        )
        at = found.coefficients
        surface = surface_of(setting, at, kind, n_groups, n_draws)
        unsure = _covariance_of_mean(surface, setting)
    return replace(
        learned,
        model=replace(learned.model, prior=setting.prior(at)),
        trace=[-value for value in found.trace],
        converged=found.converged,
        interrupted=learned.interrupted or found.interrupted,
        warm_starts=WarmStarts(),
        mean_covariance=unsure,
    )


def _start(setting: SimulationProblem, prior: GaussianPrior) -> Coefficients:
    """Return the coefficients in a prior, their means on the right side of zero.

    Log-normal weights get the mean that they had, and much the same variance.
    """
    at = setting.coefficients(prior)
    deviation = np.sqrt(at.covariance.diagonal())
    signs = setting.signs + setting.logs
    mean = np.where(signs * at.mean < 0, signs * _NEAR_ZERO * deviation, at.mean)
    if not setting.logs.any():
        return replace(at, mean=mean)
    is_log = setting.logs != 0
    size = np.where(is_log, np.maximum(np.abs(mean), _NEAR_ZERO * deviation), 1.0)
    variance = np.clip(np.log1p((deviation / size) ** 2), *_FIRST_VARIANCE)
    factor = np.where(is_log, setting.logs * np.sqrt(variance) / deviation, 1.0)
    mean = np.where(is_log, np.log(size) - 0.5 * variance, mean)
    return replace(at, mean=mean, covariance=at.covariance * np.outer(factor, factor))


def _covariance_of_mean(surface: LikelihoodSurface, setting: SimulationProblem) -> Float:
    """Return the covariance of the means and of the weights that do not vary, given Omega."""
    at = surface.at
    unit = np.concatenate([np.sqrt(at.covariance.diagonal()), np.ones(len(at.fixed))])
    inner = np.linalg.pinv(surface.information(len(unit)), hermitian=True)
    places = np.concatenate([setting.varies, setting.constant])
    covariance = np.zeros((len(places), len(places)))
    covariance[np.ix_(places, places)] = inner * np.outer(unit, unit)
    return covariance
