"""The choice modeller's table: part-worths of a crowd with standard errors, and correlations."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from likeminds._support.arrays import Float, IdArray
from likeminds.choice_models.estimates import Estimates
from likeminds.choice_models.likelihood import LogLikelihood
from likeminds.choice_models.tables import Table

_FORMS = {
    "full": "any covariance",
    "diagonal": "independent weights",
    "low_rank": "a few directions and a residual",
}


@dataclass(frozen=True, eq=False, repr=False)
class Summary(Table):
    """Means and standard deviations of part-worths over people, in the features' own units.

    Attributes
    ----------
    title, rows, notes
        As in any table: for each feature, mean and deviation with their standard errors, and the
        share of people who like more of it.
    estimates : Estimates
        The numbers as arrays.
    log_likelihood : LogLikelihood
        Of the labels, simulated.
    correlations : list of dict
        The correlations between people of part-worths that vary, one row for each feature.
    correlation_errors : list of dict
        Their standard errors, where there are any.
    """

    estimates: Estimates = field(kw_only=True)
    log_likelihood: LogLikelihood = field(kw_only=True)
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
            "people": len(likelihood.by_person),
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
    names: IdArray,
    *,
    kind: str,
    is_maximum: bool,
) -> Summary:
    """Return the table of estimates; ``kind`` is the form of Omega."""
    worth, labels = estimates.part_worths, [str(name) for name in names]
    mean_error, deviation_error = _known(estimates.mean_error), _known(estimates.deviation_error)
    rows = []
    for k, name in enumerate(labels):
        varies = bool(worth.covariance[k, k] > 0)
        rows.append(
            {
                "feature": name,
                "mean": float(worth.mean[k]),
                "error": mean_error[k],
                "deviation": float(worth.deviation[k]) if varies else None,
                "deviation error": deviation_error[k] if varies else None,
                "like more": float(worth.liking[k]),
            }
        )
    varying = np.flatnonzero(worth.covariance.diagonal() > 0)
    return Summary(
        "Part-worths, in the features' own units",
        rows,
        _notes(estimates, likelihood, labels, kind=kind, is_maximum=is_maximum),
        estimates=estimates,
        log_likelihood=likelihood,
        correlations=_square(worth.correlation, varying, labels) if kind != "diagonal" else [],
        correlation_errors=[]
        if estimates.correlation_error is None
        else _square(estimates.correlation_error, varying, labels),
    )


def _notes(
    estimates: Estimates,
    likelihood: LogLikelihood,
    names: list[str],
    *,
    kind: str,
    is_maximum: bool,
) -> tuple[str, ...]:
    how = "maximum simulated likelihood" if is_maximum else "a penalised Laplace approximation"
    notes = [
        f"Log-likelihood {likelihood!r}.",
        f"Covariance of weights: {_FORMS[kind]}; estimated by {how}.",
    ]
    if estimates.given == "everything":
        notes.append(
            "No standard errors: the likelihood is not concave at this estimate. Fit with "
            "draws=500 for its maximum."
        )
    elif estimates.given:
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
