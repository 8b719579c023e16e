"""What labels say about scores: logistic, a choice among items, or the squared AUC loss.

All are functions of the scores eta = row . weights of a person's rows. Their curvature is
written as H = R R': with R known, posteriors need no more of a likelihood than R times a vector
and R' times a vector, whether H is diagonal (each label for itself) or not (a choice).
"""

from dataclasses import dataclass
from functools import reduce
from typing import Protocol

import numpy as np
from scipy.special import expit

from likeminds.hierarchical.tasks import Task
from likeminds.rows import Float


class Curvature(Protocol):
    """The matrices H = R R' of a block of people, at their eta."""

    def times_root(self, stack: Float) -> Float:
        """Return R a for vectors, shape (b, n), or matrices, shape (b, n, m)."""
        ...

    def times_root_back(self, stack: Float) -> Float:
        """Return R' a."""
        ...

    def tilt(self, variance: Float) -> Float:
        """Return the slope by eta of half the log-determinant, shape (b, n).

        ``variance`` is that of R' eta under the posterior.
        """
        ...


class Likelihood(Protocol):
    """Minus the logarithm of the probability of the labels, given eta."""

    @property
    def is_quadratic(self) -> bool:
        """Whether its curvature is the same everywhere."""
        ...

    def value(self, eta: Float, task: Task) -> Float:
        """Return its value for each person, shape (b,)."""
        ...

    def pull(self, eta: Float, task: Task) -> tuple[Float, Curvature]:
        """Return minus its slope by eta, shape (b, n), and its curvature."""
        ...


@dataclass(frozen=True)
class Diagonal:
    """H is diagonal: each row counts for itself."""

    root: Float
    bend: Float | None = None

    def times_root(self, stack: Float) -> Float:
        """Return R a."""
        return _along(self.root, stack)

    times_root_back = times_root

    def tilt(self, variance: Float) -> Float:
        """Return the slope of half the log-determinant; ``bend`` is that of log H by eta."""
        if self.bend is None:
            return np.zeros_like(variance)
        return np.asarray(0.5 * self.bend * variance)


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

    def pull(self, eta: Float, task: Task) -> tuple[Float, Diagonal]:
        """Return minus its slope, and its curvature."""
        chance = expit(eta)
        root = np.sqrt(task.weight * chance * (1.0 - chance))
        return task.weight * (task.response - chance), Diagonal(root, 1.0 - 2.0 * chance)


@dataclass(frozen=True)
class Chances:
    """H = w (diag(p) - p p') in each set of items that one was chosen from."""

    chance: Float
    weight: Float
    set_size: int

    def times_root(self, stack: Float) -> Float:
        """Return R a, with R = sqrt(w) (diag(sqrt p) - p sqrt(p)')."""
        root = np.sqrt(self.chance)
        from_all = self._in_sets(root, stack)
        return _along(np.sqrt(self.weight), _along(root, stack) - _along(self.chance, from_all))

    def times_root_back(self, stack: Float) -> Float:
        """Return R' a: how far from the mean of the set, in proportion to sqrt(p)."""
        away = stack - self._in_sets(self.chance, stack)
        return _along(np.sqrt(self.weight * self.chance), away)

    def tilt(self, variance: Float) -> Float:
        """Return the slope of half the log-determinant."""
        in_all = self._in_sets(np.ones_like(variance), variance)
        return np.asarray(0.5 * (variance - self.chance * in_all))

    def _in_sets(self, weight: Float, stack: Float) -> Float:
        """Return, for each row, the weighted sum over the rows of its set."""
        # Products are many times faster than sums over a short axis.
        flat = stack.reshape(-1, self.set_size, *stack.shape[2:])
        weights = weight.reshape(-1, 1, self.set_size)
        total = weights @ (flat if stack.ndim == 3 else flat[:, :, None])
        return np.repeat(total.reshape(len(total), -1), self.set_size, axis=0).reshape(stack.shape)


def _along(numbers: Float, stack: Float) -> Float:
    """Return numbers, shape (b, n), times the rows of vectors or matrices."""
    return np.asarray(stack * (numbers if stack.ndim == 2 else numbers[:, :, None]))


@dataclass(frozen=True)
class Choice:
    """log(sum of exp(eta) over a set) - eta of the chosen one, times the set's weight.

    Rows of a person come set after set, ``task.set_size`` each, and may count several times in
    their set (or not at all, where a set has fewer items): ``task.log_count``.
    """

    is_quadratic = False

    def value(self, eta: Float, task: Task) -> Float:
        """Return its value for each person."""
        highest, total = _highest_and_total(eta, task)
        of_chosen = task.weight * task.response
        weight = _sets(of_chosen, task.set_size) @ np.ones(task.set_size)
        return np.asarray((weight * (highest + np.log(total))).sum(1) - (of_chosen * eta).sum(1))

    def pull(self, eta: Float, task: Task) -> tuple[Float, Chances]:
        """Return minus its slope, and its curvature."""
        highest, total = _highest_and_total(eta, task)
        above = _sets(eta + task.log_count, task.set_size) - highest[:, :, None]
        chance = (np.exp(above) / total[:, :, None]).reshape(eta.shape)
        return task.weight * (task.response - chance), Chances(chance, task.weight, task.set_size)


def _highest_and_total(eta: Float, task: Task) -> tuple[Float, Float]:
    """Return each set's highest eta, and the sum of exp(eta - highest)."""
    scores = _sets(eta + task.log_count, task.set_size)
    highest = reduce(np.maximum, np.moveaxis(scores, 2, 0))
    return highest, np.exp(scores - highest[:, :, None]) @ np.ones(task.set_size)


def _sets(rows: Float, set_size: int) -> Float:
    return rows.reshape(len(rows), -1, set_size)


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

    def pull(self, eta: Float, task: Task) -> tuple[Float, Diagonal]:
        """Return minus its slope, and its curvature."""
        curvature = self.precision * task.weight
        return curvature * (task.response - eta), Diagonal(np.sqrt(curvature))


# By the name of the loss. A regression's precision is where learning starts: that of labels
# nothing is known about.
LIKELIHOODS: dict[str, Likelihood] = {
    "logistic": Logistic(),
    "choice": Choice(),
    "auc": Regression(2.0),
}
