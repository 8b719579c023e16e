"""How many people would say yes to the items, one by one."""

from typing import Any

import numpy as np

from likeminds._util.text_format import counted
from likeminds.plots.figures import BLUE, new_axes, set_title, wrap_text
from likeminds.schools.result import Schools
from likeminds.schools.school_soft_labels import BOUND

_WIDTH, _HEIGHT = 7.0, 3.4
# Letters of a title on a picture of full width.
_LETTERS = 80


def item_shares(schools: Schools, ax: Any = None, *, width: float = _WIDTH) -> Any:
    """Draw the share of people that would say yes to each item, from the least to the most.

    What all agree on is all there is to see in a crowd in which nobody differs. Around each share
    is where it lies with a probability of 90 %.

    Parameters
    ----------
    schools : Schools
        What `likeminds.find_schools` found, with soft labels.
    ax : matplotlib Axes, optional
        Where to draw.
    width : float
        Of a new figure, in inches.

    Returns
    -------
    matplotlib Axes
    """
    soft = schools.soft_labels
    if soft is None:
        raise ValueError(
            "There are no shares to draw: find_schools had no labels to make them of. "
            "Pass it the annotations."
        )
    axes = new_axes(width, _HEIGHT) if ax is None else ax
    order = np.argsort(soft.share, kind="stable")
    share, error = 100.0 * soft.share[order], 100.0 * BOUND * soft.error[order]
    place = np.arange(1, len(order) + 1)
    low, high = np.clip(share - error, 0.0, 100.0), np.clip(share + error, 0.0, 100.0)
    axes.vlines(place, low, high, color=BLUE, alpha=0.25, linewidth=max(0.5, 150 / len(order)))
    axes.scatter(place, share, s=8, color=BLUE, linewidths=0)
    axes.axhline(50.0, color="0.5", linestyle="--", linewidth=1.0)
    axes.set(
        ylim=(-2.0, 102.0), xlabel="items, from the fewest yeses to the most", ylabel="% of people"
    )
    most = int((soft.share > 0.5).sum())
    title = (
        f"More than half of the people {schools.verb.would('them')}: "
        f"{most:,} of {counted(len(order), 'item')}"
    )
    return set_title(axes, wrap_text(title, int(_LETTERS * width / _WIDTH), 3), grid="y")
