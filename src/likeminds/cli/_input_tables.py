"""From files and exports to tables of what people said."""

from typing import Any

from likeminds.cli._options import ComparisonOptions, LabelColumns
from likeminds.cli._output import Output

_Tables = list[tuple[Any, dict[str, str | None]]]


def read_tables(
    talk: Output, source: str | None, columns: LabelColumns, pairs: ComparisonOptions
) -> tuple[_Tables, dict[Any, str]]:
    """Return what people said, as tables with the names of their columns by role.

    Beside them is what items say, by their ids, where an export has told it.
    """
    from likeminds.cli._comparisons import NAMES, read_pairs
    from likeminds.data.column_roles import LABEL_ROLES, id_texts
    from likeminds.data.sources import read_table

    tables: _Tables = []
    texts: dict[Any, str] = {}
    if source is not None:
        names = {role: getattr(columns, role) for role in LABEL_ROLES}
        table = read_table(source, id_texts(names))
        names = with_item(talk, table, names)
        _tell_of_label(talk, table, names)
        tables.append((table, names))
    if pairs.comparisons is not None:
        tables.append((read_pairs(pairs, columns.user), NAMES))
    if pairs.of_attribute is not None and pairs.export is None:
        raise ValueError("--attribute chooses from an export: give --from, or leave it out.")
    if pairs.export is not None:
        exported, texts = _read_export(talk, *pairs.export, pairs.of_attribute)
        tables += exported
    if not tables:
        raise ValueError("What did people say? Give --annotations, --comparisons, or --from.")
    return tables, texts


def with_item(talk: Output, table: Any, names: dict[str, str | None]) -> dict[str, str | None]:
    """Return the names of columns; without a column of items, a title or name says which it is."""
    from likeminds.cli._id_lookup import find_names
    from likeminds.data.column_roles import find_column

    if names["item"] is not None or find_column("item", table.column_names) is not None:
        return names
    taken = [name for name in names.values() if name is not None]
    person = find_column("user", table.column_names)
    column = find_names(table, person or "", None)
    if column is None or column in taken:
        return names
    talk.tell(f"Using column {column!r} as the items.")
    return names | {"item": column}


def _tell_of_label(talk: Output, table: Any, names: dict[str, str | None]) -> None:
    """Say which column is taken for the label, where neither its name nor anybody says so."""
    from likeminds.data.column_roles import as_frame, find_columns, usual_columns

    if names["label"] is not None:
        return
    label = find_columns(as_frame(table), names, ())["label"]
    if label is not None and label not in usual_columns("label", table.column_names):
        talk.tell(
            f"{label}: taken for the label, as the only column left (--label-column names another)."
        )


def _read_export(
    talk: Output, tool: str, path: str, attribute: str | None
) -> tuple[_Tables, dict[Any, str]]:
    """Return labels, comparisons and texts of an export, and say what was left out of it."""
    import pyarrow as pa

    from likeminds.cli._comparisons import NAMES, as_sides
    from likeminds.data.column_roles import LABEL_ROLES, as_arrow
    from likeminds.data.connectors import read_export

    export = read_export(tool, path)
    talk.tell(str(export))
    tables: _Tables = []
    if export.labels or not export.comparisons:
        labels = export.to_table(attribute)
        export.refuse_mixed(attribute)
        names = {role: role if role in labels.column_names else None for role in LABEL_ROLES}
        asked = export.attributes if attribute is None else [attribute]
        if len(asked) == 1 and asked[0] not in labels.column_names:  # what was asked says the verb
            labels = labels.rename_columns({"label": asked[0]})
            names["label"] = asked[0]
        tables.append((labels, names))
    if export.comparisons:
        roles = ("user", "winner", "loser")
        columns = dict(zip(roles, map(list, zip(*export.comparisons, strict=True)), strict=True))
        compared = pa.table({role: as_arrow(ids) for role, ids in columns.items()})
        tables.append((as_sides(compared, dict(zip(roles, roles, strict=True))), NAMES))
    return tables, export.texts
