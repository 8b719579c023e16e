"""The baselines compared with the algorithms that are published for them.

MALSAR, the usual program for these models, is accelerated proximal gradient with one step size
that only ever shrinks: gradient at the extrapolated point, objective at the new one, a whole SVD
where there are singular values, and for CMTL an eigendecomposition of people x people. Here it is
given our statistics, and runs as it is published.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median

import numpy as np

from benchmarks.results import Result, at_least
from likeminds import Statistics, load_electricity
from likeminds._util.array_types import Float
from likeminds._util.map_reduce import one_blas_thread
from likeminds.components import Clustered, Component, LowRank
from likeminds.losses import LeastSquares, QuadraticLoss
from likeminds.rankers.baselines import CMTL, JFL, RMTFL, RMTL, LassoMTL
from likeminds.solvers import AcceleratedSolver

GAP = 1e-6
# The published algorithm for CMTL may need far longer: it is stopped after this many seconds.
PATIENCE = 60.0


def run(quick: bool) -> Result:
    """Time both, for each baseline, until the objective is within a gap of its minimum."""
    crowd = load_electricity()
    if quick:
        crowd = crowd.of_users(crowd.user_ids[:10])
    statistics = Statistics.from_annotations(crowd)
    loss = LeastSquares().of(statistics, statistics.feature_scale())
    rounds = 1 if quick else 5
    rows, ratios = [], {}
    for kind in (RMTL, RMTFL, LassoMTL, JFL, CMTL):
        components = kind()._list_components(loss)
        target = _minimum(loss, components) * (1 + GAP)
        ours = partial(_ours, loss, components, target)
        published = partial(_published(components), loss, components, target)
        with one_blas_thread():
            times = [(_timed(ours), _timed(published)) for _ in range(rounds)]
        mine, theirs = (median(t for t, _ in column) for column in zip(*times, strict=True))
        reached = all(there for _, (_, there) in times)
        name = kind.__name__
        ratios[name] = theirs / mine
        shown = f"{ratios[name]:.2g}" if reached else f"more than {ratios[name]:.2g}"
        rows.append([name, mine, theirs if reached else f"over {theirs:.0f}", shown])
    return Result(
        title="Baselines",
        compares="Seconds until the objective is within one millionth of its minimum: our solver, "
        "and the published algorithm given the same statistics; bundled data, default penalties, "
        "least squares with an intercept.",
        tables=[
            {"columns": ["baseline", "ours, s", "as published, s", "times faster"], "rows": rows}
        ],
        goals=[
            at_least(f"{name}: published over ours", 1.0, ratio, judge=not quick)
            for name, ratio in ratios.items()
        ],
        notes=[
            "COMT and RAMU have no public program to compare with.",
            "CMTL's membership matrix of people x people is never formed by ours: at its best it "
            "shares its eigenvectors with the weights, so the penalty is one of singular "
            "values.",
        ],
        series={"ratios": ratios},
    )


def _minimum(loss: QuadraticLoss, components: list[Component]) -> float:
    found = AcceleratedSolver().solve(loss, components, tol=1e-9, max_iter=20_000)
    return found.objective


def _timed(work: Callable[[], bool]) -> tuple[float, bool]:
    start = time.perf_counter()
    there = work()
    return time.perf_counter() - start, there


def _ours(loss: QuadraticLoss, components: list[Component], target: float) -> bool:
    found = AcceleratedSolver().solve(
        loss, components, tol=0.0, max_iter=20_000, callback=lambda _, value, __: value <= target
    )
    return found.objective <= target


def _published(components: list[Component]) -> Callable[..., bool]:
    return published_cmtl if isinstance(components[0], Clustered) else published


def published(loss: QuadraticLoss, components: list[Component], target: float) -> bool:
    """Run accelerated proximal gradient as MALSAR does; say whether it got there in time."""
    components = [WholeSVD(c.alpha) if isinstance(c, LowRank) else c for c in components]
    now = before = [np.zeros(loss.shape) for _ in components]
    momentum, last, constant = 1.0, 0.0, 1.0
    end = time.perf_counter() + PATIENCE
    while time.perf_counter() < end:
        beta = (last - 1.0) / momentum
        at = [(1 + beta) * x - beta * y for x, y in zip(now, before, strict=True)]
        gradient = loss.gradient(sum(at))
        value = loss.value(sum(at), gradient)
        while True:
            moved = [
                component.prox(x - gradient / constant, 1.0 / constant)
                for component, x in zip(components, at, strict=True)
            ]
            steps = [new - old for new, old in zip(moved, at, strict=True)]
            model = value + sum(
                np.vdot(step, gradient) + constant / 2 * np.vdot(step, step) for step in steps
            )
            reached = loss.value(sum(moved))
            if reached <= model * (1 + 1e-12):
                break
            constant *= 2.0
        before, now = now, moved
        penalties = sum(c.value(part) for c, part in zip(components, now, strict=True))
        if reached + penalties <= target:
            return True
        last, momentum = momentum, (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
    return False


@dataclass(frozen=True)
class WholeSVD:
    """The trace norm by a whole singular value decomposition."""

    alpha: float

    def value(self, part: Float) -> float:
        """Return alpha times the sum of the singular values."""
        return self.alpha * float(np.linalg.svd(part, compute_uv=False).sum())

    def prox(self, point: Float, step: float) -> Float:
        """Shrink the singular values."""
        left, sigma, right = np.linalg.svd(point, full_matrices=False)
        return (left * np.maximum(sigma - step * self.alpha, 0.0)) @ right


def published_cmtl(loss: QuadraticLoss, components: list[Clustered], target: float) -> bool:
    """Run accelerated projected gradient over W and M, people x people, as MALSAR does."""
    (clustered,) = components
    eta = clustered.rho2 / clustered.rho1
    price = clustered.rho1 * eta * (1 + eta)
    n_users = loss.shape[0]

    def value(W: Float, M: Float) -> tuple[float, Float]:
        solved = np.linalg.solve(eta * np.eye(n_users) + M, W)
        return loss.value(W) + price * float(np.vdot(W, solved)), solved

    now = before = (np.zeros(loss.shape), np.eye(n_users) * clustered.n_clusters / n_users)
    momentum, last, constant = 1.0, 0.0, 1.0
    end = time.perf_counter() + PATIENCE
    while time.perf_counter() < end:
        beta = (last - 1.0) / momentum
        W, M = ((1 + beta) * x - beta * y for x, y in zip(now, before, strict=True))
        at, solved = value(W, M)
        slope_W = loss.gradient(W) + 2.0 * price * solved
        slope_M = -price * solved @ solved.T
        while True:
            new_W = W - slope_W / constant
            new_M = _projected(M - slope_M / constant, clustered.n_clusters)
            step_W, step_M = new_W - W, new_M - M
            model = at + np.vdot(step_W, slope_W) + np.vdot(step_M, slope_M)
            model += constant / 2 * (np.vdot(step_W, step_W) + np.vdot(step_M, step_M))
            reached, _ = value(new_W, new_M)
            if reached <= model * (1 + 1e-12):
                break
            constant *= 2.0
        if reached <= target:
            return True
        before, now = now, (new_W, new_M)
        last, momentum = momentum, (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
    return False


def _projected(M: Float, trace: float) -> Float:
    """Return the nearest matrix with eigenvalues between 0 and 1 and this trace."""
    values, vectors = np.linalg.eigh(M)
    low, high = values.min() - 1.0, values.max()
    for _ in range(60):
        middle = (low + high) / 2
        if np.clip(values - middle, 0.0, 1.0).sum() > trace:
            low = middle
        else:
            high = middle
    return (vectors * np.clip(values - high, 0.0, 1.0)) @ vectors.T
