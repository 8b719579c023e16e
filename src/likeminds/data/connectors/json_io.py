"""Read JSON and JSON Lines, and say where they are broken."""

import json
from collections.abc import Iterator
from os import PathLike, fspath
from typing import Any

from likeminds._util.atomic_files import readable
from likeminds.data.connectors.export_result import Collector


def read_json(path: str | PathLike[str]) -> Any:
    """Read one JSON document; where it is broken, say on which line."""
    text = _read_text(path)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{fspath(path)} is no valid JSON: {error.msg} on line {error.lineno}, "
            f"column {error.colno}. Was the export cut short?"
        ) from None


def read_records(
    path: str | PathLike[str], collector: Collector
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the records of a JSON list or of JSON Lines, each with the words for its place.

    A broken line, and a record that is no object, is left out and counted; a broken list is an
    error, since nobody knows what it held.
    """
    text = _read_text(path)
    if text.lstrip().startswith("["):
        found: Iterator[tuple[str, Any]] = (
            (f"record {number}", record) for number, record in enumerate(read_json(path), 1)
        )
    else:
        found = _read_lines(text, collector)
    for where, record in found:
        if isinstance(record, dict):
            yield where, record
        else:
            collector.leave_out("since it is no object of JSON", where)


def objects_in(
    values: Any, where: str, what: str, collector: Collector
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects of a list inside a record, with their places; others are left out."""
    if not isinstance(values, list):
        collector.leave_out(f"since {what}s are no list", where)
        return
    for number, value in enumerate(values, 1):
        place = f"{where}, {what} {number}"
        if isinstance(value, dict):
            yield place, value
        else:
            collector.leave_out("since it is no object of JSON", place)


def text_of(fields: Any) -> str | None:
    """Return the text of a record's fields: that called text, or the only, or the first one."""
    if not isinstance(fields, dict):
        return fields if isinstance(fields, str) else None
    texts = [value for value in fields.values() if isinstance(value, str) and value]
    called = fields.get("text")
    return called if isinstance(called, str) and called else next(iter(texts), None)


def _read_lines(text: str, collector: Collector) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            collector.leave_out("since it is no valid JSON", f"line {number}")
            continue
        yield f"line {number}", record


def _read_text(path: str | PathLike[str]) -> str:
    try:
        return readable(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{fspath(path)} is no text in UTF-8: {error.reason}.") from None
