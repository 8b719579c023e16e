"""The result of `find_schools`: schools, outliers, and the directions in which users differ."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from likeminds._util.array_types import Bool, Float, IdArray, Index
from likeminds._util.checks import did_you_mean
from likeminds._util.result_tables import Frames, ResultTable, Rows, as_kind
from likeminds._util.text_format import LIKE, Verb, counted
from likeminds.data.identifiers import lookup
from likeminds.metrics.severity import Severity
from likeminds.schools.population import JudgedItem, WeightLevels, score_variances
from likeminds.schools.school_soft_labels import SoftLabels

LEVELS = ("consensus", "group", "personal")

# Plain values, for JSON and for sentences.
Facts = dict[str, Any]


@dataclass(frozen=True, eq=False)
class School:
    """Users who rank alike.

    Attributes
    ----------
    number : int
        From 1, the largest school first.
    name : str
        Its strongest features in words. If feature names have no meaning, the items that it likes
        or rejects unlike other users.
    size, share : int and float
        The number and the share of its users.
    stability : float
        The mean Jaccard index with the schools of bootstrap samples. Below 0.6, the school is
        hardly separate from others.
    features : dict
        Its distinctive features, strongest first, with the effect of each on the school's scores.
        Scores have a standard deviation of about one. The sign is that of the weight.
    weights : array of shape (n_features,)
        The mean weights of the members, after scaling their scores to about the same spread.
    typical : tuple of JudgedItem
        Its highest-ranked items; the value is the share of items that each beats.
    divisive : tuple of JudgedItem
        The items about which it disagrees most with other users; the value is the share of items
        beaten, less that for other users.
    """

    number: int
    name: str
    size: int
    share: float
    stability: float
    features: dict[str, float]
    weights: Float
    typical: tuple[JudgedItem, ...]
    divisive: tuple[JudgedItem, ...]

    def to_dict(self) -> Facts:
        """Return all but the weights as plain values, for JSON.

        ``beats`` is the share of items below an item. ``places`` is that share, less that for other
        users.
        """
        plain = {name: value for name, value in vars(self).items() if name != "weights"}
        return plain | {
            "typical": plain_items(self.typical, "beats"),
            "divisive": plain_items(self.divisive, "places"),
        }


@dataclass(frozen=True, eq=False)
class Axis:
    """A direction in which users differ.

    Attributes
    ----------
    share : float
        Its share of the group level's disagreement.
    low, high : str
        The preferences of users at its two ends.
    strength, weights : arrays of shape (n_features,)
        The effect of one standard deviation towards ``high`` on strengths (see `School.features`)
        and weights.
    """

    share: float
    low: str
    high: str
    strength: Float
    weights: Float


@dataclass(frozen=True, eq=False, repr=False)
class Schools(ResultTable):
    """The schools of thought that `find_schools` finds: a sequence of `School`.

    It is empty if users differ gradually. ``schools[1]`` is the school with number 1.

    Attributes
    ----------
    user_ids : array of shape (n_users,)
        The users.
    labels : array of shape (n_users,)
        The position in ``schools`` of each user's school; -1 if there are no schools.
    membership : array of shape (n_users, n_schools)
        The probability that each user belongs to each school.
    schools : tuple of School
        The schools, the largest first.
    feature_names, feature_words : tuples of str
        The features, and words for them: names, or the items with the highest and lowest values.
    strength : array of shape (n_schools, n_features)
        The strength of each feature in each school; see `School.features`.
    feature_school : array of shape (n_features,)
        The school that each feature distinguishes most, or -1. With ``labels``, this gives
        co-clusters of users and features.
    coordinates : array of shape (n_users, k)
        Positions in the strong directions of the group level.
    axes : tuple of Axis
        These directions, in words.
    level_shares : array of shape (n_users, 3)
        The shares of consensus, group and personal in the variance of each user's scores.
    outlier : array of shape (n_users,)
        Whether each user's personal level is larger than chance explains.
    divisive : tuple of JudgedItem
        The items that divide users most; the value is the standard deviation over users of the
        share of items that each beats.
    spread : array of shape (n_features, n_features)
        The covariance of the items' features, used for distances between users.
    criterion, agreement : dict and float
        The criterion by number of schools (the lowest is chosen), and the mean adjusted Rand index
        with the partitions of bootstrap samples.
    suggested : bool
        Whether the number of schools was chosen from the data.
    agreed : tuple of JudgedItem
        The items with the highest `SoftLabels.at_least`, which is the value: a bound of the share
        of yes in every school, or at both ends of every axis.
    soft_labels : SoftLabels or None
        The predicted share of yes to each item, of all users and of each school. None without
        items, or if scores are not log-odds and no labels calibrate them.
    verb : Verb
        The words of explanations for a positive label, such as "like"; set by
        ``Annotations(verb=...)``.
    severity : Severity or None
        Users' shares of positive labels; None for choices and grades.
    """

    user_ids: IdArray
    labels: Index
    membership: Float
    schools: tuple[School, ...]
    feature_names: tuple[str, ...]
    feature_words: tuple[str, ...]
    strength: Float
    feature_school: Index
    coordinates: Float
    axes: tuple[Axis, ...]
    level_shares: Float
    outlier: Bool
    divisive: tuple[JudgedItem, ...]
    spread: Float
    criterion: dict[int, float] = field(default_factory=dict)
    agreement: float = 1.0
    suggested: bool = True
    agreed: tuple[JudgedItem, ...] = ()
    soft_labels: SoftLabels | None = None
    verb: Verb = LIKE
    severity: Severity | None = None
    frames: Frames = "pyarrow"

    def __len__(self) -> int:
        return len(self.schools)

    def __iter__(self) -> Iterator[School]:
        return iter(self.schools)

    def __getitem__(self, number: int) -> School:
        if 1 <= number <= len(self):
            return self.schools[number - 1]
        if self.schools:
            raise KeyError(f"There is no school {number}; choose a number from 1 to {len(self)}.")
        raise KeyError(f"There is no school {number}, because no schools were found.")

    @property
    def everywhere(self) -> str:
        """Words for the groups that agree on the `agreed` items; empty if all users agree."""
        if self.schools:
            return "in every school"
        return "at both ends of what divides people" if self.axes else ""

    @property
    def outliers(self) -> IdArray:
        """The users whose personal level is larger than chance explains."""
        return self.user_ids[self.outlier]

    def members(self, number: int) -> IdArray:
        """Return the users of a school, by its number, the most probable members first."""
        position = self.schools.index(self[number])
        members = np.flatnonzero(self.labels == position)
        return self.user_ids[
            members[np.argsort(-self.membership[members, position], kind="stable")]
        ]

    def of_user(self, user: Hashable) -> School | None:
        """Return the school of a user; None if there are no schools."""
        place = position_of(user, self.user_ids)
        return self.schools[int(self.labels[place])] if self.schools else None

    @property
    def numbers(self) -> Index:
        """The number of each user's school; 0 if there are no schools."""
        return self.labels + 1

    def to_arrow(self) -> pa.Table:
        """Return a table of pyarrow with a row per school: number, name, size, stability."""
        columns = {"number": pa.int64(), "name": pa.string(), "size": pa.int64()}
        columns |= {"share": pa.float64(), "stability": pa.float64()}
        rows = [{name: getattr(school, name) for name in columns} for school in self]
        return pa.Table.from_pylist(rows, pa.schema(columns))

    def users(self) -> Any:
        """Return a table of users: school and its probability, level shares, outlier.

        The school is 0 if there are no schools.
        """
        columns: dict[str, Any] = {
            "user": self.user_ids.tolist(),
            "school": self.numbers,
            "membership": self.membership.max(axis=1, initial=0.0),
        }
        columns |= {name: self.level_shares[:, i] for i, name in enumerate(LEVELS)}
        return as_kind(pa.table(columns | {"outlier": self.outlier}), self.frames)

    def to_dict(self) -> Facts:
        """Return the schools, axes, outliers, agreed and divisive items as plain values, for JSON.

        For an item, ``spread`` is the standard deviation over users of the share of items it beats.
        ``at_least`` is the lowest predicted share of yes of a school (or end of an axis). ``share``
        and ``by_school`` are those of all users and of each school, with standard errors.
        """
        return {
            "users": len(self.user_ids),
            "verb": self.verb.many(),
            "severity": None if self.severity is None else self.severity.to_dict(),
            "n_schools": len(self),
            "everywhere": self.everywhere,
            "suggested": self.suggested,
            "agreement": self.agreement,
            "schools": [school.to_dict() for school in self.schools],
            "axes": [{"share": a.share, "low": a.low, "high": a.high} for a in self.axes],
            "level_shares": named_shares(self.level_shares.mean(axis=0)),
            "outliers": self.outliers.tolist(),
            "agreed": self._with_shares(self.agreed, "at_least"),
            "divisive": self._with_shares(self.divisive, "spread"),
        }

    def _with_shares(self, judged: tuple[JudgedItem, ...], what: str) -> list[Facts]:
        plain, soft = plain_items(judged, what), self.soft_labels
        if soft is None:
            return plain
        return [facts | soft.of_row(one.row) for facts, one in zip(plain, judged, strict=True)]

    def __str__(self) -> str:
        lines = [self._headline()]
        if self.schools:
            lines += [
                f"  {s.number}. {counted(s.size, 'person', 'people')}, "
                f"stability {s.stability:.2f}\n     {s.name}"
                for s in self.schools
            ]
        else:
            lines += [f"  {a.share:.0%}: {a.low}  <->  {a.high}" for a in self.axes]
        if self.outlier.any():
            lines.append(f"  {counted(int(self.outlier.sum()), 'outlier')}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<{self._headline()}>"

    def _html_tables(self) -> Sequence[Rows]:
        axes = [{"share": a.share, "from": a.low, "to": a.high} for a in self.axes]
        return self.to_arrow().to_pylist(), axes

    def _headline(self) -> str:
        users = counted(len(self.user_ids), "person", "people")
        if self.schools:
            return f"{len(self)} schools of thought among {users}"
        if self.axes:
            return f"No separate schools of thought: {users} differ gradually"
        severity = (
            f"; {self.severity}" if self.severity is not None and self.severity.differs else ""
        )
        return f"No difference between rankings that these labels can show: {users}{severity}"


def variance_shares(levels: WeightLevels, spread: Float) -> Float:
    """Return each level's share of the sum of score variances, (n_users, 3)."""
    parts = np.column_stack(
        [
            np.repeat(score_variances(levels.consensus[None], spread), len(levels.users)),
            score_variances(levels.group, spread),
            score_variances(levels.personal, spread),
        ]
    )
    total = parts.sum(axis=1, keepdims=True)
    return np.asarray(np.where(total > 0, parts / np.where(total > 0, total, 1.0), [1.0, 0.0, 0.0]))


def position_of(user: Hashable, users: IdArray) -> int:
    """Return the position of a user; raise KeyError, with the nearest id, if unknown."""
    place = int(lookup([user], users, "users")[0])
    if place < 0:
        raise KeyError(
            f"{user!r} is not among the {len(users)} users of this model."
            f"{did_you_mean(user, users.tolist())}"
        )
    return place


def plain_items(judged: Iterable[JudgedItem], what: str) -> list[Facts]:
    """Return items with their texts, if any, and their values under a given name."""
    return [
        {"item": one.item.item() if isinstance(one.item, np.generic) else one.item}
        | ({} if one.text is None else {"text": one.text})
        | {what: one.value}
        for one in judged
    ]


def named_shares(shares: Float) -> dict[str, float]:
    """Return the shares of the levels by name."""
    return dict(zip(LEVELS, shares.tolist(), strict=True))
