"""Losses of all users' weights, and their sufficient statistics."""

from likeminds.losses.loss import (
    LOSSES,
    LeastSquares,
    LeastSquaresRaw,
    Loss,
    SquaredAUC,
    as_loss,
)
from likeminds.losses.quadratic import QuadraticLoss

__all__ = [
    "LOSSES",
    "LeastSquares",
    "LeastSquaresRaw",
    "Loss",
    "QuadraticLoss",
    "SquaredAUC",
    "as_loss",
]
