"""Learning the whole of Omega, by scoring: as many steps as Newton's method, as cheap as EM's.

EM moves Omega to the second moments of the posteriors, and is slow where labels carry little
information: there, posteriors equal the prior. That information is known: in the basis of L
(L L' = Omega), along the eigenvectors of the mean posterior covariance, with eigenvalues 1 - k_a,
the information about the entry (a, b) of Omega is that of k_a k_b U people whose weights are
seen without error. To divide EM's step by it is Fisher's scoring.

The crowd is joined by pseudo-people, a fixed share of it, for whom all weights are alike
N(0, s^2): Omega is shrunk towards their covariance. J grows by

    pseudo/2 [log |Omega| + log |T^-1| ],  T = diag(s^2, ..., s^2, v^2)

where s and v are chosen to make it least: twice as much disagreement costs nothing, more
disagreement in one direction than in the others does. Or T has a variance for each
coordinate, so that nothing but correlations cost. If Omega is to be diagonal, the same steps
are taken with its diagonal alone.
"""

from dataclasses import dataclass, replace

import numpy as np

from likeminds._util.array_types import Float
from likeminds.mixed_model.gaussian_prior import GaussianPrior
from likeminds.mixed_model.laplace_moments import Moments
from likeminds.mixed_model.likelihoods import GaussianLikelihood
from likeminds.mixed_model.marginal_likelihood import (
    MarginalLikelihood,
    PriorModel,
    slope_by_log_precision,
)
from likeminds.mixed_model.numerics import LEAST_KNOWN, LONGEST_LOG_STEP, SHORTER, SHORTEST

# A regression's precision grows or shrinks by at most exp(1) in a step.
_LONGEST_PRECISION = 1.0
# Steps are at first stretched to at most so many; twice as many if that lowers J, else half.
_STRETCH, _LEAST_STRETCH = 4.0, 1.5


@dataclass(frozen=True)
class EvaluatedModel:
    """A model, the moments of the posteriors under it, and J."""

    model: PriorModel
    found: Moments
    value: float


def visit_crowd(objective: MarginalLikelihood, model: PriorModel) -> EvaluatedModel:
    """Return the moments under a model, and J, which includes the pseudo-people."""
    return valued(objective, model, objective.visit(model))


def valued(objective: MarginalLikelihood, model: PriorModel, found: Moments) -> EvaluatedModel:
    """Return J, given the moments under a model: pseudo-people may change, nobody is visited."""
    pseudo = objective.shape.pseudo * found.n_users
    alike, variances = _alike(model.prior, objective)
    penalty = 0.5 * pseudo * (alike - float(np.log(variances).sum()))
    value = found.objective + penalty + objective.held(model) + objective.cost_of_items(found)
    return EvaluatedModel(model, found, value)


class StepLength:
    """How long steps are: after two that gain less and less, one as long as all that follow.

    Where each step is r times as long as the one before, the next and all that follow it are
    together 1 / (1 - r) times as long as the next, and what steps gain shrinks by r^2.

    Only Omega, and the features of items that are learned, are moved farther: all else follows at
    once. What is too long is not taken, so that J never rises.

    Examples
    --------
    >>> pace = StepLength()
    >>> for gain in (4.0, 1.0):
    ...     pace.took(pace.stretch, gain)
    >>> pace.stretch
    2.0
    """

    def __init__(self, longest: float = _STRETCH) -> None:
        self._gains: list[float] = []
        self._longest = longest
        self.is_even = True

    @classmethod
    def even(cls) -> "StepLength":
        """Return the pace of steps that are not stretched."""
        return cls(1.0)

    @property
    def stretch(self) -> float:
        """How many whole steps the next one is."""
        before, last = self._gains[-2:] if len(self._gains) > 1 else (0.0, 0.0)
        if not 0.0 < last < before:
            return 1.0
        return float(min(1.0 / (1.0 - np.sqrt(last / before)), self._longest))

    def took(self, share: float, gain: float) -> None:
        """Take note of a step, and what it gained."""
        self.is_even = share <= 1.0
        if self.stretch == 1.0:
            self._gains.append(gain)
            return
        self._gains = []
        self._longest = max(self._longest * (2.0 if share > 1.0 else 0.5), _LEAST_STRETCH)


def step(
    objective: MarginalLikelihood, at: EvaluatedModel, pace: StepLength | None = None
) -> EvaluatedModel:
    """Return the next model; J does not rise."""
    move, pace = ScoringStep(objective, at), StepLength.even() if pace is None else pace
    share = pace.stretch
    while share > SHORTEST:
        new = visit_crowd(objective, move.to(share))
        if new.value <= at.value:
            pace.took(share, at.value - new.value)
            return new
        share = 1.0 if share > 1.0 else share * SHORTER
    pace.took(0.0, 0.0)
    return at


class ScoringStep:
    """A step of scoring from a model."""

    def __init__(self, objective: MarginalLikelihood, at: EvaluatedModel) -> None:
        self._model = model = at.model
        prior, found, n_weights = model.prior, at.found, objective.n_weights
        people = found.n_users
        self._is_diagonal = objective.shape.kind == "diagonal"
        unknown, turn = np.linalg.eigh(found.spread / people)
        if self._is_diagonal:
            unknown, turn = np.diag(found.spread) / people, np.eye(len(turn))
        known = np.maximum(1.0 - unknown, LEAST_KNOWN)
        self._root = prior.root @ turn
        inverse = turn.T @ prior.inverse_root
        _, variances = _alike(prior, objective)
        pseudo = objective.shape.pseudo * people
        identity = np.eye(len(known))
        score = turn.T @ found.second @ turn - people * identity
        score += pseudo * ((inverse * variances) @ inverse.T - identity)
        if self._is_diagonal:
            information = people * (identity - found.spread / people) ** 2
            information += (LEAST_KNOWN**2 * people + pseudo) * identity
            self._growth, self._axes = np.linalg.solve(information, np.diag(score)), identity
        else:
            growth = score / (people * np.outer(known, known) + pseudo)
            self._growth, self._axes = np.linalg.eigh(growth)
        held = self._root[:n_weights]
        slope = turn.T @ found.first - model.ridge * (held.T @ objective.away(model))
        information = np.diag(people * known) + model.ridge * (held.T @ held)
        self._shift = self._root @ np.linalg.solve(information, slope)
        if objective.n_factors or self._is_diagonal:
            self._shift = _free_shift(objective, at)
        self._sharper = 0.0
        if isinstance(model.likelihood, GaussianLikelihood):
            by_log = -slope_by_log_precision(found, model.likelihood)
            self._sharper = by_log / (0.5 * max(found.comparisons, 1.0))

    def to(self, share: float) -> PriorModel:
        """Return the model after a share of the whole step; beyond it, only Omega moves on."""
        model = self._model
        growth = np.exp(np.clip(share * self._growth, -LONGEST_LOG_STEP, LONGEST_LOG_STEP))
        root = (self._root @ self._axes) * np.sqrt(growth)
        prior = GaussianPrior.of_covariance(
            model.prior.mean + min(share, 1.0) * self._shift, root @ root.T
        )
        if self._is_diagonal:
            prior = prior.without_correlations()
        likelihood = model.likelihood
        if isinstance(likelihood, GaussianLikelihood):
            sharper = np.clip(share * self._sharper, -_LONGEST_PRECISION, _LONGEST_PRECISION)
            likelihood = GaussianLikelihood(likelihood.precision * float(np.exp(sharper)))
        return replace(model, prior=prior, likelihood=likelihood)


def _free_shift(objective: MarginalLikelihood, at: EvaluatedModel) -> Float:
    """Return how the mean moves where some of its coordinates stay at zero."""
    model, n_weights, free = at.model, objective.n_weights, objective.n_free
    slope = model.prior.inverse_root.T @ at.found.first
    slope[:n_weights] -= model.ridge * objective.away(model)
    shift = np.zeros_like(slope)
    shift[:free] = objective.covariance_of_mean(model, at.found)[:free, :free] @ slope[:free]
    return shift


def _alike(prior: GaussianPrior, objective: MarginalLikelihood) -> tuple[float, Float]:
    """Return log |Omega|, and the variances of the pseudo-people who resemble it most."""
    inverse, n_weights = prior.inverse_root, objective.n_weights
    precision = np.einsum("ij,ij->j", inverse, inverse)
    variances = 1.0 / precision
    if not objective.shape.own:
        variances[:n_weights] = n_weights / max(float(precision[:n_weights].sum()), 1e-300)
    return -2.0 * float(np.linalg.slogdet(inverse)[1]), variances
