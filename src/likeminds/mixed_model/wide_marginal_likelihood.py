"""J of `marginal_likelihood` and its gradient, without a features x features matrix.

Everything is in the space of a user's rows X. At the mode, these have residuals a and information
C = R (I + R' X Omega X' R)^-1 R'. h is the shift of the mode from the mean (see `laplace.Moments`).
J's gradients by the mean and by Omega are

    - X' (a - h)     and     1/2 X' M X,     M = C - a a' + h a' + a h'

summed over users. Omega = s^2 I + B B' enters through X B and X X' alone. So users have the
coordinates X B, and inner products of rows beyond them, which no step changes. A step multiplies
the table of items with two thin matrices.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from likeminds._util.array_types import Bool, Float, FloatArray, Index
from likeminds.data.annotations import Annotations
from likeminds.mixed_model.design import Design
from likeminds.mixed_model.gaussian_prior import GaussianPrior
from likeminds.mixed_model.laplace import PosteriorMode, WarmStart, find_mode
from likeminds.mixed_model.likelihoods import ChoiceLikelihood, Likelihood, LogisticLikelihood
from likeminds.mixed_model.losses import PriorLoss
from likeminds.mixed_model.marginal_likelihood import MarginalLikelihood, PriorModel
from likeminds.mixed_model.responses import (
    InMemoryResponses,
    PaddedRows,
    ResponseBlock,
    data_of,
    of_each_user,
)

N = TypeVar("N", bound=np.generic)


@dataclass(frozen=True)
class KernelRows(InMemoryResponses):
    """Each user's rows by their inner products, and as combinations of the rows of a table."""

    table: FloatArray  # (m, d): items, centred and scaled, in the precision of the features
    mixing: sparse.csr_matrix  # (rows, m): the combinations: one item, or a difference of two
    # Their rows have the intercept alone; ``beyond`` are inner products of features.
    blocks: Sequence[PaddedRows]

    @classmethod
    def of_annotations(
        cls, annotations: Annotations, loss: PriorLoss, design: Design
    ) -> "KernelRows":
        """Group labels by user, as a loss does; choices between two are labels of differences."""
        items, place = np.unique(annotations.feature_rows, return_inverse=True)
        table = design.moved(annotations.features, items)
        blocks: list[PaddedRows] = []
        parts: list[sparse.csr_matrix] = []
        for data in _numbered_rows(annotations, loss, intercept=design.intercept):
            number = data.rows[:, :, 0].ravel()
            label = np.maximum(np.abs(number).astype(np.intp) - 1, 0)
            entries = (np.sign(number), place[label], np.arange(len(number) + 1))
            mixing = sparse.csr_matrix(entries, shape=(len(number), len(items)))
            some = replace(data, rows=data.rows[:, :, 1:])
            if data.set_size == 2 and not np.any(data.log_count):
                some, mixing = _differences(some), mixing[::2] - mixing[1::2]
            n_users, n_rows = some.weight.shape
            # Inner products of a block's rows stay in the cache.
            at_once = max(1, (1 << 20) // (8 * n_rows**2))
            for start in range(0, n_users, at_once):
                block = of_each_user(some, itemgetter(slice(start, start + at_once)))
                own = mixing[start * n_rows : (start + at_once) * n_rows]
                blocks.append(replace(block, beyond=_gram(own, table, n_rows)))
            parts.append(mixing)
        return cls(table, sparse.vstack(parts, format="csr"), blocks)

    @property
    def plan(self) -> Sequence[Index]:
        """The users of each block."""
        return [block.users for block in self.blocks]

    @property
    def n_bytes(self) -> int:
        """The memory of the inner products, in bytes."""
        return sum(8 * block.weight.size * block.weight.shape[1] for block in self.blocks)

    def data(self, number: int) -> PaddedRows:
        """Return one block."""
        return self.blocks[number]

    def by_block(self, rows: NDArray[N]) -> list[NDArray[N]]:
        """Return views of an array, with an entry per row, of each block: (b, n, ...)."""
        shapes = [block.weight.shape for block in self.blocks]
        ends = np.cumsum([n_users * n_rows for n_users, n_rows in shapes])[:-1]
        parts = zip(np.split(rows, ends), shapes, strict=True)
        return [part.reshape(*shape, *rows.shape[1:]) for part, shape in parts]

    def scores(self, weights: Float) -> Float:
        """Return the rows times weights of the features, shape (d, k): (rows, k)."""
        of_items = self.table @ weights.astype(self.table.dtype)
        return np.asarray(self.mixing @ of_items.astype(np.float64))

    def back(self, values: Float) -> Float:
        """Return the transposed rows times values, shape (rows, k): (d, k)."""
        by_item = np.asarray(self._transposed @ values)
        return np.asarray(self.table.T @ by_item.astype(self.table.dtype), dtype=np.float64)

    @cached_property
    def _transposed(self) -> sparse.csr_matrix:
        return self.mixing.T.tocsr()

    def of_users(self, chosen: Bool) -> "KernelRows":
        """Return the rows of some of the users (a mask over those who have labels)."""
        users = np.sort(np.concatenate(self.plan))[chosen]
        blocks, rows = [], []
        for block, places in zip(
            self.blocks, self.by_block(np.arange(self.mixing.shape[0])), strict=True
        ):
            own = np.flatnonzero(np.isin(block.users, users))
            if len(own):
                blocks.append(of_each_user(block, itemgetter(own)))
                rows.append(places[own].ravel())
        mixing = self.mixing[np.concatenate(rows)]
        used = np.unique(mixing.indices)
        return KernelRows(self.table[used], mixing[:, used], blocks)


def _numbered_rows(
    annotations: Annotations, loss: PriorLoss, *, intercept: bool
) -> Sequence[PaddedRows]:
    """Return blocks whose first coordinate is the number of the label, from 1, signed."""
    n_labels = len(annotations)
    numbered = annotations._with(
        features=np.arange(1.0, n_labels + 1.0)[:, None],
        feature_rows=np.arange(n_labels),
        feature_names=("number",),
        features_per="row",
    )
    design = Design(np.zeros(1), np.ones(1), None, intercept)
    return list(loss.responses(numbered, design).map(data_of, None))


def _differences(data: PaddedRows) -> PaddedRows:
    """Return choices between two as labels of their differences, an equivalent model."""
    return replace(
        data,
        rows=data.rows[:, ::2] - data.rows[:, 1::2],
        response=data.response[:, ::2],
        weight=data.weight[:, ::2],
        places=None,
        set_size=1,
        log_count=0.0,
    )


def _gram(mixing: sparse.csr_matrix, table: FloatArray, n_rows: int) -> Float:
    """Return the inner products of each user's ``n_rows`` rows: (b, n, n)."""
    gram = np.empty((mixing.shape[0] // n_rows, n_rows, n_rows))
    mixing = mixing.astype(table.dtype)
    # The number of users whose rows are made at a time.
    at_once = max(1, (1 << 21) // (n_rows * table.itemsize * table.shape[1]))
    for start in range(0, len(gram), at_once):
        flat = mixing[start * n_rows : (start + at_once) * n_rows] @ table
        rows = flat.reshape(-1, n_rows, table.shape[1])
        gram[start : start + at_once] = rows @ rows.transpose(0, 2, 1)
    return gram


@dataclass(frozen=True)
class RowSpaceMatrix:
    """The sum over users of X' A X, with a symmetric matrix A for each: applied, never formed."""

    rows: KernelRows  # the rows X
    inner: Sequence[Float]  # (b, n, n): the matrices A of each block

    def times(self, vectors: Float) -> Float:
        """Return the product with vectors of weights of the features, shape (d, k)."""
        scores = self.rows.scores(vectors)
        for own, inner in zip(self.rows.by_block(scores), self.inner, strict=True):
            own[...] = inner @ own
        return self.rows.back(scores)


@dataclass(frozen=True)
class RowMoments:
    """The marginal likelihood and its derivatives, summed over users in the space of rows."""

    losses: Float  # (n_users,): minus the log marginal likelihood of each user's labels
    by_mean: Float  # (p,): the gradient of their sum by the mean
    by_directions: Float  # (p, k): by the leading directions B
    by_variance: Float  # (1 or 2,): by the variance that all weights share, and the intercept's
    information: RowSpaceMatrix  # of the matrices C: about the mean
    by_covariance: RowSpaceMatrix  # of the matrices M: twice the gradient by Omega

    @property
    def n_users(self) -> int:
        """The number of users."""
        return len(self.losses)


class _BlockMoments(NamedTuple):
    """The terms of `RowMoments` of a block."""

    losses: Float
    by_variance: Float
    information: Float
    by_covariance: Float


@dataclass(frozen=True)
class WideMarginalLikelihood(MarginalLikelihood):
    """The objective of rows given by their inner products: see `KernelRows`."""

    # (k,): the ridge penalties of the leading directions.
    ridges: Float = field(default_factory=lambda: np.zeros(0))

    @property
    def rows(self) -> KernelRows:
        """The labels."""
        assert isinstance(self.responses, KernelRows)
        return self.responses

    def row_moments(self, model: PriorModel) -> RowMoments:
        """Find each user's mode, and sum the derivatives."""
        rows, prior, n_weights = self.rows, model.prior, self.n_weights
        along = np.column_stack([prior.mean, prior.scaled_loadings])
        scores = rows.scores(along[:n_weights])
        slopes = np.empty(scores.shape)
        scores_of, slopes_of = rows.by_block(scores), rows.by_block(slopes)
        # Users' weights along B, the intercept's residual, and all other residuals beyond them.
        deviations = np.append(np.ones(prior.rank), prior.residual[n_weights:])
        inner = GaussianPrior(
            np.zeros(len(deviations)),
            np.zeros((len(deviations), 0)),
            deviations,
            beyond=float(prior.residual[0]) ** 2,
        )

        def visit(
            block: ResponseBlock, tol: float, start: WarmStart | None
        ) -> tuple[_BlockMoments, WarmStart]:
            data = block.data
            seen = scores_of[block.number] + data.rows @ along[n_weights:]
            coordinates = np.concatenate([seen[..., 1:], data.rows], axis=2)
            likelihood: Likelihood = model.likelihood
            if data.set_size == 1 and isinstance(likelihood, ChoiceLikelihood):
                likelihood = LogisticLikelihood()
            within = replace(data, rows=coordinates, offset=seen[..., 0])
            mode = find_mode(within, inner, likelihood, start, tol)
            found, residuals = _block_moments(mode, data)
            slopes_of[block.number][..., 0] = -residuals
            slopes_of[block.number][..., 1:] = found.by_covariance @ seen[..., 1:]
            return found, WarmStart(mode.derivatives.residuals)

        answers = rows.map(visit, self.mode_tol, self.warm_starts.own)
        found, self.warm_starts.own = map(list, zip(*answers, strict=True))
        losses, by_variance, information, by_covariance = zip(*found, strict=True)
        slope = np.zeros_like(along)
        slope[:n_weights] = rows.back(slopes)
        for data, own in zip(rows.blocks, slopes_of, strict=True):
            slope[n_weights:] += np.einsum("bni,bnk->ik", data.rows, own)
        return RowMoments(
            np.concatenate(losses),
            slope[:, 0],
            slope[:, 1:],
            np.sum(by_variance, axis=0),
            RowSpaceMatrix(rows, information),
            RowSpaceMatrix(rows, by_covariance),
        )

    def __call__(self, vector: Float) -> tuple[float, Float]:
        """Return J per user, and its gradient."""
        model = self.model_at(vector)
        found, features = self.row_moments(model), slice(0, self.n_weights)
        found.by_directions[features] += self.ridges * model.prior.scaled_loadings[features]
        logs = 2.0 * self._one_each(model.prior.residual) ** 2 * found.by_variance
        gradient = self.penalised_gradient(model, found.by_mean, found.by_directions, logs)
        value = self.value_at(model, float(found.losses.sum()))
        return value / found.n_users, gradient / found.n_users

    def value_at(self, model: PriorModel, objective: float) -> float:
        """Return J, given minus the log marginal likelihood."""
        squares = (model.prior.scaled_loadings[: self.n_weights] ** 2).sum(axis=0)
        return super().value_at(model, objective) + 0.5 * float(self.ridges @ squares)


def _block_moments(mode: PosteriorMode, data: PaddedRows) -> tuple[_BlockMoments, Float]:
    """Return the moments of a block, and the residuals a - h, shape (b, n)."""
    curvature, residuals, spread = mode.derivatives.curvature, mode.state, mode.covariance
    assert data.beyond is not None
    information = curvature.times_root(curvature.times_root(spread.inner).transpose(0, 2, 1))
    shift = mode.system.shift(spread, curvature)
    crossed = (0.5 * residuals - shift)[:, :, None] * residuals[:, None, :]
    by_covariance = information - crossed - crossed.transpose(0, 2, 1)
    losses = mode.derivatives.loss + mode.penalty + spread.log_determinant
    own = data.rows
    by_intercept = np.einsum("bni,bnm,bmi->i", own, by_covariance, own, optimize=True)
    by_variance = 0.5 * np.append(np.vdot(by_covariance, data.beyond), by_intercept)
    return _BlockMoments(losses, by_variance, information, by_covariance), residuals - shift
