"""Weight, mean and scatter of everybody's rows, by class of label, as arrays.

Those of disjoint sets of rows merge exactly (Chan, Golub and LeVeque, 1983).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from likeminds._util.array_types import Bool, Float, Index
from likeminds._util.map_reduce import ThreadExecutor
from likeminds.losses.rows import Rows


@dataclass(frozen=True)
class ClassMoments:
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
    def empty(cls, people: Index, n_features: int, n_kinds: int = 2) -> "ClassMoments":
        """Return the statistics of no rows at all."""
        shape = (len(people), n_kinds)
        return cls(
            people,
            np.zeros(shape),
            np.zeros((*shape, n_features)),
            np.zeros((*shape, n_features, n_features)),
        )

    @classmethod
    def from_rows(cls, rows: Rows, origin: Float, n_kinds: int = 2) -> "ClassMoments":
        """Pass over the rows once, block by block."""
        dense = cls.empty(rows.people, len(origin), n_kinds)

        def fill(chosen: Index) -> None:
            found = _block_of(rows, chosen, origin)
            there = slice(0, found.weight.shape[1])  # these people may lack the best grades
            dense.weight[chosen, there] = found.weight
            dense.mean[chosen, there] = found.mean
            dense.scatter[chosen, there] = found.scatter

        ThreadExecutor(list(rows.plan())).each(fill)
        return dense

    def absorb(self, rows: Rows, origin: Float) -> None:
        """Add more rows of people who are here, block by block, in place."""
        places = np.searchsorted(self.people, rows.people)

        def add(chosen: Index) -> None:
            self._put(_block_of(rows, chosen, origin), places[chosen])

        ThreadExecutor(list(rows.plan())).each(add)

    @classmethod
    def joined(cls, parts: "Sequence[ClassMoments]") -> "ClassMoments":
        """Return the statistics of the rows of all parts, each of which is passed over once."""
        if len(parts) <= 2:
            return reduce(cls.merge, parts)
        people = np.unique(np.concatenate([one.people for one in parts]))
        found = cls.empty(people, parts[0].mean.shape[2], parts[0].mean.shape[1])
        for one in parts:
            here = np.searchsorted(people, one.people)
            found._put(replace(one, people=np.arange(len(here))), here)
        return found

    def _put(self, found: "ClassMoments", here: Index) -> None:
        """Merge what is found of some people, whose places are ``here``, into what they have."""
        there = slice(0, found.weight.shape[1])  # they may lack the best grades
        before = ClassMoments(
            found.people,
            self.weight[here, there],
            self.mean[here, there],
            self.scatter[here, there],
        )
        both = before.merge(found)
        self.weight[here, there] = both.weight
        self.mean[here, there] = both.mean
        self.scatter[here, there] = both.scatter

    def merge(self, other: "ClassMoments") -> "ClassMoments":
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
        return ClassMoments(people, weight, mean, first.scatter + second.scatter + between)

    def with_grades(self, place: Index, n_kinds: int) -> "ClassMoments":
        """Return the same where there are more grades, among which these have their places."""
        wide = ClassMoments.empty(self.people, self.mean.shape[2], n_kinds)
        wide.weight[:, place] = self.weight
        wide.mean[:, place] = self.mean
        wide.scatter[:, place] = self.scatter
        return wide

    def in_two_classes(self, positive: Bool) -> "ClassMoments":
        """Return the same by yes or no, where each grade is one of them."""
        found = ClassMoments.empty(self.people, self.mean.shape[2])
        for grade, is_one in enumerate(positive):
            only = np.s_[:, grade : grade + 1]
            one = ClassMoments(self.people, self.weight[only], self.mean[only], self.scatter[only])
            found = found.merge(one.with_grades(np.array([int(is_one)]), 2))
        return found

    def of_users(self, chosen: Bool, places: Index) -> "ClassMoments":
        """Return some of the people (a mask over ``people``), who have other positions now."""
        return ClassMoments(places, self.weight[chosen], self.mean[chosen], self.scatter[chosen])

    def _spread(self, people: Index) -> "ClassMoments":
        if np.array_equal(people, self.people):
            return self
        wide = ClassMoments.empty(people, self.mean.shape[2], self.mean.shape[1])
        place = np.searchsorted(people, self.people)
        wide.weight[place] = self.weight
        wide.mean[place] = self.mean
        wide.scatter[place] = self.scatter
        return wide


def _block_of(rows: Rows, chosen: Index, origin: Float) -> ClassMoments:
    """Return the statistics of some of the people (positions in ``rows.people``, as they come)."""
    weight, mean, scatter, among = rows.moments(chosen)
    moved = (mean + (among - origin)[:, None]) * (weight > 0)[..., None]
    return ClassMoments(np.arange(len(chosen)), weight, moved, scatter)
