"""Small result tables, as text, HTML, data frames and plain values."""

from dataclasses import dataclass
from html import escape
from importlib.util import find_spec
from typing import Any

import pyarrow as pa

from likeminds._util.result_tables import Frames, as_kind, table_html
from likeminds._util.text_format import decimal, visible

Row = dict[str, Any]


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Rows with the same columns, a title, and notes.

    Attributes
    ----------
    title : str
        What the table shows.
    rows : list of dict
        The rows; missing numbers are None.
    notes : tuple of str
        Sentences below the table.

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

    def to_dict(self) -> dict[str, Any]:
        """Return title, rows and notes as plain values, for JSON."""
        return {"title": self.title, "rows": self.rows, "notes": list(self.notes)}

    def to_frame(self) -> Any:
        """Return the rows as a data frame of pandas or, if that is not installed, of polars."""
        kinds: tuple[Frames, ...] = ("pandas", "polars")
        for kind in kinds:
            if find_spec(kind) is not None:
                return as_kind(pa.Table.from_pylist(self.rows), kind)
        raise ImportError("to_frame needs pandas or polars: install one, or use to_dict.")

    def __str__(self) -> str:
        names, rows = self._cells()
        cells = [names, *rows]
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

    def _repr_html_(self) -> str:
        names, rows = self._cells()
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return table_html(names, rows, self.title) + notes

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        names = list(self.rows[0]) if self.rows else []
        return names, [[_cell(row[name]) for name in names] for row in self.rows]


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return decimal(value)
    return visible(str(value), keep="")
