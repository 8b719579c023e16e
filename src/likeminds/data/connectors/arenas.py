"""Reader of arenas: votes on the answers of two models, as Chatbot Arena publishes them."""

import math
import re
from collections.abc import Iterator
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from likeminds.data.column_roles import is_usual
from likeminds.data.connectors.export_result import Collector
from likeminds.data.sources import read_table

# The user of votes that name none.
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
STYLE = ("length", *_MARKDOWN)


def read_arena(path: str | PathLike[str], collector: Collector) -> None:
    """Read votes from JSON, JSON Lines, CSV or Parquet: model_a, model_b, winner and judge.

    The winner is model_a, model_b (or a model's name), tie, or both bad; the last two are ties.
    A column called category divides the votes. With answers (conversation_a and _b, response_a
    and _b), the style of each is its features: logarithms of its length and of the numbers of
    headers, list items and bold words.
    """
    styled: bool | None = None
    for where, record in _records(path, collector):
        models = [_first_of(record, f"model_{side}", f"model_{side}_name") for side in "ab"]
        outcome = _outcome(record.get("winner"), models)
        user = next((v for key, v in record.items() if is_usual("user", key) and v is not None), "")
        style = [one for side in "ab" if (one := _style(record, side)) is not None]
        styled = len(style) == 2 if styled is None else styled
        if None in models:
            collector.leave_out("since model_a or model_b is missing", where)
        elif outcome is None:
            reason = "since its winner is not model_a, model_b, tie or both bad"
            collector.leave_out(reason, where)
        elif styled and len(style) < 2:
            collector.leave_out("since it lacks the answers that other votes have", where)
        else:
            won, lost = (1, 0) if outcome == "b" else (0, 1)
            collector.add_comparison(
                user or _ONLY_JUDGE,
                models[won],
                models[lost],
                where,
                tie=outcome == "tie",
                features=(style[won], style[lost]) if styled else None,
                category=record.get("category"),
            )
    if styled:
        collector.feature_names = STYLE


def _records(
    path: str | PathLike[str], collector: Collector
) -> Iterator[tuple[str, dict[str, Any]]]:
    if Path(path).suffix.lower() not in _TABLES:
        yield from collector.records(path)
        return
    table = read_table(path, lambda names: [n for n in names if is_usual("user", n)])
    wanted = {"model_a", "model_b", "winner"}
    named = {name.removesuffix("_name") for name in table.column_names}
    if not wanted <= named:
        raise ValueError(
            f"{fspath(path)} needs the columns {', '.join(sorted(wanted))}; it has "
            f"{', '.join(table.column_names)}."
        )
    for batch in table.to_batches():
        for number, record in enumerate(batch.to_pylist(), 1):
            yield f"row {number}", record


def _first_of(record: dict[str, Any], *names: str) -> str | None:
    found = next((record[name] for name in names if record.get(name) is not None), None)
    return None if found is None else str(found)


def _outcome(winner: object, models: list[str | None]) -> str | None:
    """Return a, b or tie; None where the winner is not known."""
    if not isinstance(winner, str):
        return None
    if winner in models:
        return "ab"[models.index(winner)]
    letters = re.sub("[^a-z]", "", winner.lower())
    for outcome, words in (("a", _FIRST), ("b", _SECOND), ("tie", _TIES)):
        if letters in words:
            return outcome
    return None


def _style(record: dict[str, Any], side: str) -> tuple[float, ...] | None:
    """Return the style of an answer; None without its text."""
    answer = record.get(f"conversation_{side}", record.get(f"response_{side}"))
    if isinstance(answer, list):
        said = [m for m in answer if isinstance(m, dict) and m.get("role") != "user"]
        answer = "\n".join(str(one.get("content") or "") for one in said)
    if not isinstance(answer, str):
        return None
    counts = [len(answer), *(len(mark.findall(answer)) for mark in _MARKDOWN.values())]
    return tuple(math.log1p(count) for count in counts)
