"""Weights of known sign: censored normal or log-normal.

Censored: the prior is a normal distribution of u, and a user's weight is u if its sign is right,
else zero. The posterior mode is that of the normal prior within the bounds, since the likelihood is
constant beyond them and the prior falls.

Log-normal: a weight with sign s is s exp(l), with l normally distributed, jointly with all other
weights. The rest of the package treats weights as normal, so prior and posteriors get the moments
of s exp(l). Laplace's method approximates l around its mode.
"""

from dataclasses import dataclass, field
from operator import itemgetter

import numpy as np
from scipy import optimize

from likeminds._util.array_types import Float
from likeminds._util.per_user_arrays import damped_newton, row_dots, times, times_back
from likeminds.mixed_model.gaussian_prior import ROUNDING, GaussianPrior
from likeminds.mixed_model.likelihoods import SAFE_EXPONENT, Likelihood, LossDerivatives
from likeminds.mixed_model.responses import PaddedRows, of_each_user


def bound_modes(
    points: Float,
    data: PaddedRows,
    prior: GaussianPrior,
    likelihood: Likelihood,
    signs: Float,
    *,
    logs: Float | None = None,
) -> Float:
    """Return a block's modes under the constraint that weights have the known signs."""
    logs = np.zeros_like(signs) if logs is None else logs
    points, means = points.copy(), prior.means(data.users)
    for user in np.flatnonzero((points * signs < 0.0).any(axis=1)):
        own = of_each_user(data, itemgetter(slice(user, user + 1)))
        points[user] = _bounded(points[user], means[user], own, prior, (likelihood, signs, logs))
    return points


def _bounded(
    point: Float,
    mean: Float,
    data: PaddedRows,
    prior: GaussianPrior,
    parts: tuple[Likelihood, Float, Float],
) -> Float:
    """Return one user's mode within the bounds."""
    likelihood, signs, logs = parts
    varies = prior.residual > 0
    unit = np.sqrt(prior.covariance.diagonal()[varies])
    precision = np.linalg.inv(prior.covariance[np.ix_(varies, varies)])
    rows, rest = data.rows[0][:, varies], data.rows[0][:, ~varies] @ mean[~varies]

    def loss(scaled: Float) -> tuple[float, Float]:
        own = scaled * unit
        deviation = own - mean[varies]
        eta = rows @ weights_of_logs(own, logs[varies]) + rest
        derivatives = likelihood.at(eta[None], data)
        value = float(derivatives.loss[0]) + 0.5 * float(deviation @ precision @ deviation)
        gradient = slopes_of_logs(own, logs[varies]) * (rows.T @ derivatives.residuals[0])
        return value, (precision @ deviation - gradient) * unit

    own_signs = signs[varies]
    # The least size of a weight, in standard deviations: nearly zero, with the right sign.
    bounds = [(1e-9 if s > 0 else None, -1e-9 if s < 0 else None) for s in own_signs]
    start = np.where(own_signs * point[varies] < 0.0, own_signs * 1e-9, point[varies] / unit)
    found = optimize.minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
    bounded = mean.copy()
    bounded[varies] = found.x * unit
    return bounded


@dataclass(frozen=True)
class LogNormalPrior:
    """The distribution of users' weights if some are log-normal."""

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


def moment_matched(prior: GaussianPrior, signs: Float) -> GaussianPrior:
    """Return the normal distribution with the moments of the weights."""
    mean, covariance = moments_of_weights(prior.mean, prior.covariance, signs)
    return GaussianPrior.of_covariance(mean, covariance, prior.beyond)


def weights_of_logs(logs: Float, signs: Float) -> Float:
    """Return weights, shape (..., p): s exp(l) for coordinates with a sign s.

    Examples
    --------
    >>> weights_of_logs(np.array([0.0, 0.0, 2.0]), np.array([1.0, -1.0, 0.0]))
    array([ 1., -1.,  2.])
    """
    if not signs.any():
        return logs
    return np.where(signs != 0, signs * np.exp(np.minimum(logs, SAFE_EXPONENT)), logs)


def constrained_weights(normal: Float, signs: Float | None, logs: Float | None = None) -> Float:
    """Return weights, (..., p): set wrong signs to zero, and exponentiate logarithms."""
    if signs is not None and signs.any():
        normal = np.where(signs * normal < 0.0, 0.0, normal)
    return normal if logs is None else weights_of_logs(normal, logs)


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
    """Return the inverse of `moments_of_weights`."""
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
    data: PaddedRows, prior: GaussianPrior, likelihood: Likelihood, signs: Float
) -> LogNormalMode:
    """Find the modes of a block by damped Newton steps.

    With u = m + R z, z ~ N(0, I), and weights w(u), the loss of labels at X w(u) plus |z|^2 / 2
    is not convex: negative curvatures are replaced by small positive ones.
    """
    means = prior.means(data.users)
    varies = np.flatnonzero(prior.residual > 0)
    root = np.zeros((len(prior.mean), len(varies)))
    root[varies] = np.linalg.cholesky(prior.covariance[np.ix_(varies, varies)])

    def at(z: Float) -> tuple[tuple[Float, Float, LossDerivatives], Float]:
        logs = means + z @ root.T
        derivatives = likelihood.at(times(data.rows, weights_of_logs(logs, signs)), data)
        return (z, logs, derivatives), derivatives.loss + 0.5 * row_dots(z, z)

    def step_of(found: tuple[Float, Float, LossDerivatives]) -> Float:
        z, logs, derivatives = found
        curvature = curvature_of_logs(data, logs, derivatives, root, signs)
        slope = (
            slopes_of_logs(logs, signs) * times_back(data.rows, derivatives.residuals) @ root - z
        )
        return np.asarray(np.linalg.solve(curvature, slope[:, :, None])[:, :, 0])

    _, logs, derivatives = damped_newton(np.zeros((len(means), len(varies))), at, step_of)
    return LogNormalMode(logs, derivatives, curvature_of_logs(data, logs, derivatives, root, signs))


def curvature_of_logs(
    data: PaddedRows, logs: Float, derivatives: LossDerivatives, root: Float, signs: Float
) -> Float:
    """Return the curvature of minus the log-posterior by z, shape (b, q, q), made positive."""
    slopes = slopes_of_logs(logs, signs)
    scaled = derivatives.curvature.times_root_back((data.rows * slopes[:, None]) @ root)
    precision = scaled.transpose(0, 2, 1) @ scaled + np.eye(root.shape[1])
    second = np.where(signs != 0, slopes * times_back(data.rows, derivatives.residuals), 0.0)
    precision -= root.T @ (second[:, :, None] * root)
    values, vectors = np.linalg.eigh(precision)
    # The least curvature, in units of the prior's.
    if values.min() >= 0.25:
        return np.asarray(precision)
    floored = vectors * np.maximum(values, 0.25)[:, None]
    return np.asarray(floored @ vectors.transpose(0, 2, 1))


def slopes_of_logs(logs: Float, signs: Float) -> Float:
    """Return the derivatives of weights by their logarithms, and 1 for normal weights."""
    return np.where(signs != 0, weights_of_logs(logs, signs), 1.0)


def variance_reductions(covariance: Float, prior: GaussianPrior, rank: int) -> Float:
    """Return matrices K of few rows, (b, rank, p), so Omega - K'K is near the covariances.

    Variances above the prior's are replaced by the prior's.
    """
    inverse = prior.inverse_root
    reduction = np.eye(len(inverse)) - inverse @ covariance @ inverse.T
    values, vectors = np.linalg.eigh(0.5 * (reduction + reduction.transpose(0, 2, 1)))
    leading = vectors[:, :, ::-1][:, :, :rank].transpose(0, 2, 1)
    size = np.sqrt(np.clip(values[:, ::-1][:, :rank], 0.0, 1.0))
    return np.asarray(size[:, :, None] * leading @ prior.root.T)
