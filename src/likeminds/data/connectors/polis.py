"""The export of a Polis conversation: votes.csv and comments.csv."""

from os import PathLike, fspath
from pathlib import Path

from likeminds.data.connectors.export_result import Collector, Export
from likeminds.data.sources import read_csv

_VOTER, _COMMENT, _VOTE, _TIME, _BODY = (
    "voter-id",
    "comment-id",
    "vote",
    "timestamp",
    "comment-body",
)
_AGREE, _DISAGREE = 1, -1


def read_polis(path: str | PathLike[str]) -> Export:
    """Read agreement with statements from Polis's export: its folder, or its votes.csv.

    Passes are left out. Somebody who voted twice on a statement has changed their mind: the
    later vote counts. Texts of the statements come from comments.csv, where it is there.
    """
    votes = Path(path) / "votes.csv" if Path(path).is_dir() else Path(path)
    table = read_csv(votes, lambda names: {_VOTER, _COMMENT} & set(names))
    missing = [name for name in (_VOTER, _COMMENT, _VOTE) if name not in table.column_names]
    if missing:
        raise ValueError(
            f"{fspath(votes)} is no list of votes as Polis exports it: it lacks the "
            f"column(s) {', '.join(missing)}."
        )
    collector = Collector()
    if _TIME in table.column_names:
        table = table.sort_by(_TIME)
    columns = (table[name].to_pylist() for name in (_VOTER, _COMMENT, _VOTE))
    for number, (voter, comment, vote) in enumerate(zip(*columns, strict=True), 1):
        where = f"vote {number}"
        if vote in (_AGREE, _DISAGREE):
            collector.add(voter, comment, "agree", vote == _AGREE, where)
        else:
            collector.leave_out("since it is a pass" if vote == 0 else "since it is no vote", where)
    collector.texts.update(_statements(votes.with_name("comments.csv")))
    return collector.export()


def _statements(path: Path) -> dict[str, str]:
    if not path.exists():
        return {}
    table = read_csv(path, lambda names: {_COMMENT, _BODY} & set(names))
    if not {_COMMENT, _BODY} <= set(table.column_names):
        raise ValueError(f"{fspath(path)} needs the columns {_COMMENT} and {_BODY}.")
    both = zip(table[_COMMENT].to_pylist(), table[_BODY].to_pylist(), strict=True)
    return {comment: body for comment, body in both if body}
