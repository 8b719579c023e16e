"""What a label says about a score: the logistic loss, and the squared AUC loss as a regression.

Both are sums over rows of a function of eta = row . weights, and so all that the posterior
needs of them is that function, its slope, its curvature and the slope of its curvature.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import expit

from likeminds.hierarchical.tasks import Task
from likeminds.rows import Float


class Likelihood(Protocol):
    """Minus the logarithm of the probability of the labels, given eta."""

    @property
    def is_quadratic(self) -> bool:
        """Whether its curvature is the same everywhere."""
        ...

    def value(self, eta: Float, task: Task) -> Float:
        """Return its value for each person, shape (b,)."""
        ...

    def pull(self, eta: Float, task: Task) -> tuple[Float, Float]:
        """Return minus its slope, and its curvature, by eta: two arrays of shape (b, n)."""
        ...

    def bend(self, eta: Float, curvature: Float) -> Float:
        """Return the slope of its curvature, shape (b, n)."""
        ...


@dataclass(frozen=True)
class Logistic:
    """log(1 + exp(eta)) - y eta for each label y, times its weight."""

    is_quadratic = False

    def value(self, eta: Float, task: Task) -> Float:
        """Return its value for each person."""
        # log(1 + exp(x)) without overflow, in fewer passes than logaddexp.
        loss = np.maximum(eta, 0.0) - task.response * eta
        loss += np.log1p(np.exp(-np.abs(eta)))
        return np.asarray((task.weight * loss).sum(axis=1))

    def pull(self, eta: Float, task: Task) -> tuple[Float, Float]:
        """Return minus its slope, and its curvature."""
        chance = expit(eta)
        return task.weight * (task.response - chance), task.weight * chance * (1.0 - chance)

    def bend(self, eta: Float, curvature: Float) -> Float:
        """Return the slope of its curvature."""
        return np.asarray(-curvature * np.tanh(0.5 * eta))


@dataclass(frozen=True)
class Regression:
    """precision/2 (response - eta)^2 for each row, times its weight.

    With the rows that `tasks.AucTasks` makes this is the squared AUC loss. A person's rows
    then count as ``task.comparisons`` normal observations, the harmonic mean of the numbers of
    positives and negatives: that is what makes the precision something that can be learned.
    """

    precision: float

    is_quadratic = True

    def value(self, eta: Float, task: Task) -> Float:
        """Return its value for each person."""
        squares = (task.weight * (task.response - eta) ** 2).sum(axis=1)
        constant = task.comparisons * np.log(self.precision)
        return np.asarray(0.5 * (self.precision * squares - constant))

    def pull(self, eta: Float, task: Task) -> tuple[Float, Float]:
        """Return minus its slope, and its curvature."""
        curvature = self.precision * task.weight
        return curvature * (task.response - eta), curvature

    def bend(self, eta: Float, curvature: Float) -> Float:
        """Return the slope of its curvature: none."""
        del eta
        return np.zeros_like(curvature)
