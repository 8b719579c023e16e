"""How well a model of choices fits: AIC, BIC, McFadden's R2."""

from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np

from likeminds._util.text_format import counted
from likeminds.choice_models.importance_sampling import SimulationProblem
from likeminds.choice_models.simulated_likelihood import form_of
from likeminds.mixed_model.gaussian_prior import GaussianPrior
from likeminds.mixed_model.likelihoods import ChoiceLikelihood
from likeminds.mixed_model.responses import task_of


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
        people = counted(self.n_users, "user")
        return (
            f"{said} by {people}, {counted(self.n_parameters, 'parameter')}: AIC {self.aic:.1f}, "
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
