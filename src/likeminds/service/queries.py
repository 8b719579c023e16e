"""Answers about rankings, from one generation of the model and the stored labels."""

from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
from fastapi import Depends

from likeminds._util.array_types import Bool, Float, Index
from likeminds.rankers.ranking import best_of
from likeminds.rankers.score_decomposition import LEVELS, interval
from likeminds.service.access import Calling, State
from likeminds.service.catalogue import UnknownNameError
from likeminds.service.database import StoreDownError
from likeminds.service.errors import ProblemError
from likeminds.service.model_generation import ModelGeneration
from likeminds.service.schemas import (
    Explained,
    ExplainRequest,
    LevelShares,
    NextItems,
    Profile,
    RankedItem,
    RankingResponse,
    RankRequest,
    ScoredItem,
    ScoreRequest,
    Scores,
)
from likeminds.service.scoring import RANKED_AMONG, AttributeScorer, UserProfile
from likeminds.service.store import Label, Role


@dataclass
class RankingQueries:
    """One request's view of the service: the model does not change during it."""

    state: State
    caller: Calling
    current: ModelGeneration = field(init=False)

    def __post_init__(self) -> None:
        self.current = self.state.current

    def refuse_large(self, size: int) -> None:
        """Refuse a batch that is larger than the service takes."""
        most = self.state.settings.most_batch
        if size > most:
            raise ProblemError(
                413, f"A batch may have {most:,} entries at most, and this has {size:,}."
            )

    def unknown(self, user: str) -> UnknownNameError:
        """Return the error about an unknown user."""
        return UnknownNameError("user", user, self.current.names(self.state.forgotten))

    def labels(self, user: str) -> list[Label] | None:
        """Return a user's stored labels; None if they never came.

        Without the database, the model's users are ranked by what it learned of them.
        """
        try:
            return self.state.store.labels_if_known(user)
        except StoreDownError:
            if not self.state.knows(user):
                raise
        return None

    def profile(self, scorer: AttributeScorer, user: str | None) -> UserProfile:
        """Return the weights of a user, or of the average one, whom the caller may ask about."""
        if user is None:
            return scorer.consensus()
        self.caller.require_user(self.state, user, Role.READ)
        stored = self.labels(user)
        labels = None
        if stored is not None:
            labels = {one.item: one.label for one in stored if one.attribute == scorer.attribute}
        return self.current.profile(scorer, user, labels, self.state.forgotten)

    def rank(self, request: RankRequest, profile: UserProfile | None = None) -> RankingResponse:
        """Return the best items for a user, whose profile may be at hand."""
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
        ranks = None
        if request.intervals == "ranks" and len(shown):
            if total > RANKED_AMONG:
                raise ProblemError(
                    422,
                    f"Intervals of ranks are computed among {RANKED_AMONG:,} items at most, and "
                    f"these are {total:,}: ask for intervals of scores, or for fewer items.",
                )
            ranks = scorer.rank_intervals(profile, np.flatnonzero(allowed), shown)
        for row, facts in enumerate(rows):
            facts["rank"] = request.offset + row + 1
            facts["ranks"] = None if ranks is None else [int(ranks[0][row]), int(ranks[1][row])]
        return RankingResponse(
            user=request.user,
            attribute=scorer.attribute or None,
            generation=self.current.generation,
            total=total,
            items=[RankedItem(**row) for row in rows],
        )

    def score(self, request: ScoreRequest) -> Scores:
        """Return the scores of some items for a user."""
        scorer = self.current.scorer(request.attribute)
        places = np.array([scorer.catalogue.position(name) for name in request.items])
        profile = self.profile(scorer, request.user)
        rows = _scored(profile, places, scorer.scores(profile, places))
        return Scores(
            user=request.user,
            attribute=scorer.attribute or None,
            generation=self.current.generation,
            scores=[ScoredItem(**row) for row in rows],
        )

    def explain(self, request: ExplainRequest) -> Explained:
        """Decompose the score of an item for a user."""
        scorer = self.current.scorer(request.attribute)
        place = scorer.catalogue.position(request.item)
        profile = self.profile(scorer, request.user)
        expected = scorer.expected(profile, np.array([place]))
        return Explained(
            user=request.user,
            attribute=scorer.attribute or None,
            item=request.item,
            text=scorer.catalogue.texts.get(request.item),
            expected=None if expected is None else float(expected[0]),
            **scorer.explain(profile, place),
        )

    def describe(self, user: str | None, profile: UserProfile) -> Profile:
        """Return the position of a user among the others."""
        scorer = profile.scorer
        places = scorer.place(profile)
        schools = scorer.explanation.schools
        number = int(places.membership[0].argmax()) + 1 if schools else None
        coordinates = places.coordinates[0, :2].tolist()
        return Profile(
            user=user,
            attribute=scorer.attribute or None,
            coordinates=coordinates + [0.0] * (2 - len(coordinates)),
            school=number,
            school_name=None if number is None else schools[number].name,
            membership=places.membership[0].tolist(),
            level_shares=LevelShares(
                **dict(zip(LEVELS, places.level_shares[0].tolist(), strict=True))
            ),
            labels=len(profile.labelled),
        )

    def next_items(self, user: str, profile: UserProfile, n: int) -> NextItems:
        """Return the items whose labels are most informative about a user."""
        scorer = profile.scorer
        places = scorer.next_items(profile, n).tolist()
        items = [scorer.catalogue.facts(i) | {"features": features_of(scorer, i)} for i in places]
        return NextItems(user=user, attribute=scorer.attribute or None, items=items)


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


def _allowed(request: RankRequest, profile: UserProfile) -> Bool:
    """Return which items are ranked."""
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
