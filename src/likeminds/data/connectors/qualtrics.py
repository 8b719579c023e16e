"""MaxDiff questions and conjoint studies of Qualtrics."""

import re
from collections.abc import Iterator, Mapping, Sequence
from os import fspath
from typing import NamedTuple

from likeminds._util.checks import listing
from likeminds.data.connectors.export_result import Collector
from likeminds.data.connectors.sawtooth import (
    RESPONDENT,
    Concept,
    FilePath,
    SheetRows,
    SurveyTask,
    add_conjoint,
    find_named,
    needed_columns,
    read_sheet,
)

# Import ids of Qualtrics: an item of a question, and the columns with the order of display.
_ITEM_ID = re.compile(r"(QID\d+)[-_](\d+)")
_LEVEL = re.compile(r"[A-Za-z]+-(\d+)-(\d+)-(\d+)")
_IMPORT_ID = re.compile(r"""ImportId["']\s*:\s*["']([^"']+)["']""")
_BEST_WORDS, _WORST_WORDS = ("most", "best"), ("least", "worst")
# The status of previews, tests and spam, as words or codes.
_NO_RESPONDENT = re.compile(r"(?i).*(preview|test|spam).*|1|2|8|9|12|17")


class _Question(NamedTuple):
    """A MaxDiff question: columns of its items, their texts, and columns of the display order."""

    name: str
    columns: dict[str, int]
    items: dict[str, str]
    order: dict[str, int]

    def answers(self, row: Sequence[str]) -> dict[str, str]:
        """Return a respondent's answers by the number of the item."""
        return {number: row[place] for number, place in self.columns.items() if row[place]}

    def shown(self, row: Sequence[str]) -> list[str]:
        """Return the items that a respondent saw; unknown items are empty texts."""
        if not self.order:
            return list(self.items.values())
        if "" not in self.order:  # a column per item
            numbers = [number for number, place in self.order.items() if row[place]]
        else:
            numbers = [part.strip() for part in re.split(r"[|,]", row[self.order[""]]) if part]
        texts = set(self.items.values())
        return [self.items.get(number, number if number in texts else "") for number in numbers]


def read_qualtrics(path: FilePath, collector: Collector) -> None:
    """Read MaxDiff questions, or a conjoint of embedded data, from a CSV file of responses.

    The header has three rows: names, texts, and import ids. MaxDiff questions have a column per
    item, with words or codes for the best (the larger code) and the worst. In a conjoint, column
    F-i-j-k has the level of attribute k of profile j in task i, and column F-i-k its name.
    """
    (names, texts, ids), rows = read_sheet(path, collector, 3)
    found = [_IMPORT_ID.search(cell) for cell in ids]
    if not any(found):
        raise ValueError(
            f"{fspath(path)} is not a file of Qualtrics responses: its third row has no import ids "
            'such as {"ImportId":"QID1_1"}. Export the responses as CSV, with all three header '
            "rows."
        )
    keys = [name if one is None else one[1] for name, one in zip(names, found, strict=True)]
    (user,) = needed_columns(path, names, response=RESPONDENT)
    status = find_named(names, ("status",))
    kept = []
    for where, row in rows:
        if status is not None and _NO_RESPONDENT.fullmatch(row[status]):
            collector.leave_out("since it is a preview, a test or spam", where)
        else:
            kept.append((f"{where} ({row[user]})", row))
    if any(map(_LEVEL.fullmatch, names)):
        add_conjoint(path, _embedded_tasks(path, names, keys, kept, collector), collector)
        return
    questions = list(_maxdiff_questions(names, texts, keys, [row for _, row in kept]))
    if not questions:
        raise ValueError(
            f"{fspath(path)} has no MaxDiff question (a column per item, and two answers, best and "
            "worst) and no conjoint (columns F-1-1-1). Exports of Conjoint and MaxDiff projects "
            "lack the tasks. Use the question type MaxDiff."
        )
    best, worst = _best_and_worst(path, questions, [row for _, row in kept])
    lists = [frozenset(one.items.values()) for one in questions if not one.order]
    if len(set(lists)) < len(lists):
        raise ValueError(
            f"{fspath(path)}: several questions have the same items, and no column has their "
            f"display order (such as {questions[0].name}_DO). Export viewing order data, too."
        )
    for where, row in kept:
        for question in questions:
            said = {answer: question.items[n] for n, answer in question.answers(row).items()}
            place = f"{where}, {question.name}"
            if not said:
                collector.leave_out("since the question was not answered", place)
            else:
                shown = question.shown(row)
                collector.add_choice(row[user], shown, said.get(best, ""), said.get(worst), place)


def _maxdiff_questions(
    names: Sequence[str], texts: Sequence[str], keys: Sequence[str], rows: list[list[str]]
) -> Iterator[_Question]:
    """Yield questions in which respondents gave each of two answers at most once."""
    columns: dict[str, dict[str, int]] = {}
    for place, key in enumerate(keys):
        if (match := _ITEM_ID.fullmatch(key)) is not None:
            columns.setdefault(match[1], {})[match[2]] = place
    for key, places in columns.items():
        answered = [[row[place] for place in places.values() if row[place]] for row in rows]
        distinct = {answer for answers in answered for answer in answers}
        once = all(len(answers) == len(set(answers)) for answers in answered)
        if len(places) < 3 or len(distinct) != 2 or not once:
            continue
        headings = [texts[place] for place in places.values()]
        # The text of the question: what all headings begin with, up to a hyphen.
        ends = [place + 1 for place, letter in enumerate(headings[0]) if letter == "-"]
        starts = [headings[0][:end] for end in reversed(ends)] + [""]
        question = next(one for one in starts if all(text.startswith(one) for text in headings))
        items = [text.removeprefix(question).strip() for text in headings]
        tag = re.sub(r"[-_]\d+$", "", names[min(places.values())])
        order = {}
        for place, both in enumerate(zip(names, keys, strict=True)):
            for one in both:
                if one in {f"{tag}_DO", f"{key}_DO", f"DO-Q-{tag}", f"DO-Q-{key}"}:
                    order[""] = place
                elif one.startswith((f"{tag}_DO_", f"{key}_DO_")):
                    order[one.rpartition("_")[2]] = place
        yield _Question(tag, places, dict(zip(places, items, strict=True)), order)


def _best_and_worst(
    path: FilePath, questions: Sequence[_Question], rows: list[list[str]]
) -> tuple[str, str]:
    """Return the answers that mean the best and the worst."""
    said = {answer for row in rows for one in questions for answer in one.answers(row).values()}
    best, worst = (
        [answer for answer in said if any(word in answer.lower() for word in words)]
        for words in (_BEST_WORDS, _WORST_WORDS)
    )
    if len(best) == len(worst) == 1 and len(said) == 2 and best != worst:
        return best[0], worst[0]
    try:
        codes = sorted(said, key=float)
    except ValueError:
        codes = []
    if len(codes) != 2:
        raise ValueError(
            f"{fspath(path)}: the answers {listing(sorted(said))} do not distinguish best and "
            "worst. Export two codes, the larger one for the best, or words with most and least."
        )
    return codes[1], codes[0]


def _embedded_tasks(
    path: FilePath,
    names: Sequence[str],
    keys: Sequence[str],
    rows: SheetRows,
    collector: Collector,
) -> Iterator[SurveyTask]:
    """Yield the tasks of a conjoint whose levels are embedded data, F-task-profile-attribute."""
    (user,) = needed_columns(path, names, response=RESPONDENT)
    cells: dict[int, dict[int, dict[str, int]]] = {}
    heads: dict[tuple[int, str], int] = {}
    for place, name in enumerate(names):
        if (match := _LEVEL.fullmatch(name)) is not None:
            task, profile = int(match[1]), int(match[2])
            cells.setdefault(task, {}).setdefault(profile, {})[match[3]] = place
        elif re.fullmatch(r"[A-Za-z]+-\d+-\d+", name):
            heads[int(name.split("-")[1]), name.split("-")[2]] = place
    most = max(map(len, cells.values()))
    allowed = {str(number) for number in range(1, most + 1)}
    columns = [
        place
        for place, key in enumerate(keys)
        if re.fullmatch(r"QID\d+", key) and {row[place] for _, row in rows} - {""} <= allowed
    ]
    if len(columns) != len(cells):
        raise ValueError(
            f"{fspath(path)} has {len(cells)} conjoint task(s), but {len(columns)} question(s) "
            f"whose answers are all among 1 to {most}: {listing([names[c] for c in columns])}. "
            "Export codes, and only the questions of the tasks."
        )
    for where, row in rows:
        for (task, profiles), column in zip(sorted(cells.items()), columns, strict=True):
            asked = f"{where}, task {task}"
            if not 0 < int(row[column] or 0) <= len(profiles):
                collector.leave_out("since none of the profiles was chosen", asked)
                continue
            concepts: list[Concept] = [
                _embedded_concept(row, places, heads, task)
                for _, places in sorted(profiles.items())
            ]
            yield SurveyTask(row[user], concepts, int(row[column]) - 1, None, asked)


def _embedded_concept(
    row: Sequence[str], places: Mapping[str, int], heads: Mapping[tuple[int, str], int], task: int
) -> dict[str, str]:
    """Return the levels of a profile by the names of attributes, or by their numbers."""
    named = {}
    for number, place in places.items():
        head = heads.get((task, number))
        named[(row[head] if head is not None else "") or f"attribute {number}"] = row[place]
    return named
