"""Prodigy's JSON Lines: one annotated example per line, with the answer given."""

from collections.abc import Hashable
from os import PathLike
from typing import Any

from likeminds.data.connectors.export_result import Collector, Export
from likeminds.data.connectors.json_io import read_records, text_of

_ANSWERS = {"accept": True, "reject": False}


def read_prodigy(path: str | PathLike[str]) -> Export:
    """Read binary answers and choices from Prodigy's JSON Lines (``prodigy db-out``).

    Who answered is ``_annotator_id`` or, without it, ``_session_id``; an example is known by its
    ``_input_hash``. Where a label was shown to accept or reject, it is the attribute.
    """
    collector = Collector()
    for where, example in read_records(path, collector):
        person = example.get("_annotator_id") or example.get("_session_id")
        answer = example.get("answer")
        item = _item(example, where)
        text = text_of(example)
        collector.say(item, text)
        if answer == "ignore":
            collector.leave_out("since the annotator ignored it", where)
        elif person is None:
            collector.leave_out("since it has no _annotator_id and no _session_id", where)
        elif not isinstance(answer, str) or answer not in _ANSWERS:
            collector.leave_out("since it has no answer", where)
        elif "options" in example or isinstance(example.get("accept"), list):
            accepted = example.get("accept") or []
            chosen = [str(one) for one in accepted] if isinstance(accepted, list) else accepted
            if _ANSWERS[answer]:
                collector.tick(person, item, "choice", chosen, where)
            else:
                collector.leave_out("since the whole choice was rejected", where)
        else:
            about = str(example.get("label", "label"))
            collector.add(person, item, about, _ANSWERS[answer], where)
    return collector.export()


def _item(example: dict[str, Any], where: str) -> Hashable:
    # Texts that were shown again have the same hash, whatever was asked about them.
    known = example.get("_input_hash")
    return where if known is None else str(known)
