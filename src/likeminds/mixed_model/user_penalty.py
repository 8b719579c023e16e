"""The penalty of users' weights for the uncertainty of item factors."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from likeminds._util.array_types import Float, Index
from likeminds._util.per_user_arrays import row_dots, times


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

    precision: Float  # (b, r, r): P of each user
    directions: Float  # (r, p): D, the same for all users
    means: Float | None = None  # (b, r): m, the prior means of factor weights, unless zero

    def of(self, users: Index) -> "UserPenalty":
        """Return the penalties of some users, by their places in the block."""
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
