"""Label Studio's JSON: tasks with annotations, each with results of controls."""

from collections.abc import Hashable, Iterator
from os import PathLike
from typing import Any

from likeminds.data.connectors.export_result import Collector, Export
from likeminds.data.connectors.json_io import objects_in, read_records, text_of

_SIDES = ("left", "right")


def read_label_studio(path: str | PathLike[str]) -> Export:
    """Read choices, ratings and pairwise comparisons from an export of Label Studio (JSON).

    A task is an item and each control an attribute. A control in which somebody ticked several
    choices becomes one yes-or-no attribute for each choice. Pairwise comparisons are of the two
    texts of a task, the first of which is the left one.
    """
    collector = Collector()
    for place, task in read_records(path, collector):
        item = task.get("id", place)
        text = text_of(task.get("data"))
        collector.say(item, text)
        for person, result, where in _results(task, place, collector):
            control = str(result.get("from_name", "label"))
            value = result.get("value")
            kind = str(result.get("type"))
            if not isinstance(value, dict) or (kind not in value and kind != "pairwise"):
                collector.leave_out("since it holds no value", where)
            elif kind == "choices":
                collector.tick(person, item, control, value["choices"], where)
            elif kind == "rating":
                collector.add(person, item, control, value["rating"], where)
            elif kind == "pairwise":
                _compare(collector, person, task, value, where)
            else:
                collector.leave_out(f"since {kind} is no label of a whole item", where)
    return collector.export()


def _results(
    task: dict[str, Any], place: str, collector: Collector
) -> Iterator[tuple[Hashable, dict[str, Any], str]]:
    annotations = task.get("annotations", task.get("completions")) or []
    for where, annotation in objects_in(annotations, place, "annotation", collector):
        if annotation.get("was_cancelled"):
            collector.leave_out("since the annotator skipped the task", where)
        elif (person := _person(annotation.get("completed_by"))) is None:
            collector.leave_out("since nobody says who completed it", where)
        elif not annotation.get("result"):
            collector.leave_out("since it is empty", where)
        else:
            found = objects_in(annotation["result"], where, "result", collector)
            yield from ((person, result, where) for _, result in found)


def _person(completed_by: Any) -> Hashable | None:
    if isinstance(completed_by, dict):
        return next(
            (completed_by[k] for k in ("id", "email", "username") if k in completed_by), None
        )
    return completed_by if isinstance(completed_by, int | str) else None


def _compare(
    collector: Collector, person: Hashable, task: dict[str, Any], value: dict[str, Any], where: str
) -> None:
    data = task.get("data")
    texts = (
        [text for text in data.values() if isinstance(text, str)] if isinstance(data, dict) else []
    )
    selected = value.get("selected")
    if len(texts) != len(_SIDES):
        collector.leave_out("since the task does not have exactly two texts to compare", where)
    elif selected not in _SIDES:
        collector.leave_out("since neither side was selected", where)
    else:
        winner, loser = texts if selected == _SIDES[0] else reversed(texts)
        collector.texts |= {winner: winner, loser: loser}
        collector.add_comparison(person, winner, loser, where)
