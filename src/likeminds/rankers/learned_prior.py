"""What a ranker with a learned prior holds once it is fitted, and what can be asked of it."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likeminds._support.arrays import Float, FloatArray, Index
from likeminds.data.annotations import Annotations
from likeminds.prior.beliefs import Beliefs, posterior_of
from likeminds.prior.coordinates import Coordinates
from likeminds.prior.crowd import Crowd
from likeminds.prior.learning import Learned
from likeminds.prior.losses import PRIOR_LOSSES, PriorLoss
from likeminds.prior.prior import Prior
from likeminds.prior.traits import Traits
from likeminds.rankers import newcomers
from likeminds.rankers.fitting import GrowingRanker


class PriorRanker(GrowingRanker):
    """Base: from the prior and everybody's posterior to fitted attributes, and back to answers."""

    loss: str | PriorLoss
    covariance_rank: int
    loss_: str
    positive_share_: float
    crowd_: Crowd
    scale_: Float
    n_groups_: int
    information_: FloatArray

    newcomer = newcomers.newcomer

    def decision_function(
        self, X: ArrayLike | Annotations, users: Iterable[Hashable] | None = None
    ) -> Float:
        """Score each row for its person: the higher, the more the item is to their liking.

        People not seen in training get the consensus; or what goes with their covariates, where
        annotations have these and the ranker has learned from such.

        Parameters
        ----------
        X, users
            As in `ThreeLevelRanker.decision_function`.

        Returns
        -------
        array of shape (n_rows,)
        """
        scores = super().decision_function(X, users)
        if not isinstance(X, Annotations) or X.people is None or self.crowd_.traits is None:
            return scores
        rows, people = self._rows_and_people(X, None)
        strange = people < 0
        if strange.any():
            shifts = self.crowd_.shifts(X.people, X.user_ids)
            assert shifts is not None
            added = self.crowd_.coordinates.weights(shifts)[X.user_codes[strange]]
            scores[strange] += np.einsum("nd,nd->n", rows[strange], added)
        return scores

    def standard_error(
        self, X: ArrayLike | Annotations, users: Iterable[Hashable] | None = None
    ) -> Float:
        """Return the standard error of each row's score, as seen from the average item's.

        Parameters
        ----------
        X, users
            As in `decision_function`. People not seen in training are as uncertain as the
            prior.

        Returns
        -------
        array of shape (n_rows,)
        """
        rows, people = self._rows_and_people(X, users)
        beliefs = self._beliefs()
        return beliefs.deviation(rows - beliefs.coordinates.origin, people)

    def probability_above(
        self, a: ArrayLike, b: ArrayLike, users: Iterable[Hashable] | None = None
    ) -> Float:
        """Return the probability that item ``a`` of each row ranks above item ``b``.

        It is about scores, not labels: see `probability_preferred`.

        Parameters
        ----------
        a, b : arrays of shape (n_rows, n_features)
            The items.
        users : array of shape (n_rows,), optional
            For whom, as in `decision_function`.

        Returns
        -------
        array of shape (n_rows,)

        Examples
        --------
        >>> from likeminds import HierarchicalRanker, load_electricity
        >>> ranker = HierarchicalRanker(n_groups=1).fit(load_electricity())
        >>> cheap, dear = [[7.0, 1, 1, 0, 0, 0]], [[9.0, 1, 1, 0, 0, 0]]
        >>> bool(ranker.probability_above(cheap, dear, ["household-001"])[0] > 0.5)
        True
        """
        return self._beliefs().chance_above(*self._differences(a, b, users))

    def probability_preferred(
        self, a: ArrayLike, b: ArrayLike, users: Iterable[Hashable] | None = None
    ) -> Float:
        """Return the probability that item ``a`` of each row gets the better label of the two.

        Labels are not certain even where scores are: somebody who ranks ``a`` above ``b`` for
        sure may still say yes to ``b`` only. What is predicted here is which of the two is
        chosen, or gets the positive label where one of them does; `probability_above` is about
        scores.

        Parameters
        ----------
        a, b, users
            As in `probability_above`.

        Returns
        -------
        array of shape (n_rows,)
        """
        return self._beliefs().chance_preferred(*self._differences(a, b, users))

    def rank_interval(
        self, items: ArrayLike, user: Hashable, level: float = 0.9
    ) -> tuple[Index, Index]:
        """Return the lowest and the highest rank that each item may have for a person.

        Parameters
        ----------
        items : array of shape (n_items, n_features)
            What is ranked.
        user : id
            For whom.
        level : float, default=0.9
            The probability that an item's rank lies in its interval.

        Returns
        -------
        low, high : arrays of shape (n_items,)
            Ranks; 1 is best.
        """
        rows, people = self._rows_and_people(items, [user] * len(np.asarray(items)))
        return self._beliefs().ranks(rows, int(people[0]), level)

    def next_items(self, items: ArrayLike, user: Hashable, n: int = 1) -> Index:
        """Return which items to ask a person about next: those that tell most about the ranking.

        Parameters
        ----------
        items : array of shape (n_items, n_features)
            What can be asked about.
        user : id
            Whom to ask; of somebody new, only the prior is known. With labels at hand, use
            ``newcomer(X, y).next_items(items)``.
        n : int, default=1
            How many.

        Returns
        -------
        array of shape (n,)
            Positions among the items, the most telling first.
        """
        rows, people = self._rows_and_people(items, [user] * len(np.asarray(items)))
        return self._beliefs().most_telling(rows, int(people[0]), n)

    def _differences(
        self, a: ArrayLike, b: ArrayLike, users: Iterable[Hashable] | None
    ) -> tuple[FloatArray, Index]:
        first, people = self._rows_and_people(a, users)
        second, _ = self._rows_and_people(b, users)
        if first.shape != second.shape:
            raise ValueError(f"a has shape {first.shape}, but b has shape {second.shape}.")
        return first - second, people

    def _set_prior(self, learned: Learned, coordinates: Coordinates, traits: Traits | None) -> None:
        model = learned.model
        wider = model.prior.predictive(learned.unsure, learned.n_groups)
        if traits is not None:
            wider = Prior.of_covariance(wider.mean, wider.covariance + traits.unsure)
        self.crowd_ = Crowd(coordinates, model.prior, model.likelihood, wider, traits)
        self.scale_ = coordinates.scale
        self.objective_trace_ = np.array(learned.trace)
        self.objective_ = learned.trace[-1]
        self.n_iter_ = len(learned.trace) - 1
        self.converged_ = learned.converged
        self.criterion_ = np.array(learned.criterion)
        self.n_groups_ = learned.n_groups

    def _set_levels(self, points: Float) -> None:
        prior, coordinates = self.crowd_.everybody, self.crowd_.coordinates
        n_weights = coordinates.n_weights
        directions = prior.directions(self.n_groups_, n_weights)
        deviation = points[:, :n_weights] - prior.mean[:n_weights]
        group = deviation @ directions @ directions.T
        self.consensus_ = coordinates.weights(prior.mean)
        self.group_ = coordinates.weights(group)
        self.personal_ = coordinates.weights(deviation - group)
        self.coef_ = self.consensus_ + self.group_ + self.personal_
        self.directions_ = coordinates.weights(directions.T)
        at_origin = points[:, n_weights:].sum(axis=1)
        self.intercept_ = at_origin
        if coordinates.intercept:
            self.intercept_ = at_origin - self.coef_ @ coordinates.origin
        spread = np.eye(n_weights) if coordinates.spread is None else coordinates.spread
        covariance = prior.covariance[:n_weights, :n_weights]
        self.explained_ = _explained(covariance, directions, spread)
        self.explained_by_people_ = _explained_by(self.crowd_.traits, covariance, spread)

    def _newcomers(self) -> "PriorNewcomers":
        loss = PRIOR_LOSSES[self.loss_] if isinstance(self.loss, str) else self.loss
        return PriorNewcomers(self.crowd_, loss, self.positive_share_, self.covariance_rank)

    def _beliefs(self) -> Beliefs:
        """Return what is believed about everybody seen in training."""
        points = self.crowd_.coordinates.points(self.coef_, self.intercept_)
        return Beliefs.given(self.crowd_, self.users_, points, self.information_)


@dataclass(frozen=True)
class PriorNewcomers:
    """Newcomers to a ranker with a learned prior.

    Attributes
    ----------
    crowd : Crowd
        What people are like.
    loss : PriorLoss
        What newcomers' labels cost.
    positive_share : float
        Of the labels in training.
    rank : int
        How many directions of the posterior covariance are kept.
    """

    crowd: Crowd
    loss: PriorLoss
    positive_share: float
    rank: int

    def fold_in(self, said: Annotations) -> tuple[Float, NDArray[np.float32]]:
        """Return everybody's mode and matrix K; see `Beliefs`."""
        tasks, crowd = self.loss.of_newcomers(said, self.crowd, self.positive_share)
        pulls = np.zeros(tasks.n_places)
        shifts = crowd.shifts(said.people, said.user_ids)
        points, known = posterior_of(
            tasks, said.n_people, crowd, pulls=pulls, rank=self.rank, shifts=shifts
        )
        # Coordinates that only newcomers have served their purpose: scores need none of them.
        size = self.crowd.coordinates.size
        return points[:, :size], known[:, :, :size]


def _explained(covariance: Float, directions: Float, spread: Float) -> dict[str, float]:
    """Return the shares of the variance of scores along the directions, and across them."""
    projected = directions @ (directions.T @ covariance @ directions) @ directions.T
    whole = float((spread * covariance).sum())
    share = float((spread * projected).sum()) / whole if whole > 0 else 0.0
    return {"group": share, "personal": 1.0 - share}


def _explained_by(traits: Traits | None, covariance: Float, spread: Float) -> dict[str, float]:
    """Return the share of the variance of scores that goes with each covariate of people."""
    if traits is None:
        return {}
    whole, size = float((spread * covariance).sum()), len(covariance)
    return {
        name: float((spread * traits.covariance_by(name)[:size, :size]).sum()) / whole
        for name in traits.encoder.names
    }
