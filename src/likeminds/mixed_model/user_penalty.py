"""A quadratic penalty of each person besides the prior, as a prior of their own.

With the prior N(0, I) of z and a penalty z'Ez / 2 on top, z = A y with y ~ N(0, I) and
A = (I + E)^-1/2. E lives in a few directions that all people share, so that A does, too.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from likeminds._util.array_types import Float, Index
from likeminds._util.per_user_arrays import times


@dataclass(frozen=True)
class UserPenalty:
    """The penalties E = D'PD of a block of people, and the matrices A = I + Q K Q'.

    Examples
    --------
    >>> held = UserPenalty(np.array([[[3.0]]]), np.array([[0.0, 1.0]]))
    >>> held.of_vectors(np.ones((1, 2))).round(6)
    array([[1. , 0.5]])
    """

    precision: Float  # (b, r, r): P: everybody's
    directions: Float  # (r, p): D: that of all

    def of(self, people: Index) -> "UserPenalty":
        """Return the penalties of some of the people, by their places in the block."""
        return UserPenalty(self.precision[people], self.directions)

    @cached_property
    def added(self) -> Float:
        """E, shape (b, p, p): what is added to the precision of z."""
        return np.asarray(self.directions.T @ (self.precision @ self.directions))

    def pulls(self, vectors: Float) -> Float:
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

    def around(self, matrices: Float) -> Float:
        """Return A S A for matrices S, shape (b, p, p)."""
        return self.of_rows(self.of_rows(matrices).transpose(0, 2, 1))

    def known(self) -> Float:
        """Return matrices K, shape (b, r, p), with A A = I - K'K."""
        values, vectors = np.linalg.eigh(-(2.0 * self.inner + self.inner @ self.inner))
        rows = (vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]).transpose(0, 2, 1)
        return np.asarray(rows @ self.basis.T)

    def squared(self) -> Float:
        """Return the sum over people of A A."""
        both = (2.0 * self.inner + self.inner @ self.inner).sum(axis=0)
        return np.asarray(
            len(self.inner) * np.eye(len(self.basis)) + self.basis @ both @ self.basis.T
        )
