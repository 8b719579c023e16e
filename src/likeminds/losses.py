"""Losses that are quadratic in each person's weights, built from the statistics.

Every loss here reads, for person i with weights w,

    l_i(w) = 1/2 (w' A_i w - 2 b_i' w + c_i),

and differs only in A, b and c. Solvers see nothing else: after the statistics are built,
no iteration touches a row of a person who has enough of them again.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from likeminds._stacks import times, times_back
from likeminds._threads import in_threads
from likeminds.rows import NEGATIVE, POSITIVE, Block, Float, Index, Rows, has_both_classes
from likeminds.statistics import Dense, Statistics


@dataclass(frozen=True)
class Factors:
    """A_i = Z_i'Z_i for the people with few labels; Z_i is made anew each time it is used.

    Attributes
    ----------
    rows : Rows
        Whose labels, about which items.
    origin, scale : arrays of shape (d,)
        Where features are measured from, and in which unit.
    """

    rows: Rows
    origin: Float
    scale: Float

    def __iter__(self) -> Iterator[tuple[Index, Float]]:
        """Yield (people, Z) with Z of shape (b, n + 1, d), a block of people at a time."""
        return map(self.of, self.rows.plan())

    def of(self, chosen: Index) -> tuple[Index, Float]:
        """Return (people, Z) of one block of the plan."""
        block = self.rows.block(chosen, self.origin)
        return block.people, auc_factor(block) / self.scale

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

        def fill(chosen: Index) -> None:
            people, Z = self.factors.of(chosen)
            product[people] = times_back(Z, times(Z, W[people]))

        for _ in in_threads(fill, self.factors.rows.plan()):
            pass
        return product

    def total_matrix(self) -> Float:
        """Return the sum over people of A_i, shape (n_features, n_features)."""
        total: Float = self.matrices.sum(axis=0)
        for _, Z in self.factors:
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
    >>> from likeminds.annotations import Annotations
    >>> said = Annotations(
    ...     users=["ann"] * 3, items=None, labels=[0, 0, 1], features=[[1.0], [2.0], [4.0]]
    ... )
    >>> loss = squared_auc(Statistics.from_annotations(said))
    >>> loss.value(np.array([[0.5]]))  # 1/2 mean of (1 - 1.5)^2 and (1 - 1)^2
    0.0625
    """
    scale = np.ones(statistics.n_features) if scale is None else scale
    factors = Factors(statistics.rows, statistics.origin, scale)
    matrices, dense_linear = _dense_auc(statistics.dense)
    matrices /= scale[:, None] * scale
    linear = np.zeros((statistics.n_people, statistics.n_features))
    linear[statistics.dense.people] = dense_linear / scale
    for people, Z in factors:
        linear[people] = Z[:, -1]
    constant = statistics.has_pairs.astype(np.float64)
    return QuadraticLoss(linear, constant, statistics.dense.people, matrices, factors)


def _dense_auc(dense: Dense) -> tuple[Float, Float]:
    """Return A and b from the class statistics; zeros where there are no pairs."""
    pairs = has_both_classes(dense.weight)
    weight = np.where(pairs[:, None], dense.weight, np.inf)
    matrices = dense.scatter[:, NEGATIVE] / weight[:, NEGATIVE, None, None]
    matrices += dense.scatter[:, POSITIVE] / weight[:, POSITIVE, None, None]
    difference = (dense.mean[:, POSITIVE] - dense.mean[:, NEGATIVE]) * pairs[:, None]
    matrices += difference[:, :, None] * difference[:, None, :]
    return matrices, difference


def auc_factor(block: Block) -> Float:
    """Return Z with A_i = Z_i'Z_i, shape (b, n + 1, d); its last row is b_i.

    The rows are (x - mean of its class) / sqrt(rows of its class), then the difference of
    the means; zeros for people without pairs.
    """
    pairs = has_both_classes(block.class_weight)
    class_weight = np.where(pairs[:, None], block.class_weight, np.inf)
    share = (block.weight / class_weight[:, :, None]).sum(axis=1)
    Z = np.empty((len(pairs), block.rows.shape[1] + 1, block.rows.shape[2]))
    np.multiply(block.centred(), np.sqrt(share)[:, :, None], out=Z[:, :-1])
    difference = block.class_mean[:, POSITIVE] - block.class_mean[:, NEGATIVE]
    np.multiply(difference, pairs[:, None], out=Z[:, -1])
    return Z
