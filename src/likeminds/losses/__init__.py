"""Losses of everybody's weights, and the statistics they are made of."""

from likeminds.losses.least_squares import LeastSquares
from likeminds.losses.least_squares_raw import LeastSquaresRaw
from likeminds.losses.quadratic import Loss, QuadraticLoss
from likeminds.losses.squared_auc import SquaredAUC

__all__ = [
    "LOSSES",
    "LeastSquares",
    "LeastSquaresRaw",
    "Loss",
    "QuadraticLoss",
    "SquaredAUC",
    "as_loss",
]

# By name; a ranker takes the name, or a loss of your own.
LOSSES: dict[str, Loss] = {
    loss.name: loss for loss in (SquaredAUC(), LeastSquares(), LeastSquaresRaw())
}


def as_loss(loss: str | Loss) -> Loss:
    """Return the loss that a name stands for; a loss stands for itself."""
    return LOSSES[loss] if isinstance(loss, str) else loss
