"""Why an item has its score, as ``likeminds explain --person P --item I`` tells it."""

from typing import TYPE_CHECKING, Any

from likeminds.cli._talk import Talk

if TYPE_CHECKING:
    from likeminds.cli._data import Shown

_MOST_FEATURES = 8


def tell_reasons(talk: Talk, ranker: Any, person: str, item: str, shown: "Shown") -> dict[str, Any]:
    """Tell why an item has its score for somebody; return the facts."""
    from likeminds.cli._names import as_known, find_item

    who = as_known(person, ranker.people_, "person")
    names = shown.names
    what = find_item(item, shown.ids, names)
    items = dict(zip(shown.ids.tolist(), shown.features, strict=True))
    why = ranker.explain(who, what, items)
    facts: dict[str, Any] = why.to_dict()
    called = {"name": names[what]} if what in names else {}
    if not talk.as_json:
        _tell(talk, why, names.get(what))
    return facts | called


def _tell(talk: Talk, why: Any, name: str | None) -> None:
    from likeminds.cli._show import rich_table

    called = f" ({name})" if name else ""
    sure = ""
    if why.interval is not None:
        low, high = why.interval
        sure = f" (90 %: {low:+.2f} to {high:+.2f})"
    talk.tell(
        f" on {why.item}{called}: {why.score:+.2f} above the average item{sure}",
        head=str(why.person),
    )
    if why.probability is not None:
        talk.tell(f"Chance of a yes: {why.probability:.0%}")
    levels = [{"level": level, "adds": value} for level, value in why.levels.items()]
    talk.tell(rich_table("What it is made of", levels, digits=2, signed=("adds",)))
    signed = ("consensus", "group", "personal", "total")
    features = list(why.features[:_MOST_FEATURES])
    if features:
        title = "By feature, what moves it most first"
        talk.tell(rich_table(title, features, digits=2, signed=signed))
