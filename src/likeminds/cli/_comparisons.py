"""From a table of comparisons to a table of labels, whose groups are the pairs."""

from typing import Any

from likeminds.cli._options import ComparisonOptions

# What the columns of the table of labels are called.
NAMES: dict[str, str | None] = {
    "user": "user",
    "item": "item",
    "label": "label",
    "attribute": None,
    "weight": "weight",
    "choice_set": "choice_set",
}


def read_pairs(pairs: ComparisonOptions, user: str | None, alone: str | None = None) -> Any:
    """Return one row for each side of each pair: user, item, label, choice_set and weight.

    ``alone`` is who compared, where no column says so.
    """
    import pyarrow as pa

    from likeminds.data.column_roles import find_column, id_texts
    from likeminds.data.sources import read_table

    assert pairs.comparisons is not None
    names = {"user": user, "winner": pairs.winner, "loser": pairs.loser}
    names |= {"tie": pairs.tie, "strength": pairs.strength}
    table = read_table(pairs.comparisons, id_texts(names))
    about = find_column("attribute", table.column_names)
    if about is not None and len(table[about].unique()) > 1:
        raise ValueError(
            f"The comparisons are about several attributes (column {about!r}), and are learned "
            "from one at a time: give a table of each."
        )
    if alone is not None and user is None and find_column("user", table.column_names) is None:
        table = table.append_column("user", pa.array([alone] * table.num_rows))
    return as_sides(table, names)


def as_sides(table: Any, names: dict[str, str | None]) -> Any:
    """Return a table of pairs as one of labels: see `read_pairs`."""
    import numpy as np
    import pyarrow as pa

    from likeminds.data.choice_sets import comparison_arguments
    from likeminds.data.column_roles import ID_ROLES, as_arrow, as_frame, find_columns, read_values

    frame = as_frame(table)
    values = {
        role: read_values(frame, name, as_ids=role in ID_ROLES)
        for role, name in find_columns(frame, names, ()).items()
        if name is not None
    }
    pairs = {"users": values["user"], "winners": values["winner"], "losers": values["loser"]}
    extra = {"ties": values.get("tie"), "strength": values.get("strength")}
    columns = comparison_arguments(pairs | extra, {})
    weight = columns["weights"]
    return pa.table(
        {
            "user": as_arrow(columns["users"].tolist()),
            "item": as_arrow(columns["items"].tolist()),
            "label": columns["labels"],
            "choice_set": columns["choice_sets"],
            "weight": np.ones(len(columns["labels"])) if weight is None else weight,
        }
    )
