"""A last feature whose weight is common to all: the loss of the others, given that weight."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from likeminds._util.array_types import Float
from likeminds.losses.quadratic import QuadraticLoss
from likeminds.losses.rows import RowBlock


@dataclass(frozen=True)
class CommonWeightLoss:
    """The loss of all features but the last, whose term in the scores is held fixed.

    With the last feature's weight v, person i's loss 1/2 |Z w + v z - t|^2 is that of the targets
    t - v z.

    Attributes
    ----------
    whole : QuadraticLoss
        The loss of all features, the last one included.
    """

    whole: QuadraticLoss

    def weight(self, alpha: float) -> float:
        """Return the best weight of the last feature alone; ``alpha`` is its ridge, per person.

        It is found without the others: given features that tell items apart, what all others said
        of an item says the more, the less one's own label agrees with theirs.
        """
        curvature = float(self._times(1.0)[:, -1].sum()) + 2.0 * alpha * self.whole.shape[0]
        slope = float(self.whole.linear[:, -1].sum())
        return slope / curvature if curvature > 0 else 0.0

    def loss(self, weight: float) -> QuadraticLoss:
        """Return the loss of the other features, given the weight of the last."""
        whole = self.whole
        product = self._times(weight)
        factors = whole.factors
        make = partial(_split, factors.make, weight / float(factors.scale[-1]))
        return QuadraticLoss(
            whole.linear[:, :-1] - product[:, :-1],
            whole.constant + weight * (product[:, -1] - 2.0 * whole.linear[:, -1]),
            whole.dense_people,
            np.ascontiguousarray(whole.matrices[:, :-1, :-1]),
            replace(factors, scale=factors.scale[:-1], make=make, kept=None),
        )

    def _times(self, weight: float) -> Float:
        """Return everybody's A times the last unit vector, times the weight."""
        last = np.zeros(self.whole.shape)
        last[:, -1] = weight
        return self.whole.apply(last)


def _split(
    make: Callable[[RowBlock], tuple[Float, Float]], weight: float, block: RowBlock
) -> tuple[Float, Float]:
    Z, target = make(block)
    return np.ascontiguousarray(Z[:, :, :-1]), target - weight * Z[:, :, -1]
