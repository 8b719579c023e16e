"""Results as data frames, HTML (from ``templates/``), text, and tables of rich."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from likeminds._util.lazy_imports import nw, pa
from likeminds._util.text_format import decimal, visible
from likeminds._util.text_format import signed as with_sign

if TYPE_CHECKING:
    from jinja2 import Environment
    from rich.console import Console, ConsoleOptions, RenderableType

Frames = Literal["pyarrow", "pandas", "polars"]
KINDS: tuple[Frames, ...] = ("pyarrow", "pandas", "polars")
Rows = Sequence[Mapping[str, object]]
Row = dict[str, Any]

# The width of a column without its cells, and of a table without its columns.
_BORDER, _EDGE = 3, 1
# Texts of up to this many letters are not broken.
_WHOLE = 16
# Columns of ids: 12345 is a user, not 12,345 users.
_IDS = ("user", "item", "attribute")
# A notebook shows the first few rows; data frames have them all.
_MOST_ROWS = 20


class ResultTable(ABC):
    """A result that is a table: as a data frame of any kind, and as HTML in notebooks."""

    frames: Frames = "pyarrow"

    @abstractmethod
    def to_arrow(self) -> "pa.Table":
        """Return the result as a table of pyarrow."""

    def to_pandas(self) -> Any:
        """Return the result as a data frame of pandas."""
        return as_kind(self.to_arrow(), "pandas")

    def to_polars(self) -> Any:
        """Return the result as a data frame of polars."""
        return as_kind(self.to_arrow(), "polars")

    def table(self) -> Any:
        """Return the result as a data frame of the library that the labels came from."""
        return as_kind(self.to_arrow(), self.frames)

    @abstractmethod
    def _headline(self) -> str:
        """Return the result in one sentence."""

    def _html_tables(self) -> Sequence[Rows]:
        """Return the tables that a notebook shows."""
        return [self.to_arrow().to_pylist()]

    def _html_notes(self) -> Sequence[str]:
        """Return the sentences below the tables."""
        return ()

    def _repr_html_(self) -> str:
        notes = (f"<p>{escape(note)}</p>" for note in self._html_notes())
        return html_page(self._headline(), *map(html_table, self._html_tables()), *notes)


@dataclass(frozen=True, eq=False, repr=False)
class Table(ResultTable):
    """Rows with the same columns, a title, and notes.

    Attributes
    ----------
    title : str
        The title of the table.
    rows : list of dict
        The rows; missing numbers are None.
    notes : tuple of str
        Sentences below the table.
    frames : str
        The library of the data frame that ``table()`` returns: the one of the labels.

    Examples
    --------
    >>> table = Table("Prices", [{"item": "tea", "costs": 2.0}, {"item": "rum", "costs": None}])
    >>> print(table)
    Prices
    item   costs
    tea    2.000
    rum        -
    >>> table.to_dict()["rows"][0]
    {'item': 'tea', 'costs': 2.0}
    """

    title: str
    rows: list[Row]
    notes: tuple[str, ...] = ()
    frames: Frames = field(default="pyarrow", kw_only=True)

    def to_dict(self) -> dict[str, Any]:
        """Return title, rows and notes as plain values, for JSON."""
        return {"title": self.title, "rows": self.rows, "notes": list(self.notes)}

    def to_arrow(self) -> "pa.Table":
        """Return the rows as a table of pyarrow."""
        return pa.Table.from_pylist(self.rows)

    def __str__(self) -> str:
        names = list(self.rows[0]) if self.rows else []
        cells = [names, *([_cell(row[name], keep="") for name in names] for row in self.rows)]
        numbers = [not isinstance(self.rows[0][name], str) for name in names]
        return "\n".join([self.title, *aligned(cells, numbers), *self.notes])

    __repr__ = __str__

    def _headline(self) -> str:
        return self.title

    def _html_tables(self) -> Sequence[Rows]:
        return [self.rows]

    def _html_notes(self) -> Sequence[str]:
        return self.notes


def as_kind(table: "pa.Table", kind: Frames) -> Any:
    """Return a pyarrow.Table as a data frame of another kind."""
    if kind == "pyarrow":
        return table
    frame = nw.from_native(table)
    return frame.to_pandas() if kind == "pandas" else frame.to_polars()


@cache
def _environment() -> "Environment":
    from jinja2 import (  # noqa: PLC0415 - 40 ms
        Environment,
        PackageLoader,
        StrictUndefined,
        select_autoescape,
    )

    return Environment(
        loader=PackageLoader("likeminds._util"),
        autoescape=select_autoescape(),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(template: str, **context: object) -> str:
    """Return a filled-in template, with all values escaped."""
    return _environment().get_template(template).render(context)


def html_page(headline: str, *parts: str) -> str:
    """Return a headline and parts of HTML for a notebook."""
    return render("notebook.html", headline=visible(headline), parts=parts)


def html_table(rows: Rows) -> str:
    """Return the first rows as an HTML table, with the number of further rows below."""
    if not rows:
        return ""
    header = [str(name).replace("_", " ") for name in rows[0]]
    cells = ([_cell(value) for value in row.values()] for row in rows[:_MOST_ROWS])
    more = len(rows) - _MOST_ROWS
    blocks: Any = _environment().get_template("blocks.html").module
    return f"{blocks.table(header, cells)}" + (f"<p>and {more:,} more</p>" if more > 0 else "")


def _cell(value: object, keep: str = "\n\t") -> str:
    if value is None or (isinstance(value, float) and value != value):  # noqa: PLR0124 - NaN
        return "-"
    return decimal(value) if isinstance(value, float) else visible(str(value), keep)


def aligned(rows: Sequence[Sequence[str]], numbers: Sequence[bool]) -> list[str]:
    """Return rows of cells as lines of text, with numbers aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if is_number else cell.ljust(width)
            for cell, width, is_number in zip(row, widths, numbers, strict=True)
        ).rstrip()
        for row in rows
    ]


def rich_table(
    title: str, rows: Rows, *, digits: int | None = 3, signed: Sequence[str] = ()
) -> "RenderableType":
    """Return rows with the same columns as a table for the terminal."""
    from rich.console import Group  # noqa: PLC0415 - for terminals
    from rich.text import Text  # noqa: PLC0415

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
    # A title of the table itself would be wrapped at the table's width.
    return Group(Text(title, style="bold"), TableColumns(columns))


class TableColumn(NamedTuple):
    """A column of a table: its name, whether it has numbers, and its cells."""

    name: str
    numbers: bool
    cells: list[str]

    @property
    def least(self) -> int:
        """The least width that does not break numbers, short texts and words of the header."""
        cells = max(map(len, self.cells), default=0)
        words = max(map(len, self.name.split()), default=0)
        return max(words, cells if self.numbers else min(cells, _WHOLE))


class TableColumns(NamedTuple):
    """Columns side by side.

    If the terminal is too narrow for all, columns continue below, each time after the first one. If
    it is too narrow for two, each line has one cell.
    """

    columns: list[TableColumn]

    def __rich_console__(
        self, _: "Console", options: "ConsoleOptions"
    ) -> Iterator["RenderableType"]:
        from rich.box import SIMPLE_HEAD  # noqa: PLC0415
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        room = options.max_width - _EDGE
        first, *rest = self.columns or [TableColumn("", numbers=False, cells=[])]
        if first.least + max((c.least for c in rest), default=0) + 2 * _BORDER > room:
            for cells in zip(*(column.cells for column in self.columns), strict=True):
                yield Text("")
                for column, shown in zip(self.columns, cells, strict=True):
                    yield Text(f"{column.name}: {shown}", overflow="fold")
            return
        blocks = [[first]]
        for column in rest:
            if sum(c.least + _BORDER for c in [*blocks[-1], column]) > room:
                blocks.append([first])
            blocks[-1].append(column)
        for block in blocks:
            table = Table(box=SIMPLE_HEAD)
            is_tight = sum(max(len(c.name), c.least) + _BORDER for c in block) > room
            for column in block:
                table.add_column(
                    Text(column.name),
                    justify="right" if column.numbers else "left",
                    overflow="fold",
                    min_width=column.least or None,
                    max_width=column.least if column.numbers and is_tight else None,
                )
            for cells in zip(*(column.cells for column in block), strict=True):
                table.add_row(*map(Text, cells))
            yield table


def cell(value: object, digits: int | None = 3, signed: bool = False) -> str:
    """Return the text of a cell.

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
        if digits is None:
            return decimal(value)
        written = with_sign(value, digits)
        return written if signed else written.removeprefix("+")
    return visible(str(value), keep="")
