"""The JSON of the shared tasks on learning with disagreements (LeWiDi)."""

from os import PathLike, fspath
from typing import Any

from likeminds.data.connectors.export_result import Collector, Export
from likeminds.data.connectors.json_io import read_json, text_of


def read_lewidi(path: str | PathLike[str]) -> Export:
    """Read who said what from a data set of the LeWiDi tasks.

    Annotators and annotations are lists, or texts separated by commas (2023), or one mapping from
    annotator to annotation (2025).
    """
    records = read_json(path)
    if not isinstance(records, dict):
        raise ValueError(  # noqa: TRY004 - the file is wrong, not the argument
            f"{fspath(path)} is no data set of LeWiDi: that is one JSON object with a record "
            "for each id."
        )
    collector = Collector()
    for item, record in records.items():
        where = f"record {item}"
        if not isinstance(record, dict):
            collector.leave_out("since it is no object of JSON", where)
            continue
        text = text_of(record.get("text"))
        collector.say(item, text)
        _take(collector, str(item), record, where)
    return collector.export()


def _take(collector: Collector, item: str, record: dict[str, Any], where: str) -> None:
    said = record.get("annotations")
    if isinstance(said, dict):
        people, labels = list(said), list(said.values())
    else:
        people, labels = _listed(record.get("annotators")), _listed(said)
    if not labels:
        collector.leave_out("since it has no annotations", where)
    elif len(people) != len(labels):
        collector.leave_out("since it has not as many annotators as annotations", where)
    else:
        for person, label in zip(people, labels, strict=True):
            collector.add(person, item, "label", _as_number(label), where)


def _listed(value: Any) -> list[Any]:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value if isinstance(value, list) else []


def _as_number(label: Any) -> Any:
    try:
        return int(label)
    except (TypeError, ValueError):
        return label
