"""Per-person sufficient statistics of the rows, for every loss here.

For each person and each class of label: the number of rows (or the sum of their weights),
their mean, and their scatter around that mean. People with many labels have these as
arrays (*dense*, one d x d matrix per class). People with fewer labels than features keep
pointers to their rows (*factored*), and never cost a d x d matrix. Either way, statistics
of disjoint sets of rows merge exactly (Chan, Golub and LeVeque, 1983), which is what makes
streaming, cross-validation and distribution the same operation.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Literal

import numpy as np

from likeminds._util.array_types import Bool, Float, FloatArray, IdArray, Index
from likeminds._util.map_reduce import SumTuple
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import encode, join_ids
from likeminds.losses.class_moments import ClassMoments
from likeminds.losses.rows import Rows, has_both_classes

Form = Literal["auto", "dense", "factored"]
# With more grades than this, nobody has arrays: rows take less.
_MOST_GRADES = 16


class AbstractStatistics:
    """What is known of everybody's statistics, wherever these are.

    Attributes
    ----------
    user_ids : array of shape (n_users,)
        The ids of the people.
    origin : array of shape (n_features,)
        The point that means are measured from.
    class_weight : array of shape (n_users, 2)
        Number (or weight) of negatives and positives; or of each grade.
    """

    user_ids: IdArray
    origin: Float
    class_weight: Float

    @property
    def n_users(self) -> int:
        """How many people there are."""
        return len(self.user_ids)

    @property
    def n_features(self) -> int:
        """How many features an item has."""
        return len(self.origin)

    @property
    def has_pairs(self) -> Bool:
        """Who has labels of two kinds: the others have nothing to rank."""
        return has_both_classes(self.class_weight)


@dataclass(frozen=True)
class Statistics(AbstractStatistics):
    """Sufficient statistics of everybody's labels, for every quadratic loss.

    Attributes
    ----------
    user_ids : array of shape (n_users,)
        The ids of the people.
    origin : array of shape (n_features,)
        The point that means are measured from: near the data, so that features far from
        zero lose no digits.
    dense : ClassMoments
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
    dense: ClassMoments
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
        origin = near(table)
        grades = codes = None
        if graded and annotations.grades is not None:
            said = np.asarray(annotations.grades, dtype=np.float64)
            grades, codes = np.unique(said, return_inverse=True)
        rows = Rows.of_annotations(annotations, grade=codes)
        n_kinds = 2 if grades is None else len(grades)
        nobody = ClassMoments.empty(np.empty(0, dtype=np.intp), table.shape[1], n_kinds)
        return cls(annotations.user_ids, origin, nobody, rows, form, grades).settled()

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
        counts : array of shape (n_users,)
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
        dense: ClassMoments | None = None
        few: list[Rows] = []
        waiting: list[Rows] = []
        for said in batches:
            if dense is None:
                user_ids, origin = said.user_ids, near(said.features)
                n_kinds = 2 if grades is None else len(grades)
                many = np.flatnonzero(counts >= _enough("auto", len(origin), n_kinds))
                dense = ClassMoments.empty(many, len(origin), n_kinds)
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

    @cached_property
    def class_weight(self) -> Float:  # type: ignore[override] # nobody sets it
        """Number (or weight) of negatives and positives, (n_users, 2); or of each grade."""
        weight = self.rows.class_weight(self.n_users, self.n_kinds)
        weight[self.dense.people] = self.dense.weight
        return weight

    @property
    def n_kinds(self) -> int:
        """How many kinds of labels there are: 2, or the number of grades."""
        return 2 if self.grades is None else len(self.grades)

    def update(self, annotations: Annotations) -> "Statistics":
        """Return the statistics with more rows, of the same people or of new ones."""
        graded = self.grades is not None
        return self.merge(Statistics.from_annotations(annotations, self.form, graded=graded))

    def merge(self, other: "Statistics") -> "Statistics":
        """Return the statistics of the rows of both; people are matched by their ids."""
        return Statistics.joined([self, other])

    @classmethod
    def joined(cls, parts: "Sequence[Statistics]") -> "Statistics":
        """Return the statistics of the rows of all parts; people are matched by their ids."""
        for one in parts[1:]:
            if one.n_features != parts[0].n_features:
                raise ValueError(
                    f"Cannot merge statistics of {parts[0].n_features} and of {one.n_features} "
                    "features."
                )
        by_grade = [one.grades for one in parts if one.grades is not None]
        if len(by_grade) == len(parts):
            grades = reduce(np.union1d, by_grade)
            parts = [one.with_grades(grades) for one in parts]
        places, user_ids = _align([one.user_ids for one in parts])
        first, both = parts[0], list(zip(parts, places, strict=True))
        dense = ClassMoments.joined([one._moved(first.origin, place) for one, place in both])
        few = [replace(one.rows, people=place[one.rows.people]) for one, place in both]
        rows = Rows.join(few, len(user_ids))
        return cls(user_ids, first.origin, dense, rows, first.form, first.grades).settled()

    def _moved(self, origin: Float, places: Index) -> ClassMoments:
        """Return arrays as seen from another origin, of people who have other positions."""
        shift = (self.origin - origin) * (self.dense.weight > 0)[..., None]
        people, mean = places[self.dense.people], self.dense.mean + shift
        return replace(self.dense, people=people, mean=mean)

    def of_users(self, chosen: Bool) -> "Statistics":
        """Return the statistics of some of the people (a mask over ``user_ids``)."""
        place = np.cumsum(chosen) - 1
        many, few = chosen[self.dense.people], chosen[self.rows.people]
        rows = self.rows.of(few)
        return replace(
            self,
            user_ids=self.user_ids[chosen],
            dense=self.dense.of_users(many, place[self.dense.people[many]]),
            rows=replace(rows, people=place[rows.people]),
        )

    def in_two_classes(self, positive: Bool) -> "Statistics":
        """Return the same by yes or no: ``positive`` says which of the grades are a yes."""
        dense = self.dense.in_two_classes(positive)
        rows = Rows.join([replace(self.rows, grade=None)], self.n_users)
        return replace(self, dense=dense, rows=rows, grades=None).settled()

    def with_grades(self, grades: Float) -> "Statistics":
        """Return the same statistics where there are more grades."""
        if self.grades is None or len(grades) == len(self.grades):
            return self
        place = np.searchsorted(grades, self.grades)
        codes = None if self.rows.grade is None else place[self.rows.grade]
        dense = self.dense.with_grades(place, len(grades))
        return replace(self, dense=dense, rows=replace(self.rows, grade=codes), grades=grades)

    def feature_scale(self) -> Float:
        """Return the standard deviation of each feature over all rows (1 if constant)."""
        return scale_from(*self.feature_sums())

    def feature_sums(self) -> SumTuple:
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
        return SumTuple(float(self.class_weight.sum()), first, second)

    def settled(self, enough: float | None = None) -> "Statistics":
        """Give arrays to those who have rows ``enough`` (see ``form``), or have arrays already."""
        if enough is None:
            enough = _enough(self.form, self.n_features, self.n_kinds)
        settled = (self.rows.counts >= enough) | np.isin(self.rows.people, self.dense.people)
        if not settled.any():
            return self
        found = ClassMoments.from_rows(self.rows.of(settled), self.origin, self.n_kinds)
        dense = self.dense.merge(found)
        return replace(self, dense=dense, rows=self.rows.of(~settled))


def scale_from(weight: float, first: Float, second: Float) -> Float:
    """Return the standard deviation of each feature (1 if constant): see `feature_sums`."""
    variance = second / weight - (first / weight) ** 2
    constant = variance <= 10 * np.finfo(np.float64).eps * second / weight
    return np.sqrt(np.where(constant, 1.0, variance))


def near(table: FloatArray) -> Float:
    """Return a point near the data: a few hundred rows, evenly spread, are enough."""
    return np.asarray(table[:: 1 + len(table) // 256].mean(axis=0, dtype=np.float64))


def _enough(form: Form, n_features: int, n_kinds: int) -> float:
    """Return the number of rows from which on people have arrays."""
    many = n_features * n_kinds / 2 if n_kinds <= _MOST_GRADES else np.inf
    return {"auto": many, "dense": 0, "factored": np.inf}[form]


def _align(ids: Sequence[IdArray]) -> tuple[list[Index], IdArray]:
    """Return where the ids of each part go in the union of all, and that union."""
    first, *others = ids
    if all(first is one or np.array_equal(first, one) for one in others):
        return [np.arange(len(first))] * len(ids), first
    every: IdArray = reduce(join_ids, ids)
    codes, union = encode(every, "user_ids")
    return np.split(codes, np.cumsum([len(one) for one in ids])[:-1]), union
