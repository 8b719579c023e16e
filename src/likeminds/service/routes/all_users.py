"""Facts about all users and items, for any admitted caller."""

from bisect import bisect
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, HTTPException, Query, Response

from likeminds._util.text_format import Verb
from likeminds.rankers.ranking import best_of
from likeminds.schools.user_map import map_places, n_dimensions
from likeminds.service import schemas
from likeminds.service.catalogue import UnknownNameError, read_picture
from likeminds.service.errors import documented
from likeminds.service.queries import Queries, State, features_of
from likeminds.service.scoring import AttributeScorer
from likeminds.service.store import Role

router = APIRouter(prefix="/v1", tags=["population"], responses=documented(404))

# The largest number of users on the map: more dots would overlap.
_ON_MAP = 2_000


@router.get("/model", response_model=schemas.Facts)
def model(queries: Queries) -> dict[str, Any]:
    """Return the numbers of users and items, the attributes and the features."""
    state, current = queries.state, queries.current
    names = [str(name) for name in current.model.feature_names_]
    return {
        "title": state.settings.title,
        "generation": current.generation,
        "ranker": current.card["ranker"],
        "users": len(current.model.users_),
        "items": len(current.catalogue),
        "attributes": current.attributes,
        "wording": {name: _wording(one) for name, one in current.scorers.items()},
        "features": names,
        "binary_features": [
            name for name, yes in zip(names, current.catalogue.binary, strict=True) if yes
        ],
        "takes_updates": bool(current.card.get("takes_updates")),
        "access": "open" if state.is_open else "visitors" if state.settings.visitors else "keys",
    }


def _wording(scorer: AttributeScorer) -> dict[str, Any]:
    """Return the question about items, the answers, and words for both."""
    verb, scale = scorer.chosen.verb, scorer.scale
    votes = verb.words == "agree with it"
    # Visitors see single items, not choice sets.
    chooses = verb == Verb.of("choose")
    asks = verb.conditional if chooses else verb
    cut = None if scale.reading is None else scale.reading.threshold
    yes = asks.many("it") if chooses else scale.words[-1]
    if scale.is_graded and isinstance(cut, float):
        yes = f"above {scale.words[bisect(scale.levels, cut) - 1]}"
    return {
        "question": asks.question("this statement" if votes else "this"),
        "many": verb.many(),
        "most": verb.most(many=True),
        "would_most": verb.conditional.most(),
        "answers": [
            {"label": scale.value_of(level), "text": word}
            for level, word in zip(scale.levels, scale.words, strict=True)
        ],
        "graded": scale.is_graded,
        "yes": yes,
        "skip": "Pass" if votes and not scale.is_graded else "Skip",
        "noun": "statement" if votes else "item",
        "taste": "taste" if verb.wishes else "view",
    }


@router.get("/items", response_model=schemas.Facts)
def items(query: Annotated[schemas.SearchQuery, Query()], queries: Queries) -> dict[str, Any]:
    """List items whose ids or texts contain a text."""
    catalogue, wanted = queries.current.catalogue, query.q.lower()
    places = [
        place
        for place, name in enumerate(catalogue.names)
        if wanted in name.lower() or wanted in catalogue.texts.get(name, "").lower()
    ]
    page = places[query.offset : query.offset + query.limit]
    return {"total": len(places), "items": [catalogue.facts(place) for place in page]}


@router.get("/item", response_model=schemas.Facts)
def item(query: Annotated[schemas.ItemQuery, Query()], queries: Queries) -> dict[str, Any]:
    """Return the score of an item for all users, and for each school."""
    scorer = queries.current.scorer(query.attribute)
    place = scorer.catalogue.position(query.item)
    facts = scorer.catalogue.facts(place)
    try:
        found = scorer.explanation.item(scorer.catalogue.ids.tolist()[place])
    except KeyError:
        # With very many items, schools are found from a sample of them.
        return facts | {"schools": []}
    if queries.caller.role < Role.READ:
        for group in ("liked_by", "disliked_by"):
            found.pop(group)
    return found | facts | {"features": features_of(scorer, place)}


@router.get("/picture", responses={200: {"content": {"image/*": {}}}}, response_class=Response)
def picture(query: Annotated[schemas.ItemQuery, Query()], state: State) -> Response:
    """Return the picture of an item from the folder of pictures.

    It needs no key, since images on a page cannot send one.
    """
    catalogue = state.current.catalogue
    catalogue.position(query.item)
    file = catalogue.picture_of(query.item)
    found = None if file is None else read_picture(file)
    if found is None:
        raise HTTPException(404, f"There is no picture of {query.item!r}.")
    content, kind = found
    return Response(content, media_type=kind, headers={"cache-control": "private, max-age=3600"})


@router.get("/schools", response_model=schemas.Facts)
def schools(query: Annotated[schemas.AttributeQuery, Query()], queries: Queries) -> dict[str, Any]:
    """Return the schools (groups of users who rank alike), and agreed and divisive items."""
    scorer = queries.current.scorer(query.attribute)
    catalogue, found = scorer.catalogue, scorer.explanation.population()
    for one in found["schools"]:
        one["typical"] = [
            judged | catalogue.facts(catalogue.position(str(judged["item"])))
            for judged in one["typical"]
        ]
    if queries.caller.role < Role.READ:
        found["outliers"] = len(found["outliers"])
        for end in ("strictest", "mildest"):
            (found["severity"] or {}).pop(end, None)
    return found | {"attribute": scorer.attribute or None}


@router.get("/school", response_model=schemas.Facts)
def school(query: Annotated[schemas.SchoolQuery, Query()], queries: Queries) -> dict[str, Any]:
    """Return the weights and typical items of a school; callers with a key also get its members."""
    explained = queries.current.scorer(query.attribute).explanation
    numbers = [str(one.number) for one in explained.schools]
    if str(query.number) not in numbers:
        raise UnknownNameError("school", str(query.number), numbers)
    found = explained.school(query.number)
    members = [str(one) for one in found.pop("members")]
    if queries.caller.role >= Role.READ:
        found["members"] = [name for name in members if queries.knows(name)]
    return found


@router.get("/agreed", response_model=schemas.Facts)
def agreed(query: Annotated[schemas.PageQuery, Query()], queries: Queries) -> dict[str, Any]:
    """List the items that every school likes, the most liked first."""
    return _about_items("agreed", query, queries)


@router.get("/divisive", response_model=schemas.Facts)
def divisive(query: Annotated[schemas.PageQuery, Query()], queries: Queries) -> dict[str, Any]:
    """List the most divisive items; none if users rank alike."""
    return _about_items("divisive", query, queries)


@router.get("/map", response_model=schemas.Facts)
def user_map(query: Annotated[schemas.AttributeQuery, Query()], queries: Queries) -> dict[str, Any]:
    """Return the positions of users on the map, without their ids.

    If the map has one axis, the second coordinate stacks the users at the same place.
    """
    found = queries.current.scorer(query.attribute).explanation.schools
    step = max(1, -(-len(found.user_ids) // _ON_MAP))
    shown = np.arange(len(found.user_ids)) % step == 0
    axes = [{"low": axis.low, "high": axis.high} for axis in found.axes[: n_dimensions(found)]]
    return {
        "thresholds_differ": found.severity is not None and found.severity.differs,
        "points": np.round(map_places(found, shown)[shown], 4).tolist(),
        "schools": found.numbers[::step].tolist(),
        "names": [one.name for one in found],
        "axes": axes,
    }


@router.get("/users", response_model=schemas.Facts)
def users(query: Annotated[schemas.SearchQuery, Query()], queries: Queries) -> dict[str, Any]:
    """List the users of the model."""
    queries.caller.require(Role.READ)
    wanted = query.q.lower()
    total, shown = 0, []
    for name in queries.names():
        if wanted in name.lower():
            if query.offset <= total < query.offset + query.limit:
                shown.append(name)
            total += 1
    return {"total": total, "users": shown}


def _about_items(which: str, query: schemas.PageQuery, queries: Queries) -> dict[str, Any]:
    scorer = queries.current.scorer(query.attribute)
    explained, catalogue = scorer.explanation, scorer.catalogue
    found, items = explained.schools, explained.items
    assert items is not None
    soft = found.soft_labels
    if which == "agreed" and soft is None:
        raise HTTPException(404, "The model was saved without labels: save it with_data=True.")
    spread = explained.disagreement
    key = spread if which == "divisive" or soft is None else soft.at_least
    total = len(items) if which == "agreed" or found.axes else 0
    rows = []
    for place in best_of(key, query.offset + query.limit)[query.offset : total].tolist():
        facts = catalogue.facts(catalogue.position(str(items.ids[place])))
        facts["spread"] = float(spread[place])
        rows.append(facts if soft is None else facts | soft.of_row(int(items.rows[place])))
    return {
        "which": which,
        "attribute": scorer.attribute or None,
        "total": total,
        "schools": [{"number": one.number, "name": one.name} for one in found],
        "items": rows,
    }
