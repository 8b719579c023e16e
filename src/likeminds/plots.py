"""Pictures, drawn with matplotlib where it is installed."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from likeminds.rows import Float

# Blue and vermilion of Okabe and Ito's palette: distinct for everybody, and in grey.
_PLAIN, _BEST = "#0072B2", "#D55E00"
MISSING = "Drawing needs matplotlib: install likeminds[plots] (pip install 'likeminds[plots]')."


def boxplot(values: Mapping[str, Float], *, label: str, title: str, ax: Any = None) -> Any:
    """Draw one horizontal box per name, the highest median on top, with all points.

    Parameters
    ----------
    values : mapping from name to array
        What each name reached.
    label : str
        What the values are, with their unit.
    title : str
        What one should see.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure, high enough for all names.

    Returns
    -------
    matplotlib Axes
    """
    upwards = sorted(values, key=lambda name: float(np.median(values[name])))
    axes = _new_axes(len(upwards)) if ax is None else ax
    drawn = axes.boxplot(
        [values[name] for name in upwards],
        orientation="horizontal",
        tick_labels=upwards,
        widths=0.6,
        showfliers=False,  # all points are drawn below
        patch_artist=True,
        medianprops={"color": "black", "linewidth": 1.5},
    )
    colours = [_PLAIN] * (len(upwards) - 1) + [_BEST]
    for place, (box, name, colour) in enumerate(
        zip(drawn["boxes"], upwards, colours, strict=True), start=1
    ):
        box.set(facecolor=colour, alpha=0.35, edgecolor=colour)
        axes.plot(values[name], _spread(place, len(values[name])), ".", color=colour, markersize=4)
    axes.set_xlabel(label)
    axes.set_title(title, loc="left", fontsize="medium", wrap=True)
    axes.grid(axis="x", color="0.9")
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    return axes


def _spread(place: int, n_points: int) -> Float:
    """Return heights inside a box, evenly spread, so that equal points do not hide."""
    return place + np.linspace(-0.18, 0.18, n_points)


def _new_axes(n_names: int) -> Any:
    try:
        from matplotlib import pyplot  # noqa: PLC0415 - optional, and slow to import
    except ImportError as error:
        raise ImportError(MISSING) from error
    size = (7.0, 1.3 + 0.34 * n_names)
    return pyplot.subplots(figsize=size, layout="constrained")[1]
