"""Readers of published data with disagreement: Crowd-Kit, LeWiDi, Polis, preferences, arenas."""

import math
import re
from collections.abc import Hashable, Iterator, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from likeminds._util.lazy_imports import pa
from likeminds.data.column_roles import is_usual
from likeminds.data.connectors.export_result import Collector, read_json, text_of
from likeminds.data.sources import read_csv, read_table

_VOTER, _COMMENT, _VOTE, _BODY = "voter-id", "comment-id", "vote", "comment-body"
# The user of preferences without a user.
_ONLY_USER = "all users"


def read_crowdkit(path: str | PathLike[str], collector: Collector) -> None:
    """Read a table of labels, or of pairwise comparisons whose label is the item that won."""
    table = read_table(path, lambda names: {"worker", "task", "left", "right"} & set(names))
    shapes = (["worker", "left", "right", "label"], ["worker", "task", "label"])
    for number, (worker, *items, label) in enumerate(_rows(path, table, *shapes), 1):
        where = f"row {number}"
        if None in (worker, *items, label):
            collector.leave_out("since a value is missing", where)
        elif len(items) == 1:
            collector.add(worker, items[0], "label", label, where)
        elif str(label) not in map(str, items):
            collector.leave_out("since its label is neither of the two items", where)
        else:
            loser = items[1] if str(label) == str(items[0]) else items[0]
            collector.add_comparison(worker, str(label), str(loser), where)


def _rows(
    path: str | PathLike[str], table: "pa.Table", *shapes: Sequence[str]
) -> Iterator[tuple[Any, ...]]:
    """Return the rows of the first set of columns that a table has."""
    columns = next((names for names in shapes if set(names) <= set(table.column_names)), None)
    if columns is None:
        needed = ", or ".join(", ".join(names) for names in shapes)
        raise ValueError(
            f"{fspath(path)} needs the columns {needed}; it has {', '.join(table.column_names)}."
        )
    return zip(*(table[name].to_pylist() for name in columns), strict=True)


def read_lewidi(path: str | PathLike[str], collector: Collector) -> None:
    """Read labels from a data set of the LeWiDi tasks (learning with disagreements).

    Annotators and annotations are lists, or texts separated by commas (2023), or one mapping from
    annotator to annotation (2025).
    """
    records = read_json(path)
    if not isinstance(records, dict):
        raise ValueError(  # noqa: TRY004 - the file is wrong, not the argument
            f"{fspath(path)} is not a LeWiDi data set, which is one JSON object with a record for "
            "each id. Check the file."
        )
    for item, record in records.items():
        where = f"record {item}"
        if not isinstance(record, dict):
            collector.leave_out("since it is not a JSON object", where)
            continue
        collector.add_text(item, text_of(record.get("text")))
        annotations = record.get("annotations")
        if isinstance(annotations, dict):
            users, labels = list(annotations), list(annotations.values())
        else:
            users, labels = _listed(record.get("annotators")), _listed(annotations)
        if not labels:
            collector.leave_out("since it has no annotations", where)
        elif len(users) != len(labels):
            collector.leave_out("since its numbers of annotators and annotations differ", where)
        else:
            for user, label in zip(users, labels, strict=True):
                collector.add(user, str(item), "label", _as_number(label), where)


def _listed(value: object) -> list[object]:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value if isinstance(value, list) else []


def _as_number(label: object) -> object:
    try:
        return int(label)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        return label


def read_polis(path: str | PathLike[str], collector: Collector) -> None:
    """Read agreement with statements from an export of Polis: its folder, or its votes.csv.

    Passes are left out. If a user voted twice on a statement, the later vote wins. Texts of the
    statements come from comments.csv, if it exists.
    """
    votes = Path(path) / "votes.csv" if Path(path).is_dir() else Path(path)
    table = read_csv(votes, lambda names: {_VOTER, _COMMENT} & set(names))
    if "timestamp" in table.column_names:
        table = table.sort_by("timestamp")
    rows = _rows(votes, table, (_VOTER, _COMMENT, _VOTE))
    for number, (voter, comment, vote) in enumerate(rows, 1):
        where = f"vote {number}"
        if vote in (1, -1):
            collector.add(voter, comment, "agree", vote == 1, where)
        else:
            collector.leave_out(
                "since it is a pass" if vote == 0 else "since it is not a vote", where
            )
    comments = votes.with_name("comments.csv")
    if comments.exists():
        table = read_csv(comments, lambda names: {_COMMENT, _BODY} & set(names))
        both = _rows(comments, table, (_COMMENT, _BODY))
        collector.found.texts.update((comment, body) for comment, body in both if body)


def read_preferences(path: str | PathLike[str], collector: Collector) -> None:
    """Read comparisons from records with ``chosen`` and ``rejected``.

    Answers are texts, or lists of messages with a role and a content, the last of which is read. An
    item is an answer to a prompt. Records without a user get the user "all users".
    """
    names: dict[tuple[str, str], str] = {}
    for where, record in collector.records(path):
        prompt = _content(record.get("prompt")) or ""
        answers = [_content(record.get(side)) for side in ("chosen", "rejected")]
        if None in answers:
            collector.leave_out("since it lacks a chosen or a rejected answer", where)
            continue
        keys = [(prompt, str(answer)) for answer in answers]
        winner, loser = (names.setdefault(key, f"answer {len(names) + 1}") for key in keys)
        collector.found.texts.update({winner: keys[0][1], loser: keys[1][1]})
        collector.add_comparison(_user_of(record, _ONLY_USER), winner, loser, where)


def _user_of(record: dict[str, Any], default: str) -> Hashable:
    named = (value for key, value in record.items() if is_usual("user", key))
    return next((name for name in named if name not in (None, "")), default)


def _content(answer: object) -> str | None:
    if isinstance(answer, list) and answer and isinstance(answer[-1], dict):
        answer = answer[-1].get("content")
    return answer if isinstance(answer, str) and answer else None


# The user of votes without a user.
_ONLY_JUDGE = "all judges"
_TABLES = (".csv", ".parquet", ".arrow", ".tsv")
# Winners by their letters: the first model, the second one, or neither.
_FIRST, _SECOND = ("modela", "a", "left"), ("modelb", "b", "right")
_TIES = ("tie", "tiebothbad", "bothbad", "bothgood", "ties", "draw", "equal", "bothequal")
# Marks of style: the number of matches of each pattern in an answer.
_MARKDOWN = {
    "headers": re.compile(r"^#{1,6} ", re.MULTILINE),
    "lists": re.compile(r"^\s*(?:[-*+]|\d+\.) ", re.MULTILINE),
    "bold": re.compile(r"\*\*[^*\n]+\*\*"),
}
# Columns with numbers of an answer, such as length_a and length_b, for votes without the answers.
_COUNTED = ("length", "tokens", "words", *_MARKDOWN, "markdown")


def read_arena(path: str | PathLike[str], collector: Collector) -> None:
    """Read votes from JSON, JSON Lines, CSV or Parquet: model_a, model_b, winner and judge.

    The winner is model_a, model_b (or a model's name), tie, or both bad; the last two are ties. A
    column called category divides the votes. With answers (conversation_a and _b, response_a and
    _b), features describe their style: logarithms of the length and of the numbers of headers, list
    items and bold words. Without answers, columns such as length_a and length_b are the features.
    """
    names: tuple[str, ...] | None = None
    for where, record in _records(path, collector):
        columns = ((f"model_{side}", f"model_{side}_name") for side in "ab")
        models = [
            next((str(record[name]) for name in names if record.get(name) is not None), None)
            for names in columns
        ]
        outcome = _outcome(record.get("winner"), models)
        style = _style(record)
        names = tuple(style) if names is None else names
        if None in models:
            collector.leave_out("since model_a or model_b is missing", where)
        elif outcome is None:
            reason = "since its winner is not model_a, model_b, tie or both bad"
            collector.leave_out(reason, where)
        elif tuple(style) != names:
            collector.leave_out("since it lacks the features of style that others have", where)
        else:
            won, lost = (1, 0) if outcome == "b" else (0, 1)
            sides = tuple(zip(*style.values(), strict=True))
            collector.add_comparison(
                _user_of(record, _ONLY_JUDGE),
                models[won],
                models[lost],
                where,
                tie=outcome == "tie",
                features=(sides[won], sides[lost]) if sides else None,
                category=record.get("category"),
            )
    if names:
        collector.feature_names = names


def _records(
    path: str | PathLike[str], collector: Collector
) -> Iterator[tuple[str, dict[str, Any]]]:
    if Path(path).suffix.lower() not in _TABLES:
        yield from collector.records(path)
        return
    table = read_table(path, lambda names: [n for n in names if is_usual("user", n)])
    required = {"model_a", "model_b", "winner"}
    named = {name.removesuffix("_name") for name in table.column_names}
    if not required <= named:
        raise ValueError(
            f"{fspath(path)} needs the columns {', '.join(sorted(required))}; it has "
            f"{', '.join(table.column_names)}."
        )
    records = (record for batch in table.to_batches() for record in batch.to_pylist())
    yield from ((f"row {number}", record) for number, record in enumerate(records, 1))


def _outcome(winner: object, models: list[str | None]) -> str | None:
    """Return a, b or tie; None for an unknown winner."""
    if not isinstance(winner, str):
        return None
    if winner in models:
        return "ab"[models.index(winner)]
    letters = re.sub("[^a-z]", "", winner.lower())
    for outcome, words in (("a", _FIRST), ("b", _SECOND), ("tie", _TIES)):
        if letters in words:
            return outcome
    return None


def _style(record: dict[str, Any]) -> dict[str, tuple[float, float]]:
    """Return logarithms of counts of both answers, by the name of the count."""
    answers = [_answer(record, side) for side in "ab"]
    counts: dict[str, list[Any]] = {
        name: [record.get(f"{name}_{side}") for side in "ab"] for name in _COUNTED
    }
    if None not in answers:
        texts = [str(answer) for answer in answers]
        counts = {"length": [len(text) for text in texts]}
        counts |= {n: [len(mark.findall(text)) for text in texts] for n, mark in _MARKDOWN.items()}
    return {
        name: (math.log1p(a), math.log1p(b))
        for name, (a, b) in counts.items()
        if isinstance(a, int | float) and isinstance(b, int | float) and a >= 0 and b >= 0
    }


def _answer(record: dict[str, Any], side: str) -> str | None:
    """Return the text of an answer, if the vote has it."""
    answer = record.get(f"conversation_{side}", record.get(f"response_{side}"))
    if isinstance(answer, list):
        messages = [m for m in answer if isinstance(m, dict) and m.get("role") != "user"]
        return "\n".join(str(one.get("content") or "") for one in messages)
    return answer if isinstance(answer, str) else None
