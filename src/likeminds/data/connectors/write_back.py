"""Soft labels on their way back into the tool that the labels came from.

Each item gets the label that more than half of the users would give, with their share as its
score: predictions of Label Studio, suggestions of Argilla.
"""

import json
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

from likeminds._util.checks import listing
from likeminds._version import __version__
from likeminds.data.connectors.export_result import Collector
from likeminds.data.connectors.labelling_tools import unflattened

AGENT = f"likeminds {__version__}"


@dataclass(frozen=True)
class ExportQuestion:
    """What was asked, the two answers to it, and the share of people who would give the first."""

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
    """Return the records of an export with the predicted label of each, for the same tool."""
    if kind not in RETURNS:
        raise ValueError(f"Nothing goes back to {kind!r}; there are {', '.join(RETURNS)}.")
    records = [record for _, record in Collector().records(path)]
    listed = list(questions)
    found = [RETURNS[kind](record, listed) for record in records]
    if not any(found):
        raise ValueError(
            "None of the records is an item of this model, or none was asked what the model is "
            f"about ({listing([str(one.name) for one in listed])}). Is it the export it was fitted "
            "to?"
        )
    suggested = [record for record in found if record is not None]
    return (json.dumps(suggested, indent=1, ensure_ascii=False) + "\n").encode()


def _to_label_studio(
    task: dict[str, Any], questions: list[ExportQuestion]
) -> dict[str, Any] | None:
    controls = _controls(task)
    predictions = []
    for question in questions:
        answer = question.answer(task.get("id"))
        names = list(controls) if question.name is None else [question.name]
        if answer is None or len(names) != 1 or names[0] not in controls:
            continue
        result = {
            "from_name": names[0],
            "to_name": controls[names[0]],
            "type": "choices",
            "value": {"choices": [answer[0]]},
        }
        predictions.append({"model_version": AGENT, "score": answer[1], "result": [result]})
    if not predictions:
        return None
    return {"id": task.get("id"), "data": task.get("data", {}), "predictions": predictions}


def _controls(task: dict[str, Any]) -> dict[str, str]:
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


def _to_argilla(flat: dict[str, Any], questions: list[ExportQuestion]) -> dict[str, Any] | None:
    record = unflattened(flat)
    item = record.get("id") or record.get("external_id")
    responses = record.get("responses") or {}
    by_question = isinstance(responses, dict)
    question_names = (
        list(responses)
        if by_question
        else list(dict.fromkeys(name for one in responses for name in one.get("values") or {}))
    )
    suggested: dict[str, dict[str, Any]] = {}
    for question in questions:
        answer = question.answer(item)
        names = question_names if question.name is None else [question.name]
        if answer is not None and len(names) == 1 and names[0] in question_names:
            suggested[names[0]] = {"value": answer[0], "score": answer[1], "agent": AGENT}
    if not suggested:
        return None
    suggestions = (
        suggested
        if by_question
        else [{"question_name": name} | suggestion for name, suggestion in suggested.items()]
    )
    own = {key: record[key] for key in ("id", "external_id", "fields") if key in record}
    return own | {"suggestions": suggestions}


RETURNS: Mapping[str, Callable[[dict[str, Any], list[ExportQuestion]], dict[str, Any] | None]] = {
    "label-studio": _to_label_studio,
    "argilla": _to_argilla,
}
