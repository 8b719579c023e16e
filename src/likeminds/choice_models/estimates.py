"""Means, standard deviations and correlations of part-worths, with standard errors."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from likeminds._util.array_types import Float, IdArray, Index
from likeminds._util.per_user_arrays import symmetric_root
from likeminds._util.result_tables import Frames
from likeminds.choice_models.importance_sampling import (
    Coefficients,
    ImportanceSampler,
    SimulationProblem,
)
from likeminds.choice_models.simulated_likelihood import (
    LikelihoodSurface,
    covariance_parameters,
)
from likeminds.mixed_model.design import Design
from likeminds.mixed_model.extensions.sign_constraints import (
    constrained_weights,
    moments_of_weights,
)

# Standard errors from scores need this many users per parameter; those of a full Omega, at most
# this many parameters.
_USERS_EACH, _MOST_PARAMETERS = 2, 120
# An information matrix is invertible if its least eigenvalue is at least this share of the largest,
# in units of its diagonal.
_INVERTIBLE = 1e-7
# The step of central differences of statistics.
_STEP = 1e-5
# A statistic depends on a parameter if its derivative is more than this share of the largest.
_DEPENDS = 1e-6


@dataclass(frozen=True)
class PartWorths:
    """Part-worths in the features' own units, with their distribution over users."""

    # (d,): zero deviation for fixed weights.
    mean: Float
    deviation: Float
    # (d,) and (d, d): of the normal distribution, before censoring, or of logarithms.
    centre: Float
    covariance: Float
    # (d,): 1 or -1 for weights of known sign and log-normal weights respectively, else 0.
    signs: Float
    logs: Float

    @classmethod
    def of(
        cls, coefficients: Coefficients, problem: SimulationProblem, design: Design
    ) -> "PartWorths":
        """Return the part-worths, given coefficients in design coordinates."""
        n_weights = design.n_weights
        prior = problem.prior(coefficients)
        turn = design.weights(np.eye(n_weights)).T
        signs, logs = np.zeros((2, len(turn)))
        if problem.signs.any() or problem.logs.any():  # design coordinates are scaled features then
            known = np.zeros((2, design.size))
            known[:, problem.varies] = problem.signs, problem.logs
            signs, logs = known[:, :n_weights]
            turn[logs != 0] = np.eye(n_weights)[logs != 0]
        centre = turn @ prior.mean[:n_weights]
        centre -= np.where(logs != 0, np.log(design.scale), 0.0)
        covariance = turn @ prior.covariance[:n_weights, :n_weights] @ turn.T
        mean, of_weights = moments_of_weights(centre, covariance, logs)
        mean, deviation = censored_moments(mean, np.sqrt(of_weights.diagonal()), signs)
        return cls(mean, deviation, centre, covariance, signs, logs)

    @property
    def share_positive(self) -> Float:
        """The share of users whose part-worth is positive."""
        certain = np.where(self.centre > 0, np.inf, -np.inf)
        scaled = np.divide(self.centre, self.spread, out=certain, where=self.spread > 0)
        normal = np.where(self.signs < 0, 0.0, ndtr(scaled))
        return np.where(self.logs != 0, self.logs > 0, normal)

    def drawn(self, n_users: int, rng: np.random.Generator) -> Float:
        """Draw part-worths of random users, shape (n_users, d)."""
        normal = rng.standard_normal((n_users, len(self.centre)))
        drawn = self.centre + normal @ symmetric_root(self.covariance).T
        return constrained_weights(drawn, self.signs, self.logs)

    @property
    def correlation(self) -> Float:
        """Correlations over users; NaN for fixed weights."""
        _, covariance = moments_of_weights(self.centre, self.covariance, self.logs)
        deviation = np.sqrt(covariance.diagonal())
        both = np.outer(deviation, deviation)
        missing = np.full_like(both, np.nan)
        return np.asarray(np.divide(covariance, both, out=missing, where=both > 0))

    @property
    def spread(self) -> Float:
        """Standard deviations of the normal distribution (of logarithms for log-normal weights)."""
        return np.sqrt(self.covariance.diagonal())


def censored_moments(mean: Float, deviation: Float, signs: Float) -> tuple[Float, Float]:
    """Return means and deviations of normal numbers with the wrong sign censored to zero.

    Examples
    --------
    >>> mean, deviation = censored_moments(np.array([0.0]), np.array([1.0]), np.array([1.0]))
    >>> mean.round(4), deviation.round(4)
    (array([0.3989]), array([0.5838]))
    """
    towards, scale = mean * signs, np.where(deviation > 0, deviation, 1.0)
    at = towards / scale
    density = np.exp(-0.5 * at**2) / np.sqrt(2.0 * np.pi)
    first = towards * ndtr(at) + scale * density
    second = (towards**2 + scale**2) * ndtr(at) + towards * scale * density
    is_censored = (signs != 0) & (deviation > 0)
    spread = np.sqrt(np.maximum(second - first**2, 0.0))
    return np.where(is_censored, signs * first, mean), np.where(is_censored, spread, deviation)


@dataclass(frozen=True)
class SimulatedModel:
    """A model with a simulated likelihood: its labels, coefficients and their design."""

    problem: SimulationProblem
    at: Coefficients  # near the maximum
    design: Design
    kind: str  # the structure of Omega
    n_groups: int
    feature_names: IdArray
    users: IdArray  # the ids of the users in the problem
    frames: Frames


@dataclass(frozen=True)
class Estimates:
    """Part-worths with standard errors, from derivatives of the simulated likelihood."""

    part_worths: PartWorths
    mean_covariance: Float  # (d, d): of the estimated means
    deviation_error: Float  # (d,): of the standard deviations
    # (d,): sandwich estimates, clustered by user; given the correlations if ``by`` is "scores".
    robust_mean_error: Float
    robust_deviation_error: Float
    # (d,): for mean and deviation of the normal distribution (of logarithms if log-normal).
    centre_error: Float
    spread_error: Float
    correlation_error: Float | None  # (d, d); None if the correlations were held fixed
    # Parameters held fixed, if the likelihood is not concave in them or users are too few: "",
    # "correlations", "covariance" (deviations have no errors) or "everything".
    given: str
    # Source of the standard errors: "hessian" or, if that is not definite for a full covariance,
    # "scores": outer products of users' scores (Berndt, Hall, Hall and Hausman).
    by: str

    @property
    def mean_error(self) -> Float:
        """Standard errors of the means."""
        return np.sqrt(self.mean_covariance.diagonal())


def estimate(model: SimulatedModel, n_draws: int) -> Estimates:
    """Return part-worths with standard errors."""
    problem, at, design, kind = model.problem, model.at, model.design, model.kind
    simulation = ImportanceSampler(problem, at, n_draws)
    n_means, n_users = len(at.mean) + len(at.fixed), problem.responses.n_users
    usual, by, given = None, "hessian", ""
    n_parameters = n_means + len(at.mean) * (len(at.mean) + 1) // 2
    has_full = kind == "full" and n_parameters <= min(_MOST_PARAMETERS, n_users)
    for is_full in (True, False) if has_full else (False,):
        omega = covariance_parameters("full" if is_full else "scaled", problem, at, 0)
        surface = LikelihoodSurface(simulation, at, omega)
        slopes = _slopes(surface, design)
        information, scores = surface.information(), surface.scores()
        if not is_full or _is_definite(information):
            break
        # At a penalised estimate the gradient is not zero, so subtract the mean of scores.
        outer = n_users * np.cov(scores.T, ddof=0)
        if len(outer) * _USERS_EACH <= n_users and _is_definite(outer):
            usual, by = slopes.T @ np.linalg.inv(outer) @ slopes, "scores"
    identified = _definite_part(information, n_means)
    if design.basis is not None and len(identified) < len(information):
        identified = identified[:n_means]  # each weight depends on several deviations
    inverse = _inverse(information, identified)
    # Statistics that depend on an unidentified parameter have no error.
    lost = np.abs(np.delete(slopes, identified, axis=0))
    unknown = (lost > _DEPENDS * np.abs(slopes).max(axis=0)).any(axis=0)
    robust = np.sqrt(np.diag(slopes.T @ (inverse @ scores.T @ scores @ inverse) @ slopes))
    robust[unknown] = np.nan
    if usual is None:
        usual = slopes.T @ inverse @ slopes
        usual[unknown], usual[:, unknown] = np.nan, np.nan
        if len(identified) == n_means:
            given = "everything" if np.isnan(inverse).any() else "covariance"
        elif not is_full and kind != "diagonal":
            given = "correlations"
    d = len(design.scale)
    error = np.sqrt(np.diag(usual))
    deviation, centre, spread, correlation = np.split(error[d:], [d, 2 * d, 3 * d])
    return Estimates(
        part_worths=PartWorths.of(at, problem, design),
        mean_covariance=usual[:d, :d],
        deviation_error=deviation,
        robust_mean_error=robust[:d],
        robust_deviation_error=robust[d : 2 * d],
        centre_error=centre,
        spread_error=spread,
        correlation_error=correlation.reshape(d, d) if is_full or by == "scores" else None,
        given=given,
        by=by,
    )


def _inverse(information: Float, identified: Index) -> Float:
    """Return the inverse of the identified block, zero elsewhere; NaN if not invertible."""
    entries = np.ix_(identified, identified)
    is_definite, inverse = _is_definite(information[entries]), np.zeros(information.shape)
    inverse[entries] = np.linalg.inv(information[entries]) if is_definite else np.nan
    return inverse


def _definite_part(information: Float, n_first: int) -> Index:
    """Return the first entries, and as many others as keep the information definite."""
    identified = np.arange(len(information))
    while len(identified) > n_first:
        part = information[np.ix_(identified, identified)]
        if _is_definite(part):
            break
        unit = np.sqrt(np.maximum(part.diagonal(), np.finfo(np.float64).tiny))
        vector = np.linalg.eigh(part / np.outer(unit, unit))[1][:, 0]
        worst = np.where(part.diagonal() > 0, np.abs(vector), np.inf)[n_first:]
        identified = np.delete(identified, n_first + int(worst.argmax()))
    return identified


def _is_definite(matrix: Float) -> bool:
    """Return whether a symmetric matrix is positive definite, whatever the units of its rows."""
    if not (matrix.diagonal() > 0).all():
        return False
    unit = np.sqrt(matrix.diagonal())
    values = np.linalg.eigvalsh(matrix / np.outer(unit, unit))
    return bool(values[0] > _INVERTIBLE * values[-1])


def _slopes(surface: LikelihoodSurface, design: Design) -> Float:
    """Return the derivatives of means, deviations, ..., correlations, by finite differences."""

    def statistics(vector: Float) -> Float:
        worth = PartWorths.of(surface.coefficients(vector), surface.simulation.problem, design)
        parts = (worth.mean, worth.deviation, worth.centre, worth.spread)
        return np.concatenate([*parts, worth.correlation.ravel()])

    start, steps = surface.start, _STEP * np.eye(len(surface.start))
    moved = [statistics(start + step) - statistics(start - step) for step in steps]
    return np.array(moved) / (2.0 * _STEP)
