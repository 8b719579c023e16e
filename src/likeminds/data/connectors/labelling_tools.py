"""Readers of exports of Label Studio, Argilla and Prodigy; predicted labels for the same tools.

Predictions (Label Studio) and suggestions (Argilla) hold the label that more than half of the users
would give to an item. The score is their share.
"""

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

from likeminds._util.checks import listing
from likeminds._version import __version__
from likeminds.data.connectors.export_result import Collector, text_of

Record = dict[str, Any]

_SIDES = ("left", "right")
# The columns of responses in flat records of Argilla, and the columns that are not fields.
_RESPONSES, _NOT_FIELDS = ".responses", ("id", "external_id", "status", "_server_id", "score")
_PRODIGY_ANSWERS = {"accept": True, "reject": False}


def read_label_studio(path: str | PathLike[str], collector: Collector) -> None:
    """Read choices, ratings and pairwise comparisons from an export of Label Studio (JSON).

    A task is an item and each control an attribute. A control with several ticked choices becomes
    one yes-or-no attribute for each choice. Pairwise comparisons are between the two texts of a
    task, of which the first is the left one.
    """
    for place, task in collector.records(path):
        item = task.get("id", place)
        collector.add_text(item, text_of(task.get("data")))
        for user, result, where in _results(task, place, collector):
            control = str(result.get("from_name", "label"))
            value, kind = result.get("value"), str(result.get("type"))
            if not isinstance(value, dict) or (kind not in value and kind != "pairwise"):
                collector.leave_out("since it holds no value", where)
            elif kind == "choices":
                collector.tick(user, item, control, value["choices"], where)
            elif kind == "rating":
                collector.add(user, item, control, value["rating"], where)
            elif kind == "pairwise":
                _compare(collector, user, task, value, where)
            else:
                collector.leave_out(f"since {kind} is not a label of a whole item", where)


def _results(
    task: Record, place: str, collector: Collector
) -> Iterator[tuple[Hashable, Record, str]]:
    annotations = task.get("annotations", task.get("completions")) or []
    for where, annotation in collector.objects(annotations, place, "annotation"):
        user = annotation.get("completed_by")
        if isinstance(user, dict):
            user = next((user[key] for key in ("id", "email", "username") if key in user), None)
        if annotation.get("was_cancelled"):
            collector.leave_out("since the annotator skipped the task", where)
        elif not isinstance(user, int | str):
            collector.leave_out("since it does not have completed_by", where)
        elif not annotation.get("result"):
            collector.leave_out("since it is empty", where)
        else:
            collector.add_time(user, annotation.get("lead_time"))
            found = collector.objects(annotation["result"], where, "result")
            yield from ((user, result, where) for _, result in found)


def _compare(collector: Collector, user: Hashable, task: Record, value: Record, where: str) -> None:
    data, selected = task.get("data"), value.get("selected")
    fields = data.values() if isinstance(data, dict) else ()
    texts = [text for text in fields if isinstance(text, str)]
    if len(texts) != len(_SIDES):
        collector.leave_out("since the task does not have exactly two texts to compare", where)
    elif selected not in _SIDES:
        collector.leave_out("since neither side was selected", where)
    else:
        winner, loser = texts if selected == _SIDES[0] else reversed(texts)
        collector.found.texts.update({winner: winner, loser: loser})
        collector.add_comparison(user, winner, loser, where)


def read_argilla(path: str | PathLike[str], collector: Collector) -> None:
    """Read labels and ratings from Argilla's records, as JSON or JSON Lines.

    Responses are by question (version 2) or by user (version 1). The flat records of
    ``to_list(flatten=True)`` are read, too. Drafts and discarded responses are left out if they
    are marked.
    """
    for place, flat in collector.records(path):
        record = unflattened(flat)
        item = record.get("id") or record.get("external_id") or place
        collector.add_text(item, text_of(record.get("fields")))
        for user, question, value, status in _responses(record, place, collector):
            where = f"{place}, {question}"
            if status not in (None, "submitted"):
                collector.leave_out(f"since the response is {status}", where)
            elif user is None:
                collector.leave_out("since it does not have a user", where)
            elif isinstance(value, list) and all(isinstance(chosen, str) for chosen in value):
                collector.tick(user, item, question, value, where)
            else:
                collector.add(user, item, question, value, where)


def unflattened(record: Record) -> Record:
    """Return a flat record with its fields, and its responses by question; others as they are."""
    asked = [name.removesuffix(_RESPONSES) for name in record if name.endswith(_RESPONSES)]
    if "responses" in record or not asked:
        return record
    responses = {name: _in_rows(record, f"{name}{_RESPONSES}") for name in asked}
    of_questions = tuple(f"{name}." for name in asked)
    fields = {
        name: value
        for name, value in record.items()
        if name not in _NOT_FIELDS and not name.startswith(of_questions)
    }
    own = {name: record[name] for name in _NOT_FIELDS if name in record}
    return own | {"fields": fields, "responses": responses}


def _in_rows(record: Record, name: str) -> list[Record]:
    """Convert columns of values, users and statuses to one object per response."""
    values = record.get(name) or []
    users, statuses = (
        record.get(f"{name}.{what}") or [None] * len(values) for what in ("users", "status")
    )
    rows = zip(values, users, statuses, strict=False)
    return [{"value": v, "user_id": user, "status": status} for v, user, status in rows]


def _responses(
    record: Record, place: str, collector: Collector
) -> Iterator[tuple[Any, str, Any, Any]]:
    responses = record.get("responses") or {}
    if isinstance(responses, dict):
        for question, answers in responses.items():
            for _, one in collector.objects(answers or [], f"{place}, {question}", "response"):
                yield one.get("user_id"), question, one.get("value"), one.get("status")
        return
    for where, one in collector.objects(responses, place, "response"):
        values = one.get("values") or {}
        if not isinstance(values, dict):
            collector.leave_out("since it holds no value", where)
            continue
        for question, answers in values.items():
            value = answers.get("value") if isinstance(answers, dict) else answers
            yield one.get("user_id"), question, value, one.get("status")


def read_prodigy(path: str | PathLike[str], collector: Collector) -> None:
    """Read binary answers and choices from Prodigy's JSON Lines (``prodigy db-out``).

    The user is ``_annotator_id`` or, without it, ``_session_id``; the item is the ``_input_hash``.
    In tasks that accept or reject a label, the label is the attribute.
    """
    for where, example in collector.records(path):
        user = example.get("_annotator_id") or example.get("_session_id")
        answer = example.get("answer")
        # A text has the same hash in all questions.
        input_hash = example.get("_input_hash")
        item = where if input_hash is None else str(input_hash)
        collector.add_text(item, text_of(example))
        if answer == "ignore":
            collector.leave_out("since the annotator ignored it", where)
        elif user is None:
            collector.leave_out("since it has no _annotator_id and no _session_id", where)
        elif not isinstance(answer, str) or answer not in _PRODIGY_ANSWERS:
            collector.leave_out("since it has no answer", where)
        elif "options" not in example and not isinstance(example.get("accept"), list):
            about = str(example.get("label", "label"))
            collector.add(user, item, about, _PRODIGY_ANSWERS[answer], where)
        elif not _PRODIGY_ANSWERS[answer]:
            collector.leave_out("since the whole choice was rejected", where)
        else:
            accepted = example.get("accept") or []
            chosen = [str(one) for one in accepted] if isinstance(accepted, list) else accepted
            collector.tick(user, item, "choice", chosen, where)


AGENT = f"likeminds {__version__}"


@dataclass(frozen=True)
class ExportQuestion:
    """A question, the two answers to it, and the share of people who would give the first."""

    name: str | None
    positive: str
    negative: str
    shares: Mapping[Hashable, float]

    def answer(self, item: Hashable) -> tuple[str, float] | None:
        """Return the likelier answer about an item, and the share of people who would give it."""
        share = self.shares.get(item, self.shares.get(str(item)))
        if share is None:
            return None
        likelier = self.positive if share >= 0.5 else self.negative
        return likelier, max(share, 1.0 - share)


def return_to(kind: str, path: str | PathLike[str], questions: Iterable[ExportQuestion]) -> bytes:
    """Return the records of an export, each with its predicted label, for the same tool."""
    if kind not in RETURNS:
        raise ValueError(f"Cannot export predictions to {kind!r}; choose {' or '.join(RETURNS)}.")
    records = [record for _, record in Collector().records(path)]
    listed = list(questions)
    found = [RETURNS[kind](record, listed) for record in records]
    if not any(found):
        raise ValueError(
            "None of the records is an item of this model with its question "
            f"({listing([str(one.name) for one in listed])}). Pass the export that the model was "
            "fitted to."
        )
    suggested = [record for record in found if record is not None]
    return (json.dumps(suggested, indent=1, ensure_ascii=False) + "\n").encode()


def _predicted(
    questions: list[ExportQuestion], item: Hashable, asked: Iterable[str]
) -> Iterator[tuple[str, str, float]]:
    """Yield the name of each question that was asked, the likelier answer, and its share."""
    known = list(asked)
    for question in questions:
        answer = question.answer(item)
        names = known if question.name is None else [question.name]
        if answer is not None and len(names) == 1 and names[0] in known:
            yield names[0], *answer


def _to_label_studio(task: Record, questions: list[ExportQuestion]) -> Record | None:
    controls = _controls(task)
    predictions = []
    for name, label, share in _predicted(questions, task.get("id"), controls):
        about = {"from_name": name, "to_name": controls[name], "type": "choices"}
        result = about | {"value": {"choices": [label]}}
        predictions.append({"model_version": AGENT, "score": share, "result": [result]})
    if not predictions:
        return None
    return {"id": task.get("id"), "data": task.get("data", {}), "predictions": predictions}


def _controls(task: Record) -> dict[str, str]:
    """Return the controls of choices by name, and what each is about."""
    results = [
        result
        for annotation in task.get("annotations", task.get("completions")) or []
        if isinstance(annotation, dict)
        for result in annotation.get("result") or []
        if isinstance(result, dict) and result.get("type") == "choices"
    ]
    about = next(iter(task.get("data") or {}), "text")
    return {str(one.get("from_name")): str(one.get("to_name", about)) for one in results}


def _to_argilla(flat: Record, questions: list[ExportQuestion]) -> Record | None:
    record = unflattened(flat)
    item = record.get("id") or record.get("external_id")
    responses = record.get("responses") or {}
    by_question, asked = isinstance(responses, dict), responses
    if not by_question:
        asked = dict.fromkeys(name for one in responses for name in one.get("values") or {})
    suggested = {
        name: {"value": label, "score": share, "agent": AGENT}
        for name, label, share in _predicted(questions, item, asked)
    }
    if not suggested:
        return None
    own = {key: record[key] for key in ("id", "external_id", "fields") if key in record}
    if by_question:
        return own | {"suggestions": suggested}
    return own | {"suggestions": [{"question_name": k} | one for k, one in suggested.items()]}


RETURNS: Mapping[str, Callable[[Record, list[ExportQuestion]], Record | None]] = {
    "label-studio": _to_label_studio,
    "argilla": _to_argilla,
}
