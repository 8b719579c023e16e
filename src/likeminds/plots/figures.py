"""Figures for a notebook or a file, in a palette that is safe for colour blindness."""

import textwrap
from io import BytesIO
from typing import TYPE_CHECKING, Any, Literal

from likeminds._util.lazy_imports import require

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

# Okabe and Ito's palette, safe for colour blindness; markers repeat the distinction in grey.
BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, BLACK, GREY = "#E69F00", "#56B4E9", "#000000", "#8C8C8C"
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK, GREY)
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")
DIVERGING = "RdBu_r"
_DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1)))
# For dark pages; blue has a lighter neighbour in the same palette.
PAPER, INK = "#15181c", "#e6e9ec"
_BRIGHTER = {BLUE: SKY, VERMILION: "#ff7a45", GREEN: "#2fc79b", GREY: "#a6a6a6"}


def require_matplotlib(module: str = "pyplot") -> Any:
    """Import a module of matplotlib at first use, since that takes long."""
    return require(f"matplotlib.{module}", "Drawing")


def new_figure(width: float, height: float, *, shown: bool = True) -> "Figure":
    """Return a new figure, its size in inches; pyplot manages it only if it is ``shown``."""
    make = require_matplotlib().figure if shown else require_matplotlib("figure").Figure
    made: Figure = make(figsize=(width, height), layout="constrained")
    return made


def new_axes(width: float = 7.0, height: float = 4.5) -> "Axes":
    """Return the axes of a new figure."""
    return new_figure(width, height).add_subplot()


def as_png(figure: "Figure", dpi: int = 130) -> bytes:
    """Return a figure as the content of a PNG file; equal figures give equal files."""
    content = BytesIO()
    take_names_as_text(figure)
    # Without the version of matplotlib, which would change the file.
    figure.savefig(content, format="png", dpi=dpi, metadata={"Software": None})
    return content.getvalue()


def as_svg(figure: "Figure", dpi: int = 300) -> bytes:
    """Return a figure as an SVG file with heat maps as images; equal figures give equal files."""
    content = BytesIO()
    take_names_as_text(figure)
    with require_matplotlib().rc_context({"svg.hashsalt": "likeminds"}):
        nothing = {"Date": None, "Creator": None}
        figure.savefig(content, format="svg", dpi=dpi, metadata=nothing)
    return content.getvalue()


def take_names_as_text(figure: "Figure") -> "Figure":
    """Turn off mathtext in texts with dollar signs: incomplete formulas raise errors."""
    for text in figure.findobj(require_matplotlib("text").Text):
        # Matplotlib's own labels of logarithmic axes are complete formulas.
        if "$" in text.get_text() and not text.get_text().startswith(r"$\mathdefault{"):
            text.set_parse_math(False)
    return figure


def draw_once(figure: "Figure") -> "Figure":
    """Return a figure that a notebook shows only once, as the result of a cell."""
    if "inline" in require_matplotlib().get_backend().lower():
        require_matplotlib().close(figure)
    return take_names_as_text(figure)


def set_title(axes: "Axes", title: str, *, grid: Literal["x", "y", "both"] | None = None) -> "Axes":
    """Set the title of axes, and hide the top and right spines."""
    axes.set_title(title, loc="left", fontsize="medium", wrap=True)
    axes.spines[["top", "right"]].set_visible(False)
    if grid is not None:
        axes.grid(axis=grid, color="0.9")
        axes.set_axisbelow(True)
    take_names_as_text(axes.figure)  # type: ignore[arg-type]
    return axes


def look_of(place: int) -> dict[str, Any]:
    """Return the colour and the marker at a place of the palette."""
    return {"color": COLOURS[place % len(COLOURS)], "marker": MARKERS[place % len(MARKERS)]}


def draw_line(
    axes: "Axes", place: int, x: "ArrayLike", y: "ArrayLike", label: str, **options: Any
) -> None:
    """Draw a curve with the colour, dashes and marker at a place of the palette."""
    dashes = _DASHES[place % len(_DASHES)]
    axes.plot(x, y, label=label, linestyle=dashes, markersize=4.5, **look_of(place), **options)


def wrap_text(text: str, width: int, lines: int | None = None) -> str:
    """Break a text into lines; if there are too many, the last one ends in dots."""
    return "\n".join(textwrap.wrap(text, width, max_lines=lines, placeholder=" ...") or [""])


def evenly_spaced(n: int, most: int) -> list[int]:
    """Return at most ``most`` of n positions, evenly spaced, the first and last included."""
    if n <= most:
        return list(range(n))
    return [round(i * (n - 1) / (most - 1)) for i in range(most)]


def darken(figure: "Figure") -> "Figure":
    """Turn a figure for light pages into one for dark pages; its thumbnails do not change."""
    colors, mappable = require_matplotlib("colors"), require_matplotlib("cm").ScalarMappable
    ends = ["#7cc4f5", "#2b7bb0", PAPER, "#b5482e", "#ff9d7a"]
    for artist in figure.findobj(require_matplotlib("artist").Artist):
        _recolour(artist, colors)
        if isinstance(artist, mappable) and artist.get_cmap().name == DIVERGING:
            name = f"{DIVERGING}-dark"
            artist.set_cmap(colors.LinearSegmentedColormap.from_list(name, ends))
    figure.patch.set_facecolor(PAPER)
    return figure


def _recolour(artist: "Artist", colors: Any) -> None:
    dark, light = (colors.to_rgba_array(end)[0, :3] for end in (PAPER, INK))
    bright = {colors.to_rgb(a): colors.to_rgb(b) for a, b in _BRIGHTER.items()}
    for part in ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor"):
        get, put = (getattr(artist, f"{verb}_{part}", None) for verb in ("get", "set"))
        colour = "none" if get is None or put is None else get()
        if put is None or (isinstance(colour, str) and colour in {"none", "auto"}):
            continue
        array = colors.to_rgba_array(colour)
        for row in array:
            if (brighter := bright.get(tuple(row[:3]))) is not None:
                row[:3] = brighter
            elif max(row[:3]) - min(row[:3]) < 0.02:
                row[:3] = light + (dark - light) * row[0]
        put(array if len(array) != 1 else array[0])
