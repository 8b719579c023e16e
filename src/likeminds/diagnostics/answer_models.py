"""Models of constant and repeated answers, and of AUCs of attentive and random users."""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from likeminds._util.array_types import Bool, Float, Index
from likeminds._util.per_user_arrays import order_by

# A user counts as constant only if the rarer answers have at most this share.
_RARE = 0.05
# Added to the p-value of a response time, so weights of p-values lie between 0.3 and 7.
_LEAST_SPEED = 0.05
# If this share of users has few runs (p up to _LEVEL), rows are sorted, not in answering order.
_SORTED, _LEVEL = 0.2, 0.05
_STEPS = 500
# The least mean AUC of attentive users.
_LEAST_MEAN = 0.55


def p_same_answer(
    yes: Bool, chance: Float, users: Index, n_users: int, answers: Index | None = None
) -> Float:
    """Return the probability of so few rarer answers, for each user.

    ``answers`` has codes of the answers, such as grades. ``chance`` is the probability of a yes by
    a user with the median threshold. The number of rarer answers has a Poisson binomial
    distribution. The p-value is 1 if over 5 % of answers differ from the user's most frequent one.
    """
    found = np.ones(n_users)
    order, offsets = order_by(users, n_users)
    for user in range(n_users):
        rows = order[offsets[user] : offsets[user + 1]]
        n_yes = int(yes[rows].sum())
        rarer = min(n_yes, len(rows) - n_yes)
        if answers is not None and len(rows):
            rarer = max(rarer, len(rows) - int(np.bincount(answers[rows]).max()))
        if not len(rows) or rarer > _RARE * len(rows):
            continue
        rare_chance = chance[rows] if n_yes == rarer else 1.0 - chance[rows]
        counts = np.zeros(rarer + 1)  # probabilities of 0, 1, ... rarer answers
        counts[0] = 1.0
        for probability in rare_chance:
            counts[1:] += probability * (counts[:-1] - counts[1:])
            counts[0] *= 1.0 - probability
        found[user] = counts.sum()
    return found


def p_few_runs(answers: Index | Bool, users: Index, n_users: int) -> Float:
    """Return the probability of so few runs of equal answers, for each user.

    This is the normal approximation of the test of Wald and Wolfowitz (1940), or of Barton and
    David (1957) for more than two answers. Users who always give the same answer get NaN. If many
    users have few runs, rows are probably sorted rather than in answering order, and all get NaN.
    """
    order, _ = order_by(users, n_users)
    owner, answers = users[order], answers[order].astype(np.intp)
    begins = np.ones(len(answers), dtype=np.bool_)
    begins[1:] = (owner[1:] != owner[:-1]) | (answers[1:] != answers[:-1])
    runs, n = np.bincount(owner[begins], minlength=n_users), np.bincount(owner, minlength=n_users)
    kinds = np.zeros((n_users, int(answers.max(initial=0)) + 1))
    np.add.at(kinds, (owner, answers), 1.0)
    both = (kinds.max(axis=1) < n) & (n > 2)
    found = np.full(n_users, np.nan)
    total, squares, cubes = n[both].astype(float), *((kinds[both] ** k).sum(axis=1) for k in (2, 3))
    mean = total + 1.0 - squares / total
    variance = squares * (squares + total * (total + 1.0)) - 2.0 * total * cubes - total**3
    variance /= total**2 * (total - 1.0)
    found[both] = ndtr((runs[both] + 0.5 - mean) / np.sqrt(np.maximum(variance, 1e-12)))
    if both.any() and (found[both] <= _LEVEL).mean() > _SORTED:
        found[:] = np.nan
    return found


def speed_weights(seconds: Float) -> Float:
    """Return weights with mean 1 for p-values of constant answers, larger for fast users.

    Weights fall with the quantile of a response time in a log-normal distribution, fitted by the
    median and the median absolute deviation. Users without a time get weight 1.
    """
    weights, timed = np.ones(len(seconds)), np.isfinite(seconds)
    if (seconds[timed] <= 0).any():
        raise ValueError(
            f"Response times must be positive, but one is {seconds[timed].min():g} seconds. Leave "
            "out times that were not measured."
        )
    logs = np.log(seconds[timed])
    if not len(logs) or np.ptp(logs) == 0:
        return weights
    deviation = np.abs(logs - np.median(logs))
    spread = max(1.4826 * float(np.median(deviation)), 1e-6)
    likely = 1.0 / (ndtr((logs - np.median(logs)) / spread) + _LEAST_SPEED)
    weights[timed] = likely / likely.mean()
    return weights


class AttentiveAuc(NamedTuple):
    """The normal distribution of attentive users' AUCs, and the share of random users."""

    mean: float
    deviation: float
    random_share: float


def fit_attentive(auc: Float, noise: Float, chance: Float) -> AttentiveAuc:
    """Fit a mixture of attentive and random users to held-out AUCs, by EM.

    An AUC is N(0.5, chance) for users who answer at random, and N(mean, deviation^2 + noise) for
    the others. Without random users, their share goes to zero.
    """
    mean, deviation, share = max(float(np.median(auc)), _LEAST_MEAN), float(auc.std()), 0.1
    at_random = _normal(auc, 0.5, chance)
    for _ in range(_STEPS):
        variance = deviation**2 + noise
        ordinary = (1.0 - share) * _normal(auc, mean, variance)
        weight = ordinary / np.maximum(ordinary + share * at_random, 1e-300)
        before = mean, deviation, share
        # Posterior mean and variance of an attentive user's AUC without noise.
        trust = deviation**2 / variance
        clean = mean + trust * (auc - mean)
        total = max(float(weight.sum()), 1e-12)
        mean = max(float(weight @ clean) / total, _LEAST_MEAN)
        deviation = float(np.sqrt(weight @ ((clean - mean) ** 2 + trust * noise) / total))
        share = float(1.0 - weight.mean())
        if np.allclose(before, (mean, deviation, share), rtol=1e-6, atol=1e-7):
            break
    return AttentiveAuc(mean, deviation, share)


def _normal(x: Float, mean: float, variance: Float) -> Float:
    return np.asarray(np.exp(-0.5 * (x - mean) ** 2 / variance) / np.sqrt(2 * np.pi * variance))
