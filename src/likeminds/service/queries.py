"""Authenticated callers, and their queries of one model generation and of stored labels."""

import hmac
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
from fastapi import Depends, HTTPException, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from likeminds._util.array_types import Bool, Float, Index
from likeminds.rankers.ranking import best_of
from likeminds.rankers.score_decomposition import LEVELS, interval
from likeminds.rankers.validation import positions_by_user
from likeminds.service import schemas
from likeminds.service.app_state import AppState
from likeminds.service.catalogue import UnknownNameError
from likeminds.service.database import StoreDownError
from likeminds.service.model_generation import ModelGeneration
from likeminds.service.scoring import RANKED_AMONG, AttributeScorer, UserProfile
from likeminds.service.store import KEY_PREFIX, TOKEN_PREFIX, Label, Role, hashed

_BEARER = HTTPBearer(
    auto_error=False,
    description="An API key (lmk_...), or a user's token (lmp_...). Without API keys, the "
    "service accepts local requests only, with full access.",
)


@dataclass(frozen=True)
class Caller:
    """The caller: a role, a name for idempotency keys, and a user's token, if any."""

    role: Role
    name: str
    token: str | None = None

    def require(self, role: Role) -> None:
        """Raise 403 if the caller's role is lower."""
        if self.role < role:
            raise HTTPException(
                403, f"This request needs a key with the role {role.name.lower()}, or a higher one."
            )

    def require_user(self, state: AppState, user: str, role: Role) -> None:
        """Raise 403 if the caller neither has the role nor is the user.

        A user's token gives access to this user only, and does not reveal whether others exist.
        """
        if self.token is None:
            self.require(role)
            return
        found = state.store.user(user)
        stored = "" if found is None else found.token_hash
        if not hmac.compare_digest(stored, hashed(self.token)):
            raise HTTPException(403, "This token belongs to another user, or to a deleted one.")


def state_of(request: Request) -> AppState:
    """Return the state of the worker."""
    found: AppState = request.app.state.service
    return found


State = Annotated[AppState, Depends(state_of)]


def caller_of(
    state: State, shown: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)]
) -> Caller:
    """Identify the caller by their key or token; an invalid one raises 401."""
    secret = "" if shown is None else shown.credentials
    if secret.startswith(TOKEN_PREFIX):
        any_token = state.is_open or state.settings.visitors
        if not any_token and not (state.keys and state.store.has_token(hashed(secret))):
            raise HTTPException(401, "This token is not valid, or its user was deleted.")
        return Caller(Role.USER, f"user {hashed(secret)[:16]}", secret)
    if secret.startswith(KEY_PREFIX):
        found = state.keys.get(hashed(secret))
        if found is None:
            raise HTTPException(401, "This key is not valid, or was revoked.")
        return Caller(found[0], f"key {found[1]}")
    if shown is not None:
        raise HTTPException(401, "This is neither a key (lmk_...) nor a token (lmp_...).")
    if state.is_open:
        return Caller(Role.ADMIN, "open")
    if state.settings.visitors:
        return Caller(Role.USER, "visitor")
    raise HTTPException(401, "Send a key: Authorization: Bearer lmk_...")


Calling = Annotated[Caller, Depends(caller_of)]


@dataclass
class RankingQueries:
    """The queries of one request, all to the same model generation."""

    state: State
    caller: Calling
    current: ModelGeneration = field(init=False)

    def __post_init__(self) -> None:
        self.current = self.state.current

    def refuse_large(self, size: int) -> None:
        """Raise 413 for a batch above the limit of the service."""
        most = self.state.settings.most_batch
        if size > most:
            raise HTTPException(
                413, f"A batch may have at most {most:,} entries, but has {size:,}: split it."
            )

    def knows(self, user: str) -> bool:
        """Return whether the model has a user who was not deleted."""
        return user in self.current.users and not self._is_deleted(user)

    def names(self) -> Iterator[str]:
        """Iterate over the model's users who were not deleted."""
        return (name for name in self.current.users if not self._is_deleted(name))

    def _is_deleted(self, user: str) -> bool:
        return bool(self.state.forgotten) and hashed(user) in self.state.forgotten

    def position(self, scorer: AttributeScorer, user: str) -> int | None:
        """Return the position of a user in a ranker."""
        if not self.knows(user):
            return None
        return positions_by_user(scorer.chosen).get(self.current.users[user])

    def unknown(self, user: str) -> UnknownNameError:
        """Return the error about an unknown user."""
        return UnknownNameError("user", user, self.names())

    def labels(self, user: str) -> list[Label]:
        """Return a user's stored labels; an unknown user raises `UnknownNameError`.

        If the database is down, return none for the model's users: their training labels count.
        """
        store = self.state.store
        try:
            stored = store.labels_of(user)
            is_known = bool(stored) or self.knows(user) or store.user(user) is not None
        except StoreDownError:
            if not self.knows(user):
                raise
            return []
        if not is_known:
            raise self.unknown(user)
        return stored

    def profile(self, scorer: AttributeScorer, user: str | None) -> UserProfile:
        """Return the profile of a user, or of the average user; without access, raise 403."""
        if user is None:
            return scorer.consensus()
        self.caller.require_user(self.state, user, Role.READ)
        labels = {
            one.item: one.label
            for one in self.labels(user)
            if one.attribute == scorer.attribute
            # A later model may have other items, or another scale.
            and one.item in scorer.catalogue.positions
            and (one.label is None or scorer.scale.holds(one.label))
        }
        position = self.position(scorer, user)
        if position is None:
            return scorer.new_user(labels)
        return scorer.known_with(position, labels) if labels else scorer.known(position)

    def rank(
        self, request: schemas.RankRequest, profile: UserProfile | None = None
    ) -> schemas.RankingResponse:
        """Return the best items for a user; ``profile`` is used if given."""
        scorer = self.current.scorer(request.attribute)
        if profile is None:
            profile = self.profile(scorer, request.user)
        allowed = _allowed(request, profile)
        scores = scorer.scores(profile)
        order = scores if request.user is not None else scorer.lower_bounds(scores)
        total = int(allowed.sum())
        order = np.where(allowed, order, -np.inf)
        shown = best_of(order, request.offset + request.limit)[request.offset : total]
        with_errors = request.intervals != "none"
        rows = _scored(profile, shown, scores[shown], with_errors=with_errors)
        ranks: list[list[int] | None] = [None] * len(rows)
        if request.intervals == "ranks" and len(shown):
            if total > RANKED_AMONG:
                raise HTTPException(
                    422,
                    f"Intervals of ranks are computed for at most {RANKED_AMONG:,} items, but "
                    f"there are {total:,}: request intervals of scores, or fewer items.",
                )
            ranks = scorer.rank_intervals(profile, np.flatnonzero(allowed), shown) or ranks
        places = range(request.offset + 1, request.offset + len(rows) + 1)
        return schemas.RankingResponse(
            user=request.user,
            attribute=scorer.attribute or None,
            generation=self.current.generation,
            total=total,
            items=[
                schemas.RankedItem(rank=rank, ranks=ends, **row)
                for rank, ends, row in zip(places, ranks, rows, strict=True)
            ],
        )

    def score(self, request: schemas.ScoreRequest) -> schemas.Scores:
        """Return the scores of some items for a user."""
        scorer = self.current.scorer(request.attribute)
        places = np.array([scorer.catalogue.position(name) for name in request.items])
        profile = self.profile(scorer, request.user)
        rows = _scored(profile, places, scorer.scores(profile, places))
        return schemas.Scores(
            user=request.user,
            attribute=scorer.attribute or None,
            generation=self.current.generation,
            scores=[schemas.ScoredItem(**row) for row in rows],
        )

    def describe(self, user: str | None, profile: UserProfile) -> schemas.Profile:
        """Return the position of a user among the others."""
        scorer = profile.scorer
        places = scorer.place(profile)
        schools = scorer.explanation.schools
        number = int(places.membership[0].argmax()) + 1 if schools else None
        coordinates = places.coordinates[0, :2].tolist()
        return schemas.Profile(
            user=user,
            attribute=scorer.attribute or None,
            coordinates=coordinates + [0.0] * (2 - len(coordinates)),
            school=number,
            school_name=None if number is None else schools[number].name,
            membership=places.membership[0].tolist(),
            level_shares=schemas.LevelShares(
                **dict(zip(LEVELS, places.level_shares[0].tolist(), strict=True))
            ),
            labels=len(profile.labelled),
        )

    def next_items(self, user: str, profile: UserProfile, n: int) -> schemas.NextItems:
        """Return the items whose labels are most informative about a user."""
        scorer = profile.scorer
        places = scorer.next_items(profile, n).tolist()
        items = [scorer.catalogue.facts(i) | {"features": features_of(scorer, i)} for i in places]
        return schemas.NextItems(user=user, attribute=scorer.attribute or None, items=items)


Queries = Annotated[RankingQueries, Depends()]


def features_of(scorer: AttributeScorer, place: int) -> dict[str, float]:
    """Return the features of an item by their names."""
    values = map(float, scorer.catalogue.features[place])
    return dict(zip(scorer.feature_names, values, strict=True))


def _scored(
    profile: UserProfile, places: Index, scores: Float, *, with_errors: bool = True
) -> list[dict[str, Any]]:
    """Return items with their scores, expected labels and intervals."""
    scorer = profile.scorer
    expected = scorer.expected(profile, places)
    errors = scorer.errors(profile, places) if with_errors and len(places) else None
    rows = []
    for row, place in enumerate(places.tolist()):
        score, error = float(scores[row]), None if errors is None else float(errors[row])
        rows.append(
            {"score": score, "error": error, "interval": interval(score, error)}
            | {"expected": None if expected is None else float(expected[row])}
            | scorer.catalogue.facts(place)
        )
    return rows


def _allowed(request: schemas.RankRequest, profile: UserProfile) -> Bool:
    """Return a mask of the items to rank."""
    catalogue = profile.scorer.catalogue
    allowed = np.full(len(catalogue), request.only is None)
    allowed[[catalogue.position(name) for name in request.only or ()]] = True
    allowed[[catalogue.position(name) for name in request.exclude]] = False
    if request.exclude_labelled:
        positions = catalogue.positions
        allowed[[positions[name] for name in profile.labelled if name in positions]] = False
    names = profile.scorer.feature_names
    for one in request.features:
        if one.feature not in names:
            raise UnknownNameError("feature", one.feature, names)
        column = catalogue.features[:, names.index(one.feature)]
        if one.least is not None:
            allowed &= column >= one.least
        if one.most is not None:
            allowed &= column <= one.most
    return allowed
