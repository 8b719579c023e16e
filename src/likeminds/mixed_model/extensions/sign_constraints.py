"""Weights of known sign: truncated normal or log-normal.

Truncated: the prior is a normal distribution of u, and a user's weight is u where its sign is
right, else zero. The posterior mode is that of the normal prior within the bounds, since beyond
them labels say nothing and the prior falls.

Log-normal: a weight with sign s is s exp(l), with l normally distributed, jointly with all other
weights. Everything else in the package treats weights as normal around their means, so prior and
posteriors get the moments of s exp(l), where l has Laplace's approximation around its mode.
"""

from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import numpy as np

from likeminds._util.array_types import Float
from likeminds._util.lazy_imports import LazyModule
from likeminds._util.per_user_arrays import row_dots, times, times_back
from likeminds.mixed_model.gaussian_prior import GaussianPrior
from likeminds.mixed_model.likelihoods import SAFE_EXPONENT, Likelihood, LossDerivatives
from likeminds.mixed_model.numerics import ROUNDING, damped_newton
from likeminds.mixed_model.responses import PaddedRows, of_each_user

optimize: Any = LazyModule("scipy.optimize")


def keep_signs(
    points: Float,
    task: PaddedRows,
    prior: GaussianPrior,
    likelihood: Likelihood,
    signs: Float,
    *,
    logs: Float | None = None,
) -> Float:
    """Return a block's modes with weights of the known signs."""
    logs = np.zeros_like(signs) if logs is None else logs
    wrong = np.flatnonzero((points * signs < 0.0).any(axis=1))
    if not len(wrong):
        return points
    points, means = points.copy(), prior.means(task.users)
    for person in wrong:
        own = of_each_user(task, itemgetter(slice(person, person + 1)))
        mean = means[person]
        points[person] = _bounded(points[person], mean, own, prior, (likelihood, signs, logs))
    return points


def _bounded(
    point: Float,
    mean: Float,
    task: PaddedRows,
    prior: GaussianPrior,
    parts: tuple[Likelihood, Float, Float],
) -> Float:
    """Return one user's mode within the bounds."""
    likelihood, signs, logs = parts
    varies = prior.residual > 0
    unit = np.sqrt(prior.covariance.diagonal()[varies])
    precision = np.linalg.inv(prior.covariance[np.ix_(varies, varies)])
    rows, rest = task.rows[0][:, varies], task.rows[0][:, ~varies] @ mean[~varies]

    def loss(scaled: Float) -> tuple[float, Float]:
        own = scaled * unit
        away = own - mean[varies]
        eta = rows @ weights_of_logs(own, logs[varies]) + rest
        labels = likelihood.at(eta[None], task)
        value = float(labels.loss[0]) + 0.5 * float(away @ precision @ away)
        pulled = slopes_of_logs(own, logs[varies]) * (rows.T @ labels.residuals[0])
        return value, (precision @ away - pulled) * unit

    known = signs[varies]
    # What a weight is at least, in standard deviations: zero, and on the right side of it for sure.
    bounds = [(1e-9 if s > 0 else None, -1e-9 if s < 0 else None) for s in known]
    start = np.where(known * point[varies] < 0.0, known * 1e-9, point[varies] / unit)
    found = optimize.minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
    bounded = mean.copy()
    bounded[varies] = found.x * unit
    return bounded


@dataclass(frozen=True)
class LogNormalPrior:
    """What users are drawn from where some weights are log-normal."""

    signs: Float  # (p,): 1 or -1 for coordinates whose weights are log-normal, else 0
    prior: GaussianPrior  # the normal distribution of logarithms and of all other weights
    # The same, with the uncertainty of its own parameters.
    inflated: GaussianPrior = field(metadata={"stored": "wider"})

    def with_coordinate(self, mean: float, deviation: float) -> "LogNormalPrior":
        """Return the same with one more coordinate, which is normal."""
        return LogNormalPrior(
            np.append(self.signs, 0.0),
            self.prior.with_coordinate(mean, deviation),
            self.inflated.with_coordinate(mean, deviation),
        )


def matched(prior: GaussianPrior, signs: Float) -> GaussianPrior:
    """Return the normal distribution of weights with the moments that weights have."""
    mean, covariance = moments_of_weights(prior.mean, prior.covariance, signs)
    return GaussianPrior.of_covariance(mean, covariance, prior.beyond)


def weights_of_logs(logs: Float, signs: Float) -> Float:
    """Return weights, shape (..., p): s exp(l) where there is a sign s.

    Examples
    --------
    >>> weights_of_logs(np.array([0.0, 0.0, 2.0]), np.array([1.0, -1.0, 0.0]))
    array([ 1., -1.,  2.])
    """
    if not signs.any():
        return logs
    return np.where(signs != 0, signs * np.exp(np.minimum(logs, SAFE_EXPONENT)), logs)


def moments_of_weights(mean: Float, covariance: Float, signs: Float) -> tuple[Float, Float]:
    """Return mean and covariance of weights, given those of logarithms and normal weights.

    Examples
    --------
    >>> mean, covariance = moments_of_weights(np.zeros(1), np.eye(1), np.array([-1.0]))
    >>> mean.round(3), covariance.round(3)
    (array([-1.649]), array([[4.671]]))
    """
    is_log = signs != 0
    variance = np.einsum("...pp->...p", covariance)
    found = np.where(is_log, weights_of_logs(mean + 0.5 * variance * is_log, signs), mean)
    factor = np.where(is_log, found, 1.0)
    both = is_log[:, None] & is_log
    inner = np.where(both, np.expm1(np.where(both, covariance, 0.0)), covariance)
    return found, factor[..., :, None] * inner * factor[..., None, :]


def logs_of_moments(mean: Float, covariance: Float, signs: Float) -> tuple[Float, Float]:
    """Return what `moments_of_weights` was given: it undoes that."""
    is_log = signs != 0
    factor = np.where(is_log, mean, 1.0)
    inner = covariance / (factor[..., :, None] * factor[..., None, :])
    both = is_log[:, None] & is_log
    inner = np.where(both, np.log1p(np.maximum(np.where(both, inner, 0.0), ROUNDING - 1.0)), inner)
    size = np.log(np.where(is_log, signs * mean, 1.0))
    return np.where(is_log, size - 0.5 * np.einsum("...pp->...p", inner), mean), inner


@dataclass(frozen=True)
class LogNormalMode:
    """The modes of some users' posteriors."""

    logs: Float  # (b, p): logarithms of weights, or weights
    derivatives: LossDerivatives  # the likelihood there
    # (b, q, q): the curvature of minus the log-posterior, by the coordinates that vary, in units
    # of the Cholesky factor of their prior covariance.
    precision: Float


def find_mode_of_logs(
    task: PaddedRows, prior: GaussianPrior, likelihood: Likelihood, signs: Float
) -> LogNormalMode:
    """Find the modes of a block by Newton's method, each user with steps of their own length.

    With u = m + R z, z ~ N(0, I), and weights w(u), the loss of labels at X w(u) plus |z|^2 / 2
    is not convex: directions that curve the wrong way are taken to curve a little.
    """
    means = prior.means(task.users)
    varies = np.flatnonzero(prior.residual > 0)
    root = np.zeros((len(prior.mean), len(varies)))
    root[varies] = np.linalg.cholesky(prior.covariance[np.ix_(varies, varies)])

    def at(z: Float) -> tuple[tuple[Float, Float, LossDerivatives], Float]:
        logs = means + z @ root.T
        derivatives = likelihood.at(times(task.rows, weights_of_logs(logs, signs)), task)
        return (z, logs, derivatives), derivatives.loss + 0.5 * row_dots(z, z)

    def step_of(found: tuple[Float, Float, LossDerivatives]) -> Float:
        z, logs, derivatives = found
        curvature = curvature_of_logs(task, logs, derivatives, root, signs)
        slope = (
            slopes_of_logs(logs, signs) * times_back(task.rows, derivatives.residuals) @ root - z
        )
        return np.asarray(np.linalg.solve(curvature, slope[:, :, None])[:, :, 0])

    _, logs, derivatives = damped_newton(np.zeros((len(means), len(varies))), at, step_of)
    return LogNormalMode(logs, derivatives, curvature_of_logs(task, logs, derivatives, root, signs))


def curvature_of_logs(
    task: PaddedRows, logs: Float, derivatives: LossDerivatives, root: Float, signs: Float
) -> Float:
    """Return the curvature of minus the log-posterior by z, shape (b, q, q), kept off zero."""
    steep = slopes_of_logs(logs, signs)
    scaled = derivatives.curvature.times_root_back((task.rows * steep[:, None]) @ root)
    precision = scaled.transpose(0, 2, 1) @ scaled + np.eye(root.shape[1])
    bent = np.where(signs != 0, steep * times_back(task.rows, derivatives.residuals), 0.0)
    precision -= root.T @ (bent[:, :, None] * root)
    values, vectors = np.linalg.eigh(precision)
    # The least curvature, in units of the prior's: where labels make the posterior wider than that.
    if values.min() >= 0.25:
        return np.asarray(precision)
    lifted = vectors * np.maximum(values, 0.25)[:, None]
    return np.asarray(lifted @ vectors.transpose(0, 2, 1))


def slopes_of_logs(logs: Float, signs: Float) -> Float:
    """Return by how much weights move with their logarithms: by themselves; others by one."""
    return np.where(signs != 0, weights_of_logs(logs, signs), 1.0)


def known_from(covariance: Float, prior: GaussianPrior, most: int) -> Float:
    """Return matrices K of few rows, (b, m, p), with prior less K'K near some covariances.

    What labels make wider than the prior is as wide as the prior.
    """
    back = prior.inverse_root
    told = np.eye(len(back)) - back @ covariance @ back.T
    values, vectors = np.linalg.eigh(0.5 * (told + told.transpose(0, 2, 1)))
    best = vectors[:, :, ::-1][:, :, :most].transpose(0, 2, 1)
    size = np.sqrt(np.clip(values[:, ::-1][:, :most], 0.0, 1.0))
    return np.asarray(size[:, :, None] * best @ prior.root.T)
