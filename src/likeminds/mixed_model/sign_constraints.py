"""Weights whose sign is known: modes of posteriors in which no weight has the wrong one.

The prior is a normal distribution of numbers u, and a person's weight is u where its sign is right,
else zero: some people do not care, nobody cares the other way round. The mode of a person's
posterior is then that of the normal prior within the bounds, since beyond them labels say nothing
and the prior falls.
"""

from operator import itemgetter
from typing import Any

import numpy as np

from likeminds._util.array_types import Float
from likeminds._util.lazy_imports import LazyModule
from likeminds.mixed_model.blocks import PaddedRows, of_each_person
from likeminds.mixed_model.gaussian_prior import GaussianPrior
from likeminds.mixed_model.likelihoods import Likelihood
from likeminds.mixed_model.lognormal_prior import slopes_of_logs, weights_of_logs

optimize: Any = LazyModule("scipy.optimize")

# What a weight is at least, in standard deviations: zero, and on the right side of it for sure.
_LEAST = 1e-9


def keep_signs(
    points: Float,
    task: PaddedRows,
    prior: GaussianPrior,
    likelihood: Likelihood,
    signs: Float,
    *,
    logs: Float | None = None,
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
    logs : array of shape (p,), optional
        1 or -1 where points are logarithms of weights, else 0: see `mixed_model.lognormal_prior`.
    """
    logs = np.zeros_like(signs) if logs is None else logs
    wrong = np.flatnonzero((points * signs < 0.0).any(axis=1))
    if not len(wrong):
        return points
    points, means = points.copy(), prior.means(task.people)
    for person in wrong:
        own = of_each_person(task, itemgetter(slice(person, person + 1)))
        mean = means[person]
        points[person] = _bounded(points[person], mean, own, prior, (likelihood, signs, logs))
    return points


def _bounded(
    point: Float,
    mean: Float,
    task: PaddedRows,
    prior: GaussianPrior,
    said: tuple[Likelihood, Float, Float],
) -> Float:
    """Return one person's mode within the bounds."""
    likelihood, signs, logs = said
    varies = prior.residual > 0
    unit = np.sqrt(prior.covariance.diagonal()[varies])
    precision = np.linalg.inv(prior.covariance[np.ix_(varies, varies)])
    rows, rest = task.rows[0][:, varies], task.rows[0][:, ~varies] @ mean[~varies]

    def loss(scaled: Float) -> tuple[float, Float]:
        own = scaled * unit
        away = own - mean[varies]
        eta = rows @ weights_of_logs(own, logs[varies]) + rest
        labels = likelihood.at(eta[None], task)
        value = float(labels.loss[0]) + 0.5 * float(away @ precision @ away)
        pulled = slopes_of_logs(own, logs[varies]) * (rows.T @ labels.pull[0])
        return value, (precision @ away - pulled) * unit

    known = signs[varies]
    bounds = [(_LEAST if s > 0 else None, -_LEAST if s < 0 else None) for s in known]
    start = np.where(known * point[varies] < 0.0, known * _LEAST, point[varies] / unit)
    found = optimize.minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
    bounded = mean.copy()
    bounded[varies] = found.x * unit
    return bounded
