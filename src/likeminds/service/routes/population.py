"""The crowd and its items: what everybody may see who may see anything."""

from bisect import bisect
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Response

from likeminds._util.verbs import LIKE
from likeminds.schools.user_map import map_places, n_dimensions
from likeminds.service.access import Caller, Calling, Held
from likeminds.service.app_state import AppState
from likeminds.service.catalogue import UnknownNameError, read_picture
from likeminds.service.errors import ProblemError, documented
from likeminds.service.keys import Role
from likeminds.service.queries import RankingQueries, best
from likeminds.service.schemas import Asked, Facts, Name, Paged, Search
from likeminds.service.scoring import AttributeScorer

router = APIRouter(prefix="/v1", tags=["crowd"], responses=documented(404))

# People on the map, at most: more would be one blot.
_ON_MAP = 2_000


class AskedItem(Asked):
    """An item by its id."""

    item: Name


class AskedSchool(Asked):
    """A school by its number."""

    number: Annotated[int, Query(ge=1, le=1000)]


@router.get("/model", response_model=Facts)
def model(held: Held, caller: Calling) -> dict[str, Any]:  # noqa: ARG001
    """Say what is served: how many people and items, which attributes and features."""
    served = held.served
    names = [str(name) for name in served.model.feature_names_]
    access = "open" if held.is_open else "visitors" if held.settings.visitors else "keys"
    return {
        "title": held.settings.title,
        "generation": served.generation,
        "ranker": served.card["ranker"],
        "people": len(served.model.people_),
        "items": len(served.catalogue),
        "attributes": served.attributes,
        "wording": {name: _wording(one) for name, one in served.questions.items()},
        "features": names,
        "binary_features": [
            name for name, yes in zip(names, served.catalogue.binary, strict=True) if yes
        ],
        "takes_updates": bool(served.card.get("takes_updates")),
        "access": access,
    }


def _wording(question: AttributeScorer) -> dict[str, Any]:
    """Return how a page asks about items: the question, the answers, and words for both."""
    verb, scale = question.chosen.verb, question.scale
    votes = verb.words == "agree with it"
    asked = verb.question("this statement" if votes else "this")
    if scale.is_graded and verb == LIKE:
        asked = "How do you rate this?"
    answers = [
        {"label": scale.value_of(level), "text": word}
        for level, word in zip(scale.levels, scale.words, strict=True)
    ]
    cut = None if scale.reading is None else scale.reading.threshold
    return {
        "question": asked,
        "many": verb.many(),
        "most": verb.most(many=True),
        "answers": answers,
        "graded": scale.is_graded,
        "yes": f"above {scale.words[bisect(scale.levels, cut) - 1]}"
        if scale.is_graded and isinstance(cut, float)
        else scale.words[-1],
        "skip": "Pass" if votes and not scale.is_graded else "Skip",
        "noun": "statement" if votes else "item",
        "taste": "taste" if verb.wishes else "view",
    }


@router.get("/items", response_model=Facts)
def items(asked: Annotated[Search, Query()], held: Held, caller: Calling) -> dict[str, Any]:  # noqa: ARG001
    """List items whose ids or texts hold a text."""
    catalogue = held.served.catalogue
    wanted = asked.q.lower()
    places = [
        place
        for place, name in enumerate(catalogue.names)
        if wanted in name.lower() or wanted in catalogue.texts.get(name, "").lower()
    ]
    page = places[asked.offset : asked.offset + asked.limit]
    return {"total": len(places), "items": [catalogue.facts(place) for place in page]}


@router.get("/item", response_model=Facts)
def item(asked: Annotated[AskedItem, Query()], held: Held, caller: Calling) -> dict[str, Any]:
    """Say how an item is seen by all, and by each school."""
    question = RankingQueries(held, caller).question(asked.attribute)
    place = question.catalogue.position(asked.item)
    facts = question.catalogue.facts(place)
    try:
        found = question.explanation.item(question.catalogue.ids.tolist()[place])
    except KeyError:
        # Of very many items, schools are found by a sample.
        return facts | {"schools": []}
    if caller.role < Role.READ:
        for who in ("liked_by", "disliked_by"):
            found.pop(who)
    names = [str(name) for name in question.chosen.feature_names_]
    row = dict(zip(names, map(float, question.catalogue.features[place]), strict=True))
    return found | facts | {"features": row}


@router.get("/picture", responses={200: {"content": {"image/*": {}}}}, response_class=Response)
def picture(asked: Annotated[AskedItem, Query()], held: Held) -> Response:
    """Return the picture of an item, if it has one in the folder of pictures.

    Pictures are no secret: an image on a page shows no key.
    """
    catalogue = held.served.catalogue
    catalogue.position(asked.item)
    file = catalogue.picture_of(asked.item)
    found = None if file is None else read_picture(file)
    if found is None:
        raise ProblemError(404, f"There is no picture of {asked.item!r}.")
    content, kind = found
    return Response(content, media_type=kind, headers={"cache-control": "private, max-age=3600"})


@router.get("/schools", response_model=Facts)
def schools(asked: Annotated[Asked, Query()], held: Held, caller: Calling) -> dict[str, Any]:
    """Say which schools of thought there are, what all agree on, and what divides them."""
    question = RankingQueries(held, caller).question(asked.attribute)
    found = question.explanation.crowd()
    for one in found["schools"]:
        one["typical"] = [_with_facts(judged, question) for judged in one["typical"]]
    if caller.role < Role.READ:
        found["loners"] = len(found["loners"])
    return found | {"attribute": question.attribute or None}


@router.get("/school", response_model=Facts)
def school(asked: Annotated[AskedSchool, Query()], held: Held, caller: Calling) -> dict[str, Any]:
    """Say what one school stands for, and, to those who may know, who is in it."""
    question = RankingQueries(held, caller).question(asked.attribute)
    known = [str(one.number) for one in question.explanation.schools]
    if str(asked.number) not in known:
        raise UnknownNameError("school", str(asked.number), known)
    found = question.explanation.school(asked.number)
    gone = held.forgotten
    if caller.role < Role.READ:
        found.pop("members")
    else:
        known = [str(one) for one in found["members"]]
        found["members"] = [name for name in known if held.served.knows(name, gone)]
    return found


@router.get("/agreed", response_model=Facts)
def agreed(asked: Annotated[Paged, Query()], held: Held, caller: Calling) -> dict[str, Any]:
    """List the items that every school likes, the most liked first."""
    return _about_items("agreed", asked, held, caller)


@router.get("/divisive", response_model=Facts)
def divisive(asked: Annotated[Paged, Query()], held: Held, caller: Calling) -> dict[str, Any]:
    """List the items that divide people most."""
    return _about_items("divisive", asked, held, caller)


@router.get("/map", response_model=Facts)
def people_map(asked: Annotated[Asked, Query()], held: Held, caller: Calling) -> dict[str, Any]:
    """Return where people stand, without saying who they are.

    Along one axis, the second coordinate counts the people at the same place.
    """
    question = RankingQueries(held, caller).question(asked.attribute)
    found = question.explanation.schools
    step = max(1, -(-len(found.user_ids) // _ON_MAP))
    shown = np.arange(len(found.user_ids)) % step == 0
    n_axes = n_dimensions(found)
    axes = [{"low": axis.low, "high": axis.high} for axis in found.axes[:n_axes]]
    return {
        "points": np.round(map_places(found, shown)[shown], 4).tolist(),
        "schools": found.numbers[::step].tolist(),
        "names": [one.name for one in found.schools],
        "axes": axes,
    }


@router.get("/people", response_model=Facts)
def people(asked: Annotated[Search, Query()], held: Held, caller: Calling) -> dict[str, Any]:
    """List the people the model knows."""
    caller.may(Role.READ)
    wanted = asked.q.lower()
    total, shown = 0, []
    for name in held.served.names(held.forgotten):
        if wanted in name.lower():
            if asked.offset <= total < asked.offset + asked.limit:
                shown.append(name)
            total += 1
    return {"total": total, "people": shown}


def _with_facts(judged: dict[str, Any], question: AttributeScorer) -> dict[str, Any]:
    """Return what was found about an item with its id as text, its text, and its picture."""
    catalogue = question.catalogue
    return judged | catalogue.facts(catalogue.position(str(judged["item"])))


def _about_items(which: str, asked: Paged, held: AppState, caller: Caller) -> dict[str, Any]:
    question = RankingQueries(held, caller).question(asked.attribute)
    explained, catalogue = question.explanation, question.catalogue
    found = explained.schools
    items = explained.items
    assert items is not None
    soft = found.soft_labels
    apart = items.disagreement(explained.levels.coef, np.random.default_rng(0))
    if which == "agreed" and soft is None:
        raise ProblemError(
            404, "Nothing says who would say yes to which item: the model has kept no labels."
        )
    key = apart if which == "divisive" or soft is None else soft.at_least
    chosen = best(key, asked.offset + asked.limit)[asked.offset :]
    rows = []
    for place in chosen.tolist():
        facts: dict[str, Any] = catalogue.facts(catalogue.position(str(items.ids[place])))
        facts["spread"] = float(apart[place])
        rows.append(facts if soft is None else facts | soft.of_row(int(items.rows[place])))
    return {
        "which": which,
        "attribute": question.attribute or None,
        "total": len(items),
        "schools": [{"number": one.number, "name": one.name} for one in found.schools],
        "items": rows,
    }
