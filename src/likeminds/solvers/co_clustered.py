"""Newton's method for two components: near the mean, and a group level (COMT).

The weights are P + Q, with the penalties alpha_mean |P_i - mean of P|^2 and alpha_group on the weak
directions of Q. Let theta be the mean, H the strong directions, and E the rest. The two penalties
are least if P = theta + s E and Q = H + (1 - s) E, with s = alpha_group / (alpha_mean +
alpha_group). Their sum is then s alpha_mean |E|^2. This is the three-level model without a ridge on
the consensus and without a personal level.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from likeminds._util.map_reduce import one_blas_thread
from likeminds.components import (
    Component,
    Consensus,
    Group,
    MeanRegularised,
    Personal,
    gradient_scale,
    objective,
    optimality_residual,
    top_directions,
)
from likeminds.losses import QuadraticLoss
from likeminds.solvers.newton_three_level import Eigendecomposition, FastSolver
from likeminds.solvers.solver import Callback, Parts, Solution

# Theta is unique only up to the strong directions: a ridge of this share of |b|^2 keeps it small.
_HARDLY = 1e-9
# With this penalty the personal level is zero.
_PROHIBITIVE = 1e100


@dataclass(frozen=True)
class CoClusteredSolver:
    """Minimise a loss plus `MeanRegularised` and `Group`, as an equivalent three-level model.

    Parameters
    ----------
    users : Eigendecomposition, optional
        The loss's eigenvectors, from `FastSolver.decompose`, if they serve for several fits.
    n_starts : int
        As in `FastSolver`.
    """

    users: Eigendecomposition | None = None
    n_starts: int = 4

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
        """Find the two parts (see `Solver.solve`); other components raise TypeError."""
        mean, group = components
        if not (isinstance(mean, MeanRegularised) and isinstance(group, Group)) or group.shrinkage:
            raise TypeError(
                "This solver handles MeanRegularised and Group without shrinkage, not "
                f"{mean!r} and {group!r}. Use AcceleratedSolver, which takes any components."
            )
        share = group.alpha / (mean.alpha + group.alpha or 1.0)
        weak = Group(share * mean.alpha, group.n_groups)
        ridge = _HARDLY * float(np.vdot(loss.linear, loss.linear))
        levels: list[Component] = [Consensus(ridge), weak, Personal(_PROHIBITIVE)]
        if start is not None:
            theta = start[0].mean(axis=0)
            start = theta, start[0] - theta + start[1], np.zeros_like(start[0])
        # Residuals of the two models have different units.
        unit = gradient_scale(loss, components) / gradient_scale(loss, levels)
        found = FastSolver(self.n_starts).solve(
            loss if self.users is None else self.users,
            levels,
            start=start,
            tol=unit * tol,
            max_iter=max_iter,
            callback=callback,
        )
        with one_blas_thread():
            theta, G, _ = found.parts
            B = top_directions(G, group.n_groups)
            E = G - (G @ B) @ B.T
            parts = theta + share * E, G - share * E
            gradient = loss.gradient(parts[0] + parts[1])
            residual = optimality_residual(loss, components, parts, gradient)
            value = objective(loss, components, parts, gradient)
        history = replace(found.history, residual=found.history.residual / unit)
        history.objective[-1], history.residual[-1:] = value, residual
        return Solution(parts, value, residual, residual <= tol, history, found.interrupted)
