"""``likeminds explain``: all users, a user, a school, an item or a score in words."""

from typing import TYPE_CHECKING, Literal

import likeminds
from likeminds._util.lazy_imports import np
from likeminds.cli._explain_text import VIEWS, show_part_worths, show_score
from likeminds.cli._label_tables import read_texts
from likeminds.cli._models import (
    ModelItems,
    about,
    find_item,
    find_user,
    rankers_of,
    read_items,
    the_ranker_of,
)
from likeminds.cli._options import Attribute, ItemOptions, Model, NSchools, Texts, option
from likeminds.cli._output import Output
from likeminds.cli.main import DATA, FIT, command

if TYPE_CHECKING:
    from likeminds.rankers.multi_attribute import AttributeModel
    from likeminds.rankers.ranker import Ranker
    from likeminds.schools import Explanation
    from likeminds.schools.population import Items
    from likeminds.schools.result import Facts


_ASK = "likeminds explain power.likeminds"
# Which items are listed first.
ItemOrder = Literal["agreed", "divisive"]
_USER, _ITEM = " --user household-007", " --item 7ct-5y-local"


@command(
    "Ask",
    DATA,
    FIT,
    *(f"{_ASK}{about}" for about in ("", _USER, _ITEM, f"{_USER}{_ITEM}")),
    f"{_ASK} --schools 2 --school 1",
    f"{_ASK} --items agreed",
    f"{_ASK} --table --price price",
)
def explain(
    output: Output,
    *,
    model: Model,
    items: ItemOptions,
    user: str | None = option("Explain a user, by id.", default=None),
    school: int | None = option("Explain a school, by number.", default=None),
    item: str | None = option("Explain an item, by id.", default=None),
    which: ItemOrder | None = option(
        "List the items that every school likes, or the most divisive items, with the share of "
        "people who would say yes.",
        "--items",
        default=None,
    ),
    table: bool = option(
        "Show a table of part-worths: means and standard deviations in the units of the "
        "features, with standard errors and correlations.",
        "--table",
        default=False,
    ),
    price: str | None = option(
        "With --table: the feature with the price, for the willingness to pay.", default=None
    ),
    texts: Texts = None,
    attribute: Attribute = None,
    schools: NSchools = None,
) -> None:
    """Describe groups of users who rank alike, the features they differ on, and outliers.

    Without --user, --school, --item, --items or --table: all users. --user and --item together
    explain the user's score of the item. Items are those of the model's training data, if it has
    them, or those of --features or --images.
    """
    from likeminds.schools import Explanation
    from likeminds.schools.population import items_of

    one_score = user is not None and item is not None
    subjects = {"user": user, "school": school, "item": item, "items": which}
    chosen = [name for name, value in subjects.items() if value is not None]
    if len(chosen) + table - one_score > 1:
        raise ValueError(
            "Give one of --user, --school, --item, --items and --table, or --user and --item."
        )
    if price is not None and not table:
        raise ValueError("--price needs --table: give both.")
    loaded = likeminds.load(model)
    rankers = rankers_of(loaded, attribute)
    if chosen and which is None:
        rankers = dict([the_ranker_of(loaded, attribute)])
    shown = None
    if one_score or item is not None or items.features is not None or items.images is not None:
        shown = None if table else read_items(output, items, loaded)
    called = (loaded.item_names or None) if texts is None else read_texts(texts)
    found = []
    for name, ranker in rankers.items():
        if name and not one_score:
            output.show("", head=f"\n{name}")
        facts: Facts
        if table:
            facts = show_part_worths(output, ranker, price)
        elif shown is not None and user is not None and item is not None:
            who = find_user(user, ranker.users_)
            what = find_item(item, shown.ids, shown.names)
            facts = show_score(output, ranker, who, what, shown)
        else:
            table_of = items_of(ranker, _as_items(shown, loaded), texts=called)
            explained = Explanation(
                ranker, table_of, n_schools="auto" if schools is None else schools
            )
            facts = _facts(explained, user, school, item, which)
            if not output.as_json:
                VIEWS[chosen[0] if chosen else "crowd"](output, facts)
        found.append(about(name) | facts)
    output.json({"model": str(model), "explained": found})


def _as_items(shown: "ModelItems | None", model: "Ranker | AttributeModel") -> "Items | None":

    from likeminds.schools.population import Items

    if shown is None:
        return None
    names = tuple(map(str, model.feature_names_))
    return Items(shown.ids, np.arange(len(shown.ids)), shown.features, names)


def _facts(
    explained: "Explanation",
    user: str | None,
    school: int | None,
    item: str | None,
    which: ItemOrder | None,
) -> "Facts":
    if which is not None:
        return explained.about_items(which)
    if user is not None:
        return explained.user(find_user(user, explained.levels.users))
    if school is not None:
        return explained.school(school)
    if item is not None:
        assert explained.items is not None  # read_items raises an error without items
        items = explained.items
        return explained.item(find_item(item, items.ids, dict(items.texts or {})))
    crowd = explained.population()
    return crowd if explained.halves is None else crowd | {"halves": explained.halves.to_dict()}
