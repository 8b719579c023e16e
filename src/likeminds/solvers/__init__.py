"""Solvers: given a quadratic loss and a list of components, find the parts.

`fast` is the default for the three-level model, `accelerated` for any other list of components
(`CoClusteredSolver` for that of COMT);
`paper` is the algorithm as printed and `authors` the program that its authors published. Both are
references, and take any list of components. A solver is an object with a ``solve`` method (see
`Solver`); rankers take a name or an object.
"""

from likeminds.solvers.co_clustered import CoClusteredSolver
from likeminds.solvers.newton_three_level import FastSolver
from likeminds.solvers.proximal_gradient import (
    AUTHORS_PROGRAM,
    AcceleratedSolver,
    PaperSolver,
)
from likeminds.solvers.solver import History, Solution, Solver

__all__ = [
    "AUTHORS_PROGRAM",
    "SOLVERS",
    "AcceleratedSolver",
    "CoClusteredSolver",
    "FastSolver",
    "History",
    "PaperSolver",
    "Solution",
    "Solver",
]

SOLVERS: dict[str, Solver] = {
    "fast": FastSolver(),
    "accelerated": AcceleratedSolver(),
    "paper": PaperSolver(),
    "authors": AUTHORS_PROGRAM,
}
