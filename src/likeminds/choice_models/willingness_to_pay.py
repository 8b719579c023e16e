"""Willingness to pay: ratios of part-worths, with intervals that ratios deserve.

A ratio of two numbers that are only known roughly is not normally distributed, and where the
denominator may be zero it may be anything. The interval of a ratio of means is Fieller's: all
ratios r for which the mean of (weight + r price weight) is not distinguishable from zero. Between
people, quantiles are given, since neither mean nor variance of such a ratio need exist.
"""

import numpy as np
from scipy.special import ndtri

from likeminds._util.array_types import Float, IdArray
from likeminds.choice_models.estimates import Estimates
from likeminds.choice_models.text_tables import Table

# People drawn at random from the crowd, for quantiles of their ratios.
_PEOPLE = 20_000


def fieller(
    numerator: float, denominator: float, covariance: Float, far: float
) -> tuple[float, float]:
    """Return the ratios a / b that two estimates do not rule out.

    Examples
    --------
    >>> low, high = fieller(2.0, 1.0, np.diag([0.01, 0.0]), 2.0)
    >>> round(low, 3), round(high, 3)
    (1.8, 2.2)
    """
    (aa, ab), (_, bb) = far**2 * covariance
    square = denominator**2 - bb
    if square <= 0:
        raise ValueError("The denominator is not distinguishable from zero.")
    middle = (numerator * denominator - ab) / square
    rest = (numerator**2 - aa) / square
    half = np.sqrt(max(middle**2 - rest, 0.0))
    return float(middle - half), float(middle + half)


def willingness_to_pay(estimates: Estimates, names: IdArray, price: int, level: float) -> Table:
    """Return what people would pay for one more unit of each feature, with intervals."""
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, but is {level}.")
    worth, covariance = estimates.part_worths, estimates.mean_covariance
    far = float(ndtri(0.5 + 0.5 * level))
    _refuse_no_price(estimates, str(names[price]), price, far)
    ratios, share = _of_people(estimates, price)
    outside = 0.5 * (1.0 - level)
    low, middle, high = np.quantile(ratios, [outside, 0.5, 1.0 - outside], axis=0)
    rows = []
    for k, name in enumerate(names):
        if k == price:
            continue
        pair = np.ix_([k, price], [k, price])
        ends = fieller(-worth.mean[k], worth.mean[price], _flipped(covariance[pair]), far)
        rows.append(
            {
                "feature": str(name),
                "at the mean": float(-worth.mean[k] / worth.mean[price]),
                "from": ends[0],
                "to": ends[1],
                "median person": float(middle[k]),
                "people from": float(low[k]),
                "people to": float(high[k]),
            }
        )
    notes = [
        f"In units of {names[price]}, for one more unit of the feature. From, to: {level:.0%} "
        f"interval of the ratio of means (Fieller's). People from, to: {level:.0%} of people."
    ]
    if share < 1:
        notes.append(
            f"{1 - share:.1%} of the normal distribution of people have a weight of {names[price]} "
            "that is not negative: they are left out of the people's columns."
        )
    return Table("Willingness to pay", rows, tuple(notes))


def _refuse_no_price(estimates: Estimates, name: str, price: int, far: float) -> None:
    mean, error = float(estimates.part_worths.mean[price]), float(estimates.mean_error[price])
    if not np.isfinite(error):
        raise ValueError(
            "There are no standard errors at this estimate, at which the likelihood is not "
            "concave, and so no intervals: fit with draws=500 for its maximum."
        )
    if abs(mean) <= far * error:
        raise ValueError(
            f"The mean weight of {name} is {mean:.3g} with a standard error of {error:.2g}: it is "
            "not distinguishable from zero, so that what people would pay may be anything."
        )
    if mean > 0:
        raise ValueError(
            f"The mean weight of {name} is {mean:.3g}: people like more of it, so that it is no "
            "price. Name a feature that people would rather have less of."
        )


def _of_people(estimates: Estimates, price: int) -> tuple[Float, float]:
    """Return minus the ratios of people's weights to that of the price, and whose share that is."""
    weights = estimates.part_worths.drawn(_PEOPLE, np.random.default_rng(0))
    paying = weights[:, price] < 0
    return -weights[paying] / weights[paying][:, price, None], float(paying.mean())


def _flipped(covariance: Float) -> Float:
    """Return the covariance of (-a, b), given that of (a, b)."""
    turn = np.array([-1.0, 1.0])
    return np.asarray(covariance * np.outer(turn, turn))
