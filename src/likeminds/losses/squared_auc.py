"""The squared pairwise AUC loss: 1/2 the mean over pairs of (1 - (f_p - f_q))^2."""

import numpy as np

from likeminds._util.array_types import Float
from likeminds.losses.class_moments import ClassMoments
from likeminds.losses.graded import pair_weight, pairs_from_moments, pairs_from_rows
from likeminds.losses.quadratic import Loss
from likeminds.losses.rows import NEGATIVE, POSITIVE, RowBlock, has_both_classes


class SquaredAUC(Loss):
    """1/2 the mean, over pairs of a positive and a negative row, of (1 - (f_p - f_q))^2.

    A_i = S+ + S- + m m' and b_i = m, where S+ and S- are the covariances of the positive and
    of the negative rows, each around its own mean, and m is the difference of the means.
    People with labels of one class only have no pairs, and no loss. Of grades, all pairs of
    unequal ones count, the higher one first: see `graded`.

    Examples
    --------
    >>> from likeminds import Annotations, Statistics
    >>> said = Annotations(
    ...     users=["ann"] * 3, items=None, labels=[0, 0, 1], features=[[1.0], [2.0], [4.0]]
    ... )
    >>> loss = SquaredAUC().of(Statistics.from_annotations(said))
    >>> loss.value(np.array([[0.5]]))  # 1/2 mean of (1 - 1.5)^2 and (1 - 1)^2
    0.0625
    """

    name = "auc"
    takes_grades = True

    def rows(self, block: RowBlock) -> tuple[Float, Float]:
        """Return Z and t of the pairs; zeros for people who have none.

        Each row is (x - mean of its class) / sqrt(rows of its class) with target 0, and the
        last one the difference of the means with target 1.
        """
        if block.grade is not None:
            return pairs_from_rows(block)
        pairs = has_both_classes(block.class_weight)
        class_weight = np.where(pairs[:, None], block.class_weight, np.inf)
        share = (block.weight / class_weight[:, :, None]).sum(axis=1)
        Z = np.empty((len(pairs), block.rows.shape[1] + 1, block.rows.shape[2]))
        np.multiply(block.centred(), np.sqrt(share)[:, :, None], out=Z[:, :-1])
        difference = block.class_mean[:, POSITIVE] - block.class_mean[:, NEGATIVE]
        np.multiply(difference, pairs[:, None], out=Z[:, -1])
        target = np.zeros(Z.shape[:2])
        target[:, -1] = pairs
        return Z, target

    def dense(self, dense: ClassMoments, shift: Float) -> tuple[Float, Float]:  # noqa: ARG002
        """Return A and b; zeros where there are no pairs."""
        if dense.weight.shape[1] > 2:
            return pairs_from_moments(dense.weight, dense.mean, dense.scatter)
        pairs = has_both_classes(dense.weight)
        weight = np.where(pairs[:, None], dense.weight, np.inf)
        matrices = dense.scatter[:, NEGATIVE] / weight[:, NEGATIVE, None, None]
        matrices += dense.scatter[:, POSITIVE] / weight[:, POSITIVE, None, None]
        difference = (dense.mean[:, POSITIVE] - dense.mean[:, NEGATIVE]) * pairs[:, None]
        matrices += difference[:, :, None] * difference[:, None, :]
        return matrices, difference

    def constant(self, class_weight: Float) -> Float:
        """Return one for everybody who has pairs."""
        return has_both_classes(class_weight).astype(np.float64)

    def counts(self, class_weight: Float) -> tuple[Float, Float]:
        """Return the pairs over the rows, and twice that as observations.

        Of two classes, the latter is the harmonic mean of n+ and n-.
        """
        pairs: Float = pair_weight(class_weight) / class_weight.sum(axis=1)
        return pairs, 2.0 * pairs
