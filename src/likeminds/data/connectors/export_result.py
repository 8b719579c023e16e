"""The result of reading an export: what is taken, and what is left out, counted and located."""

import json
from collections.abc import Hashable, Iterator
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
from likeminds.data.column_roles import as_arrow, default_verb

# Features of the winner and of the loser of a comparison.
Sides: TypeAlias = tuple[tuple[float, ...], tuple[float, ...]]
_N_PLACES = 3
_NO_WORDS = "numbers, or yes and no"
_NO_ID = "since its person or item is neither a text nor a number"


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int)


@dataclass(frozen=True)
class LeftOut:
    """Records that were left out for one reason, and where the first of them are."""

    reason: str
    count: int
    places: tuple[str, ...]

    def __str__(self) -> str:
        """Say how many, why, and where."""
        more = ", ..." if self.count > len(self.places) else ""
        places = ", ".join(self.places)
        return f"{counted(self.count, 'record')} left out, {self.reason}: {places}{more}"


@dataclass(frozen=True)
class Export:
    """Labels, comparisons and texts, as a labelling tool wrote them.

    Attributes
    ----------
    labels : list of (user, item, attribute, label)
        If a user labels an item twice, the later label wins.
    comparisons : list of (user, winner, loser)
        The preferred item of each pair, and the other one.
    texts : dict
        What items say, by their ids.
    left_out : tuple of LeftOut
        What was not taken, why and where.
    seconds : dict
        The median response time of each user, where the export has response times.
    ties : list of bool
        Which comparisons have no winner; empty where the export does not know ties.
    features, feature_names : list of pairs of tuples, tuple of str
        Features of winner and loser of each comparison, if it has any.
    categories : list
        The category of each comparison; empty without any.
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

    def of_category(self, category: str) -> "Export":
        """Return the comparisons of one category, alone."""
        rows = [row for row, one in enumerate(self.categories) if str(one) == category]
        if not rows:
            known = listing(sorted({str(one) for one in self.categories}))
            raise ValueError(f"No comparison is about {category!r}; categories are {known}.")
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

    def to_table(self, attribute: str | None = None) -> "pa.Table":
        """Return the labels as a pyarrow.Table with columns user, item, label (and attribute).

        Parameters
        ----------
        attribute : str, optional
            Only labels about this one; the table then has no column for it.
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
        """What was asked, in the order of the export."""
        return list(dict.fromkeys(row[2] for row in self.labels))

    def __str__(self) -> str:
        """Say what is there, and what was left out."""
        found = [counted(len(self.labels), "label")] if self.labels or not self.comparisons else []
        found += [counted(len(self.comparisons), "comparison")] if self.comparisons else []
        return "\n".join([" and ".join(found), *map(str, self.left_out)])

    def refuse_mixed(self, attribute: str | None) -> None:
        """Say which two questions share no answer, if none is chosen: they are not read alike."""
        if attribute is not None:
            return
        answers: dict[str, set[str]] = {}
        for _, _, about, label in self.labels:
            answers.setdefault(about, set()).add(label if isinstance(label, str) else _NO_WORDS)
        for one, other in combinations(answers, 2):
            if answers[one].isdisjoint(answers[other]):
                two = (f"{name!r} by {listing(sorted(answers[name]))}" for name in (one, other))
                raise ValueError(
                    f"People were asked about several things, and answered {', but '.join(two)}: "
                    "learn from one at a time. Pass attribute= to choose it."
                )

    def _nothing(self, attribute: str | None) -> str:
        if self.labels:
            return f"No label is about {attribute!r}; there are {', '.join(self.attributes)}."
        why = "".join(f" {left}." for left in self.left_out)
        return f"There are no labels in this export.{why}"


@dataclass
class Collector:
    """Collects an export, record by record."""

    labels: dict[tuple[Hashable, Hashable, str], Any] = field(default_factory=dict)
    comparisons: list[tuple[Hashable, Hashable, Hashable]] = field(default_factory=list)
    texts: dict[Hashable, str] = field(default_factory=dict)
    ticks: dict[str, list[tuple[Hashable, Hashable, list[str], str]]] = field(default_factory=dict)
    reasons: dict[str, list[str]] = field(default_factory=dict)
    times: dict[Hashable, list[float]] = field(default_factory=dict)
    ties: list[bool] = field(default_factory=list)
    features: list[Sides] = field(default_factory=list)
    feature_names: tuple[str, ...] = ()
    categories: list[Hashable] = field(default_factory=list)

    def add(
        self, user: Hashable, item: Hashable, attribute: str, label: object, where: str
    ) -> None:
        """Take a label; one that was there before is replaced, which is counted."""
        if not (_is_plain(user) and _is_plain(item)):
            self.leave_out(_NO_ID, where)
            return
        if not isinstance(label, str | int | float):
            self.leave_out("since it is neither a label nor a rating", where)
            return
        key = (user, item, attribute)
        if key in self.labels:
            self.leave_out("since the same person judged the same again later", where)
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
        """Take a comparison of two different items."""
        if not (_is_plain(user) and _is_plain(winner) and _is_plain(loser)):
            self.leave_out(_NO_ID, where)
        elif winner == loser:
            self.leave_out("since an item was compared with itself", where)
        else:
            self.comparisons.append((user, winner, loser))
            self.ties.append(tie)
            if features is not None:
                self.features.append(features)
            if category is not None or self.categories:
                known = len(self.comparisons) - 1 - len(self.categories)
                self.categories += [None] * known + [category]

    def tick(
        self, user: Hashable, item: Hashable, attribute: str, choices: object, where: str
    ) -> None:
        """Take the choices that a user ticked, of which there may be several.

        Whether a question allows several is known only once all is read: then each choice
        becomes a yes-or-no attribute of its own.
        """
        if not isinstance(choices, list) or not all(isinstance(one, str) for one in choices):
            self.leave_out("since it is not a list of choices", where)
            return
        self.ticks.setdefault(attribute, []).append((user, item, choices, where))

    def records(self, path: str | PathLike[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the records of a JSON list or of JSON Lines, each with the words for its place.

        Broken lines, and records that are not objects, are left out and counted. A broken list is
        an error, since its records are unknown.
        """
        text = _read_text(path)
        for where, record in _in_list(path) if text.lstrip().startswith("[") else _in_lines(text):
            if isinstance(record, dict):
                yield where, record
            else:
                broken = isinstance(record, json.JSONDecodeError)
                what = "valid JSON" if broken else "a JSON object"
                self.leave_out(f"since it is not {what}", where)

    def objects(
        self, values: object, where: str, what: str
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the objects of a list inside a record, with their places; others are left out."""
        if not isinstance(values, list):
            self.leave_out(f"since {what}s are not a list", where)
            return
        for number, value in enumerate(values, 1):
            place = f"{where}, {what} {number}"
            if isinstance(value, dict):
                yield place, value
            else:
                self.leave_out("since it is not a JSON object", place)

    def add_text(self, item: object, text: str | None) -> None:
        """Note the text of an item, if it has one."""
        if text is not None and _is_plain(item):
            self.texts[item] = text

    def add_time(self, user: Hashable, seconds: object) -> None:
        """Note how long an answer took, if that is known."""
        if isinstance(seconds, int | float) and seconds > 0:
            self.times.setdefault(user, []).append(float(seconds))

    def leave_out(self, reason: str, where: str) -> None:
        """Count a record that is not taken."""
        self.reasons.setdefault(reason, []).append(where)

    def export(self) -> Export:
        """Return all that was collected."""
        self._add_ticks()
        return Export(
            [(*key, label) for key, label in self.labels.items()],
            self.comparisons,
            self.texts,
            tuple(
                LeftOut(reason, len(places), tuple(places[:_N_PLACES]))
                for reason, places in self.reasons.items()
            ),
            {user: median(times) for user, times in self.times.items()},
            self.ties if any(self.ties) else [],
            self.features,
            self.feature_names,
            self.categories,
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
    """Read one JSON document; where it is broken, say on which line."""
    try:
        return json.loads(_read_text(path))
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{fspath(path)} is not valid JSON: {error.msg} on line {error.lineno}, "
            f"column {error.colno}. Was the export cut short?"
        ) from None


def text_of(fields: object) -> str | None:
    """Return the text of a record's fields: that called text, or the only, or the first one."""
    if not isinstance(fields, dict):
        return fields if isinstance(fields, str) else None
    texts = [value for value in (fields.get("text"), *fields.values()) if isinstance(value, str)]
    return next(filter(None, texts), None)


def _in_list(path: str | PathLike[str]) -> Iterator[tuple[str, object]]:
    return ((f"record {number}", record) for number, record in enumerate(read_json(path), 1))


def _in_lines(text: str) -> Iterator[tuple[str, object]]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                yield f"line {number}", json.loads(line)
            except json.JSONDecodeError as error:
                yield f"line {number}", error


def _read_text(path: str | PathLike[str]) -> str:
    try:
        return readable(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{fspath(path)} is not UTF-8 text: {error.reason}.") from None
