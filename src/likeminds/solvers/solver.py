"""The interface of solvers: parameters, solution, history."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from likeminds._util.array_types import Float
from likeminds.components import Component
from likeminds.losses import QuadraticLoss

Parts = tuple[Float, ...]
# Called after each step with its number, the objective, the residual. True stops the solver.
Callback = Callable[[int, float, float], bool | None]


def _nothing() -> Float:
    return np.empty(0)


@dataclass(frozen=True)
class History:
    """The history of a solver's steps; arrays that are not recorded are empty.

    The last three are the quantities of Theorem 2, from the paper's algorithm as printed.

    Attributes
    ----------
    objective : array of shape (n_steps + 1,)
        Loss plus penalties, the start included.
    residual : array of shape (n_steps,)
        The relative optimality residual after each step.
    squared_steps : array of shape (n_steps, n_components)
        The squared length of each step, by component.
    norms : array of shape (n_steps + 1, n_components)
        The norm of each part, the start included.
    step_constant : array of shape (n_steps,)
        The constant rho that the line search chose.
    curvature : array of shape (n_steps,)
        The smallest constant that passes the test (eta in the paper's proof).
    """

    objective: Float
    residual: Float
    squared_steps: Float = field(default_factory=_nothing)
    norms: Float = field(default_factory=_nothing)
    step_constant: Float = field(default_factory=_nothing)
    curvature: Float = field(default_factory=_nothing)


@dataclass(frozen=True)
class Solution:
    """The result of a solver.

    Attributes
    ----------
    parts : tuple of arrays
        One per component.
    objective : float
        Loss plus penalties.
    residual : float
        The relative optimality residual: the length of a subgradient of the objective over that of
        the loss's gradient at zero. It is 0 at a critical point.
    converged : bool
        Whether the residual fell to the tolerance.
    history : History
        Objective and residual by step.
    interrupted : bool
        Whether the user or a callback stopped it earlier.
    """

    parts: Parts
    objective: float
    residual: float
    converged: bool
    history: History
    interrupted: bool = False

    @property
    def n_iter(self) -> int:
        """Number of steps taken."""
        return len(self.history.residual)


class Solver(Protocol):
    """A minimiser of loss plus penalties."""

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
        """Start from the given parts (or from zero) and stop at the tolerance.

        A keyboard interrupt, or a callback that returns True, ends it early with the best
        solution so far.
        """
        ...
