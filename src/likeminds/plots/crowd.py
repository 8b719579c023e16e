"""Pictures of a crowd: the map of people, and the heat map of their weights."""

from typing import Any

import numpy as np

from likeminds._support.arrays import Bool, Float, Index
from likeminds.plots.figures import (
    COLOURS,
    DIVERGING,
    MARKERS,
    draw_once,
    evenly_spaced,
    new_axes,
    new_figure,
    set_title,
    wrap_text,
)
from likeminds.schools import Schools
from likeminds.schools.levels import Levels

# More than these would be a blot, or thinner than a pixel.
_MOST_DOTS, _MOST_ROWS, _MOST_COLUMNS = 3_000, 400, 40
# Of a feature on an axis, in each of two lines.
_LETTERS = 34


def people_map(schools: Schools, *, ax: Any = None) -> Any:
    """Draw where people stand in the two directions in which they differ most.

    People near each other rank the items alike. Colour and marker are the school; a ring is
    somebody who sees it their own way. Of very many people, some are drawn.

    Parameters
    ----------
    schools : Schools
        What `likeminds.find_schools` found.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes
    """
    axes = new_axes(7.5, 5.0 + 0.3 * len(schools)) if ax is None else ax
    places = _two_directions(schools.coordinates)
    shown = np.zeros(len(places), dtype=np.bool_)
    shown[evenly_spaced(len(places), _MOST_DOTS)] = True
    for school in schools.schools:
        position = school.number - 1
        mine = shown & (schools.labels == position)
        look = position % len(COLOURS)
        axes.scatter(
            *places[mine].T,
            s=22,
            color=COLOURS[look],
            marker=MARKERS[look],
            alpha=0.65,
            linewidths=0,
            label=wrap_text(f"{school.number}. ({school.size:,}) {school.name}", 90, 2),
        )
    _ring_loners(axes, places, shown & schools.loner)
    _label_axes(axes, schools)
    if len(schools) > 1 or schools.loner.any():
        if ax is None:
            axes.figure.legend(loc="outside lower left", fontsize="small", frameon=False)
        else:
            axes.legend(fontsize="small")
    return set_title(axes, _map_title(schools))


def _two_directions(coordinates: Float) -> Float:
    places = np.zeros((len(coordinates), 2))
    n = min(2, coordinates.shape[1])
    places[:, :n] = coordinates[:, :n]
    if n < 2:  # nothing to see upwards: dots are spread so that they do not hide each other
        places[:, 1] = np.random.default_rng(0).uniform(-1, 1, len(places)) * 0.1
    return places


def _ring_loners(axes: Any, places: Float, loner: Bool) -> None:
    if loner.any():
        ring = {"facecolors": "none", "edgecolors": "black", "linewidths": 1.1}
        axes.scatter(*places[loner].T, s=80, label="on their own", **ring)


def _label_axes(axes: Any, schools: Schools) -> None:
    """Say at both ends of an axis what people there want; numbers would say nothing."""
    axes.set_xticks([])
    axes.set_yticks([])
    left, right = "\N{LEFTWARDS ARROW}", "\N{RIGHTWARDS ARROW}"
    style = {"transform": axes.transAxes, "fontsize": "small"}
    for axis, upwards in zip(schools.axes, (False, True), strict=False):
        low, high = (wrap_text(end, 30 if upwards else 44, 3) for end in (axis.low, axis.high))
        if upwards:
            style |= {"rotation": 90, "ha": "right"}
            axes.text(-0.02, 0, f"{left} {low}", va="bottom", **style)
            axes.text(-0.02, 1, f"{high} {right}", va="top", **style)
        else:
            axes.text(0, -0.02, f"{left} {low}", va="top", ha="left", **style)
            axes.text(1, -0.02, f"{high} {right}", va="top", ha="right", **style)
    if len(schools.axes) < 2:
        axes.set_ylabel("(heights mean nothing)", fontsize="small")


def _map_title(schools: Schools) -> str:
    n = f"{len(schools.users):,} people"
    if len(schools) == 1:
        return f"{n}: one cloud, no separate camps" if schools.axes else f"{n} who all agree"
    if schools.suggested:
        return f"{n} form {len(schools)} schools: near each other, they rank alike"
    return f"{n}, cut into {len(schools)} schools as asked"


def heatmap(ranker: Any, schools: Schools) -> Any:
    """Draw everybody's weights level by level, people and features ordered by school.

    Above, what all agree on; below, what each person's group and personal level add to it. A
    school is a band of people with the same colours on the same features. All are made equally
    decided, as in `find_schools`, and weights are times the spread of their feature; of very many
    people and features, some are drawn.

    Parameters
    ----------
    ranker : ranker
        What was fitted.
    schools : Schools
        What `likeminds.find_schools` found in it.

    Returns
    -------
    matplotlib Figure
    """
    levels = Levels.of_ranker(ranker).alike(schools.spread)
    unit = np.sqrt(schools.spread.diagonal())
    people, features = _people_in_order(schools), _features_in_order(schools)
    consensus = (levels.consensus * unit)[None, features]
    parts = {
        name: (part * unit)[np.ix_(people, features)]
        for name, part in (("group", levels.group), ("personal", levels.personal))
    }
    drawn = {name: part for name, part in parts.items() if np.abs(part).max(initial=0.0) > 1e-9}
    drawn = drawn or {"group": parts["group"]}
    limit = float(np.quantile(np.abs(parts["group"]), 0.99)) or float(np.abs(consensus).max()) or 1
    figure = new_figure(max(7.5, (1.6 + 0.24 * len(features)) * len(drawn)), 6.5)
    grid = figure.subplots(2, len(drawn), squeeze=False, height_ratios=[1, 16], sharex="col")
    style = {"cmap": DIVERGING, "vmin": -limit, "vmax": limit, "aspect": "auto"}
    for column, (name, part) in enumerate(drawn.items()):
        above, below = grid[:, column]
        above.imshow(consensus, **style)
        above.set_yticks([0], ["consensus"] if not column else [""])
        above.tick_params(axis="x", bottom=False)
        image = below.imshow(part, interpolation="nearest", **style)
        below.set_title(f"{name} level", fontsize="small", loc="left")
        _mark_schools(below, schools, people, label=not column)
        names = [wrap_text(schools.feature_words[j], _LETTERS, 2) for j in features]
        below.set_xticks(range(len(names)), names, rotation=90, fontsize="x-small")
    bar = figure.colorbar(image, ax=grid[:, -1], shrink=0.6)
    bar.set_label("weight x spread of the feature", fontsize="small")
    title = "What each person adds to the consensus, by school: bands of one colour agree"
    if len(schools) == 1:
        title = "What each person adds to the consensus, from one end of the crowd to the other"
    figure.suptitle(wrap_text(title, 90), fontsize="medium", x=0.01, ha="left")
    return draw_once(figure)


def _people_in_order(schools: Schools) -> Index:
    """Order people by school, and inside by the direction in which they differ most."""
    first = schools.coordinates[:, :1].sum(axis=1)
    order = np.lexsort((first, schools.labels))
    return order[evenly_spaced(len(order), _MOST_ROWS)]


def _features_in_order(schools: Schools) -> Index:
    """Order features by the school they set apart, then those that set none apart."""
    strongest = np.abs(schools.strength).max(axis=0)
    if len(schools) == 1 and schools.axes:
        strongest = np.max([np.abs(axis.strength) for axis in schools.axes], axis=0)
    kept = np.argsort(-strongest, kind="stable")[:_MOST_COLUMNS]
    school = schools.feature_school[kept]
    return kept[np.lexsort((-strongest[kept], np.where(school < 0, len(schools), school)))]


def _mark_schools(axes: Any, schools: Schools, people: Index, *, label: bool) -> None:
    labels = schools.labels[people]
    edges = np.flatnonzero(np.diff(labels)) + 1
    for edge in edges:
        axes.axhline(edge - 0.5, color="black", linewidth=1)
    starts, ends = np.append(0, edges), np.append(edges, len(labels))
    middles = (starts + ends - 1) / 2
    names = [f"school {labels[s] + 1}" if len(schools) > 1 else "people" for s in starts]
    axes.set_yticks(middles, names if label else [""] * len(names), rotation=90, va="center")
    axes.tick_params(axis="y", length=0)
