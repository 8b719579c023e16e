"""Pictures of learned structure: co-clusters against the truth, users with a personal part."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from likeminds._util.checks import same_length
from likeminds.datasets.recovery import CoClusterRecovery, deviations, directions
from likeminds.plots.figures import DIVERGING, draw_line, new_axes, new_figure, set_title
from likeminds.rankers.personal_path import PersonalPath

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def cocluster_recovery(recovery: CoClusterRecovery, *, figure: "Figure | None" = None) -> "Figure":
    """Draw true and learned weights beside each other, on one colour scale.

    Users and features are sorted by their true clusters. Each user's weights have unit length;
    below, the mean over users is removed.

    Parameters
    ----------
    recovery : CoClusterRecovery
        The result of `likeminds.paper.cocluster_recovery`.
    figure : matplotlib Figure, optional
        Where to draw; by default a new figure.

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
        "Clusters of learned weights against the true ones, adjusted Rand index: "
        f"people {recovery.users_index:.2f}, features {recovery.features_index:.2f}"
    )
    return drawn


def personal_path(
    path: PersonalPath, true: ArrayLike | None = None, *, ax: "Axes | None" = None
) -> "Axes":
    """Draw how many users have a personal part, by its penalty.

    Parameters
    ----------
    path : PersonalPath
        The result of `likeminds.paper.personal_path`.
    true : array of shape (n_users,), optional
        Which users truly have a personal part; they are then counted apart.
    ax : matplotlib Axes, optional
        Where to draw.

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
    axes.set(xscale="log", xlabel="penalty on the personal level, alpha_personal (log scale)")
    axes.set_ylabel("users with a personal part")
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
