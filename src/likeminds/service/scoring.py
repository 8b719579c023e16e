"""What somebody, known or new, thinks of the items: scores, intervals, and what to ask next."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from likeminds._util.array_types import Float, IdArray, Index
from likeminds.data.annotations import Annotations
from likeminds.mixed_model.item_posteriors import ItemPosteriors as LearnedItems
from likeminds.mixed_model.likelihoods import label_probability
from likeminds.mixed_model.posterior import Posterior
from likeminds.mixed_model.prediction_rows import PredictionRows
from likeminds.rankers.answer_scales import AnswerScale
from likeminds.rankers.capabilities import Capability
from likeminds.rankers.label_validation import user_positions
from likeminds.rankers.score_decomposition import interval, take_apart
from likeminds.rankers.subset import some_of, within_reach
from likeminds.schools.explanations import Explanation
from likeminds.schools.find import items_of
from likeminds.schools.items import Items
from likeminds.schools.project_new_users import MapPositions, NewUserProjection, levels_of_posterior
from likeminds.schools.weight_levels import WeightLevels
from likeminds.service.catalogue import ItemCatalogue

# Items among which the most telling ones are looked for.
_ASKED_AMONG = 2_000
# Draws from a posterior for the intervals of ranks, and items that ranks are computed among.
_DRAWS = 400
RANKED_AMONG = 100_000
# Draws for the probability of each school.
_PLACED = 200

# A user's answers by item, as numbers of an answer scale; None for deleted answers.
Said = Mapping[str, float | None]


class UnableError(Exception):
    """Something that this model cannot do."""


@dataclass(frozen=True, eq=False)
class UserScores:
    """Somebody's weights, and how sure they are.

    Attributes
    ----------
    question : AttributeScorer
        About what.
    weights : array of shape (n_features,)
        Of the features.
    learned : array of shape (n_factors,)
        Of the features of items that were learned.
    posterior : Posterior or None
        The posterior; None where the ranker knows of none.
    place : int, optional
        Where the person is among those whom the ranker knows.
    told : frozenset of str, optional
        The items that they judged; without it, those that the model knows of.
    """

    question: "AttributeScorer"
    weights: Float
    learned: Float
    posterior: Posterior | None
    place: int | None = None
    told: frozenset[str] | None = None

    @cached_property
    def levels(self) -> WeightLevels:
        """The weights taken apart, of this person alone."""
        crowd = self.question.explanation.levels
        if self.place is not None:
            alone = some_of(self.question.chosen, slice(self.place, self.place + 1))
            return replace(WeightLevels.of_ranker(alone), own=None)
        if self.posterior is not None:
            return levels_of_posterior(crowd, self.question.chosen, self.posterior)
        none = np.zeros((1, len(crowd.consensus)))
        return replace(crowd, users=crowd.users[:1], group=none, personal=none, own=None)

    @cached_property
    def labelled(self) -> frozenset[str]:
        """The items that they judged, as far as that is known."""
        if self.told is not None:
            return self.told
        return frozenset() if self.place is None else self.question.judged_by(self.place)


@dataclass(frozen=True, eq=False)
class AttributeScorer:
    """One attribute of a model: a ranker, and the items it is asked about."""

    attribute: str
    ranker: Any
    catalogue: ItemCatalogue

    @cached_property
    def chosen(self) -> Any:
        """The ranker itself, out of a search."""
        return self.ranker._best_model

    @cached_property
    def scale(self) -> AnswerScale:
        """The answers that it takes."""
        return AnswerScale.of_ranker(self.chosen)

    @cached_property
    def own(self) -> LearnedItems | None:
        """What the ranker has learned about each item beyond its features."""
        found: LearnedItems | None = self.chosen.learned_about(self.catalogue.ids)
        return found

    @cached_property
    def explanation(self) -> Explanation:
        """What there is to say about the crowd."""
        ids, texts = self.catalogue.ids, self.catalogue.texts
        crowd = within_reach(self.ranker)
        called = {one: texts[str(one)] for one in ids.tolist() if str(one) in texts}
        items: Items | None = items_of(crowd, None, texts=called or None)
        if items is None:
            given = Items(
                ids=ids,
                rows=np.arange(len(ids)),
                features=self.catalogue.features,
                feature_names=tuple(map(str, self.chosen.feature_names_)),
                texts=called or None,
            )
            items = given.with_learned(self.chosen)
        return Explanation(crowd, items)

    @cached_property
    def placing(self) -> NewUserProjection:
        """The map of people."""
        return NewUserProjection(self.explanation.levels, self.explanation.schools)

    def warm(self) -> None:
        """Compute what all requests share; refuse a ranker that does not tell levels apart."""
        _ = self.own, user_positions(self.chosen), self.placing.normals

    # Opinions

    def consensus(self) -> UserScores:
        """Return what all agree on."""
        learned = np.zeros(0 if self.own is None else self.own.n_factors)
        posterior = self.chosen.newcomer() if Capability.NEWCOMERS.of(self.chosen) else None
        return UserScores(self, self.chosen.consensus_, learned, posterior)

    def known(self, place: int) -> UserScores:
        """Return the opinion of somebody the model knows."""
        chosen = self.chosen
        posterior = None
        if hasattr(chosen, "user_posterior"):
            posterior = chosen.user_posterior(chosen.users_[place])
        learned = np.zeros(0) if self.own is None else chosen.factor_weights_[place]
        return UserScores(self, chosen.coef_[place], learned, posterior, place)

    def stranger(self, said: Said) -> UserScores:
        """Return the opinion of somebody the model does not know, given what they said."""
        given = {item: label for item, label in said.items() if label is not None}
        return self._given(self._annotations(given) if given else None, frozenset(given))

    def labels_of_known(self, place: int) -> Annotations:
        """Return the labels of somebody known; say why nothing can be added to those kept."""
        kept: Annotations | None = self.chosen._learned("annotations_")
        if kept is None:
            raise UnableError(
                "The model has kept no labels of its people, so that nothing can be added to those "
                "of somebody it knows."
            )
        theirs = kept.of_user(self.chosen.users_[place])
        if theirs.choice_set_codes is not None and np.bincount(theirs.choice_set_codes).max() > 1:
            raise UnableError(
                "The model has learned from this person's choices, to which labels of single "
                "items cannot be added."
            )
        return theirs

    def known_with(self, place: int, said: Said) -> UserScores:
        """Return the opinion of somebody the model knows, who has said more since."""
        before = self.labels_of_known(place)
        told = before.labels if before.grades is None else before.grades
        now = {str(item): float(label) for item, label in zip(before.items, told, strict=True)}
        if all(now.get(item) == label for item, label in said.items()):
            return self.known(place)
        rest = {item: label for item, label in (now | dict(said)).items() if label is not None}
        return self._given(self._annotations(rest) if rest else None, frozenset(rest))

    def _given(self, said: Annotations | None, labelled: frozenset[str]) -> UserScores:
        if not Capability.NEWCOMERS.of(self.chosen):
            raise UnableError(f"{type(self.chosen).__name__} {Capability.NEWCOMERS.value[1]}.")
        posterior = self.chosen.newcomer(said)
        learned = posterior.points[0, posterior.coordinates.size :]
        return UserScores(self, posterior.coef[0], learned, posterior, told=labelled)

    def judged_by(self, place: int) -> frozenset[str]:
        """Return the items that somebody the model knows has judged, if it has kept that."""
        kept = self.chosen._learned("annotations_")
        if kept is None:
            return frozenset()
        return frozenset(map(str, kept.of_user(self.chosen.users_[place]).items.tolist()))

    def _annotations(self, said: Mapping[str, float]) -> Annotations:
        """Return a user's answers as labelled rows."""
        places = np.array([self.catalogue.positions[item] for item in said], dtype=np.intp)
        labels, reading = self.scale.labels_of(list(said.values()))
        users: IdArray = np.zeros(len(places), dtype=np.intp)
        return Annotations(
            users=users,
            items=self.catalogue.ids[places],
            labels=labels,
            features=self.catalogue.features[places],
            feature_names=[str(name) for name in self.chosen.feature_names_],
            features_per="row",
            reading=reading,
        )

    def _seen(self, posterior: Posterior, places: Index) -> PredictionRows:
        """Return items in the coordinates of a posterior."""
        features = np.asarray(self.catalogue.features[places], dtype=np.float64)
        rows = posterior.coordinates.differences(features - posterior.coordinates.origin)
        if self.own is None:
            return PredictionRows(rows)
        own = self.own.take(places)
        return PredictionRows(np.hstack([rows, own.factors]), own, is_named=True)

    # What they think

    def scores(self, opinion: UserScores, places: Index | None = None) -> Float:
        """Return scores of items: features times weights, and what was learned about items."""
        table = self.catalogue.features if places is None else self.catalogue.features[places]
        weights = opinion.weights.astype(table.dtype, copy=False)
        scores: Float = table @ weights
        if self.own is None:
            return scores
        own = self.own if places is None else self.own.take(places)
        return np.asarray(scores + own.effects + own.factors @ opinion.learned)

    def at_least(self, scores: Float) -> Float:
        """Return the scores of all people that items have almost surely, which rank them."""
        return scores if self.own is None else self.own.at_least(scores)

    def errors(self, opinion: UserScores, places: Index) -> Float | None:
        """Return standard errors of scores; None where the ranker does not know them."""
        if opinion.posterior is None:
            return None
        seen = self._seen(opinion.posterior, places)
        return opinion.posterior.deviation(seen, np.zeros(len(places), dtype=np.intp))

    def expected(self, opinion: UserScores, places: Index) -> Float | None:
        """Return the expected grades of items, or the probabilities of a yes; None for choices."""
        posterior, crowd = opinion.posterior, self.chosen._learned("crowd_")
        if posterior is None or crowd is None:
            return None
        seen, people = self._seen(posterior, places), np.zeros(len(places), dtype=np.intp)
        if posterior.ways is not None:
            return posterior.grades(seen, people).expected
        if self.scale.is_graded or crowd.likelihood.is_quadratic or not crowd.coordinates.intercept:
            return None
        eta, variance = posterior.from_zero(seen, people)
        return label_probability(eta, np.sqrt(variance))

    def rank_intervals(
        self, opinion: UserScores, among: Index, shown: Index
    ) -> tuple[Index, Index] | None:
        """Return the lowest and highest ranks that some items may have among others, in 90 %.

        Parameters
        ----------
        opinion : UserScores
            Whose.
        among : array of int
            The items that are ranked.
        shown : array of int
            Those whose ranks are asked for.
        """
        if opinion.posterior is None:
            return None
        posterior = opinion.posterior
        rng = np.random.default_rng(1)
        draws = _draws(posterior, _DRAWS).T
        mine = self._drawn(posterior, shown, draws, rng)
        above = np.zeros((len(shown), _DRAWS), dtype=np.intp)
        for start in range(0, len(among), _ASKED_AMONG):
            others = among[start : start + _ASKED_AMONG]
            scores = self._drawn(posterior, others, draws, rng)
            for row, (place, score) in enumerate(zip(shown, mine, strict=True)):
                above[row] += (scores[others != place] > score).sum(axis=0)
        low, high = np.quantile(above, [0.05, 0.95], axis=1, method="inverted_cdf")
        return low.astype(np.intp) + 1, high.astype(np.intp) + 1

    def _drawn(
        self, posterior: Posterior, places: Index, draws: Float, rng: np.random.Generator
    ) -> Float:
        seen = self._seen(posterior, places)
        scores = seen.rows @ draws
        if seen.own is not None:
            scores += seen.own.drawn(draws[posterior.coordinates.size :], rng)
        return np.asarray(scores)

    def next_items(self, opinion: UserScores, n: int) -> Index:
        """Return the items whose labels would tell most about a person, unlabelled ones only."""
        if opinion.posterior is None:
            raise UnableError(
                f"{type(self.chosen).__name__} does not know how sure it is of people it has "
                "learned from, so that it cannot say what to ask them."
            )
        left = np.array(
            [
                i
                for i in self._candidates.tolist()
                if self.catalogue.names[i] not in opinion.labelled
            ],
            dtype=np.intp,
        )
        if not len(left):
            return left
        seen = self._seen(opinion.posterior, left)
        return left[opinion.posterior.most_telling(seen, 0, min(n, len(left)))]

    @cached_property
    def _candidates(self) -> Index:
        n_items = len(self.catalogue)
        if n_items <= _ASKED_AMONG:
            return np.arange(n_items)
        return np.sort(np.random.default_rng(0).choice(n_items, _ASKED_AMONG, replace=False))

    def explain(self, opinion: UserScores, place: int) -> dict[str, Any]:
        """Say why an item has its score for somebody."""
        one = np.array([place])
        errors = self.errors(opinion, one)
        items = self.explanation.items
        assert items is not None
        row = np.asarray(self.catalogue.features[place], dtype=np.float64)
        effect = 0.0
        if self.own is not None:
            row = np.concatenate([row, self.own.factors[place]])
            # The last column is what all see in an item: see `WeightLevels`.
            effect = float(self.own.effects[place] - items.centre[-1])
        levels = opinion.levels
        weights = np.stack([levels.consensus, levels.group[0], levels.personal[0]])
        width = len(row)
        found = take_apart(
            weights[:, :width], levels.feature_names[:width], row, items.centre[:width], effect
        )
        error = None if errors is None else float(errors[0])
        whole = float(self.scores(opinion, one)[0])
        found |= {"error": error, "interval": interval(found["score"], error)}
        return found | {"average_item": whole - float(found["score"])}

    def place(self, opinion: UserScores) -> MapPositions:
        """Return where somebody stands on the map of people.

        How likely each school is takes into account how little is known about the person: it is
        the mean over draws from their posterior.
        """
        found = self.placing.place(opinion.levels)
        posterior = opinion.posterior
        if posterior is None:
            return found
        draws = _draws(posterior, _PLACED)
        several = replace(posterior, users=np.arange(_PLACED), points=draws)
        levels = levels_of_posterior(self.explanation.levels, self.chosen, several)
        likely = self.placing.place(levels).membership.mean(axis=0)
        return found._replace(membership=likely[None])


def _draws(posterior: Posterior, n: int) -> Float:
    """Draw points from the posterior of the only person, shape (n, p)."""
    values, vectors = np.linalg.eigh(posterior.covariance(0))
    noise = np.random.default_rng(0).standard_normal((n, len(values)))
    return np.asarray(posterior.points[0] + noise @ (vectors * np.sqrt(np.maximum(values, 0.0))).T)
