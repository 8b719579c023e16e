"""Proximal gradient for any list of components: the authors' two algorithms, and our own.

The loss is quadratic, so the gradient at an extrapolated point is the extrapolated gradient. The
test of a line search is one inner product without cancellation: a step costs one product of all
curvatures with all weights, and one prox per component.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from likeminds._util.array_types import Float
from likeminds._util.map_reduce import one_blas_thread
from likeminds.components import (
    Component,
    Spectral,
    Staged,
    gradient_scale,
    objective,
    total_weights,
    zero_parts,
)
from likeminds.losses import QuadraticLoss
from likeminds.solvers.solver import Callback, History, Parts, Solution

# Factors of the step constant after a step that was not majorised, and after a short one.
_SHRINK, _GROW = 2.0, 0.8
# The largest curvature is then accurate to a few per cent; the line search corrects it.
_POWER_STEPS = 10
# Relative differences of objectives below this are rounding errors.
_ROUNDING = 1e-13


@dataclass(frozen=True)
class _Step:
    """A step: its end, the gradient there, and by component the changes of part and gradient."""

    parts: Parts
    gradient: Float
    moves: list[Float]
    changes: list[Float]
    scaled_moves: list[Float]  # moves divided by step lengths
    sigmas: list[Float | None]  # singular values of the parts, where they are known

    def objective(self, loss: QuadraticLoss, components: Sequence[Component]) -> float:
        """Return loss plus penalties at the end."""
        total = loss.value(total_weights(self.parts, loss.shape[0]), self.gradient)
        for component, part, sigma in zip(components, self.parts, self.sigmas, strict=True):
            if sigma is not None and isinstance(component, Spectral):
                total += component.value_at(sigma)
            else:
                total += component.value(part)
        return total

    @property
    def curvature(self) -> float:
        """The loss's curvature along the step."""
        return _inner(self.moves, self.changes)

    @property
    def bound(self) -> float:
        """The curvature of the model that must majorise the loss."""
        return _inner(self.moves, self.scaled_moves)

    @property
    def subgradient(self) -> float:
        """The length of the subgradient that the step provides at its end."""
        pieces = [
            change - scaled for change, scaled in zip(self.changes, self.scaled_moves, strict=True)
        ]
        return float(np.sqrt(_inner(pieces, pieces)))


def _take_step(
    loss: QuadraticLoss,
    components: Sequence[Component],
    at: Sequence[Float],
    gradient: Float,
    steps: Sequence[float],
) -> _Step:
    """Take a proximal gradient step, of a length for each component."""
    pieces = zip(components, at, steps, strict=True)
    found = [_prox(c, x - step * c.collect(gradient), step) for c, x, step in pieces]
    parts = tuple(part for part, _ in found)
    moves = [new - old for new, old in zip(parts, at, strict=True)]
    change = loss.apply(total_weights(moves, loss.shape[0]))
    changes = [component.collect(change) for component in components]
    scaled_moves = [move / step for move, step in zip(moves, steps, strict=True)]
    sigmas = [sigma for _, sigma in found]
    return _Step(parts, gradient + change, moves, changes, scaled_moves, sigmas)


def _prox(component: Component, point: Float, step: float) -> tuple[Float, Float | None]:
    """Return the prox, and its singular values if they are known."""
    if isinstance(component, Spectral):
        return component.spectral_prox(point, step)
    return component.prox(point, step), None


def _momentum_after(weight: float) -> float:
    """Return the next number of Nesterov's sequence."""
    return (1.0 + float(np.sqrt(1.0 + 4.0 * weight**2))) / 2.0


def _extrapolate(now: Sequence[Float], former: Sequence[Float], beta: float) -> list[Float]:
    return [x + beta * (x - y) for x, y in zip(now, former, strict=True)]


def _squared_lengths(now: Sequence[Float], former: Sequence[Float]) -> list[float]:
    moved = [new - old for new, old in zip(now, former, strict=True)]
    return [float(np.vdot(move, move)) for move in moved]


def _norms(parts: Sequence[Float]) -> list[float]:
    return [float(np.linalg.norm(part)) for part in parts]


def _inner(first: Sequence[Float], second: Sequence[Float]) -> float:
    return sum(float(np.vdot(x, y)) for x, y in zip(first, second, strict=True))


@dataclass(frozen=True)
class PaperSolver:
    """The authors' algorithms: proximal gradient with one step size for all levels.

    The defaults are Algorithms 1 and 2 as printed, whose reference point is the last iterate.
    `AUTHORS_PROGRAM` has the settings of the program that the authors published.

    Parameters
    ----------
    rho : float
        The start of the line search (rho_0 > 0).
    factor : float
        The factor of rho in the line search until the step is safe (alpha > 1).
    momentum : bool
        Extrapolate each reference point from the last two iterates (Nesterov). The objective can
        then increase, and Theorem 2 does not apply.
    criterion : {"residual", "change"}
        The quantity to compare with ``tol``: the optimality residual, or the relative change of the
        objective in the step before the last. The paper does not define the criterion.

    Examples
    --------
    >>> from likeminds import Annotations, Statistics
    >>> from likeminds.components import Consensus
    >>> from likeminds.losses import SquaredAUC
    >>> annotations = Annotations(
    ...     users=["ann"] * 3, items=None, labels=[0, 0, 1], features=[[1.0], [2.0], [4.0]]
    ... )
    >>> loss = SquaredAUC().of(Statistics.from_annotations(annotations))
    >>> solution = PaperSolver().solve(loss, [Consensus(alpha=0.1)])
    >>> round(float(solution.parts[0][0]), 4)  # 2.5 / (6.5 + 0.2)
    0.3731
    """

    rho: float = 1.0
    factor: float = 2.0
    momentum: bool = False
    criterion: Literal["residual", "change"] = "residual"

    def __post_init__(self) -> None:
        if not self.rho > 0:
            raise ValueError(f"rho must be larger than 0, but is {self.rho}.")
        if not self.factor > 1:
            raise ValueError(f"factor must be larger than 1, but is {self.factor}.")
        if self.criterion not in ("residual", "change"):
            message = f'criterion must be "residual" or "change", but is {self.criterion!r}.'
            raise ValueError(message)

    def solve(
        self,
        loss: QuadraticLoss,
        components: Sequence[Component],
        *,
        start: Parts | None = None,
        tol: float = 1e-5,
        max_iter: int = 1000,
        callback: Callback | None = None,
    ) -> Solution:
        """Run Algorithm 2, with the line search of Algorithm 1 (see `Solver.solve`)."""
        path = _Path(loss, components, zero_parts(loss, components) if start is None else start)
        if self.momentum:
            path.momentum = 0.0  # the first two steps have no momentum
        norms, measured, rho = [_norms(path.parts)], np.inf, self.rho
        constants: list[float] = []
        curvatures: list[float] = []
        with one_blas_thread(), suppress(KeyboardInterrupt):
            path.interrupted = False
            while measured > tol and len(path.residuals) < max_iter and not path.interrupted:
                path.interrupted = True  # unless the step is completed
                following = _momentum_after(path.momentum) if self.momentum else 1.0
                at = path.extrapolated((path.momentum - 1.0) / following)
                step = _take_step(loss, components, *at, [1.0 / rho] * len(path.parts))
                # At a critical point, the step has length zero, and no rho passes the test.
                while step.curvature >= step.bound > 0:
                    rho *= self.factor
                    step = _take_step(loss, components, *at, [1.0 / rho] * len(path.parts))
                change = _change(path.objectives)
                path.advance(step, step.objective(loss, components))
                path.momentum = following
                norms.append(_norms(path.parts))
                constants.append(rho)
                curvatures.append(step.curvature / (_inner(step.moves, step.moves) or 1.0))
                measured = path.residual if self.criterion == "residual" else change
                path.interrupted = path.asks_to_stop(callback)
        theorem = () if self.momentum else tuple(map(np.array, (norms, constants, curvatures)))
        return path.solution(measured <= tol, *theorem)


# The program that the paper's authors published: not monotone, and stopped by the objective.
AUTHORS_PROGRAM = PaperSolver(momentum=True, criterion="change")


def _change(objectives: Sequence[float]) -> float:
    """Return the relative change of the objective in the last step."""
    if len(objectives) < 2 or not objectives[-2]:
        return np.inf
    return abs(objectives[-1] - objectives[-2]) / abs(objectives[-2])


@dataclass(frozen=True)
class AcceleratedSolver:
    """Minimise a loss plus the penalties of any components (Beck and Teboulle, 2009).

    Each component has its own step size: the curvature of a vector shared by all users is the sum
    of theirs. The step grows again after a line search that left it too short. Momentum is reset if
    it is not a descent direction. A step that increases the objective is repeated without momentum;
    then it cannot increase.

    Components with stages (see `CappedLowRank.stage`) are minimised stage by stage, each from the
    solution of the one before, until the stage no longer changes.

    Parameters
    ----------
    memory : int
        The size, in bytes, of the cache for rows of users with few labels; larger ones are computed
        again in every step.

    Examples
    --------
    >>> from likeminds import Annotations, Statistics
    >>> from likeminds.components import LowRank, Personal
    >>> from likeminds.losses import LeastSquares
    >>> annotations = Annotations(
    ...     users=["ann"] * 3, items=None, labels=[0, 0, 1], features=[[1.0], [1.0], [4.0]]
    ... )
    >>> loss = LeastSquares().of(Statistics.from_annotations(annotations))
    >>> solution = AcceleratedSolver().solve(loss, [LowRank(0.2), Personal(0.3)], tol=1e-9)
    >>> [round(float(part[0, 0]), 4) for part in solution.parts]  # (4/3 - 0.2) / 2
    [0.5667, 0.0]
    """

    memory: int = 1 << 29

    def solve(
        self,
        loss: QuadraticLoss,
        components: Sequence[Component],
        *,
        start: Parts | None = None,
        tol: float = 1e-5,
        max_iter: int = 1000,
        callback: Callback | None = None,
    ) -> Solution:
        """Run until the residual falls to the tolerance (see `Solver.solve`)."""
        parts = zero_parts(loss, components) if start is None else start
        path = _Path(loss.cache(self.memory), components, parts)
        with one_blas_thread(), suppress(KeyboardInterrupt):
            path.measure_curvature()
            path.interrupted = False
            stage = path.next_stage()
            while len(path.residuals) < max_iter and not path.interrupted:
                path.interrupted = True  # unless the step is completed
                path.step(stage)
                path.interrupted = path.asks_to_stop(callback)
                if path.residual <= tol:
                    former, stage = stage, path.next_stage()
                    if stage == former:
                        break
        return path.solution(path.residual <= tol)


@dataclass
class _Path:
    """The current and the previous iterate, with the gradients at both."""

    loss: QuadraticLoss
    components: Sequence[Component]
    parts: Parts
    objectives: list[float] = field(default_factory=list)
    residuals: list[float] = field(default_factory=list)
    squares: list[list[float]] = field(default_factory=list)
    interrupted: bool = True
    momentum: float = 1.0

    def __post_init__(self) -> None:
        self.gradient = self.loss.gradient(total_weights(self.parts, self.loss.shape[0]))
        self.unit = gradient_scale(self.loss, self.components)
        self.former, self.former_gradient = self.parts, self.gradient
        self.value = objective(self.loss, self.components, self.parts, self.gradient)
        self.objectives.append(self.value)

    @property
    def residual(self) -> float:
        return self.residuals[-1] if self.residuals else np.inf

    def asks_to_stop(self, callback: Callback | None) -> bool:
        step = (len(self.residuals), self.objectives[-1], self.residual)
        return bool(callback and callback(*step))

    def solution(self, converged: bool, *theorem: Float) -> Solution:
        """Return the last iterate; ``theorem`` are the quantities of Theorem 2."""
        steps = tuple(map(np.array, (self.objectives, self.residuals, self.squares)))
        history = History(*steps, *theorem)
        value = self.objectives[-1]
        return Solution(self.parts, value, self.residual, converged, history, self.interrupted)

    def extrapolated(self, beta: float) -> tuple[list[Float], Float]:
        """Return the point extrapolated by ``beta``, and the gradient there."""
        (gradient,) = _extrapolate([self.gradient], [self.former_gradient], beta)
        return _extrapolate(self.parts, self.former, beta), gradient

    def advance(self, step: _Step, value: float, recorded: float | None = None) -> None:
        """Move to the end of a step; record its objective, which may differ from a stage's."""
        self.former, self.former_gradient = self.parts, self.gradient
        self.parts, self.gradient, self.value = step.parts, step.gradient, value
        self.objectives.append(value if recorded is None else recorded)
        self.squares.append(_squared_lengths(self.parts, self.former))
        self.residuals.append(step.subgradient / self.unit)

    def measure_curvature(self) -> None:
        """Find the largest curvature that each component meets, by power iteration."""
        known: dict[tuple[int, ...], float] = {}
        for part, component in zip(self.parts, self.components, strict=True):
            if part.shape not in known:
                known[part.shape] = self._largest_curvature(component, part)
        self.constant = max(known.values())
        self.relative = [known[part.shape] / self.constant for part in self.parts]

    def next_stage(self) -> list[Component]:
        """Return the components to minimise next, and reset the momentum."""
        self.momentum, self.former, self.former_gradient = 1.0, self.parts, self.gradient
        pairs = zip(self.components, self.parts, strict=True)
        stage = [c.stage(part) if isinstance(c, Staged) else c for c, part in pairs]
        self.value = objective(self.loss, stage, self.parts, self.gradient)
        return stage

    def step(self, stage: Sequence[Component]) -> None:
        """Take a step with momentum, or one without if that raises the objective."""
        following = _momentum_after(self.momentum)
        step = self._line_search(stage, (self.momentum - 1.0) / following)
        value = step.objective(self.loss, stage)
        if value > self.value * (1.0 + _ROUNDING) and self.momentum > 1.0:
            following = 1.0
            step = self._line_search(stage, 0.0)
            value = step.objective(self.loss, stage)
        moved = [new - old for new, old in zip(step.parts, self.parts, strict=True)]
        self.momentum = following if _inner(step.scaled_moves, moved) >= 0 else 1.0
        same = list(stage) == list(self.components)
        whole = None if same else step.objective(self.loss, self.components)
        self.advance(step, value, whole)

    def _largest_curvature(self, component: Component, part: Float) -> float:
        vector = np.random.default_rng(0).standard_normal(part.shape)
        size = float(np.linalg.norm(vector))
        for _ in range(_POWER_STEPS):
            weights = total_weights([vector / size], self.loss.shape[0])
            vector = component.collect(self.loss.apply(weights))
            size = float(np.linalg.norm(vector)) or 1.0
        return size

    def _line_search(self, stage: Sequence[Component], beta: float) -> _Step:
        """Step from the point extrapolated by ``beta``; backtrack until the step is safe."""
        at = self.extrapolated(beta)
        while True:
            steps = [1.0 / (self.constant * relative) for relative in self.relative]
            step = _take_step(self.loss, stage, *at, steps)
            # A step of length zero is a critical point, whatever the constant.
            if step.curvature <= step.bound or step.bound == 0.0:
                break
            self.constant *= _SHRINK
        if step.curvature < _GROW * step.bound:
            self.constant *= _GROW
        return step
