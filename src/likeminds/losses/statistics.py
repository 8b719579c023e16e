"""Sufficient statistics of each user's rows, for every quadratic loss.

These are the number (or weight) of rows, their mean, and their scatter, for each user and class of
label. They are stored as arrays for users with many labels (*dense*, one d x d matrix per class),
else as pointers to rows (*factored*). Statistics of disjoint rows merge exactly (Chan, Golub and
LeVeque, 1983).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Literal

import numpy as np

from likeminds._util.array_types import Bool, Float, FloatArray, IdArray, Index
from likeminds._util.map_reduce import SumTuple, ThreadExecutor
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import encode, join_ids
from likeminds.losses.rows import Rows, has_both_classes

Form = Literal["auto", "dense", "factored"]
# With more grades than this, all users have rows, which take less memory.
_MOST_GRADES = 16


@dataclass(frozen=True)
class ClassMoments:
    """Weight, mean and scatter by class (or by K grades), for users with arrays."""

    # Positions of these users among all, ascending; shape (p,)
    users: Index = field(metadata={"stored": "people"})
    weight: Float  # shape (p, K)
    mean: Float  # from the origin, shape (p, K, d)
    scatter: Float  # shape (p, K, d, d)

    @classmethod
    def empty(cls, users: Index, n_features: int, n_kinds: int = 2) -> "ClassMoments":
        """Return the statistics of no rows."""
        shapes = [(len(users), n_kinds, *(n_features,) * power) for power in range(3)]
        return cls(users, *map(np.zeros, shapes))

    @classmethod
    def from_rows(cls, rows: Rows, origin: Float, n_kinds: int = 2) -> "ClassMoments":
        """Pass over the rows once, block by block."""
        moments = cls.empty(rows.users, len(origin), n_kinds)
        moments.absorb(rows, origin)
        return moments

    def absorb(self, rows: Rows, origin: Float) -> None:
        """Add more rows of these users, block by block, in place."""
        places = np.searchsorted(self.users, rows.users)
        ThreadExecutor(list(rows.plan())).each(
            lambda chosen: self._add(places[chosen], _moments_of(rows, chosen, origin))
        )

    @classmethod
    def joined(cls, parts: "Sequence[ClassMoments]") -> "ClassMoments":
        """Return the statistics of the rows of all parts, in one pass over each."""
        first, *others = [one for one in parts if len(one.users)] or parts[:1]
        if not others:
            return first
        users = np.unique(np.concatenate([one.users for one in (first, *others)]))
        total = cls.empty(users, first.mean.shape[2], first.mean.shape[1])
        for one in (first, *others):
            are_all = len(one.users) == len(users)
            places = slice(None) if are_all else np.searchsorted(users, one.users)
            total._add(places, one._arrays)
        return total

    @property
    def _arrays(self) -> tuple[Float, Float, Float]:
        return self.weight, self.mean, self.scatter

    def _add(
        self,
        places: Index | slice,
        moments: tuple[Float, Float, Float],
        kinds: slice | None = None,
    ) -> None:
        """Merge more rows of some users into theirs, in place (exact, Chan et al.)."""
        weight, mean, scatter = moments
        # Without ``kinds``, use the lowest grades, because some users lack the highest.
        where = (places, slice(weight.shape[1]) if kinds is None else kinds)
        own = self.weight[where]
        if not own.any():
            self.weight[where], self.mean[where], self.scatter[where] = moments
            return
        total = own + weight
        share = weight / np.where(total > 0, total, 1.0)
        step = mean - self.mean[where]
        between = (own * share)[..., None, None] * step[..., None] * step[..., None, :]
        self.weight[where] = total
        self.mean[where] += share[..., None] * step
        self.scatter[where] += scatter + between

    def recoded(self, kind: Index, n_kinds: int) -> "ClassMoments":
        """Return the statistics by other grades (or classes), given the new code of each grade."""
        total = ClassMoments.empty(self.users, self.mean.shape[2], n_kinds)
        for grade, number in enumerate(kind):
            one = [each[:, grade, None] for each in self._arrays]
            total._add(slice(None), (one[0], one[1], one[2]), kinds=slice(number, number + 1))
        return total

    def of_users(self, chosen: Bool, places: Index) -> "ClassMoments":
        """Return some of the users (a mask over ``users``) at new positions."""
        return ClassMoments(places, *(each[chosen] for each in self._arrays))


def _moments_of(rows: Rows, chosen: Index, origin: Float) -> tuple[Float, Float, Float]:
    """Return weight, mean and scatter of some of the users (positions in ``rows.users``)."""
    weight, mean, scatter, from_point = rows.moments(chosen)
    moved = (mean + (from_point - origin)[:, None]) * (weight > 0)[..., None]
    return weight, moved, scatter


class AbstractStatistics(ABC):
    """The totals of all users' statistics, in this process or on a cluster."""

    user_ids: IdArray
    origin: Float  # the point that means are measured from, shape (n_features,)
    class_weight: Float  # of negatives and positives, or of each grade; shape (n_users, 2)

    @property
    def n_users(self) -> int:
        """The number of users."""
        return len(self.user_ids)

    @property
    def n_features(self) -> int:
        """The number of features of an item."""
        return len(self.origin)

    @property
    def has_pairs(self) -> Bool:
        """Whether each user has labels of two classes, and so pairs to rank."""
        return has_both_classes(self.class_weight)

    @abstractmethod
    def feature_sums(self) -> SumTuple:
        """Return the weight of all rows, and sums of features and squares from the origin."""

    def feature_scale(self) -> Float:
        """Return the standard deviation of each feature over all rows (1 if constant)."""
        weight, first, second = self.feature_sums()
        variance = second / weight - (first / weight) ** 2
        constant = variance <= 10 * np.finfo(np.float64).eps * second / weight
        return np.sqrt(np.where(constant, 1.0, variance))


@dataclass(frozen=True)
class Statistics(AbstractStatistics):
    """Sufficient statistics of all users' labels, for every quadratic loss.

    Attributes
    ----------
    user_ids : array of shape (n_users,)
        The ids of the users.
    origin : array of shape (n_features,)
        The point that means are measured from, near the data for precision.
    dense : ClassMoments
        Statistics of the users with arrays.
    rows : Rows
        Rows of the other users, who have few labels.
    form : {"auto", "dense", "factored"}
        "auto" uses arrays for users with at least as many rows as features (K grades: times K/2).
    grades : array of shape (K,), optional
        The grades, ascending, if statistics are by grade.

    Examples
    --------
    >>> from likeminds.data.annotations import Annotations
    >>> annotations = Annotations(
    ...     users=["ann", "ann", "ann", "bob", "bob"],
    ...     items=None,
    ...     labels=[1, 0, 0, 0, 1],
    ...     features=[[1.0], [2.0], [4.0], [1.0], [3.0]],
    ... )
    >>> statistics = Statistics.from_annotations(annotations)
    >>> statistics.class_weight
    array([[2., 1.],
           [1., 1.]])
    >>> statistics.update(annotations).class_weight
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
        """Reduce annotations in one pass; with ``graded=True``, grades by grade."""
        if form not in ("auto", "dense", "factored"):
            raise ValueError(f'form must be "auto", "dense" or "factored", but is {form!r}.')
        origin = near(annotations.features)
        grades = codes = None
        if graded and annotations.grades is not None:
            given = np.asarray(annotations.grades, dtype=np.float64)
            grades, codes = np.unique(given, return_inverse=True)
        rows = Rows.of_annotations(annotations, grade=codes)
        n_kinds, no_users = 2 if grades is None else len(grades), np.empty(0, dtype=np.intp)
        empty = ClassMoments.empty(no_users, len(origin), n_kinds)
        return cls(annotations.user_ids, origin, empty, rows, form, grades).with_arrays()

    @classmethod
    def from_batches(
        cls,
        batches: Iterable[Annotations],
        counts: Index,
        grades: Float | None = None,
        *,
        at_once: int = 0,
    ) -> "Statistics":
        """Reduce annotations in pieces, which need not fit into memory together.

        Parameters
        ----------
        batches : iterable of Annotations
            The pieces, all with the same ``user_ids``.
        counts : array of shape (n_users,)
            The number of labels of each user in all pieces.
        grades : array, optional
            The grades, ascending, if statistics are by grade.
        at_once : int
            Join pieces up to this many bytes of features before updating matrices.

        Examples
        --------
        >>> from likeminds import load_electricity
        >>> households = load_electricity()
        >>> pieces, counts = [households[::2], households[1::2]], np.bincount(households.user_codes)
        >>> Statistics.from_batches(pieces, counts).class_weight.sum()
        np.float64(17232.0)
        """
        dense: ClassMoments | None = None
        few, pending = list[Rows](), list[Rows]()
        for batch in batches:
            if dense is None:
                user_ids, origin = batch.user_ids, near(batch.features)
                n_kinds = 2 if grades is None else len(grades)
                many = np.flatnonzero(counts >= _least_rows("auto", len(origin), n_kinds))
                dense = ClassMoments.empty(many, len(origin), n_kinds)
            codes = None
            if grades is not None and batch.grades is not None:
                codes = np.searchsorted(grades, batch.grades)
            rows = Rows.of_annotations(batch, grade=codes)
            is_dense = np.isin(rows.users, dense.users)
            pending.append(rows.of(is_dense))
            if 8 * len(origin) * sum(len(some.index) for some in pending) >= at_once:
                dense.absorb(Rows.join(pending, len(counts)), origin)
                pending.clear()
            left = rows.of(~is_dense)
            few.append(left if batch.features_per == "item" else left.compact())
        if dense is None:
            raise ValueError("batches is empty. Pass at least one Annotations.")
        if pending:
            dense.absorb(Rows.join(pending, len(counts)), origin)
            pending.clear()
        return cls(user_ids, origin, dense, Rows.join(few, len(counts)), "auto", grades)

    @cached_property
    def class_weight(self) -> Float:  # type: ignore[override] # never set
        """Number (or weight) of negatives and positives, (n_users, 2); or of each grade."""
        weight = self.rows.class_weight(self.n_users, self.n_kinds)
        weight[self.dense.users] = self.dense.weight
        return weight

    @property
    def n_kinds(self) -> int:
        """The number of classes: 2, or the number of grades."""
        return 2 if self.grades is None else len(self.grades)

    def update(self, annotations: Annotations) -> "Statistics":
        """Return the statistics with more rows, of known or new users."""
        more = Statistics.from_annotations(annotations, self.form, graded=self.grades is not None)
        return self.merge(more)

    def merge(self, other: "Statistics") -> "Statistics":
        """Return the statistics of the rows of both; users are matched by their ids."""
        return Statistics.joined([self, other])

    @classmethod
    def joined(cls, parts: "Sequence[Statistics]") -> "Statistics":
        """Return the statistics of the rows of all parts; users are matched by their ids."""
        widths = sorted({one.n_features for one in parts})
        if len(widths) > 1:
            raise ValueError(f"Cannot merge statistics of {widths[0]} and {widths[1]} features.")
        by_grade = [one.grades for one in parts if one.grades is not None]
        if len(by_grade) == len(parts):
            grades = reduce(np.union1d, by_grade)
            parts = [one.with_grades(grades) for one in parts]
        places, user_ids = _align([one.user_ids for one in parts])
        first, both = parts[0], list(zip(parts, places, strict=True))
        dense = ClassMoments.joined([one._moved(first.origin, place) for one, place in both])
        few = [replace(one.rows, users=place[one.rows.users]) for one, place in both]
        rows = Rows.join(few, len(user_ids))
        return cls(user_ids, first.origin, dense, rows, first.form, first.grades).with_arrays()

    def _moved(self, origin: Float, places: Index) -> ClassMoments:
        """Return arrays with another origin, and other positions of users."""
        shift = (self.origin - origin) * (self.dense.weight > 0)[..., None]
        return replace(self.dense, users=places[self.dense.users], mean=self.dense.mean + shift)

    def of_users(self, chosen: Bool) -> "Statistics":
        """Return the statistics of some of the users (a mask over ``user_ids``)."""
        place = np.cumsum(chosen) - 1
        many, few = chosen[self.dense.users], chosen[self.rows.users]
        rows = self.rows.of(few)
        return replace(
            self,
            user_ids=self.user_ids[chosen],
            dense=self.dense.of_users(many, place[self.dense.users[many]]),
            rows=replace(rows, users=place[rows.users]),
        )

    def in_two_classes(self, positive: Bool) -> "Statistics":
        """Return the statistics in two classes; ``positive`` is a mask of the grades."""
        dense = self.dense.recoded(positive.astype(np.intp), 2)
        rows = Rows.join([replace(self.rows, grade=None)], self.n_users)
        return replace(self, dense=dense, rows=rows, grades=None).with_arrays()

    def with_grades(self, grades: Float) -> "Statistics":
        """Return the same statistics with more grades."""
        if self.grades is None or len(grades) == len(self.grades):
            return self
        place = np.searchsorted(grades, self.grades)
        codes = None if self.rows.grade is None else place[self.rows.grade]
        dense = self.dense.recoded(place, len(grades))
        return replace(self, dense=dense, rows=replace(self.rows, grade=codes), grades=grades)

    def feature_sums(self) -> SumTuple:
        """Return the sums over all users."""
        dense = self.dense
        first = np.einsum("pc,pcd->d", dense.weight, dense.mean)
        second = np.einsum("pcdd->d", dense.scatter)
        second += np.einsum("pc,pcd->d", dense.weight, dense.mean**2)
        for block in self.rows.blocks(self.origin):
            row_weight = block.weight.sum(axis=1)
            first += np.einsum("pn,pnd->d", row_weight, block.rows)
            second += np.einsum("pn,pnd->d", row_weight, block.rows**2)
        return SumTuple(float(self.class_weight.sum()), first, second)

    def with_arrays(self, enough: float | None = None) -> "Statistics":
        """Reduce rows to arrays, for users with ``enough`` rows (see ``form``) or arrays."""
        if enough is None:
            enough = _least_rows(self.form, self.n_features, self.n_kinds)
        many = (self.rows.counts >= enough) | np.isin(self.rows.users, self.dense.users)
        if not many.any():
            return self
        found = ClassMoments.from_rows(self.rows.of(many), self.origin, self.n_kinds)
        return replace(
            self, dense=ClassMoments.joined([self.dense, found]), rows=self.rows.of(~many)
        )


def near(table: FloatArray) -> Float:
    """Return a point near the data: the mean of a few hundred evenly spaced rows."""
    return np.asarray(table[:: 1 + len(table) // 256].mean(axis=0, dtype=np.float64))


def _least_rows(form: Form, n_features: int, n_kinds: int) -> float:
    """Return the fewest rows for which users get arrays."""
    many = n_features * n_kinds / 2 if n_kinds <= _MOST_GRADES else np.inf
    return {"auto": many, "dense": 0, "factored": np.inf}[form]


def _align(ids: Sequence[IdArray]) -> tuple[list[Index], IdArray]:
    """Return the positions of each part's ids in the union of all, and that union."""
    first, *others = ids
    if all(first is one or np.array_equal(first, one) for one in others):
        return [np.arange(len(first))] * len(ids), first
    every: IdArray = reduce(join_ids, ids)
    codes, union = encode(every, "user_ids")
    return np.split(codes, np.cumsum([len(one) for one in ids])[:-1]), union
