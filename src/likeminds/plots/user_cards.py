"""A user's card: their weights compared with the consensus, and their best items."""

from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np

from likeminds._util.array_types import Float
from likeminds._util.text_format import Verb
from likeminds.data.annotations import Annotations
from likeminds.features.images import picture_of, thumbnail
from likeminds.plots.figures import BLUE, GREY, draw_once, new_figure, set_title, wrap_text
from likeminds.plots.thumbnails import Images, ThumbnailItems, label_rows
from likeminds.rankers.ranker import Ranker
from likeminds.schools import Explanation
from likeminds.schools.population import Items, JudgedItem
from likeminds.schools.result import position_of
from likeminds.schools.school_names import are_named, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

_FEATURES, _ITEMS, _LETTERS = 10, 5, 140
_LETTERS_OF_A_FEATURE = 34


def user_card(
    ranker: Ranker,
    user: Hashable,
    annotations: Annotations | None = None,
    images: Images = None,
) -> "Figure":
    """Draw a user's weights compared with the consensus, and the best items of both.

    Parameters
    ----------
    ranker : ranker
        A fitted ranker with a group level.
    user : id
        The user.
    annotations : Annotations, optional
        The items; by default those of the ranker's training data, if it has them.
    images : mapping from item id to picture, or sequence in the order of the items, optional
        Paths or arrays; items are then shown as thumbnails.

    Returns
    -------
    matplotlib Figure
    """
    explained = Explanation.of_ranker(ranker, annotations)
    levels, items = explained.levels, explained.items
    place = position_of(user, levels.users)
    own, shared = levels.coef[place], levels.consensus
    figure = new_figure(6.0 if items is None else 11.0, 4.2)
    left: Figure | SubFigure = figure
    if items is not None:
        left, right = figure.subfigures(1, 2, squeeze=False, width_ratios=[5, 6])[0]
        own_best, shared_best = (
            items.judged(items.places(w[None])[0], _ITEMS) for w in (own, shared)
        )
        labelled = explained.judged_by(user)
        verb = _most(explained.verb, [one.item in labelled for one in own_best])
        best = {f"{user} {verb}": own_best, f"the consensus {explained.verb.most()}": shared_best}
        _draw_items(right, best, items, images)
    unit, words = explained.unit, explained.feature_words
    pictured = ThumbnailItems.of(items, images)
    _draw_weights(left.add_subplot(), words, own * unit, shared * unit, pictured)
    likeness = explained.likeness[place]
    how = "the same ranking as" if likeness > 0.95 else f"a correlation of {likeness:+.2f} with"
    figure.suptitle(f"{user}: {how} the consensus", x=0.01, ha="left", fontsize="large")
    return draw_once(figure)


def _most(verb: Verb, labelled: list[bool]) -> str:
    """Head a list of items: "likes" those labelled, "would like" the others, or both."""
    if all(labelled) or verb.conditional == verb:
        return verb.most()
    return f"{verb.one()} or " * any(labelled) + verb.conditional.most()


def _draw_weights(
    axes: "Axes", words: tuple[str, ...], own: Float, shared: Float, pictured: ThumbnailItems | None
) -> None:
    order = np.argsort(-np.maximum(np.abs(own - shared), np.abs(shared)))[:_FEATURES][::-1]
    height = np.arange(len(order))
    axes.barh(height + 0.2, own[order], 0.38, color=BLUE, label="own")
    axes.barh(height - 0.2, shared[order], 0.38, color=GREY, hatch="//", label="consensus")
    names = [wrap_text(words[j], _LETTERS_OF_A_FEATURE, 2) for j in order]
    label_rows(axes, order.tolist(), names, pictured)
    axes.axvline(0, color="black", linewidth=1)
    axes.set_xlabel("weight x spread of the feature")
    axes.legend(frameon=False, fontsize="small")
    set_title(axes, "Weights: bars in one direction agree", grid="x")


def _draw_items(
    figure: "SubFigure", best: dict[str, tuple[JudgedItem, ...]], items: Items, images: Images
) -> None:
    if images is None:
        for axes, (title, judged) in zip(figure.subplots(2, 1), best.items(), strict=True):
            lines = [f"{n}. {', '.join(describe(items, j, 12))}" for n, j in enumerate(judged, 1)]
            text = "\n".join(wrap_text(line, 64, 1) for line in lines)
            axes.text(0, 0.98, text, va="top", linespacing=1.6, transform=axes.transAxes)
            axes.set_title(title, loc="left", fontsize="medium")
            axes.axis("off")
        return
    grid = figure.subplots(2, _ITEMS, squeeze=False)
    for row, (title, judged) in zip(grid, best.items(), strict=True):
        row[0].set_title(title, loc="left", fontsize="medium")
        for axes, item in zip(row, judged, strict=False):
            picture = picture_of(images, item.item, item.row)
            if picture is not None:
                axes.imshow(thumbnail(picture))
            axes.set_xlabel(wrap_text(str(item.item), 16, 1), fontsize="x-small")
        for axes in row:
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_color("0.85")


def describe(items: Items, judged: JudgedItem, most: int) -> list[str]:
    """Return an item's text, its features if they are few and named, or its id."""
    if judged.text is not None:
        return [shorten(judged.text, _LETTERS)]
    if len(items.feature_names) > most:
        return [str(judged.item)]
    where = int(np.searchsorted(items.rows, judged.row))
    features = zip(items.feature_names, items.features[where], items.binary, strict=True)
    lines = [
        name.replace("_", " ") + ("" if binary else f" {value:.3g}")
        for name, value, binary in features
        if value and are_named([name])
    ]
    return lines or [str(judged.item)]
