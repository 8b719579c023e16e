"""Results that are tables: data frames of the caller's kind, and HTML from ``templates/``."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any, Literal

from likeminds._util.lazy_imports import nw, pa
from likeminds._util.text_format import decimal, visible

if TYPE_CHECKING:
    from jinja2 import Environment

Frames = Literal["pyarrow", "pandas", "polars"]
KINDS: tuple[Frames, ...] = ("pyarrow", "pandas", "polars")
Rows = Sequence[Mapping[str, object]]

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
        """Return the result as the kind of data frame that the labels came in."""
        return as_kind(self.to_arrow(), self.frames)

    @abstractmethod
    def _headline(self) -> str:
        """Say in one sentence what was found."""

    def _html_tables(self) -> Sequence[Rows]:
        """Return the tables that a notebook shows."""
        return [self.to_arrow().to_pylist()]

    def _html_notes(self) -> Sequence[str]:
        """Return the sentences below the tables."""
        return ()

    def _repr_html_(self) -> str:
        notes = (f"<p>{escape(note)}</p>" for note in self._html_notes())
        return html_page(self._headline(), *map(html_table, self._html_tables()), *notes)


def kind_of(frame: object) -> Frames:
    """Return the kind of a data frame; pyarrow for any other object."""
    found = nw.from_native(frame, pass_through=True)
    if not isinstance(found, nw.DataFrame | nw.LazyFrame):
        return "pyarrow"
    name = str(found.implementation.name).lower()
    return next((kind for kind in KINDS if kind == name), "pyarrow")


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
    """Return a template, filled in; everything it is given is escaped."""
    return _environment().get_template(template).render(context)


def html_page(headline: str, *parts: str) -> str:
    """Return a headline, and parts that are HTML already, as a notebook shows them."""
    return render("notebook.html", headline=visible(headline), parts=parts)


def html_table(rows: Rows) -> str:
    """Return the first rows as a table of HTML, and the number of the others."""
    if not rows:
        return ""
    header = [str(name).replace("_", " ") for name in rows[0]]
    cells = ([_cell(value) for value in row.values()] for row in rows[:_MOST_ROWS])
    more = len(rows) - _MOST_ROWS
    return table_html(header, cells) + (f"<p>and {more:,} more</p>" if more > 0 else "")


def table_html(
    header: Sequence[str], rows: Iterable[Sequence[str]], caption: str | None = None
) -> str:
    """Return cells as a table of HTML."""
    blocks: Any = _environment().get_template("blocks.html").module
    return str(blocks.table(header, rows, caption))


def _cell(value: object) -> str:
    if value is None or (isinstance(value, float) and value != value):  # noqa: PLR0124 - NaN
        return "-"
    return decimal(value) if isinstance(value, float) else visible(str(value))
