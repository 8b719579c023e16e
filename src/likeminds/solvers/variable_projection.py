"""The reduced problem, smooth in the consensus and the strong directions.

The weights of user i are theta + B c_i + V_i, where the columns of B are the strong directions of
the group level. V_i holds the weak directions of the group level and the personal level: only
their sum matters to the loss. Minimised over the division of the sum, their penalties are a Huber
function of |V_i|: up to its threshold ``weak`` times |V_i|^2, beyond it linear with the slope
``personal``. In the eigenbasis of A_i the best V_i for given shared weights m_i is a division below
the threshold, and a scalar equation beyond it. The reduced loss

    phi_i(m) = min over V of  l_i(m + V) + Huber(|V|),

is smooth and convex in m. The coordinates c_i are eliminated user by user, too. The reduced
objective is a function of theta and of the span of B, with d (k + 1) unknowns.

`trust_region` minimises the reduced objective. In shapes, p is the number of users of a block, r
that of their eigen-directions, k that of strong directions. T = (step of theta, steps of the
columns of B) is a matrix of shape (1 + k, d).
"""

from dataclasses import dataclass

import numpy as np

from likeminds._util.array_types import Float, Index
from likeminds._util.map_reduce import SumTuple
from likeminds._util.per_user_arrays import lift_diagonal, row_dots, solve, times, times_back
from likeminds.components import Consensus, Group, Personal
from likeminds.losses.quadratic import CurvatureSpectrum, RowFactors, spectrum_of_factors

# A small multiple of the curvature bounds levels whose penalty is zero.
_LEAST_PENALTY = 1e-12
_TINY = 1e-300


@dataclass(frozen=True)
class Penalty:
    """The penalties of the three levels, in the form that the eliminations need."""

    ridge: float  # on |theta|^2
    weak: float  # on |V|^2 up to the threshold of the Huber function
    personal: float  # its slope beyond the threshold
    strong: float  # on |H|^2, where H = C B' is the group level in its strong directions
    n_groups: int  # the rank of H

    @classmethod
    def of(
        cls, consensus: Consensus, group: Group, personal: Personal, curvature: float
    ) -> "Penalty":
        """Translate the components; ``curvature`` is the typical size of the loss's curvature."""
        weak = max(float(group.alpha), _LEAST_PENALTY * curvature)
        slope = max(float(personal.alpha), _LEAST_PENALTY * np.sqrt(curvature))
        if group.shrinkage >= group.alpha:
            # Strong and weak directions have the same penalty, so all are weak.
            return cls(float(consensus.alpha), weak, slope, 0.0, 0)
        # G = H + E, minimised over E, has the penalty `shrinkage` on the strong directions.
        strong = group.shrinkage * group.alpha / (group.alpha - group.shrinkage)
        return cls(float(consensus.alpha), weak, slope, float(strong), group.n_groups)

    @property
    def threshold(self) -> float:
        """The length of V_i beyond which the personal level is not zero."""
        return self.personal / (2.0 * self.weak)


@dataclass(frozen=True)
class Deviations:
    """phi_i and its derivatives at given shared weights, in eigen-coordinates.

    The Hessian of phi_i is diag(majoriser) - rank_one rank_one'; rank_one is zero below the
    threshold. diag(majoriser) is the curvature of a quadratic majoriser of phi_i.
    """

    value: Float  # phi_i less its constant c_i / 2, shape (p,)
    multiplier: Float  # mu_i with V_i = (A_i + mu_i)^-1 (b_i - A_i m_i), shape (p,)
    v: Float  # the deviations, shape (p, r)
    majoriser: Float
    rank_one: Float

    @property
    def gradient(self) -> Float:
        """The gradient of phi_i."""
        return -self.multiplier[:, None] * self.v

    def replace(self, where: Index, other: "Deviations", which: Index) -> None:
        """Overwrite some users' entries with those of others."""
        for name in ("value", "multiplier", "v", "majoriser", "rank_one"):
            getattr(self, name)[where] = getattr(other, name)[which]


def deviate(curvature: Float, slope: Float, x: Float, penalty: Penalty) -> Deviations:
    """Find the best deviations, given shared weights x in eigen-coordinates, shape (p, r)."""
    residual = slope - curvature * x
    multiplier = np.full(len(x), 2.0 * penalty.weak)
    v = residual / (curvature + multiplier[:, None])
    beyond = np.flatnonzero(row_dots(v, v) > penalty.threshold**2)
    if beyond.size:
        length = _length_beyond_threshold(curvature[beyond], residual[beyond], penalty)
        multiplier[beyond] = penalty.personal / length
        v[beyond] = residual[beyond] / (curvature[beyond] + multiplier[beyond, None])
    length = np.sqrt(row_dots(v, v))
    huber = penalty.weak * length**2
    huber[beyond] = penalty.personal * (length[beyond] - penalty.threshold / 2.0)
    w = x + v
    value = 0.5 * row_dots(curvature * w - 2.0 * slope, w) + huber
    share = curvature / (curvature + multiplier[:, None])
    rank_one = np.zeros_like(v)
    unit = v[beyond] / length[beyond, None]
    along = share[beyond] * unit
    size = np.sqrt(multiplier[beyond] / np.maximum(row_dots(unit, along), _TINY))
    rank_one[beyond] = along * size[:, None]
    return Deviations(value, multiplier, v, multiplier[:, None] * share, rank_one)


def _length_beyond_threshold(curvature: Float, residual: Float, penalty: Penalty) -> Float:
    """Solve |residual / (curvature s + penalty.personal)| = 1 for s = |V|.

    One over the dual side is concave and increasing in s, so Newton's method from the
    threshold increases monotonically to the root.
    """
    s = np.full(len(curvature), penalty.threshold)
    for _ in range(60):
        total = curvature * s[:, None] + penalty.personal
        squares = (residual / total) ** 2
        norm = squares.sum(axis=1)
        slope = np.maximum(row_dots(squares, curvature / total), _TINY)
        step = (np.sqrt(norm) - 1.0) * norm / slope
        s += step
        if np.all(step <= 1e-14 * s):
            break
    return s


@dataclass(frozen=True)
class FitPoint:
    """The point at which users are fitted, and the transform of their starting coordinates."""

    penalty: Penalty
    accuracy: float
    theta: Float
    B: Float
    # Coordinates start at those of the previous fit times this; without it, at zero.
    transform: Float | None = None
    sampled: bool = False  # whether users in memory represent the loss of other users, too

    def start(self, n_users: int, previous: "CachedFit | Float | None") -> Float:
        """Return the starting coordinates."""
        if previous is None or self.transform is None:
            return np.zeros((n_users, self.B.shape[1]))
        return (previous.C if isinstance(previous, CachedFit) else previous) @ self.transform


@dataclass(frozen=True)
class CachedFit:
    """A block of users in memory at a point: coordinates, deviations, and Q_i B."""

    C: Float
    deviations: Deviations
    directions: Float


@dataclass(frozen=True)
class StreamedFit:
    """A block of users who are not in memory: coordinates, deviations, objective, gradient."""

    C: Float
    V: Float
    value: float
    gradient: Float


@dataclass(frozen=True)
class CachedBlock:
    """A block of users in memory; in a sample, each represents several users."""

    spectrum: CurvatureSpectrum
    multiplicity: float = 1.0

    @property
    def users(self) -> Index:
        """Their positions among all users."""
        return self.spectrum.users

    def evaluate(
        self, at: FitPoint, previous: CachedFit | Float | None
    ) -> tuple[SumTuple, CachedFit]:
        """Return the block's contribution to objective, gradient and C'C, and its fit."""
        fit, weight = self.fit(at, previous), self.multiplicity if at.sampled else 1.0
        value = weight * (fit.deviations.value.sum() + at.penalty.strong * np.vdot(fit.C, fit.C))
        gradient = weight * (with_one(fit.C).T @ self.spectrum.back(fit.deviations.gradient))
        return SumTuple(float(value), gradient, fit.C.T @ fit.C), fit

    def fit(self, at: FitPoint, previous: CachedFit | Float | None) -> CachedFit:
        """Eliminate coordinates and deviations."""
        return fit_coordinates(self.spectrum, at, at.start(len(self.users), previous))

    def coordinates_and_deviations(
        self, at: FitPoint, previous: CachedFit | Float | None
    ) -> tuple[Float, Float]:
        """Return C and V."""
        fit = previous if isinstance(previous, CachedFit) else self.fit(at, previous)
        return fit.C, self.spectrum.back(fit.deviations.v)


@dataclass(frozen=True)
class StreamedBlock:
    """A block of users who are not in memory: each pass computes their factors from rows."""

    factors: RowFactors
    chosen: Index

    @property
    def users(self) -> Index:
        """Their positions among all users."""
        return self.factors.rows.users[self.chosen]

    def evaluate(self, at: FitPoint, previous: Float | None) -> tuple[SumTuple, Float]:
        """Return the same as `CachedBlock.evaluate`, with the coordinates instead of the fit."""
        fit = self.fit(at, previous)
        return SumTuple(fit.value, fit.gradient, fit.C.T @ fit.C), fit.C

    def fit(self, at: FitPoint, previous: Float | None) -> StreamedFit:
        """Eliminate coordinates and deviations."""
        _, Z, target = self.factors.of(self.chosen)
        return _fit_factors(Z, target, at, at.start(len(self.users), previous))

    def coordinates_and_deviations(
        self, at: FitPoint, previous: Float | None
    ) -> tuple[Float, Float]:
        """Return C and V."""
        fit = self.fit(at, previous)
        return fit.C, fit.V


def fit_coordinates(part: CurvatureSpectrum, at: FitPoint, start: Float) -> CachedFit:
    """Minimise phi_i(theta + B c_i) + strong |c_i|^2 over each c_i by Newton's method.

    Users whose objective does not decrease take a step of the quadratic majoriser next, which
    always decreases it. Below the threshold both are exact after one step.
    """
    C, penalty = start.copy(), at.penalty
    shared, directions = part.into(at.theta), part.basis @ at.B
    deviations = deviate(part.curvature, part.slope, shared + times(directions, C), penalty)
    newton = np.ones(len(C), dtype=bool)
    tolerance = at.accuracy * np.sqrt(row_dots(part.slope, part.slope)) + _TINY
    for _ in range(30 if C.shape[1] else 0):
        gradient = times_back(directions, deviations.gradient) + 2.0 * penalty.strong * C
        active = np.flatnonzero(np.sqrt(row_dots(gradient, gradient)) > tolerance)
        if not active.size:
            break
        D, g, c = directions[active], gradient[active], C[active]
        J = coordinate_curvature(D, deviations.majoriser[active], penalty)
        rank_one = times_back(D, deviations.rank_one[active]) * newton[active, None]
        J -= (1.0 - 1e-6) * rank_one[:, :, None] * rank_one[:, None, :]
        step = solve(lift_diagonal(J, 1e-12), g[:, :, None])[:, :, 0]
        proposed = shared[active] + times(D, c - step)
        new = deviate(part.curvature[active], part.slope[active], proposed, penalty)
        before = deviations.value[active] + penalty.strong * row_dots(c, c)
        after = new.value + penalty.strong * row_dots(c - step, c - step)
        descends = after <= before - 1e-4 * row_dots(step, g) + 1e-14 * np.abs(before)
        accepted = np.flatnonzero(descends | ~newton[active])
        newton[active] = descends
        C[active[accepted]] = (c - step)[accepted]
        deviations.replace(active[accepted], new, accepted)
    return CachedFit(C, deviations, directions)


def _fit_factors(Z: Float, target: Float, at: FitPoint, C: Float) -> StreamedFit:
    """Minimise the same from factors, with one small solve per user instead of eigenvectors.

    Below the threshold, with R = (Z Z' + mu)^-1 and mu = 2 weak: V = Z'R y with
    y = t - Z theta - Z B c, and t - Z W = mu R y. Users beyond it need their eigenvectors.
    """
    penalty, theta, B = at.penalty, at.theta, at.B
    mu = 2.0 * penalty.weak
    right = Z @ np.column_stack([-theta, B])
    right[:, :, 0] += target
    gram = Z @ Z.transpose(0, 2, 1)
    gram += mu * np.eye(Z.shape[1])
    solved = solve(gram, right)
    J = mu * (right[:, :, 1:].transpose(0, 2, 1) @ solved)
    majoriser = lift_diagonal(J[:, :, 1:] + 2.0 * penalty.strong * np.eye(B.shape[1]), 1e-12)
    c = solve(majoriser, J[:, :, :1])[:, :, 0]
    dual = solved[:, :, 0] - times(solved[:, :, 1:], c)
    V = times_back(Z, dual)
    multiplier, value = np.full(len(Z), mu), 0.5 * mu**2 * row_dots(dual, dual)
    value += penalty.weak * row_dots(V, V) - 0.5 * row_dots(target, target)
    beyond = np.flatnonzero(row_dots(V, V) > penalty.threshold**2)
    if beyond.size:
        part = spectrum_of_factors(beyond, Z[beyond], target[beyond])
        fit = fit_coordinates(part, at, C[beyond])
        c[beyond], V[beyond] = fit.C, part.back(fit.deviations.v)
        multiplier[beyond], value[beyond] = fit.deviations.multiplier, fit.deviations.value
    gradient = -(with_one(c).T @ (multiplier[:, None] * V))
    total = float(value.sum() + penalty.strong * np.vdot(c, c))
    return StreamedFit(c, V, total, gradient)


def with_one(C: Float) -> Float:
    """Return the rows (1, c_i)."""
    return np.hstack([np.ones((len(C), 1)), C])


def coordinate_curvature(directions: Float, majoriser: Float, penalty: Penalty) -> Float:
    """Return B'M_i B + 2 strong, the curvature of the majoriser in c_i."""
    J = directions.transpose(0, 2, 1) @ (majoriser[:, :, None] * directions)
    return np.asarray(J + 2.0 * penalty.strong * np.eye(directions.shape[2]))
