"""Likelihoods of grades: a cumulative logit, and a normal distribution of standardised grades.

    cumulative:  P(grade <= k) = logistic(s_i c_k - slope eta)    cuts c_k shared by all users
    normal:      (grade - m_i) / s_i = eta + noise                noise with a user's own variance

Users differ in their use of a scale. A user's shift is the intercept of eta (and m_i), which the
prior shrinks. The range s_i comes from the spread of the user's grades. It is shrunk towards the
typical spread, less so if spreads differ between users beyond chance.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy import optimize
from scipy.special import expit

from likeminds._util.array_types import Float, FloatArray, Index
from likeminds._util.per_user_arrays import damped_newton, row_dots
from likeminds.data.grades import MOST_GRADES
from likeminds.mixed_model.likelihoods import (
    DiagonalCurvature,
    LossDerivatives,
    RowLikelihood,
    damping,
    mean_between,
)
from likeminds.mixed_model.responses import PaddedRows

# Nodes over which posteriors of scores are averaged.
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(5)
# The least distance between two cuts.
_LEAST_STEP = 1e-3


@dataclass(frozen=True)
class GradeCounts:
    """Counts of grades, and moments of each user's grades."""

    values: Float  # (K,): the distinct grades, ascending
    counts: Index  # (K,)
    n: Float  # (n_users,): the number, mean and variance of each user's grades
    means: Float
    variances: Float

    @classmethod
    def of(cls, grades: FloatArray, users: Index) -> "GradeCounts":
        """Count all grades, and compute the moments of each user's grades."""
        given: Float = np.asarray(grades, dtype=np.float64)
        values, counts = np.unique(given, return_counts=True)
        n = np.bincount(users).astype(np.float64)
        means = np.bincount(users, weights=given) / np.maximum(n, 1.0)
        squares = np.bincount(users, weights=(given - means[users]) ** 2)
        return cls(values, counts, n, means, squares / np.maximum(n - 1.0, 1.0))

    @classmethod
    def joined(cls, parts: "Sequence[GradeCounts]", places: Sequence[Index]) -> "GradeCounts":
        """Join the counts of several parts of the users, whose positions are ``places``."""
        every = np.concatenate([one.values for one in parts])
        values, codes = np.unique(every, return_inverse=True)
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
        """Return the distinct quantiles of grades for some shares."""
        reached = np.cumsum(self.counts)
        places = np.searchsorted(reached, np.ceil(shares * reached[-1] - 1e-9))
        return np.unique(self.values[places])


@dataclass(frozen=True)
class GradeScale:
    """The scale of grades: bins, and the distribution of users' spreads."""

    edges: Float  # (K - 1,): the highest grade of each bin but the last
    levels: Float  # (K,): the mean grade of each bin
    spread: float  # the typical standard deviation of a user's grades
    differ: float  # the standard deviation of its logarithm between users
    centre: float  # the mean grade

    @classmethod
    def given(cls, grade_counts: GradeCounts) -> "GradeScale":
        """Learn bins and spreads from the counts of grades."""
        edges = grade_counts.values[:-1]
        if len(grade_counts.values) > MOST_GRADES:
            edges = grade_counts.quantiles(np.linspace(0.0, 1.0, MOST_GRADES + 1)[1:-1])
            edges = edges[edges < grade_counts.values[-1]]
        codes = np.searchsorted(edges, grade_counts.values)
        total = np.bincount(codes, weights=grade_counts.values * grade_counts.counts)
        levels = total / np.bincount(codes, weights=grade_counts.counts)
        able = (grade_counts.n >= 4) & (grade_counts.variances > 0)
        if not able.any():
            return cls(edges, levels, grade_counts.deviation or 1.0, 0.0, grade_counts.mean)
        logs = 0.5 * np.log(grade_counts.variances[able])
        chance = 0.5 / (grade_counts.n[able] - 1.0)
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
        """Return each user's mean grade, with the overall mean as one more grade."""
        return np.asarray(
            (grade_counts.n * grade_counts.means + self.centre) / (grade_counts.n + 1.0)
        )


@dataclass(frozen=True)
class CumulativeLogit(RowLikelihood):
    """P(grade <= k) = logistic(s_i c_k - slope eta); responses are the numbers of bins."""

    per_user: ClassVar = ("use", "shifts")

    scale: GradeScale
    cuts: Float  # (K - 1,): the cuts c_k, ascending
    use: Float  # (n_users,): s_i
    slope: float = 1.0  # one for scores fitted with this likelihood
    shifts: Float | None = None  # (n_users,): added to scores without intercepts

    is_quadratic = False
    curvature_bound = 0.5  # the largest second derivative of a label's loss

    @classmethod
    def given(cls, grade_counts: GradeCounts) -> "CumulativeLogit":
        """Return cuts that reproduce the share of each grade, if scores differ by about one."""
        scale = GradeScale.given(grade_counts)
        counts = np.bincount(scale.codes(grade_counts.values), weights=grade_counts.counts)
        share = np.clip((np.cumsum(counts) / counts.sum())[:-1], 1e-4, 1.0 - 1e-4)
        cuts = np.log(share / (1.0 - share)) * np.sqrt(1.0 + 3.0 / np.pi**2)
        return cls(scale, _apart(cuts), scale.spread / scale.spreads(grade_counts))

    def of_users(self, grades: FloatArray | None, users: Index) -> "CumulativeLogit":
        """Return the likelihood of other users: equal grades of a user mean wide cuts."""
        assert grades is not None
        grade_counts = GradeCounts.of(grades, users)
        return replace(self, use=self.scale.spread / self.scale.spreads(grade_counts))

    def at(self, eta: Float, data: PaddedRows) -> LossDerivatives:
        """Return the loss and its derivatives."""
        above, below = self._sides(
            eta, data.response.astype(np.intp), self.use[data.users][:, None]
        )
        chance = np.maximum(above - below, 1e-300)
        h = above * (1.0 - above) + below * (1.0 - below)
        third = above * (1.0 - above) * (1.0 - 2.0 * above)
        third += below * (1.0 - below) * (1.0 - 2.0 * below)
        return LossDerivatives(
            -row_dots(data.weight, np.log(chance)),
            data.weight * (above + below - 1.0),
            DiagonalCurvature(np.sqrt(data.weight * h), -third / np.maximum(h, 1e-300)),
        )

    def each(
        self, eta: Float, response: Float, users: Index, variance: Float | float = 0.0
    ) -> Float:
        """Return the expected loss of every label, given a variance of its score."""
        rough = damping(self.slope**2 * variance)
        codes = np.asarray(response, dtype=np.intp)
        above, below = self._sides(eta / rough, codes, self.use[users] / rough)
        return np.asarray(-np.log(np.maximum(above - below, 1e-300)))

    def utility(self, eta: Float, response: Float, users: Index) -> Float:
        """Return the mean latent utility eta + noise, given each grade: between two cuts."""
        codes, use = np.asarray(response, dtype=np.intp), self.use[users]
        low, up = self._bounds(codes)
        return mean_between(self.slope * eta, use * low, use * up) / self.slope

    def expected_information(self, eta: Float) -> Float:
        """Return the mean information of one more grade."""
        up_to = expit(self.cuts - eta[:, None])
        edge = np.zeros((len(eta), 1))
        up_to = np.hstack([edge, up_to, edge + 1.0])
        f = up_to * (1.0 - up_to)
        return np.asarray((np.diff(up_to, axis=1) * (f[:, 1:] + f[:, :-1])).sum(axis=1))

    def chances(self, eta: Float, variance: Float, use: Float) -> Float:
        """Return the probability of each bin, (n, K), given scores with a variance."""
        rough = damping(self.slope**2 * variance)[:, None]
        inner = (use[:, None] * self.cuts - self.slope * eta[:, None]) / rough
        edge = np.full((len(eta), 1), np.inf)
        bounds = np.hstack([-edge, inner, edge])
        low, up = bounds[:, :-1], bounds[:, 1:]
        # F(up) - F(low), without loss of precision in the upper tail.
        return np.asarray(expit(up) * expit(-low) * -np.expm1(low - up))

    def slopes(self, eta: Float, codes: Index, use: Float) -> tuple[Float, Float]:
        """Return minus the slope of every label's loss by eta, and its curvature, of shape (n,)."""
        above, below = self._sides(eta, codes, use)
        h = above * (1.0 - above) + below * (1.0 - below)
        return self.slope * (above + below - 1.0), self.slope**2 * h

    def scale_use(self, users: Index) -> tuple[Float, Float]:
        """Return users' s_i and shifts (-1: of a new user)."""
        shifts = np.zeros(len(self.use)) if self.shifts is None else self.shifts
        return np.append(self.use, 1.0)[users], np.append(shifts, 0.0)[users]

    def with_shifts(
        self, codes: Index, users: Index, eta: Float, *, variance: float | None = None
    ) -> "CumulativeLogit":
        """Fit each user's shift, shrunk by the variance of shifts, which is fitted if not given."""
        n_users = len(self.use)
        start = np.zeros(n_users) if self.shifts is None else self.shifts
        least = 1e-6  # the least variance of shifts
        spread = max(1.0 if variance is None else variance, least)

        def at(shifts: Float) -> tuple[tuple[Float, Float, Float], None]:
            slope, h = self.slopes(eta + shifts[users, 0], codes, self.use[users])
            gradient: Float = np.bincount(users, weights=slope, minlength=n_users).astype(
                np.float64
            )
            known: Float = np.bincount(users, weights=h, minlength=n_users).astype(np.float64)
            return (shifts[:, 0], gradient, known), None

        def step_of(found: tuple[Float, Float, Float]) -> Float:
            nonlocal spread
            shifts, gradient, known = found
            step = (gradient - shifts / spread) / (known + 1.0 / spread)
            if variance is None:
                moved = shifts + np.clip(step, -1.0, 1.0)
                spread = max(float((moved**2 + 1.0 / (known + 1.0 / spread)).mean()), least)
            return step[:, None]

        # Far from all cuts the likelihood is nearly flat, so steps have a limit.
        shifts, _, _ = damped_newton(start[:, None], at, step_of, longest=1.0, n_steps=8)
        return replace(self, shifts=shifts)

    def refined(
        self, codes: Index, use: Float, eta: Float, variance: Float, *, free_slope: bool = False
    ) -> "CumulativeLogit":
        """Return the cuts that make grades most likely, on average over posteriors of scores.

        ``use`` is the response style of every grade's user.
        """
        spread = np.sqrt(variance)
        nodes = [(eta + node * spread, w) for node, w in zip(_NODES, _WEIGHTS, strict=True)]

        def objective(vector: Float) -> tuple[float, Float]:
            cuts, slope = _decode(vector)
            model = replace(self, cuts=cuts, slope=slope)
            value, by_cut, by_slope = 0.0, np.zeros(len(cuts)), 0.0
            for at, w in nodes:
                above, below = model._sides(at, codes, use)
                chance = np.maximum(above - below, 1e-12)
                value -= w * float(np.log(chance).sum())
                up = np.where(above < 1.0, above * (1.0 - above), 0.0) / chance
                low = below * (1.0 - below) / chance
                by_cut -= w * _by_cut(up * use, low * use, codes, len(cuts))
                by_slope -= w * float((at * (above + below - 1.0)).sum())
            slopes = np.append(np.cumsum(by_cut[::-1])[::-1], by_slope * slope * free_slope)
            slopes[1:-1] *= np.exp(vector[1:-1])
            total = float(_WEIGHTS.sum()) * len(codes)
            return value / total, slopes / total

        start = _encode(self.cuts, self.slope)
        found = optimize.minimize(
            objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 100}
        )
        cuts, slope = _decode(found.x)
        return replace(self, cuts=cuts, slope=slope)

    def _sides(self, eta: Float, codes: Index, use: Float) -> tuple[Float, Float]:
        """Return the probabilities of at most each row's grade, and of a lower one."""
        low, up = self._bounds(codes)
        score = self.slope * eta
        return expit(use * up - score), expit(use * low - score)

    def _bounds(self, codes: Index) -> tuple[Float, Float]:
        """Return the cuts below and above each grade."""
        padded = np.concatenate([[-np.inf], self.cuts, [np.inf]])
        return padded[codes], padded[codes + 1]


def _by_cut(up: Float, low: Float, codes: Index, n_cuts: int) -> Float:
    """Return sums over rows by the cut above them, less sums by the cut below them."""
    above = np.bincount(codes, weights=up, minlength=n_cuts + 1)[:n_cuts]
    return np.asarray(above - np.bincount(codes, weights=low, minlength=n_cuts + 1)[1:])


def _encode(cuts: Float, slope: float) -> Float:
    steps = np.log(np.maximum(np.diff(cuts), _LEAST_STEP))
    return np.concatenate([cuts[:1], steps, [np.log(slope)]])


def _decode(vector: Float) -> tuple[Float, float]:
    return np.cumsum(np.append(vector[0], np.exp(vector[1:-1]))), float(np.exp(vector[-1]))


def _apart(cuts: Float) -> Float:
    """Return distinct cuts."""
    steps = np.maximum(np.diff(cuts), _LEAST_STEP)
    return np.asarray(np.concatenate([cuts[:1], cuts[0] + np.cumsum(steps)]))


@dataclass(frozen=True)
class StandardNormal(RowLikelihood):
    """weight/2 (y - eta)^2 of standardised grades y; the weight includes the user's precision."""

    per_user: ClassVar = ("centres", "spreads", "precision")

    scale: GradeScale
    # (n_users,): the mean and standard deviation that standardise each user's grades.
    centres: Float
    spreads: Float
    precision: Float  # (n_users,): one over the variance of each user's noise
    typical: float  # the precision of new users

    is_quadratic = True
    curvature_bound = 1.0

    @classmethod
    def given(cls, grade_counts: GradeCounts) -> "StandardNormal":
        """Return each user's mean and spread, with noise of half their variance."""
        none = np.zeros(0)
        return cls(GradeScale.given(grade_counts), none, none, none, 2.0)._of(grade_counts)

    def of_users(self, grades: FloatArray | None, users: Index) -> "StandardNormal":
        """Return the likelihood of other users, with the typical noise."""
        assert grades is not None
        return self._of(GradeCounts.of(grades, users))

    def _of(self, grade_counts: GradeCounts) -> "StandardNormal":
        spreads, centres = self.scale.spreads(grade_counts), self.scale.centres(grade_counts)
        precision = np.full(len(spreads), self.typical)
        return replace(self, centres=centres, spreads=spreads, precision=precision)

    def at(self, eta: Float, data: PaddedRows) -> LossDerivatives:
        """Return the loss and its derivatives."""
        left = self.standardised(data.response.astype(np.intp), data.users[:, None]) - eta
        residuals = data.weight * left
        curvature = DiagonalCurvature(np.sqrt(data.weight))
        return LossDerivatives(0.5 * row_dots(residuals, left), residuals, curvature)

    def each(
        self, eta: Float, response: Float, users: Index, variance: Float | float = 0.0
    ) -> Float:
        """Return the expected loss of every label, of weight one, given a variance of its score."""
        codes = np.asarray(response, dtype=np.intp)
        return np.asarray(0.5 * ((self.standardised(codes, users) - eta) ** 2 + variance))

    def utility(self, eta: Float, response: Float, users: Index) -> Float:  # noqa: ARG002
        """Return the latent utility eta + noise, which is the standardised grade."""
        return self.standardised(np.asarray(response, dtype=np.intp), users)

    def expected_information(self, eta: Float) -> Float:
        """Return the same for all items."""
        return np.full(len(eta), self.typical)

    def standardised(self, codes: Index, users: Index) -> Float:
        """Return grades less the user's mean, over the user's spread."""
        return np.asarray((self.scale.levels[codes] - self.centres[users]) / self.spreads[users])

    def refined(self, n: Float, squares: Float) -> "StandardNormal":
        """Return the precision of each user's noise, shrunk towards the typical one.

        ``squares`` are sums of squared errors of each user's n grades.
        """
        typical = 1.0 / max(float(squares.sum() / n.sum()), 1e-6)
        # The typical noise counts as eight observations.
        precision = (n + 8.0) / (squares + 8.0 / typical)
        return replace(self, precision=precision, typical=typical)


Graded = CumulativeLogit | StandardNormal
