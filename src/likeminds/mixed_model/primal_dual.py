"""The equations of users' posterior modes: primal (in weights) or dual (in residuals of rows).

A user's weights are mean + L z with z ~ N(0, I) and L L' = Omega, so in z the prior is the
identity. Users with more rows than coordinates are solved in z (*primal*, matrices of coordinates x
coordinates). The others are solved in a with z = X'a (*dual*, matrices of rows x rows). At the
mode, a are the residuals of the rows.

The uncertainty of item factors adds a quadratic penalty in z for each user (`UserPenalty`, see
`item_responses`). The primal adds it to the precision. The dual adds it to the prior: with z = A y,
the equations above hold for y. If the penalty moves the prior mean of z to c, both solve for z - c,
and the offset has the scores of c.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from likeminds._util.array_types import Float, Index
from likeminds._util.per_user_arrays import (
    half_log_determinant,
    inverse_and_log,
    row_dots,
    solve_nearly,
    times,
    times_back,
)
from likeminds.mixed_model.gaussian_prior import GaussianPrior
from likeminds.mixed_model.likelihoods import Curvature, DiagonalCurvature
from likeminds.mixed_model.responses import PaddedRows
from likeminds.mixed_model.user_penalty import UserPenalty


@dataclass(frozen=True)
class PosteriorCovariance:
    """The posterior covariance S of z, and functions of it."""

    log_determinant: Float  # (b,): half of log |S^-1|
    total: Float  # (p, p): the sum of S over the users
    variance: Float  # (b, n): the variance of R' eta, where R R' is the likelihood's curvature
    inner: Float  # S itself (primal), or (I + R' X X' R)^-1 (dual)
    with_scores: Float  # (b, n, p): the covariance of R' eta with z


@dataclass(frozen=True)
class Primal:
    """Users with at least as many rows as coordinates; the state is z - c.

    Rows are in column-major order, since loops over few coordinates are slow.
    """

    approximate: ClassVar = False

    rows: Float
    offset: Float
    user_penalty: UserPenalty | None = None

    def of(self, users: Index) -> "Primal":
        """Return the system of some of the users, by their places in the block."""
        user_penalty = None if self.user_penalty is None else self.user_penalty.of(users)
        columns = self.rows.transpose(0, 2, 1)[users]
        return Primal(columns.transpose(0, 2, 1), self.offset[users], user_penalty)

    def without_penalty(self) -> "Primal":
        """Return the system in y, with the penalty as part of the prior."""
        return (
            self
            if self.user_penalty is None
            else Primal(self.user_penalty.of_rows(self.rows), self.offset)
        )

    def start(self, residuals: Float) -> Float:
        """Return the state that has these residuals."""
        state = times_back(self.rows, residuals)
        return (
            state
            if self.user_penalty is None
            else self.user_penalty.of_vectors(self.user_penalty.of_vectors(state))
        )

    def eta(self, state: Float) -> Float:
        """Return each user's eta."""
        return self.offset + times(self.rows, state)

    def penalty(self, state: Float, eta: Float) -> Float:
        """Return half the squared length of z, plus the user penalty."""
        del eta
        return 0.5 * row_dots(state, self._prior_gradient(state)) + _at_centre(self.user_penalty)

    def _prior_gradient(self, state: Float) -> Float:
        """Return the gradient of the penalty."""
        return state if self.user_penalty is None else state + self.user_penalty.gradient(state)

    def matrices(self, curvature: Curvature) -> Float:
        """Return the precisions S^-1 of z, which Newton's method divides by: (b, p, p)."""
        precision = _plus_identity(_gram(curvature.times_root_back(self.rows)))
        if self.user_penalty is not None:
            precision += self.user_penalty.added
        return precision

    def newton(
        self,
        state: Float,
        eta: Float,
        residuals: Float,
        curvature: Curvature,
        matrices: Float | None,
    ) -> tuple[Float, Float]:
        """Return the Newton step, and its predicted gain."""
        del eta, curvature
        assert matrices is not None
        slope = times_back(self.rows, residuals) - self._prior_gradient(state)
        step = np.asarray(np.linalg.solve(matrices, slope[:, :, None])[:, :, 0])
        return step, 0.5 * row_dots(slope, step)

    def z(self, state: Float) -> Float:
        """Return each user's z - c: the state."""
        return state

    def log_determinant(self, matrices: Float) -> Float:
        """Return half of log |S^-1|, given the precisions."""
        return half_log_determinant(matrices)

    def posterior_covariance(
        self, curvature: Curvature, matrices: Float | None = None
    ) -> PosteriorCovariance:
        """Return each user's posterior covariance; ``matrices`` are those of `matrices`."""
        scaled = curvature.times_root_back(self.rows)
        if matrices is None:
            matrices = self.matrices(curvature)
        covariance, half = inverse_and_log(matrices)
        columns = scaled.transpose(0, 2, 1)
        with_scores = covariance @ columns
        return PosteriorCovariance(
            half,
            covariance.sum(axis=0),
            np.einsum("bpn,bpn->bn", with_scores, columns),
            covariance,
            with_scores.transpose(0, 2, 1),
        )

    def shift(self, covariance: PosteriorCovariance, curvature: Curvature) -> Float:
        """Return the mode's state less the mean's, to first order: see `Moments`."""
        return times(
            covariance.inner, times_back(self.rows, curvature.grad_half_logdet(covariance.variance))
        )

    def explained(self, covariance: PosteriorCovariance, curvature: Curvature) -> Float:
        """Return the diagonal of H Cov(eta) H, shape (b, n)."""
        rows = curvature.times_root(curvature.times_root_back(self.rows))
        by_row = curvature.times_root(covariance.with_scores)
        return np.asarray(np.einsum("bnp,bnp->bn", by_row, rows))

    def covariance_along(
        self, covariance: PosteriorCovariance, curvature: Curvature, directions: Float
    ) -> Float:
        """Return the covariances of directions' z, (b, r, r); directions have shape (p, r)."""
        del curvature
        return np.asarray(directions.T @ covariance.inner @ directions)

    def information(self, curvature: Curvature, most: int) -> tuple[Float, Float]:
        """Return the directions of z known best, (b, most, p), and 1 - their variances."""
        values, vectors = np.linalg.eigh(self.matrices(curvature))
        best = vectors[:, :, ::-1][:, :, :most].transpose(0, 2, 1)
        return best, 1.0 - 1.0 / np.maximum(values[:, ::-1][:, :most], 1.0)


@dataclass(frozen=True)
class Dual:
    """Users with fewer rows than coordinates; the state is a, with z - c = X'a.

    With ``approximate``, steps are solved for by conjugate gradients, to a small relative error.
    """

    rows: Float
    offset: Float
    gram: Float
    user_penalty: UserPenalty | None = None
    approximate: bool = False

    def of(self, users: Index) -> "Dual":
        """Return the system of some of the users, by their places in the block."""
        user_penalty = None if self.user_penalty is None else self.user_penalty.of(users)
        rows, offset, gram = self.rows[users], self.offset[users], self.gram[users]
        return Dual(rows, offset, gram, user_penalty, self.approximate)

    def without_penalty(self) -> "Dual":
        """Return the system in y, with the penalty as part of the prior."""
        return replace(self, user_penalty=None)

    def start(self, residuals: Float) -> Float:
        """Return the state that has these residuals."""
        return residuals

    def eta(self, state: Float) -> Float:
        """Return each user's eta."""
        return self.offset + times(self.gram, state)

    def penalty(self, state: Float, eta: Float) -> Float:
        """Return half the squared length of X'a, plus the penalty at c."""
        return 0.5 * row_dots(state, eta - self.offset) + _at_centre(self.user_penalty)

    def matrices(self, curvature: Curvature) -> Float:
        """Return I + R' X X' R, which Newton's method divides by: (b, n, n)."""
        half = curvature.times_root_back(self.gram).transpose(0, 2, 1)
        return _plus_identity(curvature.times_root_back(half))

    def newton(
        self,
        state: Float,
        eta: Float,
        residuals: Float,
        curvature: Curvature,
        matrices: Float | None,
    ) -> tuple[Float, Float]:
        """Return the Newton step, and its predicted gain: infinite for approximate steps."""
        if matrices is None:
            step = self._approximate_newton(state, residuals, curvature)
            return step, np.full(len(step), np.inf)
        scores = eta - self.offset
        target = curvature.times_root(curvature.times_root_back(scores)) + residuals
        right = curvature.times_root_back(times(self.gram, target))
        solved = np.linalg.solve(matrices, right[:, :, None])[:, :, 0]
        step = target - curvature.times_root(np.asarray(solved)) - state
        return step, 0.5 * row_dots(residuals - state, times(self.gram, step))

    def _approximate_newton(self, state: Float, residuals: Float, curvature: Curvature) -> Float:
        """Return r - R (I + R'GR)^-1 R'G r approximately, for r = residuals - state."""

        def times_inner(vectors: Float) -> Float:
            product = times(self.gram, curvature.times_root(vectors))
            return np.asarray(vectors + curvature.times_root_back(product))

        right = curvature.times_root_back(times(self.gram, residuals - state))
        # The step's gain falls short by this share squared.
        solved = solve_nearly(times_inner, right, 0.03)
        return np.asarray(residuals - state - curvature.times_root(solved))

    def z(self, state: Float) -> Float:
        """Return each user's z - c."""
        inner = times_back(self.rows, state)
        return inner if self.user_penalty is None else self.user_penalty.of_vectors(inner)

    def log_determinant(self, matrices: Float) -> Float:
        """Return half of log |S^-1|, given I + R' X X' R."""
        return self._plus_penalty(half_log_determinant(matrices))

    def _plus_penalty(self, half: Float) -> Float:
        return half if self.user_penalty is None else half + self.user_penalty.log_determinant

    def posterior_covariance(
        self, curvature: Curvature, matrices: Float | None = None
    ) -> PosteriorCovariance:
        """Return each user's posterior covariance; ``matrices`` are those of `matrices`."""
        if matrices is None:
            matrices = self.matrices(curvature)
        inner, half = inverse_and_log(matrices)
        n_users, n_rows, size = self.rows.shape
        scaled = curvature.times_root_back(self.rows)
        whole = n_users * np.eye(size)
        if self.user_penalty is not None:
            scaled, whole = self.user_penalty.of_rows(scaled), self.user_penalty.squared()
        reduced = inner @ scaled
        flat = scaled.reshape(n_users * n_rows, size)
        return PosteriorCovariance(
            self._plus_penalty(half),
            whole - flat.T @ reduced.reshape(n_users * n_rows, size),
            1.0 - np.einsum("bnn->bn", inner),
            inner,
            reduced,
        )

    def shift(self, covariance: PosteriorCovariance, curvature: Curvature) -> Float:
        """Return the mode's state less the mean's, to first order: see `Moments`."""
        slope = curvature.grad_half_logdet(covariance.variance)
        less = times(covariance.inner, curvature.times_root_back(times(self.gram, slope)))
        return np.asarray(slope - curvature.times_root(less))

    def explained(self, covariance: PosteriorCovariance, curvature: Curvature) -> Float:
        """Return the diagonal of H Cov(eta) H, shape (b, n)."""
        left = curvature.times_root(covariance.inner).transpose(0, 2, 1)
        unexplained = np.einsum("bnn->bn", curvature.times_root(left))
        return np.asarray(curvature.diagonal - unexplained)

    def covariance_along(
        self, covariance: PosteriorCovariance, curvature: Curvature, directions: Float
    ) -> Float:
        """Return the covariances of directions' z, (b, r, r); directions have shape (p, r)."""
        along = np.repeat(directions.T[None], len(self.rows), axis=0)
        along = along if self.user_penalty is None else self.user_penalty.of_rows(along)
        scaled = curvature.times_root_back(self.rows) @ along.transpose(0, 2, 1)
        reduction = scaled.transpose(0, 2, 1) @ covariance.inner @ scaled
        return np.asarray(along @ along.transpose(0, 2, 1) - reduction)

    def information(self, curvature: Curvature, most: int) -> tuple[Float, Float]:
        """Return the directions of z known best, (b, most, p), and 1 - their variances."""
        values, vectors = np.linalg.eigh(self.matrices(curvature))
        values, vectors = values[:, ::-1][:, :most], vectors[:, :, ::-1][:, :, :most]
        informed = values > 1.0 + 1e-12
        scale = np.where(informed, 1.0 / np.sqrt(np.maximum(values - 1.0, 1e-300)), 0.0)
        best = (vectors * scale[:, None, :]).transpose(0, 2, 1)
        scaled = curvature.times_root_back(self.rows)
        return best @ scaled, np.where(informed, 1.0 - 1.0 / values, 0.0)


def system_of(
    data: PaddedRows, prior: GaussianPrior, *, approximate: bool = False
) -> Primal | Dual:
    """Return the primal or dual system of a block, with rows whitened by the prior."""
    offset = data.rows @ prior.mean
    shifts = None if prior.shifts is None else prior.shifts[data.users]
    if shifts is not None:
        offset += times(data.rows, shifts)
    if data.offset is not None:
        offset += data.offset
    user_penalty = None
    if data.precision is not None:
        last = slice(-data.precision.shape[1], None)
        means = None if shifts is None else shifts[:, last]
        user_penalty = UserPenalty(data.precision, prior.root[last], means)
    n_rows, size = data.rows.shape[1:]
    if data.beyond is None and n_rows >= size:
        columns = prior.whitened_columns(data.rows.transpose(0, 2, 1))
        rows = columns.transpose(0, 2, 1)
        return Primal(rows, _centred(offset, rows, user_penalty), user_penalty)
    rows = prior.whitened(data.rows)
    offset = _centred(offset, rows, user_penalty)
    if user_penalty is not None:
        rows = user_penalty.of_rows(rows)
    gram = rows @ rows.transpose(0, 2, 1)
    if data.beyond is not None:
        gram += prior.beyond * data.beyond
    return Dual(rows, offset, gram, user_penalty, approximate and data.beyond is None)


def _at_centre(penalty: UserPenalty | None) -> Float | float:
    """Return minus the log-density of the penalised prior at its mode."""
    return 0.0 if penalty is None else penalty.at_centre


def _centred(offset: Float, rows: Float, penalty: UserPenalty | None) -> Float:
    """Add the scores of the penalised prior's mean."""
    if penalty is None or penalty.means is None:
        return offset
    return np.asarray(offset + times(rows, penalty.centre))


def information_left(
    system: Primal | Dual, covariance: PosteriorCovariance, curvature: Curvature
) -> Float:
    """Return each row's information with its user integrated out: diag(H - H Cov(eta) H)."""
    if isinstance(curvature, DiagonalCurvature):
        return np.asarray(curvature.diagonal * np.maximum(1.0 - covariance.variance, 0.0))
    left = curvature.diagonal - system.explained(covariance, curvature)
    return np.asarray(np.maximum(left, 0.0))


def _plus_identity(matrices: Float) -> Float:
    diagonal = np.einsum("bii->bi", matrices)
    diagonal += 1.0
    return matrices


def _gram(rows: Float) -> Float:
    """Return X'X for each user."""
    return np.asarray(rows.transpose(0, 2, 1) @ rows)
