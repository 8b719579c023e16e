"""Figures for a notebook or a file, in a palette that is safe for colour blindness."""

import textwrap
from io import BytesIO
from typing import TYPE_CHECKING, Any

from likeminds._util.lazy_imports import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

# Okabe and Ito's palette: distinct for everybody. Markers say the same again, in grey.
BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, BLACK, GREY = "#E69F00", "#56B4E9", "#000000", "#8C8C8C"
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK, GREY)
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")
DIVERGING = "RdBu_r"
_DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1)))


def require_matplotlib(module: str = "pyplot") -> Any:
    """Return a module of matplotlib, or say which extra brings it."""
    return require(f"matplotlib.{module}", "Drawing", "plots")


def new_figure(width: float, height: float, *, shown: bool = True) -> Any:
    """Return a new figure, its size in inches.

    One that is ``shown`` belongs to pyplot, which draws it in a notebook or a window; one that
    only goes into a file needs neither, and nobody has to close it.
    """
    make = require_matplotlib().figure if shown else require_matplotlib("figure").Figure
    return make(figsize=(width, height), layout="constrained")


def new_axes(width: float = 7.0, height: float = 4.5) -> Any:
    """Return the axes of a new figure."""
    return new_figure(width, height).add_subplot()


def as_png(figure: "Figure", dpi: int = 130) -> bytes:
    """Return a figure as the content of a PNG file, the same for the same figure."""
    content = BytesIO()
    take_names_as_text(figure)
    # Without the date and the version of matplotlib, equal pictures are equal files.
    figure.savefig(content, format="png", dpi=dpi, metadata={"Software": None})
    return content.getvalue()


def take_names_as_text(figure: Any) -> Any:
    """Turn off mathtext in texts with dollar signs: half a formula cannot be drawn.

    Every function here that draws names ends with it, and returns the figure.
    """
    for text in figure.findobj(require_matplotlib("text").Text):
        # Powers of ten on a logarithmic axis are formulas, but matplotlib's own.
        if "$" in text.get_text() and not text.get_text().startswith(r"$\mathdefault{"):
            text.set_parse_math(False)
    return figure


def draw_once(figure: Any) -> Any:
    """Return a figure that a notebook draws because a cell returns it, and not once more.

    Notebooks draw every figure of pyplot when a cell ends; elsewhere it stays pyplot's to show.
    """
    if "inline" in require_matplotlib().get_backend().lower():
        require_matplotlib().close(figure)
    return take_names_as_text(figure)


def set_title(axes: Any, title: str, *, grid: str | None = None) -> Any:
    """Give axes a title that says what to see, and hide the top and right spines."""
    axes.set_title(title, loc="left", fontsize="medium", wrap=True)
    axes.spines[["top", "right"]].set_visible(False)
    if grid is not None:
        axes.grid(axis=grid, color="0.9")
        axes.set_axisbelow(True)
    take_names_as_text(axes.figure)
    return axes


def name_axes(axes: "Axes", *, title: str, x: str, y: str) -> None:
    """Name the axes, say what one should see, and draw a grid."""
    set_title(axes, title, grid="both").set(xlabel=x, ylabel=y)


def put_legend_below(figure: "Figure", axes: "Axes", columns: int = 3) -> None:
    """Say which line is which under the figure, where it hides nothing."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)


def draw_line(
    axes: "Axes", place: int, x: "ArrayLike", y: "ArrayLike", label: str, **options: Any
) -> None:
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


def wrap_text(text: str, width: int, lines: int | None = None) -> str:
    """Break a text into lines; with too many of them, the last one ends in dots."""
    broken = textwrap.wrap(text, width, max_lines=lines, placeholder=" ...") or [""]
    return "\n".join(broken)


def evenly_spaced(n: int, most: int) -> list[int]:
    """Return at most so many of n positions, evenly spaced, the first and last included.

    Examples
    --------
    >>> evenly_spaced(3, 10), evenly_spaced(100, 3)
    ([0, 1, 2], [0, 50, 99])
    """
    if n <= most:
        return list(range(n))
    return [round(i * (n - 1) / (most - 1)) for i in range(most)]
