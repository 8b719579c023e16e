"""Plots of experiments: box plots, learning curves, and recovered structure."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from likeminds._util.array_types import Float
from likeminds._util.checks import same_length
from likeminds.datasets.recovery import CoClusterRecovery, deviations, directions
from likeminds.plots.figures import (
    BLUE,
    DIVERGING,
    VERMILION,
    draw_line,
    look_of,
    new_axes,
    new_figure,
    set_title,
)
from likeminds.rankers.three_level_search import PersonalPath

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
        The axes to draw in; by default those of a new figure, high enough for all names.

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
    """Draw the mean of each name by size, with a band from the 10 % to the 90 % quantile.

    Parameters
    ----------
    sizes : array of shape (n_sizes,)
        The sizes, on the horizontal axis.
    values : mapping from name to array of shape (n_sizes,) or (n_sizes, n_repeats)
        The values at each size; the band needs repeats.
    title, size_label, label : str
        The title, and the labels of the two axes.
    ax : matplotlib Axes, optional
        The axes to draw in.

    Returns
    -------
    matplotlib Axes
    """
    axes = new_axes() if ax is None else ax
    x = np.asarray(sizes, dtype=np.float64)
    for place, (name, reached) in enumerate(values.items()):
        array = np.asarray(reached, dtype=np.float64)
        if array.shape[0] != len(x):
            raise ValueError(f"{name} has {array.shape[0]} values for {len(x)} sizes.")
        repeats = array.reshape(len(x), -1)
        style = look_of(place)
        axes.plot(x, repeats.mean(axis=1), label=name, **style)
        if repeats.shape[1] > 1:
            low, high = np.quantile(repeats, [0.1, 0.9], axis=1)
            axes.fill_between(x, low, high, color=style["color"], alpha=0.15, linewidth=0)
    axes.set(xlabel=size_label, ylabel=label)
    axes.legend(frameon=False, fontsize="small")
    return set_title(axes, title, grid="y")


def cocluster_recovery(recovery: CoClusterRecovery, *, figure: "Figure | None" = None) -> "Figure":
    """Draw true and learned weights side by side, on one colour scale.

    Users and features are sorted by their true clusters. Each user's weights have unit length. In
    the lower row, the mean over users is removed.

    Parameters
    ----------
    recovery : CoClusterRecovery
        The result of `likeminds.paper.cocluster_recovery`.
    figure : matplotlib Figure, optional
        The figure to draw in; by default a new figure.

    Returns
    -------
    matplotlib Figure
    """
    drawn = new_figure(9.5, 6.8) if figure is None else figure
    grid = drawn.subplots(2, 2, sharex=True, sharey=True)
    users = np.argsort(recovery.true_users, kind="stable")
    features = np.argsort(recovery.true_features, kind="stable")
    rows = {"": directions, ", mean removed": deviations}
    for sides, (what, of) in zip(grid, rows.items(), strict=True):
        shown = [of(weights)[users][:, features].T for weights in (recovery.true, recovery.learned)]
        limit = float(np.quantile(np.abs(shown), 0.995)) or 1.0
        for axes, name, weights in zip(sides, ("true", "learned"), shown, strict=True):
            image = axes.imshow(weights, cmap=DIVERGING, vmin=-limit, vmax=limit, aspect="auto")
            axes.set_title(f"{name} W{what}", loc="left", fontsize="medium")
        drawn.colorbar(image, ax=sides, shrink=0.8, label="weight, true and learned")
        sides[0].set_ylabel("feature, by true cluster")
    for axes in grid[-1]:
        axes.set_xlabel("person, by true school")
    drawn.suptitle(
        "Clusters of learned weights compared with true ones, adjusted Rand index: "
        f"people {recovery.users_index:.2f}, features {recovery.features_index:.2f}"
    )
    return drawn


def personal_path(
    path: PersonalPath, true: ArrayLike | None = None, *, ax: "Axes | None" = None
) -> "Axes":
    """Draw the number of users with a personal part, by its penalty.

    Parameters
    ----------
    path : PersonalPath
        The result of `likeminds.paper.personal_path`.
    true : array of shape (n_users,), optional
        Which users truly have a personal part; these are also counted separately.
    ax : matplotlib Axes, optional
        The axes to draw in.

    Returns
    -------
    matplotlib Axes
    """
    axes = new_axes() if ax is None else ax
    lines = {"users with a personal part": np.ones(len(path.users), dtype=bool)}
    if true is not None:
        known = np.asarray(true, dtype=bool)
        same_length(true=known, users=path.users)
        lines = {f"the {known.sum()} with a true personal part": known, "the others": ~known}
    for place, (label, among) in enumerate(lines.items()):
        draw_line(axes, place, path.alphas, path.personal[:, among].sum(axis=1), label)
    label = "penalty on the personal level, alpha_personal (log scale)"
    axes.set(xscale="log", xlabel=label, ylabel="users with a personal part")
    if true is not None:
        axes.legend(frameon=False, fontsize="small")
        best = int(np.argmax(path.agreement(known)))
        found, hits = path.personal[best].sum(), (path.personal[best] & known).sum()
        title = (
            f"At best (penalty {path.alphas[best]:.2g}), {found} users have a personal part, "
            f"{hits} of them rightly"
        )
        axes.axvline(path.alphas[best], color="0.6", linewidth=1, linestyle="--")
        return set_title(axes, title, grid="both")
    least = f"{path.personal[-1].sum()} of {len(path.users)}"
    title = f"Penalty {path.alphas[-1]:.2g} leaves {least} users a personal part"
    return set_title(axes, title, grid="both")
