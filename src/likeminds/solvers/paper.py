"""Algorithms 1 and 2 of the paper: proximal gradient with one step size for all levels.

In the paper's symbols: rho_k is ``step_constant``, alpha is ``factor``, the reference point
is the last iterate. Implemented literally, as the reference that other solvers are measured
against; two remarks on what the paper leaves open.

* The test of the line search compares loss values that agree in all but the last digits
  near the solution. The loss is quadratic, so the same inequality is tested here as
  sum_i D_i' A_i D_i < rho |D|^2, which holds or fails without rounding.
* "Not converged" is read as: the subgradient that the step itself provides,
  grad L(new) - grad L(old) - rho D, is still longer than the tolerance.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from likeminds._util.array_types import Float
from likeminds._util.threads import one_blas_thread
from likeminds.components import Component, total_weights
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


@dataclass(frozen=True)
class PaperHistory(History):
    """The quantities of Theorem 2, one entry per step.

    Attributes
    ----------
    objective, residual
        As in `History`.
    squared_steps : array of shape (n_steps, n_components)
        Squared length of each step, by component.
    step_constant : array of shape (n_steps,)
        The constant rho that the line search settled on.
    curvature : array of shape (n_steps,)
        The smallest constant that would have passed (eta in the paper's proof).
    """

    squared_steps: Float
    step_constant: Float
    curvature: Float


@dataclass(frozen=True)
class PaperSolver:
    """The published algorithm: proximal gradient with backtracking.

    Parameters
    ----------
    rho : float
        Where the line search begins (rho_0 > 0).
    factor : float
        What the line search multiplies rho by until the step is safe (alpha > 1).

    Examples
    --------
    >>> from likeminds import Annotations, Statistics
    >>> from likeminds.components import Consensus
    >>> from likeminds.losses import SquaredAUC
    >>> said = Annotations(
    ...     users=["ann"] * 3, items=None, labels=[0, 0, 1], features=[[1.0], [2.0], [4.0]]
    ... )
    >>> loss = SquaredAUC().of(Statistics.from_annotations(said))
    >>> solution = PaperSolver().solve(loss, [Consensus(alpha=0.1)])
    >>> round(float(solution.parts[0][0]), 4)  # 2.5 / (6.5 + 0.2)
    0.3731
    """

    rho: float = 1.0
    factor: float = 2.0

    def __post_init__(self) -> None:
        if not self.rho > 0:
            raise ValueError(f"rho must be larger than 0, but is {self.rho}.")
        if not self.factor > 1:
            raise ValueError(f"factor must be larger than 1, but is {self.factor}.")

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
        """Run Algorithm 2 (see `Solver.solve`)."""
        parts = zero_parts(loss, components) if start is None else start
        gradient = loss.gradient(total_weights(parts, loss.shape[0]))
        unit = gradient_scale(loss, components)
        objectives = [objective(loss, components, parts, gradient)]
        steps: list[_Step] = []
        residual, rho, interrupted = np.inf, self.rho, False
        with one_blas_thread(), suppress(KeyboardInterrupt):
            while residual > tol and len(steps) < max_iter and not interrupted:
                interrupted = True  # unless the step is completed
                parts, change, step = self._line_search(loss, components, parts, gradient, rho)
                gradient = gradient + change
                rho, residual = step.rho, step.subgradient / unit
                steps.append(step)
                objectives.append(objective(loss, components, parts, gradient))
                interrupted = bool(callback and callback(len(steps), objectives[-1], residual))
        history = PaperHistory(
            objective=np.array(objectives),
            residual=np.array([step.subgradient for step in steps]) / unit,
            squared_steps=np.array([step.squares for step in steps]),
            step_constant=np.array([step.rho for step in steps]),
            curvature=np.array([step.curvature for step in steps]),
        )
        converged = residual <= tol
        return Solution(parts, objectives[-1], residual, converged, history, interrupted)

    def _line_search(
        self,
        loss: QuadraticLoss,
        components: Sequence[Component],
        parts: Parts,
        gradient: Float,
        rho: float,
    ) -> tuple[Parts, Float, "_Step"]:
        """Run Algorithm 1: enlarge rho until the quadratic model lies above the loss.

        Returns the new parts, the change of the gradient, and the figures of the step.
        """
        slopes = [component.collect(gradient) for component in components]
        while True:
            moved = tuple(
                component.prox(part - slope / rho, 1.0 / rho)
                for component, part, slope in zip(components, parts, slopes, strict=True)
            )
            moves = [new - old for new, old in zip(moved, parts, strict=True)]
            direction = total_weights(moves, loss.shape[0])
            change = loss.apply(direction)
            squares = np.array([np.vdot(move, move) for move in moves])
            bend = float(np.vdot(direction, change))
            # A step of length zero is a critical point: no rho would pass the strict test.
            if bend < rho * squares.sum() or not squares.any():
                break
            rho *= self.factor
        subgradient = [
            component.collect(change) - rho * move
            for component, move in zip(components, moves, strict=True)
        ]
        length = float(np.linalg.norm([np.linalg.norm(piece) for piece in subgradient]))
        curvature = bend / squares.sum() if squares.any() else 0.0
        return moved, change, _Step(rho, squares, curvature, length)


@dataclass(frozen=True)
class _Step:
    rho: float
    squares: Float
    curvature: float
    subgradient: float
