"""The Hessian of the reduced problem, and a preconditioner."""

from dataclasses import dataclass

import numpy as np

from likeminds._util.array_types import Float
from likeminds._util.batched_linalg import lift_diagonal, row_dots, solve, times, times_back
from likeminds._util.map_reduce import SumTuple
from likeminds.losses.quadratic import CurvatureSpectrum
from likeminds.solvers.personal_deviations import Deviations, Penalty
from likeminds.solvers.variable_projection import (
    CachedBlock,
    CachedFit,
    Iterate,
    ReducedProblem,
    bend_of_coordinates,
    horizontal,
    with_one,
)

_TINY = 1e-300
# How many people the preconditioner is averaged over, at most.
_ENOUGH_PEOPLE = 400


class ReducedHessian:
    """The Hessian of the reduced objective at a point, and a preconditioner for it.

    Moving (theta, B) by T moves the shared weights of person i by T'(1, c_i), and c_i follows
    by J_i^-1 (B'M_i T'(1, c_i) + T_B g_i), where M_i and g_i are the Hessian and the gradient of
    phi_i, and J_i = B'M_i B + 2 head. The preconditioner takes everybody's curvature for their
    mean, which makes it a Kronecker product that two small eigenproblems invert.
    """

    def __init__(self, problem: ReducedProblem, point: Iterate) -> None:
        self.B, self._people = point.B, problem.people
        k = point.B.shape[1]
        self.ridge = np.zeros((1 + k, 1 + k))
        self.ridge[0, 0] = 2.0 * problem.penalty.ridge
        nothing = np.zeros((1 + k, 1 + k))
        gram, self._own = self._people.map_reduce(_bend, problem.penalty, point.own, start=nothing)
        self.ridge[1:, 1:] = 2.0 * problem.penalty.head * gram[1:, 1:]
        self._prepare(problem, point, gram)

    def __call__(self, T: Float) -> Float:
        """Return the Hessian times T."""
        total, _ = self._people.map_reduce(_apply, T, self._own, start=self.ridge @ T)
        return horizontal(total, self.B)

    def precondition(self, T: Float) -> Float:
        """Return roughly the inverse of the Hessian times T."""
        inside = self._left @ T @ self._right
        return horizontal(self._left.T @ (inside * self._inverse) @ self._right.T, self.B)

    def _prepare(self, problem: ReducedProblem, point: Iterate, gram: Float) -> None:
        mean_bend = _mean_bend(problem, point)
        bends, self._right = np.linalg.eigh(mean_bend)
        floor = 1e-9 * np.trace(mean_bend) / len(mean_bend) + _TINY
        lift = np.diag(1e-10 * np.diag(gram) + 1e-12 * np.trace(gram) + _TINY)
        root = np.linalg.inv(np.linalg.cholesky(gram + lift))
        ridges, vectors = np.linalg.eigh(root @ self.ridge @ root.T)
        self._left = vectors.T @ root
        self._inverse = 1.0 / (np.maximum(bends, floor) + np.maximum(ridges, 0.0)[:, None])


@dataclass(frozen=True)
class BlockCurvature:
    """What a block of people keeps for its contribution to the Hessian."""

    deviations: Deviations
    ones: Float  # (1, c_i), shape (p, 1 + k)
    gradient: Float  # g_i, shape (p, d)
    across: Float  # M_i B in eigen-coordinates, shape (p, r, k)
    inverse: Float  # J_i^-1, shape (p, k, k)

    @classmethod
    def at(cls, part: CurvatureSpectrum, penalty: Penalty, fit: CachedFit) -> "BlockCurvature":
        """Return it where people have been fitted."""
        c, deviations, directions = fit.C, fit.deviations, fit.directions
        flat = deviations.flat
        across = deviations.bend[:, :, None] * directions
        across -= flat[:, :, None] * times_back(directions, flat)[:, None, :]
        J = directions.transpose(0, 2, 1) @ across + 2.0 * penalty.head * np.eye(c.shape[1])
        return cls(
            deviations,
            with_one(c),
            part.back(deviations.gradient),
            across,
            np.asarray(np.linalg.inv(lift_diagonal(J, 1e-10)), dtype=np.float64),
        )

    def apply(self, part: CurvatureSpectrum, T: Float) -> Float:
        """Return the Hessian of these people times T."""
        x = part.into(self.ones @ T)
        flat = self.deviations.flat
        bent = self.deviations.bend * x - flat * row_dots(flat, x)[:, None]
        follow = times(self.inverse, times_back(self.across, x) + self.gradient @ T[1:].T)
        total = self.ones.T @ part.back(bent - times(self.across, follow))
        total[1:] -= follow.T @ self.gradient
        return np.asarray(total)


def _bend(block: CachedBlock, penalty: Penalty, fit: CachedFit) -> tuple[Float, BlockCurvature]:
    """Return the Gram matrix of (1, c_i), and what the block adds to the Hessian."""
    bending = BlockCurvature.at(block.spectrum, penalty, fit)
    return block.stands_for * (bending.ones.T @ bending.ones), bending


def _apply(block: CachedBlock, T: Float, bending: BlockCurvature) -> tuple[Float, None]:
    return block.stands_for * bending.apply(block.spectrum, T), None


def _mean_bend(problem: ReducedProblem, point: Iterate) -> Float:
    """Return the mean of M_i - M_i B J_i^-1 B'M_i, with the parabola's M_i: always positive."""
    d, total, counted = problem.n_features, np.zeros(0), 0.0
    for every in (-(-problem.n_kept // _ENOUGH_PEOPLE), 1):
        if not counted:  # positions may be such that nobody is met
            start, state = SumTuple(np.zeros((d, d)), 0.0), (problem.penalty, every)
            found, _ = problem.people.map_reduce(_bend_of_some, state, point.own, start=start)
            total, counted = found
    return np.asarray((total + total.T) / (2.0 * counted))


def _bend_of_some(
    block: CachedBlock, state: tuple[Penalty, int], fit: CachedFit
) -> tuple[SumTuple, None]:
    (penalty, every), d = state, block.spectrum.basis.shape[2]
    # By their positions, so that they are the same people whatever the blocks.
    some = np.flatnonzero(block.people % every == 0) if every > 1 else slice(None)
    basis, bend = block.spectrum.basis[some], fit.deviations.bend[some]
    D = fit.directions[some]
    rows = (np.sqrt(bend)[:, :, None] * basis).reshape(-1, d)
    J = lift_diagonal(bend_of_coordinates(D, bend, penalty), 1e-10)
    across = (bend[:, :, None] * D).transpose(0, 2, 1) @ basis
    freed = across.reshape(-1, d).T @ solve(J, across).reshape(-1, d)
    return SumTuple(block.stands_for * (rows.T @ rows - freed), block.stands_for * len(bend)), None
