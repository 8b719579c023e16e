"""The log-likelihood of labels under a learned prior, with its Monte-Carlo error."""

from dataclasses import dataclass

import numpy as np

from likeminds._util.array_types import Float, IdArray
from likeminds.choice_models.importance_sampling import ImportanceSampler, SimulationProblem
from likeminds.mixed_model.gaussian_prior import GaussianPrior


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
    people: IdArray
    draws: int

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        people = f"{len(self.by_user):,} people, {self.draws:,} draws each"
        return f"{self.value:.2f} ± {self.error:.2f} ({people})"


def simulate_likelihood(
    setting: SimulationProblem, prior: GaussianPrior, n_draws: int, users: IdArray, seed: int = 0
) -> LogLikelihood:
    """Simulate the log-likelihood of a setting's labels under a prior."""
    at = setting.coefficients(prior)
    simulation = ImportanceSampler(setting, at, n_draws, seed=seed, matched=False)
    found, order = simulation.at(at), np.argsort(simulation.people, kind="stable")
    return LogLikelihood(
        found.value,
        float(np.sqrt(found.variance.sum())),
        found.by_user[order],
        users[simulation.people[order]],
        simulation.n_draws,
    )
