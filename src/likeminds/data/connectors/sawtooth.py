"""Conjoint and MaxDiff (best-worst) studies of Sawtooth, and code shared with other surveys."""

import csv
import io
import re
from collections.abc import Collection, Iterable, Sequence
from itertools import count
from os import PathLike, fspath
from typing import NamedTuple, TypeAlias

from likeminds._util.checks import listing
from likeminds.data.column_roles import is_usual
from likeminds.data.connectors.export_result import Collector, read_text

# The levels of a concept, by attribute; None for the outside option.
Concept: TypeAlias = dict[str, str] | None
FilePath: TypeAlias = str | PathLike[str]
# Rows of a sheet with their places.
SheetRows: TypeAlias = list[tuple[str, list[str]]]

# Names of columns, reduced to lower-case letters and digits.
RESPONDENT = ("sysrespnum", "respid", "respnum", "caseid", "id", "responseid", "recordid")
_TASK = ("task", "tasknumber", "set", "choiceset", "question", "screen", "block")
_CONCEPT = ("concept", "conceptnumber", "alternative", "alt", "profile")
_RESPONSE = ("response", "choice", "chosen", "answer", "selected")
_BEST, _WORST = ("best", "most", "bestresponse"), ("worst", "least", "worstresponse")
_ITEM, _VERSION = ("item", "itemid", "itemnumber"), ("version", "sysversion")
_SHOWN = re.compile(r"(?:item|alternative|alt|option|position|pos)\d+")
# Cells without a level; all cells of the concept "None" are such.
_ABSENT = ("", "0", "none")
NONE = "none"


class SurveyTask(NamedTuple):
    """Concepts that a respondent saw, and the positions of the best and the worst of them."""

    user: str
    concepts: list[Concept]
    best: int
    worst: int | None
    where: str


def _letters(name: str) -> str:
    return re.sub("[^a-z0-9]", "", name.lower())


def find_named(names: Sequence[str], usual: Collection[str]) -> int | None:
    """Return the position of the only column with one of these names."""
    is_user = usual is RESPONDENT
    found = [
        place
        for place, name in enumerate(names)
        if _letters(name) in usual or (is_user and is_usual("user", name))
    ]
    return found[0] if len(found) == 1 else None


def needed_columns(path: FilePath, names: Sequence[str], **roles: Collection[str]) -> list[int]:
    """Return the columns of roles; raise ValueError with the usual names of a missing one."""
    found = {role: find_named(names, usual) for role, usual in roles.items()}
    for role, place in found.items():
        if place is None:
            usual = listing([*roles[role]])
            raise ValueError(
                f"{fspath(path)} needs one column for the {role} (called {usual}); it has "
                f"{listing(names)}. Rename the column, or export the file as CSV again."
            )
    return [place for place in found.values() if place is not None]


def read_sheet(
    path: FilePath, collector: Collector, n_headers: int
) -> tuple[list[list[str]], SheetRows]:
    """Return the rows of the header, and the others with their places."""
    text = read_text(path)
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    try:
        lines = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except csv.Error as error:
        raise ValueError(f"{fspath(path)} is not valid CSV: {error}. Export it again.") from None
    filled = [[cell.strip() for cell in row] for row in lines if any(map(str.strip, row))]
    headers, width = filled[:n_headers], len(filled[0]) if filled else 0
    if len(headers) < n_headers or any(len(row) != width for row in headers):
        raise ValueError(
            f"{fspath(path)} needs {n_headers} row(s) of column names, all of the same length. "
            "Export it again as CSV."
        )
    rows = []
    for number, row in enumerate(filled[n_headers:], 1):
        if len(row) > width:
            collector.leave_out("since it has more cells than the header", f"row {number}")
        else:
            rows.append((f"row {number}", row + [""] * (width - len(row))))
    return headers, rows


def read_sawtooth(path: FilePath, collector: Collector) -> None:
    """Read a conjoint (CBC) or MaxDiff study from CSV.

    CBC has a row per concept: respondent, task, concept, attributes, and a response of 1 or 0 (-1
    for the worst). In the concept "None" all levels are 0 or empty. MaxDiff has a row per set
    (items shown, best, worst), or per item (item, and a response of 1, 0 or -1).
    """
    (names,), rows = read_sheet(path, collector, 1)
    if find_named(names, _BEST) is not None or find_named(names, _WORST) is not None:
        _read_sets(path, names, rows, collector)
        return
    user, task, response = needed_columns(
        path, names, respondent=RESPONDENT, task=_TASK, response=_RESPONSE
    )
    item, known = find_named(names, _ITEM), (user, task, response, find_named(names, _CONCEPT))
    used = {*known, find_named(names, _VERSION)}
    attributes = [place for place in range(len(names)) if place not in used]
    if not attributes:
        raise ValueError(
            f"{fspath(path)} needs columns of attributes or items; it has {listing(names)}."
        )
    groups: dict[tuple[str, str], list[tuple[str, list[str]]]] = {}
    for where, row in rows:
        groups.setdefault((row[user], row[task]), []).append((where, row))
    tasks = []
    for (who, number), shown in groups.items():
        where = f"task {number} of respondent {who}"
        answers = [_answer(path, place, row[response]) for place, row in shown]
        if answers.count(1) != 1 or answers.count(-1) > 1:
            several = 1 in answers
            reason = "has several best or worst ones" if several else "has nothing chosen"
            collector.leave_out(f"since it {reason}", where)
            continue
        levels = [{names[place]: row[place] for place in attributes} for _, row in shown]
        concepts: list[Concept] = [*levels]
        if attributes != [item]:
            concepts = [None if all(map(_is_absent, one.values())) else one for one in levels]
        worst = answers.index(-1) if -1 in answers else None
        tasks.append(SurveyTask(who, concepts, answers.index(1), worst, where))
    if attributes != [item]:
        add_conjoint(path, tasks, collector)
        return
    for one in tasks:
        ids = ["".join((row or {}).values()) for row in one.concepts]
        worst_item = None if one.worst is None else ids[one.worst]
        collector.add_choice(one.user, ids, ids[one.best], worst_item, one.where)


def _answer(path: FilePath, where: str, response: str) -> int:
    try:
        number = float(response or 0)
    except ValueError:
        number = 2.0
    if number not in (-1.0, 0.0, 1.0):
        raise ValueError(
            f"{fspath(path)}, {where}: the response {response!r} is not 1 (best), 0 or -1 (worst). "
            "Allocations of points are not supported: export the chosen concepts."
        )
    return int(number)


def _read_sets(path: FilePath, names: Sequence[str], rows: SheetRows, collector: Collector) -> None:
    """Read MaxDiff sets: the items shown, the best and the worst, by numbers or by positions."""
    user, best, worst = needed_columns(path, names, respondent=RESPONDENT, best=_BEST, worst=_WORST)
    places = [place for place, name in enumerate(names) if _SHOWN.fullmatch(_letters(name))]
    if len(places) < 2:
        raise ValueError(
            f"{fspath(path)} has no columns of the items shown (called Item 1, Item 2, ...); it "
            f"has {listing(names)}. Join the design to the answers first."
        )
    by_item, by_place = [], []
    for where, row in rows:
        shown, picks = [row[place] for place in places if row[place]], (row[best], row[worst])
        at = {str(place): one for place, one in enumerate(shown, 1)}
        by_item.append((row[user], shown, picks, where))
        by_place.append((row[user], shown, (at.get(picks[0], ""), at.get(picks[1], "")), where))
    fits = [
        sum(set(picks) <= set(shown) for _, shown, picks, _ in one) for one in (by_item, by_place)
    ]
    if fits[0] == fits[1] > 0 and by_item != by_place:
        raise ValueError(
            f"{fspath(path)}: best and worst could be numbers of items or positions in the set. "
            "Replace the numbers of items by their names."
        )
    for who, shown, picks, where in by_item if fits[0] >= fits[1] else by_place:
        collector.add_choice(who, shown, picks[0], picks[1] or None, where)


def add_conjoint(path: FilePath, tasks: Iterable[SurveyTask], collector: Collector) -> None:
    """Add tasks of concepts to an export; levels become features."""
    taken = list(tasks)
    concepts = [concept for task in taken for concept in task.concepts]
    collector.feature_names, features = _encode(path, concepts)
    numbers = count(len(collector.found.concepts))
    collector.found.concepts.extend(features)
    for task in taken:
        shown = [next(numbers) for _ in task.concepts]
        worst = None if task.worst is None else shown[task.worst]
        collector.add_choice(task.user, shown, shown[task.best], worst, task.where)


def _is_absent(level: str) -> bool:
    return level.lower() in _ABSENT


def _encode(
    path: FilePath, concepts: Sequence[Concept]
) -> tuple[tuple[str, ...], list[tuple[float, ...]]]:
    """Return features of concepts: amounts, and 0 or 1 for each level but the first.

    Levels are texts, or the codes 1, 2, ... of Sawtooth. The first level has a column, too, if
    some concepts lack the attribute. The outside option is zero, except in a column of its own.
    """
    present = [concept for concept in concepts if concept is not None]
    columns: dict[str, list[float]] = {}
    for name in dict.fromkeys(name for concept in present for name in concept):
        values = [None if one is None else one.get(name, "") for one in concepts]
        given = [value for value in values if value is not None]
        levels = _levels(given)
        if levels is None:
            if not all(map(_is_number, given)):
                raise ValueError(
                    f"{fspath(path)}: the attribute {name!r} has numbers, but is empty in some "
                    "concepts. Fill in the number, or write levels as texts."
                )
            columns[name] = [0.0 if value is None else float(value) for value in values]
            continue
        for level in levels if any(map(_is_absent, given)) else levels[1:]:
            columns[f"{name}: {level}"] = [float(value == level) for value in values]
    if len(present) < len(concepts):
        columns[NONE] = [float(one is None) for one in concepts]
    if concepts and not columns:
        raise ValueError(
            f"{fspath(path)}: all concepts have the same levels. Check the columns of attributes."
        )
    return tuple(columns), list(zip(*columns.values(), strict=True))


def _levels(values: Sequence[str]) -> list[str] | None:
    """Return the levels of an attribute; None if it is an amount."""
    given = {value for value in values if not _is_absent(value)}
    codes = {value for value in given if value.isdecimal()}
    if given and given == codes and sorted(map(int, codes)) == list(range(1, len(codes) + 1)):
        return sorted(codes, key=int) if len(codes) > 1 else None
    return None if all(map(_is_number, given)) else sorted(given)


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True
