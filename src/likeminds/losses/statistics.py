"""Per-person sufficient statistics of the rows, for every loss here.

For each person and each class of label: the number of rows (or the sum of their weights),
their mean, and their scatter around that mean. People with many labels have these as
arrays (*dense*, one d x d matrix per class). People with fewer labels than features keep
pointers to their rows (*factored*), and never cost a d x d matrix. Either way, statistics
of disjoint sets of rows merge exactly (Chan, Golub and LeVeque, 1983), which is what makes
streaming, cross-validation and distribution the same operation.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from likeminds._support.arrays import Bool, Float, FloatArray, IdArray, Index
from likeminds._support.visits import Blocks, Sums
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import encode
from likeminds.losses.rows import Rows, has_both_classes

Form = Literal["auto", "dense", "factored"]
# With more grades than this, nobody has arrays: rows take less.
_MOST_GRADES = 16


@dataclass(frozen=True)
class Dense:
    """Weight, mean and scatter by class (or grade), for the people who have them as arrays.

    Attributes
    ----------
    people : array of shape (p,)
        Their positions among all people, ascending.
    weight : array of shape (p, 2)
        With K grades, (p, K); so below.
    mean : array of shape (p, 2, d)
        As seen from the origin.
    scatter : array of shape (p, 2, d, d)
    """

    people: Index
    weight: Float
    mean: Float
    scatter: Float

    @classmethod
    def empty(cls, people: Index, n_features: int, n_kinds: int = 2) -> "Dense":
        """Return the statistics of no rows at all."""
        shape = (len(people), n_kinds)
        return cls(
            people,
            np.zeros(shape),
            np.zeros((*shape, n_features)),
            np.zeros((*shape, n_features, n_features)),
        )

    @classmethod
    def from_rows(cls, rows: Rows, origin: Float, n_kinds: int = 2) -> "Dense":
        """Pass over the rows once, block by block."""
        dense = cls.empty(rows.people, len(origin), n_kinds)

        def fill(chosen: Index) -> None:
            found = _block_of(rows, chosen, origin)
            there = slice(0, found.weight.shape[1])  # these people may lack the best grades
            dense.weight[chosen, there] = found.weight
            dense.mean[chosen, there] = found.mean
            dense.scatter[chosen, there] = found.scatter

        Blocks(list(rows.plan())).each(fill)
        return dense

    def absorb(self, rows: Rows, origin: Float) -> None:
        """Add more rows of people who are here, block by block, in place."""
        places = np.searchsorted(self.people, rows.people)

        def add(chosen: Index) -> None:
            found, here = _block_of(rows, chosen, origin), places[chosen]
            there = slice(0, found.weight.shape[1])
            before = Dense(
                found.people,
                self.weight[here, there],
                self.mean[here, there],
                self.scatter[here, there],
            )
            both = before.merge(found)
            self.weight[here, there] = both.weight
            self.mean[here, there] = both.mean
            self.scatter[here, there] = both.scatter

        Blocks(list(rows.plan())).each(add)

    def merge(self, other: "Dense") -> "Dense":
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

    def with_grades(self, place: Index, n_kinds: int) -> "Dense":
        """Return the same where there are more grades, among which these have their places."""
        wide = Dense.empty(self.people, self.mean.shape[2], n_kinds)
        wide.weight[:, place] = self.weight
        wide.mean[:, place] = self.mean
        wide.scatter[:, place] = self.scatter
        return wide

    def _spread(self, people: Index) -> "Dense":
        if np.array_equal(people, self.people):
            return self
        wide = Dense.empty(people, self.mean.shape[2], self.mean.shape[1])
        place = np.searchsorted(people, self.people)
        wide.weight[place] = self.weight
        wide.mean[place] = self.mean
        wide.scatter[place] = self.scatter
        return wide


def _block_of(rows: Rows, chosen: Index, origin: Float) -> Dense:
    """Return the statistics of some of the people (positions in ``rows.people``, as they come)."""
    weight, mean, scatter, among = rows.moments(chosen)
    moved = (mean + (among - origin)[:, None]) * (weight > 0)[..., None]
    return Dense(np.arange(len(chosen)), weight, moved, scatter)


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
        "auto" gives arrays to people with at least as many rows as features (times half the
        number of grades, where there are more than two).
    grades : array of shape (K,), optional
        The grades, ascending, where statistics are by grade.

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
    grades: Float | None = None

    @classmethod
    def from_annotations(
        cls, annotations: Annotations, form: Form = "auto", *, graded: bool = False
    ) -> "Statistics":
        """Reduce annotations, in one pass over the rows of the people with many.

        With ``graded`` they are by grade, where labels are grades.
        """
        if form not in ("auto", "dense", "factored"):
            raise ValueError(f'form must be "auto", "dense" or "factored", but is {form!r}.')
        table = annotations.features
        origin = _near(table)
        grades = codes = None
        if graded and annotations.grades is not None:
            said = np.asarray(annotations.grades, dtype=np.float64)
            grades, codes = np.unique(said, return_inverse=True)
        rows = Rows.of_annotations(annotations, grade=codes)
        n_kinds = 2 if grades is None else len(grades)
        nobody = Dense.empty(np.empty(0, dtype=np.intp), table.shape[1], n_kinds)
        return cls(annotations.user_ids, origin, nobody, rows, form, grades)._settle()

    @classmethod
    def from_batches(
        cls,
        batches: Iterable[Annotations],
        counts: Index,
        grades: Float | None = None,
        *,
        at_once: int = 0,
    ) -> "Statistics":
        """Reduce annotations that come in pieces and need not fit in memory together.

        What is kept is a matrix for each person and class, and the rows of people with fewer
        than there are features. Pieces are put together up to ``at_once`` bytes of features: a
        person's matrix is visited as often as there are such, however few rows they have there.

        Parameters
        ----------
        batches : iterable of Annotations
            The pieces, all about the same people (``user_ids``).
        counts : array of shape (n_people,)
            How many labels everybody gives in all of them.
        grades : array, optional
            The grades, ascending, where statistics are by grade.

        Examples
        --------
        >>> from likeminds import load_electricity
        >>> said = load_electricity()
        >>> pieces = [said[::2], said[1::2]]
        >>> counts = np.bincount(said.user_codes)
        >>> Statistics.from_batches(pieces, counts).class_weight.sum() == len(said)
        np.True_
        """
        dense: Dense | None = None
        few: list[Rows] = []
        waiting: list[Rows] = []
        for said in batches:
            if dense is None:
                user_ids, origin = said.user_ids, _near(said.features)
                n_kinds = 2 if grades is None else len(grades)
                many = np.flatnonzero(counts >= _enough("auto", len(origin), n_kinds))
                dense = Dense.empty(many, len(origin), n_kinds)
            codes = None
            if grades is not None and said.grades is not None:
                codes = np.searchsorted(grades, said.grades)
            rows = Rows.of_annotations(said, grade=codes)
            settled = np.isin(rows.people, dense.people)
            waiting.append(rows.of(settled))
            if 8 * len(origin) * sum(len(some.index) for some in waiting) >= at_once:
                dense.absorb(Rows.join(waiting, len(counts)), origin)
                waiting.clear()
            left = rows.of(~settled)
            few.append(left if said.features_per == "item" else left.compact())
        if dense is None:
            raise ValueError("There are no annotations: batches is empty.")
        if waiting:
            dense.absorb(Rows.join(waiting, len(counts)), origin)
            del waiting
        return cls(user_ids, origin, dense, Rows.join(few, len(counts)), "auto", grades)

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
        """Number (or weight) of negatives and positives, (n_people, 2); or of each grade."""
        weight = self.rows.class_weight(self.n_people, self.n_kinds)
        weight[self.dense.people] = self.dense.weight
        return weight

    @property
    def n_kinds(self) -> int:
        """How many kinds of labels there are: 2, or the number of grades."""
        return 2 if self.grades is None else len(self.grades)

    @property
    def has_pairs(self) -> Bool:
        """Who has labels of two kinds: the others have nothing to rank."""
        return has_both_classes(self.class_weight)

    def update(self, annotations: Annotations) -> "Statistics":
        """Return the statistics with more rows, of the same people or of new ones."""
        graded = self.grades is not None
        return self.merge(Statistics.from_annotations(annotations, self.form, graded=graded))

    def merge(self, other: "Statistics") -> "Statistics":
        """Return the statistics of the rows of both; people are matched by their ids."""
        if self.n_features != other.n_features:
            raise ValueError(
                f"Cannot merge statistics of {self.n_features} and of {other.n_features} features."
            )
        if self.grades is not None and other.grades is not None:
            grades = np.union1d(self.grades, other.grades)
            self, other = self.with_grades(grades), other.with_grades(grades)  # noqa: PLW0642
        first, second, user_ids = _align(self.user_ids, other.user_ids)
        shift = (other.origin - self.origin) * (other.dense.weight > 0)[..., None]
        moved = replace(
            other.dense, people=second[other.dense.people], mean=other.dense.mean + shift
        )
        dense = replace(self.dense, people=first[self.dense.people]).merge(moved)
        rows = replace(self.rows, people=first[self.rows.people]).merge(
            replace(other.rows, people=second[other.rows.people]), len(user_ids)
        )
        return Statistics(user_ids, self.origin, dense, rows, self.form, self.grades)._settle()

    def with_grades(self, grades: Float) -> "Statistics":
        """Return the same statistics where there are more grades."""
        if self.grades is None or len(grades) == len(self.grades):
            return self
        place = np.searchsorted(grades, self.grades)
        codes = None if self.rows.grade is None else place[self.rows.grade]
        dense = self.dense.with_grades(place, len(grades))
        return replace(self, dense=dense, rows=replace(self.rows, grade=codes), grades=grades)

    def without_last(self) -> "Statistics":
        """Return the statistics of all features but the last."""
        dense = replace(
            self.dense,
            mean=np.ascontiguousarray(self.dense.mean[..., :-1]),
            scatter=np.ascontiguousarray(self.dense.scatter[..., :-1, :-1]),
        )
        rows = replace(self.rows, table=self.rows.table[:, :-1])
        return replace(self, origin=self.origin[:-1], dense=dense, rows=rows)

    def feature_scale(self) -> Float:
        """Return the standard deviation of each feature over all rows (1 if constant)."""
        return scale_from(*self.feature_sums())

    def feature_sums(self) -> Sums:
        """Return the weight of all rows, and the sums of features and of their squares.

        Features are as seen from the origin. Of several statistics with one origin, they add up.
        """
        dense = self.dense
        first = np.einsum("pc,pcd->d", dense.weight, dense.mean)
        second = np.einsum("pcdd->d", dense.scatter)
        second += np.einsum("pc,pcd->d", dense.weight, dense.mean**2)
        for block in self.rows.blocks(self.origin):
            row_weight = block.weight.sum(axis=1)
            first += np.einsum("pn,pnd->d", row_weight, block.rows)
            second += np.einsum("pn,pnd->d", row_weight, block.rows**2)
        return Sums(float(self.class_weight.sum()), first, second)

    def _settle(self) -> "Statistics":
        """Give arrays to those who have rows enough, or have arrays already."""
        enough = _enough(self.form, self.n_features, self.n_kinds)
        settled = (self.rows.counts >= enough) | np.isin(self.rows.people, self.dense.people)
        if not settled.any():
            return self
        found = Dense.from_rows(self.rows.of(settled), self.origin, self.n_kinds)
        dense = self.dense.merge(found)
        return replace(self, dense=dense, rows=self.rows.of(~settled))


def scale_from(weight: float, first: Float, second: Float) -> Float:
    """Return the standard deviation of each feature (1 if constant): see `feature_sums`."""
    variance = second / weight - (first / weight) ** 2
    constant = variance <= 10 * np.finfo(np.float64).eps * second / weight
    return np.sqrt(np.where(constant, 1.0, variance))


def _near(table: FloatArray) -> Float:
    """Return a point near the data: a few hundred rows, evenly spread, are enough."""
    return np.asarray(table[:: 1 + len(table) // 256].mean(axis=0, dtype=np.float64))


def _enough(form: Form, n_features: int, n_kinds: int) -> float:
    """Return the number of rows from which on people have arrays."""
    many = n_features * n_kinds / 2 if n_kinds <= _MOST_GRADES else np.inf
    return {"auto": many, "dense": 0, "factored": np.inf}[form]


def _align(first: IdArray, second: IdArray) -> tuple[Index, Index, IdArray]:
    """Return where the ids of each go in the union of both, and that union."""
    if first is second or np.array_equal(first, second):
        same = np.arange(len(first))
        return same, same, first
    codes, union = encode([*first.tolist(), *second.tolist()], "user_ids")
    return codes[: len(first)], codes[len(first) :], union
