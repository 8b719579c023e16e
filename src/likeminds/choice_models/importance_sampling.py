"""Simulated likelihood of labels: importance sampling around users' modes.

A user's likelihood is the integral of L_i(w) N(w; theta, Omega) over their weights w. It is the
mean of L_i(w) N(w; theta, Omega) / q_i(w) over draws w from a proposal q_i: Student's t around the
mode of the user's posterior, with the covariance of Laplace's approximation. Draws are reused for
nearby theta and Omega, so L_i / q_i is computed once. Fixed weights are not drawn; log L_i is
expanded in them to second order.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter

import numpy as np
from scipy.special import gammaln

from likeminds._util.array_types import Float, Index
from likeminds._util.per_user_arrays import row_dots
from likeminds.mixed_model.extensions.sign_constraints import constrained_weights, find_mode_of_logs
from likeminds.mixed_model.gaussian_prior import GaussianPrior
from likeminds.mixed_model.laplace import find_mode
from likeminds.mixed_model.likelihoods import Likelihood
from likeminds.mixed_model.responses import PaddedRows, Responses, data_of, of_each_user

# Degrees of freedom of the proposal.
_FREEDOM = 8.0
# Draws per dimension needed to match moments, and the number of rescalings.
_EACH, _MATCHES = 4, 4
# The most bytes of scores at a time, and of all draws.
_BYTES_AT_ONCE, _MOST_BYTES = 1 << 24, 1 << 31


@dataclass(frozen=True)
class Coefficients:
    """The distribution of users' weights, N(mean, covariance), and the ``fixed`` weights."""

    mean: Float
    covariance: Float
    fixed: Float


@dataclass(frozen=True)
class SimulatedLikelihood:
    """The simulated log-likelihood by user, its squared Monte-Carlo errors, and its derivatives.

    ``first`` and ``second`` are posterior moments of weights around theta, by user; ``by_fixed``
    is the gradient by the fixed weights.
    """

    by_user: Float
    variance: Float
    first: Float
    second: Float
    by_fixed: Float

    @property
    def value(self) -> float:
        """The log-likelihood of all labels."""
        return float(self.by_user.sum())


@dataclass(frozen=True)
class SimulationProblem:
    """Responses, their likelihood, and the distribution of each weight over users."""

    responses: Responses
    likelihood: Likelihood
    varies: Index  # the q coordinates whose weights vary between users
    constant: Index  # coordinates of fixed weights
    n_weights: int  # the number of weights of features, the first coordinates
    # (q,): 1 or -1 for weights of known sign, else 0. The wrong sign is censored to zero.
    signs: Float
    # (q,): 1 or -1 for log-normal weights of this sign, else 0. Their logarithms are normal.
    logs: Float
    # (n_users, p): differences of users' means from the common mean; see `covariate_effects`.
    shifts: Float | None = None

    def coefficients(self, prior: GaussianPrior) -> Coefficients:
        """Return the distribution of weights in a prior."""
        covariance = prior.covariance[np.ix_(self.varies, self.varies)]
        return Coefficients(prior.mean[self.varies], covariance, prior.mean[self.constant])

    def prior(self, coefficients: Coefficients) -> GaussianPrior:
        """Return the prior with these coefficients; fixed weights have no variance."""
        size = len(self.varies) + len(self.constant)
        inner = GaussianPrior.of_covariance(coefficients.mean, coefficients.covariance)
        mean, residual = np.zeros(size), np.zeros(size)
        mean[self.varies], mean[self.constant] = coefficients.mean, coefficients.fixed
        residual[self.varies] = inner.residual
        loadings = np.zeros((size, inner.rank))
        loadings[self.varies] = inner.loadings
        return GaussianPrior(mean, loadings, residual)


@dataclass(frozen=True)
class _DrawBlock:
    """Draws of a few users."""

    users: Index
    draws: Float  # (b, n_draws, q): weights less the shift of their means
    log_base: Float  # (b, n_draws): log-likelihoods less log-densities of the draws
    # (b, n_draws, f) and (b, n_draws, f, f): gradient and minus the Hessian by fixed weights.
    gradient: Float
    curvature: Float


class ImportanceSampler:
    """Draws of users' weights around the modes of their posteriors under a prior.

    Half of the draws mirror the other half. With ``matched``, draws are scaled to make the integral
    and second moments of a normal posterior exact, so derivatives have little noise. Without it,
    the likelihood is unbiased.
    """

    def __init__(
        self,
        problem: SimulationProblem,
        at: Coefficients,
        n_draws: int,
        *,
        seed: int = 0,
        matched: bool = True,
    ) -> None:
        self.problem = problem
        self.matched = matched
        self.n_draws = 2 * max(2, (n_draws + 1) // 2)
        refuse_many_draws(self.n_draws, problem.responses.n_users, len(problem.varies))
        self._fixed = at.fixed
        self._blocks = list(self._make(at, np.random.default_rng(seed)))

    @property
    def users(self) -> Index:
        """The positions of the simulated users, in the order of the draws."""
        return np.concatenate([block.users for block in self._blocks])

    def at(self, coefficients: Coefficients) -> SimulatedLikelihood:
        """Return the simulated likelihood under a prior, and its derivatives, by user."""
        root = np.linalg.cholesky(coefficients.covariance)
        inverse = np.asarray(np.linalg.inv(root), dtype=np.float64)
        log_scale = -float(np.log(np.diag(root)).sum()) - 0.5 * len(root) * np.log(2.0 * np.pi)
        parts = [self._visit(block, coefficients, inverse, log_scale) for block in self._blocks]
        return SimulatedLikelihood(*map(np.concatenate, zip(*parts, strict=True)))

    def _visit(
        self, block: _DrawBlock, at: Coefficients, inverse: Float, log_scale: float
    ) -> tuple[Float, ...]:
        """Return a block's part of each field of `SimulatedLikelihood`."""
        size = len(inverse)
        deviation = block.draws - at.mean
        inner = deviation.reshape(-1, size) @ inverse.T
        log_ratio = block.log_base + log_scale
        log_ratio -= 0.5 * row_dots(inner, inner).reshape(log_ratio.shape)
        step, by_fixed = at.fixed - self._fixed, block.gradient
        if step.size:
            by_fixed = block.gradient - block.curvature @ step
            log_ratio += 0.5 * ((block.gradient + by_fixed) @ step)
        highest = log_ratio.max(axis=1, keepdims=True)
        ratio = np.exp(log_ratio - highest)
        mean, half = ratio.mean(axis=1), self.n_draws // 2
        # A draw and its mirror image are one observation.
        paired = 0.5 * (ratio[:, :half] + ratio[:, half:])
        variance = paired.var(axis=1) / (half * mean**2)
        share = ratio / (self.n_draws * mean[:, None])
        weighted = share[:, :, None] * deviation
        second = weighted.transpose(0, 2, 1) @ deviation
        gradient = np.einsum("br,brf->bf", share, by_fixed)
        return np.log(mean) + highest[:, 0], variance, weighted.sum(axis=1), second, gradient

    def _make(self, at: Coefficients, rng: np.random.Generator) -> Iterator[_DrawBlock]:
        problem = self.problem
        prior = replace(problem.prior(at), shifts=problem.shifts)
        root = np.asarray(np.linalg.cholesky(at.covariance), dtype=np.float64)
        for data in problem.responses.map(data_of, None):
            user_bytes = 8 * self.n_draws * data.rows.shape[1] * (1 + len(at.fixed))
            most = max(1, _BYTES_AT_ONCE // user_bytes)
            for start in range(0, len(data.users), most):
                some = of_each_user(data, itemgetter(slice(start, start + most)))
                shifts = np.zeros((len(some.users), len(problem.varies)))
                if problem.shifts is not None:
                    shifts = problem.shifts[np.ix_(some.users, problem.varies)]
                draws, log_density = self._draw(some, prior, root, shifts, rng)
                log_labels, *by_fixed = self._labels(some, draws + shifts[:, None], at.fixed)
                yield _DrawBlock(some.users, draws, log_labels - log_density, *by_fixed)

    def _draw(
        self,
        data: PaddedRows,
        prior: GaussianPrior,
        root: Float,
        shifts: Float,
        rng: np.random.Generator,
    ) -> tuple[Float, Float]:
        """Draw weights of a few users from Student's t around the modes of their posteriors."""
        n_users, size, half = len(data.users), len(root), self.n_draws // 2
        mode, precision = self._mode(data, prior, root)
        centre = constrained_weights(mode, self.problem.signs) - shifts
        factor = np.asarray(np.linalg.cholesky(precision), dtype=np.float64)
        normal = rng.standard_normal((n_users, half, size))
        e = normal / np.sqrt(rng.chisquare(_FREEDOM, (n_users, half, 1)) / _FREEDOM)
        e = np.concatenate([e, -e], axis=1)
        log_density = _log_student(e)
        if self.matched:
            e, log_density = _matched(e)
        inverse = np.asarray(np.linalg.inv(factor), dtype=np.float64)
        draws = centre[:, None] + (e @ inverse) @ root.T
        log_volume = np.log(np.einsum("bqq->bq", factor)).sum(axis=1) - np.log(np.diag(root)).sum()
        return draws, log_density + log_volume[:, None]

    def _mode(self, data: PaddedRows, prior: GaussianPrior, root: Float) -> tuple[Float, Float]:
        """Return modes of posteriors, (b, q), and precisions in units of the prior's root."""
        problem = self.problem
        varies = problem.varies
        if problem.logs.any():
            logs = np.zeros(len(prior.mean))
            logs[varies] = problem.logs
            found = find_mode_of_logs(data, prior, problem.likelihood, logs)
            return found.logs[:, varies], found.precision
        mode = find_mode(data, prior, problem.likelihood)
        deviation = mode.system.z(mode.state) @ prior.root.T
        scaled = mode.derivatives.curvature.times_root_back(data.rows[:, :, varies] @ root)
        precision = scaled.transpose(0, 2, 1) @ scaled + np.eye(len(root))
        return (prior.means(data.users) + deviation)[:, varies], precision

    def _labels(self, data: PaddedRows, weights: Float, fixed: Float) -> tuple[Float, Float, Float]:
        """Return the log-likelihoods of labels at all draws, and derivatives by ``fixed``."""
        constant = data.rows[:, :, self.problem.constant]
        rows = data.rows[:, :, self.problem.varies]
        eta = constrained_weights(weights, self.problem.signs, self.problem.logs) @ rows.transpose(
            0, 2, 1
        )
        eta += (constant @ fixed)[:, None]
        n_users, n_draws, n_rows = eta.shape
        data = of_each_user(data, partial(np.repeat, repeats=n_draws, axis=0))
        derivatives = self.problem.likelihood.at(eta.reshape(-1, n_rows), data)
        gradient = derivatives.residuals.reshape(eta.shape) @ constant
        curvature = np.zeros((*gradient.shape, len(fixed)))
        if len(fixed):
            scaled = derivatives.curvature.times_root_back(np.repeat(constant, n_draws, axis=0))
            curvature = (scaled.transpose(0, 2, 1) @ scaled).reshape(curvature.shape)
        return -derivatives.loss.reshape(n_users, n_draws), gradient, curvature


def refuse_many_draws(n_draws: int, n_users: int, n_varying: int) -> None:
    """Raise an error for more draws than fit in memory."""
    needed = 8 * n_draws * n_users * n_varying
    if needed > _MOST_BYTES:
        raise ValueError(
            f"{n_draws:,} draws for each of {n_users:,} users take {needed / (1 << 30):.0f} GiB, "
            f"more than {_MOST_BYTES >> 30} GiB. Lower draws."
        )


def _matched(e: Float) -> tuple[Float, Float]:
    """Scale draws (b, r, q) to the moments of a normal distribution; also return log-densities."""
    size = e.shape[2]
    if e.shape[1] < _EACH * size:  # too few draws to match moments
        return e, _log_student(e)
    for _ in range(_MATCHES):
        share = np.exp(_log_normal(e) - _log_student(e))
        share /= share.sum(axis=1, keepdims=True)
        second = (e * share[:, :, None]).transpose(0, 2, 1) @ e
        e = e @ np.linalg.inv(np.linalg.cholesky(second)).transpose(0, 2, 1)
    log_ratio = _log_normal(e) - _log_student(e)
    return e, _log_student(e) + np.log(np.exp(log_ratio).mean(axis=1, keepdims=True))


def _log_normal(e: Float) -> Float:
    """Return the log-density of the standard normal distribution, shape (...,)."""
    square = np.einsum("...q,...q->...", e, e)
    return np.asarray(-0.5 * square - 0.5 * e.shape[-1] * np.log(2.0 * np.pi))


def _log_student(e: Float) -> Float:
    """Return the log-density of multivariate Student's t, shape (...,)."""
    size = e.shape[-1]
    both = 0.5 * (_FREEDOM + size)
    constant = gammaln(both) - gammaln(0.5 * _FREEDOM) - 0.5 * size * np.log(_FREEDOM * np.pi)
    return np.asarray(constant - both * np.log1p(np.einsum("...q,...q->...", e, e) / _FREEDOM))
