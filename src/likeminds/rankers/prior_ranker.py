"""Base class of rankers with a learned prior: fitted attributes, scores and uncertainties."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from likeminds._util.array_types import Float, FloatArray, IdArray, Index
from likeminds._util.map_reduce import of_rows
from likeminds._util.per_user_arrays import row_dots
from likeminds.choice_models.specification import Specification
from likeminds.data.annotations import Annotations
from likeminds.mixed_model.design import Design, PredictionRows
from likeminds.mixed_model.extensions.covariate_effects import CovariateEffects
from likeminds.mixed_model.gaussian_prior import ItemPosteriors
from likeminds.mixed_model.losses import ALL_LOSSES, PriorLoss
from likeminds.mixed_model.new_posteriors import NewUserPosteriors
from likeminds.mixed_model.optimisers import PriorFit
from likeminds.mixed_model.posterior import ItemsToRank, Posterior, features_and_ids
from likeminds.mixed_model.user_posteriors import FittedPrior
from likeminds.rankers import choice_reporting, newcomers, probabilities
from likeminds.rankers.capabilities import with_consensus
from likeminds.rankers.item_table import find_user
from likeminds.rankers.ranker import Ranker
from likeminds.rankers.validation import (
    check_width,
    find_users,
    refuse_unknown_users,
    split_user_column,
    user_positions,
)
from likeminds.solvers.solver import Callback

# Attributes computed from all users' points.
_WEIGHTS = ("coef_", "group_", "personal_")
# Rows of wide features per block of scores.
_ROWS_AT_ONCE = 1 << 10


class PriorRanker(Ranker):
    """Base class of rankers with a learned prior: scores and standard errors by posteriors."""

    n_groups: int | str
    loss: str | PriorLoss
    item_effects: bool | str
    n_item_factors: int | str
    covariance: str
    fixed: Sequence[str | int] | None
    signs: Mapping[str | int, int] | None
    distributions: Mapping[str | int, str] | None
    draws: int | str
    consensus: ArrayLike | None
    wide: bool | str
    standardize: bool
    covariance_rank: int
    tol: float
    max_iter: int
    callback: Callback | None

    takes_updates = takes_newcomers = has_part_worths = has_standard_errors = True
    _has_steps = True

    loss_: str
    wide_: bool
    grade_scores_: dict[str, float]
    final_steps_: list[str]
    covariance_: str
    intercept_: Float
    positive_share_: float
    prior_: FittedPrior
    scale_: Float
    n_groups_: int
    information_: FloatArray
    group_: Float
    personal_: Float

    newcomer = newcomers.newcomer
    new_items = newcomers.new_items
    predict = probabilities.predict
    predict_grades = probabilities.predict_grades
    predict_proba = probabilities.predict_proba
    probability_above = probabilities.probability_above
    probability_preferred = probabilities.probability_preferred
    probability_tied = probabilities.probability_tied
    log_likelihood = choice_reporting.log_likelihood
    summary = choice_reporting.summary
    wtp = choice_reporting.wtp
    shares = choice_reporting.shares
    elasticities = choice_reporting.elasticities

    def decision_function(
        self,
        X: ArrayLike | Annotations,
        users: Iterable[Hashable] | None = None,
        items: Iterable[Hashable] | None = None,
    ) -> Float:
        """Score each row for its user, as in `ThreeLevelRanker.decision_function`.

        New users with covariates are scored by their prior mean, if the ranker was fitted with
        covariates. ``unknown`` applies to other new users.
        """
        effects = self.prior_.covariate_effects
        if not isinstance(X, Annotations) or X.user_features is None or effects is None:
            return super().decision_function(X, users, items)
        is_new = find_users(self, X.users) < 0
        shifts = self.prior_.shifts(X.user_features, X.user_ids)
        assert shifts is not None
        if self.unknown == "error":
            described = np.any(shifts != 0.0, axis=1)[X.user_codes]
            refuse_unknown_users(X.users, is_new & ~described)
        ids, known = self._item_ids(X, items, X.X), self.prior_.items
        scores = super(PriorRanker, with_consensus(self)).decision_function(X, users, items)
        if is_new.any():
            added = self.prior_.design.weights(shifts)[X.user_codes[is_new]]
            scores[is_new] += np.einsum("nd,nd->n", X.X[is_new], added)
            if known is not None and ids is not None:
                v = shifts[X.user_codes[is_new], self.prior_.design.size :]
                scores[is_new] += row_dots(known.factors_of(ids[is_new]), v)
        return np.asarray(scores)

    def item_posteriors(self) -> ItemPosteriors | None:
        """Return the posteriors of item effects; None without item effects."""
        return self.prior_.items

    def standard_error(
        self,
        X: ArrayLike | Annotations,
        users: Iterable[Hashable] | None = None,
        items: Iterable[Hashable] | None = None,
    ) -> Float:
        """Return the standard error of each row's score, relative to the average item.

        Parameters
        ----------
        X, users, items
            As in `decision_function`. With ``unknown="consensus"``, new users have the variance of
            the prior.

        Returns
        -------
        array of shape (n_rows,)
        """
        posterior, targets, places, _ = probabilities.prediction_rows(self, X, users, items)
        return posterior.deviation(targets, places)

    def rank_interval(
        self, user: Hashable, items: ItemsToRank, level: float = 0.9
    ) -> tuple[Index, Index]:
        """Return an interval of the rank of each item for a user.

        Parameters
        ----------
        user : id
            The user.
        items : mapping to features, array of shape (n_items, n_features), or Annotations
            The items; for `Annotations`, the item of each row.
        level : float, default=0.9
            The probability that an item's rank lies in its interval.

        Returns
        -------
        low, high : arrays of shape (n_items,)
            Ranks; 1 is best.
        """
        posterior, targets, place = self._targets_for(items, user)
        return posterior.ranks(targets, place, level)

    def next_items(self, user: Hashable, items: ItemsToRank, n: int = 1) -> Index:
        """Select the items whose labels would be most informative about a user (active learning).

        Parameters
        ----------
        user : id
            The user; for new users, call ``newcomer(X, y).next_items(items)``.
        items : mapping to features, array of shape (n_items, n_features), or Annotations
            The candidates; for `Annotations`, the item of each row.
        n : int, default=1
            The number of items.

        Returns
        -------
        array of shape (n,)
            Positions of the items, the most informative first.
        """
        posterior, candidates, place = self._targets_for(items, user)
        return posterior.most_informative(candidates, place, n)

    def _targets_for(
        self, items: ItemsToRank, user: Hashable
    ) -> tuple[Posterior, PredictionRows, int]:
        """Return the posterior of a user, items as rows, and the user's position."""
        check_is_fitted(self)
        given, ids = features_and_ids(items)
        if isinstance(given, Annotations):
            check_width(self, given)
            rows = given.X
        else:
            rows = split_user_column(self, given)[0]
        posterior, users = self._posterior_of(user_positions(self, [user]))
        targets = posterior.prediction_rows(rows, self._item_ids(given, ids, rows))
        return posterior, targets, int(users[0])

    def _set_prior(
        self, learned: PriorFit, coordinates: Design, traits: CovariateEffects | None
    ) -> None:
        model = learned.model
        wider = model.prior.predictive(
            learned.mean_covariance, learned.n_groups, learned.mean_variance_beyond
        )
        if traits is not None:
            wider = wider.widened(traits.posterior_covariance)
        self.prior_ = FittedPrior(
            coordinates, model.prior, model.likelihood, wider, traits, learned.items
        )
        self.scale_ = coordinates.scale
        self.objective_trace_ = np.array(learned.trace)
        self.objective_ = learned.trace[-1]
        self.n_iter_ = len(learned.trace) - 1
        self.converged_ = learned.converged
        self.criterion_ = np.array(learned.criterion)
        self.sampling_ = learned.sampling
        self.n_groups_ = learned.n_groups
        self.covariance_ = learned.structure.kind

    def _set_levels(self, points: Float) -> None:
        prior, coordinates = self.prior_.marginal, self.prior_.design
        n_weights = coordinates.n_weights
        directions = prior.directions(self.n_groups_, n_weights)
        self.consensus_ = coordinates.weights(prior.mean)
        for name in ("points_", *_WEIGHTS):  # values of an earlier fit
            self.__dict__.pop(name, None)
        if coordinates.beyond:
            self.points_ = points
        else:
            self._set_weights(points)
        self.directions_ = coordinates.weights(directions.T)
        self.factor_weights_ = points[:, coordinates.size :]
        at_origin = points[:, n_weights : coordinates.size].sum(axis=1)
        self.intercept_ = at_origin
        if coordinates.intercept and coordinates.beyond:
            from_origin = coordinates.differences(coordinates.origin[None])[0]
            self.intercept_ = at_origin - points @ from_origin
        elif coordinates.intercept:
            self.intercept_ = at_origin - self.coef_ @ coordinates.origin
        spread = np.eye(n_weights) if coordinates.spread is None else coordinates.spread
        covariance = prior.covariance[:n_weights, :n_weights]
        beyond = prior.beyond * coordinates.beyond
        self.explained_ = _explained(covariance, directions, spread, beyond)
        self.explained_by_users_ = self.prior_.explained_by_covariates

    def _set_weights(self, points: Float) -> None:
        self.group_, self.personal_ = self.prior_.levels(points, self.n_groups_)
        self.coef_ = self.consensus_ + self.group_ + self.personal_

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            # Weights of wide features are computed from points on first use.
            if name in _WEIGHTS and "points_" in self._fitted_names():
                self._set_weights(self.points_)
                return self.__dict__[name]
            return super().__getattr__(name)

    def _fitted_names(self) -> list[str]:
        """Return the names of the fitted attributes, without those computed from others."""
        names = super()._fitted_names()
        return [n for n in names if n not in _WEIGHTS] if "points_" in names else names

    @property
    def scores_by_weights(self) -> bool:
        """False for wide features, whose scores are points times coordinates."""
        return self.points_ is None

    def _scores(self, rows: FloatArray, users: Index, items: IdArray | None) -> Float:
        """Return scores; for wide features, from coordinates instead of users' weights."""
        points = self.points_
        if points is None:
            return super()._scores(rows, users, items)
        fitted_prior = self.prior_

        def score(some: slice) -> Float:
            own = points[users[some]]
            own[users[some] < 0] = fitted_prior.prior.mean
            return row_dots(fitted_prior.design.differences(rows[some]), own)

        return of_rows(score, len(rows), _ROWS_AT_ONCE)

    @property
    def n_item_factors_(self) -> int:
        """The number of learned factors of items."""
        return 0 if self.prior_.items is None else self.prior_.items.n_factors

    @property
    def items_(self) -> IdArray:
        """The items with effects."""
        return self._items().ids

    @property
    def item_effect_(self) -> Float:
        """The effect b_j of each item on the scores of all users, beyond its features."""
        return self._items().effects

    @property
    def item_effect_error_(self) -> Float:
        """The posterior standard deviation of each item's effect."""
        return np.asarray(np.sqrt(self._items().effect_variance))

    @property
    def item_factors_(self) -> Float:
        """The learned factors of items, shape (n_items, n_item_factors_)."""
        return self._items().factors

    def _items(self) -> ItemPosteriors:
        if self.prior_.items is None:
            raise AttributeError("This model has no item effects (item_effects_ is False).")
        return self.prior_.items

    @property
    def has_levels(self) -> bool:
        """Whether the ranker is fitted (it then has levels)."""
        return bool(self._fitted_names())

    def _specification(self) -> Specification:
        """Return the constraints on weights, and the number of draws."""
        return Specification.read(
            self.feature_names_, self.fixed, self.signs, self.distributions, self.draws
        )

    def _simulation(self) -> Specification | None:
        """Return the specification if the likelihood is simulated, else None."""
        is_free = self.fixed is None and not self.signs and not self.distributions
        if is_free and self.draws in {"auto", 0}:
            return None
        found = self._specification()
        return found if found.n_draws else None

    def _prior_loss(self) -> PriorLoss:
        return ALL_LOSSES[self.loss_] if isinstance(self.loss, str) else self.loss

    def _newcomers(self) -> NewUserPosteriors:
        fitted_prior, loss = self.prior_, self._prior_loss()
        return NewUserPosteriors(fitted_prior, loss, self.positive_share_, self.covariance_rank)

    def user_posterior(self, user: Hashable) -> Posterior:
        """Return the posterior of a training user, without reading other users' weights.

        Parameters
        ----------
        user : id
            The user.

        Returns
        -------
        Posterior
            As returned by `newcomer`.
        """
        check_is_fitted(self)
        place = find_user(self, user)
        return self._posterior(slice(place, place + 1))

    def _posterior_of(self, users: Index) -> tuple[Posterior, Index]:
        """Return the posteriors of distinct users, and positions among them (-1: new user)."""
        distinct, codes = np.unique(users[users >= 0], return_inverse=True)
        places = np.full(len(users), -1, dtype=np.intp)
        places[users >= 0] = codes
        return self._posterior(distinct if len(distinct) else slice(0, 1)), places

    def _posterior(self, positions: slice | Index = slice(None)) -> Posterior:
        """Return the posteriors of users in training."""
        points = self.points_
        if points is None:
            coef, intercept = self.coef_[positions], self.intercept_[positions]
            points = self.prior_.design.points(coef, intercept)
        else:
            points = points[positions]
        if self.prior_.items is not None:
            points = np.hstack([points, self.factor_weights_[positions]])
        style = self.response_style
        style = None if style is None else style.some(positions)
        information, users = self.information_[positions], self.users_[positions]
        return Posterior.given(self.prior_, users, points, information, style, unknown=self.unknown)


def _explained(
    covariance: Float, directions: Float, spread: Float, beyond: float
) -> dict[str, float]:
    """Return the shares of the variance of scores by level, ``beyond`` coordinates included."""
    projected = directions @ (directions.T @ covariance @ directions) @ directions.T
    whole = float((spread * covariance).sum()) + beyond
    share = float((spread * projected).sum()) / whole if whole > 0 else 0.0
    return {"group": share, "personal": 1.0 - share}
