"""People: who is new, what they say, what to ask them, and how they are forgotten."""

import hashlib
import json
import secrets
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Response
from pydantic import Field

from likeminds.data.identifiers import lookup
from likeminds.service.access import Caller, Calling, Held, refuse_others
from likeminds.service.app_state import AppState
from likeminds.service.catalogue import UnknownNameError
from likeminds.service.errors import ProblemError, documented
from likeminds.service.keys import Role, hashed, new_token
from likeminds.service.queries import RankingQueries
from likeminds.service.routes.recommendations import refuse_large
from likeminds.service.schemas import (
    Asked,
    AskNext,
    Count,
    Created,
    Deleted,
    Facts,
    Intervals,
    Name,
    NewLabels,
    NewPerson,
    Paged,
    RankingResponse,
    RankRequest,
    SaidLabels,
    Standing,
    Stored,
    StoredData,
    View,
    WriteKey,
)
from likeminds.service.scoring import AttributeScorer, UnableError
from likeminds.service.store import Answer, Label
from likeminds.service.store.connections import Session
from likeminds.service.store.label_store import insert_user, write_labels

router = APIRouter(prefix="/v1", tags=["people"], responses=documented(404, 409))

IdempotencyKey = Annotated[
    WriteKey | None,
    Header(description="The same key again repeats the answer instead of the write"),
]


class AskedRanking(Paged):
    """A page of somebody's ranking."""

    intervals: Intervals = "scores"
    exclude_labelled: bool = False


class AskedNext(Asked):
    """How many items to ask about."""

    limit: Count = 1


class AskedView(AskedRanking):
    """What a page shows."""

    ask: Count = Field(1, description="How many items to ask about")


@router.post("/newcomers", status_code=201, response_model=Created)
def create(
    asked: NewPerson,
    held: Held,
    caller: Calling,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> dict[str, Any]:
    """Add somebody new, and return the token that opens their labels, which is shown once."""
    if not (held.settings.visitors and caller.token is None and asked.user is None):
        caller.may(Role.WRITE)
    user = asked.user or f"n-{secrets.token_hex(8)}"
    if held.served.knows(user, held.forgotten):
        raise ProblemError(409, f"There is a user {user!r} already.")
    token = new_token()

    def write(session: Session) -> Answer:
        if not insert_user(session, user, hashed(token)):
            raise ProblemError(409, f"There is a user {user!r} already.")
        # The token is kept as a hash only, and so it is no part of what is repeated.
        return Answer(201, json.dumps({"user": user}))

    answer, repeated = _once(held, caller, idempotency_key, ["new", asked.user], write, user=user)
    if repeated:
        user = str(json.loads(answer.body)["user"])
        if caller.role < Role.WRITE:
            raise ProblemError(409, f"This was done before: {user!r} is there.")
        # Whoever asks again has not seen the token: they get another one instead.
        held.store.set_token(user, hashed(token))
        response.headers["Idempotent-Replay"] = "true"
    return {"user": user, "token": token}


@router.post("/people/{user:path}/labels", response_model=Stored)
def add_labels(
    user: Name,
    asked: NewLabels,
    held: Held,
    caller: Calling,
    *,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> dict[str, Any]:
    """Store labels of somebody, new or known; null takes a label back.

    What is answered with 200 is on the disk. The last word about an item counts, so that a
    request may be repeated; with an Idempotency-Key it is also answered as it was.
    """
    refuse_large(held.settings, len(asked.labels))
    refuse_others(caller, held, user, Role.WRITE)
    answering = RankingQueries(held, caller)
    rows = []
    for one in asked.labels:
        question = answering.question(one.attribute)
        question.catalogue.position(one.item)
        place = held.served.place_of(question, user, held.forgotten)
        if place is not None:
            question.labels_of_known(place)
        rows.append((question.attribute, one.item, _answer(question, one.label)))
    before = answering.labels(user)
    if before is None and not held.served.knows(user, held.forgotten):
        raise UnknownNameError("user", user, held.served.names(held.forgotten))

    def write(session: Session) -> Answer:
        write_labels(session, user, rows)
        there = session.run(
            "SELECT COUNT(*) FROM labels WHERE person = ? AND label IS NOT NULL", [user]
        )
        stored = {"user": user, "stored": len(rows), "labels": int(there[0][0])}
        return Answer(200, json.dumps(stored))

    asked_for = ["labels", user, rows]
    answer, repeated = _once(held, caller, idempotency_key, asked_for, write, user=user)
    if repeated:
        response.headers["Idempotent-Replay"] = "true"
    held.metrics.count("likeminds_labels_total")
    return dict(json.loads(answer.body))


@router.get("/people/{user:path}/labels", response_model=SaidLabels)
def labels(user: Name, held: Held, caller: Calling) -> dict[str, Any]:
    """Return what somebody told the service."""
    refuse_others(caller, held, user, Role.WRITE)
    found = RankingQueries(held, caller).labels(user)
    if found is None and not held.served.knows(user, held.forgotten):
        raise UnknownNameError("user", user, held.served.names(held.forgotten))
    return {"user": user, "labels": _plain(held, found or [])}


@router.get("/people/{user:path}/next", response_model=AskNext)
def next_items(
    user: Name, asked: Annotated[AskedNext, Query()], held: Held, caller: Calling
) -> dict[str, Any]:
    """Return the items whose labels would tell most about somebody."""
    answering = RankingQueries(held, caller)
    question = answering.question(asked.attribute)
    return answering.ask(question, user, answering.opinion(question, user), asked.limit)


@router.get("/people/{user:path}/ranking", response_model=RankingResponse)
def ranking(
    user: Name, asked: Annotated[AskedRanking, Query()], held: Held, caller: Calling
) -> dict[str, Any]:
    """Return somebody's ranking, with intervals."""
    return RankingQueries(held, caller).rank(_request(user, asked))


@router.get("/people/{user:path}/standing", response_model=Standing)
def standing(
    user: Name, asked: Annotated[Asked, Query()], held: Held, caller: Calling
) -> dict[str, Any]:
    """Say where somebody stands: their school, their place on the map, their levels."""
    answering = RankingQueries(held, caller)
    question = answering.question(asked.attribute)
    opinion = answering.opinion(question, user)
    return answering.standing(question, user, opinion, len(opinion.labelled))


@router.get("/people/{user:path}/view", response_model=View)
def view(
    user: Name, asked: Annotated[AskedView, Query()], held: Held, caller: Calling
) -> dict[str, Any]:
    """Return ranking, standing and what to ask next, all by the same labels and model."""
    answering = RankingQueries(held, caller)
    question = answering.question(asked.attribute)
    opinion = answering.opinion(question, user)
    return {
        "standing": answering.standing(question, user, opinion, len(opinion.labelled)),
        "ranking": answering.rank(_request(user, asked), opinion),
        "ask": answering.ask(question, user, opinion, asked.ask),
    }


@router.get("/people/{user:path}/facts", response_model=Facts)
def facts(
    user: Name, asked: Annotated[Asked, Query()], held: Held, caller: Calling
) -> dict[str, Any]:
    """Say what somebody the model knows wants differently, and what they like best."""
    caller.may(Role.READ)
    answering = RankingQueries(held, caller)
    question = answering.question(asked.attribute)
    if held.served.place_of(question, user, held.forgotten) is None:
        raise UnknownNameError("user", user, held.served.names(held.forgotten))
    who, explained = held.served.people[user], question.explanation
    if lookup([who], explained.levels.users, "users")[0] < 0:
        raise UnableError(
            f"Facts are told of {len(explained.levels.users):,} people of this model, drawn by "
            "their ids, and this user is not among them. Rankings and reasons are there."
        )
    return explained.user(who)


@router.get("/people/{user:path}/data", response_model=StoredData)
def export(user: Name, held: Held, caller: Calling) -> dict[str, Any]:
    """Return all that is stored about somebody."""
    refuse_others(caller, held, user, Role.ADMIN)
    found, said = held.store.person(user), held.store.labels_of(user)
    in_model = held.served.knows(user, held.forgotten)
    if found is None and not said and not in_model:
        raise UnknownNameError("user", user, held.served.names(held.forgotten))
    return {
        "user": user,
        "created": None if found is None else found.created,
        "labels": _plain(held, said),
        "in_model": in_model,
    }


@router.delete("/people/{user:path}/data", response_model=Deleted)
def forget(user: Name, held: Held, caller: Calling) -> dict[str, Any]:
    """Delete all that is stored about somebody; the next refreshed model forgets them, too."""
    refuse_others(caller, held, user, Role.ADMIN)
    in_model = held.served.knows(user, held.forgotten)
    if held.store.person(user) is None and not held.store.labels_of(user) and not in_model:
        raise UnknownNameError("user", user, held.served.names(held.forgotten))
    gone = held.store.forget(user, hashed(user))
    held.forgotten |= {hashed(user)}
    told = "it has learned nothing from them"
    if in_model and held.served.card.get("takes_updates"):
        told = "it says nothing about them from now on, and forgets them when it is refreshed"
    elif in_model:
        told = "it says nothing about them from now on; fit it anew without them to remove them"
    return {"user": user, "labels": gone, "model": told}


def _request(user: str, asked: AskedRanking) -> RankRequest:
    return RankRequest(
        user=user,
        attribute=asked.attribute,
        limit=asked.limit,
        offset=asked.offset,
        intervals=asked.intervals,
        exclude_labelled=asked.exclude_labelled,
    )


def _answer(question: AttributeScorer, label: float | str | bool | None) -> float | None:
    """Return the number of an answer; refuse one that is not on the model's scale."""
    try:
        return None if label is None else question.scale.read(label)
    except ValueError as error:
        raise ProblemError(422, str(error)) from None


def _plain(held: AppState, said: list[Label]) -> list[dict[str, Any]]:
    """Return labels in the terms of the model, where it still has their attribute."""
    served, rows = held.served, []
    for one in said:
        if one.label is None:
            continue
        question = served.questions.get(one.attribute)
        label: Any = one.label
        if question is not None and question.scale.holds(one.label):
            label = question.scale.value_of(one.label)
        text = served.catalogue.texts.get(one.item)
        about = {"item": one.item, "text": text, "attribute": one.attribute or None}
        rows.append(about | {"label": label, "at": one.at})
    return rows


def _once(
    held: AppState,
    caller: Caller,
    key: str | None,
    asked: object,
    write: Callable[[Session], Answer],
    *,
    user: str,
) -> tuple[Answer, bool]:
    """Write, once only where the caller has given a key."""
    if key is None:
        with held.store.database.transaction(writing=True) as session:
            return write(session), False
    digest = hashlib.sha256(json.dumps(asked).encode()).hexdigest()
    return held.store.once(caller.name, key, digest, write, person=user)
