"""Readers of published data with disagreement: Crowd-Kit, LeWiDi, Polis, preferences."""

from os import PathLike, fspath
from pathlib import Path

from likeminds.data.column_roles import is_usual
from likeminds.data.connectors.export_result import Collector, read_json, text_of
from likeminds.data.sources import read_csv, read_table

_VOTER, _COMMENT, _VOTE, _BODY = "voter-id", "comment-id", "vote", "comment-body"
# The user of preferences that name none.
_ONLY_USER = "everybody"


def read_crowdkit(path: str | PathLike[str], collector: Collector) -> None:
    """Read a table of labels, or of pairwise comparisons whose label is the item that won."""
    table = read_table(path, lambda names: {"worker", "task", "left", "right"} & set(names))
    shapes = (["worker", "left", "right", "label"], ["worker", "task", "label"])
    columns = next((names for names in shapes if set(names) <= set(table.column_names)), None)
    if columns is None:
        raise ValueError(
            f"{fspath(path)} needs the columns task, worker and label, or worker, left, right "
            f"and label; it has {', '.join(table.column_names)}."
        )
    rows = zip(*(table[name].to_pylist() for name in columns), strict=True)
    for number, (worker, *items, label) in enumerate(rows, 1):
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


def read_lewidi(path: str | PathLike[str], collector: Collector) -> None:
    """Read labels from a data set of the LeWiDi tasks (learning with disagreements).

    Annotators and annotations are lists, or texts separated by commas (2023), or one mapping from
    annotator to annotation (2025).
    """
    records = read_json(path)
    if not isinstance(records, dict):
        raise ValueError(  # noqa: TRY004 - the file is wrong, not the argument
            f"{fspath(path)} is not a LeWiDi data set: that is one JSON object with a record "
            "for each id."
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
            collector.leave_out("since it has not as many annotators as annotations", where)
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
    """Read agreement with statements from Polis's export: its folder, or its votes.csv.

    Passes are left out. If a user voted twice on a statement, the later vote counts. Texts of the
    statements come from comments.csv, where it is there.
    """
    votes = Path(path) / "votes.csv" if Path(path).is_dir() else Path(path)
    table = read_csv(votes, lambda names: {_VOTER, _COMMENT} & set(names))
    missing = [name for name in (_VOTER, _COMMENT, _VOTE) if name not in table.column_names]
    if missing:
        raise ValueError(
            f"{fspath(votes)} is not a list of votes as Polis exports it: it lacks the "
            f"column(s) {', '.join(missing)}."
        )
    if "timestamp" in table.column_names:
        table = table.sort_by("timestamp")
    columns = (table[name].to_pylist() for name in (_VOTER, _COMMENT, _VOTE))
    for number, (voter, comment, vote) in enumerate(zip(*columns, strict=True), 1):
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
        if not {_COMMENT, _BODY} <= set(table.column_names):
            raise ValueError(f"{fspath(comments)} needs the columns {_COMMENT} and {_BODY}.")
        both = zip(table[_COMMENT].to_pylist(), table[_BODY].to_pylist(), strict=True)
        collector.texts |= {comment: body for comment, body in both if body}


def read_preferences(path: str | PathLike[str], collector: Collector) -> None:
    """Read comparisons from records with ``chosen`` and ``rejected``.

    Answers are texts or lists of messages with a role and a content, whose last one counts. An
    item is an answer to its prompt. Records without a user are those of one, called everybody.
    """
    names: dict[tuple[str, str], str] = {}
    for where, record in collector.records(path):
        prompt = _content(record.get("prompt")) or ""
        answers = [_content(record.get(side)) for side in ("chosen", "rejected")]
        if None in answers:
            collector.leave_out("since it has not both a chosen and a rejected answer", where)
            continue
        keys = [(prompt, str(answer)) for answer in answers]
        winner, loser = (names.setdefault(key, f"answer {len(names) + 1}") for key in keys)
        collector.texts |= {winner: keys[0][1], loser: keys[1][1]}
        named = (value for key, value in record.items() if is_usual("user", key))
        user = next((name for name in named if name is not None), _ONLY_USER)
        collector.add_comparison(user, winner, loser, where)


def _content(answer: object) -> str | None:
    if isinstance(answer, list) and answer and isinstance(answer[-1], dict):
        answer = answer[-1].get("content")
    return answer if isinstance(answer, str) and answer else None
