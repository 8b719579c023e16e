"""Probabilities where log-odds are only known roughly, after MacKay."""

import numpy as np
from scipy.special import expit

from likeminds._support.arrays import Float


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


def damping(variance: Float | float) -> Float:
    """Return by how much log-odds are divided where they are known with some variance."""
    return np.asarray(np.sqrt(1.0 + np.pi / 8.0 * variance))
