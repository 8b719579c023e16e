"""Pictures of a crowd: the map of people, and the heat map of their weights."""

from typing import Any

import numpy as np

from likeminds._util.array_types import Bool, Float, Index
from likeminds._util.text_format import counted
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
from likeminds.plots.thumbnails import ThumbnailItems, label_ends, label_rows
from likeminds.schools import School, Schools
from likeminds.schools.items import Items
from likeminds.schools.school_names import are_telling
from likeminds.schools.user_map import map_places, n_dimensions
from likeminds.schools.weight_levels import WeightLevels

# More than these would be a blot, or thinner than a pixel.
_MOST_DOTS, _MOST_PEOPLE, _MOST_FEATURES = 3_000, 400, 24
# Of a feature on an axis, in each of two lines.
_LETTERS = 34
# Inches: of a picture that fits a page unscaled, and of a row of the heat map; and points of its
# labels, which are then larger than 11 pixels.
_WIDTH, _ROW, _LABEL = 8.2, 0.3, 8.5
# The same of a row that is labelled by pictures; fewer of them are drawn.
_PICTURED_ROW, _MOST_PICTURED = 0.42, 14
# In a line of the map's title and legend.
_LETTERS_OF_MAP = 86
# Of the darkest colour: a level with none darker would look empty.
_PALEST = 0.05


def people_map(
    schools: Schools,
    *,
    ax: Any = None,
    items: Items | None = None,
    images: Any = None,
    width: float = _WIDTH,
) -> Any:
    """Draw where people stand in the two directions in which they differ most.

    People near each other rank the items alike. Colour and marker are the school; a ring is
    somebody who sees it their own way. Of very many people, some are drawn. With one direction,
    dots are heaped up on a line; with none, there is nothing to draw but that.

    Parameters
    ----------
    schools : Schools
        What `likeminds.find_schools` found.
    ax : matplotlib Axes, optional
        Where to draw.
    items, images : Items, and a mapping from item id to picture, optional
        The items that people judged, and their pictures: where directions have no better names
        than items, the ends of the axes show what people there want.
    width : float
        Of a new figure, in inches.

    Returns
    -------
    matplotlib Axes
    """
    axes = new_axes(width, _height_of_map(schools)) if ax is None else ax
    share = width / _WIDTH
    shown = np.zeros(len(schools.user_ids), dtype=np.bool_)
    shown[evenly_spaced(len(shown), _MOST_DOTS)] = True
    places = map_places(schools, shown)
    pictured = ThumbnailItems.of(items, images)
    for number in np.unique(schools.numbers).tolist() if schools.axes else ():
        mine = shown & (schools.numbers == number)
        look = max(number - 1, 0) % len(COLOURS)
        name = _name_of(schools[number], schools, pictured, share) if schools else None
        axes.scatter(
            *places[mine].T,
            s=26,
            color=COLOURS[look],
            marker=MARKERS[look],
            alpha=0.7,
            linewidths=0,
            label=name,
        )
    _ring_loners(axes, places, shown & schools.loner)
    _label_axes(axes, schools, pictured, share)
    if schools.axes and (schools or schools.loner.any()):
        if ax is None:
            axes.figure.legend(loc="outside lower left", fontsize="medium", frameon=False)
        else:
            axes.legend(fontsize="small")
    return set_title(axes, wrap_text(_map_title(schools), int(_LETTERS_OF_MAP * share), 3))


def _name_of(
    school: School, schools: Schools, pictured: ThumbnailItems | None, share: float
) -> str:
    if pictured is None or are_telling(schools.strength[school.number - 1], schools.feature_names):
        return wrap_text(
            f"{school.number}. ({school.size:,}) {school.name}", int(_LETTERS_OF_MAP * share), 2
        )
    return f"school {school.number}: {counted(school.size, 'person', 'people')}"


def _height_of_map(schools: Schools) -> float:
    if not schools.axes:
        return 1.2
    return (5.2 if n_dimensions(schools) > 1 else 2.8) + 0.35 * len(schools)


def _ring_loners(axes: Any, places: Float, loner: Bool) -> None:
    if loner.any():
        ring = {"facecolors": "none", "edgecolors": "black", "linewidths": 1.1}
        axes.scatter(*places[loner].T, s=80, label="on their own", **ring)


def _label_axes(axes: Any, schools: Schools, pictured: ThumbnailItems | None, share: float) -> None:
    """Say, or show, at both ends of an axis what people there want; numbers would say nothing.

    ``share`` is how wide the picture is, of the usual.
    """
    axes.set_xticks([])
    axes.set_yticks([])
    left, right = "\N{LEFTWARDS ARROW}", "\N{RIGHTWARDS ARROW}"
    style = {"transform": axes.transAxes, "fontsize": "medium"}
    for axis, upwards in zip(schools.axes[: n_dimensions(schools)], (False, True), strict=False):
        if pictured is not None and not are_telling(axis.strength, schools.feature_names):
            label_ends(axes, pictured, axis.weights, upwards=upwards, share=share)
            continue
        low, high = (
            wrap_text(end, int(27 * max(share, 0.7)), 2)
            if upwards
            else wrap_text(end, int(42 * share), round(3 / share))
            for end in (axis.low, axis.high)
        )
        if upwards:
            style |= {"rotation": 90, "ha": "right"}
            axes.text(-0.02, 0, f"{left} {low}", va="bottom", **style)
            axes.text(-0.02, 1, f"{high} {right}", va="top", **style)
        else:
            axes.text(0, -0.02, f"{left} {low}", va="top", ha="left", **style)
            axes.text(1, -0.02, f"{high} {right}", va="top", ha="right", **style)
    if n_dimensions(schools) < 2:
        axes.spines["left"].set_visible(False)
    if not schools.axes:
        axes.set_axis_off()


def _map_title(schools: Schools) -> str:
    n = counted(len(schools.user_ids), "person", "people")
    if not schools:
        if schools.axes:
            return f"{n}: one cloud, no separate camps"
        return f"{n}: no difference between rankings that these labels can show"
    if schools.suggested:
        return f"{n} form {len(schools)} schools: near each other, they rank alike"
    return f"{n}, cut into {len(schools)} schools as asked"


def heatmap(
    ranker: Any,
    schools: Schools,
    items: Items | None = None,
    images: Any = None,
    *,
    width: float = _WIDTH,
) -> Any:
    """Draw everybody's weights level by level, people and features ordered by school.

    On the left, what all agree on; then what each person's group and personal level add to it. A
    school is a band of people with the same colours on the same features. All are made equally
    decided, as in `find_schools`, and weights are times the spread of their feature; of very many
    people and features, some are drawn.

    Parameters
    ----------
    ranker : ranker
        What was fitted.
    schools : Schools
        What `likeminds.find_schools` found in it.
    items, images : Items, and a mapping from item id to picture, optional
        The items that people judged, and their pictures: components of pictures are then shown by
        those that have most and least of them.
    width : float
        The width of the figure, in inches; a narrow one has shorter names and no colour bar.

    Returns
    -------
    matplotlib Figure
    """
    levels = WeightLevels.of_ranker(ranker).alike(schools.spread)
    unit = np.sqrt(schools.spread.diagonal())
    most = _MOST_FEATURES if images is None else _MOST_PICTURED
    people, features = _people_in_order(schools), _features_in_order(schools, most)
    consensus = (levels.consensus * unit)[features, None]
    parts = {
        name: (part * unit)[np.ix_(people, features)].T
        for name, part in (("group", levels.group), ("personal", levels.personal))
    }
    limit = float(np.quantile(np.abs(parts["group"]), 0.99)) or float(np.abs(consensus).max()) or 1
    largest = {name: np.abs(part).max(initial=0.0) for name, part in parts.items()}
    drawn = {name: part for name, part in parts.items() if largest[name] > _PALEST * limit}
    drawn = drawn or {"group": parts["group"]}
    pictured = ThumbnailItems.of(items, images)
    row = _ROW if pictured is None else _PICTURED_ROW
    is_narrow = width < _WIDTH
    figure = new_figure(width, 1.5 + row * len(features))
    ratios = [1.0, *([16.0 / len(drawn)] * len(drawn))]
    first, *others = figure.subplots(1, 1 + len(drawn), width_ratios=ratios, sharey=True)
    style = {"cmap": DIVERGING, "vmin": -limit, "vmax": limit, "aspect": "auto"}
    first.imshow(consensus, **style)
    first.set_xticks([0], ["all"], fontsize=_LABEL)
    letters = _LETTERS // 2 if is_narrow else _LETTERS
    names = [wrap_text(schools.feature_words[j], letters, 2) for j in features]
    if pictured is None:
        first.set_yticks(range(len(names)), names)
    else:
        label_rows(first, features.tolist(), names, pictured)
    first.tick_params(length=0, labelsize=_LABEL)
    for axes, (name, part) in zip(others, drawn.items(), strict=True):
        image = axes.imshow(part, interpolation="nearest", **style)
        axes.set_title(f"{name} level", fontsize="medium", loc="left")
        _mark_schools(axes, schools, people)
    if not is_narrow:
        bar = figure.colorbar(image, ax=others, shrink=0.8, pad=0.02)
        bar.set_label("weight x spread of the feature", fontsize=_LABEL)
    title = "What each person adds to the consensus, by school: bands of one colour agree"
    if not schools:
        title = "What each person adds to the consensus, from one end of the crowd to the other"
    title = wrap_text(title, round(84 * width / _WIDTH))
    figure.suptitle(title, fontsize="medium" if is_narrow else "large", x=0.01, ha="left")
    return draw_once(figure)


def _people_in_order(schools: Schools) -> Index:
    """Order people by school, and inside by the direction in which they differ most."""
    first = schools.coordinates[:, :1].sum(axis=1)
    order = np.lexsort((first, schools.labels))
    return order[evenly_spaced(len(order), _MOST_PEOPLE)]


def _features_in_order(schools: Schools, most: int) -> Index:
    """Order features by the school they set apart, then those that set none apart."""
    strongest = np.abs(schools.strength).max(axis=0, initial=0.0)
    if not schools and schools.axes:
        strongest = np.max([np.abs(axis.strength) for axis in schools.axes], axis=0)
    kept = np.argsort(-strongest, kind="stable")[:most]
    school = schools.feature_school[kept]
    return kept[np.lexsort((-strongest[kept], np.where(school < 0, len(schools), school)))]


def _mark_schools(axes: Any, schools: Schools, people: Index) -> None:
    numbers = schools.numbers[people]
    edges = np.flatnonzero(np.diff(numbers)) + 1
    for edge in edges:
        axes.axvline(edge - 0.5, color="black", linewidth=1)
    starts, ends = np.append(0, edges), np.append(edges, len(numbers))
    middles = (starts + ends - 1) / 2
    names = [f"school {numbers[s]}" if schools else "people" for s in starts]
    axes.set_xticks(middles, names, fontsize=_LABEL)
    axes.tick_params(length=0)
