"""Argilla's records: fields, and what each user responded to each question."""

from collections.abc import Hashable, Iterator
from os import PathLike
from typing import Any

from likeminds.data.connectors.export_result import Collector, Export
from likeminds.data.connectors.json_io import objects_in, read_records, text_of

_TAKEN = (None, "submitted")
# What flat records call the responses to a question, and what is no field of a record.
_ANSWERS, _OWN = ".responses", ("id", "external_id", "status", "_server_id", "score")


def read_argilla(path: str | PathLike[str]) -> Export:
    """Read labels and ratings from Argilla's records, as JSON or JSON Lines.

    Both the responses of the second version (by question) and those of the first (by user) are
    known, and the flat records of ``to_list(flatten=True)``. Responses that are drafts or were
    discarded are left out, where the export says which they are.
    """
    collector = Collector()
    for place, flat in read_records(path, collector):
        record = unflattened(flat)
        item = record.get("id") or record.get("external_id") or place
        text = text_of(record.get("fields"))
        collector.say(item, text)
        for person, question, value, status in _responses(record, place, collector):
            where = f"{place}, {question}"
            if status not in _TAKEN:
                collector.leave_out(f"since the response is {status}", where)
            elif person is None:
                collector.leave_out("since nobody says who responded", where)
            else:
                _take(collector, person, item, question, value, where)
    return collector.export()


def unflattened(record: dict[str, Any]) -> dict[str, Any]:
    """Return a flat record with its fields, and its responses by question; others as they are."""
    asked = [name.removesuffix(_ANSWERS) for name in record if name.endswith(_ANSWERS)]
    if "responses" in record or not asked:
        return record
    responses = {name: _in_rows(record, f"{name}{_ANSWERS}") for name in asked}
    apart = {*_OWN, "responses"}
    fields = {
        name: value
        for name, value in record.items()
        if name not in apart and not name.startswith(tuple(f"{one}." for one in asked))
    }
    own = {name: record[name] for name in _OWN if name in record}
    return own | {"fields": fields, "responses": responses}


def _in_rows(record: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return columns of values, users and statuses as one object per response."""
    values = record.get(name) or []
    users, statuses = (
        record.get(f"{name}.{what}") or [None] * len(values) for what in ("users", "status")
    )
    rows = zip(values, users, statuses, strict=False)
    return [{"value": v, "user_id": user, "status": status} for v, user, status in rows]


def _responses(
    record: dict[str, Any], place: str, collector: Collector
) -> Iterator[tuple[Any, str, Any, Any]]:
    responses = record.get("responses") or {}
    if isinstance(responses, dict):
        for question, given in responses.items():
            where = f"{place}, {question}"
            for _, response in objects_in(given or [], where, "response", collector):
                told = (response.get(name) for name in ("user_id", "value", "status"))
                person, value, status = told
                yield person, question, value, status
        return
    for where, response in objects_in(responses, place, "response", collector):
        values = response.get("values") or {}
        if not isinstance(values, dict):
            collector.leave_out("since it holds no value", where)
            continue
        for question, held in values.items():
            value = held.get("value") if isinstance(held, dict) else held
            yield response.get("user_id"), question, value, response.get("status")


def _take(  # noqa: PLR0917 - who, what, which question, what they said, and where
    collector: Collector, person: Hashable, item: Hashable, question: str, value: Any, where: str
) -> None:
    if isinstance(value, str | int | float):
        collector.add(person, item, question, value, where)
    elif isinstance(value, list) and all(isinstance(chosen, str) for chosen in value):
        collector.tick(person, item, question, value, where)
    else:
        collector.leave_out("since it is neither a label nor a rating", where)
