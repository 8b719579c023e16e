"""Newcomers to the paper's ranker: their own level in closed form, the crowd's levels as they are.

The weights of somebody new are consensus + B c + V, with the strong directions B of the group
level. Fitted to a few labels alone, c would be free and V as free as the penalties leave it;
so both have a prior taken from the crowd: c ~ N(0, S) with the covariance S of the people's own
coordinates, and V is as large as theirs in the mean square. With the squared loss as a regression
whose precision is that of the crowd's residuals, the best c and V are one small linear system.
Deviations longer than the knee of the model's personal level cost their length, not its square
(see `solvers.personal_deviations`): large deviations are not shrunk in proportion.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from likeminds._util.array_types import Bool, Float, Index
from likeminds._util.per_user_arrays import row_dots
from likeminds._util.threads import one_blas_thread
from likeminds.components import top_directions, total_weights
from likeminds.data.annotations import Annotations
from likeminds.losses import Loss
from likeminds.losses.quadratic import QuadraticLoss, RowFactors, spectrum_of_factors
from likeminds.losses.statistics import AbstractStatistics, Statistics
from likeminds.mixed_model.design import Design
from likeminds.mixed_model.fitted_prior import FittedPrior
from likeminds.mixed_model.gaussian_prior import GaussianPrior
from likeminds.mixed_model.laplace import WarmStarts
from likeminds.mixed_model.likelihoods import GaussianLikelihood
from likeminds.mixed_model.posterior import Posterior
from likeminds.mixed_model.responses import InMemoryResponses, PaddedRows
from likeminds.mixed_model.user_posteriors import posterior_of
from likeminds.solvers.solver import Parts
from likeminds.solvers.variable_projection import FitPoint, Penalty, fit_coordinates

# People whose residuals estimate the precision: more would hardly improve it.
_SAMPLE = 2000
# Directions of a newcomer's covariance that are kept, as in `HierarchicalRanker`.
_COVARIANCE_RANK = 16
# The least residual, as a share of the spread along the strong directions.
_LEAST = 1e-6


@dataclass(frozen=True)
class ThreeLevelNewcomers:
    """Newcomers to a ranker with the paper's three levels."""

    fitted_prior: FittedPrior
    loss: Loss
    knee: float

    @classmethod
    @one_blas_thread()
    def learn(
        cls,
        kind: Loss,
        loss: QuadraticLoss,
        statistics: AbstractStatistics,
        parts: Parts,
        *,
        scale: Float,
        consensus: Float,
        n_groups: int,
        knee: float,
    ) -> "ThreeLevelNewcomers":
        """Estimate the covariance of people's weights, and the precision of their labels.

        ``parts`` and ``consensus`` are in units of ``scale``.
        """
        able = statistics.has_pairs
        deviation = (parts[1] + parts[2])[able]
        deviation -= deviation.mean(axis=0)
        B = top_directions(parts[1], n_groups)
        C = deviation @ B
        n_users, n_features = deviation.shape
        shared = C.T @ C / n_users
        left = float(np.vdot(deviation, deviation) - np.vdot(C, C)) / n_users
        own = max(left, 0.0) / max(n_features - n_groups, 1)
        own = max(own, _LEAST * float(np.trace(shared)) / n_features, 1e-12)
        variance, axes = np.linalg.eigh(shared)
        loadings = B @ (axes * np.sqrt(np.maximum(variance, 0.0) / own))
        fitted_prior = FittedPrior(
            Design(statistics.origin, scale, None, intercept=False),
            GaussianPrior(consensus, loadings, np.full(n_features, np.sqrt(own))),
            GaussianLikelihood(_precision(kind, loss, statistics.class_weight, parts)),
        )
        # The personal level never sets in before people differ more than they usually do.
        return cls(fitted_prior, kind, max(knee, float(np.sqrt(own * n_features))))

    def fold_in(self, said: Annotations) -> tuple[Float, NDArray[np.float32]]:
        """Return everybody's mode and matrix K; see `Posterior`."""
        fitted_prior = self.fitted_prior
        statistics = Statistics.from_annotations(said, "factored", graded=self.loss.takes_grades)
        weight, count = self.loss.weight_and_count(statistics.class_weight)
        factors = self.loss.block(statistics, fitted_prior.design.scale, slice(None)).factors
        points, known = posterior_of(
            _FactorResponses(factors, weight, count),
            said.n_users,
            fitted_prior,
            warm_starts=WarmStarts(),
            rank=_COVARIANCE_RANK,
        )
        if isinstance(fitted_prior.likelihood, GaussianLikelihood):
            weight = weight * fitted_prior.likelihood.precision
        self._let_be_different(points, factors, weight, fitted_prior.prior)
        return points, known

    def answered(self, said: Annotations, posterior: Posterior) -> None:
        """Return nothing: the squared loss is not a likelihood of labels."""

    def _let_be_different(
        self, points: Float, factors: RowFactors, weight: Float, prior: GaussianPrior
    ) -> None:
        """Solve anew for those whose own deviation is past the knee."""
        residual = prior.inverse_middle @ prior.inverse_middle
        V = (points - prior.mean) @ residual
        past = row_dots(V, V) > self.knee**2
        if not past.any():
            return
        variance = float(prior.residual[0]) ** 2
        penalty = Penalty(0.0, 0.5 / variance, self.knee / variance, 0.5, prior.rank)
        directions = prior.loadings * prior.residual[:, None]
        rows = factors.rows
        for users, Z, target in replace(factors, rows=rows.of(past[rows.users])):
            part = spectrum_of_factors(users, Z, target)
            counted = weight[users, None]
            part = replace(part, curvature=part.curvature * counted, slope=part.slope * counted)
            start = np.zeros((len(users), prior.rank))
            found = fit_coordinates(part, FitPoint(penalty, 1e-12, prior.mean, directions), start)
            away = part.back(found.deviations.v)
            points[users] = prior.mean + found.C @ directions.T + away


@dataclass(frozen=True)
class _FactorResponses(InMemoryResponses):
    """The factors of a quadratic loss as blocks of a regression."""

    factors: RowFactors
    weight: Float
    count: Float

    @property
    def n_users(self) -> int:
        """How many people there are."""
        return len(self.factors.rows.users)

    @property
    def n_bytes(self) -> int:
        """What all blocks together take, about."""
        rows = self.factors.rows
        return 8 * len(rows.index) * int(rows.table.shape[1])

    @cached_property
    def plan(self) -> Sequence[Index]:
        """The people of each block."""
        return list(self.factors.rows.plan())

    def task(self, number: int) -> PaddedRows:
        """Return one block."""
        users, Z, target = self.factors.of(self.plan[number])
        weight = np.repeat(self.weight[users, None], Z.shape[1], axis=1)
        return PaddedRows(users, Z, target, weight, self.count[users])

    def of_users(self, chosen: Bool) -> "_FactorResponses":
        """Refuse: no prior is learned from newcomers."""
        raise NotImplementedError


def _precision(kind: Loss, loss: QuadraticLoss, class_weight: Float, parts: Parts) -> float:
    """Return one over the mean square of the residuals, from people evenly spread."""
    weight, count = kind.weight_and_count(class_weight)
    chosen = np.arange(len(weight)) % (1 + len(weight) // _SAMPLE) == 0
    squares = float(weight @ loss.squares(total_weights(parts, len(weight)), chosen))
    observations = float(count[chosen].sum())
    # Labels that are met to the last digit are no reason for certainty.
    return observations / max(squares, _LEAST * observations) if observations else 1.0
