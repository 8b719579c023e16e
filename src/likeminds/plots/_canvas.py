"""What all pictures share: where they are drawn, and colours that everybody tells apart."""

import textwrap
from typing import Any

from likeminds._support.optional import require

# Okabe and Ito's palette: distinct for everybody. Markers say the same again, in grey.
BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, BLACK, GREY = "#E69F00", "#56B4E9", "#000000", "#8C8C8C"
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK, GREY)
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")
DIVERGING = "RdBu_r"


def require_matplotlib(module: str = "pyplot") -> Any:
    """Return a module of matplotlib, or say which extra brings it."""
    return require(f"matplotlib.{module}", "Drawing", "plots")


def new_figure(width: float, height: float) -> Any:
    """Return a new figure, in inches."""
    return require_matplotlib().figure(figsize=(width, height), layout="constrained")


def new_axes(width: float = 7.0, height: float = 4.5) -> Any:
    """Return the axes of a new figure."""
    return new_figure(width, height).add_subplot()


def plain(axes: Any, title: str, *, grid: str | None = None) -> Any:
    """Give axes a title that says what to see, and take away what nobody looks at."""
    axes.set_title(title, loc="left", fontsize="medium", wrap=True)
    axes.spines[["top", "right"]].set_visible(False)
    if grid is not None:
        axes.grid(axis=grid, color="0.9")
        axes.set_axisbelow(True)
    return axes


def wrapped(text: str, width: int, lines: int | None = None) -> str:
    """Break a text into lines; with too many of them, the last one ends in dots."""
    broken = textwrap.wrap(text, width, max_lines=lines, placeholder=" ...") or [""]
    return "\n".join(broken)


def spaced(n: int, most: int) -> list[int]:
    """Return at most so many of n positions, evenly spaced, the first and last included.

    Examples
    --------
    >>> spaced(3, 10), spaced(100, 3)
    ([0, 1, 2], [0, 50, 99])
    """
    if n <= most:
        return list(range(n))
    return [round(i * (n - 1) / (most - 1)) for i in range(most)]
