"""Components of multi-task learning: shared mean, shared or few features, low rank, clusters."""

from dataclasses import dataclass

import numpy as np

from likeminds._util.array_types import Float
from likeminds.components.component import (
    GroupNorm,
    PerUser,
    SingularValues,
    Spectral,
    singular_values,
)


@dataclass(frozen=True)
class MeanRegularised(PerUser):
    """Ridge penalty on deviations from the mean: alpha * sum_i |P_i - mean of P|^2.

    Examples
    --------
    >>> MeanRegularised(alpha=0.5).prox(np.array([[1.0, 2.0], [3.0, 6.0]]), step=1.0)
    array([[1.5, 3. ],
           [2.5, 5. ]])
    """

    alpha: float
    name: str = "near_mean"

    def value(self, part: Float) -> float:
        """Return alpha times the squared distances from the mean."""
        return self.alpha * float(np.sum((part - part.mean(axis=0)) ** 2))

    def prox(self, point: Float, step: float) -> Float:
        """Move all users towards the mean."""
        mean = point.mean(axis=0)
        return np.asarray(mean + (point - mean) / (1.0 + 2.0 * step * self.alpha))

    def residual(self, part: Float, gradient: Float) -> float:
        """Return |gradient + 2 alpha (P - mean of P)|."""
        deviation = part - part.mean(axis=0)
        return float(np.linalg.norm(gradient + 2.0 * self.alpha * deviation))


@dataclass(frozen=True)
class SharedFeatures(GroupNorm):
    """Feature selection shared by all users: alpha * sum of lengths of columns.

    Examples
    --------
    >>> SharedFeatures(alpha=1.0).prox(np.array([[3.0, 0.3], [4.0, 0.4]]), step=1.0)
    array([[2.4, 0. ],
           [3.2, 0. ]])
    """

    alpha: float
    name: str = "shared"

    def lengths(self, part: Float) -> Float:
        """Return the length of each feature's column."""
        return np.asarray(np.linalg.norm(part, axis=0, keepdims=True))


@dataclass(frozen=True)
class Sparse(GroupNorm):
    """Few non-zero weights: alpha times the sum of their absolute values.

    Examples
    --------
    >>> Sparse(alpha=1.0).prox(np.array([[3.0, -0.5], [-4.0, 1.0]]), step=1.0)
    array([[ 2., -0.],
           [-3.,  0.]])
    """

    alpha: float
    name: str = "sparse"

    def lengths(self, part: Float) -> Float:
        """Return the absolute value of each entry."""
        return np.abs(part)


class _TraceNorm(Spectral):
    """Base class of penalties that equal the trace norm near zero."""

    alpha: float

    def silencing_alpha(self, gradient: Float) -> float:
        """Return the smallest alpha at which the part is zero, given the gradient at zero."""
        return float(singular_values(gradient)[0])


@dataclass(frozen=True)
class LowRank(_TraceNorm):
    """Low rank: alpha times the sum of the singular values after the first ``n_free``.

    With ``n_free=0``, this is the trace norm, which is convex.

    Examples
    --------
    >>> part = np.array([[3.0, 0.0], [0.0, 1.5]])
    >>> LowRank(alpha=1.0).value(part)
    4.5
    >>> LowRank(alpha=1.0).prox(part, step=1.0)
    array([[2. , 0. ],
           [0. , 0.5]])
    """

    alpha: float
    n_free: int = 0
    name: str = "low_rank"

    def value_at(self, sigma: Float) -> float:
        """Return alpha times the sum of the penalised singular values."""
        return self.alpha * float(sigma[self.n_free :].sum())

    def shrink(self, sigma: Float, step: float) -> Float:
        """Shrink the penalised singular values by the same amount, down to zero."""
        left = np.maximum(sigma - step * self.alpha, 0.0)
        left[: self.n_free] = sigma[: self.n_free]
        return left

    def residual(self, part: Float, gradient: Float) -> float:
        """Return the distance; in new directions, only singular values above alpha count."""
        found = SingularValues.of(part)
        there = found.not_zero
        left, right = found.left_and_right(there)
        across = gradient - left @ (left.T @ gradient)
        across -= (across @ right) @ right.T
        penalised = np.arange(len(found.sigma))[there] >= self.n_free
        along = gradient - across + self.alpha * (left * penalised) @ right.T
        # Unless all free directions are used, a new one has no penalty.
        allowance = self.alpha if there.sum() >= self.n_free else 0.0
        beyond = np.maximum(singular_values(across) - allowance, 0.0)
        return float(np.hypot(np.linalg.norm(along), np.linalg.norm(beyond)))


@dataclass(frozen=True)
class CappedLowRank(_TraceNorm):
    """Low rank, with capped singular values: alpha * sum_j min(sigma_j, threshold).

    Strong directions are not shrunk. The penalty is not convex, so solvers minimise it in stages
    (see `stage`). With an infinite threshold, it is the trace norm.

    Examples
    --------
    >>> part = np.array([[3.0, 0.0], [0.0, 1.5]])
    >>> CappedLowRank(alpha=1.0, threshold=2.0).value(part)
    3.5
    >>> CappedLowRank(alpha=1.0, threshold=2.0).prox(part, step=1.0)
    array([[3. , 0. ],
           [0. , 0.5]])
    """

    alpha: float
    threshold: float
    name: str = "low_rank"

    def stage(self, part: Float) -> LowRank:
        """Return the next penalty, without cost for singular values above the threshold.

        Up to a constant, it is an upper bound of this penalty, with equality at the part.
        """
        n_free = int((singular_values(part) > self.threshold).sum())
        return LowRank(self.alpha, n_free, self.name)

    def value_at(self, sigma: Float) -> float:
        """Return alpha times the sum of the singular values, each capped."""
        return self.alpha * float(np.minimum(sigma, self.threshold).sum())

    def shrink(self, sigma: Float, step: float) -> Float:
        """Shrink or keep each singular value, whichever has the lower objective."""
        price = step * self.alpha
        below = np.minimum(np.maximum(sigma - price, 0.0), self.threshold)
        above = np.maximum(sigma, self.threshold)
        if np.isinf(self.threshold):
            return below
        cost_below = 0.5 * (below - sigma) ** 2 + price * below
        cost_above = 0.5 * (above - sigma) ** 2 + price * self.threshold
        return np.where(cost_below <= cost_above, below, above)

    def residual(self, part: Float, gradient: Float) -> float:
        """Return the distance for the stage at this part."""
        return self.stage(part).residual(part, gradient)


@dataclass(frozen=True)
class Clustered(Spectral):
    """Clusters of users: the convex relaxation of k-means on their weights.

    The penalty is rho1 eta (1 + eta) tr(W' (eta + M)^-1 W), with eta = rho2 / rho1, at the best
    relaxed membership matrix M. The eigenvalues mu of M are between 0 and 1 and sum up to
    ``n_clusters`` (Jacob, Bach and Vert, 2008; Zhou, Chen and Ye, 2011). The best M shares its
    eigenvectors with the weights, so the penalty is a function of their singular values. Directions
    with mu = 1 cost rho2 sigma^2, those with mu = 0 cost (rho1 + rho2) sigma^2.

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

    def value_at(self, sigma: Float) -> float:
        """Return the penalty at the best M."""
        return self._price * float(np.sum(sigma**2 / (self._eta + self._mu(sigma, self._eta))))

    def shrink(self, sigma: Float, step: float) -> Float:
        """Shrink each direction by its own factor, given the best M.

        With sigma eliminated, mu is found by water-filling over the point's singular values,
        with a higher ground.
        """
        lift = 2.0 * step * self._price
        denominator = self._eta + self._mu(sigma, self._eta + lift)
        return sigma * (denominator / (denominator + lift))

    def residual(self, part: Float, gradient: Float) -> float:
        """Return |gradient + 2 rho1 eta (1 + eta) (eta + M)^-1 W|."""
        found = SingularValues.of(part)
        slope = 2.0 * self._price / (self._eta + self._mu(found.sigma, self._eta))
        return float(np.linalg.norm(gradient + found.scaled(slope)))

    def matrix(self, part: Float) -> Float:
        """Return M, shape (n_users, n_users): the relaxed membership matrix."""
        found = SingularValues.of(part)
        there = found.not_zero
        left, _ = found.left_and_right(there)
        mu = self._mu(found.sigma, self._eta)[there]
        return np.asarray((left * mu) @ left.T)

    @property
    def _eta(self) -> float:
        return self.rho2 / self.rho1

    @property
    def _price(self) -> float:
        return self.rho1 * self._eta * (1.0 + self._eta)

    def _mu(self, sigma: Float, ground: float) -> Float:
        """Return the mu that minimise sum_j sigma_j^2 / (ground + mu_j), by water-filling.

        Each is sigma_j times a level, less the ground, clipped to 0 and 1. Their sum is piecewise
        linear in the level.
        """
        full = sigma > 0
        if full.sum() <= self.n_clusters:
            return full.astype(np.float64)
        positive = sigma[full]
        corners = np.sort(np.concatenate([ground / positive, (1.0 + ground) / positive]))
        sums = np.clip(corners[:, None] * positive - ground, 0.0, 1.0).sum(axis=1)
        level = np.interp(self.n_clusters, sums, corners)
        return np.asarray(np.clip(level * sigma - ground, 0.0, 1.0))
