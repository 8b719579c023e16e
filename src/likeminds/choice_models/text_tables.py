"""Small result tables, as text, HTML, data frames and plain values."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from likeminds._util.result_tables import Frames, ResultTable, Rows
from likeminds._util.text_format import decimal, visible

Row = dict[str, Any]


@dataclass(frozen=True, eq=False, repr=False)
class Table(ResultTable):
    """Rows with the same columns, a title, and notes.

    Attributes
    ----------
    title : str
        What the table shows.
    rows : list of dict
        The rows; missing numbers are None.
    notes : tuple of str
        Sentences below the table.
    frames : str
        The kind of data frame that ``table()`` returns: that of the labels.

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

    def to_arrow(self) -> pa.Table:
        """Return the rows as a table of pyarrow."""
        return pa.Table.from_pylist(self.rows)

    def __str__(self) -> str:
        names = list(self.rows[0]) if self.rows else []
        cells = [names, *([_cell(row[name]) for name in names] for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        numbers = [not isinstance(self.rows[0][name], str) for name in names]
        lines = [
            "  ".join(
                cell.rjust(width) if is_number else cell.ljust(width)
                for cell, width, is_number in zip(row, widths, numbers, strict=True)
            )
            for row in cells
        ]
        return "\n".join([self.title, *(line.rstrip() for line in lines), *self.notes])

    __repr__ = __str__

    def _headline(self) -> str:
        return self.title

    def _html_tables(self) -> Sequence[Rows]:
        return [self.rows]

    def _html_notes(self) -> Sequence[str]:
        return self.notes


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return decimal(value)
    return visible(str(value), keep="")
