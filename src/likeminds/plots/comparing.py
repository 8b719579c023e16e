"""Pictures that compare rankers: box plots and learning curves."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from likeminds._util.array_types import Float
from likeminds.plots.figures import BLUE, COLOURS, MARKERS, VERMILION, new_axes, set_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def boxplot(
    values: Mapping[str, Float], *, label: str, title: str, ax: "Axes | None" = None
) -> "Axes":
    """Draw one horizontal box per name, the highest median on top, with all points.

    Parameters
    ----------
    values : mapping from name to array
        The values of each name.
    label, title : str
        The label of the axis, with its unit, and the title.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure, high enough for all names.

    Returns
    -------
    matplotlib Axes
    """
    upwards = sorted(values, key=lambda name: float(np.median(values[name])))
    axes = new_axes(7.0, 1.3 + 0.34 * len(upwards)) if ax is None else ax
    drawn = axes.boxplot(
        [values[name] for name in upwards],
        orientation="horizontal",
        tick_labels=upwards,
        widths=0.6,
        showfliers=False,  # all points are drawn below
        patch_artist=True,
        medianprops={"color": "black", "linewidth": 1.5},
    )
    colours = [BLUE] * (len(upwards) - 1) + [VERMILION]
    for place, (box, name, colour) in enumerate(
        zip(drawn["boxes"], upwards, colours, strict=True), start=1
    ):
        box.set(facecolor=colour, alpha=0.35, edgecolor=colour)
        # Evenly spread inside the box, so equal points do not hide.
        heights = place + np.linspace(-0.18, 0.18, len(values[name]))
        axes.plot(values[name], heights, ".", color=colour, markersize=4)
    axes.set_xlabel(label)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    return set_title(axes, title, grid="x")


def learning_curves(
    sizes: ArrayLike,
    values: Mapping[str, ArrayLike],
    *,
    title: str,
    size_label: str = "labels per person",
    label: str = "AUC, mean over people",
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the mean of each name by size, with a band from the lowest to the highest tenth.

    Parameters
    ----------
    sizes : array of shape (n_sizes,)
        The sizes, on the horizontal axis.
    values : mapping from name to array of shape (n_sizes,) or (n_sizes, n_repeats)
        The values at each size; the band needs repeats.
    title, size_label, label : str
        The title, and the labels of the two axes.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes
    """
    axes = new_axes() if ax is None else ax
    x = np.asarray(sizes, dtype=np.float64)
    styles = zip(COLOURS * len(values), MARKERS * len(values), strict=True)
    for (name, reached), (colour, marker) in zip(values.items(), styles, strict=False):
        array = np.asarray(reached, dtype=np.float64)
        if array.shape[0] != len(x):
            raise ValueError(f"{name} has {array.shape[0]} values for {len(x)} sizes.")
        repeats = array.reshape(len(x), -1)
        axes.plot(x, repeats.mean(axis=1), marker=marker, color=colour, label=name)
        if repeats.shape[1] > 1:
            low, high = np.quantile(repeats, [0.1, 0.9], axis=1)
            axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
    axes.set_xlabel(size_label)
    axes.set_ylabel(label)
    axes.legend(frameon=False, fontsize="small")
    return set_title(axes, title, grid="y")
