"""Rank, score, explain and compare: for anybody whom the caller may ask about."""

from typing import Any

import numpy as np
from fastapi import APIRouter

from likeminds._util.array_types import Float, Index
from likeminds.service.access import Calling, Held
from likeminds.service.errors import ProblemError, documented
from likeminds.service.queries import RankingQueries, best
from likeminds.service.schemas import (
    CompareRequest,
    Explained,
    ExplainRequest,
    Facts,
    RankBatch,
    RankingResponse,
    RankingsResponse,
    RankRequest,
    ScoreBatch,
    ScoreRequest,
    Scores,
    ScoresBatch,
)
from likeminds.service.scoring import AttributeScorer, UserScores
from likeminds.service.settings import Settings

router = APIRouter(prefix="/v1", tags=["ranking"], responses=documented(404, 409))

_SHOWN = 8


@router.post("/rank", response_model=RankingResponse)
def rank(asked: RankRequest, held: Held, caller: Calling) -> dict[str, Any]:
    """Rank items for a person, or by what all agree on."""
    refuse_large(held.settings, len(asked.only or ()) + len(asked.exclude) + asked.limit)
    return RankingQueries(held, caller).rank(asked)


@router.post("/rank/batch", response_model=RankingsResponse)
def rank_batch(asked: RankBatch, held: Held, caller: Calling) -> dict[str, Any]:
    """Rank items for several people at once, all by the same generation of the model."""
    refuse_large(held.settings, sum(one.limit for one in asked.requests))
    answering = RankingQueries(held, caller)
    return {"rankings": [answering.rank(one) for one in asked.requests]}


@router.post("/score", response_model=Scores)
def score(asked: ScoreRequest, held: Held, caller: Calling) -> dict[str, Any]:
    """Score given items for a person."""
    refuse_large(held.settings, len(asked.items))
    return RankingQueries(held, caller).score(asked)


@router.post("/score/batch", response_model=ScoresBatch)
def score_batch(asked: ScoreBatch, held: Held, caller: Calling) -> dict[str, Any]:
    """Score given items for several people at once."""
    refuse_large(held.settings, sum(len(one.items) for one in asked.requests))
    answering = RankingQueries(held, caller)
    return {"answers": [answering.score(one) for one in asked.requests]}


@router.post("/explain", response_model=Explained)
def explain(asked: ExplainRequest, held: Held, caller: Calling) -> dict[str, Any]:
    """Say why an item has its score: consensus + group + personal (+ item), by feature."""
    return RankingQueries(held, caller).explain(asked)


@router.post("/compare", response_model=Facts)
def compare(asked: CompareRequest, held: Held, caller: Calling) -> dict[str, Any]:
    """Hold two people against each other: how alike they rank, and what they disagree about."""
    answering = RankingQueries(held, caller)
    question = answering.question(asked.attribute)
    catalogue = question.catalogue
    opinions = [answering.opinion(question, who) for who in (asked.a, asked.b)]
    scores = [question.scores(opinion) for opinion in opinions]
    shares = [_shares(one) for one in scores]
    apart = shares[0] - shares[1]
    middle = np.minimum(shares[0], shares[1])

    def facts(places: Index) -> list[dict[str, Any]]:
        return [
            catalogue.facts(place) | {"a": float(shares[0][place]), "b": float(shares[1][place])}
            for place in places.tolist()
        ]

    return {
        "a": asked.a,
        "b": asked.b,
        "attribute": question.attribute or None,
        "likeness": _likeness(scores[0], scores[1]),
        "standing": [
            answering.standing(question, who, opinion, len(opinion.labelled))
            for who, opinion in zip((asked.a, asked.b), opinions, strict=True)
        ],
        "both_like": facts(best(middle, _SHOWN)),
        "a_prefers": facts(best(apart, _SHOWN)),
        "b_prefers": facts(best(-apart, _SHOWN)),
        "features": _features(question, opinions),
    }


def refuse_large(settings: Settings, size: int) -> None:
    """Refuse a batch that is larger than the service takes."""
    if size > settings.most_batch:
        raise ProblemError(
            413, f"A batch may have {settings.most_batch:,} entries at most, and this has {size:,}."
        )


def _shares(scores: Float) -> Float:
    """Return the share of the items that each item beats."""
    places = np.empty(len(scores))
    places[np.argsort(scores, kind="stable")] = np.arange(len(scores))
    return places / max(len(scores) - 1, 1)


def _likeness(first: Float, second: Float) -> float:
    spread = float(first.std() * second.std())
    if not spread:
        return 0.0
    return float(((first - first.mean()) * (second - second.mean())).mean() / spread)


def _features(question: AttributeScorer, opinions: list[UserScores]) -> list[dict[str, Any]]:
    """Return both people's weights per spread of the feature, what differs most first."""
    unit = question.explanation.unit
    first, second = (opinion.levels.coef[0] * unit for opinion in opinions)
    names = question.explanation.levels.feature_names
    order = np.argsort(-np.abs(first - second), kind="stable")[:_SHOWN]
    return [
        {"feature": names[j], "a": float(first[j]), "b": float(second[j])} for j in order.tolist()
    ]
