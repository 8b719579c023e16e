"""What a ranker with a learned prior holds once it is fitted, and what can be asked of it."""

from collections.abc import Hashable, Iterable

import numpy as np
from numpy.typing import ArrayLike

from likeminds._support.arrays import Float, FloatArray, Index
from likeminds.data.annotations import Annotations
from likeminds.prior.beliefs import Beliefs
from likeminds.prior.coordinates import Coordinates
from likeminds.prior.crowd import Crowd
from likeminds.prior.learning import Learned
from likeminds.prior.likelihoods import LIKELIHOODS, Regression
from likeminds.prior.prior import Prior
from likeminds.rankers.newcomers import Welcoming


class PriorRanker(Welcoming):
    """Base: from the prior and everybody's posterior to fitted attributes, and back to answers."""

    loss: str
    loss_: str
    n_groups_: int
    information_: FloatArray

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
        first, people = self._rows_and_people(a, users)
        second, _ = self._rows_and_people(b, users)
        if first.shape != second.shape:
            raise ValueError(f"a has shape {first.shape}, but b has shape {second.shape}.")
        return self._beliefs().chance_above(first - second, people)

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

    def _set_prior(self, learned: Learned, coordinates: Coordinates) -> None:
        prior, likelihood = learned.model.prior, learned.model.likelihood
        self.prior_mean_ = prior.mean
        self.prior_loadings_ = prior.loadings
        self.prior_residual_ = prior.residual
        self.ridge_ = learned.model.ridge
        self.precision_ = likelihood.precision if isinstance(likelihood, Regression) else 1.0
        self.origin_ = coordinates.origin
        self.scale_ = coordinates.scale
        size = len(self.scale_)
        self.basis_ = np.eye(size) if coordinates.basis is None else coordinates.basis
        self.item_spread_ = coordinates.spread
        self.objective_trace_ = np.array(learned.trace)
        self.objective_ = learned.trace[-1]
        self.n_iter_ = len(learned.trace) - 1
        self.converged_ = learned.converged
        self.criterion_ = np.array(learned.criterion)
        self.n_groups_ = learned.n_groups
        self.prior_unsure_ = learned.unsure

    def _set_levels(self, points: Float, prior: Prior, coordinates: Coordinates) -> None:
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
        covariance = prior.covariance[:n_weights, :n_weights]
        projected = directions @ (directions.T @ covariance @ directions) @ directions.T
        whole = float((coordinates.spread * covariance).sum())
        share = float((coordinates.spread * projected).sum()) / whole if whole > 0 else 0.0
        self.explained_ = {"group": share, "personal": 1.0 - share}

    def _loss(self) -> str:
        """Return the loss that was used; in files of the first format there was no choice."""
        return str(getattr(self, "loss_", self.loss))

    def _crowd(self) -> Crowd:
        """Put together again what the fitted attributes hold in pieces."""
        loss = self._loss()
        intercept = loss == "logistic"
        square = self.basis_.shape[0] == self.basis_.shape[1]
        basis = None if square else self.basis_
        coordinates = Coordinates(self.origin_, self.scale_, basis, self.item_spread_, intercept)
        prior = Prior(self.prior_mean_, self.prior_loadings_, self.prior_residual_)
        likelihood = LIKELIHOODS[loss]
        if isinstance(likelihood, Regression):
            likelihood = Regression(self.precision_)
        predictive = prior
        if hasattr(self, "prior_unsure_"):  # files of the first format have nothing of the kind
            predictive = prior.predictive(self.prior_unsure_, self.n_groups_)
        return Crowd(coordinates, prior, likelihood, predictive)

    def _beliefs(self) -> Beliefs:
        """Return what is believed about everybody seen in training."""
        crowd = self._crowd()
        coordinates = crowd.coordinates
        points = np.empty((len(self.users_), coordinates.size))
        scaled = self.coef_ * self.scale_
        basis = coordinates.basis
        points[:, : coordinates.n_weights] = scaled if basis is None else scaled @ basis
        if coordinates.intercept:
            points[:, -1] = self.intercept_ + self.coef_ @ self.origin_
        known: FloatArray = self.information_
        return Beliefs(self.users_, points, known, coordinates, crowd.predictive, crowd.likelihood)
