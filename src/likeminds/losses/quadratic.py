"""Losses that are quadratic in each person's weights, built from the statistics.

Every loss here is a least squares problem of person i with weights w,

    l_i(w) = 1/2 |Z_i w - t_i|^2 = 1/2 (w' A_i w - 2 b_i' w + c_i),

and they differ only in what Z and t are made of. Solvers see nothing else: after the statistics
are built, no iteration touches a row of a person who has enough of them again.

========================  =====================================================================
`squared_auc`             1/2 the mean over pairs of (1 - (f_p - f_q))^2
`least_squares`           1/2 the mean over rows of (y - intercept - f)^2, the intercept a
                          person's own and eliminated
`least_squares_raw`       1/2 the sum over rows of (y - f)^2: no intercept, no mean
========================  =====================================================================

Here f are scores, and y is 1 for a positive label and -1 for a negative one.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from likeminds._support.arrays import Float, Index
from likeminds._support.stacks import times, times_back
from likeminds._support.threads import in_threads
from likeminds.losses.rows import NEGATIVE, POSITIVE, Block, Rows, has_both_classes
from likeminds.losses.statistics import Dense, Statistics

T = TypeVar("T")
# People, and their Z and t.
Factor = tuple[Index, Float, Float]

# Below this many numbers, starting threads takes longer than the work.
_WORTH_THREADS = 1 << 18


@dataclass(frozen=True)
class Factors:
    """Z_i and t_i of the people with few labels, made anew each time unless they are kept.

    Attributes
    ----------
    rows : Rows
        Whose labels, about which items.
    origin, scale : arrays of shape (d,)
        Where features are measured from, and in which unit.
    make : callable
        Turns a block of rows into Z of shape (b, n, d) and t of shape (b, n).
    kept : list, optional
        All of them, where `keep` found room.
    """

    rows: Rows
    origin: Float
    scale: Float
    make: Callable[[Block], tuple[Float, Float]]
    kept: list[Factor] | None = None

    def __iter__(self) -> Iterator[Factor]:
        """Yield (people, Z, t), a block of people at a time."""
        return map(self.of, self.rows.plan())

    def of(self, chosen: Index) -> Factor:
        """Return (people, Z, t) of one block of the plan."""
        block = self.rows.block(chosen, self.origin)
        Z, target = self.make(block)
        Z /= self.scale
        return block.people, Z, target

    def each(self, work: Callable[[Factor], None]) -> None:
        """Do some work on every block, which the cores share where there is much."""
        if self.kept is not None:
            blocks: Iterator[None] = self._share(work, self.kept)
        else:
            blocks = self._share(lambda chosen: work(self.of(chosen)), self.rows.plan())
        for _ in blocks:
            pass

    def keep(self, memory: int) -> "Factors":
        """Return the same, made once for all if ``memory`` bytes have room for them."""
        roomy = self.kept is None and 8 * self._size <= memory
        return replace(self, kept=list(self)) if roomy else self

    def _share(self, work: Callable[[T], None], blocks: Iterable[T]) -> Iterator[None]:
        return in_threads(work, blocks) if self._size > _WORTH_THREADS else map(work, blocks)

    @property
    def _size(self) -> int:
        return (len(self.rows.index) + len(self)) * len(self.scale)

    def __len__(self) -> int:
        """How many people."""
        return len(self.rows.people)


@dataclass(frozen=True)
class QuadraticLoss:
    """The sum over people of 1/2 (w_i' A_i w_i - 2 b_i' w_i + c_i).

    Weights, gradients and products have one row per person, shape (n_people, n_features).

    Attributes
    ----------
    linear : array of shape (n_people, n_features)
        The vectors b_i.
    constant : array of shape (n_people,)
        The numbers c_i.
    dense_people : array of shape (p,)
        The people whose A_i is held as a matrix.
    matrices : array of shape (p, n_features, n_features)
        These matrices.
    factors : Factors
        The A_i of the others.
    """

    linear: Float
    constant: Float
    dense_people: Index
    matrices: Float
    factors: Factors

    @property
    def shape(self) -> tuple[int, int]:
        """(n_people, n_features)."""
        n_people, n_features = self.linear.shape
        return n_people, n_features

    def apply(self, W: Float) -> Float:
        """Return A_i w_i for every person."""
        product = np.zeros(self.shape)
        product[self.dense_people] = times(self.matrices, W[self.dense_people])

        def fill(factor: Factor) -> None:
            people, Z, _ = factor
            product[people] = times_back(Z, times(Z, W[people]))

        self.factors.each(fill)
        return product

    def keep(self, memory: int) -> "QuadraticLoss":
        """Return the same loss, faster where ``memory`` bytes have room for all factors."""
        return replace(self, factors=self.factors.keep(memory))

    def total_matrix(self) -> Float:
        """Return the sum over people of A_i, shape (n_features, n_features)."""
        total: Float = self.matrices.sum(axis=0)
        for _, Z, _ in self.factors:
            rows = Z.reshape(-1, Z.shape[2])
            total += rows.T @ rows
        return total

    def gradient(self, W: Float) -> Float:
        """Return A_i w_i - b_i for every person."""
        return self.apply(W) - self.linear

    def value(self, W: Float, gradient: Float | None = None) -> float:
        """Return the loss; free of charge where the gradient at W is known."""
        if gradient is None:
            gradient = self.gradient(W)
        # w'Aw - 2 b'w = w'(Aw - b) - b'w
        return 0.5 * float(np.vdot(W, gradient - self.linear) + self.constant.sum())


def squared_auc(statistics: Statistics, scale: Float | None = None) -> QuadraticLoss:
    """Return the squared pairwise AUC loss: 1/2 the mean over pairs of (1 - (f_p - f_q))^2.

    A_i = S+ + S- + m m' and b_i = m, where S+ and S- are the covariances of the positive and
    of the negative rows, each around its own mean, and m is the difference of the means.
    People with labels of one class only have no pairs, and no loss.

    Parameters
    ----------
    statistics : Statistics
        Who said what.
    scale : array of shape (n_features,), optional
        Measure features in these units (their origin does not matter: pairs see differences).

    Examples
    --------
    >>> from likeminds.data.annotations import Annotations
    >>> said = Annotations(
    ...     users=["ann"] * 3, items=None, labels=[0, 0, 1], features=[[1.0], [2.0], [4.0]]
    ... )
    >>> loss = squared_auc(Statistics.from_annotations(said))
    >>> loss.value(np.array([[0.5]]))  # 1/2 mean of (1 - 1.5)^2 and (1 - 1)^2
    0.0625
    """
    constant = statistics.has_pairs.astype(np.float64)
    return _assembled(statistics, scale, constant, _dense_auc, auc_rows)


def least_squares(statistics: Statistics, scale: Float | None = None) -> QuadraticLoss:
    """Return 1/2 the mean over a person's rows of (y - intercept - f)^2, y being 1 or -1.

    The best intercept of each person is eliminated, which centres features and labels: A_i is
    the covariance of the features, b_i theirs with the labels, c_i the variance of the labels.

    Parameters
    ----------
    statistics, scale
        As in `squared_auc`.

    Examples
    --------
    >>> from likeminds.data.annotations import Annotations
    >>> said = Annotations(
    ...     users=["ann"] * 3, items=None, labels=[0, 0, 1], features=[[1.0], [1.0], [4.0]]
    ... )
    >>> loss = least_squares(Statistics.from_annotations(said))
    >>> round(loss.value(np.array([[2 / 3]])), 9)  # -1 at 1, +1 at 4: a line meets them all
    0.0
    """
    share = _class_share(statistics.class_weight)
    constant = 4.0 * share[:, NEGATIVE] * share[:, POSITIVE]
    return _assembled(statistics, scale, constant, _dense_centred, _centred_rows)


def least_squares_raw(statistics: Statistics, scale: Float | None = None) -> QuadraticLoss:
    """Return 1/2 the sum over a person's rows of (y - f)^2, y being 1 or -1.

    There is no intercept, so that the origin of the features matters, and the share of
    positive labels leaks into the weights. This is how the paper ran its competitors.

    Parameters
    ----------
    statistics, scale
        As in `squared_auc`.

    Examples
    --------
    >>> from likeminds.data.annotations import Annotations
    >>> said = Annotations(
    ...     users=["ann"] * 3, items=None, labels=[0, 0, 1], features=[[1.0], [2.0], [4.0]]
    ... )
    >>> loss = least_squares_raw(Statistics.from_annotations(said))
    >>> loss.value(np.array([[0.5]]))  # 1/2 of (-1 - 0.5)^2 + (-1 - 1)^2 + (1 - 2)^2
    3.625
    """
    zero = np.zeros(statistics.n_features)
    constant = statistics.class_weight.sum(axis=1)
    return _assembled(statistics, scale, constant, _dense_raw, _raw_rows, origin=zero)


# What rankers call them.
LOSSES: dict[str, Callable[[Statistics, Float | None], QuadraticLoss]] = {
    "auc": squared_auc,
    "least_squares": least_squares,
    "least_squares_raw": least_squares_raw,
}


def _assembled(
    statistics: Statistics,
    scale: Float | None,
    constant: Float,
    of_dense: Callable[[Dense, Float], tuple[Float, Float]],
    of_rows: Callable[[Block], tuple[Float, Float]],
    *,
    origin: Float | None = None,
) -> QuadraticLoss:
    """Make A and b of everybody, features being measured from an origin in a unit."""
    scale = np.ones(statistics.n_features) if scale is None else scale
    origin = statistics.origin if origin is None else origin
    factors = Factors(statistics.rows, origin, scale, of_rows)
    matrices, dense_linear = of_dense(statistics.dense, statistics.origin - origin)
    matrices /= scale[:, None] * scale
    linear = np.zeros((statistics.n_people, statistics.n_features))
    linear[statistics.dense.people] = dense_linear / scale
    for people, Z, target in factors:
        linear[people] = times_back(Z, target)
    return QuadraticLoss(linear, constant, statistics.dense.people, matrices, factors)


def _dense_auc(dense: Dense, shift: Float) -> tuple[Float, Float]:  # noqa: ARG001
    """Return A and b from the class statistics; zeros where there are no pairs."""
    pairs = has_both_classes(dense.weight)
    weight = np.where(pairs[:, None], dense.weight, np.inf)
    matrices = dense.scatter[:, NEGATIVE] / weight[:, NEGATIVE, None, None]
    matrices += dense.scatter[:, POSITIVE] / weight[:, POSITIVE, None, None]
    difference = (dense.mean[:, POSITIVE] - dense.mean[:, NEGATIVE]) * pairs[:, None]
    matrices += difference[:, :, None] * difference[:, None, :]
    return matrices, difference


def auc_rows(block: Block) -> tuple[Float, Float]:
    """Return Z and t of the pairs; zeros for people who have none.

    Each row is (x - mean of its class) / sqrt(rows of its class) with target 0, and the last
    one the difference of the means with target 1.
    """
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


def _dense_centred(dense: Dense, shift: Float) -> tuple[Float, Float]:  # noqa: ARG001
    share = _class_share(dense.weight)
    between = share[:, NEGATIVE] * share[:, POSITIVE]
    difference = (dense.mean[:, POSITIVE] - dense.mean[:, NEGATIVE]) * (between > 0)[:, None]
    matrices = dense.scatter[:, NEGATIVE] + dense.scatter[:, POSITIVE]
    matrices /= dense.weight.sum(axis=1)[:, None, None]
    matrices += between[:, None, None] * difference[:, :, None] * difference[:, None, :]
    return matrices, 2.0 * between[:, None] * difference


def _centred_rows(block: Block) -> tuple[Float, Float]:
    """Return Z and t: features and labels less their mean, times the root of the row's share."""
    weight = block.weight.sum(axis=1)
    share = weight / weight.sum(axis=1, keepdims=True)
    labels = _signs(block)
    mean_label = (share * labels).sum(axis=1, keepdims=True)
    mean = share[:, None, :] @ block.rows
    root = np.sqrt(share)
    return (block.rows - mean) * root[:, :, None], (labels - mean_label) * root


def _dense_raw(dense: Dense, shift: Float) -> tuple[Float, Float]:
    mean = dense.mean + shift
    matrices = dense.scatter[:, NEGATIVE] + dense.scatter[:, POSITIVE]
    matrices += (mean * dense.weight[:, :, None]).transpose(0, 2, 1) @ mean
    total = mean * dense.weight[:, :, None]
    return matrices, total[:, POSITIVE] - total[:, NEGATIVE]


def _raw_rows(block: Block) -> tuple[Float, Float]:
    """Return Z and t: features and labels, times the root of the row's weight."""
    root = np.sqrt(block.weight.sum(axis=1))
    return block.rows * root[:, :, None], _signs(block) * root


def _signs(block: Block) -> Float:
    return np.where(block.weight[:, POSITIVE] > 0, 1.0, -1.0)


def _class_share(class_weight: Float) -> Float:
    total = class_weight.sum(axis=1, keepdims=True)
    return class_weight / np.where(total > 0, total, 1.0)
