"""Plots of many users: their map, their weights, and shares and leaderboards of items."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from likeminds._util.array_types import Index
from likeminds._util.text_format import counted
from likeminds.plots.figures import (
    BLUE,
    DIVERGING,
    draw_once,
    evenly_spaced,
    look_of,
    new_axes,
    new_figure,
    set_title,
    wrap_text,
)
from likeminds.plots.thumbnails import Images, ThumbnailItems, label_ends, label_rows
from likeminds.rankers.leaderboards import Leaderboard
from likeminds.rankers.ranker import Ranker
from likeminds.schools import School, Schools
from likeminds.schools.population import Items, WeightLevels
from likeminds.schools.school_names import are_telling
from likeminds.schools.school_soft_labels import BOUND
from likeminds.schools.user_map import map_places, n_dimensions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The largest numbers of dots, users and features: more would overlap, or be thinner than a pixel.
_MOST_DOTS, _MOST_USERS, _MOST_FEATURES, _MOST_PICTURED = 3_000, 400, 24, 14
MOST_ITEMS = 25  # of leaderboards
# Letters of a line: of a feature on an axis, of the map's title and legend, of a title.
_LETTERS, _LETTERS_OF_MAP, _LETTERS_OF_TITLE = 34, 86, 80
# The width of a figure that fits a page unscaled, and the heights of a row with a name or with
# pictures, in inches; the size of labels in points, more than 11 pixels.
_WIDTH, _ROW, _PICTURED_ROW, _LABEL = 8.2, 0.3, 0.42, 8.5
# The least share of the darkest colour, so no level looks empty.
_PALEST = 0.05


def people_map(
    schools: Schools,
    *,
    ax: "Axes | None" = None,
    items: Items | None = None,
    images: Images = None,
    width: float = _WIDTH,
) -> "Axes":
    """Draw users in the two directions in which they differ most.

    Users near each other rank the items alike. Colour and marker show the school; a ring marks an
    outlier. At most 3,000 users are drawn. With one direction, dots are stacked on a line. Without
    any, the figure has only a title.

    Parameters
    ----------
    schools : Schools
        The result of `likeminds.find_schools`.
    ax : matplotlib Axes, optional
        The axes to draw in.
    items, images : Items, and a mapping from item id to picture, optional
        The labelled items, and their pictures. If feature names do not describe the directions,
        the ends of the axes show the favourite items of users there.
    width : float
        The width of a new figure, in inches.

    Returns
    -------
    matplotlib Axes
    """
    height = 0.0 if not schools.axes else 1.6 if n_dimensions(schools) < 2 else 4.0
    axes = new_axes(width, 1.2 + height + 0.35 * len(schools)) if ax is None else ax
    share = width / _WIDTH
    shown = np.zeros(len(schools.user_ids), dtype=np.bool_)
    shown[evenly_spaced(len(shown), _MOST_DOTS)] = True
    places = map_places(schools, shown)
    pictured = ThumbnailItems.of(items, images)
    for number in np.unique(schools.numbers).tolist() if schools.axes else ():
        mine = shown & (schools.numbers == number)
        name = _name_of(schools[number], schools, pictured, share) if schools else None
        style: dict[str, Any] = look_of(max(number - 1, 0)) | {"alpha": 0.7, "linewidths": 0}
        x, y = places[mine].T
        axes.scatter(x, y, s=26, label=name, **style)
    alone = shown & schools.outlier
    if alone.any():
        ring: dict[str, Any] = {"facecolors": "none", "edgecolors": "black", "linewidths": 1.1}
        x, y = places[alone].T
        axes.scatter(x, y, s=80, label="outliers", **ring)
    _label_axes(axes, schools, pictured, share)
    if schools.axes and (schools or schools.outlier.any()):
        if ax is None:
            axes.figure.legend(loc="outside lower left", fontsize="medium", frameon=False)
        else:
            ax.legend(fontsize="small")
    return set_title(axes, wrap_text(_map_title(schools), int(_LETTERS_OF_MAP * share), 3))


def _name_of(
    school: School, schools: Schools, pictured: ThumbnailItems | None, share: float
) -> str:
    if pictured is None or are_telling(schools.strength[school.number - 1], schools.feature_names):
        return wrap_text(
            f"{school.number}. ({school.size:,}) {school.name}", int(_LETTERS_OF_MAP * share), 2
        )
    return f"school {school.number}: {counted(school.size, 'person', 'people')}"


def _label_axes(
    axes: "Axes", schools: Schools, pictured: ThumbnailItems | None, share: float
) -> None:
    """Label both ends of each axis with features or pictures; ``share`` is of the usual width."""
    axes.set(xticks=[], yticks=[])
    left, right = "\N{LEFTWARDS ARROW}", "\N{RIGHTWARDS ARROW}"
    style: dict[str, Any] = {"transform": axes.transAxes, "fontsize": "medium"}
    for axis, upwards in zip(schools.axes[: n_dimensions(schools)], (False, True), strict=False):
        if pictured is not None and not are_telling(axis.strength, schools.feature_names):
            label_ends(axes, pictured, axis.weights, upwards=upwards, share=share)
            continue
        letters, lines = int(42 * share), round(3 / share)
        if upwards:
            letters, lines = int(27 * max(share, 0.7)), 2
        low, high = (wrap_text(end, letters, lines) for end in (axis.low, axis.high))
        ends = ((0, "left", "bottom", f"{left} {low}"), (1, "right", "top", f"{high} {right}"))
        for end, across, along, text in ends:
            if upwards:
                axes.text(-0.02, end, text, rotation=90, ha="right", va=along, **style)
            else:
                axes.text(end, -0.02, text, ha=across, va="top", **style)
    if n_dimensions(schools) < 2:
        axes.spines["left"].set_visible(False)
    if not schools.axes:
        axes.set_axis_off()


def _map_title(schools: Schools) -> str:
    n = counted(len(schools.user_ids), "person", "people")
    if not schools:
        if schools.axes:
            return f"{n}: one cloud, no separate schools"
        return f"{n}: no difference between rankings that these labels can show"
    if schools.suggested:
        return f"{n} form {len(schools)} schools: people near each other rank alike"
    return f"{n}, cut into {len(schools)} schools as requested"


def heatmap(
    ranker: Ranker,
    schools: Schools,
    items: Items | None = None,
    images: Images = None,
    *,
    width: float = _WIDTH,
) -> "Figure":
    """Draw all users' weights level by level, users and features ordered by school.

    The consensus is on the left, followed by the group level and the personal level of each user.
    A school is a band of users with the same colours on the same features. Weights are scaled as
    in `find_schools`, and multiplied by the spread of their feature. At most 400 users and 24
    features are drawn.

    Parameters
    ----------
    ranker : ranker
        A fitted ranker.
    schools : Schools
        The result of `likeminds.find_schools` for it.
    items, images : Items, and a mapping from item id to picture, optional
        The labelled items, and their pictures. Features that were computed from pictures are then
        labelled by those with the highest and lowest values.
    width : float
        The width of the figure, in inches; a narrow one has shorter names and no colour bar.

    Returns
    -------
    matplotlib Figure
    """
    levels = WeightLevels.of_ranker(ranker).normalised(schools.spread)
    unit = np.sqrt(schools.spread.diagonal())
    most = _MOST_FEATURES if images is None else _MOST_PICTURED
    users, features = _users_in_order(schools), _features_in_order(schools, most)
    consensus = (levels.consensus * unit)[features, None]
    parts = {
        name: (part * unit)[np.ix_(users, features)].T
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
    style: dict[str, Any] = {"cmap": DIVERGING, "vmin": -limit, "vmax": limit, "aspect": "auto"}
    first.imshow(consensus, **style)
    first.set_xticks([0], ["all"], fontsize=_LABEL)
    letters = _LETTERS // 2 if is_narrow else _LETTERS
    names = [wrap_text(schools.feature_words[j], letters, 2) for j in features]
    label_rows(first, features.tolist(), names, pictured)
    first.tick_params(length=0, labelsize=_LABEL)
    for axes, (name, part) in zip(others, drawn.items(), strict=True):
        image = axes.imshow(part, interpolation="nearest", **style)
        axes.set_title(f"{name} level", fontsize="medium", loc="left")
        _mark_schools(axes, schools, users)
    if not is_narrow:
        bar = figure.colorbar(image, ax=others, shrink=0.8, pad=0.02)
        bar.set_label("weight x spread of the feature", fontsize=_LABEL)
    title = "Deviations from the consensus, people by school: bands of one colour agree"
    if not schools:
        title = "Deviations from the consensus, people in the order of the largest difference"
    title = wrap_text(title, round(84 * width / _WIDTH))
    figure.suptitle(title, fontsize="medium" if is_narrow else "large", x=0.01, ha="left")
    return draw_once(figure)


def _users_in_order(schools: Schools) -> Index:
    """Order users by school, then by the direction in which they differ most."""
    first = schools.coordinates[:, :1].sum(axis=1)
    order = np.lexsort((first, schools.labels))
    return order[evenly_spaced(len(order), _MOST_USERS)]


def _features_in_order(schools: Schools, most: int) -> Index:
    """Order features by the school that they distinguish; features of no school come last."""
    strongest = np.abs(schools.strength).max(axis=0, initial=0.0)
    if not schools and schools.axes:
        strongest = np.max([np.abs(axis.strength) for axis in schools.axes], axis=0)
    first = np.argsort(-strongest, kind="stable")[:most]
    school = schools.feature_school[first]
    return first[np.lexsort((-strongest[first], np.where(school < 0, len(schools), school)))]


def _mark_schools(axes: "Axes", schools: Schools, users: Index) -> None:
    numbers = schools.numbers[users]
    edges = np.flatnonzero(np.diff(numbers)) + 1
    for edge in edges:
        axes.axvline(edge - 0.5, color="black", linewidth=1)
    starts, ends = np.append(0, edges), np.append(edges, len(numbers))
    middles = (starts + ends - 1) / 2
    names = [f"school {numbers[s]}" if schools else "people" for s in starts]
    axes.set_xticks(middles, names, fontsize=_LABEL)
    axes.tick_params(length=0)


def item_shares(schools: Schools, ax: "Axes | None" = None, *, width: float = 7.0) -> "Axes":
    """Draw the share of users who would say yes to each item, with 90 % intervals, in order.

    Parameters
    ----------
    schools : Schools
        The result of `likeminds.find_schools`, with soft labels.
    ax : matplotlib Axes, optional
        The axes to draw in.
    width : float
        The width of a new figure, in inches.

    Returns
    -------
    matplotlib Axes
    """
    soft = schools.soft_labels
    if soft is None:
        raise ValueError(
            "There are no shares to draw: find_schools had no labels. Pass it the annotations."
        )
    axes = new_axes(width, 3.4) if ax is None else ax
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
    return set_title(axes, wrap_text(title, int(_LETTERS_OF_TITLE * width / 7), 3), grid="y")


def leaderboards(boards: Mapping[str, Leaderboard], *, width: float = 7.0) -> "Axes":
    """Draw the scores of items with their intervals, for several groups of users side by side.

    Items are in the order of the first leaderboard; at most its best 25 are drawn.

    Parameters
    ----------
    boards : mapping from str to Leaderboard
        Results of `likeminds.leaderboard` by name, for example of all users and of each school.
    width : float
        The width of the figure, in inches.

    Returns
    -------
    matplotlib Axes
    """
    first = next(iter(boards.values()))
    items = first.items[:MOST_ITEMS].tolist()
    axes = new_axes(width, 1.4 + len(items) * (0.12 + 0.16 * len(boards)))
    for k, (who, board) in enumerate(boards.items()):
        place = {item: n for n, item in enumerate(board.items.tolist())}
        rows = np.array([place[item] for item in items])
        y = np.arange(len(items)) + (0.7 * (k + 0.5) / len(boards) - 0.35)
        # Schools have the colours of the map; the first leaderboard is black.
        look: dict[str, Any] = look_of(k - 1) if k else {"color": "black", "marker": "|"}
        low, high = board.low[rows], board.high[rows]
        axes.hlines(y, low, high, color=look["color"], linewidth=1.6, alpha=0.6)
        axes.scatter(board.scores[rows], y, s=26, label=f"{who} ({board.n_users:,})", **look)
    axes.axvline(0.0, color="0.5", linestyle="--", linewidth=1.0)
    letters = int(28 * width / 7.0)
    axes.set_yticks(range(len(items)), [wrap_text(str(item), letters, 2) for item in items])
    axes.set_ylim(len(items) - 0.5, -0.5)
    axes.set_xlabel(wrap_text("log-odds of beating the average item", int(60 * width / 7)))
    if len(boards) > 1:
        axes.figure.legend(loc="outside lower left", fontsize="small", frameon=False, ncols=2)
    apart = int((first.rank_low == first.rank_high).sum())
    title = f"Ranks that are certain for {next(iter(boards))}: {apart} of {len(first)}"
    return set_title(axes, wrap_text(title, int(_LETTERS_OF_TITLE * width / 7), 3), grid="x")
