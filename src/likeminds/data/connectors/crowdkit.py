"""The tables of Crowd-Kit: task, worker, label; or worker, left, right, label."""

from os import PathLike, fspath

from likeminds.data.connectors.export_result import Collector, Export
from likeminds.data.sources import read_table

_WORKER, _TASK, _LABEL, _SIDES = "worker", "task", "label", ("left", "right")


def read_crowdkit(path: str | PathLike[str]) -> Export:
    """Read a table of labels, or of pairwise comparisons whose label is the item that won."""
    table = read_table(path, lambda names: {_WORKER, _TASK, *_SIDES} & set(names))
    there = set(table.column_names)
    compares = {_WORKER, *_SIDES, _LABEL} <= there
    if not compares and not {_WORKER, _TASK, _LABEL} <= there:
        raise ValueError(
            f"{fspath(path)} needs the columns task, worker and label, or worker, left, right "
            f"and label; it has {', '.join(table.column_names)}."
        )
    collector = Collector()
    wanted = (_WORKER, *_SIDES, _LABEL) if compares else (_WORKER, _TASK, _LABEL)
    rows = zip(*(table[name].to_pylist() for name in wanted), strict=True)
    for number, row in enumerate(rows, 1):
        where = f"row {number}"
        if None in row:
            collector.leave_out("since a value is missing", where)
        elif not compares:
            worker, task, label = row
            collector.add(worker, task, _LABEL, label, where)
        else:
            worker, left, right, winner = row
            if str(winner) not in (str(left), str(right)):
                collector.leave_out("since its label is neither of the two items", where)
            else:
                loser = right if str(winner) == str(left) else left
                collector.add_comparison(worker, str(winner), str(loser), where)
    return collector.export()
