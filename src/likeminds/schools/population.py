"""A ranker's users, as levels of weights, and its items: ranks, disagreement, names."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.special import ndtr

from likeminds._util.array_types import Bool, Float, FloatArray, IdArray, Index
from likeminds._util.text_format import LIKE, Verb
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import lookup
from likeminds.mixed_model.gaussian_prior import ItemPosteriors
from likeminds.rankers.capabilities import Capability, checked_ranker
from likeminds.rankers.decomposed import GROUP_LIKE
from likeminds.rankers.ranker import Ranker
from likeminds.schools.school_names import (
    LETTERS_IN_A_NAME,
    POPULARITY,
    name_by_items,
    name_deviation,
    name_feature,
    shorten,
)

# More items or users than this are represented by a sample of this size.
_MOST_ITEMS = 20_000
_MOST_USERS = 1_000
# The number of items scored at a time.
_ITEMS_AT_ONCE = 4_096
# The most letters of an item's name where two items stand for a feature, as on a plot axis.
_LETTERS_IN_A_PAIR = 28
# If the ranker does not define the strong directions of the group level, take those with this share
# of its sum of squares, and at most so many.
_STRONG_SHARE, _MOST_DIRECTIONS = 0.95, 10
# Limits scaling of a user's scores, as a share of the root mean variance.
_UNDECIDED = 0.25


class JudgedItem(NamedTuple):
    """An item, its row in the table of features, a value such as a score, and its text."""

    item: object
    row: int
    value: float
    text: str | None = None


def learned_names(items: ItemPosteriors) -> tuple[str, ...]:
    """Return names of learned columns: factors, and the item effect."""
    return (*(f"learned_{n}" for n in range(1, items.n_factors + 1)), POPULARITY)


@dataclass(frozen=True, eq=False)
class Items:
    """Distinct items with their features."""

    ids: IdArray
    rows: Index  # in the original table of features
    features: FloatArray
    feature_names: tuple[str, ...]
    texts: Mapping[Hashable, str] | None = None
    verb: Verb = LIKE
    learned: ItemPosteriors | None = None

    @classmethod
    def of_annotations(cls, annotations: Annotations, rng: Generator) -> "Items":
        """Return the distinct items, or a random sample of 20,000."""
        item_of = rows = np.arange(len(annotations.features))
        if annotations.features_per != "item":
            # Subsets of annotations share one table of features, so some rows are unlabelled.
            rows = np.unique(annotations.feature_rows)
            first = np.unique(annotations.features[rows], axis=0, return_index=True)[1]
            rows = rows[np.sort(first)]
            item_of = np.zeros(len(annotations.features), dtype=np.intp)
            item_of[annotations.feature_rows] = annotations.item_codes
        if len(rows) > _MOST_ITEMS:
            rows = np.sort(rng.choice(rows, _MOST_ITEMS, replace=False))
        ids = annotations.item_ids[item_of[rows]]
        return cls(ids, rows, annotations.features[rows], annotations.feature_names)

    def __len__(self) -> int:
        return len(self.ids)

    def with_learned(self, ranker: Ranker) -> "Items":
        """Return the items with columns of a ranker's item factors and effects, if any."""
        learned = ranker.item_posteriors()
        if learned is None or len(self.feature_names) > len(ranker.feature_names_):
            return self
        posteriors = learned.of(self.ids)
        columns = np.column_stack([self.features, posteriors.factors, posteriors.effects])
        names = self.feature_names + learned_names(learned)
        return replace(self, features=columns, feature_names=names, learned=posteriors)

    def text_of(self, item: Hashable) -> str | None:
        """Return the text of an item, if there is one."""
        return None if self.texts is None else self.texts.get(item)

    def called(self, position: int, letters: int = LETTERS_IN_A_NAME) -> str:
        """Return an item's name in a sentence: the beginning of its text, or its id."""
        item = self.ids[position]
        text = self.text_of(item)
        if text is not None:
            return f'"{shorten(text, letters)}"'
        return shorten(str(item), letters) if isinstance(item, str) else f"item {item}"

    @cached_property
    def feature_words(self) -> tuple[str, ...]:
        """Words for each feature; see `likeminds.schools.school_names.name_feature`."""
        called = partial(self.called, letters=_LETTERS_IN_A_PAIR)
        columns = zip(self.feature_names, self.features.T, strict=True)
        return tuple(name_feature(name, values, called) for name, values in columns)

    def name_by_difference(
        self, own: Float, others: Float, margin: Float, *, liked_only: bool = False
    ) -> str:
        """Name users after items; see `likeminds.schools.school_names.name_by_items`."""
        return name_by_items(own, others, margin, self.called, self.verb, liked_only=liked_only)

    def positions_of(self, annotations: Annotations) -> Index:
        """Return the position of each label's item (matched by features if per row), or -1."""
        if annotations.features_per == "item":
            return lookup(annotations.item_ids, self.ids, "items")[annotations.item_codes]
        own = self.features[:, : annotations.n_features]
        where = {key: place for place, key in enumerate(_fingerprints(own))}
        rows, of_label = np.unique(annotations.feature_rows, return_inverse=True)
        found = [where.get(key, -1) for key in _fingerprints(annotations.features[rows])]
        return np.array(found, dtype=np.intp)[of_label]

    @cached_property
    def centre(self) -> Float:
        """The mean of the items' features."""
        return np.asarray(self.features.mean(axis=0, dtype=np.float64))

    @cached_property
    def spread(self) -> Float:
        """The covariance of the items' features."""
        moved = self.features - self.centre
        return np.asarray(moved.T @ moved / len(self), dtype=np.float64)

    @cached_property
    def binary(self) -> Bool:
        """Whether each feature has only values 0 and 1."""
        return np.asarray(np.isin(self.features, (0, 1)).all(axis=0))

    def places(self, weights: Float, piece: slice = slice(None)) -> Float:
        """Return the share of items that each item beats, taking scores as normal, (n, n_items)."""
        scores = weights @ (self.features[piece] - self.centre).T
        deviation = np.sqrt(score_variances(weights, self.spread))
        return np.asarray(ndtr(scores / np.where(deviation > 0, deviation, np.inf)[:, None]))

    def disagreement(self, coef: Float, rng: Generator) -> Float:
        """Return the standard deviation over users (or a sample) of the share each item beats."""
        if len(coef) > _MOST_USERS:
            coef = coef[rng.choice(len(coef), _MOST_USERS, replace=False)]
        pieces = (slice(i, i + _ITEMS_AT_ONCE) for i in range(0, len(self), _ITEMS_AT_ONCE))
        return np.concatenate([self.places(coef, piece).std(axis=0) for piece in pieces])

    def judged(self, key: Float, n: int, values: Float | None = None) -> tuple[JudgedItem, ...]:
        """Return the n items with the highest keys, with their values (by default the keys)."""
        values = key if values is None else values
        best = np.argsort(-key, kind="stable")[:n].tolist()
        return tuple(
            JudgedItem(item, int(self.rows[i]), float(values[i]), self.text_of(item))
            for i, item in zip(best, self.ids[best].tolist(), strict=True)
        )


def _fingerprints(features: FloatArray) -> list[bytes]:
    """Return a hashable key for each row, equal for equal numbers."""
    return [row.tobytes() for row in features.astype(np.float64) + 0.0]  # minus zero is zero


@dataclass(frozen=True, eq=False)
class WeightLevels:
    """Weights of users as the sum of three levels."""

    users: IdArray
    feature_names: tuple[str, ...]
    consensus: Float  # (n_features,)
    group: Float  # (n_users, n_features), as personal
    personal: Float
    scale: Float  # each feature's scale measured by the ranker; else ones
    n_directions: int | None  # strong directions of the group level, if the ranker defines them
    own: Bool | None  # users with a personal part, if exactly zero for other users
    mean_variance: float | None = None  # the mean variance of scores before they were scaled

    @classmethod
    def of_ranker(cls, ranker: object) -> "WeightLevels":
        """Return the levels of a fitted ranker; raise TypeError without a group level."""
        fitted = as_ranker(ranker)
        parts = fitted.parts_ or {}
        if not Capability.LEVELS.of(fitted):
            parts_words = f"; it has {', '.join(parts)}" if parts else ""
            raise TypeError(
                f"Schools of thought need a ranker with a group level, but {type(fitted).__name__} "
                f"has none{parts_words}. Use ThreeLevelRanker, HierarchicalRanker, or a "
                f"DecomposedRanker with a component called {' or '.join(GROUP_LIKE)}."
            )
        exact = parts.get("personal", fitted.raw_personal_)
        differs = (fitted.coef_ != fitted.consensus_).any(axis=1)
        levels = cls(
            users=fitted.users_,
            feature_names=tuple(map(str, fitted.feature_names_)),
            consensus=fitted.consensus_,
            group=fitted.group_,
            personal=fitted.personal_,
            scale=np.ones(len(fitted.consensus_)) if fitted.scale_ is None else fitted.scale_,
            n_directions=fitted.n_groups_,
            own=None if exact is None else exact.any(axis=1) & differs,
        )
        items = fitted.item_posteriors()
        if items is None:
            return levels
        weights = fitted.factor_weights_ if items.n_factors else np.zeros((len(levels.users), 0))
        spread = np.append(items.factors.std(axis=0), items.effects.std())
        group, personal = with_learned_columns(levels.group, levels.personal, weights)
        return replace(
            levels,
            feature_names=levels.feature_names + learned_names(items),
            consensus=np.concatenate([levels.consensus, np.zeros(items.n_factors), [1.0]]),
            group=group,
            personal=personal,
            scale=np.concatenate([levels.scale, np.where(spread > 0, spread, 1.0)]),
            n_directions=(levels.n_directions or 0) + items.n_factors,
        )

    @cached_property
    def coef(self) -> Float:
        """The sum of the levels: (n_users, n_features)."""
        return np.asarray(self.consensus + self.group + self.personal)

    def normalised(self, spread: Float, reference: "WeightLevels | None" = None) -> "WeightLevels":
        """Return the levels with every user's scores scaled to about the same spread.

        Doubling weights does not change a ranking, so each user's consensus + group is divided by
        the standard deviation of its scores. A small constant keeps users without labels small. The
        new consensus is the mean of the results; for new users, that of the ``reference``.
        """
        shared = self.consensus + self.group
        variance = score_variances(shared, spread)
        mean_variance = None if reference is None else reference.mean_variance
        if mean_variance is None:
            mean_variance = float(variance.mean())
        least = _UNDECIDED**2 * mean_variance + np.finfo(np.float64).tiny
        unit = np.sqrt(variance + least)[:, None]
        shared = shared / unit
        consensus = shared.mean(axis=0) if reference is None else reference.consensus
        # Unequal scaling adds the direction of the consensus to the group level.
        k = self.n_directions + 1 if self.n_directions else self.n_directions
        return replace(
            self,
            consensus=consensus,
            group=shared - consensus,
            personal=self.personal / unit,
            n_directions=k,
            mean_variance=mean_variance,
        )

    def coordinates(self, spread: Float) -> tuple[Float, Float]:
        """Return positions of users in the strong directions of the group level, (n_users, k).

        Coordinates have the unit of scores; the strongest direction comes first. The second array,
        (k, n_features), has the weights of one unit of each coordinate.
        """
        lengths, axes = np.linalg.eigh(spread)
        positive = lengths > 1e-12 * max(lengths[-1], np.finfo(np.float64).tiny)
        lengths, axes = np.sqrt(lengths[positive]), axes[:, positive]
        moved = self.group @ (axes * lengths)
        values, vectors = np.linalg.eigh(moved.T @ moved)
        values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
        k = self._n_strong(values)
        if not k:
            return np.zeros((len(moved), 0)), np.zeros((0, len(spread)))
        # The sign of a direction is arbitrary; make its largest entry positive.
        turned = vectors[:, :k]
        turned = turned * np.sign(turned[np.abs(turned).argmax(axis=0), np.arange(k)])
        return np.asarray(moved @ turned), np.asarray((axes / lengths @ turned).T)

    def _n_strong(self, squares: Float) -> int:
        total = squares.sum()
        real = int((squares > 1e-12 * max(total, np.finfo(np.float64).tiny)).sum())
        if self.n_directions is not None:
            return min(self.n_directions, real)
        enough = 1 + int(np.searchsorted(np.cumsum(squares), _STRONG_SHARE * total))
        return min(enough, real, _MOST_DIRECTIONS)


def with_learned_columns(group: Float, personal: Float, weights: Float) -> tuple[Float, Float]:
    """Append columns for the weights of factors and the item effect to both levels."""
    none = np.zeros((len(weights), 1))
    return np.hstack([group, weights, none]), np.hstack([personal, np.zeros_like(weights), none])


def as_ranker(ranker: object) -> Any:
    """Return a fitted ranker (the best one of a search); raise TypeError for other objects."""
    return checked_ranker(ranker)._best_model


def score_variances(weights: Float, spread: Float) -> Float:
    """Return the variance over the items of the scores by each row of weights."""
    return np.asarray(np.maximum(np.einsum("nd,nd->n", weights @ spread, weights), 0.0))


@dataclass(frozen=True, eq=False)
class Population:
    """The users of a ranker with a group level, and their items and labels, if known."""

    ranker: Ranker
    items: Items | None = None
    labels: Annotations | None = None  # by default those kept in the ranker

    @cached_property
    def levels(self) -> WeightLevels:
        """The levels of the weights."""
        levels, items = WeightLevels.of_ranker(self.ranker), self.items
        if items is not None and len(items.feature_names) != len(levels.feature_names):
            own, given = len(levels.feature_names), len(items.feature_names)
            raise ValueError(
                f"The items have {given} features, but the ranker was fitted to {own}."
            )
        return levels

    @cached_property
    def known_labels(self) -> Annotations | None:
        """The given labels, or else those kept in the ranker."""
        stored: Annotations | None = as_ranker(self.ranker).training_annotations_
        return stored if self.labels is None else self.labels

    @cached_property
    def spread(self) -> Float:
        """The covariance of the items' features; without items, a diagonal matrix."""
        return np.diag(self.levels.scale**2) if self.items is None else self.items.spread

    @cached_property
    def normalised(self) -> WeightLevels:
        """The levels, with all users' scores scaled to about the same spread."""
        return self.levels.normalised(self.spread)

    @cached_property
    def coordinates(self) -> tuple[Float, Float]:
        """Positions of users, and the directions; see `WeightLevels.coordinates`."""
        return self.normalised.coordinates(self.spread)

    @property
    def verb(self) -> Verb:
        """The words of explanations for a positive label, such as "like"."""
        verb: Verb = as_ranker(self.ranker).verb
        return verb

    @cached_property
    def feature_words(self) -> tuple[str, ...]:
        """The features in words; without items, their names."""
        if self.items is None:
            return tuple(name.replace("_", " ") for name in self.levels.feature_names)
        return self.items.feature_words

    @property
    def binary(self) -> Bool:
        """Whether each feature has only values 0 and 1; False without items."""
        n_features = len(self.levels.feature_names)
        return np.zeros(n_features, dtype=np.bool_) if self.items is None else self.items.binary

    def named_by_features(self, added: Float, shared: Float, strength: Float) -> str:
        """Name a deviation from shared weights after its strongest features."""
        names = self.levels.feature_names
        return name_deviation(added, shared, strength, names, self.binary, self.verb)


def items_of(
    ranker: Ranker,
    annotations: Annotations | Items | None,
    rng: int | Generator = 0,
    texts: Mapping[Hashable, str] | None = None,
) -> Items | None:
    """Return the items of annotations (default: the ranker's), with the ranker's item names."""
    fitted = as_ranker(ranker)
    if isinstance(annotations, Items):
        items = annotations
        fitted.item_posteriors_of(items.ids)
    else:
        labels = fitted.training_annotations_ if annotations is None else annotations
        if labels is None:
            return None
        items = Items.of_annotations(labels, np.random.default_rng(rng))
        if (known := fitted.scorable_ids()) is not None:
            kept = lookup(items.ids, known, "items") >= 0
            rows, features = items.rows[kept], items.features[kept]
            items = replace(items, ids=items.ids[kept], rows=rows, features=features)
    texts = texts or items.texts or ranker.item_names or None
    return replace(items, texts=texts, verb=fitted.verb).with_learned(fitted)
