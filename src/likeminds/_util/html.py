"""What objects look like in a notebook: a headline and small tables, safe whatever they hold."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from likeminds._util.escape_control import visible

# A notebook is no place for ten thousand rows; who wants them makes a table.
_MOST_ROWS = 12


def html_page(headline: str, *parts: str) -> str:
    """Return a headline and what follows it."""
    return f"<div><strong>{escape(visible(headline))}</strong>{''.join(parts)}</div>"


def html_table(rows: Sequence[Mapping[str, Any]], most: int = _MOST_ROWS) -> str:
    """Return the first of some rows as a table of HTML, and how many there are besides.

    Examples
    --------
    >>> html_table([{"item": "<b>", "score": 0.5}])
    '<table><thead><tr><th>item</th><th>score</th></tr></thead><tbody><tr><td>&lt;b&gt;</td><td>0.500</td></tr></tbody></table>'
    """
    if not rows:
        return ""
    head = "".join(f"<th>{escape(str(name).replace('_', ' '))}</th>" for name in rows[0])
    body = "".join(
        "<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in row.values()) + "</tr>"
        for row in rows[:most]
    )
    more = len(rows) - most
    rest = f"<p>and {more:,} more</p>" if more > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and value != value):  # noqa: PLR0124 - NaN
        return "-"
    if isinstance(value, float):
        return f"{value:.3f}"
    return escape(visible(str(value)))
