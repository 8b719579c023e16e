"""The distribution of attentive people's AUCs, where some people may answer at random."""

from typing import NamedTuple

import numpy as np

from likeminds._util.array_types import Float

_STEPS = 500
# Somebody whose ranking is this little better than chance counts as attentive at the least.
_LEAST_MEAN = 0.55


class AttentiveAuc(NamedTuple):
    """Mean and standard deviation of the AUCs of attentive people, which are normal."""

    mean: float
    deviation: float
    random_share: float


def attentive(auc: Float, noise: Float, chance: Float) -> AttentiveAuc:
    """Fit a mixture of attentive and random people to their AUCs.

    An AUC found is N(0.5, chance) for people who answer at random, and N(mean, deviation^2 +
    noise) for the others; the mean, the deviation and the share of random people are maximum
    likelihood estimates (by EM). Where nobody is random, the share goes to zero.

    Parameters
    ----------
    auc : array of shape (n_users,)
        AUCs on held-out labels.
    noise, chance : arrays of shape (n_users,)
        Their variances: for an attentive person, and for one who answers at random.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> auc = np.concatenate([rng.normal(0.8, 0.08, 270), rng.normal(0.5, 0.05, 30)])
    >>> found = attentive(auc, np.full(300, 0.05**2), np.full(300, 0.05**2))
    >>> round(found.mean, 1), round(found.random_share, 1)
    (0.8, 0.1)
    """
    mean, deviation, share = float(np.median(auc)), float(auc.std()), 0.1
    mean = max(mean, _LEAST_MEAN)
    for _ in range(_STEPS):
        variance = deviation**2 + noise
        ordinary = (1.0 - share) * _normal(auc, mean, variance)
        careless = share * _normal(auc, 0.5, chance)
        weight = ordinary / np.maximum(ordinary + careless, 1e-300)
        before = mean, deviation, share
        # Posterior mean and variance of an attentive person's AUC without noise.
        trust = deviation**2 / variance
        clean = mean + trust * (auc - mean)
        total = max(float(weight.sum()), 1e-12)
        mean = max(float(weight @ clean) / total, _LEAST_MEAN)
        spread = weight @ ((clean - mean) ** 2 + trust * noise)
        deviation = float(np.sqrt(spread / total))
        share = float(1.0 - weight.mean())
        if np.allclose(before, (mean, deviation, share), rtol=1e-6, atol=1e-7):
            break
    return AttentiveAuc(mean, deviation, share)


def _normal(x: Float, mean: float, variance: Float) -> Float:
    return np.asarray(np.exp(-0.5 * (x - mean) ** 2 / variance) / np.sqrt(2 * np.pi * variance))
