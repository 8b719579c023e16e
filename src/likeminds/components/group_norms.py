"""Penalties that are sums of lengths: they set whole rows, columns or entries to zero."""

from dataclasses import dataclass

import numpy as np

from likeminds._util.array_types import Float
from likeminds.components.component import PerUser


class GroupNorm(PerUser):
    """Base: a subclass says of what the lengths are taken.

    The penalty is alpha times their sum, the prox shortens each by the same amount, and at a
    piece of length zero the subdifferential is the ball of radius alpha.
    """

    alpha: float

    def lengths(self, part: Float) -> Float:
        """Return the lengths, in a shape that broadcasts against the part."""
        raise NotImplementedError

    def value(self, part: Float) -> float:
        """Return alpha times the sum of the lengths."""
        return self.alpha * float(self.lengths(part).sum())

    def prox(self, point: Float, step: float) -> Float:
        """Shorten every piece by the same length, down to zero."""
        length = self.lengths(point)
        shortened = np.maximum(length - step * self.alpha, 0.0)
        shrunk: Float = point * (shortened / np.where(length > 0, length, 1.0))
        return shrunk

    def residual(self, part: Float, gradient: Float) -> float:
        """Return the distance, by piece: at a zero piece, the gradient's excess over alpha."""
        length = self.lengths(part)
        slope = gradient + self.alpha * part / np.where(length > 0, length, 1.0)
        distance = self.lengths(slope)
        at_zero = length == 0
        distance[at_zero] = np.maximum(distance[at_zero] - self.alpha, 0.0)
        return float(np.linalg.norm(distance))

    def silencing_alpha(self, gradient: Float) -> float:
        """Return the smallest alpha at which the part is zero, given the gradient at zero."""
        return float(self.lengths(gradient).max())


@dataclass(frozen=True)
class Personal(GroupNorm):
    """The personal level, zero for most people: the penalty is alpha * sum of |P_i|.

    Examples
    --------
    >>> Personal(alpha=1.0).prox(np.array([[3.0, 4.0], [0.3, 0.4]]), step=1.0)
    array([[2.4, 3.2],
           [0. , 0. ]])
    """

    alpha: float
    name: str = "personal"

    def lengths(self, part: Float) -> Float:
        """Return the length of each person's row."""
        return np.asarray(np.linalg.norm(part, axis=1, keepdims=True))


@dataclass(frozen=True)
class SharedFeatures(GroupNorm):
    """Features that matter to all or to none: alpha * sum over features of their column's length.

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
    """Few weights that are not zero: alpha times the sum of their absolute values.

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
