"""Accelerated proximal gradient for any list of components (Beck and Teboulle, 2009).

The loss is quadratic, so the gradient at an extrapolated point is the extrapolated gradient,
and the test of the line search is one inner product: a step costs one product of everybody's
curvature with everybody's weights, and one prox per component. Three things make it fast and
safe:

* each component has a step of its own: a vector that all people share meets the sum of their
  curvatures, a matrix with a row for each meets one at a time;
* the step grows again where the line search left it shorter than needed;
* momentum is reset when it is no descent direction, and a step that raises the objective is
  undone and repeated without momentum, which never raises it, convex or not.

Components with a ``stage`` (see `CappedLowRank.stage`) are minimised in stages, each from the
solution of the one before, until the stage no longer changes.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from likeminds._util.array_types import Float
from likeminds._util.threads import one_blas_thread
from likeminds.components import Component, Staged, total_weights
from likeminds.losses import QuadraticLoss
from likeminds.solvers.solver import (
    Callback,
    History,
    Parts,
    Solution,
    gradient_scale,
    objective,
    zero_parts,
)

# How much the step shrinks where the quadratic model was not above the loss, and how much it
# grows where there was room.
_SHRINK, _GROW = 2.0, 0.8
# Enough to know the largest curvature within a few per cent; the line search does the rest.
_POWER_STEPS = 10
# Two objectives closer than this are the same: what is left is rounding.
_ROUNDING = 1e-13


@dataclass(frozen=True)
class AcceleratedSolver:
    """Minimise a loss plus the penalties of any components.

    Parameters
    ----------
    memory : int
        Bytes for the rows of people with few labels; where they need more, they are made anew
        at every step.

    Examples
    --------
    >>> from likeminds import Annotations, Statistics
    >>> from likeminds.components import LowRank, Personal
    >>> from likeminds.losses import LeastSquares
    >>> said = Annotations(
    ...     users=["ann"] * 3, items=None, labels=[0, 0, 1], features=[[1.0], [1.0], [4.0]]
    ... )
    >>> loss = LeastSquares().of(Statistics.from_annotations(said))
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
        path = _Path(loss.keep(self.memory), components, parts)
        with one_blas_thread(), suppress(KeyboardInterrupt):
            path.measure_curvature()
            path.interrupted = False
            stage = path.next_stage()
            while path.n_steps < max_iter and not path.interrupted:
                path.interrupted = True  # unless the step is completed
                path.step(stage)
                done = path.residual <= tol
                told = callback and callback(path.n_steps, path.objectives[-1], path.residual)
                path.interrupted = bool(told)
                if done:
                    former, stage = stage, path.next_stage()
                    if stage == former:
                        break
        return path.solution(tol)


@dataclass
class _Path:
    """The current and the previous iterate, with the gradients at both."""

    loss: QuadraticLoss
    components: Sequence[Component]
    parts: Parts
    objectives: list[float] = field(default_factory=list)
    residuals: list[float] = field(default_factory=list)
    interrupted: bool = True
    momentum: float = 1.0

    def __post_init__(self) -> None:
        self.gradient = self.loss.gradient(total_weights(self.parts, self.loss.shape[0]))
        self.unit = gradient_scale(self.loss, self.components)
        self.former, self.former_gradient = self.parts, self.gradient
        self.value = self._objective(self.components, self.parts, self.gradient)
        self._record(self.components)

    @property
    def n_steps(self) -> int:
        return len(self.residuals)

    @property
    def residual(self) -> float:
        return self.residuals[-1] if self.residuals else np.inf

    def measure_curvature(self) -> None:
        """Find the largest curvature that each component meets, by power iteration."""
        known: dict[tuple[int, ...], float] = {}
        for part, component in zip(self.parts, self.components, strict=True):
            if part.shape not in known:
                known[part.shape] = self._largest_curvature(component, part)
        largest = max(known.values())
        self.constant = largest
        self.relative = [known[part.shape] / largest for part in self.parts]

    def next_stage(self) -> list[Component]:
        """Return the components to minimise next, and reset the momentum."""
        self.momentum, self.former, self.former_gradient = 1.0, self.parts, self.gradient
        pairs = zip(self.components, self.parts, strict=True)
        stage = [c.stage(part) if isinstance(c, Staged) else c for c, part in pairs]
        self.value = self._objective(stage, self.parts, self.gradient)
        return stage

    def step(self, stage: Sequence[Component]) -> None:
        """Take a step with momentum, or one without where that raises the objective."""
        following = (1.0 + np.sqrt(1.0 + 4.0 * self.momentum**2)) / 2.0
        trial = self._line_search(stage, (self.momentum - 1.0) / following)
        value = self._objective(stage, trial.parts, trial.gradient)
        if value > self.value * (1.0 + _ROUNDING) and self.momentum > 1.0:
            following = 1.0
            trial = self._line_search(stage, 0.0)
            value = self._objective(stage, trial.parts, trial.gradient)
        onwards = trial.goes_on_from(self.parts)
        self.former, self.former_gradient = self.parts, self.gradient
        self.parts, self.gradient = trial.parts, trial.gradient
        self.momentum = following if onwards else 1.0
        self.value = value
        self._record(stage)
        self.residuals.append(trial.subgradient / self.unit)

    def solution(self, tol: float) -> Solution:
        history = History(np.array(self.objectives), np.array(self.residuals))
        converged = self.residual <= tol
        return Solution(
            self.parts, self.objectives[-1], self.residual, converged, history, self.interrupted
        )

    def _objective(self, stage: Sequence[Component], parts: Parts, gradient: Float) -> float:
        return objective(self.loss, stage, parts, gradient)

    def _record(self, stage: Sequence[Component]) -> None:
        """Record the objective, which is not what a stage minimises."""
        same = list(stage) == list(self.components)
        value = self.value if same else self._objective(self.components, self.parts, self.gradient)
        self.objectives.append(value)

    def _largest_curvature(self, component: Component, part: Float) -> float:
        vector = np.random.default_rng(0).standard_normal(part.shape)
        size = float(np.linalg.norm(vector))
        for _ in range(_POWER_STEPS):
            everybody = total_weights([vector / size], self.loss.shape[0])
            vector = component.collect(self.loss.apply(everybody))
            size = float(np.linalg.norm(vector)) or 1.0
        return size

    def _line_search(self, stage: Sequence[Component], beta: float) -> "_Trial":
        """Step from the point extrapolated by ``beta``; backtrack until the step is safe."""
        at = [x + beta * (x - y) for x, y in zip(self.parts, self.former, strict=True)]
        gradient = self.gradient + beta * (self.gradient - self.former_gradient)
        slopes = [component.collect(gradient) for component in stage]
        while True:
            steps = [1.0 / (self.constant * relative) for relative in self.relative]
            pieces = zip(stage, at, slopes, steps, strict=True)
            parts = tuple(c.prox(x - step * slope, step) for c, x, slope, step in pieces)
            moves = [new - old for new, old in zip(parts, at, strict=True)]
            change = self.loss.apply(total_weights(moves, self.loss.shape[0]))
            changes = [component.collect(change) for component in stage]
            trial = _Trial(parts, gradient + change, moves, changes, steps)
            # A step of length zero is a critical point: no constant would change it.
            if trial.bend <= trial.room or trial.room == 0.0:
                break
            self.constant *= _SHRINK
        if trial.bend < _GROW * trial.room:
            self.constant *= _GROW
        return trial


@dataclass(frozen=True)
class _Trial:
    """A step: its end, the gradient there, and by component the changes of part and gradient."""

    parts: Parts
    gradient: Float
    moves: list[Float]
    changes: list[Float]
    steps: list[float]

    @property
    def bend(self) -> float:
        """The loss's curvature along the step."""
        return _inner(self.moves, self.changes)

    @property
    def room(self) -> float:
        """The curvature of the model that should lie above the loss."""
        return _inner(self.moves, self._pulls)

    @property
    def subgradient(self) -> float:
        """The length of the subgradient that the step provides where it ends."""
        pairs = zip(self.changes, self._pulls, strict=True)
        pieces = [change - pull for change, pull in pairs]
        return float(np.sqrt(_inner(pieces, pieces)))

    def goes_on_from(self, parts: Parts) -> bool:
        """Say whether the move from ``parts`` has no negative inner product with the prox step."""
        way = [new - old for new, old in zip(self.parts, parts, strict=True)]
        return _inner(self._pulls, way) >= 0

    @property
    def _pulls(self) -> list[Float]:
        return [move / step for move, step in zip(self.moves, self.steps, strict=True)]


def _inner(first: Sequence[Float], second: Sequence[Float]) -> float:
    return sum(float(np.vdot(x, y)) for x, y in zip(first, second, strict=True))
