"""Least squares with an intercept: 1/2 the mean over rows of (y - intercept - f)^2."""

import numpy as np

from likeminds._util.array_types import Float
from likeminds.losses.class_moments import ClassMoments
from likeminds.losses.quadratic import Loss, signs
from likeminds.losses.rows import NEGATIVE, POSITIVE, RowBlock


class LeastSquares(Loss):
    """1/2 the mean over a person's rows of (y - intercept - f)^2, y being 1 or -1.

    The best intercept of each person is eliminated, which centres features and labels: A_i is
    the covariance of the features, b_i theirs with the labels, c_i the variance of the labels.

    Examples
    --------
    >>> from likeminds import Annotations, Statistics
    >>> said = Annotations(
    ...     users=["ann"] * 3, items=None, labels=[0, 0, 1], features=[[1.0], [1.0], [4.0]]
    ... )
    >>> loss = LeastSquares().of(Statistics.from_annotations(said))
    >>> round(loss.value(np.array([[2 / 3]])), 9)  # -1 at 1, +1 at 4: a line meets them all
    0.0
    """

    name = "least_squares"

    def rows(self, block: RowBlock) -> tuple[Float, Float]:
        """Return features and labels less their mean, times the root of the row's share."""
        weight = block.weight.sum(axis=1)
        share = weight / weight.sum(axis=1, keepdims=True)
        labels = signs(block)
        mean_label = (share * labels).sum(axis=1, keepdims=True)
        mean = share[:, None, :] @ block.rows
        root = np.sqrt(share)
        return (block.rows - mean) * root[:, :, None], (labels - mean_label) * root

    def dense(self, dense: ClassMoments, shift: Float) -> tuple[Float, Float]:  # noqa: ARG002
        """Return the covariances of the features, and theirs with the labels."""
        share = _class_share(dense.weight)
        between = share[:, NEGATIVE] * share[:, POSITIVE]
        difference = (dense.mean[:, POSITIVE] - dense.mean[:, NEGATIVE]) * (between > 0)[:, None]
        matrices = dense.scatter[:, NEGATIVE] + dense.scatter[:, POSITIVE]
        matrices /= dense.weight.sum(axis=1)[:, None, None]
        matrices += between[:, None, None] * difference[:, :, None] * difference[:, None, :]
        return matrices, 2.0 * between[:, None] * difference

    def constant(self, class_weight: Float) -> Float:
        """Return the variances of the labels."""
        share = _class_share(class_weight)
        return 4.0 * share[:, NEGATIVE] * share[:, POSITIVE]

    def counts(self, class_weight: Float) -> tuple[Float, Float]:
        """Return how many rows there are, twice: the loss is their mean."""
        total: Float = class_weight.sum(axis=1)
        return total, total


def _class_share(class_weight: Float) -> Float:
    total = class_weight.sum(axis=1, keepdims=True)
    return class_weight / np.where(total > 0, total, 1.0)
