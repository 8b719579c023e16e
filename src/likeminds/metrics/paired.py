"""Paired statistics: intervals and tests of differences, over users and over repeats."""

from typing import Any, NamedTuple

import numpy as np

from likeminds._util.array_types import Bool, Float
from likeminds._util.lazy_imports import LazyModule

stats: Any = LazyModule("scipy.stats")

_CONFIDENCE = 0.95


class PairedDifference(NamedTuple):
    """The mean of paired differences, its 95 % interval, and Wilcoxon's signed-rank p."""

    mean: float
    low: float
    high: float
    p_value: float


def over_users(differences: Float) -> PairedDifference:
    """Test differences over independent users, with Student's t interval."""
    return _test_difference(differences, extra_variance=0.0)


def over_repeats(differences: Float, test_size: float) -> PairedDifference:
    """Test differences over repeated splits, whose training sets overlap.

    The interval is corrected after Nadeau and Bengio (2003): the variance of the mean of R repeats
    is (1/R + test/train) times that of one, not 1/R times.
    """
    return _test_difference(differences, extra_variance=test_size / (1.0 - test_size))


def _test_difference(differences: Float, extra_variance: float) -> PairedDifference:
    values = differences[np.isfinite(differences)]
    n = len(values)
    if n < 2:
        return PairedDifference(values[0] if n else np.nan, np.nan, np.nan, np.nan)
    mean = values.mean()
    error = np.sqrt((1.0 / n + extra_variance) * values.var(ddof=1))
    half = stats.t.ppf(0.5 + _CONFIDENCE / 2, n - 1) * error
    different = values[values != 0]
    p_value = float(stats.wilcoxon(different).pvalue) if len(different) else 1.0
    return PairedDifference(mean, mean - half, mean + half, p_value)


def discoveries(p_values: Float, level: float) -> Bool:
    """Mark discoveries at a false discovery rate (Benjamini, Hochberg, 1995); NaN is not one."""
    found, tested = np.zeros(len(p_values), dtype=np.bool_), np.isfinite(p_values)
    if tested.any():
        found[tested] = stats.false_discovery_control(p_values[tested]) <= level
    return found
