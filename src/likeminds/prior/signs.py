"""Weights whose sign is known: modes of posteriors in which no weight has the wrong one.

The prior is a normal distribution of numbers u, and a person's weight is u where its sign is right,
else zero: some people do not care, nobody cares the other way round. The mode of a person's
posterior is then that of the normal prior within the bounds, since beyond them labels say nothing
and the prior falls.
"""

from operator import itemgetter

import numpy as np
from scipy.optimize import minimize

from likeminds._support.arrays import Float
from likeminds.prior.likelihoods import Likelihood
from likeminds.prior.prior import Prior
from likeminds.prior.tasks import Task, of_each_person

# What a weight is at least, in standard deviations: zero, and on the right side of it for sure.
_LEAST = 1e-9


def keep_signs(
    points: Float, task: Task, prior: Prior, likelihood: Likelihood, signs: Float
) -> Float:
    """Return a block's modes with weights of the known signs.

    Parameters
    ----------
    points : array of shape (b, p)
        The modes without bounds.
    task, prior, likelihood
        What they are the modes of.
    signs : array of shape (p,)
        1 or -1 where the sign of a weight is known, else 0.
    """
    wrong = np.flatnonzero((points * signs < 0.0).any(axis=1))
    if not len(wrong):
        return points
    points, means = points.copy(), prior.means(task.people)
    for person in wrong:
        own = of_each_person(task, itemgetter(slice(person, person + 1)))
        mean = means[person]
        points[person] = _bounded(points[person], mean, own, prior, (likelihood, signs))
    return points


def _bounded(
    point: Float, mean: Float, task: Task, prior: Prior, said: tuple[Likelihood, Float]
) -> Float:
    """Return one person's mode within the bounds."""
    likelihood, signs = said
    varies = prior.residual > 0
    unit = np.sqrt(prior.covariance.diagonal()[varies])
    precision = np.linalg.inv(prior.covariance[np.ix_(varies, varies)])
    rows, rest = task.rows[0][:, varies], task.rows[0][:, ~varies] @ mean[~varies]

    def loss(scaled: Float) -> tuple[float, Float]:
        weights = scaled * unit
        away = weights - mean[varies]
        labels = likelihood.at((rows @ weights + rest)[None], task)
        value = float(labels.loss[0]) + 0.5 * float(away @ precision @ away)
        return value, (precision @ away - rows.T @ labels.pull[0]) * unit

    known = signs[varies]
    bounds = [(_LEAST if s > 0 else None, -_LEAST if s < 0 else None) for s in known]
    start = np.where(known * point[varies] < 0.0, known * _LEAST, point[varies] / unit)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
    bounded = mean.copy()
    bounded[varies] = found.x * unit
    return bounded
