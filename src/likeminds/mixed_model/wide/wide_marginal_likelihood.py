"""J of `mixed_model.marginal_likelihood` and its gradient, without a features x features matrix.

With the pulls a of a user's rows X, the matrix C = R (I + R' X Omega X' R)^-1 R' of what their
labels tell, and the shift h of the mode from the mean (see `laplace.Moments`), all in the
space of the rows, J's gradients by the mean and by Omega are

    - X' (a - h)     and     1/2 X' M X,     M = C - a a' + h a' + a h'

summed over users. Omega = D^2 + B B' enters through X B and X X' alone, with B = D F.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from likeminds._util.array_types import Float
from likeminds._util.map_reduce import ThreadExecutor
from likeminds.mixed_model.gaussian_prior import GaussianPrior
from likeminds.mixed_model.laplace import EStepParams, PosteriorMode, newton
from likeminds.mixed_model.likelihoods import ChoiceLikelihood, Likelihood, LogisticLikelihood
from likeminds.mixed_model.marginal_likelihood import FAR, OFF_ZERO, MarginalLikelihood, PriorModel
from likeminds.mixed_model.primal_dual import Dual
from likeminds.mixed_model.wide.kernel_rows import KernelBlock, KernelRows


@dataclass(frozen=True)
class RowMatrices:
    """The sum over users of X' A X, with a symmetric matrix A for each: applied, never formed."""

    rows: KernelRows  # the rows X
    inner: list[Float]  # (b, n, n): the matrices A, block by block

    def times(self, vectors: Float) -> Float:
        """Return the product with vectors of weights of the features, shape (d, k)."""
        scores = self.rows.scores(vectors)
        for block, inner in zip(self.rows.blocks, self.inner, strict=True):
            own = block.take(scores)
            own[...] = inner @ own
        return self.rows.back(scores)


@dataclass(frozen=True)
class RowMoments:
    """What the objective needs of each user's posteriors."""

    # (n_users,): minus the logarithm of the marginal likelihood of each user's labels.
    objectives: Float
    by_mean: Float  # (p,): the gradient of the objective by the mean
    by_directions: Float  # (p, k): the gradient by the leading directions B
    # (1 or 2,): the gradient by the variance that all weights share, and by the intercept's.
    by_variance: Float
    told: RowMatrices  # with the matrices C: the information about the mean
    missing: RowMatrices  # with the matrices M: twice the gradient by Omega

    @property
    def n_users(self) -> int:
        """How many users there are."""
        return len(self.objectives)


class _BlockDerivatives(NamedTuple):
    """Derivatives of a block of users: see `RowMoments`."""

    objectives: Float
    by_variance: Float
    told: Float
    missing: Float


@dataclass(frozen=True)
class WideMarginalLikelihood(MarginalLikelihood):
    """The objective of rows that are known by their inner products: see `KernelRows`."""

    # (k,): the ridge penalties of the leading directions.
    ridges: Float = field(default_factory=lambda: np.zeros(0))

    @property
    def rows(self) -> KernelRows:
        """The labels."""
        assert isinstance(self.tasks, KernelRows)
        return self.tasks

    def look(self, model: PriorModel) -> RowMoments:
        """Find each user's mode, and sum what they say."""
        rows, prior, features = self.rows, model.prior, slice(0, self.n_weights)
        along = np.column_stack([prior.mean, self.directions(model)])
        scores = rows.scores(along[features])
        pulls = np.empty(scores.shape)

        def visit(
            block: KernelBlock, terms: EStepParams, own: Float | None
        ) -> tuple[_BlockDerivatives, Float]:
            seen = block.take(scores) + block.task.rows @ along[self.n_weights :]
            mode = _mode(block, _system(block, seen, prior, self.n_weights), terms, own)
            objectives, pull, told, missing = _told(mode)
            block.take(pulls)[..., 0] = -pull
            block.take(pulls)[..., 1:] = missing @ seen[..., 1:]
            found = _BlockDerivatives(objectives, _by_variance(block, missing), told, missing)
            return found, mode.derivatives.residuals

        answers = ThreadExecutor(rows.blocks).map(
            visit, self.e_step_params(model), self.warm_starts.own
        )
        found, self.warm_starts.own = map(list, zip(*answers, strict=True))
        slope = np.zeros_like(along)
        slope[features] = rows.back(pulls)
        for block in rows.blocks:
            slope[self.n_weights :] += np.einsum("bni,bnk->ik", block.task.rows, block.take(pulls))
        return RowMoments(
            objectives=np.concatenate([block.objectives for block in found]),
            by_mean=slope[:, 0],
            by_directions=slope[:, 1:],
            by_variance=np.sum([block.by_variance for block in found], axis=0),
            told=RowMatrices(rows, [block.told for block in found]),
            missing=RowMatrices(rows, [block.missing for block in found]),
        )

    def __call__(self, vector: Float) -> tuple[float, Float]:
        """Return J per user, and its gradient."""
        model = self.model_at(vector)
        found = self.look(model)
        value = self.value_at(model, float(found.objectives.sum()))
        slope = self._slope_in_rows(model, found)
        return value / found.n_users, slope / found.n_users

    def value_at(self, model: PriorModel, objective: float) -> float:
        """Return J, given minus the log marginal likelihood."""
        squares = (self.directions(model)[: self.n_weights] ** 2).sum(axis=0)
        return super().value_at(model, objective) + 0.5 * float(self.ridges @ squares)

    def directions(self, model: PriorModel) -> Float:
        """Return the leading directions B, shape (p, k)."""
        return np.asarray(model.prior.loadings * model.prior.residual[:, None])

    def _slope_in_rows(self, model: PriorModel, found: RowMoments) -> Float:
        prior, unit, features = model.prior, self.unit, slice(0, self.n_weights)
        mean = found.by_mean.copy()
        mean[features] += model.ridge * self.mean_deviation(model)
        B = self.directions(model)
        directions = found.by_directions + B / (unit[:, None] * FAR) ** 2
        directions[features] += self.ridges * B[features]
        directions *= unit[:, None]
        residual = self._one_each(prior.residual)
        logs = 2.0 * residual**2 * found.by_variance
        logs += self._one_each(prior.residual / unit / FAR - OFF_ZERO)
        return np.concatenate([mean * unit, directions.ravel(), logs])


def _system(block: KernelBlock, scores: Float, prior: GaussianPrior, n_weights: int) -> Dual:
    """Return the system of a block, given its rows' scores: the mean's, and the directions'."""
    seen, own = scores[..., 1:], block.task.rows * prior.residual[n_weights:]
    gram = prior.residual[0] ** 2 * block.gram
    gram += seen @ seen.transpose(0, 2, 1) + own @ own.transpose(0, 2, 1)
    return Dual(block.task.rows[:, :, :0], scores[..., 0], gram)


def _mode(
    block: KernelBlock, system: Dual, terms: EStepParams, pulls: Float | None
) -> PosteriorMode:
    """Find the modes of a block, from the pulls it has kept."""
    likelihood: Likelihood = terms.likelihood
    if block.task.set_size == 1 and isinstance(likelihood, ChoiceLikelihood):
        likelihood = LogisticLikelihood()  # choices between two are labels of differences here
    start = np.zeros(block.shape) if pulls is None else pulls
    return newton(block.task, system, likelihood, start, terms.tol)


def _told(mode: PosteriorMode) -> tuple[Float, Float, Float, Float]:
    """Return the objectives, the pulls a - h (b, n), and the matrices C and M (b, n, n)."""
    system, pulls, curvature = mode.system, mode.state, mode.derivatives.curvature
    spread = mode.covariance
    told = curvature.times_root(curvature.times_root(spread.inner).transpose(0, 2, 1))
    shift = system.shift(spread, curvature)
    crossed = (0.5 * pulls - shift)[:, :, None] * pulls[:, None, :]
    missing = told - crossed - crossed.transpose(0, 2, 1)
    objectives = mode.derivatives.loss + mode.penalty + spread.log_determinant
    return objectives, pulls - shift, told, missing


def _by_variance(block: KernelBlock, missing: Float) -> Float:
    """Return the gradient by the variances of the weights, and of the intercept."""
    own = block.task.rows
    by_intercept = np.einsum("bni,bnm,bmi->i", own, missing, own, optimize=True)
    return 0.5 * np.append(np.vdot(missing, block.gram), by_intercept)
