"""The prior of users' weights: N(mean, Omega), with Omega of low rank plus a residual.

    Omega = D (I + F F') D,      D = diag(s, ..., s, v)

where s is the standard deviation of a weight's residual and v that of the intercept's. As many
columns of F as coordinates less one make Omega any matrix. ``residual`` is the diagonal of D,
``loadings`` is F.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from likeminds._util.array_types import Float, Index
from likeminds._util.per_user_arrays import row_dots, times

# Variances less than this share of the largest are rounding, and so are lesser curvatures.
ROUNDING = 1e-10


@dataclass(frozen=True)
class MeanShifts:
    """How far each user's mean is from that of all: Gamma z."""

    per_user: ClassVar = ("z",)

    z: Float  # (n_users, k): each user's covariates
    values: Float  # (p, k): Gamma, in units
    unit: Float  # (p,): the units of its rows

    @property
    def slopes(self) -> Float:
        """Gamma, shape (p, k)."""
        return np.asarray(self.values * self.unit[:, None])

    def __getitem__(self, users: Index) -> Float:
        return np.asarray(self.z[users] @ self.slopes.T)

    def padded(self, size: int) -> "MeanShifts":
        """Return the same with so many coordinates, of which the last ones are not moved."""
        more = size - len(self.values)
        values = np.pad(self.values, ((0, more), (0, 0)))
        return replace(self, values=values, unit=np.pad(self.unit, (0, more), constant_values=1.0))

    def rescaled(self, scale: Float) -> "MeanShifts":
        """Return the shifts of other units of the last coordinates."""
        first = len(self.unit) - len(scale)
        return replace(self, unit=np.append(self.unit[:first], self.unit[first:] * scale))


@dataclass(frozen=True)
class GaussianPrior:
    """A normal distribution of users' weights.

    Examples
    --------
    >>> prior = GaussianPrior(np.zeros(2), np.array([[3.0], [0.0]]), np.array([0.5, 0.5]))
    >>> prior.covariance
    array([[2.5 , 0.  ],
           [0.  , 0.25]])
    >>> np.allclose(prior.root @ prior.root.T, prior.covariance)
    True
    """

    per_user: ClassVar = ("shifts",)

    mean: Float  # (p,): the consensus, and last the mean intercept where there is one
    loadings: Float  # (p, k): the leading directions, in units of the residual
    residual: Float  # (p,): standard deviations of what the leading directions do not explain
    # (n_users, p): how far each user's mean is from that of all, by their covariates.
    shifts: "Float | MeanShifts | None" = None
    # The variance of weights in every direction beyond the coordinates: see `Design`.
    beyond: float = 0.0

    @classmethod
    def of_covariance(cls, mean: Float, covariance: Float, beyond: float = 0.0) -> "GaussianPrior":
        """Return the prior with any covariance: a residual as small as its least eigenvalue.

        Examples
        --------
        >>> prior = GaussianPrior.of_covariance(np.zeros(2), np.array([[2.0, 1.0], [1.0, 3.0]]))
        >>> prior.covariance.round(6)
        array([[2., 1.],
               [1., 3.]])
        """
        if not len(mean):
            return cls(mean, np.zeros((0, 0)), np.zeros(0), beyond=beyond)
        values, vectors = np.linalg.eigh(covariance)
        values = np.maximum(values, ROUNDING * values[-1])
        loadings = vectors[:, :0:-1] * np.sqrt(values[:0:-1] / values[0] - 1.0)
        return cls(mean, loadings, np.full(len(mean), np.sqrt(values[0])), beyond=beyond)

    def predictive(
        self, mean_covariance: Float, n_groups: int, mean_variance_beyond: float = 0.0
    ) -> "GaussianPrior":
        """Return the prior with the uncertainty of its mean and directions.

        A user is the mean plus coordinates times leading directions. Each direction is about as
        uncertain as the mean, and the coordinates have variance one, so each adds the covariance
        of the mean once more. Beyond the coordinates, only the mean's variance is added.
        """
        covariance = self.covariance + (1 + n_groups) * mean_covariance
        return GaussianPrior.of_covariance(
            self.mean, covariance, self.beyond + mean_variance_beyond
        )

    def widened(self, more: Float) -> "GaussianPrior":
        """Return the prior with a larger covariance of the first coordinates."""
        covariance, size = self.covariance, len(more)
        covariance[:size, :size] += more
        return GaussianPrior.of_covariance(self.mean, covariance, self.beyond)

    def with_coordinate(
        self, mean: float, deviation: float, at: int | None = None
    ) -> "GaussianPrior":
        """Return the prior with one more coordinate, independent of the others; last, or ``at``."""
        at = len(self.mean) if at is None else at
        loadings = np.insert(self.loadings, at, 0.0, axis=0)
        means, residual = np.insert(self.mean, at, mean), np.insert(self.residual, at, deviation)
        return GaussianPrior(means, loadings, residual, beyond=self.beyond)

    def shifted(self, shifts: "Float | MeanShifts | None") -> "GaussianPrior":
        """Return the prior with each user's shift of the mean, in the first coordinates."""
        if shifts is None:
            return self
        if isinstance(shifts, MeanShifts):
            return replace(self, shifts=shifts.padded(len(self.mean)))
        more = len(self.mean) - shifts.shape[1]
        return replace(self, shifts=np.pad(shifts, ((0, 0), (0, more))))

    def without_correlations(self) -> "GaussianPrior":
        """Return the prior with the same variances, and coordinates that are independent."""
        deviations = np.sqrt(self.covariance.diagonal())
        return GaussianPrior(self.mean, np.zeros((len(self.mean), 0)), deviations)

    def truncated(self, rank: int, n_weights: int) -> "GaussianPrior":
        """Return the prior with only its strongest directions, and the rest averaged."""
        covariance = self.covariance
        values, vectors = np.linalg.eigh(covariance[:n_weights, :n_weights])
        values, vectors = values[::-1], vectors[:, ::-1]
        rest = float(values[rank:].mean()) if rank < n_weights else float(values[-1])
        rest = max(rest, ROUNDING * float(values[0]))
        directions = np.zeros((len(covariance), rank))
        lengths = np.sqrt(np.maximum(values[:rank] - rest, ROUNDING * values[0]))
        directions[:n_weights] = vectors[:, :rank] * lengths
        crossed = covariance[n_weights:, :n_weights] @ vectors[:, :rank]
        directions[n_weights:] = crossed / lengths
        residual = np.full(len(covariance), np.sqrt(rest))
        whole = covariance.diagonal()[n_weights:]
        own = whole - (directions[n_weights:] ** 2).sum(axis=1)
        residual[n_weights:] = np.sqrt(np.maximum(own, 0.01 * whole))
        return GaussianPrior(self.mean, directions / residual[:, None], residual)

    def means(self, users: Index) -> Float:
        """Return users' means, shape (b, p), by their positions."""
        if self.shifts is None:
            return np.repeat(self.mean[None], len(users), axis=0)
        return np.asarray(self.mean + self.shifts[users])

    @property
    def rank(self) -> int:
        """How many leading directions there are."""
        return int(self.loadings.shape[1])

    @cached_property
    def _leading(self) -> tuple[Float, Float]:
        """The left singular vectors of F, and the square roots of 1 + its squared values."""
        vectors, values, _ = np.linalg.svd(self.loadings, full_matrices=False)
        return vectors, np.sqrt(1.0 + values**2)

    @property
    def covariance(self) -> Float:
        """The matrix Omega."""
        return np.asarray(self.root @ self.root.T)

    @cached_property
    def root(self) -> Float:
        """A square matrix L with L L' = Omega."""
        vectors, lengths = self._leading
        inner = np.eye(len(self.mean)) + (vectors * (lengths - 1.0)) @ vectors.T
        return np.asarray(self.residual[:, None] * inner)

    def whitened(self, rows: Float) -> Float:
        """Return rows @ root, shape (..., p), in time proportional to the rank."""
        if 2 * self.rank > len(self.mean):
            return np.asarray(rows @ self.root)
        vectors, lengths = self._leading
        scaled = rows * self.residual
        if self.rank:
            scaled += ((scaled @ vectors) * (lengths - 1.0)) @ vectors.T
        return np.asarray(scaled)

    def whitened_columns(self, columns: Float) -> Float:
        """Return columns, shape (b, p, n), times root from the left, each in one piece."""
        # So few coordinates are multiplied by the whole root: fewer passes over rows count for
        # more.
        if 2 * self.rank > len(self.mean) or len(self.mean) <= 32:
            return np.asarray(self.root.T @ columns)
        rows = self.whitened(columns.transpose(0, 2, 1))
        return np.ascontiguousarray(rows.transpose(0, 2, 1))

    @cached_property
    def inverse_root(self) -> Float:
        """The inverse of ``root``."""
        vectors, lengths = self._leading
        inner = np.eye(len(self.mean)) + (vectors * (1.0 / lengths - 1.0)) @ vectors.T
        return np.asarray(inner / self.residual)

    @cached_property
    def inverse_middle(self) -> Float:
        """The matrix (I + F F')^-1/2."""
        return np.asarray(self.inverse_root * self.residual)

    @property
    def scaled_loadings(self) -> Float:
        """B = D F, shape (p, k): the leading directions, in units of the weights."""
        return np.asarray(self.loadings * self.residual[:, None])

    def directions(self, rank: int, n_weights: int) -> Float:
        """Return an orthonormal basis, shape (n_weights, rank), of the leading directions."""
        _, vectors = np.linalg.eigh(self.covariance[:n_weights, :n_weights])
        leading = vectors[:, ::-1][:, :rank]
        if not rank:
            return np.asarray(leading)
        # The sign is arbitrary: the largest weight is positive.
        largest = np.abs(leading).argmax(axis=0)
        return np.asarray(leading * np.sign(leading[largest, np.arange(rank)]))


@dataclass(frozen=True)
class UserPenalty:
    """The penalties (m + Dz)'P(m + Dz) / 2 of a block of users.

    With E = D'PD, the prior of z becomes N(c, A A), where A = (I + E)^-1/2 = I + Q K Q' and
    c = -A A D'Pm.

    Examples
    --------
    >>> penalty = UserPenalty(np.array([[[3.0]]]), np.array([[0.0, 1.0]]))
    >>> penalty.of_vectors(np.ones((1, 2))).round(6)
    array([[1. , 0.5]])
    """

    precision: Float  # (b, r, r): P: each user's
    directions: Float  # (r, p): D: that of all
    means: Float | None = None  # (b, r): m, the prior means of factor weights, unless zero

    def of(self, users: Index) -> "UserPenalty":
        """Return the penalties of some of the users, by their places in the block."""
        means = None if self.means is None else self.means[users]
        return UserPenalty(self.precision[users], self.directions, means)

    @cached_property
    def centre(self) -> Float:
        """c, shape (b, p)."""
        if self.means is None:
            return np.zeros((len(self.precision), self.directions.shape[1]))
        slope = times(self.precision, self.means) @ self.directions
        return -self.of_vectors(self.of_vectors(slope))

    @cached_property
    def at_centre(self) -> Float | float:
        """Minus the log-density of the prior at its mode c, shape (b,)."""
        if self.means is None:
            return 0.0
        v = self.means + self.centre @ self.directions.T
        return 0.5 * row_dots(times(self.precision, self.means), v)

    @cached_property
    def added(self) -> Float:
        """E, shape (b, p, p): what is added to the precision of z."""
        return np.asarray(self.directions.T @ (self.precision @ self.directions))

    def gradient(self, vectors: Float) -> Float:
        """Return E times vectors, shape (b, p)."""
        return times(self.precision, vectors @ self.directions.T) @ self.directions

    @cached_property
    def basis(self) -> Float:
        """Q: orthonormal directions, shape (p, r)."""
        return np.asarray(np.linalg.qr(self.directions.T)[0])

    @cached_property
    def _axes(self) -> tuple[Float, Float]:
        """The eigenvalues and eigenvectors of E in the basis Q."""
        turned = self.basis.T @ self.directions.T
        values, vectors = np.linalg.eigh(turned @ self.precision @ turned.T)
        return np.maximum(values, 0.0), vectors

    @cached_property
    def inner(self) -> Float:
        """K: symmetric matrices, shape (b, r, r)."""
        values, vectors = self._axes
        shrunk = 1.0 / np.sqrt(1.0 + values) - 1.0
        return np.asarray((vectors * shrunk[:, None, :]) @ vectors.transpose(0, 2, 1))

    @property
    def log_determinant(self) -> Float:
        """Half of log |I + E|, shape (b,)."""
        return np.asarray(0.5 * np.log1p(self._axes[0]).sum(axis=1))

    def of_rows(self, rows: Float) -> Float:
        """Return rows, shape (b, n, p), times A."""
        return np.asarray(rows + ((rows @ self.basis) @ self.inner) @ self.basis.T)

    def of_vectors(self, vectors: Float) -> Float:
        """Return A times vectors, shape (b, p)."""
        return self.of_rows(vectors[:, None, :])[:, 0]

    def variance_reduction(self) -> Float:
        """Return matrices K, shape (b, r, p), with A A = I - K'K."""
        values, vectors = np.linalg.eigh(-(2.0 * self.inner + self.inner @ self.inner))
        rows = (vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]).transpose(0, 2, 1)
        return np.asarray(rows @ self.basis.T)

    def squared(self) -> Float:
        """Return the sum over users of A A."""
        both = (2.0 * self.inner + self.inner @ self.inner).sum(axis=0)
        return np.asarray(
            len(self.inner) * np.eye(len(self.basis)) + self.basis @ both @ self.basis.T
        )
