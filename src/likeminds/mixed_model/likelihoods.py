"""Likelihoods of labels given scores: logistic, a choice among items, the squared AUC loss.

All are functions of the scores eta = row . weights of a user's rows. Their curvature is written as
H = R R': with R known, posteriors need only R times a vector and R' times a vector, whether H is
diagonal (single labels) or not (choices).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Protocol

import numpy as np
from scipy.special import expit, log_expit, logsumexp

from likeminds._util.array_types import Bool, Float, FloatArray, Index
from likeminds._util.per_user_arrays import row_dots
from likeminds.mixed_model.responses import PaddedRows

# Exponentials of scores up to this size neither overflow nor underflow.
SAFE_EXPONENT = 100.0
# Minus the slope of each label's loss by its score, and its curvature, as functions of all scores.
Slopes = Callable[[Float], tuple[Float, Float]]


class Curvature(Protocol):
    """The matrices H = R R' of a block of users, at their eta."""

    @property
    def diagonal(self) -> Float:
        """The diagonal of H, shape (b, n)."""
        ...

    def times_root(self, stack: Float) -> Float:
        """Return R a for vectors, shape (b, n), or matrices, shape (b, n, m)."""
        ...

    def times_root_back(self, stack: Float) -> Float:
        """Return R' a."""
        ...

    def grad_half_logdet(self, variance: Float) -> Float:
        """Return the gradient by eta of half the log-determinant, shape (b, n).

        ``variance`` is that of R' eta under the posterior.
        """
        ...


@dataclass(frozen=True)
class LossDerivatives:
    """The loss of a block's labels at some eta, with its derivatives."""

    loss: Float  # (b,): minus the logarithm of the probability of each user's labels
    residuals: Float  # (b, n): minus the gradient of the loss by eta
    curvature: Curvature  # its Hessian by eta


class Likelihood(Protocol):
    """The probability of the labels, given eta."""

    @property
    def is_quadratic(self) -> bool:
        """Whether its curvature is the same everywhere."""
        ...

    def at(self, eta: Float, data: PaddedRows) -> LossDerivatives:
        """Return the loss and its derivatives at an eta, shape (b, n)."""
        ...

    def expected_information(self, eta: Float) -> Float:
        """Return the information of one more label of items with these scores, shape (n,)."""
        ...


@dataclass(frozen=True)
class DiagonalCurvature:
    """H is diagonal: rows are independent."""

    root: Float
    log_gradient: Float | None = None

    @property
    def diagonal(self) -> Float:
        """The diagonal of H."""
        return np.asarray(self.root**2)

    def times_root(self, stack: Float) -> Float:
        """Return R a."""
        return _along(self.root, stack)

    times_root_back = times_root

    def grad_half_logdet(self, variance: Float) -> Float:
        """Return the gradient of half the log-determinant, by the gradient of log H by eta."""
        if self.log_gradient is None:
            return np.zeros_like(variance)
        return np.asarray(0.5 * self.log_gradient * variance)


class RowLikelihood(ABC):
    """Base: the likelihood of a row, given its score alone."""

    @abstractmethod
    def each(
        self, eta: Float, response: Float, users: Index, variance: Float | float = 0.0
    ) -> Float:
        """Return the loss of every row, given scores with a variance."""

    def row_scores(self, eta: Float, data: PaddedRows) -> Float:  # noqa: ARG002
        """Return the scores that `each` takes for single rows: eta itself."""
        return eta

    def response_losses(self, eta: Float, data: PaddedRows) -> Float:
        """Return the unweighted loss of each response, in its first row: (b, n)."""
        return self.each(eta, data.response, data.users[:, None])


@dataclass(frozen=True)
class LogisticLikelihood(RowLikelihood):
    """log(1 + exp(eta)) - y eta for each label y, times its weight."""

    is_quadratic = False
    curvature_bound = 0.25  # the largest second derivative of a label's loss

    def at(self, eta: Float, data: PaddedRows) -> LossDerivatives:
        """Return the loss and its derivatives."""
        # One exponential, which cannot overflow, serves the loss and the chance.
        rare = np.exp(-np.abs(eta))
        loss = np.maximum(eta, 0.0) - data.response * eta + np.log1p(rare)
        likely = 1.0 / (1.0 + rare)
        chance = np.where(eta >= 0.0, likely, rare * likely)
        root = np.sqrt(data.weight * rare) * likely
        return LossDerivatives(
            row_dots(data.weight, loss),
            data.weight * (data.response - chance),
            DiagonalCurvature(root, 1.0 - 2.0 * chance),
        )

    def each(
        self,
        eta: Float,
        response: Float,
        users: Index,  # noqa: ARG002 - scores mean the same for all users
        variance: Float | float = 0.0,
    ) -> Float:
        """Return the loss of every label, given scores with a variance."""
        eta = eta / damping(variance)
        loss = np.maximum(eta, 0.0) - response * eta + np.log1p(np.exp(-np.abs(eta)))
        return np.asarray(loss)

    def utility(self, eta: Float, response: Float, users: Index) -> Float:  # noqa: ARG002
        """Return the mean latent utility eta + noise, given each label: above zero for a yes."""
        yes = np.asarray(response, dtype=np.bool_)
        bounds = np.where(yes, 0.0, -np.inf), np.where(yes, np.inf, 0.0)
        return mean_between(eta, *bounds)

    def expected_information(self, eta: Float) -> Float:
        """Return the variance of a label."""
        chance = expit(eta)
        return np.asarray(chance * (1.0 - chance))


@dataclass(frozen=True)
class ChoiceCurvature:
    """H = w (diag(p) - p p') in each choice set."""

    chance: Float
    weight: Float
    set_size: int

    @property
    def diagonal(self) -> Float:
        """The diagonal of H."""
        return np.asarray(self.weight * self.chance * (1.0 - self.chance))

    def times_root(self, stack: Float) -> Float:
        """Return R a, with R = sqrt(w) (diag(sqrt p) - p sqrt(p)')."""
        root = np.sqrt(self.chance)
        product = self._sets(root) * self._sets(stack)
        product -= self._sets(self.chance) * self._in_sets(root, stack)
        product *= np.sqrt(self.weight).reshape(-1, self.set_size, 1)
        return product.reshape(stack.shape)

    def times_root_back(self, stack: Float) -> Float:
        """Return R' a: deviations from the mean of the set, in proportion to sqrt(p)."""
        if stack.ndim == 3 and stack.transpose(0, 2, 1).flags.c_contiguous:
            return self._columns_back(stack.transpose(0, 2, 1)).transpose(0, 2, 1)
        centred = self._sets(stack) - self._in_sets(self.chance, stack)
        centred *= np.sqrt(self.weight * self.chance).reshape(-1, self.set_size, 1)
        return centred.reshape(stack.shape)

    def _columns_back(self, columns: Float) -> Float:
        """Return R' a for matrices whose columns, (b, m, n), are in one piece each."""
        centred = columns * self.chance[:, None, :]
        mean = centred.reshape(-1, self.set_size) @ np.ones(self.set_size)
        np.subtract(columns, np.repeat(mean, self.set_size).reshape(columns.shape), out=centred)
        centred *= np.sqrt(self.weight * self.chance)[:, None, :]
        return centred

    def grad_half_logdet(self, variance: Float) -> Float:
        """Return the gradient of half the log-determinant."""
        in_all = self._in_sets(np.ones_like(variance), variance)
        tilt = 0.5 * (self._sets(variance) - self._sets(self.chance) * in_all)
        return tilt.reshape(variance.shape)

    def _sets(self, stack: Float) -> Float:
        """Return rows set by set: (sets, set_size, columns)."""
        n_sets = stack.shape[0] * stack.shape[1] // self.set_size
        return stack.reshape(n_sets, self.set_size, 1 if stack.ndim == 2 else stack.shape[2])

    def _in_sets(self, weight: Float, stack: Float) -> Float:
        """Return, for each set, the weighted sum over its rows: (sets, 1, columns)."""
        # Products are many times faster than sums over a short axis.
        return np.asarray(weight.reshape(-1, 1, self.set_size) @ self._sets(stack))


def _along(numbers: Float, stack: Float) -> Float:
    """Return numbers, shape (b, n), times the rows of vectors or matrices."""
    return np.asarray(stack * (numbers if stack.ndim == 2 else numbers[:, :, None]))


@dataclass(frozen=True)
class ChoiceLikelihood(LogisticLikelihood):
    """log(sum of exp(eta) over a set) - eta of the chosen one, times the set's weight.

    Rows of a user come set after set, ``data.set_size`` each, the chosen one first. The count of a
    row in its set may be above 1, or 0 in smaller sets: ``data.log_count``.

    Given all other rows of its set, a row is a label: it is chosen or not, with the log-odds
    `row_scores`. `each` and `expected_information` take rows in this way.
    """

    def at(self, eta: Float, data: PaddedRows) -> LossDerivatives:
        """Return the loss and its derivatives."""
        size = data.set_size
        chance = (eta + data.log_count).reshape(-1, size)
        highest: Float | float = 0.0
        if np.abs(eta).max(initial=0.0) > SAFE_EXPONENT:
            highest = reduce(np.maximum, chance.T)
            chance -= highest[:, None]
        np.exp(chance, out=chance)
        total = chance @ np.ones(size)
        chance /= total[:, None]
        weight = data.weight[:, ::size]
        whole = highest + np.log(total)
        loss = row_dots(weight, whole.reshape(weight.shape) - eta[:, ::size])
        curvature = ChoiceCurvature(chance.reshape(eta.shape), data.weight, size)
        return LossDerivatives(loss, data.weight * (data.response - curvature.chance), curvature)

    def row_scores(self, eta: Float, data: PaddedRows) -> Float:
        """Return the log-odds of each row to be chosen in its set."""
        scores = (eta + data.log_count).reshape(-1, data.set_size)
        others = np.stack([np.delete(scores, row, axis=1) for row in range(data.set_size)], axis=1)
        odds = np.clip(scores - logsumexp(others, axis=2), -SAFE_EXPONENT, SAFE_EXPONENT)
        return np.asarray(odds.reshape(eta.shape))

    def response_losses(self, eta: Float, data: PaddedRows) -> Float:
        """Return the unweighted loss of each choice, in its first row."""
        scores = (eta + data.log_count).reshape(-1, data.set_size)
        losses = np.zeros(scores.shape)
        losses[:, 0] = logsumexp(scores, axis=1) - scores[:, 0]
        return losses.reshape(eta.shape)


@dataclass(frozen=True)
class GaussianLikelihood:
    """precision/2 (response - eta)^2 for each row, times its weight.

    With the rows that `responses.AucResponses` makes this is the squared AUC loss. A user's rows
    then count as ``data.comparisons`` normal observations, the harmonic mean of the numbers of
    positives and negatives. With this count, the precision can be learned.
    """

    precision: float

    is_quadratic = True

    def at(self, eta: Float, data: PaddedRows) -> LossDerivatives:
        """Return the loss and its derivatives."""
        left = data.response - eta
        curvature = self.precision * data.weight
        constant = data.comparisons * np.log(self.precision)
        residuals = curvature * left
        return LossDerivatives(
            0.5 * (row_dots(residuals, left) - constant),
            residuals,
            DiagonalCurvature(np.sqrt(curvature)),
        )

    def expected_information(self, eta: Float) -> Float:
        """Return the same for all items: one more label counts as half a comparison."""
        return np.full(len(eta), 0.5 * self.precision)


# Scales of the predictive variance among which calibration chooses.
VARIANCE_SCALES = np.linspace(0.0, 2.0, 41)


def label_probability(log_odds: Float, deviation: Float) -> Float:
    """Return the probability of a positive label, given log-odds with a variance.

    The mean of the logistic function over a normal distribution, by MacKay's approximation.

    Parameters
    ----------
    log_odds, deviation : arrays of one shape
        The mean of the log-odds, and their standard deviation.

    Examples
    --------
    >>> label_probability(np.array([2.0, 2.0]), np.array([0.0, 3.0])).round(2)
    array([0.88, 0.72])
    """
    return np.asarray(expit(log_odds / damping(np.square(deviation))))


def calibrate_variance(
    labels: Bool, eta: Float, variance: Float, weights: FloatArray | None
) -> float:
    """Return the scale of the predictive variance that maximises the leave-one-out likelihood.

    A label is left out by dividing the score's posterior by the label's likelihood, which is
    approximated by a normal distribution of the score.
    """
    chance = expit(eta)
    # The largest leverage of a label on its own score.
    leverage = np.minimum(chance * (1.0 - chance) * variance, 0.9)
    variance = variance / (1.0 - leverage)
    eta = eta - variance * (labels - chance)
    towards = np.where(labels, eta, -eta)
    likely = [
        np.average(log_expit(towards / damping(c * variance)), weights=weights)
        for c in VARIANCE_SCALES
    ]
    return float(VARIANCE_SCALES[int(np.argmax(likely))])


def mean_between(location: Float, low: Float, high: Float) -> Float:
    """Return the mean of a logistic variable, given that it lies between two bounds.

    With the distribution function F, the integral of t F'(t) is S(t) = t F(t) - log(1 + exp(t)). S
    is even, and zero at infinity. The mean is (S(high) - S(low)) / (F(high) - F(low)).

    Examples
    --------
    >>> zero = np.zeros(1)
    >>> mean_between(zero, zero, zero + np.inf).round(4), mean_between(zero, zero - 2, zero + 2)
    (array([1.3863]), array([0.]))
    """
    a, b = low - location, high - location
    # In the lower tail F is exact: intervals in the upper one are mirrored.
    sign = np.where(a > 0.0, -1.0, 1.0)
    a, b = np.minimum(sign * a, sign * b), np.maximum(sign * a, sign * b)
    share = np.maximum(expit(b) - expit(a), np.finfo(np.float64).tiny)
    mean = np.clip((_integral(b) - _integral(a)) / share, a, b)
    return np.asarray(location + sign * mean)


def _integral(bound: Float) -> Float:
    """Return the integral of t F'(t) up to a bound."""
    t = -np.minimum(np.abs(bound), SAFE_EXPONENT)
    return np.asarray(t * expit(t) - np.log1p(np.exp(t)))


def damping(variance: Float | float) -> Float:
    """Return the divisor of log-odds that have a variance."""
    return np.asarray(np.sqrt(1.0 + np.pi / 8.0 * variance))
