"""The reduced problem: a smooth one in the consensus and the strong directions.

The weights of person i are theta + B c_i + V_i, where the columns of B are the strong
directions of the group level. V_i (see `deviations`) and the coordinates c_i are eliminated
person by person; what remains is a function of theta and of the span of B, with d (k + 1)
unknowns whatever the number of people. Its gradient and Hessian are exact.

In shapes, k is the number of strong directions, and T = (step of theta, steps of the columns
of B) is a matrix of shape (1 + k, d).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from likeminds._support.arrays import Float, Index
from likeminds._support.stacks import lift_diagonal, row_dots, solve, times, times_back
from likeminds._support.threads import in_threads
from likeminds.losses.quadratic import Factors
from likeminds.losses.spectra import Spectrum, spectrum_of_factors
from likeminds.solvers.deviations import Deviations, Penalty, deviate

_TINY = 1e-300

# A block of people at a point: their deviations, and Q_i B.
Fit = tuple[Deviations, Float]


@dataclass(frozen=True)
class Problem:
    """The people of the reduced problem, and the penalties of their levels.

    Attributes
    ----------
    blocks : list of Spectrum
        People kept in memory.
    stands_for : list of float
        How many people's curvature each of a block stands for (1 unless it is a sample).
    weights : list of float
        How many people's loss each of a block stands for: the same, or 1 where the loss of
        those who are not kept is computed, too.
    penalty : Penalty
        The penalties of the levels.
    n_people, n_features : int
        How many there are in all.
    unit : float
        The length of the loss's gradient at zero, which residuals are relative to.
    accuracy : float
        How small the gradient by c_i has to be, relative to that of the loss at zero.
    rest : Factors, optional
        Those who are not kept.
    """

    blocks: Sequence[Spectrum]
    stands_for: Sequence[float]
    weights: Sequence[float]
    penalty: Penalty
    n_people: int
    n_features: int
    unit: float = 1.0
    accuracy: float = 1e-12
    rest: Factors | None = None

    def for_the_rest(self, theta: Float, B: Float, C: Float) -> Iterator["FactorFit"]:
        """Eliminate coordinates and deviations of those who are not kept."""
        if self.rest is None:
            return iter(())
        factors = self.rest

        def fit(chosen: Index) -> FactorFit:
            people, Z, target = factors.of(chosen)
            return _fit_factors(people, Z, target, self, theta, B, C[people])

        return in_threads(fit, factors.rows.plan())


@dataclass(frozen=True)
class Point:
    """An iterate, with the objective, its gradient and the fits there.

    Attributes
    ----------
    theta : array of shape (d,)
    B : array of shape (d, k)
        Orthonormal columns.
    C : array of shape (n_people, k)
    value : float
        The reduced objective.
    gradient : array of shape (1 + k, d)
        By theta and by the columns of B, orthogonal to B.
    fits : list of Fit
        For each block of people in memory.
    """

    theta: Float
    B: Float
    C: Float
    value: float
    gradient: Float
    fits: list[Fit]


def evaluate(problem: Problem, theta: Float, B: Float, C: Float) -> Point:
    """Eliminate everybody's coordinates and deviations: one pass over the people."""
    penalty = problem.penalty
    value = penalty.ridge * float(theta @ theta)
    gradient = np.zeros((1 + B.shape[1], len(theta)))
    gradient[0] = 2.0 * penalty.ridge * theta
    fitted = C.copy()

    def fit(part: Spectrum) -> tuple[Float, Fit]:
        directions = part.basis @ B
        at = part.into(theta)
        c, deviations = fit_coordinates(part, problem, at, directions, C[part.people])
        return c, (deviations, directions)

    fits = []
    found = in_threads(fit, problem.blocks)
    for part, weight, (c, kept) in zip(problem.blocks, problem.weights, found, strict=True):
        fitted[part.people] = c
        value += weight * (kept[0].value.sum() + penalty.head * float(np.vdot(c, c)))
        gradient += weight * (with_one(c).T @ part.back(kept[0].gradient))
        fits.append(kept)
    for rest in problem.for_the_rest(theta, B, C):
        fitted[rest.people] = rest.C
        value += rest.value
        gradient += rest.gradient
    return Point(theta, B, fitted, float(value), horizontal(gradient, B), fits)


def everybodys_deviation(problem: Problem, point: Point) -> Float:
    """Return V, shape (n_people, n_features): one more pass over those not in memory."""
    V = np.zeros((problem.n_people, problem.n_features))
    for part, (deviations, _) in zip(problem.blocks, point.fits, strict=True):
        V[part.people] = part.back(deviations.v)
    for rest in problem.for_the_rest(point.theta, point.B, point.C):
        V[rest.people] = rest.V
    return V


def fit_coordinates(
    part: Spectrum, problem: Problem, at: Float, directions: Float, C: Float
) -> tuple[Float, Deviations]:
    """Minimise phi_i(theta + B c_i) + head |c_i|^2 over each c_i.

    Newton's method; people whose objective does not fall take the step of the parabola above
    phi_i next, which always lowers it. Before the knee both are exact, and one step is enough.

    Parameters
    ----------
    part : Spectrum
        The people.
    problem : Problem
        The penalties of coordinates and deviations, and the accuracy required.
    at : array of shape (p, r)
        Q_i theta.
    directions : array of shape (p, r, k)
        Q_i B.
    C : array of shape (p, k)
        Where to start.
    """
    penalty = problem.penalty
    C = C.copy()
    deviations = deviate(part.curvature, part.slope, at + times(directions, C), penalty)
    if not C.shape[1]:
        return C, deviations
    newton = np.ones(len(C), dtype=bool)
    enough = problem.accuracy * np.sqrt(row_dots(part.slope, part.slope)) + _TINY
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


@dataclass(frozen=True)
class FactorFit:
    """Coordinates, deviations, objective and gradient of a block of people who are not kept."""

    people: Index
    C: Float
    V: Float
    value: float
    gradient: Float


def _fit_factors(  # noqa: PLR0917 - the same as everywhere here
    people: Index, Z: Float, target: Float, problem: Problem, theta: Float, B: Float, C: Float
) -> FactorFit:
    """Do the same from factors, with one small solve per person instead of eigenvectors.

    Before the knee, with R = (Z Z' + mu)^-1 and mu = 2 tail: V = Z'R y with
    y = t - Z theta - Z B c, and t - Z W = mu R y. People past the knee take the way through
    their eigenvectors.
    """
    penalty = problem.penalty
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
            part, problem, part.into(theta), part.basis @ B, C[past]
        )
        V[past] = part.back(deviations.v)
        stiffness[past], value[past] = deviations.stiffness, deviations.value
    gradient = -(with_one(c).T @ (stiffness[:, None] * V))
    total = float(value.sum() + penalty.head * np.vdot(c, c))
    return FactorFit(people, c, V, total, gradient)


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
