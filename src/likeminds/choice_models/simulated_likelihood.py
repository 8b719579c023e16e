"""Maximum simulated likelihood, without penalties.

Each round draws weights around users' modes, and maximises the simulated likelihood over theta,
Omega and the fixed weights. New draws at the maximum confirm a share of the gain, which decides
whether the trust region grows or shrinks. All rounds use the same random numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import optimize

from likeminds._util.array_types import Bool, Float, Index
from likeminds._util.map_reduce import one_blas_thread
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
from likeminds.solvers.solver import Callback

# The most rounds of draws, and the gain in log-likelihood below which they end.
_ROUNDS, _GAIN = 50, 0.02
# The first and the least radius of the trust region, as a share of the bounds.
_FIRST_RADIUS, _LAST_RADIUS = 0.5, 0.01
# Factors of the radius if more than the upper, or less than the lower, share is confirmed.
_GROWTH, _SHRINKAGE = 2.0, 0.3
_UPPER, _LOWER = 0.75, 0.25
# The largest moves in a round, of means and entries of Omega (in standard deviations of weights),
# of fixed weights (in units of standardised features), and of log standard deviations.
_REACH, _REACH_FIXED, _LOG_REACH = 2.0, 0.5, 1.0
# Quasi-Newton steps in a round, and the number that the method stores.
_STEPS, _MEMORY = 50, 20
# The step of central differences of gradients.
_STEP = 1e-4
# The start of a mean of the wrong sign, in standard deviations.
_NEAR_ZERO = 0.1
# Bounds of the initial variance of a weight's logarithm.
_FIRST_VARIANCE = (0.05, 1.0)


@dataclass(frozen=True)
class CovarianceParameters:
    """Omega = F F' with F = left E right, near an initial matrix, as a function of a vector.

    Entries of E are numbers of the vector, their exponentials, or zero.
    """

    start: Float  # the vector of the initial matrix
    is_log: Bool  # the numbers whose exponentials E has
    places: tuple[Index, Index]  # rows and columns of the entries in E
    numbers: Index  # the position of each entry in the vector
    left: Float
    right: Float

    @property
    def reach(self) -> Float:
        """The largest move of each number from the start."""
        return np.where(self.is_log, _LOG_REACH, _REACH)

    def _factor(self, vector: Float) -> Float:
        inner = np.zeros((self.left.shape[1], len(self.right)))
        inner[self.places] = np.where(self.is_log, np.exp(vector), vector)[self.numbers]
        return np.asarray(self.left @ inner @ self.right)

    def covariance(self, vector: Float) -> Float:
        """Return the matrix of a vector."""
        factor = self._factor(vector)
        return np.asarray(factor @ factor.T)

    def gradient(self, vector: Float, by_covariance: Float) -> Float:
        """Return the gradient by the vector, given the symmetric gradient by Omega."""
        by_inner = 2.0 * self.left.T @ by_covariance @ self._factor(vector) @ self.right.T
        by_number = np.bincount(self.numbers, by_inner[self.places], len(vector))
        return np.asarray(by_number * np.where(self.is_log, np.exp(vector), 1.0), dtype=np.float64)


@dataclass(frozen=True)
class LikelihoodSurface:
    """The simulated log-likelihood as a function of one vector around some coefficients.

    The vector has the means (in standard deviations), the fixed weights, and the parameters of
    Omega.
    """

    simulation: ImportanceSampler
    at: Coefficients
    omega: CovarianceParameters

    @property
    def start(self) -> Float:
        """The vector of the coefficients themselves."""
        return np.concatenate([np.zeros(len(self._unit) + len(self.at.fixed)), self.omega.start])

    @property
    def bounds(self) -> tuple[Float, Float]:
        """The bounds of the vector; means of weights of known sign keep their sign."""
        n_fixed, size, signs = len(self.at.fixed), len(self._unit), self.simulation.problem.signs
        reach = np.concatenate(
            [np.repeat([_REACH, _REACH_FIXED], [size, n_fixed]), self.omega.reach]
        )
        low, high = self.start - reach, self.start + reach
        zero = -self.at.mean / self._unit
        low[:size] = np.where(signs > 0, np.maximum(low[:size], zero), low[:size])
        high[:size] = np.where(signs < 0, np.minimum(high[:size], zero), high[:size])
        return low, high

    @property
    def _unit(self) -> Float:
        return np.sqrt(self.at.covariance.diagonal())

    def _split(self, vector: Float) -> list[Float]:
        size = len(self._unit)
        return np.split(vector, [size, size + len(self.at.fixed)])

    def coefficients(self, vector: Float) -> Coefficients:
        """Return the coefficients of a vector."""
        mean, fixed, omega = self._split(vector)
        covariance = self.omega.covariance(omega)
        return Coefficients(self.at.mean + mean * self._unit, covariance, self.at.fixed + fixed)

    def __call__(self, vector: Float) -> tuple[float, Float]:
        """Return the log-likelihood, and its gradient."""
        found = self.simulation.at(self.coefficients(vector))
        by_user = (found.first, found.second, found.by_fixed)
        totals = (part.sum(axis=0, keepdims=True) for part in by_user)
        return found.value, self._gradients(vector, *totals, n_users=len(found.by_user))[0]

    def _gradients(
        self, vector: Float, first: Float, second: Float, by_fixed: Float, *, n_users: int = 1
    ) -> Float:
        """Return gradients from moments of users, each row a sum over ``n_users``."""
        precision = np.linalg.inv(self.coefficients(vector).covariance)
        by_covariance = 0.5 * (precision @ second @ precision - n_users * precision)
        omega = self._split(vector)[2]
        by_omega = np.array([self.omega.gradient(omega, one) for one in by_covariance])
        return np.concatenate([first @ precision * self._unit, by_fixed, by_omega], axis=1)

    def scores(self) -> Float:
        """Return each user's gradient at the start, shape (n_users, size of the vector)."""
        found = self.simulation.at(self.at)
        return self._gradients(self.start, found.first, found.second, found.by_fixed)

    def information(self, n_first: int | None = None) -> Float:
        """Return minus the Hessian at the start (of ``n_first`` entries), by finite differences."""
        start = self.start
        steps = _STEP * np.eye(len(start))[:n_first]
        rows = [self(start - step)[1] - self(start + step)[1] for step in steps]
        matrix = np.array(rows)[:, :n_first] / (2.0 * _STEP)
        return 0.5 * (matrix + matrix.T)


def covariance_parameters(
    kind: str, problem: SimulationProblem, at: Coefficients, n_groups: int
) -> CovarianceParameters:
    """Return a parametrisation of Omega.

    "full" is R C C' R'. R R' is the initial matrix, and C is lower triangular with exponentials on
    its diagonal. "scaled" and "diagonal" are D R R' D with exponentials D of the vector, so
    correlations stay (or are zero). "low_rank" is B B' + diag(r^2); weights share one factor of
    their residuals r.
    """
    size = len(at.mean)
    own, unit = np.arange(size), np.eye(size)
    root = np.asarray(np.linalg.cholesky(at.covariance), dtype=np.float64)
    if kind == "full":
        rows, columns = np.tril_indices(size)
        start, numbers = np.zeros(len(rows)), np.arange(len(rows))
        return CovarianceParameters(start, rows == columns, (rows, columns), numbers, root, unit)
    if kind in {"scaled", "diagonal"}:
        right = root if kind == "scaled" else np.diag(np.sqrt(at.covariance.diagonal()))
        is_log = np.ones(size, dtype=np.bool_)
        return CovarianceParameters(np.zeros(size), is_log, (own, own), own, unit, right)
    n_weights = int((problem.varies < problem.n_weights).sum())
    whole = GaussianPrior.of_covariance(at.mean, at.covariance)
    prior = whole.truncated(min(n_groups, n_weights), n_weights)
    n, rank = prior.loadings.size, prior.rank
    # The intercept, if any, has a separate residual.
    groups = np.maximum(own - n_weights + 1, 0)
    start = np.concatenate([prior.loadings.ravel(), np.zeros(int(groups.max()) + 1)])
    return CovarianceParameters(
        start,
        np.arange(len(start)) >= n,
        (np.append(own.repeat(rank), own), np.append(np.tile(np.arange(rank), size), own + rank)),
        np.append(np.arange(n), n + groups),
        np.diag(prior.residual),
        np.eye(size + rank),
    )


def _maximise(
    surface_at: Callable[[Coefficients], LikelihoodSurface],
    start: Coefficients,
    max_iter: int,
    callback: Callback | None,
) -> tuple[LikelihoodSurface, list[float], bool, bool]:
    """Return the surface at the maximum, the value by round, converged, and interrupted."""
    radius, converged, stopped = _FIRST_RADIUS, False, False
    surface = surface_at(start)
    value = surface(surface.start)[0]
    trace = [value]
    try:
        while len(trace) <= min(_ROUNDS, max_iter) and not (converged or stopped):
            vector, expected = _climb(surface, radius)
            converged = expected - value <= _GAIN
            if converged:
                break
            new = surface_at(surface.coefficients(vector))
            new_value = new(new.start)[0]
            confirmed = (new_value - value) / (expected - value)
            if confirmed > _UPPER:
                radius = min(1.0, radius * _GROWTH)
            elif not confirmed > _LOWER:
                radius *= _SHRINKAGE
            if new_value > value:
                surface, value = new, new_value
            trace.append(value)
            converged = radius < _LAST_RADIUS
            if callback is not None:
                stopped = bool(callback(len(trace) - 1, -value, expected - value))
    except KeyboardInterrupt:
        stopped = True
    return surface, trace, converged and not stopped, stopped


def _climb(surface: LikelihoodSurface, radius: float) -> tuple[Float, float]:
    """Maximise within the share ``radius`` of the bounds."""
    start, n_users = surface.start, surface.simulation.problem.responses.n_users
    low, high = (start + radius * (bound - start) for bound in surface.bounds)

    def loss(vector: Float) -> tuple[float, Float]:
        value, gradient = surface(vector)
        return -value / n_users, -gradient / n_users

    found = optimize.minimize(
        loss,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(low, high, strict=True)),
        options={"maxiter": _STEPS, "maxcor": _MEMORY, "ftol": 1e-9, "gtol": 1e-5},
    )
    return np.asarray(found.x), -float(found.fun) * n_users


def refine(
    specification: Specification,
    learned: PriorFit,
    responses: Responses,
    design: Design,
    *,
    shifts: Float | None,
    max_iter: int,
    callback: Callback | None = None,
) -> PriorFit:
    """Return the prior that maximises the simulated likelihood, the best so far if interrupted."""
    if learned.interrupted and not specification.logs.any():
        return learned
    likelihood = learned.model.likelihood
    problem = specification.problem(responses, likelihood, design, shifts)
    specification.refuse_unidentified(responses, likelihood, design)
    kind, n_groups, n_draws = learned.structure.kind, learned.n_groups, specification.n_draws

    def surface_at(at: Coefficients) -> LikelihoodSurface:
        omega = covariance_parameters(kind, problem, at, n_groups)
        return LikelihoodSurface(ImportanceSampler(problem, at, n_draws), at, omega)

    with one_blas_thread():
        start, most = _start(problem, learned.model.prior), 0 if learned.interrupted else max_iter
        surface, trace, converged, stopped = _maximise(surface_at, start, most, callback)
        unsure = _covariance_of_mean(surface)
    return replace(
        learned,
        model=replace(learned.model, prior=problem.prior(surface.at)),
        trace=[-value for value in trace],
        converged=converged,
        interrupted=learned.interrupted or stopped,
        warm_starts=WarmStarts(),
        mean_covariance=unsure,
    )


def _start(problem: SimulationProblem, prior: GaussianPrior) -> Coefficients:
    """Return the coefficients in a prior, with means of known sign.

    Log-normal weights keep their mean and, about, their variance.
    """
    at = problem.coefficients(prior)
    deviation = np.sqrt(at.covariance.diagonal())
    signs = problem.signs + problem.logs
    mean = np.where(signs * at.mean < 0, signs * _NEAR_ZERO * deviation, at.mean)
    if not problem.logs.any():
        return replace(at, mean=mean)
    is_log = problem.logs != 0
    size = np.where(is_log, np.maximum(np.abs(mean), _NEAR_ZERO * deviation), 1.0)
    variance = np.clip(np.log1p((deviation / size) ** 2), *_FIRST_VARIANCE)
    factor = np.where(is_log, problem.logs * np.sqrt(variance) / deviation, 1.0)
    mean = np.where(is_log, np.log(size) - 0.5 * variance, mean)
    return replace(at, mean=mean, covariance=at.covariance * np.outer(factor, factor))


def _covariance_of_mean(surface: LikelihoodSurface) -> Float:
    """Return the covariance of the estimated means and fixed weights, given Omega."""
    at, problem = surface.at, surface.simulation.problem
    unit = np.concatenate([np.sqrt(at.covariance.diagonal()), np.ones(len(at.fixed))])
    inner = np.linalg.pinv(surface.information(len(unit)), hermitian=True)
    places = np.concatenate([problem.varies, problem.constant])
    covariance = np.zeros((len(places), len(places)))
    covariance[np.ix_(places, places)] = inner * np.outer(unit, unit)
    return covariance
