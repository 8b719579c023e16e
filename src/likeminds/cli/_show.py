"""Tables for people, and tables for programs."""

from collections.abc import Mapping, Sequence
from typing import Any

from likeminds.cli._talk import Talk


def rich_table(
    title: str, rows: Sequence[Mapping[str, Any]], *, digits: int = 3, signed: Sequence[str] = ()
) -> Any:
    """Return rows with the same columns as a table for the terminal."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD)
    for name in rows[0] if rows else ():
        numbers = all(isinstance(row[name], int | float) or row[name] is None for row in rows)
        table.add_column(
            name.replace("_", " "), justify="right" if numbers else "left", overflow="fold"
        )
    for row in rows:
        table.add_row(*(Text(cell(v, digits, name in signed)) for name, v in row.items()))
    # Not the table's own title, which breaks where the table ends.
    return Group(Text(title, style="bold"), table)


def cell(value: Any, digits: int = 3, signed: bool = False) -> str:
    """Return what stands in a cell."""
    if value is None or (isinstance(value, float) and value != value):  # noqa: PLR0124 - NaN
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"
    return str(value)


def arrow_table(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Return rows as a table that can be written to a file."""
    import pyarrow as pa

    return pa.Table.from_pylist([dict(row) for row in rows])


def refuse_two_outputs(talk: Talk, out: str | None) -> None:
    """Say early what cannot be done: two results in one stream, a file that cannot be written."""
    if out is None:
        return
    if out == "-":
        if talk.as_json:
            raise ValueError("--json and --out - both want standard output: give one of them.")
        return
    from likeminds.data.sources import as_written

    as_written(out)
