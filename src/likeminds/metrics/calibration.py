"""Scores turned into log-odds of labels, and how readily each person says yes."""

import numpy as np
from scipy.special import expit

from likeminds._util.array_types import Bool, Float, Index

# Standard deviation of users' intercepts around their mean, in log-odds.
_READINESS = 1.0
_STEPS, _LONGEST, _CLOSE = 50, 2.0, 1e-8


def calibrate(
    scores: Float, labels: Bool, people: Index, n_users: int, weight: Float
) -> tuple[float, Float]:
    """Fit log-odds of labels: one slope of the scores for all, an intercept for each person.

    Intercepts have a normal prior around their mean, with a standard deviation of 1; the slope
    is not negative.
    """
    unit = float(scores.std()) or 1.0
    z = scores / unit
    both, own = np.zeros(2), np.zeros(n_users)

    def sums(values: Float) -> Float:
        return np.asarray(np.bincount(people, weights=values, minlength=n_users), dtype=np.float64)

    for _ in range(_STEPS):
        p = expit(both[0] * z + both[1] + own[people])
        slope, bend = weight * (labels - p), weight * p * (1.0 - p)
        # People's intercepts are eliminated from Newton's step (Schur complement).
        inner = sums(bend) + 1.0 / _READINESS**2
        gradient = sums(slope) - own / _READINESS**2
        crossed = np.stack([sums(bend * z), sums(bend)])
        matrix = np.array([[bend @ z**2, bend @ z], [bend @ z, bend.sum()]])
        matrix = matrix - (crossed / inner) @ crossed.T + 1e-9 * np.eye(2) * (1.0 + bend.sum())
        right = np.array([slope @ z, slope.sum()]) - crossed @ (gradient / inner)
        step = np.linalg.solve(matrix, right)
        theirs = (gradient - step @ crossed) / inner
        largest = float(np.abs(np.concatenate([step, theirs])).max())
        # A longer step leaves the region where the quadratic model of the loss holds.
        damp = min(1.0, _LONGEST / max(largest, _CLOSE))
        both, own = both + damp * step, own + damp * theirs
        if largest < _CLOSE:
            break
    return max(float(both[0]), 0.0) / unit, both[1] + own
