"""The default solver of the three-level model: Newton's method on what cannot be eliminated.

Deviations and coordinates of the people are eliminated exactly (`deviations`, `reduced`);
the consensus and the strong directions of the group level are found by a trust-region
Newton method (`trust_region`, `curvature`). The model is not convex: several starts race
over the first steps, and the best goes on.

Crowds whose eigenvectors do not fit into ``memory`` are handled by a sample of the people,
which is solved first and then lends its curvature to exact gradients over everybody.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from likeminds.components import Component, Consensus, Group, Personal, top_directions
from likeminds.losses import QuadraticLoss
from likeminds.rows import Float
from likeminds.solvers.base import (
    History,
    Parts,
    Solution,
    gradient_scale,
    objective,
    optimality_residual,
)
from likeminds.solvers.deviations import Penalty, deviate
from likeminds.solvers.reduced import Point, Problem, evaluate, everybodys_deviation
from likeminds.solvers.trust_region import Descent, descend, divided
from likeminds.spectra import spectra

_TINY = 1e-300
# Starts race until their residual is this much, or for so many steps.
_RACE_TOL, _RACE_STEPS = 1e-2, 10


@dataclass(frozen=True)
class FastSolver:
    """Newton's method with everything eliminated that can be.

    Parameters
    ----------
    n_starts : int
        How many starts race (at most 3). They are deterministic: the consensus of the ridge
        problem, no consensus at all, and a few steps of the path that proximal gradients take.
    memory : int
        Bytes that the eigenvectors of people with few labels may take.
    """

    n_starts: int = 3
    memory: int = 1 << 30

    def solve(
        self,
        loss: QuadraticLoss,
        components: Sequence[Component],
        *,
        start: Parts | None = None,
        tol: float = 1e-5,
        max_iter: int = 1000,
    ) -> Solution:
        """Find the three levels (see `Solver.solve`); other components are refused."""
        consensus, group, personal = _three_levels(components)
        penalty = Penalty.of(consensus, group, personal, _mean_curvature(loss))
        problem, sample = _problems(loss, penalty, self.memory)
        unit = gradient_scale(loss, components)
        record = _Record(unit, offset=0.5 * (loss.shape[0] - loss.constant.sum()))
        go = partial(descend, tol=0.5 * tol * unit, watch=record)
        if start is not None:
            point = _point_at(problem, start)
        elif sample is None:
            point = self._race(problem, go, unit)
        else:
            point = go(sample, self._race(sample, go, unit), max_steps=max_iter).point
            point = evaluate(problem, point.theta, point.B, point.C)
        record.clear()
        found = go(problem, point, max_steps=max_iter)
        G, P = divided(problem, found.point, everybodys_deviation(problem, found.point))
        parts = (found.point.theta, G, P)
        residual = optimality_residual(loss, components, parts)
        value = objective(loss, components, parts)
        return Solution(parts, value, residual, residual <= tol, record.history(value, residual))

    def _race(self, problem: Problem, go: Callable[..., Descent], unit: float) -> Point:
        """Give every start a few steps, and return where the best has come to."""
        starts = [_spectral_start(problem, _ridge_consensus(problem))]
        if problem.penalty.n_groups:
            starts.append(_spectral_start(problem, np.zeros(problem.n_features)))
            starts.append(_threshold_start(problem))
        starts = starts[: self.n_starts]
        if len(starts) == 1:
            return starts[0]
        runs = [go(problem, point, tol=_RACE_TOL * unit, max_steps=_RACE_STEPS) for point in starts]
        return min((run.point for run in runs), key=lambda point: point.value)


class _Record:
    """Remembers objective and residual of each step."""

    def __init__(self, unit: float, offset: float) -> None:
        self.unit, self.offset = unit, offset
        self.clear()

    def clear(self) -> None:
        self.objectives: list[float] = []
        self.residuals: list[float] = []

    def __call__(self, value: float, residual: float) -> None:
        self.objectives.append(value - self.offset)
        self.residuals.append(residual / self.unit)

    def history(self, value: float, residual: float) -> History:
        return History(
            objective=np.array([*self.objectives, value]),
            residual=np.array([*self.residuals[1:], residual]),
        )


def _three_levels(components: Sequence[Component]) -> tuple[Consensus, Group, Personal]:
    kinds = tuple(type(component) for component in components)
    if kinds != (Consensus, Group, Personal):
        names = ", ".join(kind.__name__ for kind in kinds)
        raise TypeError(
            f"The fast solver handles Consensus, Group, Personal, in this order, not {names}. "
            'Use solver="paper", which takes any components.'
        )
    return tuple(components)  # type: ignore[return-value]


def _mean_curvature(loss: QuadraticLoss) -> float:
    """Return a typical size of A_i: that of its part b b', which costs nothing to know."""
    squares = np.einsum("ij,ij->i", loss.linear, loss.linear)
    return float(squares.mean()) + _TINY


def _problems(loss: QuadraticLoss, penalty: Penalty, memory: int) -> tuple[Problem, Problem | None]:
    """Return everybody's problem, and that of a sample where not all fit into memory."""
    make = partial(Problem, penalty=penalty, n_people=loss.shape[0], n_features=loss.shape[1])
    rows = loss.factors.rows
    need = 8 * loss.shape[1] * (len(rows.index) + len(rows.people))
    if need <= memory:
        blocks = list(spectra(loss))
        return make(blocks, [1.0] * len(blocks)), None
    n_kept = max(1, int(len(rows.people) * memory / need))
    lots = np.random.default_rng(0).permutation(len(rows.people))
    kept = np.zeros(len(rows.people), dtype=bool)
    kept[lots[:n_kept]] = True
    blocks = list(spectra(replace(loss, factors=replace(loss.factors, rows=rows.of(kept)))))
    rest = replace(loss.factors, rows=rows.of(~kept))
    n_dense = 1 if len(loss.dense_people) else 0
    stands_for = [1.0] * n_dense + [len(kept) / n_kept] * (len(blocks) - n_dense)
    everybody = make(blocks, [1.0] * len(blocks), rest=partial(iter, rest))
    return everybody, make(blocks, stands_for)


def _point_at(problem: Problem, parts: Parts) -> Point:
    """Return the point nearest to given levels."""
    theta, G, _ = parts
    B = top_directions(G, problem.penalty.n_groups)
    return evaluate(problem, theta, B, G @ B)


def _ridge_consensus(problem: Problem) -> Float:
    """Return the best theta if there were no groups and all deviations were before the knee."""
    d = problem.n_features
    matrix, right = np.zeros((d, d)), np.zeros(d)
    for part, weight in zip(problem.blocks, problem.weights, strict=True):
        share = 2.0 * problem.penalty.tail / (part.curvature + 2.0 * problem.penalty.tail)
        matrix += weight * part.weighted_sum(share * part.curvature)
        right += weight * part.back(share * part.slope).sum(axis=0)
    lift = 2.0 * problem.penalty.ridge + 1e-13 * np.trace(matrix) / d + _TINY
    return np.asarray(np.linalg.solve(matrix + lift * np.eye(d), right), dtype=np.float64)


def _spectral_start(problem: Problem, theta: Float) -> Point:
    """Take the main directions of what theta leaves to the deviations."""
    V = np.zeros((problem.n_people, problem.n_features))
    for part in problem.blocks:
        deviations = deviate(part.curvature, part.slope, part.into(theta), problem.penalty)
        V[part.people] = part.back(deviations.v)
    k = problem.penalty.n_groups
    return evaluate(problem, theta, top_directions(V, k), np.zeros((problem.n_people, k)))


def _threshold_start(problem: Problem, n_steps: int = 30) -> Point:
    """Take a few proximal-gradient steps on theta and H: where the plain algorithm would go."""
    penalty = problem.penalty
    theta = np.zeros(problem.n_features)
    H = np.zeros((problem.n_people, problem.n_features))
    bends = [
        2.0 * penalty.tail * p.curvature / (p.curvature + 2.0 * penalty.tail)
        for p in problem.blocks
    ]
    steepest = [bend.max(axis=1) for bend in bends]
    step = 0.5 / (max(bend.max() for bend in steepest) + _TINY)
    total = sum(w * b.sum() for w, b in zip(problem.weights, steepest, strict=True))
    step_theta = 0.5 / (total + _TINY)
    for _ in range(n_steps):
        gradient = np.zeros_like(H)
        slope = np.zeros_like(theta)
        for part, weight in zip(problem.blocks, problem.weights, strict=True):
            shared = part.into(theta + H[part.people])
            deviations = deviate(part.curvature, part.slope, shared, penalty)
            gradient[part.people] = part.back(deviations.gradient)
            slope += weight * gradient[part.people].sum(axis=0)
        theta = (theta - step_theta * slope) / (1.0 + 2.0 * penalty.ridge * step_theta)
        H -= step * gradient
        B = top_directions(H, penalty.n_groups)
        C = (H @ B) / (1.0 + 2.0 * penalty.head * step)
        H = C @ B.T
    return evaluate(problem, theta, B, C)
