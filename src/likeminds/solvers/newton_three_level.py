"""The default solver of the three-level model: Newton's method on a reduced problem.

Users' deviations and coordinates are eliminated exactly (`variable_projection`); the consensus and
the strong directions of the group level are found by a trust-region Newton method. The model is
not convex: a few steps are taken from each of several starts, and the best one is continued.

If the eigenvectors do not fit into ``memory``, a sample of the users is solved first. Its curvature
is used together with exact gradients over all users.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, islice
from typing import ClassVar

import numpy as np

from likeminds._util.array_types import Bool, Float, Index
from likeminds._util.map_reduce import Executor, SumTuple, ThreadExecutor, one_blas_thread
from likeminds.components import (
    Component,
    Consensus,
    Group,
    Personal,
    gradient_scale,
    objective,
    optimality_residual,
    top_directions,
    total_weights,
)
from likeminds.losses.quadratic import (
    LossBlock,
    QuadraticLoss,
    UserWeights,
    spectra_of_factors,
    spectra_of_matrices,
)
from likeminds.solvers.solver import Callback, History, Parts, Solution
from likeminds.solvers.trust_region import (
    Block,
    Iterate,
    ReducedProblem,
    TrustRegionResult,
    all_levels,
    evaluate,
    leading,
    minimise,
)
from likeminds.solvers.variable_projection import CachedBlock, Penalty, StreamedBlock, deviate

_TINY = 1e-300
# Lengths of the proximal-gradient path, and the size (users x features) of small problems.
_SHORT_PATH, _LONG_PATH, _SMALL = 10, 300, 1000
# Starts are compared at this residual, or after so many steps.
_RACE_TOL, _RACE_STEPS = 1e-2, 10
# For fewer bytes of eigenvectors, starting threads takes longer than the work.
_MIN_BYTES_FOR_THREADS = 1 << 24


@dataclass(frozen=True)
class EigenvectorSample:
    """The users with few labels whose eigenvectors are cached."""

    per_user: ClassVar[tuple[str, ...]] = ("chosen",)

    chosen: Bool  # shape (n_users,)
    multiplicity: float  # the number of users that each represents


@dataclass(frozen=True)
class Eigendecomposition:
    """All users, or a sample of them, with their eigenvectors: the input of the fast solver."""

    loss: QuadraticLoss
    users: Executor[CachedBlock]  # users with eigenvectors
    n_cached: int  # and their number
    rest: Executor[StreamedBlock] | None  # users without

    @classmethod
    def of(cls, loss: QuadraticLoss, memory: int) -> "Eigendecomposition":
        """Decompose as many of the users with few labels as fit into ``memory`` bytes."""
        found, n_rows, n_dense = zip(*loss.blocks.map(_few, None), strict=True)
        few, (n_users, n_features) = np.sort(np.concatenate(found)), loss.shape
        need = 8 * n_features * (sum(n_rows) + len(few))
        n_drawn = len(few) if need <= memory else max(1, int(len(few) * memory / need))
        chosen = np.zeros(n_users, dtype=bool)
        chosen[few[np.random.default_rng(0).permutation(len(few))[:n_drawn]]] = True
        sample = EigenvectorSample(chosen, len(few) / max(1, n_drawn))
        users, rest = loss.blocks.derive(_cached_blocks, sample), None
        if n_drawn < len(few):
            rest = loss.blocks.derive(_streamed_blocks, sample)
        return cls(loss, users, sum(n_dense) + n_drawn, rest)

    def problems(
        self, penalty: Penalty, unit: float = 1.0, accuracy: float = 1e-12
    ) -> tuple[ReducedProblem, ReducedProblem | None]:
        """Return the problem of all users, and that of the sample, if any."""
        cached = ReducedProblem(
            self.users, penalty, self.n_cached, *self.loss.shape, unit, accuracy
        )
        return (cached, None) if self.rest is None else (replace(cached, rest=self.rest), cached)


def _few(block: LossBlock, *_unused: None) -> tuple[Index, int, int]:
    """Return the users without matrices, the number of their rows, and that of other users."""
    rows = block.factors.rows
    return block.positions(rows.users), len(rows.index), len(block.dense_users)


def _cached_blocks(block: LossBlock, sample: EigenvectorSample) -> ThreadExecutor[CachedBlock]:
    """Decompose users with many labels, and the sample of the others."""
    rows = block.factors.rows
    drawn = rows.of(sample.chosen[block.positions(rows.users)])
    dense = spectra_of_matrices(block)
    few = spectra_of_factors(replace(block, factors=replace(block.factors, rows=drawn)))
    many = sum(part.basis.nbytes for part in dense + few) >= _MIN_BYTES_FOR_THREADS
    blocks = [CachedBlock(part) for part in dense]
    blocks += [CachedBlock(part, sample.multiplicity) for part in few]
    return ThreadExecutor(blocks, many_threads=many)


def _streamed_blocks(block: LossBlock, sample: EigenvectorSample) -> ThreadExecutor[StreamedBlock]:
    rows = block.factors.rows
    left = rows.of(~sample.chosen[block.positions(rows.users)])
    factors = replace(block.factors, rows=replace(left, users=block.positions(left.users)))
    return ThreadExecutor([StreamedBlock(factors, chosen) for chosen in left.plan()])


@dataclass(frozen=True)
class Descent:
    """The levels that a descent found, before its solution is evaluated on all rows."""

    parts: Parts
    steps: list[tuple[float, float]]  # objective and residual of each
    silencing: float  # the least penalty on the personal level with this solution, or infinity
    interrupted: bool


@dataclass(frozen=True)
class FastSolver:
    """Newton's method on the consensus and the strong directions of the group level.

    Parameters
    ----------
    n_starts : int
        The number of starts (at most 4). They are deterministic: the consensus of the ridge
        problem, a consensus of zero, and a few steps of proximal gradients (on small problems also
        many).
    memory : int
        The largest size, in bytes, of the eigenvectors of users with few labels.
    """

    n_starts: int = 4
    memory: int = 1 << 28

    def decompose(self, loss: QuadraticLoss) -> Eigendecomposition:
        """Return all users' eigenvectors, which serve for any penalties."""
        with one_blas_thread():
            return Eigendecomposition.of(loss, self.memory)

    def solve(
        self,
        loss: QuadraticLoss | Eigendecomposition,
        components: Sequence[Component],
        *,
        start: Parts | None = None,
        tol: float = 1e-5,
        max_iter: int = 1000,
        callback: Callback | None = None,
    ) -> Solution:
        """Find the three levels (see `Solver.solve`); other components raise TypeError.

        The result of `decompose` can replace the loss.
        """
        decomposition = self.decompose(loss) if isinstance(loss, QuadraticLoss) else loss
        loss = decomposition.loss
        found = self.descend(
            decomposition, components, start=start, tol=tol, max_iter=max_iter, callback=callback
        )
        with one_blas_thread():
            gradient = loss.gradient(total_weights(found.parts, loss.shape[0]))
            residual = optimality_residual(loss, components, found.parts, gradient)
            value = objective(loss, components, found.parts, gradient)
        objectives, residuals = np.array([*found.steps, (value, residual)]).T
        # Without a step, the first residual is not that of the start.
        history = History(objectives, residuals[min(1, len(found.steps)) :])
        return Solution(found.parts, value, residual, residual <= tol, history, found.interrupted)

    def descend(
        self,
        decomposition: Eigendecomposition,
        components: Sequence[Component],
        *,
        start: Parts | None = None,
        tol: float = 1e-5,
        max_iter: int = 1000,
        callback: Callback | None = None,
    ) -> Descent:
        """Find the three levels like `solve`, without passes over the rows."""
        consensus, group, personal = _three_levels(components)
        loss = decomposition.loss
        # The mean of |b_i|^2 is a lower bound of the size of A_i for the AUC loss.
        curvature = float(np.vdot(loss.linear, loss.linear)) / loss.shape[0] + _TINY
        penalty = Penalty.of(consensus, group, personal, curvature)
        unit = gradient_scale(loss, components)
        problem, sample = decomposition.problems(penalty, unit, accuracy=1e-4 * tol)
        constant, number = 0.5 * float(loss.constant.sum()), count(1)
        steps: list[tuple[float, float]] = []

        def watch(value: float, residual: float) -> bool:
            steps.append((value + constant, residual))
            return bool(callback and callback(next(number), *steps[-1]))

        descend = partial(minimise, tol=0.5 * tol, watch=watch, max_steps=max_iter)
        with one_blas_thread():
            if start is not None:
                found = TrustRegionResult(_point_at(problem, start))
            elif sample is None:
                found = self._race(problem, descend)
            else:
                found = self._race(sample, descend)
                found = found if found.interrupted else descend(sample, found.point)
                at, transform = found.point, np.eye(found.point.B.shape[1])
                at = evaluate(problem, at.theta, at.B, transform, at.block_fits)
                found = replace(found, point=at)
            steps.clear()
            found = found if found.interrupted else descend(problem, found.point)
            G, P, longest = all_levels(problem, found.point)
        silencing = 2.0 * penalty.weak * longest if longest <= penalty.threshold else np.inf
        return Descent((found.point.theta, G, P), steps, silencing, found.interrupted)

    def _race(
        self, problem: ReducedProblem, descend: Callable[..., TrustRegionResult]
    ) -> TrustRegionResult:
        """Take a few steps from every start, and return the descent with the lowest objective."""
        runs: list[TrustRegionResult] = []
        for point in islice(_starts(problem), self.n_starts):
            runs.append(descend(problem, point, tol=_RACE_TOL, max_steps=_RACE_STEPS))
            if runs[-1].interrupted:
                break
        best = min(runs, key=lambda run: run.point.value)
        return TrustRegionResult(best.point, runs[-1].interrupted)


def _three_levels(components: Sequence[Component]) -> tuple[Consensus, Group, Personal]:
    kinds = tuple(type(component) for component in components)
    if kinds != (Consensus, Group, Personal):
        names = ", ".join(kind.__name__ for kind in kinds)
        raise TypeError(
            f"The fast solver handles Consensus, Group, Personal, in this order, not {names}. "
            'Use solver="paper", which takes any components.'
        )
    return tuple(components)  # type: ignore[return-value]


def _point_at(problem: ReducedProblem, parts: Parts) -> Iterate:
    """Return the point nearest to given levels."""
    theta, G, _ = parts
    B = top_directions(G, problem.penalty.n_groups)
    executors = problem.executors((None, None))
    rows = [users.map_reduce(_take_rows, UserWeights(G), start=0)[1] for users, _ in executors]
    return evaluate(problem, theta, B, B, (rows[0], rows[-1]))


def _take_rows(block: Block, state: UserWeights, *_unused: None) -> tuple[int, Float]:
    return 0, state.W[block.users]


def _ridge_consensus(problem: ReducedProblem) -> Float:
    """Return the best theta without groups, for deviations below the threshold."""
    d = problem.n_features
    start = SumTuple(np.zeros((d, d)), np.zeros(d))
    (matrix, right), _ = problem.users.map_reduce(_ridge_system, problem.penalty, start=start)
    lift = 2.0 * problem.penalty.ridge + 1e-13 * np.trace(matrix) / d + _TINY
    return np.asarray(np.linalg.solve(matrix + lift * np.eye(d), right), dtype=np.float64)


def _ridge_system(block: CachedBlock, penalty: Penalty, *_unused: None) -> tuple[SumTuple, None]:
    part, weight = block.spectrum, block.multiplicity
    share = 2.0 * penalty.weak / (part.curvature + 2.0 * penalty.weak)
    matrix = weight * part.weighted_sum(share * part.curvature)
    return SumTuple(matrix, weight * part.back(share * part.slope).sum(axis=0)), None


def _spectral_start(problem: ReducedProblem, theta: Float) -> Iterate:
    """Take the leading directions of the deviations from theta."""
    state = (problem.penalty, theta)
    B = leading(replace(problem, rest=None), _consensus_deviations, state, (None, None))
    return evaluate(problem, theta, B)


def _consensus_deviations(
    block: CachedBlock, state: tuple[Penalty, Float], *_unused: None
) -> Float:
    (penalty, theta), part = state, block.spectrum
    return part.back(deviate(part.curvature, part.slope, part.into(theta), penalty).v)


def _starts(problem: ReducedProblem) -> Iterator[Iterate]:
    """Yield one start or, with groups, several: there may be several minima."""
    yield _spectral_start(problem, _ridge_consensus(problem))
    if problem.penalty.n_groups:
        yield _spectral_start(problem, np.zeros(problem.n_features))
        yield from _threshold_starts(problem)


@dataclass(frozen=True)
class _ProximalStep:
    """A proximal-gradient step on theta and H = C B': the state of a pass."""

    penalty: Penalty
    theta: Float
    B: Float
    length: float

    @property
    def transform(self) -> Float:
        """The map of rows of H, before the prox, to coordinates."""
        return self.B / (1.0 + 2.0 * self.penalty.strong * self.length)


def _threshold_starts(problem: ReducedProblem) -> Iterator[Iterate]:
    """Take a few proximal-gradient steps on theta and H, and many on small problems."""
    is_small = problem.n_users * problem.n_features <= _SMALL
    penalty, in_memory = problem.penalty, replace(problem, rest=None)
    largest, total = zip(*problem.users.map(_curvature_bounds, penalty), strict=True)
    length, of_theta = 0.5 / (max(largest) + _TINY), 0.5 / (sum(total) + _TINY)
    at = _ProximalStep(
        penalty, np.zeros(problem.n_features), np.zeros((problem.n_features, 0)), length
    )
    rows = None
    for step_number in range(_LONG_PATH if is_small else _SHORT_PATH):
        zeros = np.zeros(problem.n_features)
        gradient, rows = problem.users.map_reduce(_gradient_step, at, rows, start=zeros)
        theta = (at.theta - of_theta * gradient) / (1.0 + 2.0 * penalty.ridge * of_theta)
        at = replace(at, theta=theta, B=leading(in_memory, _block_rows, None, (rows, None)))
        if step_number + 1 in (_SHORT_PATH, _LONG_PATH):
            yield evaluate(problem, theta, at.B, at.transform, (rows, None))


def _curvature_bounds(block: CachedBlock, penalty: Penalty, *_unused: None) -> tuple[float, float]:
    """Return the maximum and the sum of the largest curvatures of a block's users."""
    curvature = block.spectrum.curvature
    largest = (2.0 * penalty.weak * curvature / (curvature + 2.0 * penalty.weak)).max(axis=1)
    return float(largest.max()), block.multiplicity * float(largest.sum())


def _gradient_step(
    block: CachedBlock, at: _ProximalStep, previous: Float | None
) -> tuple[Float, Float]:
    """Return the gradient by theta, and H after a gradient step, before the prox."""
    part = block.spectrum
    H = np.zeros((len(block.users), len(at.theta)))
    if previous is not None:
        H = previous @ at.transform @ at.B.T
    deviations = deviate(part.curvature, part.slope, part.into(at.theta + H), at.penalty)
    gradient = part.back(deviations.gradient)
    return block.multiplicity * gradient.sum(axis=0), H - at.length * gradient


def _block_rows(block: CachedBlock, state: None, previous: Float) -> Float:  # noqa: ARG001
    return previous
