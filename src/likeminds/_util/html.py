"""HTML from the templates in ``templates/``: everything they are given is escaped."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from likeminds._util.text_format import visible

if TYPE_CHECKING:
    from jinja2 import Environment

# A notebook shows the first few rows; `to_frame` and `table` have them all.
_MOST_ROWS = 12


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - 40 ms

    return Environment(
        loader=PackageLoader("likeminds._util"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(template: str, **context: object) -> str:
    """Return a page: a template, filled in."""
    return _environment().get_template(template).render(context)


def html_page(headline: str, *parts: str) -> str:
    """Return a headline, and parts that are HTML already, as a notebook shows them."""
    return render("notebook.html", headline=visible(headline), parts=parts)


def html_table(rows: Sequence[Mapping[str, object]], most: int = _MOST_ROWS) -> str:
    """Return the first of some rows as a table of HTML, and how many there are besides.

    Examples
    --------
    >>> html_table([{"item": "<b>", "score": 0.5}])
    '<table><thead><tr><th>item</th><th>score</th></tr></thead><tbody><tr><td>&lt;b&gt;</td><td>0.500</td></tr></tbody></table>'
    """
    if not rows:
        return ""
    header = [str(name).replace("_", " ") for name in rows[0]]
    more = len(rows) - most
    table = table_html(header, ([_cell(value) for value in row.values()] for row in rows[:most]))
    return f"{table}<p>and {more:,} more</p>" if more > 0 else table


def table_html(
    header: Sequence[str], rows: Iterable[Sequence[str]], caption: str | None = None
) -> str:
    """Return cells as a table of HTML."""
    blocks: Any = _environment().get_template("blocks.html").module
    return str(blocks.table(header, rows, caption))


def _cell(value: object) -> str:
    if value is None or (isinstance(value, float) and value != value):  # noqa: PLR0124 - NaN
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else visible(str(value))
