"""Part-worths with standard errors, simulated log-likelihoods, and statistics of fit."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import log

import numpy as np
from scipy.special import ndtr

from likeminds._util.array_types import Float, IdArray, Index
from likeminds._util.checks import listing
from likeminds._util.result_tables import Row, Rows, Table
from likeminds._util.text_format import counted
from likeminds.choice_models.estimates import Estimates, SimulatedModel, estimate
from likeminds.choice_models.importance_sampling import ImportanceSampler
from likeminds.choice_models.simulated_likelihood import covariance_parameters
from likeminds.choice_models.specification import unidentified, unidentified_sentence
from likeminds.mixed_model.likelihoods import ChoiceLikelihood
from likeminds.mixed_model.responses import data_of

_STRUCTURES = {
    "full": "any covariance",
    "diagonal": "independent weights",
    "low_rank": "a few directions and a residual",
}


@dataclass(frozen=True)
class FitStatistics:
    """Statistics to compare models of the same choices.

    Examples
    --------
    >>> found = FitStatistics(-80.0, -100.0, 90, 10, 4)
    >>> round(found.aic, 1), round(found.bic, 1), round(found.mcfadden_r2, 2)
    (168.0, 178.0, 0.2)
    """

    log_likelihood: float
    null_log_likelihood: float  # with all weights zero: equal shares of available alternatives
    n_choices: int
    n_users: int
    n_parameters: int
    are_choices: bool = True  # not labels of yes and no

    @property
    def aic(self) -> float:
        """Akaike's criterion, 2 k - 2 log L."""
        return 2.0 * self.n_parameters - 2.0 * self.log_likelihood

    @property
    def bic(self) -> float:
        """Schwarz's criterion, k log(number of choices) - 2 log L."""
        return self.n_parameters * log(self.n_choices) - 2.0 * self.log_likelihood

    @property
    def mcfadden_r2(self) -> float:
        """McFadden's R2, 1 - log L / log L of equal shares."""
        return 1.0 - self.log_likelihood / self.null_log_likelihood

    def to_dict(self) -> Row:
        """Return the statistics as plain numbers, for JSON."""
        return {
            "choices" if self.are_choices else "labels": self.n_choices,
            "users": self.n_users,
            "parameters": self.n_parameters,
            "aic": self.aic,
            "bic": self.bic,
            "mcfadden_r2": self.mcfadden_r2,
            "null_log_likelihood": self.null_log_likelihood,
        }

    def __str__(self) -> str:
        labels = counted(self.n_choices, "choice" if self.are_choices else "label")
        users = counted(self.n_users, "user")
        return (
            f"{labels} by {users}, {counted(self.n_parameters, 'parameter')}: AIC {self.aic:.1f}, "
            f"BIC {self.bic:.1f}, McFadden's R2 {self.mcfadden_r2:.3f} (equal shares: "
            f"log-likelihood {self.null_log_likelihood:.1f})."
        )


def fit_statistics(model: SimulatedModel, log_likelihood: float) -> FitStatistics:
    """Return the statistics of fit of a model."""
    problem, at = model.problem, model.at
    null, n_choices = 0.0, 0
    for data in problem.responses.map(data_of, None):
        null -= float(problem.likelihood.at(np.zeros(data.weight.shape), data).loss.sum())
        n_choices += int(np.count_nonzero(data.weight[:, :: data.set_size]))
    omega = covariance_parameters(model.kind, problem, at, model.n_groups)
    rank = model.n_groups if model.kind == "low_rank" else 0
    # Rotations of the directions do not change Omega, so they are not parameters.
    n_free = len(at.mean) + len(at.fixed) + len(omega.start) - rank * (rank - 1) // 2
    n_users = problem.responses.n_users
    are_choices = isinstance(problem.likelihood, ChoiceLikelihood)
    return FitStatistics(log_likelihood, null, n_choices, n_users, n_free, are_choices)


@dataclass(frozen=True)
class LogLikelihood:
    """A simulated log-likelihood.

    Attributes
    ----------
    value : float
        The sum over users of the log-probability of their labels, with weights integrated out.
    error : float
        The Monte-Carlo standard error of the value.
    by_user : array of shape (n_users,)
        Each user's log-likelihood, in the order of ``users``.
    users : array of shape (n_users,)
        The ids of users with informative labels.
    draws : int
        The number of draws per user.

    Examples
    --------
    >>> LogLikelihood(-12.0, 0.25, np.array([-5.0, -7.0]), np.array(["ann", "bob"]), 100)
    -12.00 ± 0.25 (2 people, 100 draws each)
    """

    value: float
    error: float
    by_user: Float
    users: IdArray
    draws: int

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        draws = f"{len(self.by_user):,} people, {self.draws:,} draws each"
        return f"{self.value:.2f} ± {self.error:.2f} ({draws})"


def simulate_likelihood(model: SimulatedModel, n_draws: int, seed: int = 0) -> LogLikelihood:
    """Simulate the log-likelihood of labels."""
    simulation = ImportanceSampler(model.problem, model.at, n_draws, seed=seed, matched=False)
    found, order = simulation.at(model.at), np.argsort(simulation.users, kind="stable")
    return LogLikelihood(
        found.value,
        float(np.sqrt(found.variance.sum())),
        found.by_user[order],
        model.users[simulation.users[order]],
        simulation.n_draws,
    )


@dataclass(frozen=True, eq=False, repr=False)
class Summary(Table):
    """Means and standard deviations of part-worths over users, in the features' own units.

    Attributes
    ----------
    title, rows, notes
        As in `Table`. Each feature has mean and standard deviation (sd), with standard and robust
        errors. z and p test the mean; "like more" is the share of positive part-worths.
    estimates : Estimates
        The estimates as arrays.
    log_likelihood : LogLikelihood
        The simulated log-likelihood of the labels.
    fit : FitStatistics
        AIC, BIC, McFadden's R2, and the numbers of choices, users and parameters.
    correlations, correlation_errors : lists of dict
        The correlations of part-worths that vary, with a row per feature, and their standard
        errors, if available.
    """

    estimates: Estimates = field(kw_only=True)
    log_likelihood: LogLikelihood = field(kw_only=True)
    fit: FitStatistics = field(kw_only=True)
    correlations: list[Row] = field(kw_only=True)
    correlation_errors: list[Row] = field(kw_only=True)

    def to_dict(self) -> Row:
        """Return everything as plain values, for JSON."""
        likelihood = self.log_likelihood
        return super().to_dict() | {
            "correlations": self.correlations,
            "correlation_errors": self.correlation_errors,
            "log_likelihood": likelihood.value,
            "log_likelihood_error": likelihood.error,
            **self.fit.to_dict(),
        }

    def __str__(self) -> str:
        more = f"\n\n{self.correlated()}" if self.correlations else ""
        return super().__str__() + more

    __repr__ = __str__

    def _html_tables(self) -> Sequence[Rows]:
        return [self.rows, self.correlations]

    def correlated(self) -> Table:
        """Return the table of correlations."""
        return Table("Correlations between people", self.correlations, frames=self.frames)


def summarise(model: SimulatedModel, n_draws: int, *, is_maximum: bool) -> Summary:
    """Return the table of estimates."""
    likelihood = simulate_likelihood(model, n_draws)
    fit, estimates = fit_statistics(model, likelihood.value), estimate(model, n_draws)
    worth, labels = estimates.part_worths, [str(name) for name in model.feature_names]
    with np.errstate(divide="ignore", invalid="ignore"):
        z = worth.mean / estimates.mean_error
    varies = worth.spread > 0
    columns = {
        "mean": worth.mean,
        "error": estimates.mean_error,
        "robust error": estimates.robust_mean_error,
        "z": z,
        "p": 2.0 * ndtr(-np.abs(z)),
        "sd": np.where(varies, worth.deviation, np.nan),
        "sd error": np.where(varies, estimates.deviation_error, np.nan),
        "sd robust error": np.where(varies, estimates.robust_deviation_error, np.nan),
        "like more": worth.share_positive,
    }
    rows: list[Row] = [
        {"feature": name}
        | {column: _finite_or_none(values[k]) for column, values in columns.items()}
        for k, name in enumerate(labels)
    ]
    notes = [f"Log-likelihood {likelihood!r}.", str(fit)]
    notes += _notes(estimates, labels, kind=model.kind, is_maximum=is_maximum)
    problem = model.problem
    unknown = model.feature_names[unidentified(problem.responses, problem.likelihood, model.design)]
    if len(unknown):
        notes.append(unidentified_sentence(unknown))
    is_flat = np.isnan(estimates.deviation_error) & varies
    if is_flat.any() and is_flat.sum() < varies.sum():
        notes.append(
            f"No standard errors of the deviations of {listing(model.feature_names[is_flat])}, "
            "because the likelihood is not concave in them. Most often, they are near zero."
        )
    correlation, errors = worth.correlation, estimates.correlation_error
    varying = np.flatnonzero(varies)
    return Summary(
        "Part-worths, in the features' own units",
        rows,
        tuple(notes),
        frames=model.frames,
        estimates=estimates,
        log_likelihood=likelihood,
        fit=fit,
        correlations=[] if model.kind == "diagonal" else _square(correlation, varying, labels),
        correlation_errors=[] if errors is None else _square(errors, varying, labels),
    )


def _notes(estimates: Estimates, names: list[str], *, kind: str, is_maximum: bool) -> list[str]:
    how = "maximum simulated likelihood" if is_maximum else "a penalised Laplace approximation"
    notes = [f"Covariance of weights: {_STRUCTURES[kind]}; estimated by {how}."]
    if estimates.given == "everything":
        notes.append(
            "No standard errors, because the likelihood is not concave at this estimate. Fit with "
            "draws=500 for its maximum."
        )
    elif estimates.by == "scores":
        notes.append(
            "Standard errors: inverse of the outer product of users' scores (BHHH), because the "
            "Hessian of the simulated log-likelihood is not definite here. Robust: "
            "sandwich estimate, clustered by user, conditional on the correlations of weights."
        )
    else:
        notes.append(
            "Standard errors: inverse Hessian of the simulated log-likelihood, without penalties. "
            "Robust: sandwich estimate, clustered by user."
        )
    if estimates.given not in {"", "everything"}:
        notes.append(f"Standard errors are conditional on the {estimates.given} of weights.")
    if estimates.part_worths.signs.any():
        notes.append(
            "If a sign is known, mean and deviation are those of weights with the wrong sign "
            "censored to zero."
        )
    worth = estimates.part_worths
    for k in np.flatnonzero(worth.logs):
        mean = _with_error(worth.centre[k], estimates.centre_error[k])
        deviation = _with_error(worth.spread[k], estimates.spread_error[k])
        notes.append(
            f"{names[k]} is log-normal: the logarithm of its size has mean {mean} and deviation "
            f"{deviation}."
        )
    return notes


def _with_error(number: float, error: float) -> str:
    return f"{number:.3f} ({error:.3f})" if np.isfinite(error) else f"{number:.3f}"


def _square(matrix: Float, varying: Index, names: list[str]) -> list[Row]:
    """Return the rows of a symmetric matrix, of the features that vary."""
    return [
        {"feature": names[i]} | {names[j]: float(matrix[i, j]) for j in varying} for i in varying
    ]


def _finite_or_none(number: float) -> float | None:
    return float(number) if np.isfinite(number) else None
