"""Losses that are quadratic in each person's weights, built from the statistics.

Every such loss is a least squares problem of person i with weights w,

    l_i(w) = 1/2 |Z_i w - t_i|^2 = 1/2 (w' A_i w - 2 b_i' w + c_i),

and they differ only in how Z and t are made of rows: that is what a `Loss` defines. Solvers see
only the `QuadraticLoss` it makes: after the statistics are built, no iteration touches a row of a
person who has enough of them again.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from likeminds._util.array_types import Bool, Float, Index
from likeminds._util.batched_linalg import row_dots, times, times_back
from likeminds._util.map_reduce import ThreadExecutor
from likeminds.losses.class_moments import ClassMoments
from likeminds.losses.rows import POSITIVE, RowBlock, Rows, has_both_classes
from likeminds.losses.statistics import Statistics

# People, and their Z and t.
Factor = tuple[Index, Float, Float]

# Below this many numbers, starting threads takes longer than the work.
_WORTH_THREADS = 1 << 18


@dataclass(frozen=True)
class RowFactors:
    """Z_i and t_i of the people with few labels, made anew each time unless they are kept.

    Attributes
    ----------
    rows : Rows
        The rows of these people.
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
    make: Callable[[RowBlock], tuple[Float, Float]]
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
        many = self._size > _WORTH_THREADS
        if self.kept is not None:
            ThreadExecutor(self.kept, many).each(work)
        else:
            ThreadExecutor(list(self.rows.plan()), many).each(lambda chosen: work(self.of(chosen)))

    def keep(self, memory: int) -> "RowFactors":
        """Return the same, made once for all if ``memory`` bytes have room for them."""
        roomy = self.kept is None and 8 * self._size <= memory
        return replace(self, kept=list(self)) if roomy else self

    @property
    def _size(self) -> int:
        return (len(self.rows.index) + len(self)) * len(self.scale)

    def __len__(self) -> int:
        """How many people."""
        return len(self.rows.people)


@dataclass(frozen=True)
class AbstractQuadraticLoss(ABC):
    """The sum over people of 1/2 (w_i' A_i w_i - 2 b_i' w_i + c_i), wherever their A_i are.

    Weights, gradients and products have one row per person, shape (n_users, n_features).

    Attributes
    ----------
    linear : array of shape (n_users, n_features)
        The vectors b_i.
    constant : array of shape (n_users,)
        The numbers c_i.
    """

    linear: Float
    constant: Float

    @property
    def shape(self) -> tuple[int, int]:
        """(n_users, n_features)."""
        n_users, n_features = self.linear.shape
        return n_users, n_features

    @abstractmethod
    def gradient(self, W: Float) -> Float:
        """Return A_i w_i - b_i for every person."""

    @abstractmethod
    def squares(self, W: Float, chosen: Bool) -> Float:
        """Return |Z_i w_i - t_i|^2 of the people who are chosen, and 0 of the others."""

    def value(self, W: Float, gradient: Float | None = None) -> float:
        """Return the loss; with the gradient at W given, no pass over the people is needed."""
        if gradient is None:
            gradient = self.gradient(W)
        # w'Aw - 2 b'w = w'(Aw - b) - b'w
        return 0.5 * float(np.vdot(W, gradient - self.linear) + self.constant.sum())


@dataclass(frozen=True)
class QuadraticLoss(AbstractQuadraticLoss):
    """The loss of people in this process.

    Attributes
    ----------
    linear, constant : arrays
        As in `AbstractQuadraticLoss`.
    dense_users : array of shape (p,)
        The people whose A_i is held as a matrix.
    matrices : array of shape (p, n_features, n_features)
        These matrices.
    factors : RowFactors
        The A_i of the others.
    """

    dense_users: Index
    matrices: Float
    factors: RowFactors

    def apply(self, W: Float) -> Float:
        """Return A_i w_i for every person."""
        product = np.zeros(self.shape)
        product[self.dense_users] = times(self.matrices, W[self.dense_users])

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

    def squares(self, W: Float, chosen: Bool) -> Float:
        """Return |Z_i w_i - t_i|^2 of the people who are chosen, and 0 of the others."""
        found = np.zeros(len(chosen))
        places = np.flatnonzero(chosen[self.dense_users])
        people = self.dense_users[places]
        bent = times(self.matrices[places], W[people]) - 2.0 * self.linear[people]
        found[people] = row_dots(W[people], bent) + self.constant[people]
        rows = self.factors.rows
        some = replace(self.factors, rows=rows.of(chosen[rows.people]), kept=None)
        for people, Z, target in some:
            left = times(Z, W[people]) - target
            found[people] = row_dots(left, left)
        return found


class Loss(ABC):
    """A loss of labels that is quadratic in each person's weights.

    A subclass has a name and the methods below; docs/losses.md writes one.

    Attributes
    ----------
    name : str
        The name by which rankers take it.
    sees_origin : bool
        Whether scores count as such, so that the zero of the features matters: then there is
        nothing (no intercept, no difference) that takes a constant out of them.
    takes_grades : bool
        Whether it is a loss of grades, too: then ``block.grade`` and statistics by grade may be
        there. Otherwise grades count as yes or no.
    """

    name: ClassVar[str]
    sees_origin: ClassVar[bool] = False
    takes_grades: ClassVar[bool] = False

    @abstractmethod
    def rows(self, block: RowBlock) -> tuple[Float, Float]:
        """Return Z, shape (b, n, d), and t, shape (b, n), of a block of people's rows.

        Rows without weight are padding, and are zeros in Z and t.
        """

    @abstractmethod
    def dense(self, dense: ClassMoments, shift: Float) -> tuple[Float, Float]:
        """Return A, shape (p, d, d), and b, shape (p, d), from the statistics of the classes.

        ``shift`` is what to add to the means where the origin matters.
        """

    @abstractmethod
    def constant(self, class_weight: Float) -> Float:
        """Return c of everybody, whose labels of both classes have these weights, (n, 2)."""

    @abstractmethod
    def counts(self, class_weight: Float) -> tuple[Float, Float]:
        """Return the weight of each person's loss in a likelihood, and its number of observations.

        As a regression, that is: a mean counts as often as there are independent terms in it,
        a sum once. ``class_weight`` is positive: people with labels of one class are left out.
        """

    def weight_and_count(self, class_weight: Float) -> tuple[Float, Float]:
        """Return the ``counts`` of everybody; zeros for people with labels of one class only.

        They weigh the likelihood of newcomers' labels against the prior.
        """
        able = has_both_classes(class_weight)
        weight, count = self.counts(np.where(able[:, None], class_weight, 1.0))
        return weight * able, count * able

    def of(self, statistics: Statistics, scale: Float | None = None) -> QuadraticLoss:
        """Return the loss of everybody's weights.

        Parameters
        ----------
        statistics : Statistics
            The statistics of everybody's rows.
        scale : array of shape (n_features,), optional
            Measure features in these units.
        """
        if statistics.n_kinds > 2 and not self.takes_grades:
            raise ValueError(
                f'loss="{self.name}" is a loss of yes or no, but these statistics are by grade: '
                "make them without graded=True."
            )
        scale = np.ones(statistics.n_features) if scale is None else scale
        origin = np.zeros(statistics.n_features) if self.sees_origin else statistics.origin
        factors = RowFactors(statistics.rows, origin, scale, self.rows)
        matrices, dense_linear = self.dense(statistics.dense, statistics.origin - origin)
        if len(matrices):  # else nothing here is of features x features
            matrices /= scale[:, None] * scale
        linear = np.zeros((statistics.n_users, statistics.n_features))
        linear[statistics.dense.people] = dense_linear / scale
        for people, Z, target in factors:
            linear[people] = times_back(Z, target)
        constant = self.constant(statistics.class_weight)
        return QuadraticLoss(linear, constant, statistics.dense.people, matrices, factors)


def signs(block: RowBlock) -> Float:
    """Return labels as 1 and -1."""
    return np.where(block.weight[:, POSITIVE] > 0, 1.0, -1.0)
