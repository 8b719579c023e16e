"""Per-person sufficient statistics of the rows, for every loss here.

For each person and each class of label: the number of rows (or the sum of their weights),
their mean, and their scatter around that mean. People with many labels have these as
arrays (*dense*, one d x d matrix per class). People with fewer labels than features keep
pointers to their rows (*factored*), and never cost a d x d matrix. Either way, statistics
of disjoint sets of rows merge exactly (Chan, Golub and LeVeque, 1983), which is what makes
streaming, cross-validation and distribution the same operation.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from likeminds._support.arrays import Bool, Float, IdArray, Index
from likeminds._support.threads import in_threads
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import encode
from likeminds.losses.rows import Rows, has_both_classes

Form = Literal["auto", "dense", "factored"]


@dataclass(frozen=True)
class Dense:
    """Weight, mean and scatter by class, for the people who have them as arrays.

    Attributes
    ----------
    people : array of shape (p,)
        Their positions among all people, ascending.
    weight : array of shape (p, 2)
    mean : array of shape (p, 2, d)
        As seen from the origin.
    scatter : array of shape (p, 2, d, d)
    """

    people: Index
    weight: Float
    mean: Float
    scatter: Float

    @classmethod
    def empty(cls, people: Index, n_features: int) -> "Dense":
        """Return the statistics of no rows at all."""
        shape = (len(people), 2)
        return cls(
            people,
            np.zeros(shape),
            np.zeros((*shape, n_features)),
            np.zeros((*shape, n_features, n_features)),
        )

    @classmethod
    def from_rows(cls, rows: Rows, origin: Float) -> "Dense":
        """Pass over the rows once, block by block."""
        dense = cls.empty(rows.people, len(origin))

        def fill(chosen: Index) -> None:
            weight, mean, scatter, among = rows.moments(chosen)
            dense.weight[chosen] = weight
            dense.mean[chosen] = (mean + (among - origin)[:, None]) * (weight > 0)[..., None]
            dense.scatter[chosen] = scatter

        for _ in in_threads(fill, rows.plan()):
            pass
        return dense

    def merged(self, other: "Dense") -> "Dense":
        """Return the statistics of the rows of both (exact, Chan et al.)."""
        if not len(self.people):
            return other
        if not len(other.people):
            return self
        people = np.union1d(self.people, other.people)
        first, second = self._spread(people), other._spread(people)
        weight = first.weight + second.weight
        share = second.weight / np.where(weight > 0, weight, 1.0)
        step = second.mean - first.mean
        mean = first.mean + share[..., None] * step
        between = (first.weight * share)[..., None, None] * step[..., None] * step[..., None, :]
        return Dense(people, weight, mean, first.scatter + second.scatter + between)

    def _spread(self, people: Index) -> "Dense":
        if np.array_equal(people, self.people):
            return self
        wide = Dense.empty(people, self.mean.shape[2])
        place = np.searchsorted(people, self.people)
        wide.weight[place] = self.weight
        wide.mean[place] = self.mean
        wide.scatter[place] = self.scatter
        return wide


@dataclass(frozen=True)
class Statistics:
    """Sufficient statistics of everybody's labels, for every quadratic loss.

    Attributes
    ----------
    user_ids : array of shape (n_people,)
        The ids of the people.
    origin : array of shape (n_features,)
        The point that means are measured from: near the data, so that features far from
        zero lose no digits.
    dense : Dense
        Statistics of the people who have them as arrays.
    rows : Rows
        Rows of the people who have too few for that.
    form : {"auto", "dense", "factored"}
        "auto" gives arrays to people with at least as many rows as features.

    Examples
    --------
    >>> from likeminds.data.annotations import Annotations
    >>> said = Annotations(
    ...     users=["ann", "ann", "ann", "bob", "bob"],
    ...     items=None,
    ...     labels=[1, 0, 0, 0, 1],
    ...     features=[[1.0], [2.0], [4.0], [1.0], [3.0]],
    ... )
    >>> statistics = Statistics.from_annotations(said)
    >>> statistics.class_weight
    array([[2., 1.],
           [1., 1.]])
    >>> statistics.update(said).class_weight
    array([[4., 2.],
           [2., 2.]])
    """

    user_ids: IdArray
    origin: Float
    dense: Dense
    rows: Rows
    form: Form = "auto"

    @classmethod
    def from_annotations(cls, annotations: Annotations, form: Form = "auto") -> "Statistics":
        """Reduce annotations, in one pass over the rows of the people with many."""
        if form not in ("auto", "dense", "factored"):
            raise ValueError(f'form must be "auto", "dense" or "factored", but is {form!r}.')
        table = annotations.features
        # Any point near the data serves: a few hundred rows, evenly spread, are enough.
        origin = table[:: 1 + len(table) // 256].mean(axis=0, dtype=np.float64)
        rows = Rows.of_annotations(annotations)
        nobody = Dense.empty(np.empty(0, dtype=np.intp), table.shape[1])
        return cls(annotations.user_ids, origin, nobody, rows, form)._settle()

    @property
    def n_people(self) -> int:
        """How many people there are."""
        return len(self.user_ids)

    @property
    def n_features(self) -> int:
        """How many features an item has."""
        return len(self.origin)

    @cached_property
    def class_weight(self) -> Float:
        """Number (or weight) of negatives and positives, shape (n_people, 2)."""
        weight = self.rows.class_weight(self.n_people)
        weight[self.dense.people] = self.dense.weight
        return weight

    @property
    def has_pairs(self) -> Bool:
        """Who has labels of both classes: the others have nothing to rank."""
        return has_both_classes(self.class_weight)

    def update(self, annotations: Annotations) -> "Statistics":
        """Return the statistics with more rows, of the same people or of new ones."""
        return self.merge(Statistics.from_annotations(annotations, self.form))

    def merge(self, other: "Statistics") -> "Statistics":
        """Return the statistics of the rows of both; people are matched by their ids."""
        if self.n_features != other.n_features:
            raise ValueError(
                f"Cannot merge statistics of {self.n_features} and of {other.n_features} features."
            )
        first, second, user_ids = _align(self.user_ids, other.user_ids)
        shift = (other.origin - self.origin) * (other.dense.weight > 0)[..., None]
        moved = replace(
            other.dense, people=second[other.dense.people], mean=other.dense.mean + shift
        )
        dense = replace(self.dense, people=first[self.dense.people]).merged(moved)
        rows = replace(self.rows, people=first[self.rows.people]).merged(
            replace(other.rows, people=second[other.rows.people]), len(user_ids)
        )
        return Statistics(user_ids, self.origin, dense, rows, self.form)._settle()

    def feature_scale(self) -> Float:
        """Return the standard deviation of each feature over all rows (1 if constant)."""
        weight, dense = self.class_weight.sum(), self.dense
        first = np.einsum("pc,pcd->d", dense.weight, dense.mean)
        second = np.einsum("pcdd->d", dense.scatter)
        second += np.einsum("pc,pcd->d", dense.weight, dense.mean**2)
        for block in self.rows.blocks(self.origin):
            row_weight = block.weight.sum(axis=1)
            first += np.einsum("pn,pnd->d", row_weight, block.rows)
            second += np.einsum("pn,pnd->d", row_weight, block.rows**2)
        variance = second / weight - (first / weight) ** 2
        constant = variance <= 10 * np.finfo(np.float64).eps * second / weight
        return np.sqrt(np.where(constant, 1.0, variance))

    def _settle(self) -> "Statistics":
        """Give arrays to those who have rows enough, or have arrays already."""
        enough = {"auto": self.n_features, "dense": 0, "factored": np.inf}[self.form]
        settled = (self.rows.counts >= enough) | np.isin(self.rows.people, self.dense.people)
        if not settled.any():
            return self
        dense = self.dense.merged(Dense.from_rows(self.rows.of(settled), self.origin))
        return replace(self, dense=dense, rows=self.rows.of(~settled))


def _align(first: IdArray, second: IdArray) -> tuple[Index, Index, IdArray]:
    """Return where the ids of each go in the union of both, and that union."""
    if first is second or np.array_equal(first, second):
        same = np.arange(len(first))
        return same, same, first
    codes, union = encode([*first.tolist(), *second.tolist()], "user_ids")
    return codes[: len(first)], codes[len(first) :], union
