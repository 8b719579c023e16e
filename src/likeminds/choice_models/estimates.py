"""Means, standard deviations and correlations of part-worths, and how well they are known."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from likeminds._util.array_types import Float, Index
from likeminds.choice_models.covariance_parameters import (
    CovarianceParameters,
    FullCovariance,
    ScaledCovariance,
)
from likeminds.choice_models.importance_sampling import (
    Coefficients,
    ImportanceSampler,
    SimulationProblem,
)
from likeminds.choice_models.simulated_likelihood import LikelihoodSurface
from likeminds.mixed_model.design import Design
from likeminds.mixed_model.extensions.sign_constraints import moments_of_weights, weights_of_logs
from likeminds.mixed_model.gaussian_prior import GaussianPrior

# Scores give standard errors where there are so many users for each number of the model; a full
# Omega has any where there are no more numbers than this.
_PEOPLE_EACH, _MOST_NUMBERS = 2, 120
# A matrix of information is invertible if its least eigenvalue is at least this share of the
# largest, in units of its diagonal.
_INVERTIBLE = 1e-7
# Half the distance over which numbers of the table are differenced.
_APART = 1e-5
# A number depends on an entry of the model if its slope is more than this share of the steepest.
_DEPENDS = 1e-6


@dataclass(frozen=True)
class PartWorths:
    """Part-worths in the features' own units.

    Attributes
    ----------
    mean, deviation : arrays of shape (d,)
        Over people; zero deviation where everybody has the same.
    centre, covariance : arrays of shape (d,) and (d, d)
        Of the normal distribution of weights before signs are kept, or of their logarithms.
    signs : array of shape (d,)
        1 or -1 where the sign is known, else 0.
    logs : array of shape (d,)
        1 or -1 where the weight is log-normal, with this sign, else 0.
    """

    mean: Float
    deviation: Float
    centre: Float
    covariance: Float
    signs: Float
    logs: Float

    @classmethod
    def of(
        cls, coefficients: Coefficients, setting: SimulationProblem, coordinates: Design
    ) -> "PartWorths":
        """Return the part-worths of coefficients, which are in coordinates."""
        n_weights = coordinates.n_weights
        prior = setting.prior(coefficients)
        turn = coordinates.weights(np.eye(n_weights)).T
        signs, logs = np.zeros(len(turn)), np.zeros(len(turn))
        if setting.signs.any() or setting.logs.any():  # coordinates are features in units then
            signs, logs = (_of_weights(known, setting) for known in (setting.signs, setting.logs))
            turn[logs != 0] = np.eye(n_weights)[logs != 0]
        centre = turn @ prior.mean[:n_weights]
        centre -= np.where(logs != 0, np.log(coordinates.scale), 0.0)
        covariance = turn @ prior.covariance[:n_weights, :n_weights] @ turn.T
        mean, of_weights = moments_of_weights(centre, covariance, logs)
        mean, deviation = keep_signs(mean, np.sqrt(of_weights.diagonal()), signs)
        return cls(mean, deviation, centre, covariance, signs, logs)

    @property
    def liking(self) -> Float:
        """The share of people whose part-worth is positive."""
        if self.logs.any():
            normal = replace(self, logs=np.zeros_like(self.logs))
            return np.where(self.logs != 0, self.logs > 0, normal.liking)
        deviation = np.sqrt(self.covariance.diagonal())
        surely = np.where(self.centre > 0, np.inf, -np.inf)
        scaled = np.divide(self.centre, deviation, out=surely, where=deviation > 0)
        return np.where(self.signs < 0, 0.0, ndtr(scaled))

    def drawn(self, n_users: int, rng: np.random.Generator) -> Float:
        """Return the part-worths of people drawn at random, shape (n_users, d)."""
        values, vectors = np.linalg.eigh(self.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        drawn = self.centre + rng.standard_normal((n_users, len(values))) @ root.T
        return weights_of_logs(np.where(self.signs * drawn < 0.0, 0.0, drawn), self.logs)

    @property
    def correlation(self) -> Float:
        """Correlations between people; those of part-worths that do not vary are not defined."""
        _, covariance = moments_of_weights(self.centre, self.covariance, self.logs)
        deviation = np.sqrt(covariance.diagonal())
        both = np.outer(deviation, deviation)
        known = both > 0
        return np.where(known, covariance / np.where(known, both, 1.0), np.nan)

    @property
    def spread(self) -> Float:
        """The standard deviations of the normal distribution: of logarithms, where there are."""
        return np.sqrt(self.covariance.diagonal())


def _of_weights(known: Float, setting: SimulationProblem) -> Float:
    """Return what is known of varying coordinates for all weights of features."""
    whole = np.zeros(len(setting.varies) + len(setting.constant))
    whole[setting.varies] = known
    return whole[: setting.n_weights]


def keep_signs(mean: Float, deviation: Float, signs: Float) -> tuple[Float, Float]:
    """Return means and deviations of normal numbers of which the wrong sign counts as zero.

    Examples
    --------
    >>> mean, deviation = keep_signs(np.array([0.0]), np.array([1.0]), np.array([1.0]))
    >>> mean.round(4), deviation.round(4)
    (array([0.3989]), array([0.5838]))
    """
    towards, scale = mean * signs, np.where(deviation > 0, deviation, 1.0)
    at = towards / scale
    density = np.exp(-0.5 * at**2) / np.sqrt(2.0 * np.pi)
    first = towards * ndtr(at) + scale * density
    second = (towards**2 + scale**2) * ndtr(at) + towards * scale * density
    kept = (signs != 0) & (deviation > 0)
    spread = np.sqrt(np.maximum(second - first**2, 0.0))
    return np.where(kept, signs * first, mean), np.where(kept, spread, deviation)


@dataclass(frozen=True)
class Estimates:
    """Part-worths with their standard errors, from derivatives of the simulated likelihood.

    Attributes
    ----------
    part_worths : PartWorths
        The numbers.
    mean_covariance : array of shape (d, d)
        The covariance of the estimated means.
    deviation_error : array of shape (d,)
        Standard errors of the standard deviations.
    robust_mean_error, robust_deviation_error : arrays of shape (d,)
        Sandwich estimates, clustered by user; with the correlations taken for granted where
        ``by`` is "scores".
    centre_error, spread_error : arrays of shape (d,)
        Standard errors of mean and deviation of the normal distribution: of logarithms, where
        weights are log-normal.
    correlation_error : array of shape (d, d), or None
        Standard errors of the correlations; None where these were held fixed.
    given : {"", "correlations", "covariance", "everything"}
        What the errors take for granted, where the likelihood is not concave in it or people
        are too few: with "covariance", deviations have no errors; with "everything", nothing has.
    by : {"hessian", "scores"}
        What errors come from: the Hessian, or, where that of a full covariance is not definite,
        the outer product of users' scores (Berndt, Hall, Hall and Hausman).
    """

    part_worths: PartWorths
    mean_covariance: Float
    deviation_error: Float
    robust_mean_error: Float
    robust_deviation_error: Float
    centre_error: Float
    spread_error: Float
    correlation_error: Float | None
    given: str
    by: str

    @property
    def mean_error(self) -> Float:
        """Standard errors of the means."""
        return np.sqrt(self.mean_covariance.diagonal())


def estimate(
    setting: SimulationProblem,
    prior: GaussianPrior,
    coordinates: Design,
    *,
    kind: str,
    n_draws: int,
) -> Estimates:
    """Return part-worths with standard errors, at a prior that is near the maximum."""
    at = setting.coefficients(prior)
    simulation = ImportanceSampler(setting, at, n_draws)
    n_means, n_users = len(at.mean) + len(at.fixed), setting.tasks.n_users
    usual, by, given = None, "hessian", ""
    for form in _forms(kind, at, n_users):
        surface = LikelihoodSurface(simulation, at, form)
        slopes = _slopes(surface, coordinates)
        information, scores = surface.information(), surface.scores()
        whole = isinstance(form, FullCovariance)
        if not whole or _is_definite(information):
            break
        # At a penalised estimate the gradient is not zero: scores less their mean.
        outer = n_users * np.cov(scores.T, ddof=0)
        if len(outer) * _PEOPLE_EACH <= n_users and _is_definite(outer):
            usual, by = slopes.T @ np.linalg.inv(outer) @ slopes, "scores"
    kept = _definite_part(information, n_means)
    if coordinates.basis is not None and len(kept) < len(information):
        kept = kept[:n_means]  # each weight depends on several deviations
    inverse = _inverse(information, kept)
    # Numbers that depend on an entry without information have no error.
    lost = np.abs(np.delete(slopes, kept, axis=0))
    unknown = (lost > _DEPENDS * np.abs(slopes).max(axis=0)).any(axis=0)
    robust = np.sqrt(np.diag(slopes.T @ (inverse @ scores.T @ scores @ inverse) @ slopes))
    robust[unknown] = np.nan
    if usual is None:
        usual = slopes.T @ inverse @ slopes
        usual[unknown], usual[:, unknown] = np.nan, np.nan
        if len(kept) == n_means:
            given = "everything" if np.isnan(inverse).any() else "covariance"
        elif not whole and kind != "diagonal":
            given = "correlations"
    d = len(coordinates.scale)
    error = np.sqrt(np.diag(usual))
    deviation, centre, spread, correlation = np.split(error[d:], [d, 2 * d, 3 * d])
    return Estimates(
        part_worths=PartWorths.of(at, setting, coordinates),
        mean_covariance=usual[:d, :d],
        deviation_error=deviation,
        robust_mean_error=robust[:d],
        robust_deviation_error=robust[d : 2 * d],
        centre_error=centre,
        spread_error=spread,
        correlation_error=correlation.reshape(d, d) if whole or by == "scores" else None,
        given=given,
        by=by,
    )


def _numbers(surface: LikelihoodSurface, vector: Float, coordinates: Design) -> Float:
    """Return what a vector of the surface says: means, deviations, ..., correlations."""
    worth = PartWorths.of(surface.coefficients(vector), surface.simulation.setting, coordinates)
    parts = (worth.mean, worth.deviation, worth.centre, worth.spread)
    return np.concatenate([*parts, worth.correlation.ravel()])


def _inverse(information: Float, kept: Index) -> Float:
    """Return the inverse of the entries that are kept, zero elsewhere; NaN if it has none."""
    known, entries = information[np.ix_(kept, kept)], np.ix_(kept, kept)
    inverse = np.zeros(information.shape)
    inverse[entries] = np.linalg.inv(known) if _is_definite(known) else np.nan
    return inverse


def _definite_part(information: Float, n_first: int) -> Index:
    """Return the entries whose information is definite: the first ones, and as many as can be."""
    kept = np.arange(len(information))
    while len(kept) > n_first:
        part = information[np.ix_(kept, kept)]
        if _is_definite(part):
            break
        unit = np.sqrt(np.maximum(part.diagonal(), np.finfo(np.float64).tiny))
        vector = np.linalg.eigh(part / np.outer(unit, unit))[1][:, 0]
        worst = np.where(part.diagonal() > 0, np.abs(vector), np.inf)[n_first:]
        kept = np.delete(kept, n_first + int(worst.argmax()))
    return kept


def _is_definite(matrix: Float) -> bool:
    """Tell whether a symmetric matrix is positive definite, whatever the units of its rows."""
    if not (matrix.diagonal() > 0).all():
        return False
    unit = np.sqrt(matrix.diagonal())
    values = np.linalg.eigvalsh(matrix / np.outer(unit, unit))
    return bool(values[0] > _INVERTIBLE * values[-1])


def _forms(kind: str, at: Coefficients, n_users: int) -> Iterator[CovarianceParameters]:
    """Yield the forms in which the likelihood may be concave, the most general first."""
    size = len(at.mean)
    n_numbers = size + len(at.fixed) + size * (size + 1) // 2
    if kind == "full" and n_numbers <= min(_MOST_NUMBERS, n_users):
        yield FullCovariance(np.asarray(np.linalg.cholesky(at.covariance), dtype=np.float64))
    yield ScaledCovariance(at.covariance)


def _slopes(surface: LikelihoodSurface, coordinates: Design) -> Float:
    """Return the derivatives of the table's numbers by the surface's vector, by differences."""
    start = surface.start
    ahead, behind = (
        np.array([_numbers(surface, start + step, coordinates) for step in steps])
        for steps in (_APART * np.eye(len(start)), -_APART * np.eye(len(start)))
    )
    return np.asarray((ahead - behind) / (2.0 * _APART))
