"""The likelihood of labels by simulation: importance sampling around everybody's mode.

A person's likelihood is the integral of L_i(w) N(w; theta, Omega) over their weights w. It is
the mean of L_i(w) N(w; theta, Omega) / q_i(w) over draws w from any distribution q_i; here q_i is
Student's t around the mode of the person's posterior, with the covariance of Laplace's
approximation. So few draws are wasted, tails are covered, and the same draws serve for all
theta and Omega near those they were made for: L_i / q_i is computed once. Weights that are the
same for everybody are no part of the draws: in them, log L_i is expanded to second order around
those that the draws were made for.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter

import numpy as np
from scipy.special import gammaln

from likeminds._util.array_types import Float, Index
from likeminds._util.per_user_arrays import row_dots
from likeminds.mixed_model.extensions.sign_constraints import find_mode_of_logs, weights_of_logs
from likeminds.mixed_model.gaussian_prior import GaussianPrior
from likeminds.mixed_model.laplace import find_mode
from likeminds.mixed_model.likelihoods import Likelihood
from likeminds.mixed_model.responses import PaddedRows, Responses, of_each_user, task_of

# Degrees of freedom of the distribution that weights are drawn from.
_FREEDOM = 8.0
# Draws that it takes for each dimension to match moments, and how often they are scaled.
_EACH, _MATCHES = 4, 4
# Scores of draws that are computed at a time, in bytes.
_BYTES_AT_ONCE = 1 << 24
# Draws of everybody that are kept at most, in bytes.
_MOST_BYTES = 1 << 31


@dataclass(frozen=True)
class Coefficients:
    """The distribution of users' weights: N(mean, covariance), and ``fixed`` ones of all users."""

    mean: Float
    covariance: Float
    fixed: Float


@dataclass(frozen=True)
class SimulatedLikelihood:
    """The simulated log-likelihood by user, its squared Monte-Carlo errors, and its derivatives.

    ``first`` and ``second`` are sums over users of posterior moments of weights around theta,
    ``by_fixed`` is the gradient by the weights that do not vary.
    """

    by_user: Float
    variance: Float
    first: Float
    second: Float
    by_fixed: Float

    @property
    def value(self) -> float:
        """The log-likelihood of everybody's labels."""
        return float(self.by_user.sum())


@dataclass(frozen=True)
class SimulatedMoments:
    """What each user contributes to the gradient of the simulated likelihood."""

    first: Float
    second: Float
    by_fixed: Float


@dataclass(frozen=True)
class SimulationProblem:
    """What is simulated: labels, and which weights vary in which way.

    Attributes
    ----------
    tasks : Responses
        The labels.
    likelihood : Likelihood
        Their likelihood.
    varies : array
        The coordinates whose weights vary.
    constant : array
        Those whose weights are the same for everybody.
    n_weights : int
        How many coordinates, the first ones, are weights of features.
    signs : array of shape (q,)
        1 or -1 where the sign of a varying weight is known, else 0: such a weight is that of
        the normal distribution where it has this sign, and else zero.
    logs : array of shape (q,)
        1 or -1 where a varying weight is log-normal, with this sign, else 0: what is normally
        distributed is its logarithm.
    shifts : array of shape (n_users, p), optional
        Differences of users' means from the common mean: see `covariate_effects`.
    """

    tasks: Responses
    likelihood: Likelihood
    varies: Index
    constant: Index
    n_weights: int
    signs: Float
    logs: Float
    shifts: Float | None = None

    def coefficients(self, prior: GaussianPrior) -> Coefficients:
        """Return the distribution of weights in a prior."""
        covariance = prior.covariance[np.ix_(self.varies, self.varies)]
        return Coefficients(prior.mean[self.varies], covariance, prior.mean[self.constant])

    def prior(self, coefficients: Coefficients) -> GaussianPrior:
        """Return the prior with such coefficients; those that do not vary have no variance."""
        size = len(self.varies) + len(self.constant)
        inner = GaussianPrior.of_covariance(coefficients.mean, coefficients.covariance)
        mean, residual = np.zeros(size), np.zeros(size)
        mean[self.varies], mean[self.constant] = coefficients.mean, coefficients.fixed
        residual[self.varies] = inner.residual
        loadings = np.zeros((size, inner.rank))
        loadings[self.varies] = inner.loadings
        return GaussianPrior(mean, loadings, residual)

    def keep_signs(self, normal: Float) -> Float:
        """Return normal numbers, shape (..., q), with zero for those of the wrong sign."""
        if not self.signs.any():
            return normal
        return np.where(self.signs * normal < 0.0, 0.0, normal)

    def weights(self, normal: Float) -> Float:
        """Return the weights, shape (..., q), that normal numbers stand for."""
        return weights_of_logs(self.keep_signs(normal), self.logs)


@dataclass(frozen=True)
class _DrawBlock:
    """Draws of a few users: weights less the shift of their means, (b, n_draws, q).

    ``log_base`` has log-likelihoods less log-densities of the draws, ``slope`` and ``bend`` their
    gradient and minus their Hessian by the weights that do not vary.
    """

    users: Index
    draws: Float
    log_base: Float
    slope: Float
    bend: Float


class ImportanceSampler:
    """Draws of users' weights around the modes of their posteriors under a prior.

    Half of the draws mirror the others. ``matched`` draws are scaled, so the integral of a normal
    posterior and its second moments have no error, and derivatives little noise even where weights
    hardly vary. Only without it, the likelihood has no bias.
    """

    def __init__(
        self,
        setting: SimulationProblem,
        at: Coefficients,
        n_draws: int,
        *,
        seed: int = 0,
        matched: bool = True,
    ) -> None:
        self.setting = setting
        self.matched = matched
        self.n_draws = 2 * max(2, (n_draws + 1) // 2)
        refuse_many_draws(self.n_draws, setting.tasks.n_users, len(setting.varies))
        self._fixed = at.fixed
        self._blocks = list(self._make(at, np.random.default_rng(seed)))

    @property
    def users(self) -> Index:
        """The positions among all people of those who were simulated, in this order."""
        return np.concatenate([block.users for block in self._blocks])

    def at(self, coefficients: Coefficients) -> SimulatedLikelihood:
        """Return the simulated likelihood under a prior, and its derivatives."""
        parts = [self._total(*visit) for visit in self._visits(coefficients)]
        by_user, variance, first, second, by_fixed = zip(*parts, strict=True)
        return SimulatedLikelihood(
            np.concatenate(by_user),
            np.concatenate(variance),
            np.sum(first, axis=0),
            np.sum(second, axis=0),
            np.sum(by_fixed, axis=0),
        )

    def moments(self, coefficients: Coefficients) -> SimulatedMoments:
        """Return what the gradient is made of user by user, in the order of ``people``."""
        parts = []
        for _, _, share, away, by_fixed in self._visits(coefficients):
            weighted = share[:, :, None] * away
            slope = np.einsum("br,brf->bf", share, by_fixed)
            parts.append((weighted.sum(axis=1), weighted.transpose(0, 2, 1) @ away, slope))
        return SimulatedMoments(*map(np.concatenate, zip(*parts, strict=True)))

    @staticmethod
    def _total(
        by_user: Float, variance: Float, share: Float, away: Float, by_fixed: Float
    ) -> tuple[Float, Float, Float, Float, Float]:
        """Return what a few people contribute to each part of `SimulatedLikelihood`."""
        flat, shares = away.reshape(-1, away.shape[2]), share.ravel()
        weighted = shares[:, None] * flat
        slope = shares @ by_fixed.reshape(len(shares), -1)
        return by_user, variance, weighted.sum(axis=0), weighted.T @ flat, slope

    def _visits(self, at: Coefficients) -> Iterator[tuple[Float, Float, Float, Float, Float]]:
        """Yield log-likelihoods, their variances, shares of draws, draws, slopes by ``fixed``."""
        root = np.linalg.cholesky(at.covariance)
        inverse = np.asarray(np.linalg.inv(root), dtype=np.float64)
        least = -float(np.log(np.diag(root)).sum()) - 0.5 * len(root) * np.log(2.0 * np.pi)
        for block in self._blocks:
            yield self._visit(block, at, inverse, least)

    def _visit(
        self, block: _DrawBlock, at: Coefficients, inverse: Float, least: float
    ) -> tuple[Float, Float, Float, Float, Float]:
        size = len(inverse)
        away = block.draws - at.mean
        inner = away.reshape(-1, size) @ inverse.T
        log_ratio = block.log_base + least
        log_ratio -= 0.5 * row_dots(inner, inner).reshape(log_ratio.shape)
        step, by_fixed = at.fixed - self._fixed, block.slope
        if step.size:
            by_fixed = block.slope - block.bend @ step
            log_ratio += 0.5 * ((block.slope + by_fixed) @ step)
        highest = log_ratio.max(axis=1, keepdims=True)
        ratio = np.exp(log_ratio - highest)
        mean, half = ratio.mean(axis=1), self.n_draws // 2
        # A draw and its mirror image are one observation.
        paired = 0.5 * (ratio[:, :half] + ratio[:, half:])
        variance = paired.var(axis=1) / (half * mean**2)
        by_user = np.log(mean) + highest[:, 0]
        return by_user, variance, ratio / (self.n_draws * mean[:, None]), away, by_fixed

    def _make(self, at: Coefficients, rng: np.random.Generator) -> Iterator[_DrawBlock]:
        setting = self.setting
        prior = replace(setting.prior(at), shifts=setting.shifts)
        root = np.asarray(np.linalg.cholesky(at.covariance), dtype=np.float64)
        for task in setting.tasks.map(task_of, None):
            a_person = 8 * self.n_draws * task.rows.shape[1] * (1 + len(at.fixed))
            most = max(1, _BYTES_AT_ONCE // a_person)
            for start in range(0, len(task.users), most):
                some = of_each_user(task, itemgetter(slice(start, start + most)))
                shifts = np.zeros((len(some.users), len(setting.varies)))
                if setting.shifts is not None:
                    shifts = setting.shifts[np.ix_(some.users, setting.varies)]
                draws, log_density = self._draw(some, prior, root, shifts, rng)
                log_labels, slope, bend = self._labels(some, draws + shifts[:, None], at.fixed)
                yield _DrawBlock(some.users, draws, log_labels - log_density, slope, bend)

    def _draw(
        self,
        task: PaddedRows,
        prior: GaussianPrior,
        root: Float,
        shifts: Float,
        rng: np.random.Generator,
    ) -> tuple[Float, Float]:
        """Draw weights of a few people from Student's t around the modes of their posteriors."""
        n_users, size, half = len(task.users), len(root), self.n_draws // 2
        mode, precision = self._mode(task, prior, root)
        centre = self.setting.keep_signs(mode) - shifts
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

    def _mode(self, task: PaddedRows, prior: GaussianPrior, root: Float) -> tuple[Float, Float]:
        """Return modes of posteriors, (b, q), and precisions in units of the prior's root."""
        setting = self.setting
        varies = setting.varies
        if setting.logs.any():
            logs = np.zeros(len(prior.mean))
            logs[varies] = setting.logs
            found = find_mode_of_logs(task, prior, setting.likelihood, logs)
            return found.logs[:, varies], found.precision
        mode = find_mode(task, prior, setting.likelihood)
        deviation = mode.system.z(mode.state) @ prior.root.T
        scaled = mode.derivatives.curvature.times_root_back(task.rows[:, :, varies] @ root)
        precision = scaled.transpose(0, 2, 1) @ scaled + np.eye(len(root))
        return (prior.means(task.users) + deviation)[:, varies], precision

    def _labels(self, task: PaddedRows, weights: Float, fixed: Float) -> tuple[Float, Float, Float]:
        """Return the log-likelihoods of labels at all draws, and derivatives by ``fixed``."""
        setting = self.setting
        alike = task.rows[:, :, setting.constant]
        eta = setting.weights(weights) @ task.rows[:, :, setting.varies].transpose(0, 2, 1)
        eta += (alike @ fixed)[:, None]
        n_users, n_draws, n_rows = eta.shape
        task = of_each_user(task, partial(np.repeat, repeats=n_draws, axis=0))
        said = setting.likelihood.at(eta.reshape(-1, n_rows), task)
        slope = said.residuals.reshape(eta.shape) @ alike
        bend = np.zeros((*slope.shape, len(fixed)))
        if len(fixed):
            scaled = said.curvature.times_root_back(np.repeat(alike, n_draws, axis=0))
            bend = (scaled.transpose(0, 2, 1) @ scaled).reshape(bend.shape)
        return -said.loss.reshape(n_users, n_draws), slope, bend


def refuse_many_draws(n_draws: int, n_users: int, n_varying: int) -> None:
    """Refuse more draws than this process holds."""
    needed = 8 * n_draws * n_users * n_varying
    if needed > _MOST_BYTES:
        raise ValueError(
            f"{n_draws:,} draws for each of {n_users:,} people take "
            f"{needed / (1 << 30):.0f} GiB: lower draws."
        )


def _matched(e: Float) -> tuple[Float, Float]:
    """Scale draws, shape (b, r, q), to the moments of a normal distribution.

    Returns the draws, and log-densities that make their weighted sum that of a probability.
    """
    size = e.shape[2]
    if e.shape[1] < _EACH * size:  # too few to have such moments
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
    """Return the log-density of Student's t in several dimensions, shape (...,)."""
    size = e.shape[-1]
    both = 0.5 * (_FREEDOM + size)
    constant = gammaln(both) - gammaln(0.5 * _FREEDOM) - 0.5 * size * np.log(_FREEDOM * np.pi)
    return np.asarray(constant - both * np.log1p(np.einsum("...q,...q->...", e, e) / _FREEDOM))
