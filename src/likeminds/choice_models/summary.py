"""Tables of part-worths with standard errors, simulated log-likelihoods, statistics of fit."""

from dataclasses import dataclass, field
from math import log
from typing import Any

import numpy as np
from scipy.special import ndtr

from likeminds._util.array_types import Bool, Float, IdArray
from likeminds._util.checks import listing
from likeminds._util.text_format import counted
from likeminds.choice_models.estimates import Estimates
from likeminds.choice_models.importance_sampling import ImportanceSampler, SimulationProblem
from likeminds.choice_models.simulated_likelihood import form_of
from likeminds.choice_models.text_tables import Table
from likeminds.mixed_model.gaussian_prior import GaussianPrior
from likeminds.mixed_model.likelihoods import ChoiceLikelihood
from likeminds.mixed_model.responses import task_of

_FORMS = {
    "full": "any covariance",
    "diagonal": "independent weights",
    "low_rank": "a few directions and a residual",
}


@dataclass(frozen=True)
class FitStatistics:
    """Numbers by which models of the same choices are compared.

    Attributes
    ----------
    log_likelihood : float
        Of the choices.
    null_log_likelihood : float
        With all weights zero: equal shares of the available alternatives.
    n_choices, n_users, n_parameters : int
        How many choices (or labels), users, and free numbers of the model.
    are_choices : bool
        Whether they are choices, not labels of yes and no.

    Examples
    --------
    >>> found = FitStatistics(-80.0, -100.0, 90, 10, 4)
    >>> round(found.aic, 1), round(found.bic, 1), round(found.mcfadden_r2, 2)
    (168.0, 178.0, 0.2)
    """

    log_likelihood: float
    null_log_likelihood: float
    n_choices: int
    n_users: int
    n_parameters: int
    are_choices: bool = True

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

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, for JSON."""
        return {
            "choices" if self.are_choices else "labels": self.n_choices,
            "people": self.n_users,
            "parameters": self.n_parameters,
            "aic": self.aic,
            "bic": self.bic,
            "mcfadden_r2": self.mcfadden_r2,
            "null_log_likelihood": self.null_log_likelihood,
        }

    def __str__(self) -> str:
        said = counted(self.n_choices, "choice" if self.are_choices else "label")
        users = counted(self.n_users, "user")
        return (
            f"{said} by {users}, {counted(self.n_parameters, 'parameter')}: AIC {self.aic:.1f}, "
            f"BIC {self.bic:.1f}, McFadden's R2 {self.mcfadden_r2:.3f} (equal shares: "
            f"log-likelihood {self.null_log_likelihood:.1f})."
        )


def fit_statistics(
    setting: SimulationProblem,
    prior: GaussianPrior,
    log_likelihood: float,
    *,
    kind: str,
    n_groups: int,
) -> FitStatistics:
    """Count choices and parameters; ``kind`` is the form of Omega."""
    null, n_choices = 0.0, 0
    for task in setting.tasks.map(task_of, None):
        null -= float(setting.likelihood.at(np.zeros(task.weight.shape), task).loss.sum())
        n_choices += int(np.count_nonzero(task.weight[:, :: task.set_size]))
    at = setting.coefficients(prior)
    form = form_of(kind, setting, at, n_groups)
    rank = n_groups if kind == "low_rank" else 0
    # Directions may be turned among each other without a change of Omega.
    n_free = len(form.start) - rank * (rank - 1) // 2
    return FitStatistics(
        log_likelihood,
        null,
        n_choices,
        setting.tasks.n_users,
        len(at.mean) + len(at.fixed) + n_free,
        isinstance(setting.likelihood, ChoiceLikelihood),
    )


@dataclass(frozen=True)
class LogLikelihood:
    """A simulated log-likelihood.

    Attributes
    ----------
    value : float
        The sum over people of the logarithm of the probability of all their labels, their
        weights integrated out.
    error : float
        The Monte-Carlo standard error of the value.
    by_user : array of shape (n_users,)
        Each person's part of it, in the order of ``people``.
    people : array of shape (n_users,)
        Who they are: those whose labels say something.
    draws : int
        How many draws each person had.

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
        users = f"{len(self.by_user):,} people, {self.draws:,} draws each"
        return f"{self.value:.2f} ± {self.error:.2f} ({users})"


def simulate_likelihood(
    setting: SimulationProblem, prior: GaussianPrior, n_draws: int, users: IdArray, seed: int = 0
) -> LogLikelihood:
    """Simulate the log-likelihood of a setting's labels under a prior."""
    at = setting.coefficients(prior)
    simulation = ImportanceSampler(setting, at, n_draws, seed=seed, matched=False)
    found, order = simulation.at(at), np.argsort(simulation.users, kind="stable")
    return LogLikelihood(
        found.value,
        float(np.sqrt(found.variance.sum())),
        found.by_user[order],
        users[simulation.users[order]],
        simulation.n_draws,
    )


@dataclass(frozen=True, eq=False, repr=False)
class Summary(Table):
    """Means and standard deviations of part-worths over people, in the features' own units.

    Attributes
    ----------
    title, rows, notes
        As in any table: for each feature, mean and standard deviation (sd) with standard errors
        and robust ones, z and p of the mean, and the share of people who like more of it.
    estimates : Estimates
        The numbers as arrays.
    log_likelihood : LogLikelihood
        Of the labels, simulated.
    fit : FitStatistics
        AIC, BIC, McFadden's R2, and the numbers of choices, users and parameters.
    correlations : list of dict
        The correlations between people of part-worths that vary, one row for each feature.
    correlation_errors : list of dict
        Their standard errors, where there are any.
    """

    estimates: Estimates = field(kw_only=True)
    log_likelihood: LogLikelihood = field(kw_only=True)
    fit: FitStatistics = field(kw_only=True)
    correlations: list[dict[str, Any]] = field(kw_only=True)
    correlation_errors: list[dict[str, Any]] = field(kw_only=True)

    def to_dict(self) -> dict[str, Any]:
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
        parts = [super().__str__()]
        if self.correlations:
            parts.append(str(self.correlated()))
        return "\n\n".join(parts)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        more = self.correlated()._repr_html_() if self.correlations else ""
        return super()._repr_html_() + more

    def correlated(self) -> Table:
        """Return the table of correlations."""
        return Table("Correlations between people", self.correlations)


def summarise(
    estimates: Estimates,
    likelihood: LogLikelihood,
    fit: FitStatistics,
    names: IdArray,
    *,
    kind: str,
    is_maximum: bool,
    unidentified: Bool,
) -> Summary:
    """Return the table of estimates; ``kind`` is the form of Omega."""
    worth, labels = estimates.part_worths, [str(name) for name in names]
    with np.errstate(divide="ignore", invalid="ignore"):
        z = worth.mean / estimates.mean_error
    varies = worth.covariance.diagonal() > 0
    columns = {
        "mean": worth.mean,
        "error": estimates.mean_error,
        "robust error": estimates.robust_mean_error,
        "z": z,
        "p": 2.0 * ndtr(-np.abs(z)),
        "sd": np.where(varies, worth.deviation, np.nan),
        "sd error": np.where(varies, estimates.deviation_error, np.nan),
        "sd robust error": np.where(varies, estimates.robust_deviation_error, np.nan),
        "like more": worth.liking,
    }
    known = {column: _known(numbers) for column, numbers in columns.items()}
    rows = [
        {"feature": name} | {column: numbers[k] for column, numbers in known.items()}
        for k, name in enumerate(labels)
    ]
    varying = np.flatnonzero(worth.covariance.diagonal() > 0)
    return Summary(
        "Part-worths, in the features' own units",
        rows,
        (
            f"Log-likelihood {likelihood!r}.",
            str(fit),
            *_notes(estimates, labels, kind=kind, is_maximum=is_maximum),
            *_unknown(labels, unidentified),
            *_flat(estimates, labels),
        ),
        estimates=estimates,
        log_likelihood=likelihood,
        fit=fit,
        correlations=_square(worth.correlation, varying, labels) if kind != "diagonal" else [],
        correlation_errors=[]
        if estimates.correlation_error is None
        else _square(estimates.correlation_error, varying, labels),
    )


def _unknown(names: list[str], unidentified: Bool) -> list[str]:
    which = [names[k] for k in np.flatnonzero(unidentified)]
    if not which:
        return []
    return [
        f"The labels do not identify the weights of {listing(which)}: these features are "
        "constant, or follow from each other, among items shown together. Leave out one of each "
        "such set."
    ]


def _flat(estimates: Estimates, names: list[str]) -> list[str]:
    error, varies = estimates.deviation_error, estimates.part_worths.spread > 0
    which = [names[k] for k in np.flatnonzero(np.isnan(error) & varies)]
    if not which or len(which) == varies.sum():
        return []
    return [
        f"No standard errors of the deviations of {listing(which)}: the likelihood is not concave "
        "in them, mostly because they are near zero."
    ]


def _notes(
    estimates: Estimates, names: list[str], *, kind: str, is_maximum: bool
) -> tuple[str, ...]:
    how = "maximum simulated likelihood" if is_maximum else "a penalised Laplace approximation"
    notes = [f"Covariance of weights: {_FORMS[kind]}; estimated by {how}."]
    if estimates.given == "everything":
        notes.append(
            "No standard errors: the likelihood is not concave at this estimate. Fit with "
            "draws=500 for its maximum."
        )
    elif estimates.by == "scores":
        notes.append(
            "Standard errors: inverse of the outer product of users' scores (BHHH), as the "
            "Hessian of the simulated log-likelihood is not definite at this estimate. Robust: "
            "sandwich estimate, clustered by user, which takes the correlations of weights for "
            "granted."
        )
    else:
        notes.append(
            "Standard errors: inverse Hessian of the simulated log-likelihood, without penalties. "
            "Robust: sandwich estimate, clustered by user."
        )
    if estimates.given not in {"", "everything"}:
        notes.append(f"Standard errors take the {estimates.given} of weights for granted.")
    if estimates.part_worths.signs.any():
        notes.append(
            "Where a sign is known, mean and deviation are those of weights of which the wrong "
            "sign counts as zero."
        )
    worth = estimates.part_worths
    for k in np.flatnonzero(worth.logs):
        mean = _with_error(worth.centre[k], estimates.centre_error[k])
        deviation = _with_error(worth.spread[k], estimates.spread_error[k])
        notes.append(
            f"{names[k]} is log-normal: the logarithm of its size has mean {mean} and deviation "
            f"{deviation}."
        )
    return tuple(notes)


def _with_error(number: float, error: float) -> str:
    return f"{number:.3f} ({error:.3f})" if np.isfinite(error) else f"{number:.3f}"


def _square(
    matrix: Float, varying: "np.ndarray[Any, Any]", names: list[str]
) -> list[dict[str, Any]]:
    """Return the rows of a symmetric matrix, of the features that vary."""
    return [
        {"feature": names[i]} | {names[j]: float(matrix[i, j]) for j in varying} for i in varying
    ]


def _known(numbers: Float) -> list[float | None]:
    return [float(number) if np.isfinite(number) else None for number in numbers]
