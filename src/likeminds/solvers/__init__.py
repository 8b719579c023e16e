"""Solvers: given a quadratic loss and a list of components, find the parts.

`fast` is the default for the three-level model, `accelerated` for any other list of components;
`paper` is the published algorithm, kept as the reference, and takes any list too. A solver is
an object with a ``solve`` method (see `Solver`); rankers take one by name or as an object.
"""

from likeminds.solvers.newton_three_level import FastSolver
from likeminds.solvers.proximal_gradient import AcceleratedSolver, PaperHistory, PaperSolver
from likeminds.solvers.solver import (
    History,
    Solution,
    Solver,
    objective,
    optimality_residual,
    zero_parts,
)

__all__ = [
    "SOLVERS",
    "AcceleratedSolver",
    "FastSolver",
    "History",
    "PaperHistory",
    "PaperSolver",
    "Solution",
    "Solver",
    "objective",
    "optimality_residual",
    "zero_parts",
]

SOLVERS: dict[str, Solver] = {
    "fast": FastSolver(),
    "accelerated": AcceleratedSolver(),
    "paper": PaperSolver(),
}
