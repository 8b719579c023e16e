"""The result of reading an export, with counts and places of the records left out."""

import json
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from os import PathLike, fspath
from statistics import median
from typing import Any, TypeAlias

import numpy as np

from likeminds._util.atomic_files import readable
from likeminds._util.checks import listing
from likeminds._util.lazy_imports import pa
from likeminds._util.text_format import counted
from likeminds.data.annotations import Annotations
from likeminds.data.choice_sets import choice_sets, set_arguments
from likeminds.data.column_roles import as_arrow, default_verb
from likeminds.data.identifiers import as_id_array

# Features of the winner and of the loser of a comparison.
Sides: TypeAlias = tuple[tuple[float, ...], tuple[float, ...]]
# A user, the items shown, the best, and the worst (None if only the best was asked for).
ExportedChoice: TypeAlias = tuple[Hashable, tuple[Hashable, ...], Hashable, Hashable]
_N_PLACES = 3
_NO_WORDS = "numbers, or yes and no"
_NO_ID = "since its user or item is neither a text nor a number"


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int)


@dataclass(frozen=True)
class LeftOut:
    """Records that were left out for one reason, and the places of the first of them."""

    reason: str
    count: int
    places: tuple[str, ...]

    def __str__(self) -> str:
        """Return the number, the reason and the places."""
        more = ", ..." if self.count > len(self.places) else ""
        places = ", ".join(self.places)
        return f"{counted(self.count, 'record')} left out, {self.reason}: {places}{more}"


@dataclass(frozen=True)
class Export:
    """Labels, comparisons, choices and texts of a labelling or survey tool.

    Attributes
    ----------
    labels : list of (user, item, attribute, label)
        If a user labels an item twice, the later label wins.
    comparisons : list of (user, winner, loser)
        The preferred item of each pair, and the other one.
    texts : dict
        The texts of items, by their ids.
    left_out : tuple of LeftOut
        Records that were left out, with reasons and places.
    seconds : dict
        The median response time of each user, if the export has response times.
    ties : list of bool
        Which comparisons have no winner; empty if the export has no ties.
    features, feature_names : list of pairs of tuples, tuple of str
        Features of the winner and the loser of each comparison, if there are any.
    categories : list
        The category of each comparison; empty without categories.
    choices : list of (user, shown, best, worst)
        Choices among several items; the worst is None if only the best was asked for.
    concepts : list of tuple of float
        The features of the concepts of a conjoint, named by ``feature_names``. Items of ``choices``
        are then positions in this list.
    """

    labels: list[tuple[Hashable, Hashable, str, Any]]
    comparisons: list[tuple[Hashable, Hashable, Hashable]]
    texts: dict[Hashable, str]
    left_out: tuple[LeftOut, ...]
    seconds: dict[Hashable, float] = field(default_factory=dict)
    ties: list[bool] = field(default_factory=list)
    features: list[Sides] = field(default_factory=list)
    feature_names: tuple[str, ...] = ()
    categories: list[Hashable] = field(default_factory=list)
    choices: list[ExportedChoice] = field(default_factory=list)
    concepts: list[tuple[float, ...]] = field(default_factory=list)

    def of_category(self, category: str) -> "Export":
        """Return the comparisons of one category."""
        rows = [row for row, one in enumerate(self.categories) if str(one) == category]
        if not rows:
            known = listing(sorted({str(one) for one in self.categories}))
            raise ValueError(f"No comparison is about {category!r}; the categories are {known}.")
        parts: dict[str, Any] = {
            name: [values[row] for row in rows] if (values := getattr(self, name)) else []
            for name in ("comparisons", "ties", "features", "categories")
        }
        return replace(self, labels=[], **parts)

    def comparison_annotations(self) -> Annotations:
        """Return the comparisons as `Annotations`, with ties and features of the two sides."""
        if not self.comparisons:
            raise ValueError(self._nothing(None))
        won, lost = zip(*self.features, strict=True) if self.features else (None, None)
        users, winners, losers = zip(*self.comparisons, strict=True)
        return Annotations.from_comparisons(
            users,
            winners,
            losers,
            ties=self.ties if any(self.ties) else None,
            features=None if won is None else (np.array(won), np.array(lost)),
            feature_names=self.feature_names or None,
        )

    def choice_annotations(self) -> Annotations:
        """Return the choices as `Annotations`; concepts of a conjoint are rows of features."""
        return Annotations._of_sets(self.choice_arguments())

    def choice_arguments(self) -> dict[str, Any]:
        """Return the choices as arguments of `Annotations`, with a row for each item of a set."""
        if not self.choices:
            raise ValueError(self._nothing(None))
        users, shown, best, worst = zip(*self.choices, strict=True)
        sets = choice_sets(shown, best, worst=worst, n_users=len(users))
        rows = set_arguments(sets, as_id_array(users, "users"), None, {})
        if self.concepts:
            features = np.array(self.concepts)[rows["items"]]
            rows |= {"items": None, "item_ids": None, "features": features}
            rows |= {"features_per": "row", "feature_names": self.feature_names}
        return rows

    def to_table(self, attribute: str | None = None) -> "pa.Table":
        """Return the labels as a pyarrow.Table with columns user, item, label (and attribute).

        Parameters
        ----------
        attribute : str, optional
            Select the labels about this attribute; the table then has no column for it.
        """
        rows = [row for row in self.labels if attribute is None or row[2] == attribute]
        if not rows:
            raise ValueError(self._nothing(attribute))
        user, item, about, label = zip(*rows, strict=True)
        columns = {"user": user, "item": item, "label": label}
        if attribute is None and len(set(about)) > 1:
            columns["attribute"] = about
        return pa.table({name: as_arrow(list(values)) for name, values in columns.items()})

    def annotations(self, attribute: str | None = None, **options: Any) -> Annotations:
        """Return the labels as `Annotations`; options are those of `Annotations.from_frame`."""
        attributes = self.attributes if attribute is None else [attribute]
        self.refuse_mixed(attribute)
        if len(attributes) == 1:
            options.setdefault("verb", default_verb(options.get("positive"), attributes[0]))
        return Annotations.from_frame(self.to_table(attribute), **options)

    @property
    def attributes(self) -> list[str]:
        """The questions, in the order of the export."""
        return list(dict.fromkeys(row[2] for row in self.labels))

    def __str__(self) -> str:
        """Return the numbers of labels, comparisons and choices, and of records left out."""
        sizes = (len(self.labels), len(self.comparisons), len(self.choices))
        kinds = zip(sizes, ("label", "comparison", "choice"), strict=True)
        found = [counted(size, kind) for size, kind in kinds if size]
        return "\n".join([" and ".join(found or ["0 labels"]), *map(str, self.left_out)])

    def refuse_mixed(self, attribute: str | None) -> None:
        """Raise ValueError if questions have no common label, unless an attribute is chosen."""
        if attribute is not None:
            return
        answers: dict[str, set[str]] = {}
        for _, _, about, label in self.labels:
            answers.setdefault(about, set()).add(label if isinstance(label, str) else _NO_WORDS)
        for one, other in combinations(answers, 2):
            if answers[one].isdisjoint(answers[other]):
                two = (f"{name!r} by {listing(sorted(answers[name]))}" for name in (one, other))
                raise ValueError(
                    f"The questions have different labels: {', but '.join(two)}. Pass attribute= "
                    "to choose one."
                )

    def _nothing(self, attribute: str | None) -> str:
        if self.labels:
            known = ", ".join(self.attributes)
            return f"No label is about {attribute!r}; the attributes are {known}."
        why = "".join(f" {left}." for left in self.left_out)
        return f"There are no labels in this export.{why}"


@dataclass
class Collector:
    """Collects an export, record by record."""

    labels: dict[tuple[Hashable, Hashable, str], Any] = field(default_factory=dict)
    found: Export = field(default_factory=lambda: Export([], [], {}, ()))
    ticks: dict[str, list[tuple[Hashable, Hashable, list[str], str]]] = field(default_factory=dict)
    reasons: dict[str, list[str]] = field(default_factory=dict)
    times: dict[Hashable, list[float]] = field(default_factory=dict)
    feature_names: tuple[str, ...] = ()

    def add(
        self, user: Hashable, item: Hashable, attribute: str, label: object, where: str
    ) -> None:
        """Add a label; it replaces an earlier one, which is counted as left out."""
        if not (_is_plain(user) and _is_plain(item)):
            self.leave_out(_NO_ID, where)
            return
        if not isinstance(label, str | int | float):
            self.leave_out("since it is neither a label nor a rating", where)
            return
        key = (user, item, attribute)
        if key in self.labels:
            self.leave_out("since the same user labelled the same item again later", where)
            del self.labels[key]
        self.labels[key] = label

    def add_comparison(
        self,
        user: Hashable,
        winner: Hashable,
        loser: Hashable,
        where: str,
        *,
        tie: bool = False,
        features: Sides | None = None,
        category: Hashable = None,
    ) -> None:
        """Add a comparison of two different items."""
        if not (_is_plain(user) and _is_plain(winner) and _is_plain(loser)):
            self.leave_out(_NO_ID, where)
        elif winner == loser:
            self.leave_out("since an item was compared with itself", where)
        else:
            found = self.found
            if category is not None or found.categories:
                known = len(found.comparisons) - len(found.categories)
                found.categories.extend([None] * known + [category])
            found.comparisons.append((user, winner, loser))
            found.ties.append(tie)
            if features is not None:
                found.features.append(features)

    def add_choice(
        self,
        user: str,
        shown: Sequence[Hashable],
        best: Hashable,
        worst: Hashable,
        where: str,
    ) -> None:
        """Add a choice of the best item among those shown, and of the worst unless it is None."""
        if not user or "" in shown:
            self.leave_out("since it lacks its user, or the id of an item", where)
        elif len(set(shown)) < max(2, len(shown)):
            self.leave_out("since it does not show two or more different items", where)
        elif best not in shown or not (worst is None or worst in shown):
            self.leave_out("since the best or the worst item is not among those shown", where)
        elif best == worst:
            self.leave_out("since one item is both the best and the worst", where)
        else:
            self.found.choices.append((user, tuple(shown), best, worst))

    def tick(
        self, user: Hashable, item: Hashable, attribute: str, choices: object, where: str
    ) -> None:
        """Add the choices that a user ticked, of which there may be several.

        If any user ticked several, each choice becomes a yes-or-no attribute. This is decided after
        the last record.
        """
        if not isinstance(choices, list) or not all(isinstance(one, str) for one in choices):
            self.leave_out("since it is not a list of choices", where)
            return
        self.ticks.setdefault(attribute, []).append((user, item, choices, where))

    def records(self, path: str | PathLike[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the records of a JSON list or of JSON Lines, each with a description of its place.

        Broken lines, and records that are not objects, are left out and counted. A broken list
        raises ValueError.
        """
        text = read_text(path)
        if text.lstrip().startswith("["):
            for number, record in enumerate(read_json(path), 1):
                yield from self._object(record, f"record {number}")
            return
        for number, line in enumerate(text.splitlines(), 1):
            try:
                record = json.loads(line) if line.strip() else None
            except json.JSONDecodeError:
                self.leave_out("since it is not valid JSON", f"line {number}")
                continue
            if line.strip():
                yield from self._object(record, f"line {number}")

    def _object(self, value: object, where: str) -> Iterator[tuple[str, dict[str, Any]]]:
        if isinstance(value, dict):
            yield where, value
        else:
            self.leave_out("since it is not a JSON object", where)

    def objects(
        self, values: object, where: str, what: str
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the objects of a list inside a record, with their places; others are left out."""
        if not isinstance(values, list):
            self.leave_out(f"since {what}s are not a list", where)
            return
        for number, value in enumerate(values, 1):
            yield from self._object(value, f"{where}, {what} {number}")

    def add_text(self, item: object, text: str | None) -> None:
        """Store the text of an item, if it has one."""
        if text is not None and _is_plain(item):
            self.found.texts[item] = text

    def add_time(self, user: Hashable, seconds: object) -> None:
        """Store the response time of an answer, if it is known."""
        if isinstance(seconds, int | float) and seconds > 0:
            self.times.setdefault(user, []).append(float(seconds))

    def leave_out(self, reason: str, where: str) -> None:
        """Count a record that is left out."""
        self.reasons.setdefault(reason, []).append(where)

    def export(self) -> Export:
        """Return the collected export."""
        self._add_ticks()
        return replace(
            self.found,
            labels=[(*key, label) for key, label in self.labels.items()],
            left_out=tuple(
                LeftOut(reason, len(places), tuple(places[:_N_PLACES]))
                for reason, places in self.reasons.items()
            ),
            seconds={user: median(times) for user, times in self.times.items()},
            ties=self.found.ties if any(self.found.ties) else [],
            feature_names=self.feature_names,
        )

    def _add_ticks(self) -> None:
        for attribute, rows in self.ticks.items():
            if all(len(choices) == 1 for _, _, choices, _ in rows):
                for user, item, choices, where in rows:
                    self.add(user, item, attribute, choices[0], where)
                continue
            offered = dict.fromkeys(choice for _, _, choices, _ in rows for choice in choices)
            for user, item, choices, where in rows:
                for choice in offered:
                    self.add(user, item, f"{attribute}: {choice}", choice in choices, where)
        self.ticks = {}


def read_json(path: str | PathLike[str]) -> Any:
    """Read one JSON document; errors name the broken line."""
    try:
        return json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{fspath(path)} is not valid JSON: {error.msg} on line {error.lineno}, "
            f"column {error.colno}. Was the export cut short?"
        ) from None


def text_of(fields: object) -> str | None:
    """Return the text of a record: its field called text, or else its first text."""
    if not isinstance(fields, dict):
        return fields if isinstance(fields, str) else None
    texts = [value for value in (fields.get("text"), *fields.values()) if isinstance(value, str)]
    return next(filter(None, texts), None)


def read_text(path: str | PathLike[str]) -> str:
    """Read a text; raise ValueError for other encodings than UTF-8."""
    try:
        return readable(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        reason = error.reason
        raise ValueError(f"{fspath(path)} is not UTF-8 text: {reason}. Convert it.") from None
