"""Solvers: given a quadratic loss and a list of components, find the parts.

`fast` is the default for the three-level model; `paper` is the published algorithm, kept as
the reference, and takes any components. A solver is an object with a ``solve`` method (see
`Solver`); rankers take one by name or as an object.
"""

from likeminds.solvers.base import History, Solution, Solver
from likeminds.solvers.fast import FastSolver
from likeminds.solvers.paper import PaperHistory, PaperSolver

__all__ = [
    "SOLVERS",
    "FastSolver",
    "History",
    "PaperHistory",
    "PaperSolver",
    "Solution",
    "Solver",
]

SOLVERS: dict[str, Solver] = {"fast": FastSolver(), "paper": PaperSolver()}
