"""People in clusters: the convex relaxation of k-means on their weights.

In the symbols of clustered multi-task learning (Jacob, Bach and Vert, 2008; Zhou, Chen and Ye,
2011): eta is rho2 / rho1, and the relaxed membership matrix M of people x people has eigenvalues
mu between 0 and 1 that sum up to the number of clusters.

At its best, M shares its eigenvectors with the weights. So the penalty is a function of the
weights' singular values alone, with mu found by water-filling:

    rho1 eta (1 + eta) min over mu of sum_j sigma_j^2 / (eta + mu_j).
"""

from dataclasses import dataclass

import numpy as np

from likeminds._util.array_types import Float
from likeminds.components.component import PerUser
from likeminds.components.singular import SingularValues


@dataclass(frozen=True)
class Clustered(PerUser):
    """People near ``n_clusters`` centres: rho1 eta (1 + eta) tr(W' (eta + M)^-1 W).

    Minimised over M with eigenvalues between 0 and 1 and trace ``n_clusters``; eta is
    rho2 / rho1. Directions with mu = 1 cost rho2 sigma^2, those with mu = 0 cost
    (rho1 + rho2) sigma^2.

    Examples
    --------
    >>> part = np.array([[3.0, 0.0], [0.0, 1.0]])
    >>> clustered = Clustered(rho1=1.0, rho2=1.0, n_clusters=1)
    >>> clustered.matrix(part)
    array([[1., 0.],
           [0., 0.]])
    >>> clustered.value(part)  # 1 * 3^2 + 2 * 1^2
    11.0
    """

    rho1: float
    rho2: float
    n_clusters: float
    name: str = "clustered"

    def __post_init__(self) -> None:
        if not (self.rho1 > 0 and self.rho2 > 0):
            raise ValueError(
                f"rho1 and rho2 must be larger than 0, but are {self.rho1:g} and {self.rho2:g}."
            )

    def value(self, part: Float) -> float:
        """Return the penalty at the best M."""
        sigma = SingularValues.of(part).sigma
        return self._price * float(
            np.sum(sigma**2 / (self._eta + self._fill_level(sigma, self._eta)))
        )

    def prox(self, point: Float, step: float) -> Float:
        """Shrink each direction by its own factor, the best M given.

        With sigma eliminated, mu is found by water-filling over the point's singular values,
        with a higher ground.
        """
        found = SingularValues.of(point)
        lift = 2.0 * step * self._price
        kept = self._eta + self._fill_level(found.sigma, self._eta + lift)
        return found.scaled(kept / (kept + lift))

    def residual(self, part: Float, gradient: Float) -> float:
        """Return |gradient + 2 rho1 eta (1 + eta) (eta + M)^-1 W|."""
        found = SingularValues.of(part)
        slope = 2.0 * self._price / (self._eta + self._fill_level(found.sigma, self._eta))
        return float(np.linalg.norm(gradient + found.scaled(slope)))

    def matrix(self, part: Float) -> Float:
        """Return M, shape (n_users, n_users): the relaxed membership matrix."""
        found = SingularValues.of(part)
        there = found.not_zero
        left, _ = found.left_and_right(there)
        mu = self._fill_level(found.sigma, self._eta)[there]
        return np.asarray((left * mu) @ left.T)

    @property
    def _eta(self) -> float:
        return self.rho2 / self.rho1

    @property
    def _price(self) -> float:
        return self.rho1 * self._eta * (1.0 + self._eta)

    def _fill_level(self, sigma: Float, ground: float) -> Float:
        """Return the mu that minimise sum_j sigma_j^2 / (ground + mu_j).

        They are sigma_j times a level, less the ground, between 0 and 1. Their sum grows with
        the level in straight pieces, so that the level is read off between two corners.
        """
        full = sigma > 0
        if full.sum() <= self.n_clusters:
            return full.astype(np.float64)
        positive = sigma[full]
        corners = np.sort(np.concatenate([ground / positive, (1.0 + ground) / positive]))
        sums = np.clip(corners[:, None] * positive - ground, 0.0, 1.0).sum(axis=1)
        level = np.interp(self.n_clusters, sums, corners)
        return np.asarray(np.clip(level * sigma - ground, 0.0, 1.0))
