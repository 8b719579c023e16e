"""Low rank: the trace norm, and the trace norm with a cap."""

from dataclasses import dataclass

import numpy as np

from likeminds._util.array_types import Float
from likeminds.components.component import PerUser
from likeminds.components.singular import SingularValues


@dataclass(frozen=True)
class LowRank(PerUser):
    """Low rank: alpha times the sum of the singular values after the first ``n_free``.

    With ``n_free=0`` that is the trace norm, which is convex.

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

    def value(self, part: Float) -> float:
        """Return alpha times the sum of the singular values that are not free."""
        return self.alpha * float(SingularValues.of(part).sigma[self.n_free :].sum())

    def prox(self, point: Float, step: float) -> Float:
        """Shrink the singular values that are not free by the same amount, down to zero."""
        found = SingularValues.of(point)
        left = np.maximum(found.sigma - step * self.alpha, 0.0)
        left[: self.n_free] = found.sigma[: self.n_free]
        return found.scaled(left / np.where(found.sigma > 0, found.sigma, 1.0))

    def residual(self, part: Float, gradient: Float) -> float:
        """Return the distance; across the part's directions, singular values count beyond alpha."""
        found = SingularValues.of(part)
        there = found.not_zero
        left, right = found.left_and_right(there)
        across = gradient - left @ (left.T @ gradient)
        across -= (across @ right) @ right.T
        penalised = np.arange(len(found.sigma))[there] >= self.n_free
        along = gradient - across + self.alpha * (left * penalised) @ right.T
        # Where the free directions are not used up, a new one costs nothing.
        forgiven = self.alpha if there.sum() >= self.n_free else 0.0
        beyond = np.maximum(SingularValues.of(across).sigma - forgiven, 0.0)
        return float(np.hypot(np.linalg.norm(along), np.linalg.norm(beyond)))

    def silencing_alpha(self, gradient: Float) -> float:
        """Return the smallest alpha at which the part is zero, given the gradient at zero."""
        return float(SingularValues.of(gradient).sigma[0])


@dataclass(frozen=True)
class CappedLowRank(PerUser):
    """Low rank, with capped singular values: alpha * sum_j min(sigma_j, threshold).

    What is above the threshold costs no more for being large, so that strong directions are
    not shrunk. The penalty is not convex; solvers take it in stages (see `stage`). With an
    infinite threshold it is the trace norm.

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
        """Return the penalty to minimise next: what is above the threshold now is free.

        Up to a constant it lies nowhere below this penalty and meets it at the part, so that
        to lower the one is to lower the other.
        """
        n_free = int((SingularValues.of(part).sigma > self.threshold).sum())
        return LowRank(self.alpha, n_free, self.name)

    def value(self, part: Float) -> float:
        """Return alpha times the sum of the singular values, each capped."""
        sigma = SingularValues.of(part).sigma
        return self.alpha * float(np.minimum(sigma, self.threshold).sum())

    def prox(self, point: Float, step: float) -> Float:
        """Shrink each singular value as below the cap, or leave it, whichever is cheaper."""
        found = SingularValues.of(point)
        price = step * self.alpha
        below = np.minimum(np.maximum(found.sigma - price, 0.0), self.threshold)
        above = np.maximum(found.sigma, self.threshold)
        if np.isinf(self.threshold):
            best = below
        else:
            cost_below = 0.5 * (below - found.sigma) ** 2 + price * below
            cost_above = 0.5 * (above - found.sigma) ** 2 + price * self.threshold
            best = np.where(cost_below <= cost_above, below, above)
        return found.scaled(best / np.where(found.sigma > 0, found.sigma, 1.0))

    def residual(self, part: Float, gradient: Float) -> float:
        """Return the distance for the stage that the part belongs to."""
        return self.stage(part).residual(part, gradient)

    def silencing_alpha(self, gradient: Float) -> float:
        """Return the smallest alpha at which the part is zero, given the gradient at zero."""
        return LowRank(self.alpha).silencing_alpha(gradient)
