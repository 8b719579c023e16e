"""Rank, score, explain and compare, for any user whom the caller may read."""

from typing import Any

import numpy as np
from fastapi import APIRouter

from likeminds._util.array_types import Float, Index
from likeminds.rankers.ranking import best_of
from likeminds.service import schemas
from likeminds.service.errors import documented
from likeminds.service.queries import Queries

router = APIRouter(prefix="/v1", tags=["ranking"], responses=documented(404, 409))

_SHOWN = 8
# The smallest differences of shares and of weights that are shown.
_VISIBLE = 0.005


@router.post("/rank")
def rank(request: schemas.RankRequest, queries: Queries) -> schemas.RankingResponse:
    """Rank items for a user, or by the consensus."""
    queries.refuse_large(len(request.only or ()) + len(request.exclude) + request.limit)
    return queries.rank(request)


@router.post("/rank/batch")
def rank_batch(request: schemas.RankBatch, queries: Queries) -> schemas.RankingsResponse:
    """Rank items for several users at once, all by the same generation of the model."""
    queries.refuse_large(sum(one.limit for one in request.requests))
    return schemas.RankingsResponse(rankings=[queries.rank(one) for one in request.requests])


@router.post("/score")
def score(request: schemas.ScoreRequest, queries: Queries) -> schemas.Scores:
    """Score items for a user."""
    queries.refuse_large(len(request.items))
    return queries.score(request)


@router.post("/score/batch")
def score_batch(request: schemas.ScoreBatch, queries: Queries) -> schemas.ScoresBatch:
    """Score items for several users at once."""
    queries.refuse_large(sum(len(one.items) for one in request.requests))
    return schemas.ScoresBatch(answers=[queries.score(one) for one in request.requests])


@router.post("/explain")
def explain(request: schemas.ExplainRequest, queries: Queries) -> schemas.Explained:
    """Decompose a score into consensus + group + personal (+ item), by feature."""
    scorer = queries.current.scorer(request.attribute)
    place = scorer.catalogue.position(request.item)
    profile = queries.profile(scorer, request.user)
    expected = scorer.expected(profile, np.array([place]))
    return schemas.Explained(
        user=request.user,
        attribute=scorer.attribute or None,
        item=request.item,
        text=scorer.catalogue.texts.get(request.item),
        expected=None if expected is None else float(expected[0]),
        **scorer.explain(profile, place),
    )


@router.post("/compare", response_model=schemas.Facts)
def compare(request: schemas.CompareRequest, queries: Queries) -> dict[str, Any]:
    """Compare two users: the correlation of their scores, and the largest differences."""
    scorer = queries.current.scorer(request.attribute)
    catalogue, explained = scorer.catalogue, scorer.explanation
    profiles = [queries.profile(scorer, user) for user in (request.a, request.b)]
    scores = [scorer.scores(profile) for profile in profiles]
    first, second = map(_rank_shares, scores)
    spread = float(scores[0].std() * scores[1].std())
    covariance = float(((scores[0] - scores[0].mean()) * (scores[1] - scores[1].mean())).mean())
    weights = [profile.levels.coef[0] * explained.unit for profile in profiles]
    differing = _differing(np.abs(weights[0] - weights[1]))

    def facts(places: Index) -> list[dict[str, Any]]:
        return [
            catalogue.facts(place) | {"a": float(first[place]), "b": float(second[place])}
            for place in places.tolist()
        ]

    return {
        "a": request.a,
        "b": request.b,
        "attribute": scorer.attribute or None,
        "likeness": covariance / spread if spread else 0.0,
        "profiles": [
            queries.describe(user, profile)
            for user, profile in zip((request.a, request.b), profiles, strict=True)
        ],
        "both_like": facts(best_of(np.minimum(first, second), _SHOWN)),
        "a_prefers": facts(_differing(first - second)),
        "b_prefers": facts(_differing(second - first)),
        "features": [
            {
                "feature": explained.levels.feature_names[j],
                "a": float(weights[0][j]),
                "b": float(weights[1][j]),
            }
            for j in differing.tolist()
        ],
    }


def _differing(by: Float) -> Index:
    """Return the positions of the largest visible differences, largest first."""
    return best_of(by, _SHOWN)[: int((by > _VISIBLE).sum())]


def _rank_shares(scores: Float) -> Float:
    """Return the share of the items that each item ranks above."""
    places = np.empty(len(scores))
    places[np.argsort(scores, kind="stable")] = np.arange(len(scores))
    return places / max(len(scores) - 1, 1)
