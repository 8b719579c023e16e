"""Pictures for dark pages: what is black on white becomes light on dark, colours keep their hue."""

from typing import Any

from likeminds.plots.figures import BLUE, DIVERGING, GREEN, GREY, SKY, VERMILION, require_matplotlib

PAPER, INK = "#15181c", "#e6e9ec"
# Dark colours hardly differ from a dark page; blue has a lighter neighbour in the same palette.
_BRIGHTER = {BLUE: SKY, VERMILION: "#ff7a45", GREEN: "#2fc79b", GREY: "#a6a6a6"}


def darken(figure: Any) -> Any:
    """Turn a figure for light pages into one for dark pages, and return it.

    Greys are turned around, from black to white and from white to the dark of the page; the middle
    of a diverging colour map is dark. Pictures that are shown in it stay as they are.
    """
    colors = require_matplotlib("colors")
    artists = require_matplotlib("artist").Artist
    for artist in figure.findobj(artists):
        _recolour(artist, colors)
    figure.patch.set_facecolor(PAPER)
    return figure


def _recolour(artist: Any, colors: Any) -> None:
    for part in ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor"):
        get, put = (getattr(artist, f"{verb}_{part}", None) for verb in ("get", "set"))
        if get is None or put is None:
            continue
        put(_turned(get(), colors))
    if hasattr(artist, "get_cmap") and artist.get_cmap().name == DIVERGING:
        artist.set_cmap(_dark_middle(colors))


def _turned(colour: Any, colors: Any) -> Any:
    """Return a colour, or several of them, for a dark page."""
    if isinstance(colour, str) and colour in {"none", "auto"}:
        return colour
    array = colors.to_rgba_array(colour)
    dark, light = (colors.to_rgba_array(end)[0, :3] for end in (PAPER, INK))
    bright = {colors.to_rgb(a): colors.to_rgb(b) for a, b in _BRIGHTER.items()}
    for row in array:
        if (brighter := bright.get(tuple(row[:3]))) is not None:
            row[:3] = brighter
        elif max(row[:3]) - min(row[:3]) < 0.02:
            row[:3] = light + (dark - light) * row[0]
    return array if len(array) != 1 else array[0]


def _dark_middle(colors: Any) -> Any:
    ends = ["#7cc4f5", "#2b7bb0", PAPER, "#b5482e", "#ff9d7a"]
    return colors.LinearSegmentedColormap.from_list(f"{DIVERGING}-dark", ends)
