"""Logistic variables: probabilities after MacKay, and means between two bounds."""

import numpy as np
from scipy.special import expit

from likeminds._util.array_types import Float

# Beyond this, a logistic distribution has nothing left.
_FAR = 700.0


def label_probability(log_odds: Float, deviation: Float) -> Float:
    """Return the probability of a positive label where its log-odds are only known roughly.

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


def mean_between(location: Float, low: Float, high: Float) -> Float:
    """Return the mean of a logistic variable, given that it lies between two bounds.

    With the distribution function F, the integral of t F'(t) is S(t) = t F(t) - log(1 + exp(t)),
    which is even and zero at infinity. The mean is (S(high) - S(low)) / (F(high) - F(low)).

    Parameters
    ----------
    location : array of shape (n,)
        The location of each variable; scales are one.
    low, high : arrays of shape (n,)
        The bounds, which may be infinite.

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
    t = -np.minimum(np.abs(bound), _FAR)
    return np.asarray(t * expit(t) - np.log1p(np.exp(t)))


def damping(variance: Float | float) -> Float:
    """Return by how much log-odds are divided where they are known with some variance."""
    return np.asarray(np.sqrt(1.0 + np.pi / 8.0 * variance))
