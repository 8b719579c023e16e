"""Forms of Omega as vectors that are free to move: all of it, deviations alone, low rank."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from likeminds._util.array_types import Float

# How far a logarithm of a standard deviation, and anything else in units of such, may move.
_LONGEST_LOG, _LONGEST = 1.0, 2.0

Bounds = list[tuple[float, float]]


class CovarianceParameters(Protocol):
    """Matrices Omega near a first one, as a function of a vector, which starts at ``start``."""

    @property
    def start(self) -> Float:
        """The vector of the first matrix."""
        ...

    @property
    def bounds(self) -> Bounds:
        """How far each entry may move."""
        ...

    def covariance(self, vector: Float) -> Float:
        """Return Omega."""
        ...

    def slope(self, vector: Float, by_covariance: Float) -> Float:
        """Return the gradient by the vector, given the symmetric one by Omega."""
        ...


@dataclass(frozen=True)
class FullCovariance(CovarianceParameters):
    """Omega = R C C' R', with R R' the first one and C a lower triangle, its diagonal an exp."""

    root: Float

    @property
    def start(self) -> Float:
        """Zeros: C is the identity."""
        return np.zeros(len(self.root) * (len(self.root) + 1) // 2)

    @property
    def bounds(self) -> Bounds:
        """A factor of e for the diagonal, two standard deviations for all else."""
        rows, columns = np.tril_indices(len(self.root))
        reach = np.where(rows == columns, _LONGEST_LOG, _LONGEST)
        return [(-float(far), float(far)) for far in reach]

    def covariance(self, vector: Float) -> Float:
        """Return Omega."""
        whole = self.root @ self._triangle(vector)
        return np.asarray(whole @ whole.T)

    def slope(self, vector: Float, by_covariance: Float) -> Float:
        """Return the gradient by the vector."""
        triangle = self._triangle(vector)
        by_triangle = 2.0 * self.root.T @ by_covariance @ self.root @ triangle
        np.fill_diagonal(by_triangle, by_triangle.diagonal() * triangle.diagonal())
        return np.asarray(by_triangle[np.tril_indices(len(triangle))])

    def _triangle(self, vector: Float) -> Float:
        triangle = np.zeros_like(self.root)
        triangle[np.tril_indices(len(triangle))] = vector
        np.fill_diagonal(triangle, np.exp(triangle.diagonal()))
        return triangle


@dataclass(frozen=True)
class ScaledCovariance(CovarianceParameters):
    """Omega = D R D, with R the first one, and D = diag(exp(vector)): correlations stay."""

    first: Float

    @property
    def start(self) -> Float:
        """Zeros: D is the identity."""
        return np.zeros(len(self.first))

    @property
    def bounds(self) -> Bounds:
        """A factor of e."""
        return [(-_LONGEST_LOG, _LONGEST_LOG)] * len(self.first)

    def covariance(self, vector: Float) -> Float:
        """Return Omega."""
        return np.asarray(self.first * np.exp(vector[:, None] + vector))

    def slope(self, vector: Float, by_covariance: Float) -> Float:
        """Return the gradient by the vector."""
        return np.asarray(2.0 * (by_covariance * self.covariance(vector)).sum(axis=1))


@dataclass(frozen=True)
class LowRankCovariance(CovarianceParameters):
    """Omega = B B' + diag(r^2): directions B, and residuals r.

    ``together`` numbers the residuals: coordinates with the same number share one.
    """

    directions: Float
    residual: Float
    together: "np.ndarray[tuple[int], np.dtype[np.intp]]"

    @property
    def start(self) -> Float:
        """B, and zeros: residuals are as they were."""
        unit = self.directions / self.residual[:, None]
        return np.concatenate([unit.ravel(), np.zeros(int(self.together.max()) + 1)])

    @property
    def bounds(self) -> Bounds:
        """A factor of e for residuals, twice that many of them for directions."""
        start = self.start
        reach = np.full(len(start), _LONGEST)
        reach[self.directions.size :] = _LONGEST_LOG
        return [(float(x - far), float(x + far)) for x, far in zip(start, reach, strict=True)]

    def covariance(self, vector: Float) -> Float:
        """Return Omega."""
        directions, residual = self._parts(vector)
        return np.asarray(directions @ directions.T + np.diag(residual**2))

    def slope(self, vector: Float, by_covariance: Float) -> Float:
        """Return the gradient by the vector."""
        directions, residual = self._parts(vector)
        by_directions = 2.0 * by_covariance @ directions * self.residual[:, None]
        by_logs = np.bincount(self.together, 2.0 * by_covariance.diagonal() * residual**2)
        return np.concatenate([by_directions.ravel(), by_logs])

    def _parts(self, vector: Float) -> tuple[Float, Float]:
        flat, logs = vector[: self.directions.size], vector[self.directions.size :]
        directions = flat.reshape(self.directions.shape) * self.residual[:, None]
        return directions, self.residual * np.exp(logs)[self.together]
