"""A trust-region Newton method for the reduced problem, by conjugate gradients.

The unknowns are theta and the span of B; all other parameters are eliminated (see
`variable_projection`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

import numpy as np

from likeminds._util.array_types import Float, Index
from likeminds._util.map_reduce import Executor, Own, SumTuple
from likeminds._util.per_user_arrays import (
    CollectedRows,
    lift_diagonal,
    row_dots,
    solve,
    times,
    times_back,
)
from likeminds.components import top_directions
from likeminds.solvers.variable_projection import (
    CachedBlock,
    CachedFit,
    Deviations,
    FitPoint,
    Penalty,
    StreamedBlock,
    coordinate_curvature,
    with_one,
)

_TINY = 1e-300
# The preconditioner is averaged over at most so many users.
_PRECONDITIONER_USERS = 400

# Called at each iterate with objective and residual. True stops the descent.
Watcher = Callable[[float, float], bool]
Block: TypeAlias = CachedBlock | StreamedBlock
# A function that returns rows of a block's users, and its state.
RowWork: TypeAlias = tuple[Callable[..., Float], object]


@dataclass(frozen=True)
class ReducedProblem:
    """The users of the reduced problem, in memory and (``rest``) not, and the penalties."""

    users: Executor[CachedBlock]
    penalty: Penalty
    n_cached: int  # the number of users in memory
    n_users: int  # and of all
    n_features: int
    unit: float = 1.0  # the length of the loss's gradient at zero: residuals are relative to it
    accuracy: float = 1e-12  # tolerance of gradients by c_i, relative to the loss's at zero
    rest: Executor[StreamedBlock] | None = None

    def at(self, theta: Float, B: Float, transform: Float | None = None) -> FitPoint:
        """Return the state of a pass over users."""
        return FitPoint(self.penalty, self.accuracy, theta, B, transform, self.rest is None)

    def executors(self, previous: tuple[Own, Own]) -> "list[tuple[Executor[Block], Own]]":
        """Return the executors in memory and not, each with the fits of the previous pass."""
        cached: tuple[Executor[Block], Own] = (self.users, previous[0])
        return [cached, *([] if self.rest is None else [(self.rest, previous[1])])]


@dataclass(frozen=True)
class Iterate:
    """An iterate, with the objective and its gradient."""

    theta: Float
    B: Float  # orthonormal columns
    value: float
    gradient: Float  # by theta and by the columns of B, orthogonal to B; shape (1 + k, d)
    gram: Float  # C'C, where the rows of C are all users' coordinates
    block_fits: tuple[Own, Own]  # fits of users in memory, coordinates of the others


def evaluate(
    problem: ReducedProblem,
    theta: Float,
    B: Float,
    transform: Float | None = None,
    previous: tuple[Own, Own] = (None, None),
) -> Iterate:
    """Eliminate coordinates and deviations, starting from ``previous`` times ``transform``."""
    at, k = problem.at(theta, B, transform), B.shape[1]
    gradient = np.zeros((1 + k, len(theta)))
    gradient[0] = 2.0 * problem.penalty.ridge * theta
    sums = SumTuple(problem.penalty.ridge * float(theta @ theta), gradient, np.zeros((k, k)))
    fits: list[Own] = []
    for users, before in problem.executors(previous):
        sums, after = users.map_reduce(_evaluate, at, before, start=sums)
        fits.append(after)
    value, gradient, gram = sums
    block_fits = (fits[0], None if problem.rest is None else fits[1])
    return Iterate(theta, B, float(value), horizontal(gradient, B), gram, block_fits)


def _evaluate(block: Block, at: FitPoint, previous: Own) -> tuple[SumTuple, CachedFit | Float]:
    return block.evaluate(at, previous)


def leading(
    problem: ReducedProblem, work: Callable[..., Float], state: object, previous: tuple[Own, Own]
) -> Float:
    """Return the leading right singular vectors of the rows of all users, one per group.

    They come from the Gram matrix of the shorter side; that of features is a sum over users.
    """
    k = problem.penalty.n_groups
    if problem.n_users < problem.n_features:
        found = CollectedRows([], [])
        for users, before in problem.executors(previous):
            found, _ = users.map_reduce(_rows, (work, state), before, start=found)
        return top_directions(found.in_order()[0], k)
    gram = np.zeros((problem.n_features, problem.n_features))
    for users, before in problem.executors(previous):
        gram, _ = users.map_reduce(_gram, (work, state), before, start=gram)
    return np.asarray(np.linalg.eigh(gram)[1][:, ::-1][:, :k])


def _rows(block: Block, state: RowWork, previous: Own) -> tuple[CollectedRows, None]:
    return CollectedRows([block.users], [[state[0](block, state[1], previous)]]), None


def _gram(block: Block, state: RowWork, previous: Own) -> tuple[Float, None]:
    rows = state[0](block, state[1], previous)
    return rows.T @ rows, None


def all_levels(problem: ReducedProblem, point: Iterate) -> tuple[Float, Float, float]:
    """Return G and P, shape (n_users, n_features), and the length of the longest deviation.

    Users whose statistics are not in memory are visited once more.
    """
    G = np.zeros((problem.n_users, problem.n_features))
    P, longest = np.zeros_like(G), 0.0
    at = problem.at(point.theta, point.B, np.eye(point.B.shape[1]))
    both = problem.executors(point.block_fits)
    for positions, group, personal, length in chain(
        *(users.map(_levels, at, previous) for users, previous in both)
    ):
        G[positions], P[positions] = group, personal
        longest = max(longest, length)
    return G, P, longest


def _levels(block: Block, at: FitPoint, previous: Own) -> tuple[Index, Float, Float, float]:
    """Return users with their G and P: deviations up to the threshold belong to G."""
    C, V = block.coordinates_and_deviations(at, previous)
    length = np.linalg.norm(V, axis=1, keepdims=True)
    weak = V * (at.penalty.threshold / np.maximum(length, at.penalty.threshold))
    return block.users, C @ at.B.T + weak, V - weak, float(length.max(initial=0.0))


def _group_level(block: Block, at: FitPoint, previous: Own) -> Float:
    return _levels(block, at, previous)[1]


def horizontal(T: Float, B: Float) -> Float:
    """Project a step onto the tangents that move the span of B."""
    T = T.copy()
    T[1:] -= (T[1:] @ B) @ B.T
    return T


class ReducedHessian:
    """The Hessian of the reduced objective at a point, and a preconditioner for it.

    Moving (theta, B) by T moves the shared weights of user i by T'(1, c_i), and c_i follows by
    J_i^-1 (B'M_i T'(1, c_i) + T_B g_i). M_i and g_i are the Hessian and the gradient of phi_i, and
    J_i = B'M_i B + 2 strong. The preconditioner replaces all users' curvatures by their mean, which
    makes it a Kronecker product that two small eigenproblems invert.
    """

    def __init__(self, problem: ReducedProblem, point: Iterate) -> None:
        self.B, self._users = point.B, problem.users
        k = point.B.shape[1]
        self.ridge = np.zeros((1 + k, 1 + k))
        self.ridge[0, 0] = 2.0 * problem.penalty.ridge
        gram, self._curvatures = self._users.map_reduce(
            _block_curvature, problem.penalty, point.block_fits[0], start=np.zeros_like(self.ridge)
        )
        self.ridge[1:, 1:] = 2.0 * problem.penalty.strong * gram[1:, 1:]
        mean_curvature = _mean_majoriser(problem, point)
        eigenvalues, self._right = np.linalg.eigh(mean_curvature)
        floor = 1e-9 * np.trace(mean_curvature) / len(mean_curvature) + _TINY
        lift = np.diag(1e-10 * np.diag(gram) + 1e-12 * np.trace(gram) + _TINY)
        root = np.linalg.inv(np.linalg.cholesky(gram + lift))
        ridges, vectors = np.linalg.eigh(root @ self.ridge @ root.T)
        self._left = vectors.T @ root
        self._inverse = 1.0 / (np.maximum(eigenvalues, floor) + np.maximum(ridges, 0.0)[:, None])

    def __call__(self, T: Float) -> Float:
        """Return the Hessian times T."""
        total, _ = self._users.map_reduce(_apply, T, self._curvatures, start=self.ridge @ T)
        return horizontal(total, self.B)

    def precondition(self, T: Float) -> Float:
        """Return roughly the inverse of the Hessian times T."""
        inside = self._left @ T @ self._right
        return horizontal(self._left.T @ (inside * self._inverse) @ self._right.T, self.B)


@dataclass(frozen=True)
class BlockCurvature:
    """The contribution of a block of users to the Hessian."""

    deviations: Deviations
    ones: Float  # (1, c_i), shape (p, 1 + k)
    gradient: Float  # g_i, shape (p, d)
    across: Float  # M_i B in eigen-coordinates, shape (p, r, k)
    inverse: Float  # J_i^-1, shape (p, k, k)


def _block_curvature(
    block: CachedBlock, penalty: Penalty, fit: CachedFit
) -> tuple[Float, BlockCurvature]:
    """Return the Gram matrix of (1, c_i), and the block's contribution to the Hessian."""
    c, deviations, directions = fit.C, fit.deviations, fit.directions
    rank_one = deviations.rank_one
    across = deviations.majoriser[:, :, None] * directions
    across -= rank_one[:, :, None] * times_back(directions, rank_one)[:, None, :]
    J = directions.transpose(0, 2, 1) @ across + 2.0 * penalty.strong * np.eye(c.shape[1])
    inverse = np.asarray(np.linalg.inv(lift_diagonal(J, 1e-10)), dtype=np.float64)
    ones, gradient = with_one(c), block.spectrum.back(deviations.gradient)
    curvature = BlockCurvature(deviations, ones, gradient, across, inverse)
    return block.multiplicity * (ones.T @ ones), curvature


def _apply(block: CachedBlock, T: Float, at: BlockCurvature) -> tuple[Float, None]:
    """Return the Hessian of these users times T."""
    part, rank_one = block.spectrum, at.deviations.rank_one
    x = part.into(at.ones @ T)
    product = at.deviations.majoriser * x - rank_one * row_dots(rank_one, x)[:, None]
    follow = times(at.inverse, times_back(at.across, x) + at.gradient @ T[1:].T)
    total = at.ones.T @ part.back(product - times(at.across, follow))
    total[1:] -= follow.T @ at.gradient
    return block.multiplicity * total, None


def _mean_majoriser(problem: ReducedProblem, point: Iterate) -> Float:
    """Return the mean of M_i - M_i B J_i^-1 B'M_i, with the majoriser as M_i: always positive."""
    d, total, counted = problem.n_features, np.zeros(0), 0.0
    for every in (-(-problem.n_cached // _PRECONDITIONER_USERS), 1):
        if not counted:  # no user in memory may have such a position
            start, state = SumTuple(np.zeros((d, d)), 0.0), (problem.penalty, every)
            found, _ = problem.users.map_reduce(
                _sum_majorisers, state, point.block_fits[0], start=start
            )
            total, counted = found
    return np.asarray((total + total.T) / (2.0 * counted))


def _sum_majorisers(
    block: CachedBlock, state: tuple[Penalty, int], fit: CachedFit
) -> tuple[SumTuple, None]:
    (penalty, every), d = state, block.spectrum.basis.shape[2]
    # Users are chosen by position, so they do not depend on the blocks.
    some = np.flatnonzero(block.users % every == 0) if every > 1 else slice(None)
    basis, majoriser = block.spectrum.basis[some], fit.deviations.majoriser[some]
    D = fit.directions[some]
    rows = (np.sqrt(majoriser)[:, :, None] * basis).reshape(-1, d)
    J = lift_diagonal(coordinate_curvature(D, majoriser, penalty), 1e-10)
    across = (majoriser[:, :, None] * D).transpose(0, 2, 1) @ basis
    eliminated = across.reshape(-1, d).T @ solve(J, across).reshape(-1, d)
    total, counted = rows.T @ rows - eliminated, len(majoriser)
    return SumTuple(block.multiplicity * total, block.multiplicity * counted), None


@dataclass(frozen=True)
class TrustRegionResult:
    """The last point of a descent, and whether it was interrupted."""

    point: Iterate
    interrupted: bool = False


def minimise(
    problem: ReducedProblem, point: Iterate, *, tol: float, max_steps: int, watch: Watcher
) -> TrustRegionResult:
    """Take Newton steps until the first-order residual falls to ``tol``.

    At a saddle, a weak direction of the group level outweighs a strong one: they are exchanged and
    the descent goes on. A keyboard interrupt ends it with the best point so far.
    """
    radius = None
    try:
        for _ in range(max_steps):
            size = first_order_residual(problem, point)
            if watch(point.value, size):
                return TrustRegionResult(point, interrupted=True)
            if size <= tol:
                better = _exchange_directions(problem, point)
                if better is None:
                    return TrustRegionResult(point)
                point, radius = better, None
                continue
            curvature = ReducedHessian(problem, point)
            if radius is None:
                start = curvature.precondition(point.gradient)
                radius = 10.0 * np.sqrt(_dot(point.gradient, start))
            rtol = min(0.1, np.sqrt(size))
            found, radius = _step(problem, point, curvature, radius, rtol)
            if found is None:
                return TrustRegionResult(point)
            point = found
    except KeyboardInterrupt:
        return TrustRegionResult(point, interrupted=True)
    return TrustRegionResult(point)


def first_order_residual(problem: ReducedProblem, point: Iterate) -> float:
    """Return the relative length of the objective's gradient by theta and by turns of H = C B'."""
    gram, vectors = np.linalg.eigh(point.gram)
    largest = gram[-1] if gram.size else 0.0
    scale = np.sqrt(np.maximum(gram, 1e-20 * largest + _TINY))
    turning = (vectors.T @ point.gradient[1:]) / scale[:, None]
    return float(np.sqrt(np.sum(point.gradient[0] ** 2) + np.sum(turning**2))) / problem.unit


def _step(
    problem: ReducedProblem, point: Iterate, curvature: ReducedHessian, radius: float, rtol: float
) -> tuple[Iterate | None, float]:
    """Return the next iterate, or None if no step decreases the objective measurably."""
    while True:
        T, predicted, on_boundary = _truncated_cg(curvature, point.gradient, radius, rtol)
        if predicted < 1e-15 * abs(point.value):
            return None, radius
        B, R = np.linalg.qr(point.B + T[1:].T)
        new = evaluate(problem, point.theta + T[0], B, R.T, point.block_fits)
        ratio = (point.value - new.value + 1e-14 * abs(point.value)) / predicted
        if ratio < 0.25:
            radius *= 0.25
        elif ratio > 0.75 and on_boundary:
            radius *= 3.0
        if ratio > 1e-4:
            return new, radius


def _truncated_cg(
    curvature: ReducedHessian, gradient: Float, radius: float, rtol: float
) -> tuple[Float, float, bool]:
    """Steihaug's conjugate gradients: the step, its predicted decrease, whether it hit the edge.

    Lengths are measured in the preconditioner's norm; ``xx``, ``xp``, ``pp`` are its inner
    products of the step and the direction, carried along.
    """
    x, hessian_x, r = np.zeros_like(gradient), np.zeros_like(gradient), gradient
    z = curvature.precondition(r)
    rz = _dot(r, z)
    tolerance = rtol**2 * rz
    p, xx, xp, pp = -z, 0.0, 0.0, rz
    on_boundary = False
    for _ in range(250):
        hessian_p = curvature(p)
        pHp = _dot(p, hessian_p)
        alpha = rz / pHp if pHp > 0 else np.inf
        on_boundary = pHp <= 0 or xx + 2 * alpha * xp + alpha**2 * pp >= radius**2
        if on_boundary:
            alpha = (np.sqrt(max(xp**2 + pp * (radius**2 - xx), 0.0)) - xp) / pp
        x, hessian_x, r = x + alpha * p, hessian_x + alpha * hessian_p, r + alpha * hessian_p
        if on_boundary:
            break
        xx += 2 * alpha * xp + alpha**2 * pp
        z = curvature.precondition(r)
        rz, before = _dot(r, z), rz
        if rz <= tolerance:
            break
        beta = rz / before
        xp, pp = beta * (xp + alpha * pp), rz + beta**2 * pp
        p = beta * p - z
    return x, -_dot(gradient, x) - 0.5 * _dot(x, hessian_x), on_boundary


def _exchange_directions(problem: ReducedProblem, point: Iterate) -> Iterate | None:
    """Put the strongest directions of G into B, if they are not there already."""
    k = point.B.shape[1]
    if k == 0:
        return None
    at = problem.at(point.theta, point.B, np.eye(k))
    B = leading(problem, _group_level, at, point.block_fits)
    overlap = point.B.T @ B
    if np.linalg.svd(overlap, compute_uv=False)[-1] > 0.5:
        return None
    # For a fixed weak part the new strong part is optimal: the objective decreases.
    new = evaluate(problem, point.theta, B, overlap, point.block_fits)
    return new if new.value < point.value - 1e-12 * abs(point.value) else None


def _dot(x: Float, y: Float) -> float:
    return float(np.vdot(x, y))
