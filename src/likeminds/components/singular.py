"""Singular values of a part, from its shorter side: a whole SVD is never needed."""

from dataclasses import dataclass

import numpy as np

from likeminds._util.array_types import Bool, Float

# Singular values below this share of the largest are rounding: they count as zero.
_NEGLIGIBLE = 1e-11


@dataclass(frozen=True)
class SingularValues:
    """The singular values of a matrix, and its singular vectors on the shorter side.

    Attributes
    ----------
    part : array of shape (n_users, n_features)
        The matrix.
    sigma : array of shape (m,)
        Its singular values, the largest first; m is the length of the shorter side.
    vectors : array of shape (m, m)
        In its columns the singular vectors of the shorter side.
    """

    part: Float
    sigma: Float
    vectors: Float

    @classmethod
    def of(cls, part: Float) -> "SingularValues":
        """Find them, through the triangle of a QR decomposition: small, and exact to rounding."""
        tall = part if part.shape[0] >= part.shape[1] else part.T
        triangle = np.linalg.qr(tall, mode="r")
        _, sigma, transposed = np.linalg.svd(triangle)
        return cls(part, sigma, transposed.T)

    def scaled(self, factor: Float) -> Float:
        """Return the matrix with its singular values multiplied by the factors."""
        return self._times((self.vectors * factor) @ self.vectors.T)

    def left_and_right(self, which: Bool) -> tuple[Float, Float]:
        """Return some singular vectors of both sides; their values must not be zero."""
        near, sigma = self.vectors[:, which], self.sigma[which]
        if self._is_tall:
            return self.part @ near / sigma, near
        return near, self.part.T @ near / sigma

    @property
    def not_zero(self) -> Bool:
        """Which singular values are more than rounding."""
        more: Bool = self.sigma > _NEGLIGIBLE * self.sigma[0]
        return more

    @property
    def _is_tall(self) -> bool:
        n_users, n_features = self.part.shape
        return bool(n_users >= n_features)

    def _times(self, square: Float) -> Float:
        return np.asarray(self.part @ square if self._is_tall else square @ self.part)


def top_directions(part: Float, how_many: int) -> Float:
    """Return the first right singular vectors of a matrix, shape (n_features, how_many).

    They come from the Gram matrix of the shorter side: a whole SVD is never needed.
    """
    n_users, n_features = part.shape
    if n_users < n_features:
        left = np.linalg.eigh(part @ part.T)[1][:, ::-1][:, :how_many]
        basis, _ = np.linalg.qr(part.T @ left)
        return np.asarray(basis)
    return np.asarray(np.linalg.eigh(part.T @ part)[1][:, ::-1][:, :how_many])
