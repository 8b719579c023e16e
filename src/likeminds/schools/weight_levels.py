"""The levels of a ranker's weights, their shares in the scores, loners, and the population."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.special import ndtr
from sklearn.utils.validation import check_is_fitted

from likeminds._util.array_types import Bool, Float, IdArray
from likeminds._util.text_format import Verb
from likeminds.data.annotations import Annotations
from likeminds.metrics.paired import discoveries
from likeminds.mixed_model.item_posteriors import ItemPosteriors
from likeminds.rankers.capabilities import Capability
from likeminds.rankers.decomposed import GROUP_LIKE
from likeminds.rankers.ranker import Ranker
from likeminds.schools.items import Items, learned_names
from likeminds.schools.school_names import name_deviation

# Where the ranker does not say how many directions of the group level are strong: those with
# this share of its squares, and at most so many.
_STRONG_SHARE, _MOST_DIRECTIONS = 0.95, 10
# Scores with a standard deviation below this share of the mean one are not scaled up to it.
_UNDECIDED = 0.25
# The false discovery rate among loners if the personal level is exactly zero for no user.
_FALSE_LONERS = 0.05
# The standard deviation of a normal distribution over its median absolute deviation.
_NORMAL = 1.4826


@dataclass(frozen=True, eq=False)
class WeightLevels:
    """Weights of users as the sum of three levels."""

    users: IdArray
    feature_names: tuple[str, ...]
    consensus: Float  # (n_features,)
    group: Float  # (n_users, n_features), as personal
    personal: Float
    scale: Float  # the unit of each feature, as the ranker measured it; ones where it did not
    n_directions: int | None  # of the group level that are strong, where the ranker says so
    own: Bool | None  # who has a personal part, where it is exactly zero for the others
    mean_variance: float | None = None  # the mean variance of scores before they were scaled

    @classmethod
    def of_ranker(cls, ranker: object) -> "WeightLevels":
        """Return the levels of a fitted ranker; refuse one without a group level."""
        fitted = as_ranker(ranker)
        parts = fitted.parts_ or {}
        if not Capability.LEVELS.of(fitted):
            parts_words = f"; it has {', '.join(parts)}" if parts else ""
            raise TypeError(
                "Schools of thought are read from the group level, and this "
                f"{type(fitted).__name__} has none{parts_words}. Use ThreeLevelRanker, "
                "HierarchicalRanker, or a DecomposedRanker with a component called "
                f"{' or '.join(GROUP_LIKE)}."
            )
        exact = parts.get("personal", fitted.raw_personal_)
        differs = (fitted.coef_ != fitted.consensus_).any(axis=1)
        scale = fitted.scale_
        levels = cls(
            users=fitted.users_,
            feature_names=tuple(map(str, fitted.feature_names_)),
            consensus=fitted.consensus_,
            group=fitted.group_,
            personal=fitted.personal_,
            scale=np.ones(len(fitted.consensus_)) if scale is None else scale,
            n_directions=fitted.n_groups_,
            own=None if exact is None else exact.any(axis=1) & differs,
        )
        learned = fitted.item_posteriors()
        if learned is None:
            return levels
        weights = np.zeros((len(fitted.users_), 0))
        return levels._with_learned(
            learned, fitted.factor_weights_ if learned.n_factors else weights
        )

    def _with_learned(self, items: ItemPosteriors, weights: Float) -> "WeightLevels":
        """Return levels with learned columns: weights of factors belong to the group level."""
        spread = np.append(items.factors.std(axis=0), items.effects.std())
        group, personal = with_learned_columns(self.group, self.personal, weights)
        return replace(
            self,
            feature_names=self.feature_names + learned_names(items),
            consensus=np.concatenate([self.consensus, np.zeros(items.n_factors), [1.0]]),
            group=group,
            personal=personal,
            scale=np.concatenate([self.scale, np.where(spread > 0, spread, 1.0)]),
            n_directions=(self.n_directions or 0) + items.n_factors,
        )

    @cached_property
    def coef(self) -> Float:
        """The sum of the levels: (n_users, n_features)."""
        return np.asarray(self.consensus + self.group + self.personal)

    def normalised(self, spread: Float, reference: "WeightLevels | None" = None) -> "WeightLevels":
        """Return the levels with every user's scores scaled to about the same spread.

        Twice the weights give the same ranking, so users who are merely more decided are of the
        same school. Each user's consensus + group is divided by the standard deviation of its
        scores over items whose features have the covariance ``spread``, plus a little, so users
        without labels are not scaled up. The consensus is then the mean of the results, the group
        level the deviations from it; the personal level is divided by the same. New users take
        mean variance and consensus from the ``reference``.
        """
        shared = self.consensus + self.group
        variance = score_variances(shared, spread)
        mean_variance = None if reference is None else reference.mean_variance
        if mean_variance is None:
            mean_variance = float(variance.mean())
        unit = np.sqrt(variance + _UNDECIDED**2 * mean_variance + np.finfo(np.float64).tiny)[
            :, None
        ]
        shared = shared / unit
        consensus = shared.mean(axis=0) if reference is None else reference.consensus
        # Scaling by unequal lengths adds a direction to the group level: that of the consensus.
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

        Users are near each other when the group level moves their scores of the items alike;
        coordinates have the unit of the scores, the strongest direction first. The second array,
        (k, n_features), has the weights that one unit of each coordinate adds.
        """
        root, inverse = _roots(spread)
        moved = self.group @ root
        values, vectors = np.linalg.eigh(moved.T @ moved)
        values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
        k = self._n_strong(values)
        if not k:
            return np.zeros((len(moved), 0)), np.zeros((0, len(root)))
        # The sign of a direction is arbitrary: its largest entry is to be positive.
        turned = vectors[:, :k]
        turned = turned * np.sign(turned[np.abs(turned).argmax(axis=0), np.arange(k)])
        return np.asarray(moved @ turned), np.asarray((inverse @ turned).T)

    def _n_strong(self, squares: Float) -> int:
        total = squares.sum()
        real = int((squares > 1e-12 * max(total, np.finfo(np.float64).tiny)).sum())
        if self.n_directions is not None:
            return min(self.n_directions, real)
        enough = 1 + int(np.searchsorted(np.cumsum(squares), _STRONG_SHARE * total))
        return min(enough, real, _MOST_DIRECTIONS)


def with_learned_columns(group: Float, personal: Float, weights: Float) -> tuple[Float, Float]:
    """Return both levels with columns of the weights of factors, and of the item effect."""
    none = np.zeros((len(weights), 1))
    return np.hstack([group, weights, none]), np.hstack([personal, np.zeros_like(weights), none])


def as_ranker(ranker: object) -> Any:
    """Return a fitted ranker, out of the search that found it; refuse all else."""
    if not isinstance(ranker, Ranker):
        raise TypeError(f"Expected a ranker of this library, but got {type(ranker).__name__}.")
    check_is_fitted(ranker)
    return ranker._best_model


def _roots(spread: Float) -> tuple[Float, Float]:
    """Return R with R R' = spread, and its (pseudo-)inverse transposed."""
    values, vectors = np.linalg.eigh(spread)
    positive = values > 1e-12 * max(values[-1], np.finfo(np.float64).tiny)
    lengths = np.sqrt(values[positive])
    return vectors[:, positive] * lengths, vectors[:, positive] / lengths


def score_variances(weights: Float, spread: Float) -> Float:
    """Return the variance over the items of the scores that some weights give."""
    return np.asarray(np.maximum(np.einsum("nd,nd->n", weights @ spread, weights), 0.0))


def likeness(weights: Float, consensus: Float, spread: Float) -> Float:
    """Return the correlation over the items of each user's scores with the consensus's.

    1 is the same ranking, -1 the reverse. If only one of the two has variance, the
    correlation is taken as 0; where neither has, as 1.
    """
    own, shared = (np.sqrt(score_variances(w, spread)) for w in (weights, consensus[None]))
    size = own * shared
    together = weights @ (spread @ consensus) / np.where(size > 0, size, 1.0)
    return np.asarray(np.where(size > 0, together, own == shared), dtype=np.float64)


def variance_shares(levels: WeightLevels, spread: Float) -> Float:
    """Return the shares of the levels in the sum of their scores' variances, (n_users, 3)."""
    parts = np.column_stack(
        [
            np.repeat(score_variances(levels.consensus[None], spread), len(levels.users)),
            score_variances(levels.group, spread),
            score_variances(levels.personal, spread),
        ]
    )
    total = parts.sum(axis=1, keepdims=True)
    return np.asarray(np.where(total > 0, parts / np.where(total > 0, total, 1.0), [1.0, 0.0, 0.0]))


def loners(levels: WeightLevels, spread: Float) -> Bool:
    """Return whose personal level is not zero, or larger than chance would make it.

    If the personal level is exactly zero for most, those for whom it is not. Else the cube root
    of its variance is nearly normal for ordinary users (Wilson and Hilferty), with the median and
    the median absolute deviation as parameters, and outliers are found at a false discovery rate
    of 5 % (Benjamini and Hochberg).
    """
    if levels.own is not None:
        return levels.own
    size = score_variances(levels.personal, spread)
    if size.max(initial=0.0) <= 1e-12 * score_variances(levels.coef, spread).max(initial=0.0):
        return np.zeros(len(size), dtype=np.bool_)
    root = np.cbrt(size)
    middle = np.median(root)
    width = _NORMAL * np.median(np.abs(root - middle))
    if not width:
        return np.asarray(root > middle)
    return discoveries(ndtr(-(root - middle) / width), _FALSE_LONERS)


@dataclass(frozen=True, eq=False)
class Population:
    """The users of a ranker with a group level, and their items and labels, where known."""

    ranker: Ranker
    items: Items | None = None
    labels: Annotations | None = None  # by default those that the ranker has kept

    @cached_property
    def levels(self) -> WeightLevels:
        """The levels of the weights."""
        levels, items = WeightLevels.of_ranker(self.ranker), self.items
        if items is not None and len(items.feature_names) != len(levels.feature_names):
            raise ValueError(
                f"The items have {len(items.feature_names)} features, but the ranker was fitted "
                f"to {len(levels.feature_names)}."
            )
        return levels

    @cached_property
    def known_labels(self) -> Annotations | None:
        """The labels that were given, or else those that the ranker has kept."""
        return labels_of(self.ranker, self.labels)

    @cached_property
    def spread(self) -> Float:
        """The covariance of the items' features: without items, as if independent."""
        return np.diag(self.levels.scale**2) if self.items is None else self.items.spread

    @cached_property
    def normalised(self) -> WeightLevels:
        """The levels, all users being equally decided."""
        return self.levels.normalised(self.spread)

    @cached_property
    def coordinates(self) -> tuple[Float, Float]:
        """Positions of users, and the directions: see `WeightLevels.coordinates`."""
        return self.normalised.coordinates(self.spread)

    @property
    def verb(self) -> Verb:
        """The verb of a positive label."""
        verb: Verb = as_ranker(self.ranker).verb
        return verb

    @cached_property
    def feature_words(self) -> tuple[str, ...]:
        """The features in words: without items, their names."""
        if self.items is None:
            return tuple(name.replace("_", " ") for name in self.levels.feature_names)
        return self.items.feature_words

    @property
    def binary(self) -> Bool:
        """Which features are yes or no."""
        no = np.zeros(len(self.levels.feature_names), dtype=np.bool_)
        return no if self.items is None else self.items.binary

    def named_by_features(self, added: Float, shared: Float, strength: Float) -> str:
        """Name what some weights add to others after the strongest features."""
        names = self.levels.feature_names
        return name_deviation(added, shared, strength, names, self.binary, self.verb)


def items_of(
    ranker: Ranker,
    annotations: Annotations | Items | None,
    rng: int | Generator = 0,
    texts: Mapping[Hashable, str] | None = None,
) -> Items | None:
    """Return the items of annotations, by default the ranker's, with texts or names it keeps."""
    fitted = as_ranker(ranker)
    if isinstance(annotations, Items):
        items = annotations
        fitted.item_posteriors_of(items.ids)
    else:
        labels = labels_of(ranker, annotations)
        if labels is None:
            return None
        items = Items.of_annotations(labels, np.random.default_rng(rng))
        items = items.among(fitted.scorable_ids())
    texts = texts or items.texts or ranker.item_names or None
    return replace(items, texts=texts, verb=fitted.verb).with_learned(fitted)


def labels_of(ranker: Ranker, annotations: Annotations | Items | None) -> Annotations | None:
    """Return the labels that were given, or else those that the ranker has kept."""
    if isinstance(annotations, Annotations):
        return annotations
    stored: Annotations | None = as_ranker(ranker).training_annotations_
    return stored
