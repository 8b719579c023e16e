"""Ridge penalties: of a shared vector, and of people's deviations from their mean."""

from dataclasses import dataclass

import numpy as np

from likeminds._util.array_types import Float
from likeminds.components.component import PerUser


@dataclass(frozen=True)
class Consensus:
    """The consensus, one vector for everybody, with the ridge penalty alpha |theta|^2.

    Examples
    --------
    >>> Consensus(alpha=0.5).prox(np.array([2.0, 4.0]), step=1.0)
    array([1., 2.])
    """

    alpha: float
    name: str = "consensus"

    def zeros(self, n_users: int, n_features: int) -> Float:  # noqa: ARG002
        """Return a vector of zeros."""
        return np.zeros(n_features)

    def collect(self, gradient: Float) -> Float:
        """Sum over people."""
        total: Float = gradient.sum(axis=0)
        return total

    def value(self, part: Float) -> float:
        """Return alpha |theta|^2."""
        return self.alpha * float(part @ part)

    def prox(self, point: Float, step: float) -> Float:
        """Shrink towards zero."""
        return point / (1.0 + 2.0 * step * self.alpha)

    def residual(self, part: Float, gradient: Float) -> float:
        """Return |gradient + 2 alpha theta|."""
        return float(np.linalg.norm(gradient + 2.0 * self.alpha * part))


@dataclass(frozen=True)
class MeanRegularised(PerUser):
    """Ridge penalty on deviations from the mean, which is free: alpha * sum_i |P_i - mean of P|^2.

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
        """Move everybody towards the mean."""
        mean = point.mean(axis=0)
        return np.asarray(mean + (point - mean) / (1.0 + 2.0 * step * self.alpha))

    def residual(self, part: Float, gradient: Float) -> float:
        """Return |gradient + 2 alpha (P - mean of P)|."""
        away = part - part.mean(axis=0)
        return float(np.linalg.norm(gradient + 2.0 * self.alpha * away))
