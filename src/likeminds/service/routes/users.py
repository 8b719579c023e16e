"""Users: creation, labels, the next items to ask about, and deletion."""

import secrets
from typing import Annotated, Any

from fastapi import APIRouter, Header, HTTPException, Query, Response

from likeminds.data.identifiers import lookup
from likeminds.service import schemas
from likeminds.service.database import Session
from likeminds.service.errors import documented
from likeminds.service.queries import Queries
from likeminds.service.scoring import UnableError
from likeminds.service.store import TOKEN_PREFIX, Label, Role, hashed, insert_user, write_labels

router = APIRouter(prefix="/v1", tags=["users"], responses=documented(404, 409))

IdempotencyKey = Annotated[
    schemas.WriteKey | None,
    Header(description="A repeated key returns the first answer instead of writing again"),
]


@router.post("/newcomers", status_code=201)
def create(
    request: schemas.NewUser,
    queries: Queries,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> schemas.Created:
    """Add a new user, and return a token for their data, which is shown once."""
    state, caller = queries.state, queries.caller
    if not (state.settings.visitors and caller.token is None and request.user is None):
        caller.require(Role.WRITE)
    user = request.user or f"n-{secrets.token_hex(8)}"
    exists = HTTPException(409, f"There is a user {user!r} already: choose another id.")
    if queries.knows(user):
        raise exists
    token = TOKEN_PREFIX + secrets.token_urlsafe(32)

    def write(session: Session) -> dict[str, Any]:
        if not insert_user(session, user, hashed(token)):
            raise exists
        # The token is stored as a hash only, so it is not part of a repeated answer.
        return {"user": user}

    what = ["new", request.user]
    body, is_replay = state.store.once(caller.name, idempotency_key, what, write, user=user)
    if is_replay:
        response.headers["Idempotent-Replay"] = "true"
        user = str(body["user"])
        if caller.role < Role.WRITE:
            raise HTTPException(409, f"A request with this key has already added {user!r}.")
        # A caller who repeats the request may lack the token, and gets a new one.
        state.store.set_token(user, hashed(token))
    return schemas.Created(user=user, token=token)


@router.post("/users/{user:path}/labels")
def add_labels(
    user: schemas.Name,
    request: schemas.NewLabels,
    queries: Queries,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> schemas.Stored:
    """Store labels of a user, new or known; null or "pass" deletes a label.

    After status 200, labels are on the disk. The last label of an item counts, so a request may be
    repeated. With an Idempotency-Key, a repetition returns the same answer.
    """
    state, current = queries.state, queries.current
    queries.refuse_large(len(request.labels))
    queries.caller.require_user(state, user, Role.WRITE)
    rows: list[tuple[str, str, float | None]] = []
    for one in request.labels:
        scorer = current.scorer(one.attribute)
        scorer.catalogue.position(one.item)
        position = queries.position(scorer, user)
        if position is not None:
            scorer.labels_of_known(position)
        try:
            label = None if one.label is None else scorer.scale.read(one.label)
        except ValueError as error:
            raise HTTPException(422, str(error)) from None
        rows.append((scorer.attribute, one.item, label))
    queries.labels(user)  # refuses unknown users

    def write(session: Session) -> dict[str, Any]:
        write_labels(session, user, rows)
        count = "SELECT COUNT(*) FROM labels WHERE user_id = ? AND label IS NOT NULL"
        [labels] = session.run(count, [user]).fetchone()
        return {"user": user, "stored": len(rows), "labels": labels}

    caller, what = queries.caller.name, ["labels", user, rows]
    body, is_replay = state.store.once(caller, idempotency_key, what, write, user=user)
    if is_replay:
        response.headers["Idempotent-Replay"] = "true"
    state.metrics.count("likeminds_labels_total")
    return schemas.Stored(**body)


@router.get("/users/{user:path}/labels")
def labels(user: schemas.Name, queries: Queries) -> schemas.StoredLabels:
    """Return the stored labels of a user."""
    queries.caller.require_user(queries.state, user, Role.WRITE)
    return schemas.StoredLabels(user=user, labels=_in_answers(queries, queries.labels(user)))


@router.get("/users/{user:path}/next")
def next_items(
    user: schemas.Name, query: Annotated[schemas.NextItemsQuery, Query()], queries: Queries
) -> schemas.NextItems:
    """Return the items whose labels are most informative about a user."""
    profile = queries.profile(queries.current.scorer(query.attribute), user)
    return queries.next_items(user, profile, query.limit)


@router.get("/users/{user:path}/ranking")
def ranking(
    user: schemas.Name, query: Annotated[schemas.RankingQuery, Query()], queries: Queries
) -> schemas.RankingResponse:
    """Return a user's ranking, with intervals."""
    return queries.rank(schemas.RankRequest(user=user, **query.model_dump()))


@router.get("/users/{user:path}/profile")
def profile(
    user: schemas.Name, query: Annotated[schemas.AttributeQuery, Query()], queries: Queries
) -> schemas.Profile:
    """Return a user's school, position on the map, and shares of the levels."""
    return queries.describe(user, queries.profile(queries.current.scorer(query.attribute), user))


@router.get("/users/{user:path}/view")
def view(
    user: schemas.Name, query: Annotated[schemas.ViewQuery, Query()], queries: Queries
) -> schemas.View:
    """Return ranking, profile and the next items to ask about, from the same labels and model."""
    profile = queries.profile(queries.current.scorer(query.attribute), user)
    request = schemas.RankRequest(user=user, **query.model_dump(exclude={"ask"}))
    return schemas.View(
        profile=queries.describe(user, profile),
        ranking=queries.rank(request, profile),
        ask=queries.next_items(user, profile, query.ask),
    )


@router.get("/users/{user:path}/facts", response_model=schemas.Facts)
def facts(
    user: schemas.Name, query: Annotated[schemas.AttributeQuery, Query()], queries: Queries
) -> dict[str, Any]:
    """Return how a user's weights differ from the consensus, and their best items."""
    queries.caller.require(Role.READ)
    scorer = queries.current.scorer(query.attribute)
    if queries.position(scorer, user) is None:
        raise queries.unknown(user)
    user_id, explained = queries.current.users[user], scorer.explanation
    if lookup([user_id], explained.levels.users, "users")[0] < 0:
        raise UnableError(
            f"Facts are available for a sample of {len(explained.levels.users):,} users, without "
            "this one. Request a ranking, or the explanation of a score."
        )
    return explained.user(user_id)


@router.get("/users/{user:path}/data")
def export(user: schemas.Name, queries: Queries) -> schemas.StoredData:
    """Return all stored data of a user."""
    queries.caller.require_user(queries.state, user, Role.ADMIN)
    stored, rows = queries.state.store.user(user), queries.state.store.labels_of(user)
    in_model = queries.knows(user)
    if stored is None and not rows and not in_model:
        raise queries.unknown(user)
    return schemas.StoredData(
        user=user,
        created=None if stored is None else stored.created,
        labels=_in_answers(queries, rows),
        in_model=in_model,
    )


@router.delete("/users/{user:path}/data")
def forget(user: schemas.Name, queries: Queries) -> schemas.Deleted:
    """Delete all stored data of a user; the next refit also removes them from the model."""
    state = queries.state
    in_model = export(user, queries).in_model
    gone = state.store.forget(user, hashed(user))
    state.forgotten |= {hashed(user)}
    model = "not trained on labels of this user"
    if in_model and queries.current.card.get("takes_updates"):
        model = "no longer answers about this user; the next refit removes them"
    elif in_model:
        model = "no longer answers about this user; fit it without their labels to remove them"
    return schemas.Deleted(user=user, labels=gone, model=model)


def _in_answers(queries: Queries, rows: list[Label]) -> list[schemas.StoredLabel]:
    """Return labels as answers on the model's scale, if it still has their attribute."""
    current, found = queries.current, []
    for row in rows:
        if row.label is None:
            continue
        scorer = current.scorers.get(row.attribute)
        is_answer = scorer is not None and scorer.scale.holds(row.label)
        found.append(
            schemas.StoredLabel(
                item=row.item,
                attribute=row.attribute or None,
                text=current.catalogue.texts.get(row.item),
                label=scorer.scale.value_of(row.label) if scorer and is_answer else row.label,
                at=row.at,
            )
        )
    return found
