"""The interface of components, the objective they form with a loss, and the paper's levels.

In the paper's symbols (Yang, Xu, Cao and Huang, AAAI 2019): `Consensus` is theta with
lambda1, `Group` is G with lambda2 and kappa, `Personal` is P with lambda3.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from likeminds._util.array_types import Bool, Float
from likeminds.losses import QuadraticLoss

# Singular values below this share of the largest are rounding errors, and set to zero.
_NEGLIGIBLE = 1e-11


class Component(Protocol):
    """One level of the weights: a part, its contribution to the weights, its penalty."""

    @property
    def name(self) -> str:
        """The name of this level in results and messages."""
        ...

    def zeros(self, n_users: int, n_features: int) -> Float:
        """Return a part of zeros."""
        ...

    def collect(self, gradient: Float) -> Float:
        """Return the gradient by the part, given the gradient by all users' weights.

        If users share the part, this is the sum of their gradients.
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


@runtime_checkable
class Staged(Protocol):
    """A non-convex component, minimised in stages. Each stage is a convex upper bound."""

    def stage(self, part: Float) -> Component:
        """Return the component to minimise next, given the part."""
        ...


class PerUser:
    """Base class of components whose part has one row per user.

    A subclass adds ``name``, ``value`` and ``prox``, and may define a sharper ``residual``.
    """

    def zeros(self, n_users: int, n_features: int) -> Float:
        """Return a matrix of zeros."""
        return np.zeros((n_users, n_features))

    def collect(self, gradient: Float) -> Float:
        """Return the gradient unchanged."""
        return gradient

    def prox(self, point: Float, step: float) -> Float:
        """Return the part that minimises 1/2 |part - point|^2 + step * penalty."""
        raise NotImplementedError

    def residual(self, part: Float, gradient: Float) -> float:
        """Return the length of a proximal step, which is zero exactly at critical points."""
        return float(np.linalg.norm(part - self.prox(part - gradient, 1.0)))


def total_weights(parts: Sequence[Float], n_users: int) -> Float:
    """Return all users' weights: the sum of the parts, shape (n_users, n_features)."""
    weights = np.zeros((n_users, parts[0].shape[-1]))
    for part in parts:
        weights += part
    return weights


def zero_parts(loss: QuadraticLoss, components: Sequence[Component]) -> tuple[Float, ...]:
    """Return parts of zeros."""
    return tuple(component.zeros(*loss.shape) for component in components)


def objective(
    loss: QuadraticLoss,
    components: Sequence[Component],
    parts: Sequence[Float],
    gradient: Float | None = None,
) -> float:
    """Return loss plus penalties; ``gradient`` is that of the loss by all users' weights."""
    penalties = (component.value(part) for component, part in zip(components, parts, strict=True))
    return loss.value(total_weights(parts, loss.shape[0]), gradient) + sum(penalties)


def optimality_residual(
    loss: QuadraticLoss,
    components: Sequence[Component],
    parts: Sequence[Float],
    gradient: Float | None = None,
) -> float:
    """Return the relative distance of zero to the objective's subdifferential.

    Its unit is the length of the loss's gradient at zero. It depends neither on the number of users
    nor on the scale of the features.
    """
    if gradient is None:
        gradient = loss.gradient(total_weights(parts, loss.shape[0]))
    distances = [
        component.residual(part, component.collect(gradient))
        for component, part in zip(components, parts, strict=True)
    ]
    return float(np.linalg.norm(distances)) / gradient_scale(loss, components)


def gradient_scale(loss: QuadraticLoss, components: Sequence[Component]) -> float:
    """Return the length of the loss's gradient at zero: the unit of residuals."""
    lengths = [np.linalg.norm(component.collect(loss.linear)) for component in components]
    return float(np.linalg.norm(lengths)) or 1.0


@dataclass(frozen=True)
class Consensus:
    """The consensus, one vector for all users, with the ridge penalty alpha |theta|^2.

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
        """Return the sum over users."""
        return np.asarray(gradient.sum(axis=0))

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
class Group(PerUser):
    """The group level, with one row per user: a matrix with penalised weak directions.

    The penalty is ``alpha`` times the sum of the squared singular values after the first
    ``n_groups``. It co-clusters users and features. The first ``n_groups`` have the penalty
    ``shrinkage`` instead, which is 0 in the paper.

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
                f"group_shrinkage must not be larger than alpha_group ({self.alpha:g}), but is "
                f"{self.shrinkage:g}."
            )

    def value(self, part: Float) -> float:
        """Return alpha * (weak directions) + shrinkage * (strong directions), squared."""
        squares = np.linalg.eigvalsh(_gram(part))
        strong = float(squares[::-1][: self.n_groups].sum())
        return self.alpha * (float(np.vdot(part, part)) - strong) + self.shrinkage * strong

    def prox(self, point: Float, step: float) -> Float:
        """Shrink weak and strong directions, each by its factor."""
        strong, weak = (1.0 / (1.0 + 2.0 * step * x) for x in (self.shrinkage, self.alpha))
        return self._scale_directions(point, strong, weak)

    def residual(self, part: Float, gradient: Float) -> float:
        """Return |gradient + 2 shrinkage strong part + 2 alpha weak part|."""
        slope = self._scale_directions(part, 2.0 * self.shrinkage, 2.0 * self.alpha)
        return float(np.linalg.norm(gradient + slope))

    def _scale_directions(self, part: Float, strong: float, weak: float) -> Float:
        """Scale the first n_groups singular values by one factor and the others by another."""
        directions = top_directions(part, self.n_groups)
        return np.asarray(weak * part + (strong - weak) * (part @ directions) @ directions.T)


class GroupNorm(PerUser):
    """Base class of group lasso penalties: alpha times the sum of lengths of pieces.

    A subclass defines the pieces. At a piece of length zero the subdifferential is the ball of
    radius alpha.
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
        return np.asarray(point * (shortened / np.where(length > 0, length, 1.0)))

    def residual(self, part: Float, gradient: Float) -> float:
        """Return the distance; a zero piece counts by the gradient's excess over alpha."""
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
    """The personal level, zero for most users, with the penalty alpha * sum of |P_i|.

    Examples
    --------
    >>> Personal(alpha=1.0).prox(np.array([[3.0, 4.0], [0.3, 0.4]]), step=1.0)
    array([[2.4, 3.2],
           [0. , 0. ]])
    """

    alpha: float
    name: str = "personal"

    def lengths(self, part: Float) -> Float:
        """Return the length of each user's row."""
        return np.asarray(np.linalg.norm(part, axis=1, keepdims=True))


@dataclass(frozen=True)
class SingularValues:
    """The singular values of a matrix, and its singular vectors on the shorter side."""

    part: Float
    sigma: Float  # the largest first
    vectors: Float  # in columns

    @classmethod
    def of(cls, part: Float) -> "SingularValues":
        """Decompose a matrix by QR and SVD, exact to rounding."""
        _, sigma, transposed = np.linalg.svd(_triangle(part))
        return cls(part, sigma, transposed.T)

    @classmethod
    def by_gram(cls, part: Float) -> "SingularValues":
        """Decompose a matrix by its Gram matrix: faster, but values below 1e-8 are noise."""
        squares, vectors = np.linalg.eigh(_gram(part))
        return cls(part, np.sqrt(np.maximum(squares[::-1], 0.0)), vectors[:, ::-1])

    def scaled(self, factor: Float) -> Float:
        """Return the matrix with its singular values multiplied by the factors."""
        square = (self.vectors * factor) @ self.vectors.T
        return np.asarray(self.part @ square if self._is_tall else square @ self.part)

    def replaced(self, sigma: Float) -> Float:
        """Return the matrix with other singular values (singular values of zero stay zero)."""
        return self.scaled(sigma / np.where(self.sigma > 0, self.sigma, 1.0))

    def left_and_right(self, which: Bool) -> tuple[Float, Float]:
        """Return left and right vectors of the chosen singular values, which must not be zero."""
        near, sigma = self.vectors[:, which], self.sigma[which]
        if self._is_tall:
            return self.part @ near / sigma, near
        return near, self.part.T @ near / sigma

    @property
    def not_zero(self) -> Bool:
        """Whether each singular value is larger than rounding errors."""
        return np.asarray(self.sigma > _NEGLIGIBLE * self.sigma[0])

    @property
    def _is_tall(self) -> bool:
        return bool(self.part.shape[0] >= self.part.shape[1])


class Spectral(PerUser):
    """Base class of penalties that are functions of the singular values.

    A subclass defines the function, ``value_at``, and its prox, ``shrink``.
    """

    def value_at(self, sigma: Float) -> float:
        """Return the penalty of a matrix with these singular values."""
        raise NotImplementedError

    def shrink(self, sigma: Float, step: float) -> Float:
        """Return the singular values of the prox."""
        raise NotImplementedError

    def value(self, part: Float) -> float:
        """Return the penalty."""
        return self.value_at(singular_values(part))

    def prox(self, point: Float, step: float) -> Float:
        """Return the part that minimises 1/2 |part - point|^2 + step * penalty."""
        return self.spectral_prox(point, step)[0]

    def spectral_prox(self, point: Float, step: float) -> tuple[Float, Float]:
        """Return the prox and its singular values, from one decomposition."""
        found = SingularValues.by_gram(point)
        sigma = self.shrink(found.sigma, step)
        return found.replaced(sigma), sigma


def singular_values(part: Float) -> Float:
    """Return the singular values, the largest first, exact to rounding."""
    return np.asarray(np.linalg.svd(_triangle(part), compute_uv=False))


def _gram(part: Float) -> Float:
    """Return the Gram matrix of the shorter side."""
    return np.asarray(part.T @ part if part.shape[0] >= part.shape[1] else part @ part.T)


def _triangle(part: Float) -> Float:
    tall = part if part.shape[0] >= part.shape[1] else part.T
    return np.asarray(np.linalg.qr(tall, mode="r"))


def top_directions(part: Float, how_many: int) -> Float:
    """Return the first right singular vectors of a matrix, shape (n_features, how_many).

    They come from the Gram matrix of the shorter side, without a full SVD.
    """
    if part.shape[0] < part.shape[1]:
        left = np.linalg.eigh(part @ part.T)[1][:, ::-1][:, :how_many]
        basis, _ = np.linalg.qr(part.T @ left)
        return np.asarray(basis)
    return np.asarray(np.linalg.eigh(part.T @ part)[1][:, ::-1][:, :how_many])
