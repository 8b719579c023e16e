"""What people are drawn from: N(mean, Omega), with Omega of low rank plus a residual.

    Omega = D (I + F F') D,      D = diag(s, ..., s, v)

where s is the standard deviation of a weight's residual and v that of the intercept's. As many
columns of F as coordinates less one make Omega as good as any matrix; fewer leave the crowd
less room than it has labels for. This is the one place where the formula meets its names:
``residual`` is the diagonal of D, ``loadings`` is F.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from likeminds.rows import Float


@dataclass(frozen=True)
class Prior:
    """A normal distribution of people.

    Attributes
    ----------
    mean : array of shape (p,)
        The consensus, and last the mean intercept where there is one.
    loadings : array of shape (p, k)
        The leading directions, in units of the residual.
    residual : array of shape (p,)
        Standard deviations of what the leading directions do not explain.

    Examples
    --------
    >>> prior = Prior(np.zeros(2), np.array([[3.0], [0.0]]), np.array([0.5, 0.5]))
    >>> prior.covariance
    array([[2.5 , 0.  ],
           [0.  , 0.25]])
    >>> np.allclose(prior.root @ prior.root.T, prior.covariance)
    True
    """

    mean: Float
    loadings: Float
    residual: Float

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
        vectors, stretch = self._leading
        inner = np.eye(len(self.mean)) + (vectors * (stretch - 1.0)) @ vectors.T
        return np.asarray(self.residual[:, None] * inner)

    def whitened(self, rows: Float) -> Float:
        """Return rows @ root, shape (..., p), in time proportional to the rank."""
        vectors, stretch = self._leading
        scaled = rows * self.residual
        if self.rank:
            scaled += ((scaled @ vectors) * (stretch - 1.0)) @ vectors.T
        return np.asarray(scaled)

    @cached_property
    def inverse_root(self) -> Float:
        """The inverse of ``root``."""
        vectors, stretch = self._leading
        inner = np.eye(len(self.mean)) + (vectors * (1.0 / stretch - 1.0)) @ vectors.T
        return np.asarray(inner / self.residual)

    @cached_property
    def inverse_middle(self) -> Float:
        """The matrix (I + F F')^-1/2."""
        return np.asarray(self.inverse_root * self.residual)

    def directions(self, n_weights: int) -> Float:
        """Return an orthonormal basis, shape (n_weights, k), of what schools differ in."""
        inner = self.residual[:n_weights, None] * self.loadings[:n_weights]
        vectors, values, _ = np.linalg.svd(inner, full_matrices=False)
        kept = values > 1e-12 * max(values.max(initial=0.0), np.finfo(np.float64).tiny)
        return np.asarray(vectors[:, kept])

    def with_direction(self, direction: Float) -> "Prior":
        """Return the prior with one more leading direction (in units of the residual)."""
        wider = np.column_stack([self.loadings, direction])
        return Prior(self.mean, wider, self.residual)
