"""How often each grade was given, and how everybody spreads theirs: sums over people."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from likeminds._util.array_types import Float, FloatArray, Index


@dataclass(frozen=True)
class GradeCounts:
    """What is known of grades before anything is learned.

    Attributes
    ----------
    values, counts : arrays of shape (K,)
        The distinct grades, ascending, and how often each was given.
    n, means, variances : arrays of shape (n_people,)
        How many grades everybody gave, their mean, and their variance.
    """

    values: Float
    counts: Index
    n: Float
    means: Float
    variances: Float

    @classmethod
    def of(cls, grades: FloatArray, people: Index) -> "GradeCounts":
        """Count grades, and everybody's own."""
        said = np.asarray(grades, dtype=np.float64)
        values, counts = np.unique(said, return_counts=True)
        n = np.bincount(people).astype(np.float64)
        means = np.bincount(people, weights=said) / np.maximum(n, 1.0)
        squares = np.bincount(people, weights=(said - means[people]) ** 2)
        return cls(values, counts, n, means, squares / np.maximum(n - 1.0, 1.0))

    @classmethod
    def joined(cls, parts: "Sequence[GradeCounts]", places: Sequence[Index]) -> "GradeCounts":
        """Put together what several groups of people gave; ``places`` are theirs among all."""
        values, codes = np.unique(
            np.concatenate([one.values for one in parts]), return_inverse=True
        )
        counts = np.bincount(codes, weights=np.concatenate([one.counts for one in parts]))
        order = np.argsort(np.concatenate(places), kind="stable")
        n, means, variances = (
            np.concatenate([getattr(one, name) for one in parts])[order]
            for name in ("n", "means", "variances")
        )
        return cls(values, counts.astype(np.intp), n, means, variances)

    @property
    def mean(self) -> float:
        """The mean grade."""
        return float(self.values @ self.counts) / float(self.counts.sum())

    @property
    def deviation(self) -> float:
        """The standard deviation of all grades."""
        squares = float((self.values - self.mean) ** 2 @ self.counts)
        return float(np.sqrt(squares / self.counts.sum()))

    def quantiles(self, shares: Float) -> Float:
        """Return the least grades that so large shares do not exceed, each once."""
        reached = np.cumsum(self.counts)
        places = np.searchsorted(reached, np.ceil(shares * reached[-1] - 1e-9))
        return np.unique(self.values[places])
