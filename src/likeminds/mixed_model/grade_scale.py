"""Counts of grades, and the scale they imply: bins, and how widely users spread their grades."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from likeminds._util.array_types import Float, FloatArray, Index
from likeminds.data.grades import MOST_GRADES


@dataclass(frozen=True)
class GradeCounts:
    """What is known of grades before anything is learned."""

    # (K,): the distinct grades, ascending, and how often each was given.
    values: Float
    counts: Index
    # (n_users,): how many grades all users gave, their mean, and their variance.
    n: Float
    means: Float
    variances: Float

    @classmethod
    def of(cls, grades: FloatArray, people: Index) -> "GradeCounts":
        """Count grades, and each user's own."""
        given: Float = np.asarray(grades, dtype=np.float64)
        values, counts = np.unique(given, return_counts=True)
        n = np.bincount(people).astype(np.float64)
        means = np.bincount(people, weights=given) / np.maximum(n, 1.0)
        squares = np.bincount(people, weights=(given - means[people]) ** 2)
        return cls(values, counts, n, means, squares / np.maximum(n - 1.0, 1.0))

    @classmethod
    def joined(cls, parts: "Sequence[GradeCounts]", places: Sequence[Index]) -> "GradeCounts":
        """Put together what several groups of users gave; ``places`` are theirs among all."""
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


@dataclass(frozen=True)
class GradeScale:
    """The grades of a crowd: bins, and how widely users spread theirs."""

    edges: Float  # (K - 1,): the highest grade of each bin but the last
    levels: Float  # (K,): the grade of each bin: itself, or the mean where several are in one bin
    # The typical standard deviation of a user's grades, and the standard deviation of its
    # logarithm between users.
    spread: float
    differ: float
    centre: float  # the mean grade

    @classmethod
    def of(cls, grades: FloatArray, people: Index) -> "GradeScale":
        """Learn bins and spreads from each user's grades."""
        return cls.given(GradeCounts.of(grades, people))

    @classmethod
    def given(cls, grade_counts: GradeCounts) -> "GradeScale":
        """Learn bins and spreads from how often grades were given."""
        edges = grade_counts.values[:-1]
        if len(grade_counts.values) > MOST_GRADES:
            edges = grade_counts.quantiles(np.linspace(0.0, 1.0, MOST_GRADES + 1)[1:-1])
            edges = edges[edges < grade_counts.values[-1]]
        codes = np.searchsorted(edges, grade_counts.values)
        total = np.bincount(codes, weights=grade_counts.values * grade_counts.counts)
        levels = total / np.bincount(codes, weights=grade_counts.counts)
        # Users with fewer grades than this say nothing about how spreads differ.
        able = (grade_counts.n >= 4) & (grade_counts.variances > 0)
        if not able.any():
            return cls(edges, levels, grade_counts.deviation or 1.0, 0.0, grade_counts.mean)
        logs, chance = (
            0.5 * np.log(grade_counts.variances[able]),
            0.5 / (grade_counts.n[able] - 1.0),
        )
        between = float(logs.var() - chance.mean())
        spread = float(np.exp(logs.mean()))
        return cls(edges, levels, spread, np.sqrt(max(between, 0.0)), grade_counts.mean)

    def codes(self, grades: FloatArray) -> Index:
        """Return the bin of each grade."""
        return np.searchsorted(self.edges, np.asarray(grades, dtype=np.float64))

    def spreads(self, grade_counts: GradeCounts) -> Float:
        """Return each user's standard deviation, shrunk towards the typical one."""
        free = np.maximum(grade_counts.n - 1.0, 0.0)
        # One more observation of the typical spread keeps logarithms finite.
        pooled = (free * grade_counts.variances + self.spread**2) / (free + 1.0)
        share = self.differ**2 / (self.differ**2 + 0.5 / (free + 1.0))
        return np.asarray(self.spread * np.exp(share * 0.5 * np.log(pooled / self.spread**2)))

    def centres(self, grade_counts: GradeCounts) -> Float:
        """Return each user's mean grade, that of the crowd counting once more."""
        return np.asarray(
            (grade_counts.n * grade_counts.means + self.centre) / (grade_counts.n + 1.0)
        )
