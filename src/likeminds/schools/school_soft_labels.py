"""Soft labels: the share of a crowd, and of each of its schools, that would say yes to an item."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.random import Generator
from scipy import sparse

from likeminds._util.array_types import Bool, Float, IdArray, Index
from likeminds._util.result_tables import Frames, ResultTable
from likeminds._util.text_format import counted
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import lookup
from likeminds.schools.items import Items
from likeminds.schools.yes_log_odds import YesLogOdds

# The normal quantile of bounds that hold with a probability of 95 %.
BOUND = 1.645
# Of more people than these, a sample of so many is asked what they would say about items they
# have not judged; and of every school at least so many.
_MOST_PEOPLE, _FEWEST = 1_000, 20
# Numbers that are computed at a time.
_AT_ONCE = 1 << 21


@dataclass(frozen=True, eq=False)
class SoftLabels(ResultTable):
    """The shares of people who would say yes to items.

    People who judged an item count as they said, the others as they are predicted.

    Attributes
    ----------
    items, rows : arrays of shape (n_items,)
        The items, and their rows in the table of features, ascending.
    n_votes : array of shape (n_items,)
        How many people judged each.
    share, error : arrays of shape (n_items,)
        The share of the crowd that would say yes, and its standard error.
    by_school, error_by_school : arrays of shape (n_schools, n_items)
        The same for each school; no rows where there are no schools.
    at_ends, error_at_ends : arrays of shape (n_axes, 2, n_items)
        The same for people at the low and the high end of each direction.
    """

    items: IdArray
    rows: Index
    n_votes: Index
    share: Float
    error: Float
    by_school: Float
    error_by_school: Float
    at_ends: Float
    error_at_ends: Float
    frames: Frames = "pyarrow"

    @cached_property
    def at_least(self) -> Float:
        """The share that would say yes in every school: the least of the schools' lower bounds.

        Where people differ gradually, without schools, the least of the bounds of the crowd and
        at both ends of every direction: what most of them like may still divide them. Each bound
        holds with a probability of 95 %.
        """
        share, error = self.by_school, self.error_by_school
        if not len(share):
            n_items = len(self.items)
            share = np.vstack([self.share, self.at_ends.reshape(-1, n_items)])
            error = np.vstack([self.error, self.error_at_ends.reshape(-1, n_items)])
        return np.asarray(np.clip((share - BOUND * error).min(axis=0), 0.0, 1.0))

    def of_schools(self, n_schools: int, frames: Frames) -> "SoftLabels":
        """Return the shares of so many schools, with tables of a kind."""
        own, error = self.by_school[:n_schools], self.error_by_school[:n_schools]
        return replace(self, by_school=own, error_by_school=error, frames=frames)

    def of_row(self, row: int) -> dict[str, Any]:
        """Return votes, shares and errors of the item in a row of the table of features."""
        place = int(np.searchsorted(self.rows, row))
        return {
            "votes": int(self.n_votes[place]),
            "at_least": float(self.at_least[place]),
            "share": float(self.share[place]),
            "error": float(self.error[place]),
            "by_school": self.by_school[:, place].tolist(),
            "error_by_school": self.error_by_school[:, place].tolist(),
        }

    def to_arrow(self) -> pa.Table:
        """Return a table of pyarrow with a row per item: votes, shares and standard errors."""
        columns: dict[str, Any] = {
            "item": self.items.tolist(),
            "votes": self.n_votes,
            "share": self.share,
            "error": self.error,
            "at_least": self.at_least,
        }
        both = zip(self.by_school, self.error_by_school, strict=True)
        for number, (share, error) in enumerate(both, start=1):
            columns |= {f"school_{number}": share, f"error_{number}": error}
        return pa.table(columns)

    def _headline(self) -> str:
        return f"Shares of people who would say yes to {counted(len(self.items), 'item')}"


@dataclass(frozen=True, eq=False)
class VoteMatrices:
    """Votes of people on items, as sparse matrices.

    Attributes
    ----------
    said, yes : sparse arrays of shape (n_users, n_items)
        Ones where a person judged an item, and which share of their labels were positive.
    """

    said: sparse.csr_array
    yes: sparse.csr_array

    @classmethod
    def of_annotations(
        cls, annotations: Annotations | None, users: IdArray, items: Items
    ) -> "VoteMatrices":
        """Take the labels of known people about these items; without annotations, there are none.

        Several labels of one person about one item are one vote: their mean, by weight.
        """
        shape = (len(users), len(items))
        if annotations is None:
            return cls(sparse.csr_array(shape), sparse.csr_array(shape))
        people = lookup(annotations.user_ids, users, "users")[annotations.user_codes]
        about = items.positions_of(annotations)
        weight = np.ones(len(people)) if annotations.weights is None else annotations.weights
        counts = (people >= 0) & (about >= 0) & (weight > 0)
        where = (people[counts], about[counts])
        total = sparse.csr_array((weight[counts], where), shape=shape)
        positive = weight[counts] * annotations.labels[counts]
        yes = sparse.csr_array((positive, where), shape=shape)
        total.sum_duplicates()
        yes.sum_duplicates()
        yes.data = yes.data / total.data  # both have the same places, in the same order
        total.data = np.ones_like(total.data)
        return cls(total, yes)


def shares_of_groups(
    liking: YesLogOdds, votes: VoteMatrices, groups: Bool, rng: Generator
) -> tuple[Float, Float]:
    """Return the share of each group of people that would say yes to each item.

    Parameters
    ----------
    liking : YesLogOdds
        What people would say.
    votes : VoteMatrices
        What they said.
    groups : array of shape (n_groups, n_users)
        Who belongs to which.
    rng : Generator
        Draws the sample where there are very many people.

    Returns
    -------
    share, error : arrays of shape (n_groups, n_items)
        The standard error has three parts: the Bernoulli variance of who did not vote; the
        variance of an item's log-odds that all people share; and, where not all are asked, the
        sampling variance.
    """
    member = groups.astype(np.float64)
    size = member.sum(axis=1)[:, None]
    voted, yes = (np.asarray((part.T @ member.T).T) for part in (votes.said, votes.yes))
    asked = _PredictedVotes.zero(len(groups), len(liking.rows))
    for people in _blocks(_chosen(groups, rng), len(liking.rows)):
        asked = asked.and_people(liking, votes, people, member[:, people])
    missing = np.maximum(size - voted, 0.0)
    # Where everybody asked has voted, voters speak for the few who have not.
    those = np.maximum(asked.number, 1.0)
    mean = np.where(asked.number > 0, asked.total / those, yes / np.maximum(voted, 1.0))
    within = np.maximum(asked.squares / those - mean**2, 0.0)
    not_asked = np.maximum(missing - asked.number, 0.0)
    variance = missing * (asked.chance / those) + missing * not_asked * within / those
    variance += (missing * asked.slope / those) ** 2 * liking.shared
    return (yes + missing * mean) / size, np.sqrt(variance) / size


@dataclass(frozen=True, eq=False)
class _PredictedVotes:
    """Sums over people asked who did not vote, by group and item."""

    number: Float
    total: Float
    squares: Float
    chance: Float
    slope: Float

    @classmethod
    def zero(cls, n_groups: int, n_items: int) -> "_PredictedVotes":
        return cls(*(np.zeros((n_groups, n_items)) for _ in range(5)))

    def and_people(
        self, liking: YesLogOdds, votes: VoteMatrices, people: Index, member: Float
    ) -> "_PredictedVotes":
        silent = 1.0 - votes.said[people].toarray()
        p, slope = (silent * part for part in liking.of_users(people))
        return _PredictedVotes(
            self.number + member @ silent,
            self.total + member @ p,
            self.squares + member @ p**2,
            self.chance + member @ (p * (1.0 - p)),
            self.slope + member @ slope,
        )


def _chosen(groups: Bool, rng: Generator) -> Index:
    n_users = groups.shape[1]
    if n_users <= _MOST_PEOPLE:
        return np.arange(n_users)
    order = rng.permutation(n_users)
    few = [order[mine[order]][:_FEWEST] for mine in groups]
    return np.unique(np.concatenate([order[:_MOST_PEOPLE], *few]))


def _blocks(people: Index, n_items: int) -> list[Index]:
    n = max(1, _AT_ONCE // max(n_items, 1))
    return [people[start : start + n] for start in range(0, len(people), n)]
