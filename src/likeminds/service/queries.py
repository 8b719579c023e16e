"""Answers to questions about rankings, from one generation of the model and what is stored."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from likeminds._util.array_types import Bool, Float, Index
from likeminds.rankers.score_decomposition import interval
from likeminds.service.access import Caller, refuse_others
from likeminds.service.app_state import AppState
from likeminds.service.catalogue import UnknownNameError
from likeminds.service.errors import ProblemError
from likeminds.service.keys import Role
from likeminds.service.model_generation import ModelGeneration
from likeminds.service.schemas import ExplainRequest, RankRequest, ScoreRequest
from likeminds.service.scoring import RANKED_AMONG, AttributeScorer, UserScores
from likeminds.service.store import Label, StoreDownError


@dataclass
class RankingQueries:
    """One request's view of things: the model does not change under it."""

    held: AppState
    caller: Caller
    served: ModelGeneration = field(init=False)

    def __post_init__(self) -> None:
        self.served = self.held.served

    def question(self, attribute: str | None) -> AttributeScorer:
        """Return the question about an attribute."""
        return self.served.question(attribute)

    def labels(self, person: str) -> list[Label] | None:
        """Return what somebody told the service; None if they never came.

        Without the database, those whom the model knows are ranked by what it knows.
        """
        try:
            return self.held.store.told_by(person)
        except StoreDownError:
            if not self.served.knows(person, self.held.forgotten):
                raise
        return None

    def opinion(self, question: AttributeScorer, person: str | None) -> UserScores:
        """Return what somebody thinks, whom the caller may ask about."""
        if person is None:
            return question.consensus()
        refuse_others(self.caller, self.held, person, Role.READ)
        stored = self.labels(person)
        said = None
        if stored is not None:
            said = {one.item: one.label for one in stored if one.attribute == question.attribute}
        return self.served.opinion(question, person, said, self.held.forgotten)

    def rank(self, asked: RankRequest, opinion: UserScores | None = None) -> dict[str, Any]:
        """Return the best items for somebody, whose opinion may be at hand."""
        question = self.question(asked.attribute)
        if opinion is None:
            opinion = self.opinion(question, asked.user)
        allowed = self._allowed(asked, question, opinion)
        scores = question.scores(opinion)
        order = scores if asked.user is not None else question.at_least(scores)
        total = len(scores) if allowed is None else int(allowed.sum())
        if allowed is not None:
            order = np.where(allowed, order, -np.inf)
        end = min(asked.offset + asked.limit, total)
        shown = best(order, end)[asked.offset :]
        among = np.arange(len(scores)) if allowed is None else np.flatnonzero(allowed)
        return {
            "user": asked.user,
            "attribute": question.attribute or None,
            "generation": self.served.generation,
            "total": total,
            "items": self._ranked(question, opinion, asked, scores, shown=shown, among=among),
        }

    def _ranked(
        self,
        question: AttributeScorer,
        opinion: UserScores,
        asked: RankRequest,
        scores: Float,
        *,
        shown: Index,
        among: Index,
    ) -> list[dict[str, Any]]:
        errors = ranks = None
        expected = question.expected(opinion, shown)
        if asked.intervals != "none" and len(shown):
            errors = question.errors(opinion, shown)
        if asked.intervals == "ranks" and len(shown):
            if len(among) > RANKED_AMONG:
                raise ProblemError(
                    422,
                    f"Intervals of ranks are computed among {RANKED_AMONG:,} items at most, and "
                    f"these are {len(among):,}: ask for intervals of scores, or for fewer items.",
                )
            ranks = question.rank_intervals(opinion, among, shown)
        items = []
        for row, place in enumerate(shown.tolist()):
            score = float(scores[place])
            error = None if errors is None else float(errors[row])
            items.append(
                {"rank": asked.offset + row + 1, "score": score, "interval": interval(score, error)}
                | {"expected": None if expected is None else float(expected[row])}
                | question.catalogue.facts(place)
                | {"ranks": None if ranks is None else [int(ranks[0][row]), int(ranks[1][row])]}
            )
        return items

    def _allowed(
        self, asked: RankRequest, question: AttributeScorer, opinion: UserScores
    ) -> Bool | None:
        """Return which items are ranked; None for all."""
        catalogue = question.catalogue
        out = [catalogue.position(name) for name in asked.exclude]
        if asked.exclude_labelled:
            out += [catalogue.positions[n] for n in opinion.labelled if n in catalogue.positions]
        if not out and asked.only is None and not asked.features:
            return None
        allowed = np.ones(len(catalogue), dtype=np.bool_)
        if asked.only is not None:
            allowed[:] = False
            allowed[[catalogue.position(name) for name in asked.only]] = True
        allowed[out] = False
        names = [str(name) for name in question.chosen.feature_names_]
        for one in asked.features:
            if one.feature not in names:
                raise UnknownNameError("feature", one.feature, names)
            column = catalogue.features[:, names.index(one.feature)]
            if one.least is not None:
                allowed &= column >= one.least
            if one.most is not None:
                allowed &= column <= one.most
        return allowed

    def score(self, asked: ScoreRequest) -> dict[str, Any]:
        """Return the scores of some items for somebody."""
        question = self.question(asked.attribute)
        places = np.array([question.catalogue.position(name) for name in asked.items])
        opinion = self.opinion(question, asked.user)
        scores, errors = question.scores(opinion, places), question.errors(opinion, places)
        expected = question.expected(opinion, places)
        found = []
        for row, name in enumerate(asked.items):
            score = float(scores[row])
            error = None if errors is None else float(errors[row])
            found.append(
                {"item": name, "text": question.catalogue.texts.get(name)}
                | {"score": score, "error": error, "interval": interval(score, error)}
                | {"expected": None if expected is None else float(expected[row])}
            )
        return {
            "user": asked.user,
            "attribute": question.attribute or None,
            "generation": self.served.generation,
            "scores": found,
        }

    def explain(self, asked: ExplainRequest) -> dict[str, Any]:
        """Say why an item has its score for somebody."""
        question = self.question(asked.attribute)
        place = question.catalogue.position(asked.item)
        opinion = self.opinion(question, asked.user)
        expected = question.expected(opinion, np.array([place]))
        named = {
            "user": asked.user,
            "attribute": question.attribute or None,
            "item": asked.item,
            "text": question.catalogue.texts.get(asked.item),
            "expected": None if expected is None else float(expected[0]),
        }
        return named | question.explain(opinion, place)

    def standing(
        self, question: AttributeScorer, person: str | None, opinion: UserScores, told: int
    ) -> dict[str, Any]:
        """Return where somebody stands among the others."""
        places = question.place(opinion)
        schools = question.explanation.schools
        number = int(places.membership[0].argmax()) + 1 if schools else None
        coordinates = places.coordinates[0, :2].tolist()
        shares = places.standing[0].tolist()
        return {
            "user": person,
            "attribute": question.attribute or None,
            "coordinates": coordinates + [0.0] * (2 - len(coordinates)),
            "school": number,
            "school_name": None if number is None else schools[number].name,
            "membership": places.membership[0].tolist(),
            "standing": dict(zip(("consensus", "group", "personal"), shares, strict=True)),
            "labels": told,
        }

    def ask(
        self, question: AttributeScorer, person: str, opinion: UserScores, n: int
    ) -> dict[str, Any]:
        """Return what to ask somebody next."""
        places = question.next_items(opinion, n)
        names = [str(name) for name in question.chosen.feature_names_]
        items = []
        for place in places.tolist():
            row = dict(zip(names, map(float, question.catalogue.features[place]), strict=True))
            items.append(question.catalogue.facts(place) | {"features": row})
        return {"user": person, "attribute": question.attribute or None, "items": items}


def best(scores: Float, n: int) -> Index:
    """Return the positions of the n highest scores, the highest first; ties by position.

    Examples
    --------
    >>> best(np.array([1.0, 3.0, 2.0, 3.0]), 3)
    array([1, 3, 2])
    """
    if n <= 0:
        return np.zeros(0, dtype=np.intp)
    if n >= len(scores):
        return np.argsort(-scores, kind="stable")
    # The threshold, then all above it and the first ones at it: ties do not depend on partition.
    least = -np.partition(-scores, n - 1)[n - 1]
    above = np.flatnonzero(scores > least)
    level = np.flatnonzero(scores == least)[: n - len(above)]
    found = np.sort(np.concatenate([above, level]))
    return found[np.argsort(-scores[found], kind="stable")]
