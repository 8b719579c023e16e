"""Tables for people, and tables for programs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from likeminds._util.text_format import signed as with_sign
from likeminds._util.text_format import visible
from likeminds.cli._output import Output

# The narrowest column in which one can read anything, its border included.
_NARROWEST = 7
# Texts of so many letters are not broken.
_WHOLE = 16
# Columns of ids: 12345 is somebody, not 12,345 of something.
_IDS = ("user", "item", "attribute")


def rich_table(
    title: str, rows: Sequence[Mapping[str, Any]], *, digits: int = 3, signed: Sequence[str] = ()
) -> Any:
    """Return rows with the same columns as a table for the terminal."""
    from rich.console import Group
    from rich.text import Text

    columns = [
        TableColumn(
            name.replace("_", " "),
            all(isinstance(row[name], int | float) or row[name] is None for row in rows),
            [
                cell(str(row[name]) if name in _IDS else row[name], digits, name in signed)
                for row in rows
            ],
        )
        for name in (rows[0] if rows else ())
    ]
    # Not the table's own title, which breaks where the table ends.
    return Group(Text(title, style="bold"), TableColumns(columns))


class TableColumn(NamedTuple):
    """A column of a table: its name, whether it is of numbers, and its cells."""

    name: str
    numbers: bool
    cells: list[str]


class TableColumns(NamedTuple):
    """Columns side by side; where the terminal is too narrow for that, one cell a line."""

    columns: list[TableColumn]

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
        from rich.text import Text

        if options.max_width < _NARROWEST * len(self.columns):
            for cells in zip(*(column.cells for column in self.columns), strict=True):
                yield Text("")
                for column, shown in zip(self.columns, cells, strict=True):
                    yield Text(f"{column.name}: {shown}", overflow="fold")
            return
        table = Table(box=SIMPLE_HEAD)
        for column in self.columns:
            longest = 0 if column.numbers else max(map(len, column.cells), default=0)
            table.add_column(
                Text(column.name),
                justify="right" if column.numbers else "left",
                overflow="fold",
                min_width=min(longest, _WHOLE) or None,  # headers of numbers break before names do
            )
        for cells in zip(*(column.cells for column in self.columns), strict=True):
            table.add_row(*map(Text, cells))
        yield table


def cell(value: Any, digits: int = 3, signed: bool = False) -> str:
    """Return what stands in a cell.

    Examples
    --------
    >>> cell(-0.0001), cell(-0.0001, signed=True), cell(0.25, 2, signed=True), cell(-0.25, 2)
    ('0.000', '0.000', '+0.25', '-0.25')
    """
    if value is None or (isinstance(value, float) and value != value):  # noqa: PLR0124 - NaN
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        written = with_sign(value, digits)
        return written if signed else written.removeprefix("+")
    return visible(str(value), keep="")


def arrow_table(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Return rows as a table that can be written to a file."""
    import pyarrow as pa

    from likeminds.data.column_roles import as_arrow

    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: as_arrow([row.get(name) for row in rows]) for name in names})


def refuse_two_outputs(talk: Output, out: str | None) -> None:
    """Say early what cannot be done: two results in one stream, a file that cannot be written."""
    if out is None:
        return
    if out == "-":
        if talk.as_json:
            raise ValueError("--json and --out - both want standard output: give one of them.")
        return
    from likeminds.data.sources import as_written

    as_written(out)
