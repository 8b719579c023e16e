"""The reduced problem: a smooth one in the consensus and the strong directions.

The weights of person i are theta + B c_i + V_i, where the columns of B are the strong
directions of the group level. V_i (see `deviations`) and the coordinates c_i are eliminated
person by person; what remains is a function of theta and of the span of B, with d (k + 1)
unknowns whatever the number of people. Its gradient and Hessian are exact.

In shapes, k is the number of strong directions, and T = (step of theta, steps of the columns
of B) is a matrix of shape (1 + k, d).
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from likeminds._util.array_types import Float, Index
from likeminds._util.batched_linalg import lift_diagonal, row_dots, solve, times, times_back
from likeminds._util.map_reduce import Executor, Own, SumTuple
from likeminds._util.per_user_arrays import CollectedRows
from likeminds.components import top_directions
from likeminds.losses.quadratic import CurvatureSpectrum, RowFactors, spectrum_of_factors
from likeminds.solvers.personal_deviations import Deviations, Penalty, deviate

_TINY = 1e-300


@dataclass(frozen=True)
class CachedBlock:
    """A block of people in memory.

    Attributes
    ----------
    spectrum : CurvatureSpectrum
        The people.
    stands_for : float
        How many people's curvature each of them stands for (1 unless they are a sample).
    weight : float
        How many people's loss each of them stands for: the same, or 1 where the loss of
        those who are not kept is computed, too.
    """

    spectrum: CurvatureSpectrum
    stands_for: float = 1.0
    weight: float = 1.0

    def fit(self, at: "FitPoint", start: Float) -> "CachedFit":
        """Eliminate coordinates and deviations."""
        part = self.spectrum
        directions = part.basis @ at.B
        c, deviations = fit_coordinates(
            part, at.penalty, at.accuracy, part.into(at.theta), directions, start
        )
        return CachedFit(c, deviations, directions)

    def sums(self, fit: "CachedFit", at: "FitPoint") -> SumTuple:
        """Return the block's share of objective, gradient and C'C."""
        value = self.weight * (fit.deviations.value.sum() + at.penalty.head * np.vdot(fit.C, fit.C))
        gradient = self.weight * (with_one(fit.C).T @ self.spectrum.back(fit.deviations.gradient))
        return SumTuple(float(value), gradient, fit.C.T @ fit.C)

    def deviation(self, fit: "CachedFit") -> Float:
        """Return the deviations V."""
        return self.spectrum.back(fit.deviations.v)

    @property
    def people(self) -> Index:
        """Their positions among all people."""
        return self.spectrum.people


@dataclass(frozen=True)
class StreamedBlock:
    """A block of people who are not in memory: their factors are made of rows at each visit."""

    factors: RowFactors
    chosen: Index

    def fit(self, at: "FitPoint", start: Float) -> "StreamedFit":
        """Eliminate coordinates and deviations."""
        _, Z, target = self.factors.of(self.chosen)
        return _fit_factors(Z, target, at, start)

    def sums(self, fit: "StreamedFit", at: "FitPoint") -> SumTuple:
        """Return the block's share of objective, gradient and C'C."""
        del at
        return SumTuple(fit.value, fit.gradient, fit.C.T @ fit.C)

    def deviation(self, fit: "StreamedFit") -> Float:
        """Return the deviations V."""
        return fit.V

    @property
    def people(self) -> Index:
        """Their positions among all people."""
        return self.factors.rows.people[self.chosen]


@dataclass(frozen=True)
class CachedFit:
    """A block of people in memory at a point: coordinates, deviations, and Q_i B."""

    C: Float
    deviations: Deviations
    directions: Float

    @property
    def kept(self) -> "CachedFit":
        """What the block keeps of it."""
        return self


@dataclass(frozen=True)
class StreamedFit:
    """A block of people who are not in memory: coordinates, deviations, objective, gradient."""

    C: Float
    V: Float
    value: float
    gradient: Float

    @property
    def kept(self) -> Float:
        """What the block keeps of it: the coordinates alone, as there are many such blocks."""
        return self.C


@dataclass(frozen=True)
class ReducedProblem:
    """The people of the reduced problem, and the penalties of their levels.

    Attributes
    ----------
    people : Executor of CachedBlock
        People in memory.
    penalty : Penalty
        The penalties of the levels.
    n_kept, n_users, n_features : int
        How many are in memory, and how many there are in all.
    unit : float
        The length of the loss's gradient at zero, which residuals are relative to.
    accuracy : float
        How small the gradient by c_i has to be, relative to that of the loss at zero.
    rest : Executor of StreamedBlock, optional
        Those who are not in memory.
    """

    people: Executor[CachedBlock]
    penalty: Penalty
    n_kept: int
    n_users: int
    n_features: int
    unit: float = 1.0
    accuracy: float = 1e-12
    rest: Executor[StreamedBlock] | None = None

    def at(self, theta: Float, B: Float, turn: Float | None = None) -> "FitPoint":
        """Return the state of a visit."""
        return FitPoint(self.penalty, self.accuracy, theta, B, turn)


@dataclass(frozen=True)
class FitPoint:
    """The point at which people are fitted, and where the search for coordinates starts.

    Attributes
    ----------
    penalty, accuracy, theta, B
        As in `ReducedProblem` and `Iterate`.
    turn : array of shape (m, k), optional
        Coordinates start at the rows that blocks keep times this; without it, at zero.
    """

    penalty: Penalty
    accuracy: float
    theta: Float
    B: Float
    turn: Float | None = None

    def start(self, n_users: int, own: "CachedFit | Float | None") -> Float:
        """Return the coordinates from which the search starts."""
        if own is None or self.turn is None:
            return np.zeros((n_users, self.B.shape[1]))
        return (own.C if isinstance(own, CachedFit) else own) @ self.turn


@dataclass(frozen=True)
class Iterate:
    """An iterate, with the objective and its gradient; fits stay with the people.

    Attributes
    ----------
    theta : array of shape (d,)
    B : array of shape (d, k)
        Orthonormal columns.
    value : float
        The reduced objective.
    gradient : array of shape (1 + k, d)
        By theta and by the columns of B, orthogonal to B.
    gram : array of shape (k, k)
        C'C, where the rows of C are everybody's coordinates.
    own, of_rest
        Fits and coordinates, as the people in memory and the others keep them.
    """

    theta: Float
    B: Float
    value: float
    gradient: Float
    gram: Float
    own: Own
    of_rest: Own = None


def evaluate(
    problem: ReducedProblem,
    theta: Float,
    B: Float,
    turn: Float | None = None,
    own: tuple[Own, Own] = (None, None),
) -> Iterate:
    """Eliminate everybody's coordinates and deviations: one pass over the people.

    ``turn`` and ``own`` (of the people in memory, of the others) say where coordinates start: see
    `FitPoint`.
    """
    at, k = problem.at(theta, B, turn), B.shape[1]
    gradient = np.zeros((1 + k, len(theta)))
    gradient[0] = 2.0 * problem.penalty.ridge * theta
    sums = SumTuple(problem.penalty.ridge * float(theta @ theta), gradient, np.zeros((k, k)))
    sums, kept = problem.people.map_reduce(_fit, at, own[0], start=sums)
    of_rest = None
    if problem.rest is not None:
        sums, of_rest = problem.rest.map_reduce(_fit, at, own[1], start=sums)
    value, gradient, gram = sums
    return Iterate(theta, B, float(value), horizontal(gradient, B), gram, kept, of_rest)


def _fit(block: CachedBlock | StreamedBlock, at: FitPoint, own: Any) -> tuple[SumTuple, Any]:
    fit: Any = block.fit(at, at.start(len(block.people), own))
    return block.sums(fit, at), fit.kept


def strong_directions(problem: ReducedProblem, point: Iterate) -> Float:
    """Return the strongest directions of the group level at a point, shape (d, k)."""
    at = problem.at(point.theta, point.B, np.eye(point.B.shape[1]))
    return leading(problem, group_level, at, (point.own, point.of_rest))


def leading(
    problem: ReducedProblem, work: Callable[..., Float], state: Any, own: tuple[Own, Own]
) -> Float:
    """Return as many leading directions of rows that people have as there are groups.

    They come from the Gram matrix of the shorter side; that of features is a sum over people.
    """
    k = problem.penalty.n_groups
    parts: list[tuple[Executor[Any], Own]] = [(problem.people, own[0])]
    if problem.rest is not None:
        parts.append((problem.rest, own[1]))
    if problem.n_users < problem.n_features:
        found = CollectedRows([], [])
        for people, mine in parts:
            found, _ = people.map_reduce(_rows, (work, state), mine, start=found)
        return top_directions(found.in_order()[0], k)
    gram = np.zeros((problem.n_features, problem.n_features))
    for people, mine in parts:
        gram, _ = people.map_reduce(_gram, (work, state), mine, start=gram)
    return np.asarray(np.linalg.eigh(gram)[1][:, ::-1][:, :k])


def _rows(
    block: Any, state: tuple[Callable[..., Float], Any], own: Any
) -> tuple[CollectedRows, None]:
    work, inner = state
    return CollectedRows([block.people], [[work(block, inner, own)]]), None


def _gram(block: Any, state: tuple[Callable[..., Float], Any], own: Any) -> tuple[Float, None]:
    work, inner = state
    rows = work(block, inner, own)
    return rows.T @ rows, None


def group_level(block: CachedBlock | StreamedBlock, at: FitPoint, own: Any) -> Float:
    """Return G of a block."""
    return _levels(block, at, own)[1]


def everybodys_levels(problem: ReducedProblem, point: Iterate) -> tuple[Float, Float]:
    """Return G and P, shape (n_users, n_features): one more pass over those not in memory."""
    G = np.zeros((problem.n_users, problem.n_features))
    P = np.zeros_like(G)
    at = problem.at(point.theta, point.B, np.eye(point.B.shape[1]))
    answers = problem.people.map(_levels, at, point.own)
    if problem.rest is not None:
        answers = chain(answers, problem.rest.map(_levels, at, point.of_rest))
    for people, group, personal in answers:
        G[people], P[people] = group, personal
    return G, P


def _levels(
    block: CachedBlock | StreamedBlock, at: FitPoint, own: Any
) -> tuple[Index, Float, Float]:
    """Return people with their G and P: deviations up to the knee are the group's."""
    fit: Any = (
        own if isinstance(own, CachedFit) else block.fit(at, at.start(len(block.people), own))
    )
    V, knee = block.deviation(fit), at.penalty.knee
    length = np.linalg.norm(V, axis=1, keepdims=True)
    weak = V * (knee / np.maximum(length, knee))
    return block.people, fit.C @ at.B.T + weak, V - weak


def fit_coordinates(  # noqa: PLR0917 - the same as everywhere here
    part: CurvatureSpectrum,
    penalty: Penalty,
    accuracy: float,
    at: Float,
    directions: Float,
    C: Float,
) -> tuple[Float, Deviations]:
    """Minimise phi_i(theta + B c_i) + head |c_i|^2 over each c_i.

    Newton's method; people whose objective does not fall take the step of the parabola above
    phi_i next, which always lowers it. Before the knee both are exact, and one step is enough.

    Parameters
    ----------
    part : CurvatureSpectrum
        The people.
    penalty, accuracy
        Penalties of coordinates and deviations, and the accuracy required: see `ReducedProblem`.
    at : array of shape (p, r)
        Q_i theta.
    directions : array of shape (p, r, k)
        Q_i B.
    C : array of shape (p, k)
        Where to start.
    """
    C = C.copy()
    deviations = deviate(part.curvature, part.slope, at + times(directions, C), penalty)
    if not C.shape[1]:
        return C, deviations
    newton = np.ones(len(C), dtype=bool)
    enough = accuracy * np.sqrt(row_dots(part.slope, part.slope)) + _TINY
    for _ in range(30):
        gradient = times_back(directions, deviations.gradient) + 2.0 * penalty.head * C
        todo = np.flatnonzero(np.sqrt(row_dots(gradient, gradient)) > enough)
        if not todo.size:
            break
        D, g, c = directions[todo], gradient[todo], C[todo]
        J = bend_of_coordinates(D, deviations.bend[todo], penalty)
        flat = times_back(D, deviations.flat[todo]) * newton[todo, None]
        J -= (1.0 - 1e-6) * flat[:, :, None] * flat[:, None, :]
        step = solve(lift_diagonal(J, 1e-12), g[:, :, None])[:, :, 0]
        moved = at[todo] + times(D, c - step)
        new = deviate(part.curvature[todo], part.slope[todo], moved, penalty)
        before = deviations.value[todo] + penalty.head * row_dots(c, c)
        after = new.value + penalty.head * row_dots(c - step, c - step)
        descends = after <= before - 1e-4 * row_dots(step, g) + 1e-14 * np.abs(before)
        good = np.flatnonzero(descends | ~newton[todo])
        newton[todo] = descends
        C[todo[good]] = (c - step)[good]
        deviations.replace(todo[good], new, good)
    return C, deviations


def _fit_factors(Z: Float, target: Float, at: FitPoint, C: Float) -> StreamedFit:
    """Do the same from factors, with one small solve per person instead of eigenvectors.

    Before the knee, with R = (Z Z' + mu)^-1 and mu = 2 tail: V = Z'R y with
    y = t - Z theta - Z B c, and t - Z W = mu R y. People past the knee take the way through
    their eigenvectors.
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
    value -= 0.5 * row_dots(target, target)
    value += penalty.tail * row_dots(V, V)
    past = np.flatnonzero(row_dots(V, V) > penalty.knee**2)
    if past.size:
        part = spectrum_of_factors(past, Z[past], target[past])
        c[past], deviations = fit_coordinates(
            part, penalty, at.accuracy, part.into(theta), part.basis @ B, C[past]
        )
        V[past] = part.back(deviations.v)
        stiffness[past], value[past] = deviations.stiffness, deviations.value
    gradient = -(with_one(c).T @ (stiffness[:, None] * V))
    total = float(value.sum() + penalty.head * np.vdot(c, c))
    return StreamedFit(c, V, total, gradient)


def horizontal(T: Float, B: Float) -> Float:
    """Project a step onto the tangents that move the span of B."""
    T = T.copy()
    T[1:] -= (T[1:] @ B) @ B.T
    return T


def with_one(C: Float) -> Float:
    """Return the rows (1, c_i)."""
    return np.hstack([np.ones((len(C), 1)), C])


def bend_of_coordinates(directions: Float, bend: Float, penalty: Penalty) -> Float:
    """Return B'M_i B + 2 head, the parabola's curvature in c_i."""
    k = directions.shape[2]
    J = directions.transpose(0, 2, 1) @ (bend[:, :, None] * directions)
    return np.asarray(J + 2.0 * penalty.head * np.eye(k))
