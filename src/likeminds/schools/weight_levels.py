"""The levels of a ranker's weights, whichever kind of ranker it is."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from likeminds._util.array_types import Bool, Float, IdArray
from likeminds.mixed_model.item_posteriors import ItemPosteriors as Learned
from likeminds.rankers.capabilities import Capability
from likeminds.rankers.decomposed import GROUP_LIKE
from likeminds.rankers.ranker import Ranker
from likeminds.schools.items import Items, learned_names

# Where the ranker does not say how many directions of the group level are strong: those with
# this share of its squares, and at most so many.
_STRONG_SHARE, _MOST_DIRECTIONS = 0.95, 10
# Whose scores spread less than this share of the usual is not blown up to the same spread.
_UNDECIDED = 0.25


@dataclass(frozen=True, eq=False)
class WeightLevels:
    """Everybody's weights as the sum of three levels.

    Attributes
    ----------
    users : array of shape (n_users,)
        Who they are.
    feature_names : tuple of str
        What the weights belong to.
    consensus : array of shape (n_features,)
        What all agree on.
    group, personal : arrays of shape (n_users, n_features)
        What a person's school wants differently, and what is the person's own.
    scale : array of shape (n_features,)
        The unit of each feature, as the ranker measured it; ones where it did not.
    n_directions : int, optional
        How many directions of the group level are strong, where the ranker says so.
    own : array of shape (n_users,), optional
        Who has a personal part, where it is exactly zero for the others.
    usual : float, optional
        The mean variance of people's scores before they were made equally decided.
    """

    users: IdArray
    feature_names: tuple[str, ...]
    consensus: Float
    group: Float
    personal: Float
    scale: Float
    n_directions: int | None
    own: Bool | None
    usual: float | None = None

    @classmethod
    def of_ranker(cls, ranker: Any) -> "WeightLevels":
        """Return the levels of a fitted ranker; refuse one without a group level.

        Examples
        --------
        >>> from likeminds import ThreeLevelRanker, load_electricity
        >>> levels = WeightLevels.of_ranker(ThreeLevelRanker().fit(load_electricity()))
        >>> levels.group.shape, levels.n_directions
        ((361, 6), 2)
        """
        ranker = as_ranker(ranker)
        parts = ranker._learned("parts_") or {}
        if not Capability.LEVELS.of(ranker):
            there = f"; it has {', '.join(parts)}" if parts else ""
            raise TypeError(
                "Schools of thought are read from the group level, and this "
                f"{type(ranker).__name__} has none{there}. Use ThreeLevelRanker, "
                "HierarchicalRanker, or a DecomposedRanker with a component called "
                f"{' or '.join(GROUP_LIKE)}."
            )
        exact = parts.get("personal", ranker._learned("raw_personal_"))
        differs = (ranker.coef_ != ranker.consensus_).any(axis=1)
        scale = ranker._learned("scale_")
        levels = cls(
            users=ranker.users_,
            feature_names=tuple(map(str, ranker.feature_names_)),
            consensus=ranker.consensus_,
            group=ranker.group_,
            personal=ranker.personal_,
            scale=np.ones(len(ranker.consensus_)) if scale is None else scale,
            n_directions=ranker._learned("n_groups_"),
            own=None if exact is None else exact.any(axis=1) & differs,
        )
        learned = ranker.learned_items()
        if learned is None:
            return levels
        weights = np.zeros((len(ranker.users_), 0))
        return levels._with_learned(
            learned, ranker.factor_weights_ if learned.n_factors else weights
        )

    def _with_learned(self, items: Learned, weights: Float) -> "WeightLevels":
        """Return levels that know learned columns: people's weights of factors are the group's."""
        none = np.zeros((len(weights), 1))
        spread = np.append(items.factors.std(axis=0), items.effects.std())
        return replace(
            self,
            feature_names=self.feature_names + learned_names(items),
            consensus=np.concatenate([self.consensus, np.zeros(items.n_factors), [1.0]]),
            group=np.hstack([self.group, weights, none]),
            personal=np.hstack([self.personal, np.zeros_like(weights), none]),
            scale=np.concatenate([self.scale, np.where(spread > 0, spread, 1.0)]),
            n_directions=(self.n_directions or 0) + items.n_factors,
        )

    @cached_property
    def coef(self) -> Float:
        """Everybody's weights, the sum of the levels: (n_users, n_features)."""
        return np.asarray(self.consensus + self.group + self.personal)

    def spread_over(self, items: Items | None) -> Float:
        """Return the covariance of the items' features: without items, as if independent."""
        return np.diag(self.scale**2) if items is None else items.spread

    def words_over(self, items: Items | None) -> tuple[str, ...]:
        """Return what the features are to people: without items, their names."""
        if items is None:
            return tuple(name.replace("_", " ") for name in self.feature_names)
        return items.feature_words

    def alike(self, spread: Float, crowd: "WeightLevels | None" = None) -> "WeightLevels":
        """Return the levels with everybody's scores scaled to about the same spread.

        Twice the weights give the same ranking: somebody who is merely more decided is of the
        same school. So everybody's consensus + group is divided by the spread of its scores
        over the items, with a little more, lest people about whom nothing is known grow large.
        The consensus is then the mean of the results, the group level what differs from it; the
        personal level is divided by the same.

        Parameters
        ----------
        spread : array of shape (n_features, n_features)
            The covariance of the items' features.
        crowd : WeightLevels, optional
            The same of people that these ones join: what is little, and the consensus, are theirs.
        """
        usual = None if crowd is None else crowd.usual
        shared = self.consensus + self.group
        variance = np.einsum("nd,nd->n", shared @ spread, shared)
        if usual is None:
            usual = float(variance.mean())
        floor = _UNDECIDED**2 * usual + np.finfo(np.float64).tiny
        unit = np.sqrt(np.maximum(variance, 0.0) + floor)[:, None]
        shared = shared / unit
        consensus = shared.mean(axis=0) if crowd is None else crowd.consensus
        # Scaling by unequal lengths adds a direction to the group level: that of the consensus.
        k = self.n_directions + 1 if self.n_directions else self.n_directions
        return replace(
            self,
            consensus=consensus,
            group=shared - consensus,
            personal=self.personal / unit,
            n_directions=k,
            usual=usual,
        )

    def coordinates(self, spread: Float) -> tuple[Float, Float]:
        """Return where people stand in the strong directions of the group level.

        People are near each other when the group level moves their scores of the items alike.

        Parameters
        ----------
        spread : array of shape (n_features, n_features)
            The covariance of the items' features.

        Returns
        -------
        coordinates : array of shape (n_users, k)
            Differences of scores, in the unit of the scores, strongest direction first.
        directions : array of shape (k, n_features)
            The weights that one unit of each coordinate adds.
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


def as_ranker(ranker: Any) -> Any:
    """Return a fitted ranker, out of the search that found it; refuse all else."""
    if not isinstance(ranker, Ranker):
        raise TypeError(f"Expected a ranker of this library, but got {type(ranker).__name__}.")
    check_is_fitted(ranker)
    return ranker._best_model


def _roots(spread: Float) -> tuple[Float, Float]:
    """Return R with R R' = spread, and its (pseudo-)inverse transposed."""
    values, vectors = np.linalg.eigh(spread)
    kept = values > 1e-12 * max(values[-1], np.finfo(np.float64).tiny)
    lengths = np.sqrt(values[kept])
    return vectors[:, kept] * lengths, vectors[:, kept] / lengths
