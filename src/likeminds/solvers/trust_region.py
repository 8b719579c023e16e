"""A trust-region Newton method for the reduced problem, by conjugate gradients."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from likeminds._util.array_types import Float
from likeminds.solvers.curvature import ReducedHessian
from likeminds.solvers.variable_projection import (
    Iterate,
    ReducedProblem,
    evaluate,
    strong_directions,
)

_TINY = 1e-300

# Called at each point with objective and residual. True stops the descent.
Watcher = Callable[[float, float], bool]


@dataclass(frozen=True)
class TrustRegionResult:
    """The last point of a descent, and whether it was interrupted."""

    point: Iterate
    interrupted: bool = False


def minimise(
    problem: ReducedProblem,
    point: Iterate,
    *,
    tol: float,
    max_steps: int,
    watch: Watcher,
) -> TrustRegionResult:
    """Take Newton steps until the first-order residual falls to ``tol``.

    At a critical point the strong directions of the group level are compared with B; where
    a weak one outweighs a strong one (a saddle), they are exchanged and the descent goes on.
    A keyboard interrupt ends it with the best point so far.
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
    """Return the length of the objective's gradient by theta and G, relative.

    Deviations and coordinates are at their best, so that only theta's part and the part
    along the directions in which H = C B' can turn are left.
    """
    gram, vectors = np.linalg.eigh(point.gram)
    largest = gram[-1] if gram.size else 0.0
    scale = np.sqrt(np.maximum(gram, 1e-20 * largest + _TINY))
    turning = (vectors.T @ point.gradient[1:]) / scale[:, None]
    return float(np.sqrt(np.sum(point.gradient[0] ** 2) + np.sum(turning**2))) / problem.unit


def _step(
    problem: ReducedProblem,
    point: Iterate,
    curvature: ReducedHessian,
    radius: float,
    rtol: float,
) -> tuple[Iterate | None, float]:
    """Return the next point, or None when no step can lower the objective measurably."""
    while True:
        T, promised, at_edge = _truncated_cg(curvature, point.gradient, radius, rtol)
        if promised < 1e-15 * abs(point.value):
            return None, radius
        B, R = np.linalg.qr(point.B + T[1:].T)
        new = _turned(problem, point, point.theta + T[0], B, R.T)
        kept = (point.value - new.value + 1e-14 * abs(point.value)) / promised
        if kept < 0.25:
            radius *= 0.25
        elif kept > 0.75 and at_edge:
            radius *= 3.0
        if kept > 1e-4:
            return new, radius


def _truncated_cg(
    curvature: ReducedHessian, gradient: Float, radius: float, rtol: float
) -> tuple[Float, float, bool]:
    """Steihaug's conjugate gradients: the step, the decrease it promises, whether it hit the edge.

    Lengths are measured in the preconditioner's norm; ``xx``, ``xp``, ``pp`` are its inner
    products of the step and the direction, carried along.
    """
    x, bent_x, r = np.zeros_like(gradient), np.zeros_like(gradient), gradient
    z = curvature.precondition(r)
    rz = _dot(r, z)
    enough = rtol**2 * rz
    p, xx, xp, pp = -z, 0.0, 0.0, rz
    at_edge = False
    for _ in range(250):
        bent = curvature(p)
        bend = _dot(p, bent)
        alpha = rz / bend if bend > 0 else np.inf
        at_edge = bend <= 0 or xx + 2 * alpha * xp + alpha**2 * pp >= radius**2
        if at_edge:
            alpha = (np.sqrt(max(xp**2 + pp * (radius**2 - xx), 0.0)) - xp) / pp
        x, bent_x, r = x + alpha * p, bent_x + alpha * bent, r + alpha * bent
        if at_edge:
            break
        xx += 2 * alpha * xp + alpha**2 * pp
        z = curvature.precondition(r)
        rz, before = _dot(r, z), rz
        if rz <= enough:
            break
        beta = rz / before
        xp, pp = beta * (xp + alpha * pp), rz + beta**2 * pp
        p = beta * p - z
    return x, -_dot(gradient, x) - 0.5 * _dot(x, bent_x), at_edge


def _exchange_directions(problem: ReducedProblem, point: Iterate) -> Iterate | None:
    """Put the strongest directions of G into B, if they are not there already."""
    k = point.B.shape[1]
    if k == 0:
        return None
    B = strong_directions(problem, point)
    overlap = point.B.T @ B
    if np.linalg.svd(overlap, compute_uv=False)[-1] > 0.5:
        return None
    # With the weak part held fixed the new strong part is the best one: the value falls.
    new = _turned(problem, point, point.theta, B, overlap)
    return new if new.value < point.value - 1e-12 * abs(point.value) else None


def _turned(
    problem: ReducedProblem, point: Iterate, theta: Float, B: Float, turn: Float
) -> Iterate:
    """Return another point, where coordinates start at those of this one times ``turn``."""
    return evaluate(problem, theta, B, turn, (point.own, point.of_rest))


def _dot(x: Float, y: Float) -> float:
    return float(np.vdot(x, y))
