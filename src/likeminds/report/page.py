"""Tables and pictures of a page, as data for the templates in ``_util/templates``."""

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from likeminds.plots.figures import as_png, darken, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Pixels of the page to an inch of a picture; files have more, for sharp screens.
_PIXELS, _SHARP = 110, 1.6
# The media query of phones, and the width of a picture for phones, in inches.
_PHONE, _PHONE_WIDTH = "(max-width: 40rem)", 3.5


@dataclass(frozen=True)
class ReportTable:
    """A table; columns whose cells all start with a digit are aligned to the right."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str | None = None

    @classmethod
    def filled(
        cls, columns: Sequence[str], rows: Sequence[Sequence[str]], caption: str | None = None
    ) -> "ReportTable":
        """Return a table without empty columns."""
        filled = [j for j in range(len(columns)) if any(row[j] != "" for row in rows)]
        header, *cells = ([row[j] for j in filled] for row in (columns, *rows))
        return cls(header, cells, caption)

    @property
    def kinds(self) -> list[str | None]:
        """The class of each column."""
        columns = [[str(row[i]) for row in self.rows] for i in range(len(self.columns))]
        filled = [[cell.lstrip("+-\N{MINUS SIGN}(<[ ") for cell in c if cell] for c in columns]
        return ["number" if c and all(cell[:1].isdigit() for cell in c) else None for c in filled]


@dataclass(frozen=True)
class PagePicture:
    """A picture inside the page; `others` has further versions and their media queries."""

    content: str
    alt: str
    caption: str | None = None
    width: int | None = None
    others: Sequence[tuple[str, str]] = ()
    fits: bool = False


def inlined(png: bytes) -> str:
    """Return a PNG file as a data URL."""
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def picture(
    figure: "Figure | Axes | Callable[..., Figure | Axes]", alt: str, caption: str | None = None
) -> PagePicture:
    """Return a figure for light and dark screens, light on paper.

    If ``figure`` is a function of the ``width`` in inches, it also draws a version for phones.
    """
    drawn, small = (figure(), figure(width=_PHONE_WIDTH)) if callable(figure) else (figure, None)
    width = round(cast("Figure", drawn.figure or drawn).get_figwidth() * _PIXELS)
    others = [] if small is None else _versions(small, _PHONE)[::-1]
    (light, _), *dark = _versions(drawn)
    return PagePicture(light, alt, caption, width, [*others, *dark], small is not None)


def _versions(drawn: "Figure | Axes", media: str = "") -> list[tuple[str, str]]:
    """Return a figure, light and dark, with media queries; the figure is closed."""
    figure = cast("Figure", drawn.figure or drawn)
    dots, screen = round(_PIXELS * _SHARP), f"screen and {media}" if media else "screen"
    light = inlined(as_png(figure, dots)), screen
    dark = inlined(as_png(darken(figure), dots))
    require_matplotlib().close(figure)
    return [light, (dark, f"{screen} and (prefers-color-scheme: dark)")]
