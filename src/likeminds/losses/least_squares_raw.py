"""Least squares as the paper ran its competitors: 1/2 the sum over rows of (y - f)^2."""

import numpy as np

from likeminds._util.array_types import Float
from likeminds.losses.class_moments import ClassMoments
from likeminds.losses.quadratic import Loss, signs
from likeminds.losses.rows import NEGATIVE, POSITIVE, RowBlock


class LeastSquaresRaw(Loss):
    """1/2 the sum over a person's rows of (y - f)^2, y being 1 or -1.

    There is no intercept, so that the origin of the features matters, and the share of
    positive labels leaks into the weights.

    Examples
    --------
    >>> from likeminds import Annotations, Statistics
    >>> said = Annotations(
    ...     users=["ann"] * 3, items=None, labels=[0, 0, 1], features=[[1.0], [2.0], [4.0]]
    ... )
    >>> loss = LeastSquaresRaw().of(Statistics.from_annotations(said))
    >>> loss.value(np.array([[0.5]]))  # 1/2 of (-1 - 0.5)^2 + (-1 - 1)^2 + (1 - 2)^2
    3.625
    """

    name = "least_squares_raw"
    sees_origin = True

    def rows(self, block: RowBlock) -> tuple[Float, Float]:
        """Return features and labels, times the root of the row's weight."""
        root = np.sqrt(block.weight.sum(axis=1))
        return block.rows * root[:, :, None], signs(block) * root

    def dense(self, dense: ClassMoments, shift: Float) -> tuple[Float, Float]:
        """Return the second moments of the features, and theirs with the labels."""
        mean = dense.mean + shift
        matrices = dense.scatter[:, NEGATIVE] + dense.scatter[:, POSITIVE]
        total = mean * dense.weight[:, :, None]
        matrices += total.transpose(0, 2, 1) @ mean
        return matrices, total[:, POSITIVE] - total[:, NEGATIVE]

    def constant(self, class_weight: Float) -> Float:
        """Return how many rows there are, each with a label of length one."""
        total: Float = class_weight.sum(axis=1)
        return total

    def counts(self, class_weight: Float) -> tuple[Float, Float]:
        """Return one, as the loss is a sum, and how many rows there are."""
        total: Float = class_weight.sum(axis=1)
        return np.ones(len(total)), total
