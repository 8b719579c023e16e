"""The interface of solvers: parameters, solution, optimality residual."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from likeminds._util.array_types import Float
from likeminds.components import Component, total_weights
from likeminds.losses import QuadraticLoss

Parts = tuple[Float, ...]
# Called after each step with its number, the objective, the residual. True stops the solver.
Callback = Callable[[int, float, float], bool | None]


@dataclass(frozen=True)
class History:
    """Objective and residual of a solver, one entry per step."""

    objective: Float  # loss plus penalties, the start included; shape (n_steps + 1,)
    residual: Float  # relative optimality residual after each step, shape (n_steps,)


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
        Relative optimality residual: the length of a subgradient of the objective over
        that of the loss's gradient at zero. 0 at a critical point.
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


def zero_parts(loss: QuadraticLoss, components: Sequence[Component]) -> Parts:
    """Return parts of zeros."""
    return tuple(component.zeros(*loss.shape) for component in components)


def objective(
    loss: QuadraticLoss,
    components: Sequence[Component],
    parts: Parts,
    gradient: Float | None = None,
) -> float:
    """Return loss plus penalties; ``gradient`` is the loss's, by all users' weights."""
    penalties = (component.value(part) for component, part in zip(components, parts, strict=True))
    return loss.value(total_weights(parts, loss.shape[0]), gradient) + sum(penalties)


def optimality_residual(
    loss: QuadraticLoss,
    components: Sequence[Component],
    parts: Parts,
    gradient: Float | None = None,
) -> float:
    """Return the distance of zero to the objective's subdifferential, relative.

    Its unit is the length of the loss's gradient at zero. It depends neither on the number of users
    nor on the scale of the features.
    """
    if gradient is None:
        gradient = loss.gradient(total_weights(parts, loss.shape[0]))
    distances = [
        component.residual(part, component.collect(gradient))
        for component, part in zip(components, parts, strict=True)
    ]
    return float(np.linalg.norm(distances)) / gradient_scale(loss, components)


def gradient_scale(loss: QuadraticLoss, components: Sequence[Component]) -> float:
    """Return the length of the loss's gradient at zero: the unit of residuals."""
    lengths = [np.linalg.norm(component.collect(loss.linear)) for component in components]
    return float(np.linalg.norm(lengths)) or 1.0
