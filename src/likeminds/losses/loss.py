"""Losses of labels: each defines Z_i and t_i from a user's rows, and A_i and b_i from moments.

The squared AUC loss is computed without a list of pairs. Its graph joins every two rows r and s of
a user whose grades (or classes) differ. Their weight is w_r w_s / N, where N is the weight of all
such pairs. The weight of all rows is n, that of the rows of grade a is n_a. Their means are m and
m_a, and S_a is the covariance of the latter. The Laplacian L has

    X'LX = sum_{a < b} n_a n_b / N (S_a + S_b + d_ab d_ab'),       d_ab = m_b - m_a

         = sum_a n_a (n - n_a) / N S_a  +  n / N sum_a n_a (m_a - m)(m_a - m)'

and the linear term of the pairs, each with its higher grade first, is

    sum_{a < b} n_a n_b / N d_ab = sum_a n_a (below_a - above_a) / N m_a

with the weights below_a and above_a of rows with lower and with higher grades. With two grades this
is the Laplacian of the paper; see `likeminds.laplacian`.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from likeminds._util.array_types import Bool, Float, Index
from likeminds._util.map_reduce import Executor, ThreadExecutor, UserBlock
from likeminds._util.per_user_arrays import times_back
from likeminds.losses.quadratic import LossBlock, QuadraticLoss, RowFactors
from likeminds.losses.rows import NEGATIVE, POSITIVE, RowBlock, has_both_classes
from likeminds.losses.statistics import ClassMoments, Statistics


class Loss(ABC):
    """A loss of labels that is quadratic in each user's weights.

    A subclass defines a name and the methods below (example: the guide on losses).

    Attributes
    ----------
    name : str
        The name that selects the loss in rankers.
    sees_origin : bool
        Whether the loss depends on the origin of the features. It does not if an intercept or
        differences remove constants from scores.
    takes_grades : bool
        Whether the loss is defined for grades (``block.grade``, statistics by grade). Otherwise
        grades are split into two classes.
    """

    name: ClassVar[str]
    sees_origin: ClassVar[bool] = False
    takes_grades: ClassVar[bool] = False

    @abstractmethod
    def rows(self, block: RowBlock) -> tuple[Float, Float]:
        """Return Z, shape (b, n, d), and t, shape (b, n), of a block of users' rows.

        Rows without weight are padding, and are zeros in Z and t.
        """

    @abstractmethod
    def dense(self, dense: ClassMoments, shift: Float) -> tuple[Float, Float]:
        """Return A, shape (p, d, d), and b, shape (p, d), from the statistics of the classes.

        ``shift`` is added to the means if ``sees_origin`` is true.
        """

    @abstractmethod
    def constant(self, class_weight: Float) -> Float:
        """Return c of all users, given the weights of their two classes, (n, 2)."""

    @abstractmethod
    def counts(self, class_weight: Float) -> tuple[Float, Float]:
        """Return the weight of each user's loss in a likelihood, and its number of observations.

        The weight of a mean is its number of independent terms; the weight of a sum is 1.
        ``class_weight`` is positive, because users with labels of one class are left out.
        """

    def weight_and_count(self, class_weight: Float) -> tuple[Float, Float]:
        """Return the ``counts`` of all users; zeros for users with labels of one class only."""
        valid = has_both_classes(class_weight)
        weight, count = self.counts(np.where(valid[:, None], class_weight, 1.0))
        return weight * valid, count * valid

    def of(self, statistics: Statistics, scale: Float | None = None) -> QuadraticLoss:
        """Return the loss of all users' weights, with features measured in units of ``scale``."""
        return self.of_blocks(UserBlock.of_all(statistics), statistics.n_users, scale)

    def of_blocks(
        self, statistics: Executor[UserBlock[Statistics]], n_users: int, scale: Float | None
    ) -> QuadraticLoss:
        """Return the loss of users in blocks, which consumes their statistics."""
        blocks = statistics.derive(_measure, (self, scale), consume=True)
        return QuadraticLoss.of_blocks(blocks, n_users)

    def block(
        self, statistics: Statistics, scale: Float | None, positions: Index | slice
    ) -> LossBlock:
        """Return the loss of a block of users at these positions."""
        if statistics.n_kinds > 2 and not self.takes_grades:
            raise ValueError(
                f'loss="{self.name}" needs yes or no labels, but these statistics are by grade. '
                "Make them without graded=True."
            )
        scale = np.ones(statistics.n_features) if scale is None else scale
        origin = np.zeros(statistics.n_features) if self.sees_origin else statistics.origin
        factors = RowFactors(statistics.rows, origin, scale, self.rows)
        matrices, dense_linear = self.dense(statistics.dense, statistics.origin - origin)
        if len(matrices):  # avoids matrices of features x features
            matrices /= scale[:, None] * scale
        linear = np.zeros((statistics.n_users, statistics.n_features))
        linear[statistics.dense.users] = dense_linear / scale
        for users, Z, target in factors:
            linear[users] = times_back(Z, target)
        constant = self.constant(statistics.class_weight)
        return LossBlock(positions, linear, constant, statistics.dense.users, matrices, factors)


def _measure(
    block: UserBlock[Statistics], how: tuple[Loss, Float | None]
) -> ThreadExecutor[LossBlock]:
    loss, scale = how
    return ThreadExecutor([loss.block(block.data, scale, block.users)], many_threads=False)


class SquaredAUC(Loss):
    """1/2 the mean, over pairs of a positive and a negative row, of (1 - (f_p - f_q))^2.

    A_i = S+ + S- + m m' and b_i = m. S+ and S- are the covariances of the positive and of the
    negative rows, each around its own mean. m is the difference of the means. Users with labels of
    one class have no pairs and no loss. For grades, all pairs of unequal grades count, with the
    higher grade as positive.

    Examples
    --------
    >>> from likeminds import Annotations, Statistics
    >>> annotations = Annotations(
    ...     users=["ann"] * 3, items=None, labels=[0, 0, 1], features=[[1.0], [2.0], [4.0]]
    ... )
    >>> loss = SquaredAUC().of(Statistics.from_annotations(annotations))
    >>> loss.value(np.array([[0.5]]))  # 1/2 mean of (1 - 1.5)^2 and (1 - 1)^2
    0.0625
    """

    name = "auc"
    takes_grades = True

    def rows(self, block: RowBlock) -> tuple[Float, Float]:
        """Return Z and t of the pairs; zeros for users without pairs.

        Each row is (x - mean of its class) / sqrt(rows of its class) with target 0. The last row is
        the difference of the means with target 1.
        """
        if block.grade is not None:
            return _rows_of_grades(block)
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
        """Return A = X'LX and b of the pairs; zeros if there are no pairs."""
        if dense.weight.shape[1] > 2:
            return _moments_of_grades(dense)
        # Equal to the result for grades, but also precise with heavy weights on few rows.
        pairs = has_both_classes(dense.weight)
        weight = np.where(pairs[:, None], dense.weight, np.inf)
        matrices = dense.scatter[:, NEGATIVE] / weight[:, NEGATIVE, None, None]
        matrices += dense.scatter[:, POSITIVE] / weight[:, POSITIVE, None, None]
        difference = (dense.mean[:, POSITIVE] - dense.mean[:, NEGATIVE]) * pairs[:, None]
        matrices += difference[:, :, None] * difference[:, None, :]
        return matrices, difference

    def constant(self, class_weight: Float) -> Float:
        """Return one for users with pairs, else zero."""
        return has_both_classes(class_weight).astype(np.float64)

    def counts(self, class_weight: Float) -> tuple[Float, Float]:
        """Return pairs / rows, and twice that: the harmonic mean of n+ and n-."""
        pairs: Float = pair_weight(class_weight) / class_weight.sum(axis=1)
        return pairs, 2.0 * pairs


class LeastSquares(Loss):
    """1/2 the mean over a user's rows of (y - intercept - f)^2, y being 1 or -1.

    Eliminating each user's intercept centres features and labels. A_i is the covariance of the
    features, b_i their covariance with the labels, and c_i the variance of the labels.

    Examples
    --------
    >>> from likeminds import Annotations, Statistics
    >>> annotations = Annotations(
    ...     users=["ann"] * 3, items=None, labels=[0, 0, 1], features=[[1.0], [1.0], [4.0]]
    ... )
    >>> loss = LeastSquares().of(Statistics.from_annotations(annotations))
    >>> round(loss.value(np.array([[2 / 3]])), 9)  # -1 at 1, +1 at 4: a line meets them all
    0.0
    """

    name = "least_squares"

    def rows(self, block: RowBlock) -> tuple[Float, Float]:
        """Return features and labels less their mean, times the root of the row's share."""
        weight = block.weight.sum(axis=1)
        share = weight / weight.sum(axis=1, keepdims=True)
        labels = _signs(block)
        mean_label = (share * labels).sum(axis=1, keepdims=True)
        mean = share[:, None, :] @ block.rows
        root = np.sqrt(share)
        return (block.rows - mean) * root[:, :, None], (labels - mean_label) * root

    def dense(self, dense: ClassMoments, shift: Float) -> tuple[Float, Float]:  # noqa: ARG002
        """Return the covariances of the features, and those of features and labels."""
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
        """Return the number of rows, twice, because the loss is their mean."""
        total: Float = class_weight.sum(axis=1)
        return total, total


def _class_share(class_weight: Float) -> Float:
    total = class_weight.sum(axis=1, keepdims=True)
    return class_weight / np.where(total > 0, total, 1.0)


class LeastSquaresRaw(Loss):
    """1/2 the sum over a user's rows of (y - f)^2, y being 1 or -1.

    The paper ran its baselines with this loss. It has no intercept, so it depends on the origin of
    the features, and the share of positive labels affects the weights.

    Examples
    --------
    >>> from likeminds import Annotations, Statistics
    >>> annotations = Annotations(
    ...     users=["ann"] * 3, items=None, labels=[0, 0, 1], features=[[1.0], [2.0], [4.0]]
    ... )
    >>> loss = LeastSquaresRaw().of(Statistics.from_annotations(annotations))
    >>> loss.value(np.array([[0.5]]))  # 1/2 of (-1 - 0.5)^2 + (-1 - 1)^2 + (1 - 2)^2
    3.625
    """

    name = "least_squares_raw"
    sees_origin = True

    def rows(self, block: RowBlock) -> tuple[Float, Float]:
        """Return features and labels, times the root of the row's weight."""
        root = np.sqrt(block.weight.sum(axis=1))
        return block.rows * root[:, :, None], _signs(block) * root

    def dense(self, dense: ClassMoments, shift: Float) -> tuple[Float, Float]:
        """Return the second moments of the features, and those of features and labels."""
        mean = dense.mean + shift
        matrices = dense.scatter[:, NEGATIVE] + dense.scatter[:, POSITIVE]
        total = mean * dense.weight[:, :, None]
        matrices += total.transpose(0, 2, 1) @ mean
        return matrices, total[:, POSITIVE] - total[:, NEGATIVE]

    def constant(self, class_weight: Float) -> Float:
        """Return the number of rows: the sum of squared labels."""
        total: Float = class_weight.sum(axis=1)
        return total

    def counts(self, class_weight: Float) -> tuple[Float, Float]:
        """Return one, as the loss is a sum, and the number of rows."""
        total: Float = class_weight.sum(axis=1)
        return np.ones(len(total)), total


def pair_weight(class_weight: Float) -> Float:
    """Return the weight of pairs of unequal grades, given grades' weights (n_users, K)."""
    lower = np.cumsum(class_weight, axis=1)[:, :-1]
    return np.asarray(np.einsum("pk,pk->p", lower, class_weight[:, 1:]))


def _moments_of_grades(dense: ClassMoments) -> tuple[Float, Float]:
    """Return X'LX and b of the pairs; zeros for users with one grade."""
    pairs = pair_weight(dense.weight)
    per_pair = np.where(pairs > 0, 1.0 / np.where(pairs > 0, pairs, 1.0), 0.0)
    weight, total = dense.weight, dense.weight.sum(axis=1)
    others = (total[:, None] - weight) * per_pair[:, None]
    matrices = np.einsum("pk,pkde->pde", others, dense.scatter)
    share = weight / np.where(total > 0, total, 1.0)[:, None]
    deviation = dense.mean - np.einsum("pk,pkd->pd", share, dense.mean)[:, None]
    deviation *= (weight > 0)[:, :, None]
    between = np.sqrt(weight * (total * per_pair)[:, None])[:, :, None] * deviation
    matrices += between.transpose(0, 2, 1) @ between
    below = np.cumsum(weight, axis=1) - weight
    contrast = weight * (2.0 * below + weight - total[:, None]) * per_pair[:, None]
    return matrices, np.asarray(np.einsum("pk,pkd->pd", contrast, deviation))


def _rows_of_grades(block: RowBlock) -> tuple[Float, Float]:
    """Return Z with Z'Z = X'LX, and targets t with Z't = b and t't = 1.

    A row of grade a is sqrt((n - n_a)/N) (x - m_a) + sqrt(n/N) (m_a - m), with target (below_a -
    above_a) / sqrt(n N). The last row of Z is zero; its target makes the length of t one.
    """
    weight = block.weight.sum(axis=1)
    grade, below, own_mean = _by_grade(block, weight)
    total = weight.sum(axis=1, keepdims=True)
    pairs = np.einsum("bn,bn->b", weight, below)[:, None]
    valid: Bool = pairs > 0
    per_pair = np.where(valid, 1.0 / np.where(valid, pairs, 1.0), 0.0)
    share = weight / total
    mean = np.einsum("bn,bnd->bd", share, block.rows)[:, None]
    Z = np.zeros((*weight.shape[:1], weight.shape[1] + 1, block.rows.shape[2]))
    np.multiply(
        block.rows - own_mean, np.sqrt((total - grade) * per_pair)[:, :, None], out=Z[:, :-1]
    )
    Z[:, :-1] += (own_mean - mean) * np.sqrt(total * per_pair)[:, :, None]
    Z[:, :-1] *= np.sqrt(weight)[:, :, None]
    target = np.zeros(Z.shape[:2])
    contrast = (2.0 * below + grade - total) * np.sqrt(per_pair / total)
    target[:, :-1] = np.sqrt(weight) * contrast
    squares = np.einsum("bn,bn->b", target, target)
    target[:, -1] = np.sqrt(np.maximum(valid[:, 0] - squares, 0.0))
    return Z, target


def _by_grade(block: RowBlock, weight: Float) -> tuple[Float, Float, Float]:
    """Return, for each row, the weight of its grade, of lower grades, and its grade's mean.

    Rows of a user come in the order of their grades, so grades are runs of rows.
    """
    assert block.grade is not None
    begins = np.ones(weight.shape, dtype=np.bool_)
    begins[:, 1:] = np.diff(block.grade, axis=1) != 0
    starts = np.flatnonzero(begins.ravel())
    run = np.cumsum(begins.ravel()) - 1
    of_run = np.add.reduceat(weight.ravel(), starts)
    before = np.cumsum(weight, axis=1) - weight
    sums = np.add.reduceat(
        (block.rows * weight[:, :, None]).reshape(-1, block.rows.shape[2]), starts
    )
    means = sums / np.where(of_run > 0, of_run, 1.0)[:, None]
    below = before.ravel()[starts][run].reshape(weight.shape)
    return of_run[run].reshape(weight.shape), below, means[run].reshape(block.rows.shape)


def _signs(block: RowBlock) -> Float:
    """Return labels as 1 and -1."""
    return np.where(block.weight[:, POSITIVE] > 0, 1.0, -1.0)


# Losses by name; rankers accept a name or a loss.
LOSSES: dict[str, Loss] = {
    loss.name: loss for loss in (SquaredAUC(), LeastSquares(), LeastSquaresRaw())
}


def as_loss(loss: str | Loss) -> Loss:
    """Return the loss with a name; return a `Loss` unchanged."""
    return LOSSES[loss] if isinstance(loss, str) else loss
