"""Figures as bytes: no window, no state, colours that survive grey and colour blindness."""

from io import BytesIO
from typing import Any

from likeminds.plots._canvas import COLOURS, DIVERGING, MARKERS, plain, require_matplotlib

__all__ = ["COLOURS", "DIVERGING", "as_png", "legend_below", "line", "new_figure", "tidy"]

# To go with the colours and markers.
_DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1)))
_DPI = 130


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure, its size in inches."""
    figure = require_matplotlib("figure")
    return figure.Figure(figsize=(width, height), layout="constrained")


def as_png(figure: Any) -> bytes:
    """Return a figure as the content of a PNG file, the same for the same figure."""
    content = BytesIO()
    figure.savefig(content, format="png", dpi=_DPI, metadata={"Software": None})
    return content.getvalue()


def tidy(axes: Any, *, title: str, x: str, y: str) -> None:
    """Name the axes, say what one should see, and take away what carries nothing."""
    plain(axes, title, grid="both").set(xlabel=x, ylabel=y)


def legend_below(figure: Any, axes: Any, columns: int = 3) -> None:
    """Say which line is which under the figure, where it hides nothing."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)


def line(axes: Any, place: int, x: Any, y: Any, label: str, **options: Any) -> None:
    """Draw the curve at a place of the palette: colour, dashes and marker of its own."""
    axes.plot(
        x,
        y,
        label=label,
        color=COLOURS[place % len(COLOURS)],
        linestyle=_DASHES[place % len(_DASHES)],
        marker=MARKERS[place % len(MARKERS)],
        markersize=4.5,
        **options,
    )
