"""The reduced problem: smooth in the consensus and the strong directions, all else eliminated.

The weights of user i are theta + B c_i + V_i, where the columns of B are the strong directions of
the group level. V_i holds the weak directions of the group level and the personal level: only
their sum matters to the loss. Minimised over how it is divided, their penalties are a Huber
function of |V_i|, quadratic with the factor ``tail`` up to the knee, linear with the slope
``corner`` after it. In the eigenbasis of A_i the best V_i for given shared weights m_i is a
division before the knee, and a scalar equation after it. What is left,

    phi_i(m) = min over V of  l_i(m + V) + Huber(|V|),

is smooth and convex in m. The coordinates c_i are eliminated user by user, too. What remains is a
function of theta and of the span of B, with d (k + 1) unknowns whatever the number of users.

This module eliminates, `trust_region` minimises what remains. In shapes, p is the number of users
of a block, r that of their eigen-directions, k that of strong directions, and T = (step of theta,
steps of the columns of B) is a matrix of shape (1 + k, d).
"""

from dataclasses import dataclass

import numpy as np

from likeminds._util.array_types import Float, Index
from likeminds._util.map_reduce import SumTuple
from likeminds._util.per_user_arrays import lift_diagonal, row_dots, solve, times, times_back
from likeminds.components import Consensus, Group, Personal
from likeminds.losses.quadratic import CurvatureSpectrum, RowFactors, spectrum_of_factors

# Penalties of zero leave a level unbounded: a small multiple of the curvature bounds it.
_LEAST_PENALTY = 1e-12
_TINY = 1e-300


@dataclass(frozen=True)
class Penalty:
    """The three levels' penalties, in the form that the eliminations need."""

    ridge: float  # on |theta|^2
    tail: float  # the Huber function's curvature before its knee
    corner: float  # and its slope after it
    head: float  # on |H|^2, where H = C B' is the group level in its strong directions
    n_groups: int  # the rank of H

    @classmethod
    def of(cls, consensus: Consensus, group: Group, personal: Personal, bend: float) -> "Penalty":
        """Translate the components; ``bend`` is the size of the loss's curvature."""
        tail = max(float(group.alpha), _LEAST_PENALTY * bend)
        corner = max(float(personal.alpha), _LEAST_PENALTY * np.sqrt(bend))
        if group.shrinkage >= group.alpha:
            # Strong and weak directions cost the same: nothing is special about any.
            return cls(float(consensus.alpha), tail, corner, 0.0, 0)
        # G = H + E with head |H|^2 + tail |E|^2 costs `shrinkage` where H is free to share.
        head = group.shrinkage * group.alpha / (group.alpha - group.shrinkage)
        return cls(float(consensus.alpha), tail, corner, float(head), group.n_groups)

    @property
    def knee(self) -> float:
        """The length of V_i beyond which the personal level sets in."""
        return self.corner / (2.0 * self.tail)


@dataclass(frozen=True)
class Deviations:
    """phi_i and its derivatives at given shared weights, in eigen-coordinates.

    The Hessian of phi_i is diag(bend) - flat flat'; flat is zero before the knee. diag(bend) alone
    is the curvature of a parabola that lies above phi_i.
    """

    value: Float  # phi_i less its constant c_i / 2, shape (p,)
    stiffness: Float  # mu_i with V_i = (A_i + mu_i)^-1 (b_i - A_i m_i), shape (p,)
    v: Float  # the deviations, shape (p, r)
    bend: Float
    flat: Float

    @property
    def gradient(self) -> Float:
        """The gradient of phi_i."""
        return -self.stiffness[:, None] * self.v

    def replace(self, where: Index, other: "Deviations", which: Index) -> None:
        """Overwrite some users' entries with those of others."""
        for name in ("value", "stiffness", "v", "bend", "flat"):
            getattr(self, name)[where] = getattr(other, name)[which]


def deviate(curvature: Float, slope: Float, x: Float, penalty: Penalty) -> Deviations:
    """Find the best deviations, given shared weights x in eigen-coordinates, shape (p, r)."""
    pull = slope - curvature * x
    stiffness = np.full(len(x), 2.0 * penalty.tail)
    v = pull / (curvature + stiffness[:, None])
    past = np.flatnonzero(row_dots(v, v) > penalty.knee**2)
    if past.size:
        length = _length_past_knee(curvature[past], pull[past], penalty)
        stiffness[past] = penalty.corner / length
        v[past] = pull[past] / (curvature[past] + stiffness[past, None])
    length = np.sqrt(row_dots(v, v))
    huber = penalty.tail * length**2
    huber[past] = penalty.corner * (length[past] - penalty.knee / 2.0)
    w = x + v
    value = 0.5 * row_dots(curvature * w - 2.0 * slope, w) + huber
    share = curvature / (curvature + stiffness[:, None])
    flat = np.zeros_like(v)
    unit = v[past] / length[past, None]
    along = share[past] * unit
    size = np.sqrt(stiffness[past] / np.maximum(row_dots(unit, along), _TINY))
    flat[past] = along * size[:, None]
    return Deviations(value, stiffness, v, stiffness[:, None] * share, flat)


def _length_past_knee(curvature: Float, pull: Float, penalty: Penalty) -> Float:
    """Solve |pull / (curvature s + corner)| = 1 for s = |V|.

    One over the left side is concave and increasing in s, so Newton's method from the knee
    climbs to the root without overshooting.
    """
    s = np.full(len(curvature), penalty.knee)
    for _ in range(60):
        total = curvature * s[:, None] + penalty.corner
        squares = (pull / total) ** 2
        norm = squares.sum(axis=1)
        slope = np.maximum(row_dots(squares, curvature / total), _TINY)
        step = (np.sqrt(norm) - 1.0) * norm / slope
        s += step
        if np.all(step <= 1e-14 * s):
            break
    return s


@dataclass(frozen=True)
class FitPoint:
    """The point at which users are fitted, and where the search for coordinates starts."""

    penalty: Penalty
    accuracy: float
    theta: Float
    B: Float
    # Coordinates start at the rows that blocks keep times this; without it, at zero.
    turn: Float | None = None

    def start(self, n_users: int, own: "CachedFit | Float | None") -> Float:
        """Return the coordinates from which the search starts."""
        if own is None or self.turn is None:
            return np.zeros((n_users, self.B.shape[1]))
        return (own.C if isinstance(own, CachedFit) else own) @ self.turn


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
    """A block of users in memory; of a sample, each stands for several."""

    spectrum: CurvatureSpectrum
    stands_for: float = 1.0  # for how many users' curvature
    weight: float = 1.0  # for how many users' loss: 1 where the loss of the others is computed, too

    @property
    def users(self) -> Index:
        """Their positions among all users."""
        return self.spectrum.users

    def evaluate(self, at: FitPoint, own: CachedFit | Float | None) -> tuple[SumTuple, CachedFit]:
        """Return the block's share of objective, gradient and C'C, and keep the fit."""
        fit = self.fit(at, own)
        value = self.weight * (fit.deviations.value.sum() + at.penalty.head * np.vdot(fit.C, fit.C))
        gradient = self.weight * (with_one(fit.C).T @ self.spectrum.back(fit.deviations.gradient))
        return SumTuple(float(value), gradient, fit.C.T @ fit.C), fit

    def fit(self, at: FitPoint, own: CachedFit | Float | None) -> CachedFit:
        """Eliminate coordinates and deviations."""
        return fit_coordinates(self.spectrum, at, at.start(len(self.users), own))

    def coordinates_and_deviations(
        self, at: FitPoint, own: CachedFit | Float | None
    ) -> tuple[Float, Float]:
        """Return C and V."""
        fit = own if isinstance(own, CachedFit) else self.fit(at, own)
        return fit.C, self.spectrum.back(fit.deviations.v)


@dataclass(frozen=True)
class StreamedBlock:
    """A block of users who are not in memory: their factors are made of rows at each visit."""

    factors: RowFactors
    chosen: Index

    @property
    def users(self) -> Index:
        """Their positions among all users."""
        return self.factors.rows.users[self.chosen]

    def evaluate(self, at: FitPoint, own: Float | None) -> tuple[SumTuple, Float]:
        """Return the same as `CachedBlock.evaluate`; only coordinates are kept."""
        fit = self.fit(at, own)
        return SumTuple(fit.value, fit.gradient, fit.C.T @ fit.C), fit.C

    def fit(self, at: FitPoint, own: Float | None) -> StreamedFit:
        """Eliminate coordinates and deviations."""
        _, Z, target = self.factors.of(self.chosen)
        return _fit_factors(Z, target, at, at.start(len(self.users), own))

    def coordinates_and_deviations(self, at: FitPoint, own: Float | None) -> tuple[Float, Float]:
        """Return C and V."""
        fit = self.fit(at, own)
        return fit.C, fit.V


def fit_coordinates(part: CurvatureSpectrum, at: FitPoint, start: Float) -> CachedFit:
    """Minimise phi_i(theta + B c_i) + head |c_i|^2 over each c_i.

    Newton's method; users whose objective does not fall take the step of the parabola above
    phi_i next, which always lowers it. Before the knee both are exact, and one step is enough.
    """
    C, penalty = start.copy(), at.penalty
    shared, directions = part.into(at.theta), part.basis @ at.B
    deviations = deviate(part.curvature, part.slope, shared + times(directions, C), penalty)
    newton = np.ones(len(C), dtype=bool)
    enough = at.accuracy * np.sqrt(row_dots(part.slope, part.slope)) + _TINY
    for _ in range(30 if C.shape[1] else 0):
        gradient = times_back(directions, deviations.gradient) + 2.0 * penalty.head * C
        todo = np.flatnonzero(np.sqrt(row_dots(gradient, gradient)) > enough)
        if not todo.size:
            break
        D, g, c = directions[todo], gradient[todo], C[todo]
        J = bend_of_coordinates(D, deviations.bend[todo], penalty)
        flat = times_back(D, deviations.flat[todo]) * newton[todo, None]
        J -= (1.0 - 1e-6) * flat[:, :, None] * flat[:, None, :]
        step = solve(lift_diagonal(J, 1e-12), g[:, :, None])[:, :, 0]
        moved = shared[todo] + times(D, c - step)
        new = deviate(part.curvature[todo], part.slope[todo], moved, penalty)
        before = deviations.value[todo] + penalty.head * row_dots(c, c)
        after = new.value + penalty.head * row_dots(c - step, c - step)
        descends = after <= before - 1e-4 * row_dots(step, g) + 1e-14 * np.abs(before)
        good = np.flatnonzero(descends | ~newton[todo])
        newton[todo] = descends
        C[todo[good]] = (c - step)[good]
        deviations.replace(todo[good], new, good)
    return CachedFit(C, deviations, directions)


def _fit_factors(Z: Float, target: Float, at: FitPoint, C: Float) -> StreamedFit:
    """Do the same from factors, with one small solve per user instead of eigenvectors.

    Before the knee, with R = (Z Z' + mu)^-1 and mu = 2 tail: V = Z'R y with
    y = t - Z theta - Z B c, and t - Z W = mu R y. Users past the knee need their eigenvectors.
    """
    penalty, theta, B = at.penalty, at.theta, at.B
    mu = 2.0 * penalty.tail
    right = Z @ np.column_stack([-theta, B])
    right[:, :, 0] += target
    gram = Z @ Z.transpose(0, 2, 1)
    gram += mu * np.eye(Z.shape[1])
    solved = solve(gram, right)
    J = mu * (right[:, :, 1:].transpose(0, 2, 1) @ solved)
    bend = lift_diagonal(J[:, :, 1:] + 2.0 * penalty.head * np.eye(B.shape[1]), 1e-12)
    c = solve(bend, J[:, :, :1])[:, :, 0]
    left = solved[:, :, 0] - times(solved[:, :, 1:], c)
    V = times_back(Z, left)
    stiffness, value = np.full(len(Z), mu), 0.5 * mu**2 * row_dots(left, left)
    value += penalty.tail * row_dots(V, V) - 0.5 * row_dots(target, target)
    past = np.flatnonzero(row_dots(V, V) > penalty.knee**2)
    if past.size:
        part = spectrum_of_factors(past, Z[past], target[past])
        fit = fit_coordinates(part, at, C[past])
        c[past], V[past] = fit.C, part.back(fit.deviations.v)
        stiffness[past], value[past] = fit.deviations.stiffness, fit.deviations.value
    gradient = -(with_one(c).T @ (stiffness[:, None] * V))
    total = float(value.sum() + penalty.head * np.vdot(c, c))
    return StreamedFit(c, V, total, gradient)


def with_one(C: Float) -> Float:
    """Return the rows (1, c_i)."""
    return np.hstack([np.ones((len(C), 1)), C])


def bend_of_coordinates(directions: Float, bend: Float, penalty: Penalty) -> Float:
    """Return B'M_i B + 2 head, the parabola's curvature in c_i."""
    J = directions.transpose(0, 2, 1) @ (bend[:, :, None] * directions)
    return np.asarray(J + 2.0 * penalty.head * np.eye(directions.shape[2]))
