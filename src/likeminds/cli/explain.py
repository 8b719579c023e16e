"""``likeminds explain``: what a crowd, a person, a school or an item is about."""

from collections import defaultdict
from enum import StrEnum
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likeminds._util.text_format import counted, written_grade
from likeminds._util.verbs import Verb
from likeminds.cli._command import command
from likeminds.cli._options import Attribute, ItemOptions, Model, Texts
from likeminds.cli._output import Output
from likeminds.cli.fit import DATA, FIT

if TYPE_CHECKING:
    from likeminds.schools import Explanation
    from likeminds.schools.items import Items as Known
    from likeminds.schools.result import Facts


class ItemOrder(StrEnum):
    """Which items are listed first."""

    agreed = "agreed"
    divisive = "divisive"


_MOST_FEATURES = 8
_MOST_NAMES = 12
_FEW_ITEMS = 5
# Covariates that explain less of people's differences are not worth a word.
_LEAST_SHARE = 0.005


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    ask = "likeminds explain power.likeminds"
    who, what = " --user household-007", " --item 7ct-5y-local"
    asked = [f"{ask}{about}" for about in ("", who, what, f"{who}{what}")]
    command(
        app,
        panel="Ask",
        examples=[
            *(DATA, FIT, *asked, f"{ask} --school 1", f"{ask} --items agreed"),
            f"{ask} --table --price price",
        ],
    )(explain)


def explain(
    talk: Output,
    *,
    model: Model,
    items: ItemOptions,
    user: Annotated[str | None, typer.Option(help="Explain a user, by id.")] = None,
    school: Annotated[int | None, typer.Option(help="Explain a school, by number.")] = None,
    item: Annotated[str | None, typer.Option(help="Explain an item, by id.")] = None,
    which: Annotated[
        ItemOrder | None,
        typer.Option(
            "--items",
            help="List items: those that every school likes, or those that divide people, with "
            "the share of people who would say yes.",
        ),
    ] = None,
    table: Annotated[
        bool,
        typer.Option(
            "--table",
            help="The choice modeller's table: means and standard deviations of part-worths in "
            "the features' own units, with standard errors, and correlations.",
        ),
    ] = False,
    price: Annotated[
        str | None,
        typer.Option(help="With --table: the feature in units of which people would pay."),
    ] = None,
    texts: Texts = None,
    attribute: Attribute = None,
    schools: Annotated[
        int | None, typer.Option(min=1, help="How many schools; by default the data say.")
    ] = None,
) -> None:
    """Say in words who thinks alike, on what, and who sees it their own way.

    Without --user, --school, --item, --items or --table: the crowd. --user and --item together
    say why this person's score of this item is what it is. Items are those the model has learned
    from, if it has kept them, or those of --features or --images.
    """
    from likeminds.cli._id_lookup import read_texts
    from likeminds.cli._items import read_shown
    from likeminds.cli._models import open_model, rankers_of, the_ranker_of
    from likeminds.cli._score_decomposition import tell_reasons
    from likeminds.schools import Explanation
    from likeminds.schools.find import items_of

    one_score = user is not None and item is not None
    given = [option for option in (user, school, item, which) if option is not None]
    if len(given) + table - one_score > 1:
        raise ValueError(
            "Give one of --user, --school, --item, --items and --table, or --user and --item."
        )
    if price is not None and not table:
        raise ValueError("--price belongs to --table: give both.")
    known = open_model(model)
    rankers = rankers_of(known, attribute)
    if table:
        _tell_tables(talk, model, rankers, price)
        return
    if given and which is None:
        rankers = dict([the_ranker_of(known, attribute)])
    if user is not None and item is not None:
        [(name, ranker)] = rankers.items()
        facts = tell_reasons(talk, ranker, user, item, read_shown(talk, items, known))
        about = {"attribute": name} if name else {}
        talk.result({"model": str(model), "explained": [about | facts]})
        return
    shown = _find_items(talk, items, known, item)
    called = (known.item_names or None) if texts is None else read_texts(texts)
    found = []
    for name, ranker in rankers.items():
        seen = items_of(ranker, shown, texts=called)
        explained = Explanation(ranker, seen, "auto" if schools is None else schools)
        about = {"attribute": name} if name else {}
        facts = (
            _facts(explained, user, school, item)
            if which is None
            else explained.about_items(which.value)
        )
        if not given and explained.halves is not None:
            facts["halves"] = explained.halves.to_dict()
        found.append(about | facts)
        if not talk.as_json:
            if name:
                talk.tell("", head=f"\n{name}")
            asked = {"user": user, "school": school, "item": item, "items": which}
            _TELLERS[next((what for what, value in asked.items() if value), "crowd")](talk, facts)
    talk.result({"model": str(model), "explained": found})


def _tell_tables(talk: Output, model: Path, rankers: dict[str, Any], price: str | None) -> None:
    from likeminds.cli._part_worths import tell_part_worths

    found = []
    for name, ranker in rankers.items():
        if name:
            talk.tell("", head=f"\n{name}")
        about = {"attribute": name} if name else {}
        found.append(about | tell_part_worths(talk, ranker, price))
    talk.result({"model": str(model), "explained": found})


def _find_items(talk: Output, items: ItemOptions, model: Any, item: str | None) -> "Known | None":
    """Return the items that were given; to explain one by its id, all that the model knows."""
    import numpy as np

    from likeminds.cli._items import read_shown
    from likeminds.schools.items import Items as Known

    if items.features is None and items.images is None and item is None:
        return None
    shown = read_shown(talk, items, model)
    rows = np.arange(len(shown.ids))
    return Known(shown.ids, rows, shown.features, tuple(map(str, model.feature_names_)))


def _facts(
    explained: "Explanation", user: str | None, school: int | None, item: str | None
) -> "Facts":
    from likeminds.cli._id_lookup import as_known, find_item

    if user is not None:
        return explained.user(as_known(user, explained.levels.users, "user"))
    if school is not None:
        return explained.school(school)
    if item is None:
        return explained.crowd()
    assert explained.items is not None  # or reading them has said so
    names = dict(explained.items.texts or {})
    return explained.item(find_item(item, explained.items.ids, names))


def _tell_crowd(talk: Output, facts: "Facts") -> None:
    from likeminds.cli._tables import rich_table

    verb = Verb.of(facts["verb"])

    if "best" in facts:
        talk.tell(f": {_items(facts['best'])}", head=f"What people {verb.most(many=True)}")
        talk.tell(f": {_items(facts['worst'])}", head="And least")
    else:
        wishes = [one["wish"] for one in facts["consensus"][:_MOST_FEATURES]]
        head = "What people want" if verb.wishes else f"What people {verb.many()}"
        talk.tell(f", strongest first: {', '.join(wishes)}", head=head)
    rows = [
        {
            "school": one["number"],
            "people": one["size"],
            "comes back": f"{one['stability']:.0%}",
            "what sets it apart": one["name"],
        }
        for one in facts["schools"]
    ]
    if rows:
        talk.tell(rich_table(f"{len(rows)} schools of thought among {facts['people']:,}", rows))
        talk.remark("(comes back: how much of a school is found again in resampled crowds)")
    elif facts["axes"]:
        talk.tell("No schools stand apart: people differ gradually.")
        _tell_halves(talk, facts.get("halves"))
    else:
        talk.tell("No schools stand apart: rankings do not differ as far as these labels show.")
    for axis in facts["axes"]:
        talk.tell(f"{axis['share']:.0%} of the differences: from {axis['low']} to {axis['high']}")
    _tell_covariates(talk, facts["people_by"])
    _tell_severity(talk, facts["severity"])
    _tell_standing(talk, facts["standing"], "Scores, on average")
    loners = facts["loners"]
    if loners:
        see = "sees" if len(loners) == 1 else "see"
        talk.tell(
            f"{counted(len(loners), 'person', 'people')} {see} it their own way: {_names(loners)}"
        )
    if facts["agreed"]:
        # Surest first: `rank` has other items on top where some have few labels.
        least = min(one["at_least"] for one in facts["agreed"][:_FEW_ITEMS])
        gradual = "people at both ends of this" if facts["axes"] else "people"
        who = "every school" if rows else gradual
        says = f"At least {least:.0%} of {who} {verb.would('each of these')}"
        talk.tell(f": {_items(facts['agreed'])}", head=says)
    if facts["divisive"]:
        talk.tell(f"What divides people most: {_items(facts['divisive'])}")
    if not facts["items"]:
        talk.remark(
            "Without its items the model does not know which features go together, and takes each "
            "for itself; --features or --images says more."
        )
    talk.remark(
        "\nNext: --user ID, --school N or --item ID explain one of them, --items agreed or "
        "divisive lists items."
    )


def _tell_halves(talk: Output, halves: "Facts | None") -> None:
    """Tell the best two schools and how stable they are, for those who expect groups."""
    if halves is None:
        return
    parts = [
        f"{one['size']:,} people, of whom {one['stability']:.0%} come back: {one['name']}"
        for one in halves["schools"]
    ]
    talk.tell(": " + "; ".join(parts), head="The best two all the same")
    talk.remark(
        f"(--schools 2 shows them; in resampled crowds, they are found again with an adjusted "
        f"Rand index of {halves['agreement']:.2f}: 1 is the same division, 0 is chance)"
    )


def _tell_severity(talk: Output, severity: "Facts | None") -> None:
    """Tell who says yes most and least readily: raters may rank alike and differ in that."""
    if severity is None or not severity["differs"]:
        return
    ends = [severity[end] for end in ("strictest", "mildest")]
    low, high = (f"yes to {one['share']:.0%} ({one['user']})" for one in ends)
    half = "{:.0%} to {:.0%}".format(*severity["middle"])
    talk.tell(f": from {low} to {high}; the middle half of people {half}", head="Thresholds differ")
    talk.remark("(share of a person's labels that are yes, whatever they rank first)")


def _tell_covariates(talk: Output, covariates: "list[Facts]") -> None:
    for one in covariates:
        if one["share"] < _LEAST_SHARE:
            talk.tell(f"{one['covariate']} goes with no difference between people's rankings.")
            continue
        told = "; ".join(f"{part['of']}: {part['wants']}" for part in one["goes_with"])
        talk.tell(f"{one['share']:.0%} of the differences go with {one['covariate']} ({told})")


def _tell_user(talk: Output, facts: "Facts") -> None:
    from likeminds.cli._tables import rich_table

    school, where = facts["school"], "no schools stand apart"
    if school is not None:
        sure = f"{facts['membership']:.0%} sure"
        where = f"school {school['number']} ({school['name']}), {sure}"
    talk.tell(f": {where}", head=str(facts["user"]))
    _tell_standing(talk, facts["standing"], "Scores")
    if facts["loner"]:
        talk.tell("Sees it their own way, more than chance explains.")
    talk.tell(f"Likeness with the consensus: {facts['likeness']:+.2f} (1: the same ranking)")
    severity = facts["severity"]
    if severity is not None:
        half = "{:.0%} to {:.0%}".format(*severity["middle"])
        talk.tell(
            f"Says yes to {severity['share']:.0%} of {counted(severity['labels'], 'label')}; "
            f"the middle half of people to {half}"
        )
    rows = [_in_words(one) for one in facts["features"][:_MOST_FEATURES]]
    talk.tell(
        rich_table("Where the weights differ most", rows, digits=2, signed=("own", "consensus"))
    )
    talk.remark("(weights times the spread of the feature)")
    if "best" in facts:
        verb, lines = Verb.of(facts["verb"]), defaultdict(list)
        for whose in ("", "_by_consensus"):
            grades = facts[f"expected{whose}"] or repeat(None)
            for item, grade in zip(facts[f"best{whose}"], grades, strict=False):
                own = verb if item in facts["labelled"] else verb.conditional
                most = f"the consensus {verb.most()}" if whose else own.most()
                given = "" if grade is None else f" ({written_grade(grade)})"
                lines[most].append(f"{_called({'item': item} | _text(facts, item))}{given}")
        for most, named in lines.items():
            talk.tell(f"{most.capitalize()}: {_names(named)}")


def _tell_school(talk: Output, facts: "Facts") -> None:
    from likeminds.cli._tables import rich_table

    talk.tell(
        f": {facts['name']}\n{counted(facts['size'], 'person', 'people')} "
        f"({facts['share']:.0%}); comes back in resampled crowds: {facts['stability']:.0%}",
        head=f"School {facts['number']}",
    )
    features = list(facts["features"].items())[:_MOST_FEATURES]
    rows = [{"feature": facts["words"][name], "adds": value} for name, value in features]
    if rows:
        talk.tell(rich_table("What sets it apart", rows, digits=2, signed=("adds",)))
    if facts["typical"]:
        most = Verb.of(facts["verb"]).most()
        talk.tell(f"{most.capitalize()}: {_items(facts['typical'])}")
    for one in facts["divisive"][:_FEW_ITEMS]:
        where = "higher" if one["places"] > 0 else "lower"
        talk.tell(f"  {_called(one)}: {abs(one['places']):.0%} {where} than all others place it")
    talk.tell(f"Members, surest first: {_names(facts['members'])}")


def _tell_item(talk: Output, facts: "Facts") -> None:
    from likeminds.cli._tables import rich_table

    talk.tell(
        f" beats {facts['consensus']:.0%} of the items by the consensus; "
        f"it divides people more than {facts['more_divisive_than']:.0%} of them do.",
        head=_called(facts),
    )
    rows = [
        {"school": s["number"], "beats": f"{s['beats']:.0%}", "what sets it apart": s["name"]}
        for s in facts["schools"]
    ]
    if rows:
        talk.tell(rich_table("By school", rows))
    reasons = [_in_words(one) for one in facts["reasons"]]
    talk.tell(rich_table("Why the consensus sees it so", reasons, signed=("moves",)))
    for name, what in (("liked_by", "Highest"), ("disliked_by", "Lowest")):
        said = ", ".join(f"{one['user']} ({one['beats']:.0%})" for one in facts[name])
        talk.tell(f"{what} for: {said}")


def _tell_items(talk: Output, facts: "Facts") -> None:
    from likeminds.cli._tables import rich_table

    several = len(facts["schools"]) > 0
    verb = Verb.of(facts["verb"])
    rows = [
        {"item": _called(one), "judged by": one["votes"], "yes": f"{one['share']:.0%}"}
        | {f"school {n}": f"{share:.0%}" for n, share in enumerate(one["by_school"], start=1)}
        | {"at least": f"{one['at_least']:.0%}", "spread": one["spread"]}
        for one in facts["items"][:_MOST_NAMES]
    ]
    titles = {
        "agreed": f"What {'every school' if several else 'the crowd'} {verb.one()}, surest first",
        "divisive": "What divides people most",
    }
    talk.tell(rich_table(titles[facts["which"]], rows, digits=2))
    where = f" {facts['everywhere']}".rstrip()
    liked = f"{facts['liked_by_all']:,} of {counted(len(facts['items']), 'item')}"
    talk.tell(f"More than half{where} {verb.would(liked)}.")
    for one in facts["schools"]:
        talk.tell(f"School {one['number']}: {one['name']}")
    talk.remark(
        "(yes: the share of people who would say so, those who judged it as they did; at least: "
        f"that share{where}, with a probability of 95 %;\n spread: the standard deviation over "
        "people of the share of items it beats)"
    )


_TELLERS = {
    "items": _tell_items,
    "crowd": _tell_crowd,
    "user": _tell_user,
    "school": _tell_school,
    "item": _tell_item,
}


def _tell_standing(talk: Output, standing: dict[str, float], whose: str) -> None:
    shares = ", ".join(f"{share:.0%} {level}" for level, share in standing.items())
    talk.tell(f"{whose}: {shares}")


def _items(judged: "list[Facts]") -> str:
    return _names([_called(one) for one in judged[:_FEW_ITEMS]])


def _in_words(one: "Facts") -> "Facts":
    """Return the row of a feature for people: its words instead of the name of its column."""
    return {"feature": one["words"]} | {
        key: value for key, value in one.items() if key not in ("feature", "words")
    }


def _called(one: "Facts") -> str:
    """Return the text of an item, shortened, or its id."""
    from likeminds.schools.school_names import shorten

    return f'"{shorten(one["text"])}"' if "text" in one else str(one["item"])


def _text(facts: "Facts", item: Any) -> "Facts":
    return {"text": facts["texts"][item]} if item in facts["texts"] else {}


def _names(values: list[Any]) -> str:
    named = ", ".join(str(value) for value in values[:_MOST_NAMES])
    more = len(values) - _MOST_NAMES
    return f"{named} and {more:,} more" if more > 0 else named
