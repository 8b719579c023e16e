"""A quadratic penalty of each person besides the prior, as a prior of their own.

With the prior N(0, I) of z and a penalty z'Ez / 2 on top, z = A y with y ~ N(0, I) and
A = (I + E)^-1/2. E lives in a few directions that all people share, so that A does, too.
"""

from dataclasses import dataclass

import numpy as np

from likeminds._support.arrays import Float, Index


@dataclass(frozen=True)
class Held:
    """The matrices A = I + Q K Q' of a block of people.

    Attributes
    ----------
    basis : array of shape (p, r)
        Q: orthonormal directions.
    inner : array of shape (b, r, r)
        K: symmetric matrices.
    log_determinant : array of shape (b,)
        Half of log |I + E|.

    Examples
    --------
    >>> held = Held.of_precision(np.array([[[3.0]]]), np.array([[0.0, 1.0]]))
    >>> held.of_vectors(np.ones((1, 2))).round(6)
    array([[1. , 0.5]])
    """

    basis: Float
    inner: Float
    log_determinant: Float

    @classmethod
    def of_precision(cls, precision: Float, directions: Float) -> "Held":
        """Return A for E = D'PD, with directions D (r, p) and matrices P (b, r, r)."""
        basis, triangle = np.linalg.qr(directions.T)
        values, vectors = np.linalg.eigh(triangle @ precision @ triangle.T)
        values = np.maximum(values, 0.0)
        shrunk = 1.0 / np.sqrt(1.0 + values) - 1.0
        inner = (vectors * shrunk[:, None, :]) @ vectors.transpose(0, 2, 1)
        return cls(basis, inner, 0.5 * np.log1p(values).sum(axis=1))

    def of(self, people: Index) -> "Held":
        """Return the matrices of some of the people, by their places in the block."""
        return Held(self.basis, self.inner[people], self.log_determinant[people])

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
