"""What a person's weights are made of: the levels, each with its penalty.

A ranker is a list of components. Each owns one *part* (an array), adds it to everybody's
weights, and says what it costs. A new component is one class with the five methods of
`Component`; solvers ask for nothing else.

In the paper's symbols (Yang, Xu, Cao and Huang, AAAI 2019): `Consensus` is theta with
lambda1, `Group` is G with lambda2 and kappa, `Personal` is P with lambda3.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from likeminds.rows import Float


class Component(Protocol):
    """One level of the weights: a part, what it adds, what it costs."""

    @property
    def name(self) -> str:
        """What this level is called, in results and messages."""
        ...

    def zeros(self, n_people: int, n_features: int) -> Float:
        """Return the part that adds nothing."""
        ...

    def collect(self, gradient: Float) -> Float:
        """Return the loss's gradient by the part, given the one by everybody's weights.

        A part of the shape (n_people, n_features) has each person's gradient; one that
        all people share has their sum.
        """
        ...

    def value(self, part: Float) -> float:
        """Return the penalty."""
        ...

    def prox(self, point: Float, step: float) -> Float:
        """Return the part that minimises 1/2 |part - point|^2 + step * penalty."""
        ...

    def residual(self, part: Float, gradient: Float) -> float:
        """Return the distance of minus the gradient to the penalty's subdifferential."""
        ...


@dataclass(frozen=True)
class Consensus:
    """What everybody shares: one vector, with the penalty alpha |theta|^2.

    Examples
    --------
    >>> Consensus(alpha=0.5).prox(np.array([2.0, 4.0]), step=1.0)
    array([1., 2.])
    """

    alpha: float
    name: str = "consensus"

    def zeros(self, n_people: int, n_features: int) -> Float:  # noqa: ARG002
        """Return the vector that adds nothing."""
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
class Group:
    """What schools of thought share: a matrix whose weak directions are penalised.

    The penalty is alpha times the sum of the squared singular values after the first
    ``n_groups``, which co-clusters people and features, plus ``shrinkage`` times the sum of
    the first ``n_groups`` (0 in the paper: the strong directions are free there).

    Examples
    --------
    >>> group = Group(alpha=0.5, n_groups=1)
    >>> part = np.array([[3.0, 0.0], [0.0, 1.0]])
    >>> group.value(part)
    0.5
    >>> group.prox(part, step=1.0)
    array([[3. , 0. ],
           [0. , 0.5]])
    """

    alpha: float
    n_groups: int
    shrinkage: float = 0.0
    name: str = "group"

    def __post_init__(self) -> None:
        if self.shrinkage > self.alpha:
            raise ValueError(
                f"group_shrinkage ({self.shrinkage:g}) must not be larger than alpha_group "
                f"({self.alpha:g}): the strong directions would then cost more than the weak ones."
            )

    def zeros(self, n_people: int, n_features: int) -> Float:
        """Return the matrix that adds nothing."""
        return np.zeros((n_people, n_features))

    def collect(self, gradient: Float) -> Float:
        """Each person has their own row."""
        return gradient

    def value(self, part: Float) -> float:
        """Return alpha * (weak directions) + shrinkage * (strong directions), squared."""
        strong = float(np.sum((part @ top_directions(part, self.n_groups)) ** 2))
        return self.alpha * (float(np.vdot(part, part)) - strong) + self.shrinkage * strong

    def prox(self, point: Float, step: float) -> Float:
        """Shrink the weak directions, and the strong ones by their own factor."""
        return self._scaled(
            point,
            strong=1.0 / (1.0 + 2.0 * step * self.shrinkage),
            weak=1.0 / (1.0 + 2.0 * step * self.alpha),
        )

    def residual(self, part: Float, gradient: Float) -> float:
        """Return |gradient + 2 shrinkage strong part + 2 alpha weak part|."""
        slope = self._scaled(part, strong=2.0 * self.shrinkage, weak=2.0 * self.alpha)
        return float(np.linalg.norm(gradient + slope))

    def _scaled(self, part: Float, *, strong: float, weak: float) -> Float:
        # Only the strong directions are needed, never a whole SVD: U diag(s) V' with the
        # first n_groups scaled by one factor and the rest by another is
        # weak * part + (strong - weak) * part B B'.
        directions = top_directions(part, self.n_groups)
        scaled: Float = weak * part
        scaled += (strong - weak) * (part @ directions) @ directions.T
        return scaled


@dataclass(frozen=True)
class Personal:
    """What is a person's own: zero for most, with the penalty alpha * sum of |P_i|.

    Examples
    --------
    >>> Personal(alpha=1.0).prox(np.array([[3.0, 4.0], [0.3, 0.4]]), step=1.0)
    array([[2.4, 3.2],
           [0. , 0. ]])
    """

    alpha: float
    name: str = "personal"

    def zeros(self, n_people: int, n_features: int) -> Float:
        """Return the matrix that adds nothing."""
        return np.zeros((n_people, n_features))

    def collect(self, gradient: Float) -> Float:
        """Each person has their own row."""
        return gradient

    def value(self, part: Float) -> float:
        """Return alpha times the sum of the rows' lengths."""
        return self.alpha * float(np.linalg.norm(part, axis=1).sum())

    def prox(self, point: Float, step: float) -> Float:
        """Shorten every row by the same length, down to zero."""
        length = np.linalg.norm(point, axis=1, keepdims=True)
        shortened = np.maximum(length - step * self.alpha, 0.0)
        shrunk: Float = point * (shortened / np.where(length > 0, length, 1.0))
        return shrunk

    def residual(self, part: Float, gradient: Float) -> float:
        """Return the distance, row by row; a zero row forgives a gradient up to alpha."""
        length = np.linalg.norm(part, axis=1, keepdims=True)
        slope = gradient + self.alpha * part / np.where(length > 0, length, 1.0)
        distance = np.linalg.norm(slope, axis=1)
        at_zero = length[:, 0] == 0
        distance[at_zero] = np.maximum(distance[at_zero] - self.alpha, 0.0)
        return float(np.linalg.norm(distance))


def total_weights(parts: Sequence[Float], n_people: int) -> Float:
    """Return everybody's weights: the sum of the parts, shape (n_people, n_features)."""
    weights = np.zeros((n_people, parts[0].shape[-1]))
    for part in parts:
        weights += part
    return weights


def top_directions(part: Float, how_many: int) -> Float:
    """Return the first right singular vectors of a matrix, shape (n_features, how_many).

    They come from the Gram matrix of the shorter side: a whole SVD is never needed.
    """
    n_people, n_features = part.shape
    if n_people < n_features:
        left = np.linalg.eigh(part @ part.T)[1][:, ::-1][:, :how_many]
        basis, _ = np.linalg.qr(part.T @ left)
        return np.asarray(basis)
    return np.asarray(np.linalg.eigh(part.T @ part)[1][:, ::-1][:, :how_many])
