"""Market shares of items, and willingness to pay.

A user chooses item j with probability exp(s_j) / sum_k exp(s_k), where s are the user's scores of
available items. The share of an item is the mean over users and draws from their posteriors.

Willingness to pay is a ratio of part-worths, and a ratio of two estimates is not normally
distributed. So the ratio of means has Fieller's interval: all ratios r for which the mean of
(weight + r price weight) is not distinguishable from zero. Users are described by quantiles,
because the mean and variance of such a ratio may not exist.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri, softmax

from likeminds._util.array_types import Bool, Float, FloatArray, IdArray
from likeminds._util.per_user_arrays import symmetric_root
from likeminds._util.result_tables import Frames, Table
from likeminds.choice_models.estimates import Estimates
from likeminds.mixed_model.extensions.sign_constraints import constrained_weights, logs_of_moments
from likeminds.mixed_model.posterior import Posterior

# Draws from each user's posterior; half of them mirror the other half.
_DRAWS = 64
# Bytes of draws in memory at a time.
_BYTES_AT_ONCE = 1 << 24
# Users drawn from the prior, for quantiles of their ratios.
_PRIOR_DRAWS = 20_000


@dataclass(frozen=True)
class Market:
    """Users' choices among ``available`` items; signs and logs as in `Specification`."""

    posterior: Posterior
    items: FloatArray
    available: Bool
    signs: Float | None = None
    logs: Float | None = None

    def shares(self) -> Float:
        """Return each user's probability of choosing each item, shape (n_users, n_items)."""
        return np.concatenate([probabilities.mean(axis=1) for _, probabilities in self._blocks()])

    def slopes(self, feature: int) -> Float:
        """Return d share_j / d feature_k for each user, shape (n_users, n_items, n_items)."""
        found = []
        for weights, probabilities in self._blocks():
            weight = weights[:, :, feature]
            own = np.einsum("br,brj->bj", weight, probabilities)
            both = np.einsum("br,brj,brk->bjk", weight, probabilities, probabilities)
            found.append((np.eye(own.shape[1]) * own[:, :, None] - both) / weight.shape[1])
        return np.concatenate(found)

    def _blocks(self) -> Iterator[tuple[Float, Float]]:
        """Yield users' draws of weights (b, r, d), and probabilities of items (b, r, n_items)."""
        posterior, n_items = self.posterior, len(self.items)
        rng = np.random.default_rng(0)
        size = len(posterior.prior.mean)
        normal = rng.standard_normal((_DRAWS // 2, size))
        normal = np.concatenate([normal, -normal])
        most = max(1, _BYTES_AT_ONCE // (8 * _DRAWS * (n_items + 2 * size)))
        whole = posterior.prior.covariance
        for start in range(0, len(posterior.users), most):
            users = np.arange(start, min(start + most, len(posterior.users)))
            known = posterior.variance_reduction[users].astype(np.float64)
            centre, covariance = posterior.points[users], whole - known.transpose(0, 2, 1) @ known
            if self.logs is not None:
                centre, covariance = logs_of_moments(centre, covariance, self.logs)
            points = centre[:, None] + normal @ symmetric_root(covariance).transpose(0, 2, 1)
            points = constrained_weights(points, self.signs, self.logs)
            weights = posterior.design.weights(points)
            scores = weights @ self.items.T
            scores[np.broadcast_to(~self.available[users][:, None], scores.shape)] = -np.inf
            yield weights, softmax(scores, axis=2)


def fieller(
    numerator: float, denominator: float, covariance: Float, quantile: float
) -> tuple[float, float]:
    """Return Fieller's interval of a ratio of two estimates, given a normal quantile.

    Examples
    --------
    >>> low, high = fieller(2.0, 1.0, np.diag([0.01, 0.0]), 2.0)
    >>> round(low, 3), round(high, 3)
    (1.8, 2.2)
    """
    (aa, ab), (_, bb) = quantile**2 * covariance
    square = denominator**2 - bb
    if square <= 0:
        raise ValueError("The denominator is not distinguishable from zero.")
    middle = (numerator * denominator - ab) / square
    rest = (numerator**2 - aa) / square
    half = np.sqrt(max(middle**2 - rest, 0.0))
    return float(middle - half), float(middle + half)


def willingness_to_pay(
    estimates: Estimates, names: IdArray, price: int, level: float, frames: Frames
) -> Table:
    """Return the willingness to pay for one more unit of each feature, with intervals."""
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, but is {level}.")
    worth, covariance = estimates.part_worths, estimates.mean_covariance
    quantile = float(ndtri(0.5 + 0.5 * level))
    _refuse_no_price(estimates, str(names[price]), price, quantile)
    weights = worth.drawn(_PRIOR_DRAWS, np.random.default_rng(0))
    paying = weights[:, price] < 0
    ratios, share = -weights[paying] / weights[paying][:, [price]], float(paying.mean())
    outside = 0.5 * (1.0 - level)
    low, middle, high = np.quantile(ratios, [outside, 0.5, 1.0 - outside], axis=0)
    rows = []
    for k, name in enumerate(names):
        if k == price:
            continue
        pair = np.ix_([k, price], [k, price])
        # The covariance of (-a, b) has that of (a, b) with other signs off the diagonal.
        flipped = covariance[pair] * [[1.0, -1.0], [-1.0, 1.0]]
        ends = fieller(-worth.mean[k], worth.mean[price], flipped, quantile)
        rows.append(
            {
                "feature": str(name),
                "at the mean": float(-worth.mean[k] / worth.mean[price]),
                "from": ends[0],
                "to": ends[1],
                "median user": float(middle[k]),
                "users from": float(low[k]),
                "users to": float(high[k]),
            }
        )
    notes = [
        f"In units of {names[price]}, for one more unit of the feature. From, to: {level:.0%} "
        f"interval of the ratio of means (Fieller's). Users from, to: {level:.0%} of users."
    ]
    if share < 1:
        notes.append(
            f"The columns of users leave out {1 - share:.1%} of users, whose weight of "
            f"{names[price]} is not negative."
        )
    return Table("Willingness to pay", rows, tuple(notes), frames=frames)


def _refuse_no_price(estimates: Estimates, name: str, price: int, quantile: float) -> None:
    mean, error = float(estimates.part_worths.mean[price]), float(estimates.mean_error[price])
    if not np.isfinite(error):
        raise ValueError(
            "Intervals need standard errors, but the likelihood is not concave at this estimate. "
            "Fit with draws=500 for its maximum."
        )
    if abs(mean) <= quantile * error:
        raise ValueError(
            f"Willingness to pay is not identified: the mean weight of {name}, {mean:.3g} with "
            f"standard error {error:.2g}, is not distinguishable from zero. Add choices."
        )
    if mean > 0:
        raise ValueError(
            f"{name} is not a price, because its mean weight, {mean:.3g}, is positive. Name a "
            "feature with a negative weight."
        )
