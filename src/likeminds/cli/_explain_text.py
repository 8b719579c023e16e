"""Explanations in words, as ``likeminds explain`` shows them."""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

from likeminds._util.text_format import Verb, counted, listing, signed, written_grade
from likeminds.cli._output import Output

if TYPE_CHECKING:
    from likeminds.cli._models import ModelItems
    from likeminds.rankers.ranker import Ranker
    from likeminds.rankers.score_decomposition import ScoreDecomposition
    from likeminds.schools.result import Facts

_MOST_FEATURES = 8
_MOST_NAMES = 12
_FEW_ITEMS = 5
# Covariates that explain less of the differences between users are not shown.
_ROUNDING = 0.005


def _show_crowd(output: Output, facts: "Facts") -> None:
    verb = Verb.of(facts["verb"])

    if "best" in facts:
        output.show(f": {_items(facts['best'])}", head=f"Items people {verb.most(many=True)}")
        output.show(f": {_items(facts['worst'])}", head="Lowest items")
    else:
        wishes = [one["wish"] for one in facts["consensus"][:_MOST_FEATURES]]
        head = f"Features people {'want' if verb.wishes else verb.many()}"
        output.show(f", strongest first: {', '.join(wishes)}", head=head)
    rows = [
        {
            "school": one["number"],
            "users": one["size"],
            "stability": f"{one['stability']:.0%}",
            "distinguished by": one["name"],
        }
        for one in facts["schools"]
    ]
    if rows:
        output.table(f"{len(rows)} schools of thought among {facts['users']:,}", rows)
        output.hint("(stability: Jaccard index with the schools of resampled users)")
    elif facts["axes"]:
        output.show("No schools stand apart: people differ gradually.")
        _show_halves(output, facts.get("halves"))
    else:
        output.show("No schools stand apart: rankings do not differ as far as these labels show.")
    for axis in facts["axes"]:
        output.show(f"{axis['share']:.0%} of the differences: from {axis['low']} to {axis['high']}")
    _show_covariates(output, facts["users_by"])
    _show_severity(output, facts["severity"])
    _show_level_shares(output, facts["level_shares"], "Scores, on average")
    outliers = facts["outliers"]
    if outliers:
        output.show(f"{counted(len(outliers), 'outlier')}: {_names(outliers)}")
    if facts["agreed"]:
        # Sorted by lower bounds: `rank` may have other items on top if some have few labels.
        least = min(one["at_least"] for one in facts["agreed"][:_FEW_ITEMS])
        gradual = "people at both ends of this" if facts["axes"] else "people"
        who = "every school" if rows else gradual
        says = f"At least {least:.0%} of {who} {verb.would('each of these')}"
        output.show(f": {_items(facts['agreed'])}", head=says)
    if facts["divisive"]:
        output.show(f"Most divisive items: {_items(facts['divisive'])}")
    if not facts["items"]:
        output.hint(
            "Without items, the correlations of features are unknown, so each feature is explained "
            "separately. Give --features or --images."
        )
    output.hint(
        "\nNext: --user ID, --school N or --item ID explains one of them; --items agreed or "
        "divisive lists items."
    )


def _show_halves(output: Output, halves: "Facts | None") -> None:
    """Print the best division into two schools and its stability."""
    if halves is None:
        return
    parts = [
        f"{one['size']:,} people (stability {one['stability']:.0%}): {one['name']}"
        for one in halves["schools"]
    ]
    output.show(": " + "; ".join(parts), head="Best division into two")
    output.hint(
        "(--schools 2 shows them. Adjusted Rand index with divisions of resampled users: "
        f"{halves['agreement']:.2f}; 1 is the same division, 0 is chance)"
    )


def _show_severity(output: Output, severity: "Facts | None") -> None:
    """Print the users with the smallest and largest shares of yes."""
    if severity is None or not severity["differs"]:
        return
    ends = [severity[end] for end in ("strictest", "mildest")]
    low, high = (f"yes to {one['share']:.0%} ({one['user']})" for one in ends)
    half = "{:.0%} to {:.0%}".format(*severity["middle"])
    output.show(
        f": from {low} to {high}; the middle half of people {half}", head="Thresholds differ"
    )
    output.hint("(threshold: the share of a user's labels that are yes)")


def _names(names: Sequence[object]) -> str:

    return listing(names, _MOST_NAMES)


def _show_covariates(output: Output, covariates: "list[Facts]") -> None:
    idle = [str(one["covariate"]) for one in covariates if one["share"] < _ROUNDING]
    if idle:
        explain = "does" if len(idle) == 1 else "do"
        output.show(f"{_names(idle)} {explain} not explain differences between people's rankings.")
    for one in covariates:
        if one["covariate"] in idle:
            continue
        parts = "; ".join(f"{part['of']}: {part['wants']}" for part in one["goes_with"])
        output.show(f"{one['share']:.0%} of the differences go with {one['covariate']} ({parts})")


def _show_user(output: Output, facts: "Facts") -> None:
    school, where = facts["school"], "no schools stand apart"
    if school is not None:
        likely = f"probability {facts['membership']:.0%}"
        where = f"school {school['number']} ({school['name']}), {likely}"
    output.show(f": {where}", head=str(facts["user"]))
    _show_level_shares(output, facts["level_shares"], "Scores")
    if facts["outlier"]:
        output.show("Outlier: the personal level is larger than chance explains.")
    output.show(f"Likeness with the consensus: {facts['likeness']:+.2f} (1: the same ranking)")
    severity = facts["severity"]
    if severity is not None:
        half = "{:.0%} to {:.0%}".format(*severity["middle"])
        output.show(
            f"Says yes to {severity['share']:.0%} of {counted(severity['labels'], 'label')}; "
            f"the middle half of people to {half}"
        )
    # Features whose weights differ in the digits shown.
    rows = [
        _in_words(one)
        for one in facts["features"][:_MOST_FEATURES]
        if abs(one["own"] - one["consensus"]) >= 2 * _ROUNDING
    ]
    if rows:
        output.table("Largest differences of weights", rows, digits=2, signed=("own", "consensus"))
        output.hint("(weights times the spread of the feature)")
    if "best" in facts:
        verb, lines = Verb.of(facts["verb"]), defaultdict(list)
        for whose in ("", "_by_consensus"):
            grades = facts[f"expected{whose}"] or repeat(None)
            for item, grade in zip(facts[f"best{whose}"], grades, strict=False):
                own = verb if item in facts["labelled"] else verb.conditional
                most = f"the consensus {verb.most()}" if whose else own.most()
                graded = "" if grade is None else f" ({written_grade(grade)})"
                text = {"text": facts["texts"][item]} if item in facts["texts"] else {}
                lines[most].append(_called({"item": item} | text) + graded)
        for most, named in lines.items():
            output.show(f"{most.capitalize()}: {_names(named)}")


def _show_school(output: Output, facts: "Facts") -> None:
    output.show(
        f": {facts['name']}\n{counted(facts['size'], 'person', 'people')} "
        f"({facts['share']:.0%}); stability: {facts['stability']:.0%}",
        head=f"School {facts['number']}",
    )
    features = list(facts["features"].items())[:_MOST_FEATURES]
    rows = [{"feature": facts["words"][name], "adds": value} for name, value in features]
    if rows:
        output.table("Distinguishing features", rows, digits=2, signed=("adds",))
    if facts["typical"]:
        most = Verb.of(facts["verb"]).most()
        output.show(f"{most.capitalize()}: {_items(facts['typical'])}")
    for one in facts["divisive"][:_FEW_ITEMS]:
        where = "higher" if one["places"] > 0 else "lower"
        output.show(f"  {_called(one)}: ranked {abs(one['places']):.0%} {where} than by all others")
    output.show(f"Members, by probability: {_names(facts['members'])}")


def _show_item(output: Output, facts: "Facts") -> None:
    output.show(
        f" beats {facts['consensus']:.0%} of the items by the consensus, and is "
        f"more divisive than {facts['more_divisive_than']:.0%} of them.",
        head=_called(facts),
    )
    rows = [
        {"school": s["number"], "beats": f"{s['beats']:.0%}", "distinguished by": s["name"]}
        for s in facts["schools"]
    ]
    if rows:
        output.table("By school", rows)
    reasons = [_in_words(one) for one in facts["reasons"]]
    output.table("Score by the consensus, by feature", reasons, signed=("moves",))
    for name, what in (("liked_by", "Highest"), ("disliked_by", "Lowest")):
        users = ", ".join(f"{one['user']} ({one['beats']:.0%})" for one in facts[name])
        output.show(f"{what} for: {users}")


def _show_items(output: Output, facts: "Facts") -> None:
    several = len(facts["schools"]) > 0
    verb = Verb.of(facts["verb"])
    rows = [
        {"item": _called(one), "votes": one["votes"], "yes": f"{one['share']:.0%}"}
        | {f"school {n}": f"{share:.0%}" for n, share in enumerate(one["by_school"], start=1)}
        | {"at least": f"{one['at_least']:.0%}", "spread": one["spread"]}
        for one in facts["items"][:_MOST_NAMES]
    ]
    titles = {
        "agreed": f"Items that {'every school' if several else 'the crowd'} {verb.one()}",
        "divisive": "Most divisive items",
    }
    output.table(titles[facts["which"]], rows, digits=2)
    where = f" {facts['everywhere']}".rstrip()
    liked = f"{facts['liked_by_all']:,} of {counted(len(facts['items']), 'item')}"
    output.show(f"More than half{where} {verb.would(liked)}.")
    for one in facts["schools"]:
        output.show(f"School {one['number']}: {one['name']}")
    output.hint(
        f"(yes: share of users who would say yes; at least: its lower 95 % bound{where};\n "
        "spread: standard deviation over users of the share of items that it beats)"
    )


VIEWS = {
    "items": _show_items,
    "crowd": _show_crowd,
    "user": _show_user,
    "school": _show_school,
    "item": _show_item,
}


def _show_level_shares(output: Output, level_shares: dict[str, float], whose: str) -> None:
    shares = ", ".join(f"{share:.0%} {level}" for level, share in level_shares.items())
    output.show(f"{whose}: {shares}")


def _items(judged: "list[Facts]") -> str:
    return ", ".join(_called(one) for one in judged[:_FEW_ITEMS])


def _in_words(one: "Facts") -> "Facts":
    """Return the row of a feature, named by its description instead of its column."""
    return {"feature": one["words"]} | {
        key: value for key, value in one.items() if key not in ("feature", "words")
    }


def _called(one: "Facts") -> str:
    """Return the text of an item, shortened, or its id."""
    from likeminds.schools.school_names import shorten

    return f'"{shorten(one["text"])}"' if "text" in one else str(one["item"])


def show_score(
    output: Output, ranker: "Ranker", user: Hashable, item: Hashable, shown: "ModelItems"
) -> "Facts":
    """Show why an item has its score for a user; return the facts."""
    why: ScoreDecomposition = ranker.explain(user, item, shown.by_id)
    name = shown.names.get(item)
    if not output.as_json:
        _show_levels(output, why, f" ({name})" if name else "")
        words = _feature_words(ranker, shown)
        rows = [
            one | {"feature": words.get(one["feature"], one["feature"])}
            for one in why.features[:_MOST_FEATURES]
        ]
        if rows:
            title, numbers = "By feature, largest effect first", list(rows[0])[1:]
            output.table(title, rows, digits=2, signed=numbers)
    return why.to_dict() | ({} if name is None else {"name": name})


def _show_levels(output: Output, why: "ScoreDecomposition", called: str) -> None:
    from likeminds.rankers.score_decomposition import relative_to_average

    sure = ""
    if why.interval is not None:
        low, high = why.interval
        sure = f" (90 %: {signed(low, 2)} to {signed(high, 2)})"
    output.show(
        f" on {why.item}{called}: {relative_to_average(why.score)}{sure}", head=str(why.user)
    )
    if why.expected is not None:
        output.show(f"Expected grade: {written_grade(why.expected)}")
    elif why.probability is not None:
        output.show(f"Chance of a yes: {why.probability:.0%}")
    levels = [{"level": level, "adds": value} for level, value in why.levels.items()]
    output.table("Score by level", levels, digits=2, signed=("adds",))


def _feature_words(ranker: "Ranker", shown: "ModelItems") -> dict[str, str]:
    """Return descriptions of learned features: the items with the highest and lowest values."""
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


def show_part_worths(output: Output, ranker: "Ranker", price: str | None) -> "Facts":
    """Show part-worths, and with a price the willingness to pay; return the facts."""
    from sklearn.base import clone

    from likeminds.choice_models.specification import find_feature
    from likeminds.choice_models.summary import Summary
    from likeminds.rankers.capabilities import Capability

    Capability.PART_WORTHS.require(ranker)
    if price is not None:
        find_feature(price, ranker.feature_names_, "price")
    if ranker.annotations_ is None:
        raise ValueError("The table needs training labels: fit the model with --keep-data.")
    if ranker.item_effects_:
        # Part-worths need a mixed logit, whose likelihood is a product over users.
        output.show("Part-worths of a fit without item effects:")
        ranker = clone(ranker).set_params(item_effects=False).fit(ranker.annotations_)
    table = ranker.summary()
    facts: Facts = table.to_dict()
    _show_notes(output, table, table.notes)
    if isinstance(table, Summary) and table.correlations:
        _show_notes(output, table.correlated())
    if price is None:
        output.hint("\nNext: --price FEATURE shows the willingness to pay for other features.")
    else:
        paid = ranker.wtp(price)
        facts["wtp"] = paid.to_dict()
        _show_notes(output, paid, paid.notes)
    return facts


def _show_notes(output: Output, table: Any, notes: Sequence[str] = ()) -> None:
    output.table(table.title, table.rows, digits=None)
    for note in notes:
        output.show(note)
