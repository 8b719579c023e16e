"""Posterior distributions of users' weights, and of the scores and ranks they imply."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from likeminds._util.array_types import Float, FloatArray, IdArray, Index
from likeminds._util.checks import as_matrix, listing
from likeminds._util.map_reduce import of_rows
from likeminds._util.per_user_arrays import row_dots, symmetric_root
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import as_id_array, lookup
from likeminds.mixed_model.design import Design, PredictionRows
from likeminds.mixed_model.gaussian_prior import GaussianPrior, ItemPosteriors, refuse_new_items
from likeminds.mixed_model.likelihoods import Likelihood, label_probability
from likeminds.mixed_model.ordinal import StandardNormal
from likeminds.mixed_model.ordinal_responses import (
    DavidsonLikelihood,
    GradePredictions,
    ResponseStyle,
)
from likeminds.mixed_model.user_posteriors import Answered, FittedPrior

Items = ArrayLike | Annotations
ItemsToRank = Items | Mapping[Any, ArrayLike]
Users = Iterable[Hashable] | None
_DRAWS = 2000  # from a posterior, for intervals of ranks


def features_and_ids(items: ItemsToRank) -> tuple[Items, IdArray | None]:
    """Return the features of a mapping, and its keys; other items without ids."""
    if not isinstance(items, Mapping):
        return items, None
    return np.asarray(list(items.values()), dtype=np.float64), as_id_array(list(items), "items")


@dataclass(frozen=True, eq=False)
class Posterior:
    """Posterior distributions of some users' weights: normal, by Laplace's approximation.

    A user's covariance is Omega - K'K with a matrix K of few rows: the prior's, less the
    reduction of variance by the labels.

    Attributes
    ----------
    users : array of shape (n_users,)
        The users' ids.
    points : array of shape (n_users, p)
        Modes, in coordinates: weights of the features, the intercept if there is one, and last
        the weights of item factors.
    variance_reduction : array of shape (n_users, m, p)
        The matrices K.
    design, prior, likelihood
        The coordinates, the prior with the uncertainty of its parameters, and the likelihood.
    items : ItemPosteriors, optional
        Posteriors of items with effects of their own. Rows of features without the items' ids are
        treated as items without labels.
    response_style : ResponseStyle, optional
        The users' use of the scale of grades.
    answered : Answered, optional
        Residuals of the items that new users labelled: part of these items' scores.
    unknown : {"error", "consensus"}, default="error"
        Without features, items without labels raise an error or get the average score.

    Examples
    --------
    >>> from likeminds import HierarchicalRanker, load_electricity
    >>> households = load_electricity()
    >>> ranker = HierarchicalRanker(n_groups=1).fit(households)
    >>> user = households.of_user("household-007")
    >>> posterior = ranker.newcomer(user.X[:8], user.labels[:8])
    >>> posterior.coef.shape, posterior.decision_function(user.X[8:10]).shape
    ((1, 6), (2,))
    >>> bool((posterior.standard_error(user.X) > 0).all())
    True
    """

    users: IdArray
    points: Float
    variance_reduction: FloatArray
    design: Design
    prior: GaussianPrior
    likelihood: Likelihood
    items: ItemPosteriors | None = None
    response_style: ResponseStyle | None = None
    answered: Answered | None = None
    unknown: str = "error"

    @classmethod
    def given(
        cls,
        fitted_prior: FittedPrior,
        users: IdArray,
        points: Float,
        variance_reduction: FloatArray,
        response_style: ResponseStyle | None = None,
        *,
        unknown: str = "error",
    ) -> "Posterior":
        """Return the posteriors of users, given the fitted prior."""
        known = (fitted_prior.design, fitted_prior.predictive, fitted_prior.likelihood)
        more = (fitted_prior.items, response_style)
        return cls(users, points, variance_reduction, *known, *more, unknown=unknown)

    @property
    def coef(self) -> Float:
        """Weights of the features, shape (n_users, n_features)."""
        return self.design.weights(self.points)

    @property
    def intercept(self) -> Float:
        """Log-odds of a positive label minus the score, shape (n_users,)."""
        n_weights, size = self.design.n_weights, self.design.size
        at_origin = self.points[:, n_weights:size].sum(axis=1)
        return np.asarray(at_origin - self.coef @ self.design.origin)

    def decision_function(self, X: Items, users: Users = None) -> Float:
        """Score items, each for its user (without ``users``, for the only one there is)."""
        rows, positions = self._rows(X, users)
        scores, ids = np.einsum("nd,nd->n", rows, self.coef[positions]), self._ids(X)
        if self.items is None or ids is None or not isinstance(X, Annotations):
            return np.asarray(scores)
        own = self.items.of(X.item_ids).take(X.item_codes)
        scores += own.scores(self.points[positions, self.design.size :])
        if self.answered is not None:
            scores += self.answered.at(positions, X.items)
        return np.asarray(scores)

    def standard_error(self, X: Items, users: Users = None) -> Float:
        """Return the standard errors of scores, relative to the average item's score."""
        return self.deviation(*self._targets(X, users))

    def probability_above(self, a: Items, b: Items, users: Users = None) -> Float:
        """Return the probability that item a of each row ranks above item b."""
        return self.chance_above(*self._pairs(a, b, users))

    def probability_preferred(self, a: Items, b: Items, users: Users = None) -> Float:
        """Return the probability that, of items a and b of each row, a gets the better label."""
        return self.chance_preferred(*self._pairs(a, b, users))

    def probability_tied(self, a: Items, b: Items, users: Users = None) -> Float:
        """Return the probability that items a and b of each row are tied."""
        return self.chance_tied(*self._pairs(a, b, users))

    def predict_grades(self, X: Items, users: Users = None) -> GradePredictions:
        """Return the grades that users would give: their probabilities, and the expected one."""
        return self.grades(*self._targets(X, users))

    def rank_interval(
        self, items: ItemsToRank, *, user: Hashable | None = None, level: float = 0.9
    ) -> tuple[Index, Index]:
        """Return the lowest and highest rank (1 is best) that each item may have for a user."""
        return self.ranks(*self._targets_for(items, user), level)

    def next_items(self, items: ItemsToRank, *, user: Hashable | None = None, n: int = 1) -> Index:
        """Return the items to ask a user about next, the most informative first."""
        return self.most_informative(*self._targets_for(items, user), n)

    def prediction_rows(self, features: FloatArray, ids: IdArray | None = None) -> PredictionRows:
        """Return rows of features in coordinates; ``ids`` are those of the items."""
        return PredictionRows.of(features, self.design, self.items, ids)

    def deviation(
        self, targets: PredictionRows, users: Index, less: PredictionRows | None = None
    ) -> Float:
        """Return standard deviations of scores less those of ``less``, or the average item's.

        A user of -1 is a new one.
        """

        def vary(some: slice) -> Float:
            owner = users[some]
            rows = targets.rows[some] if less is None else targets.rows[some] - less.rows[some]
            whitened = rows @ self.prior.root
            reduced = np.einsum("nmp,np->nm", self.variance_reduction[owner], rows)
            reduction = np.where(owner >= 0, row_dots(reduced, reduced), 0.0)
            return np.asarray(row_dots(whitened, whitened) - reduction)

        # In pieces, since each row needs its user's matrix K.
        variance = of_rows(vary, len(targets), 1 << 12)
        variance = np.maximum(variance, 0.0) + self._of_items(targets, users)
        variance += self.variance_beyond(targets, less)
        if less is not None:
            variance += self._of_items(less, users)
            variance[targets.same_as(less)] = 0.0
        return np.sqrt(variance)

    def variance_beyond(
        self, targets: PredictionRows, less: PredictionRows | None = None
    ) -> Float | float:
        """Return the variance of scores that lies beyond the coordinates."""
        if targets.features is None:
            return 0.0
        difference = targets.features.astype(np.float64)
        difference -= self.design.origin if less is None or less.features is None else less.features
        return self.prior.beyond * self.design.squares_beyond(difference)

    def _of_items(self, targets: PredictionRows, users: Index) -> Float:
        """Return the variance of scores that is due to their items."""
        if targets.items is None:
            return np.zeros(len(targets))
        size = self.design.size
        v = np.vstack([self.points, self.prior.mean])[users, size:]
        whole = self.prior.covariance[size:, size:]
        reduction = self.variance_reduction[users][:, :, size:].astype(np.float64)
        squared = np.einsum("nma,nmb->nab", reduction, reduction)
        covariance = whole - np.where((users >= 0)[:, None, None], squared, 0.0)
        return targets.variance(v, covariance)

    def chance_above(self, a: PredictionRows, b: PredictionRows, users: Index) -> Float:
        """Return the probability that the items of a score higher than those of b."""
        deviation = self.deviation(a, users, less=b)
        deviation = np.where(deviation > 0, deviation, np.inf)  # equal items are tied
        return np.asarray(ndtr(self._score_difference(a, b, users) / deviation))

    def chance_preferred(
        self, a: PredictionRows, b: PredictionRows, users: Index, scale: Float | float = 1.0
    ) -> Float:
        """Return the probability that the items of a get better labels; ``scale`` of variances."""
        if isinstance(self.likelihood, StandardNormal):
            noise = self.deviation(a, users, less=b) ** 2 + 2.0 / self.likelihood.typical
            return np.asarray(ndtr(self._score_difference(a, b, users) / np.sqrt(noise)))
        if self.likelihood.is_quadratic:
            raise TypeError(
                "Scores that were learned as a regression are not log-odds, so labels "
                'have no probability. Fit with loss="logistic" or "choice".'
            )
        deviation = np.sqrt(scale) * self.deviation(a, users, less=b)
        return label_probability(self._score_difference(a, b, users), deviation)

    def chance_tied(self, a: PredictionRows, b: PredictionRows, users: Index) -> Float:
        """Return the probability that the items of a and b are tied."""
        if not isinstance(self.likelihood, DavidsonLikelihood):
            raise TypeError("This model has no ties: fit from_comparisons(..., ties=...).")
        variance = self.deviation(a, users, less=b) ** 2  # as for the fit of nu
        return self.likelihood.tie_chance(self._score_difference(a, b, users), variance)

    def grades(self, targets: PredictionRows, users: Index) -> GradePredictions:
        """Return predicted grades (-1: of a new user)."""
        if self.response_style is None:
            raise ValueError("This ranker was not fitted to grades, so it cannot predict them.")
        return self.response_style.predict(*self.linear_predictor(targets, users), users)

    def with_response_style(
        self, response_style: ResponseStyle, annotations: Annotations | None
    ) -> "Posterior":
        """Return the posterior with the response style of new users, from their grades if any."""
        if annotations is None or annotations.grades is None:
            return replace(self, response_style=response_style.of_unknown_users(len(self.users)))
        eta = self.eta(
            self.prediction_rows(annotations.X, self._ids(annotations)), annotations.user_codes
        )
        style = response_style.of_newcomers(annotations.grades, annotations.user_codes, eta)
        return replace(self, response_style=style)

    def linear_predictor(self, targets: PredictionRows, users: Index) -> tuple[Float, Float]:
        """Return eta, intercepts included, and its variance (-1: of a new user)."""
        variance = self.deviation(self._with_intercepts(targets), users) ** 2
        return self.eta(targets, users), variance

    def eta(self, targets: PredictionRows, users: Index) -> Float:
        """Return the linear predictor alone: its variance takes most of the time."""
        points = np.vstack([self.points, self.prior.mean])[users]
        rows = self._with_intercepts(targets).rows
        return np.asarray(np.einsum("np,np->n", rows, points) + targets.effects)

    def _with_intercepts(self, targets: PredictionRows) -> PredictionRows:
        rows = targets.rows.copy()
        rows[:, self.design.n_weights : self.design.size] = 1.0
        return replace(targets, rows=rows)

    def ranks(self, targets: PredictionRows, user_index: int, level: float) -> tuple[Index, Index]:
        """Return a credible interval of each item's rank, from rankings drawn at random."""
        if not 0 < level < 1:
            raise ValueError(f"level must lie between 0 and 1, but is {level}.")
        root = symmetric_root(self.covariance(user_index))
        rng = np.random.default_rng(0)
        draws = self._point(user_index)[:, None] + root @ rng.standard_normal((len(root), _DRAWS))
        scores = targets.rows @ draws
        if targets.items is not None:
            scores += targets.items.sample_scores(draws[self.design.size :], rng)
        if targets.features is not None:
            scores += self._drawn_beyond(targets.features, rng)
        place = np.empty(scores.shape, dtype=np.intp)
        order = np.argsort(-scores, axis=0)
        np.put_along_axis(place, order, np.arange(len(targets))[:, None], axis=0)
        outside = 0.5 * (1.0 - level)
        ends = np.quantile(place, [outside, 1.0 - outside], axis=1, method="inverted_cdf")
        low, high = ends.astype(np.intp) + 1
        return low, high

    def _drawn_beyond(self, features: FloatArray, rng: np.random.Generator) -> Float:
        """Draw the part of scores that lies beyond the coordinates: (n, draws)."""
        products = self.design.products_beyond(features, self.design.rows(features))
        assert products is not None
        root = symmetric_root(self.prior.beyond * products)
        return np.asarray(root @ rng.standard_normal((len(root), _DRAWS)))

    def most_informative(self, targets: PredictionRows, user_index: int, n: int) -> Index:
        """Choose greedily the items whose labels reduce the uncertainty most.

        The uncertainty is the sum over items of the variance of the score less the mean score. A
        label's expected reduction is to first order. A label also reduces the variance of its
        item's effect, which in turn lowers its information about the user.
        """
        if not 1 <= n <= len(targets):
            raise ValueError(f"n must be between 1 and the number of items, but is {n}.")
        rows = self._with_intercepts(targets).rows
        contrasts = targets.rows - targets.rows.mean(axis=0)
        scatter = contrasts.T @ contrasts
        covariance = self.covariance(user_index)
        eta = rows @ self._point(user_index) + targets.effects
        information = self.likelihood.expected_information(eta)
        # Items share little beyond the coordinates: that part counts as the item's own.
        own = self._of_items(targets, np.full(len(targets), user_index))
        own += self.variance_beyond(targets)
        chosen: list[int] = []
        for _ in range(n):
            reached = rows @ covariance
            gain = np.einsum("mp,mp->m", reached @ scatter, reached)
            gain += 2.0 * own * np.einsum("mp,mp->m", reached, contrasts)
            gain += own**2 * (1.0 - 1.0 / len(targets))
            blurred = 1.0 + information * (np.einsum("mp,mp->m", reached, rows) + own)
            gain *= information / blurred
            gain[chosen] = -np.inf
            best = int(gain.argmax())
            step = reached[best]
            covariance = covariance - np.outer(step, step) * information[best] / blurred[best]
            chosen.append(best)
        return np.array(chosen)

    def covariance(self, user_index: int) -> Float:
        """Return a user's covariance in coordinates, shape (p, p); -1 is the prior's."""
        if user_index < 0:
            return self.prior.covariance
        reduction = self.variance_reduction[user_index].astype(np.float64)
        return np.asarray(self.prior.covariance - reduction.T @ reduction)

    def _score_difference(self, a: PredictionRows, b: PredictionRows, users: Index) -> Float:
        """Return the scores of a less those of b (-1: by the consensus)."""
        weights = np.vstack([self.points, self.prior.mean])[users]
        return np.asarray(row_dots(a.rows - b.rows, weights) + a.effects - b.effects)

    def _pairs(
        self, a: Items, b: Items, users: Users
    ) -> tuple[PredictionRows, PredictionRows, Index]:
        first, positions = self._rows(a, users)
        second = b.X if isinstance(b, Annotations) else as_matrix(b, "b")
        if first.shape != second.shape:
            raise ValueError(f"a has shape {first.shape}, but b has shape {second.shape}.")
        others = self.prediction_rows(second, self._ids(b))
        return self.prediction_rows(first, self._ids(a)), others, positions

    def _point(self, user_index: int) -> Float:
        return self.prior.mean if user_index < 0 else np.asarray(self.points[user_index])

    def _targets_for(self, items: ItemsToRank, user: Hashable | None) -> tuple[PredictionRows, int]:
        """Return items as rows, and the position of the user."""
        rows, ids = features_and_ids(items)
        table = rows if isinstance(rows, Annotations) else as_matrix(rows, "items")
        rows, users = self._rows(table, None if user is None else [user] * len(table))
        return self.prediction_rows(rows, self._ids(table, ids)), int(users[0])

    def _targets(self, X: Items, users: Users) -> tuple[PredictionRows, Index]:
        """Return items as rows, and the positions of their users."""
        rows, positions = self._rows(X, users)
        return self.prediction_rows(rows, self._ids(X)), positions

    def _rows(self, X: Items, users: Users) -> tuple[FloatArray, Index]:
        if isinstance(X, Annotations) and users is None and len(self.users) > 1:
            users = X.users
        rows = X.X if isinstance(X, Annotations) else as_matrix(X, "X")
        if rows.shape[1] != len(self.design.origin):
            raise ValueError(
                f"X has {rows.shape[1]} features, but the model has {len(self.design.origin)}."
            )
        if users is None:
            if len(self.users) > 1:
                raise ValueError(
                    f"There are {len(self.users)} users: pass users= to choose among them."
                )
            return rows, np.zeros(len(rows), dtype=np.intp)
        positions = lookup(users, self.users, "users")
        if len(positions) != len(rows):
            raise ValueError(f"users has {len(positions)} entries, but X has {len(rows)} rows.")
        if (positions < 0).any():
            unknown = np.asarray(list(users), dtype=object)[positions < 0].astype(str)
            raise ValueError(f"Nothing is known about {listing(np.unique(unknown))}.")
        return rows, positions

    def _ids(self, X: object, ids: IdArray | None = None) -> IdArray | None:
        """Return the items' ids; items with neither features nor labels raise ValueError."""
        if isinstance(X, Annotations) and X.has_items:
            ids = X.items
        has_features = len(self.design.origin) > 0
        if self.unknown == "error" and self.items is not None and not has_features:
            refuse_new_items(ids, self.items.ids)
        return ids
