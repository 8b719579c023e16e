"""The interface of components, and the base class of most."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from likeminds._util.array_types import Float


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
        """Return the loss's gradient by the part, given the one by everybody's weights.

        A part of the shape (n_users, n_features) has each person's gradient; one that
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


class PerUser:
    """Base of the components whose part has one row per person.

    A subclass adds ``name``, ``value`` and ``prox``, and may define a sharper ``residual``.
    """

    def zeros(self, n_users: int, n_features: int) -> Float:
        """Return a matrix of zeros."""
        return np.zeros((n_users, n_features))

    def collect(self, gradient: Float) -> Float:
        """Return the gradient as it is: each person has their own row."""
        return gradient

    def prox(self, point: Float, step: float) -> Float:
        """Return the part that minimises 1/2 |part - point|^2 + step * penalty."""
        raise NotImplementedError

    def residual(self, part: Float, gradient: Float) -> float:
        """Return the length of a proximal step: zero exactly at a critical point."""
        return float(np.linalg.norm(part - self.prox(part - gradient, 1.0)))


def total_weights(parts: Sequence[Float], n_users: int) -> Float:
    """Return everybody's weights: the sum of the parts, shape (n_users, n_features)."""
    weights = np.zeros((n_users, parts[0].shape[-1]))
    for part in parts:
        weights += part
    return weights
