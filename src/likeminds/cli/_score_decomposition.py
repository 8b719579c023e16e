"""Why an item has its score, as ``likeminds explain MODEL --user P --item I`` tells it."""

from typing import TYPE_CHECKING, Any

from likeminds.cli._output import Output

if TYPE_CHECKING:
    from likeminds.cli._items import ModelItems

_MOST_FEATURES = 8


def tell_reasons(
    talk: Output, ranker: Any, user: str, item: str, shown: "ModelItems"
) -> dict[str, Any]:
    """Tell why an item has its score for somebody; return the facts."""
    from likeminds.cli._id_lookup import as_known, find_item

    who = as_known(user, ranker.people_, "user")
    names = shown.names
    what = find_item(item, shown.ids, names)
    items = dict(zip(shown.ids.tolist(), shown.features, strict=True))
    why = ranker.explain(who, what, items)
    facts: dict[str, Any] = why.to_dict()
    called = {"name": names[what]} if what in names else {}
    if not talk.as_json:
        _tell(talk, why, names.get(what), _feature_words(ranker, shown))
    return facts | called


def _feature_words(ranker: Any, shown: "ModelItems") -> dict[str, str]:
    """Return what features are to people: one that was learned has items with most and least."""
    from likeminds.rankers.item_table import ItemTableView, columns_of
    from likeminds.schools.school_names import LETTERS_IN_A_NAME, is_made, name_feature, shorten

    chosen = ranker._best_model
    rows, ids = ItemTableView(chosen, shown.ids, shown.features).rows, shown.ids.tolist()

    def called(place: int) -> str:
        name = shown.names.get(ids[place])
        return str(ids[place]) if name is None else f'"{shorten(name, LETTERS_IN_A_NAME // 2)}"'

    return {
        name: name_feature(name, rows[:, column], called)
        for column, name in enumerate(columns_of(chosen))
        if is_made(name)
    }


def _tell(talk: Output, why: Any, name: str | None, words: dict[str, str]) -> None:
    from likeminds._util.text_format import signed, written_grade
    from likeminds.cli._tables import rich_table
    from likeminds.rankers.score_decomposition import beside_average

    called = f" ({name})" if name else ""
    sure = ""
    if why.interval is not None:
        low, high = why.interval
        sure = f" (90 %: {signed(low, 2)} to {signed(high, 2)})"
    talk.tell(
        f" on {why.item}{called}: {beside_average(why.score)}{sure}",
        head=str(why.user),
    )
    if why.expected is not None:
        talk.tell(f"Expected grade: {written_grade(why.expected)}")
    elif why.probability is not None:
        talk.tell(f"Chance of a yes: {why.probability:.0%}")
    levels = [{"level": level, "adds": value} for level, value in why.levels.items()]
    talk.tell(rich_table("What it is made of", levels, digits=2, signed=("adds",)))
    with_signs = ("consensus", "group", "personal", "total")
    features = [
        one | {"feature": words.get(one["feature"], one["feature"])}
        for one in why.features[:_MOST_FEATURES]
    ]
    if features:
        title = "By feature, what moves it most first"
        talk.tell(rich_table(title, features, digits=2, signed=with_signs))
