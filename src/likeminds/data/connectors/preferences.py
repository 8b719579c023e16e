"""Preference data: JSON Lines with a chosen and a rejected answer."""

from collections.abc import Hashable
from os import PathLike
from typing import Any

from likeminds.data.column_roles import is_usual
from likeminds.data.connectors.export_result import Collector, Export
from likeminds.data.connectors.json_io import read_records

EVERYBODY = "everybody"


def read_preferences(path: str | PathLike[str]) -> Export:
    """Read comparisons from records with ``chosen`` and ``rejected``.

    Answers are texts or lists of messages with a role and a content, whose last one counts. An
    item is an answer to its prompt. Records that name nobody are those of one person, called
    everybody.
    """
    collector = Collector()
    names: dict[tuple[str, str], str] = {}
    for where, record in read_records(path, collector):
        prompt = _content(record.get("prompt")) or ""
        answers = [_content(record.get(side)) for side in ("chosen", "rejected")]
        if None in answers:
            collector.leave_out("since it has not both a chosen and a rejected answer", where)
            continue
        keys = [(prompt, str(answer)) for answer in answers]
        winner, loser = (names.setdefault(key, f"answer {len(names) + 1}") for key in keys)
        collector.texts |= {winner: keys[0][1], loser: keys[1][1]}
        collector.add_comparison(_person(record), winner, loser, where)
    return collector.export()


def _person(record: dict[str, Any]) -> Hashable:
    named = (value for key, value in record.items() if is_usual("user", key))
    return next((name for name in named if name is not None), EVERYBODY)


def _content(said: Any) -> str | None:
    if isinstance(said, list) and said and isinstance(said[-1], dict):
        said = said[-1].get("content")
    return said if isinstance(said, str) and said else None
