"""Scores of items for known and new users, their intervals, and the next items to ask about."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from likeminds._util.array_types import Float, IdArray, Index
from likeminds._util.per_user_arrays import symmetric_root
from likeminds.data.annotations import Annotations
from likeminds.mixed_model.design import PredictionRows
from likeminds.mixed_model.gaussian_prior import ItemPosteriors as LearnedItems
from likeminds.mixed_model.likelihoods import label_probability
from likeminds.mixed_model.posterior import Posterior
from likeminds.rankers.answer_scales import AnswerScale
from likeminds.rankers.capabilities import Capability, in_memory, subset_users
from likeminds.rankers.ranker import Ranker
from likeminds.rankers.score_decomposition import decompose_score, interval
from likeminds.rankers.validation import positions_by_user
from likeminds.schools.explanations import Explanation
from likeminds.schools.population import Items, WeightLevels, items_of
from likeminds.schools.user_map import MapPositions, NewUserProjection, levels_of_posterior
from likeminds.service.catalogue import ItemCatalogue

# The most informative items are searched among so many.
_ASKED_AMONG = 2_000
# Draws from a posterior for intervals of ranks, and the largest number of items for them.
_DRAWS = 400
RANKED_AMONG = 100_000
# Draws for the probability of each school.
_PLACED = 200

# A user's answers by item, as numbers of an answer scale; None for deleted answers.
LabelsByItem = Mapping[str, float | None]


class UnableError(Exception):
    """An operation that this model does not support."""


@dataclass(frozen=True, eq=False)
class UserProfile:
    """A user's weights of features and of learned factors, with their posterior if known.

    ``position`` is the user's place in the ranker, if any. ``labelled_since`` has the labelled
    items of a user whose stored labels replace those of the model.
    """

    scorer: "AttributeScorer"
    weights: Float
    factor_weights: Float
    posterior: Posterior | None
    position: int | None = None
    labelled_since: frozenset[str] | None = None

    @cached_property
    def levels(self) -> WeightLevels:
        """The weights by level, of this user alone."""
        levels = self.scorer.explanation.levels
        if self.position is not None:
            one_user = subset_users(self.scorer.chosen, slice(self.position, self.position + 1))
            return replace(WeightLevels.of_ranker(one_user), own=None)
        if self.posterior is not None:
            return levels_of_posterior(levels, self.scorer.chosen, self.posterior)
        zero = np.zeros((1, len(levels.consensus)))
        return replace(levels, users=levels.users[:1], group=zero, personal=zero, own=None)

    @cached_property
    def labelled(self) -> frozenset[str]:
        """The items that the user labelled, if known."""
        if self.labelled_since is not None:
            return self.labelled_since
        annotations = self.scorer.annotations
        if self.position is None or annotations is None:
            return frozenset()
        own = annotations.of_user(self.scorer.chosen.users_[self.position])
        return frozenset(map(str, own.items.tolist()))


@dataclass(frozen=True, eq=False)
class AttributeScorer:
    """One attribute of a model: a ranker, and the items that it scores."""

    attribute: str
    ranker: Ranker
    catalogue: ItemCatalogue

    @cached_property
    def chosen(self) -> Ranker:
        """The ranker; after a search, the best one found."""
        found: Ranker = self.ranker._best_model
        return found

    @property
    def feature_names(self) -> list[str]:
        """The names of the features."""
        return [str(name) for name in self.chosen.feature_names_]

    @property
    def annotations(self) -> Annotations | None:
        """The training labels of the ranker, if the model has them."""
        return self.chosen.annotations_

    @cached_property
    def scale(self) -> AnswerScale:
        """The scale of the ranker's answers."""
        return AnswerScale.of_ranker(self.chosen)

    @cached_property
    def own(self) -> LearnedItems | None:
        """The learned effects and factors of the items."""
        found: LearnedItems | None = self.chosen.item_posteriors_of(self.catalogue.ids)
        return found

    @cached_property
    def explanation(self) -> Explanation:
        """The facts about users, schools and items."""
        ids, texts = self.catalogue.ids, self.catalogue.texts
        ranker = in_memory(self.ranker)
        called = {one: texts[str(one)] for one in ids.tolist() if str(one) in texts} or None
        items: Items | None = items_of(ranker, None, texts=called)
        if items is None:
            given = Items(
                ids=ids,
                rows=np.arange(len(ids)),
                features=self.catalogue.features,
                feature_names=tuple(self.feature_names),
                texts=called,
            )
            items = given.with_learned(self.chosen)
        return Explanation(ranker, items)

    @cached_property
    def projection(self) -> NewUserProjection:
        """The map of users."""
        return NewUserProjection(self.explanation.levels, self.explanation.schools)

    def warm(self) -> None:
        """Compute and cache the facts of all requests; a ranker without levels raises an error."""
        _ = self.own, positions_by_user(self.chosen), self.projection.normals

    # Users

    def consensus(self) -> UserProfile:
        """Return the profile of the average user."""
        factors = np.zeros(0 if self.own is None else self.own.n_factors)
        posterior = self.chosen.newcomer() if Capability.NEWCOMERS.of(self.chosen) else None
        return UserProfile(self, self.chosen.consensus_, factors, posterior)

    def known(self, position: int) -> UserProfile:
        """Return the profile of a user of the model."""
        chosen, posterior = self.chosen, None
        if Capability.UNCERTAINTY.of(chosen):
            posterior = chosen.user_posterior(chosen.users_[position])
        factors = np.zeros(0) if self.own is None else chosen.factor_weights_[position]
        return UserProfile(self, chosen.coef_[position], factors, posterior, position)

    def known_with(self, position: int, labels: LabelsByItem) -> UserProfile:
        """Return the profile of a user of the model who has added labels since the fit."""
        before = self.labels_of_known(position)
        values = before.labels if before.grades is None else before.grades
        merged = {str(item): float(label) for item, label in zip(before.items, values, strict=True)}
        if all(merged.get(item) == label for item, label in labels.items()):
            return self.known(position)
        return self.new_user(merged | dict(labels))

    def new_user(self, labels: LabelsByItem) -> UserProfile:
        """Return the profile of a new user, given their labels."""
        if not Capability.NEWCOMERS.of(self.chosen):
            raise UnableError(f"{type(self.chosen).__name__} {Capability.NEWCOMERS.value[1]}.")
        given = {item: label for item, label in labels.items() if label is not None}
        posterior = self.chosen.newcomer(self._annotations(given) if given else None)
        factors = posterior.points[0, posterior.design.size :]
        return UserProfile(
            self, posterior.coef[0], factors, posterior, labelled_since=frozenset(given)
        )

    def labels_of_known(self, position: int) -> Annotations:
        """Return the labels of a known user; raise `UnableError` if others cannot be added."""
        if self.annotations is None:
            raise UnableError(
                "The model was saved without labels, so labels of its users cannot be added: "
                "save it with_data=True."
            )
        own = self.annotations.of_user(self.chosen.users_[position])
        if own.choice_set_codes is not None and np.bincount(own.choice_set_codes).max() > 1:
            raise UnableError(
                "The model was fitted to choices of this user, so labels of single items cannot "
                "be added. Add a new user for them."
            )
        return own

    def _annotations(self, labels: Mapping[str, float]) -> Annotations:
        """Return a user's answers as labelled rows."""
        places = np.array([self.catalogue.positions[item] for item in labels], dtype=np.intp)
        values, reading = self.scale.labels_of(list(labels.values()))
        users: IdArray = np.zeros(len(places), dtype=np.intp)
        return Annotations(
            users=users,
            items=self.catalogue.ids[places],
            labels=values,
            features=self.catalogue.features[places],
            feature_names=self.feature_names,
            features_per="row",
            reading=reading,
        )

    # Scores

    def _rows(self, posterior: Posterior, places: Index) -> PredictionRows:
        """Return items in the coordinates of a posterior."""
        features = np.asarray(self.catalogue.features[places], dtype=np.float64)
        if self.own is None:
            return posterior.prediction_rows(features)
        rows, own = posterior.design.differences(features - posterior.design.origin), self.own
        own = own.take(places)
        return PredictionRows(np.hstack([rows, own.factors]), own, is_named=True)

    def scores(self, profile: UserProfile, places: Index | None = None) -> Float:
        """Return scores of items: features times weights, plus item effects and factors."""
        table = self.catalogue.features if places is None else self.catalogue.features[places]
        weights = profile.weights.astype(table.dtype, copy=False)
        scores: Float = table @ weights
        if self.own is None:
            return scores
        own = self.own if places is None else self.own.take(places)
        return np.asarray(scores + own.effects + own.factors @ profile.factor_weights)

    def lower_bounds(self, scores: Float) -> Float:
        """Return lower bounds of the average user's scores, which rank the items."""
        return scores if self.own is None else self.own.lower_bound(scores)

    def errors(self, profile: UserProfile, places: Index) -> Float | None:
        """Return standard errors of scores; None if the ranker has no posterior."""
        if profile.posterior is None:
            return None
        rows = self._rows(profile.posterior, places)
        return profile.posterior.deviation(rows, np.zeros(len(places), dtype=np.intp))

    def expected(self, profile: UserProfile, places: Index) -> Float | None:
        """Return expected grades, or probabilities of a yes; None for choices."""
        posterior, fitted_prior = profile.posterior, self.chosen.prior_
        if posterior is None or fitted_prior is None:
            return None
        rows, users = self._rows(posterior, places), np.zeros(len(places), dtype=np.intp)
        if posterior.response_style is not None:
            return posterior.grades(rows, users).expected
        if (
            self.scale.is_graded
            or fitted_prior.likelihood.is_quadratic
            or not fitted_prior.design.intercept
        ):
            return None
        eta, variance = posterior.linear_predictor(rows, users)
        return label_probability(eta, np.sqrt(variance))

    def rank_intervals(
        self, profile: UserProfile, among: Index, shown: Index
    ) -> list[list[int] | None] | None:
        """Return 90 % intervals of the ranks of the items ``shown`` among the items ``among``."""
        posterior = profile.posterior
        if posterior is None:
            return None
        rng = np.random.default_rng(1)
        draws = _draws(posterior, _DRAWS).T
        mine = self._drawn(posterior, shown, draws, rng)
        above = np.zeros((len(shown), _DRAWS), dtype=np.intp)
        for start in range(0, len(among), _ASKED_AMONG):
            others = among[start : start + _ASKED_AMONG]
            scores = self._drawn(posterior, others, draws, rng)
            for row, (place, score) in enumerate(zip(shown, mine, strict=True)):
                above[row] += (scores[others != place] > score).sum(axis=0)
        ends = np.quantile(above, [0.05, 0.95], axis=1, method="inverted_cdf")
        return [*(ends.T.astype(np.intp) + 1).tolist()]

    def _drawn(
        self, posterior: Posterior, places: Index, draws: Float, rng: np.random.Generator
    ) -> Float:
        rows = self._rows(posterior, places)
        scores = rows.rows @ draws
        if rows.items is not None:
            scores += rows.items.sample_scores(draws[posterior.design.size :], rng)
        if rows.features is not None:  # items share little beyond the coordinates
            beyond = np.sqrt(posterior.variance_beyond(rows))[:, None]
            scores += beyond * rng.standard_normal(scores.shape)
        return np.asarray(scores)

    def next_items(self, profile: UserProfile, n: int) -> Index:
        """Return the unlabelled items whose labels are most informative about a user."""
        if profile.posterior is None:
            raise UnableError(
                f"{type(self.chosen).__name__} has no posteriors of users, so it cannot choose "
                "items to ask about. Serve a HierarchicalRanker instead."
            )
        names, labelled = self.catalogue.names, profile.labelled
        unlabelled = [i for i in self._candidates.tolist() if names[i] not in labelled]
        candidates = np.array(unlabelled, dtype=np.intp)
        if not len(candidates):
            return candidates
        rows = self._rows(profile.posterior, candidates)
        return candidates[profile.posterior.most_informative(rows, 0, min(n, len(candidates)))]

    @cached_property
    def _candidates(self) -> Index:
        n_items = len(self.catalogue)
        if n_items <= _ASKED_AMONG:
            return np.arange(n_items)
        return np.sort(np.random.default_rng(0).choice(n_items, _ASKED_AMONG, replace=False))

    def explain(self, profile: UserProfile, place: int) -> dict[str, Any]:
        """Decompose the score of an item for a user."""
        items = self.explanation.items
        assert items is not None
        row = np.asarray(self.catalogue.features[place], dtype=np.float64)
        effect = 0.0
        if self.own is not None:
            row = np.concatenate([row, self.own.factors[place]])
            # The last column is the item effect: see `WeightLevels`.
            effect = float(self.own.effects[place] - items.centre[-1])
        levels, width = profile.levels, len(row)
        weights = np.stack([levels.consensus, levels.group[0], levels.personal[0]])
        found = decompose_score(
            weights[:, :width], levels.feature_names[:width], row, items.centre[:width], effect
        )
        one = np.array([place])
        errors = self.errors(profile, one)
        error = None if errors is None else float(errors[0])
        average = float(self.scores(profile, one)[0]) - float(found["score"])
        uncertainty = {"error": error, "interval": interval(found["score"], error)}
        return found | uncertainty | {"average_item": average}

    def place(self, profile: UserProfile) -> MapPositions:
        """Return the position of a user on the map of users.

        Membership of schools is the mean over draws from the user's posterior.
        """
        found = self.projection.place(profile.levels)
        if profile.posterior is None:
            return found
        draws = _draws(profile.posterior, _PLACED)
        several = replace(profile.posterior, users=np.arange(_PLACED), points=draws)
        levels = levels_of_posterior(self.explanation.levels, self.chosen, several)
        likely = self.projection.place(levels).membership.mean(axis=0)
        return found._replace(membership=likely[None])


def _draws(posterior: Posterior, n: int) -> Float:
    """Draw points from the posterior of the only user, shape (n, p)."""
    root = symmetric_root(posterior.covariance(0))
    noise = np.random.default_rng(0).standard_normal((n, len(root)))
    return np.asarray(posterior.points[0] + noise @ root.T)
