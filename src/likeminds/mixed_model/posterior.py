"""Posterior distributions of users' weights, and of the scores and ranks they imply."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from likeminds._util.array_types import Float, FloatArray, IdArray, Index
from likeminds._util.checks import as_matrix, listing
from likeminds._util.map_reduce import of_rows
from likeminds._util.per_user_arrays import row_dots
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import lookup
from likeminds.mixed_model.design import Design
from likeminds.mixed_model.fitted_prior import FittedPrior
from likeminds.mixed_model.gaussian_prior import GaussianPrior
from likeminds.mixed_model.item_posteriors import (
    Answered,
    ItemPosteriors,
    PredictionRows,
    refuse_new_items,
)
from likeminds.mixed_model.likelihoods import Likelihood, label_probability
from likeminds.mixed_model.ordinal import StandardNormal
from likeminds.mixed_model.ordinal_responses import (
    GradePredictions,
    ResponseStyle,
)

# Draws from a posterior, for ranks and for expected gains.
_DRAWS = 2000


@dataclass(frozen=True, eq=False)
class Posterior:
    """Posterior distributions of some users' weights: normal, by Laplace's approximation.

    A user's covariance is Omega - K'K with a matrix K of few rows: the prior's, less the
    reduction of variance in the directions that the labels tell most about.

    Attributes
    ----------
    users : array of shape (n_users,)
        Who they are.
    points : array of shape (n_users, p)
        Modes, in coordinates: weights of the features, the intercept where there is one, and
        last the weights of the features of items that were learned.
    known : array of shape (n_users, m, p)
        The matrices K.
    coordinates, prior, likelihood
        What the numbers refer to; the prior includes the uncertainty of its parameters.
    items : ItemPosteriors, optional
        Posteriors of items, where they have effects of their own. `Annotations` say which
        items they are; rows of features are taken for items that no user has labelled.
    ways : ResponseStyle, optional
        How they turn scores into grades, where the crowd gave grades.
    answered : Answered, optional
        Residuals of the items that new users labelled: part of these items' scores.
    unknown : {"error", "consensus"}, default="error"
        Without features, what items get that no user labelled: an error, or the average score.

    Examples
    --------
    >>> from likeminds import HierarchicalRanker, load_electricity
    >>> households = load_electricity()
    >>> ranker = HierarchicalRanker(n_groups=1).fit(households)
    >>> somebody = households.of_user("household-007")
    >>> belief = ranker.newcomer(somebody.X[:8], somebody.labels[:8])
    >>> belief.coef.shape, belief.decision_function(somebody.X[8:10]).shape
    ((1, 6), (2,))
    >>> bool((belief.standard_error(somebody.X) > 0).all())
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
        known: FloatArray,
        ways: ResponseStyle | None = None,
        *,
        unknown: str = "error",
    ) -> "Posterior":
        """Return the posteriors of users, given the crowd's predictive prior."""
        about = (
            fitted_prior.design,
            fitted_prior.predictive,
            fitted_prior.likelihood,
            fitted_prior.items,
            ways,
        )
        return cls(users, points, known, *about, unknown=unknown)

    @property
    def coef(self) -> Float:
        """Weights of the features, shape (n_users, n_features)."""
        return self.design.weights(self.points)

    @property
    def intercept(self) -> Float:
        """What to add to a score to get the log-odds of a positive label, shape (n_users,)."""
        n_weights, size = self.design.n_weights, self.design.size
        at_origin = self.points[:, n_weights:size].sum(axis=1)
        return np.asarray(at_origin - self.coef @ self.design.origin)

    def decision_function(
        self, X: ArrayLike | Annotations, users: Iterable[Hashable] | None = None
    ) -> Float:
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

    def standard_error(
        self, X: ArrayLike | Annotations, users: Iterable[Hashable] | None = None
    ) -> Float:
        """Return the standard errors of scores, relative to the average item's score."""
        rows, positions = self._rows(X, users)
        return self.deviation(self.prediction_rows(rows, self._ids(X)), positions)

    def probability_above(
        self,
        a: ArrayLike | Annotations,
        b: ArrayLike | Annotations,
        users: Iterable[Hashable] | None = None,
    ) -> Float:
        """Return the probability that item a of each row ranks above item b."""
        return self.chance_above(*self._pairs(a, b, users))

    def probability_preferred(
        self,
        a: ArrayLike | Annotations,
        b: ArrayLike | Annotations,
        users: Iterable[Hashable] | None = None,
    ) -> Float:
        """Return the probability that, of items a and b of each row, a gets the better label."""
        return self.chance_preferred(*self._pairs(a, b, users))

    def predict_grades(
        self, X: ArrayLike | Annotations, users: Iterable[Hashable] | None = None
    ) -> GradePredictions:
        """Return the grades that users would give: their probabilities, and the expected one."""
        rows, positions = self._rows(X, users)
        return self.grades(self.prediction_rows(rows, self._ids(X)), positions)

    def rank_interval(
        self, items: ArrayLike | Annotations, *, user: Hashable | None = None, level: float = 0.9
    ) -> tuple[Index, Index]:
        """Return the lowest and highest rank (1 is best) that each item may have for a user."""
        rows, person = self._rows_for(items, user)
        return self.ranks(self.prediction_rows(rows, self._ids(items)), person, level)

    def next_items(
        self, items: ArrayLike | Annotations, *, user: Hashable | None = None, n: int = 1
    ) -> Index:
        """Return which items to ask a user about next, the most telling first."""
        rows, person = self._rows_for(items, user)
        return self.most_informative(self.prediction_rows(rows, self._ids(items)), person, n)

    def prediction_rows(self, features: FloatArray, ids: IdArray | None = None) -> PredictionRows:
        """Return rows of features as users see them; ``ids`` say which items they are."""
        return PredictionRows.of(features, self.design, self.items, ids)

    def deviation(
        self, seen: PredictionRows, users: Index, less: PredictionRows | None = None
    ) -> Float:
        """Return standard deviations of scores (-1: of an unknown user), or of their differences.

        Without ``less``, scores are seen from the average item's.
        """

        def vary(some: slice) -> Float:
            owner = users[some]
            rows = seen.rows[some] if less is None else seen.rows[some] - less.rows[some]
            whitened = rows @ self.prior.root
            told = np.einsum("nmp,np->nm", self.variance_reduction[owner], rows)
            known = np.where(owner >= 0, row_dots(told, told), 0.0)
            return np.asarray(row_dots(whitened, whitened) - known)

        # Rows whose uncertainty is computed at a time: no user's is copied for all rows.
        variance = of_rows(vary, len(seen), 1 << 12)
        variance = np.maximum(variance, 0.0) + self._of_items(seen, users)
        variance += self._beyond(seen, less)
        if less is not None:
            variance += self._of_items(less, users)
            variance[seen.same_as(less)] = 0.0
        return np.sqrt(variance)

    def _beyond(self, seen: PredictionRows, less: PredictionRows | None = None) -> Float | float:
        """Return the variance of scores that lies beyond the coordinates."""
        if seen.features is None:
            return 0.0
        away = seen.features.astype(np.float64)
        away -= self.design.origin if less is None or less.features is None else less.features
        return self.prior.beyond * self.design.squares_beyond(away)

    def _of_items(self, seen: PredictionRows, users: Index) -> Float:
        """Return the variance of scores that is due to their items."""
        if seen.items is None:
            return np.zeros(len(seen))
        size = self.design.size
        v = np.vstack([self.points, self.prior.mean])[users, size:]
        whole = self.prior.covariance[size:, size:]
        known = self.variance_reduction[users][:, :, size:].astype(np.float64)
        told = np.einsum("nma,nmb->nab", known, known)
        covariance = whole - np.where((users >= 0)[:, None, None], told, 0.0)
        return seen.variance(v, covariance)

    def chance_above(self, a: PredictionRows, b: PredictionRows, users: Index) -> Float:
        """Return the probability that the items of a score higher than those of b."""
        deviation = self.deviation(a, users, less=b)
        # Two equal items are certain to be tied.
        apart = np.where(deviation > 0, deviation, np.inf)
        return np.asarray(ndtr(self._apart(a, b, users) / apart))

    def chance_preferred(self, a: PredictionRows, b: PredictionRows, users: Index) -> Float:
        """Return the probability that the items of a get better labels than those of b."""
        if isinstance(self.likelihood, StandardNormal):
            noise = self.deviation(a, users, less=b) ** 2 + 2.0 / self.likelihood.typical
            return np.asarray(ndtr(self._apart(a, b, users) / np.sqrt(noise)))
        if self.likelihood.is_quadratic:
            raise TypeError(
                "Scores that were learned as a regression are no log-odds, so that they say "
                'nothing about the probability of a label. Fit with loss="logistic" or "choice".'
            )
        deviation = self.deviation(a, users, less=b)
        return label_probability(self._apart(a, b, users), deviation)

    def grades(self, seen: PredictionRows, users: Index) -> GradePredictions:
        """Return the grades that items would get (-1: from any user)."""
        if self.response_style is None:
            raise ValueError("This ranker has not learned from grades: there are none to predict.")
        return self.response_style.predict(*self.linear_predictor(seen, users), users)

    def with_response_style(
        self, ways: ResponseStyle, annotations: Annotations | None
    ) -> "Posterior":
        """Return new users with their own ways of grading, by their grades if they gave any."""
        if annotations is None or annotations.grades is None:
            return replace(self, response_style=ways.of_unknown_users(len(self.users)))
        eta, _ = self.linear_predictor(
            self.prediction_rows(annotations.X, self._ids(annotations)), annotations.user_codes
        )
        return replace(
            self, response_style=ways.of_newcomers(annotations.grades, annotations.user_codes, eta)
        )

    def linear_predictor(self, seen: PredictionRows, users: Index) -> tuple[Float, Float]:
        """Return scores from the common zero of all users (-1: of any user), and variances."""
        rows = seen.rows.copy()
        rows[:, self.design.n_weights : self.design.size] = 1.0
        points = np.vstack([self.points, self.prior.mean])[users]
        scores = np.einsum("np,np->n", rows, points) + seen.effects
        return scores, self.deviation(replace(seen, rows=rows), users) ** 2

    def ranks(self, seen: PredictionRows, person: int, level: float) -> tuple[Index, Index]:
        """Return a credible interval of each item's rank, from rankings drawn at random."""
        if not 0 < level < 1:
            raise ValueError(f"level must lie between 0 and 1, but is {level}.")
        root = _root(self.covariance(person))
        rng = np.random.default_rng(0)
        draws = self._point(person)[:, None] + root @ rng.standard_normal((len(root), _DRAWS))
        scores = seen.rows @ draws
        if seen.items is not None:
            scores += seen.items.sample_scores(draws[self.design.size :], rng)
        if seen.features is not None:
            scores += self._drawn_beyond(seen.features, rng)
        place = np.empty(scores.shape, dtype=np.intp)
        order = np.argsort(-scores, axis=0)
        np.put_along_axis(place, order, np.arange(len(seen))[:, None], axis=0)
        outside = 0.5 * (1.0 - level)
        ends = np.quantile(place, [outside, 1.0 - outside], axis=1, method="inverted_cdf")
        low, high = ends.astype(np.intp) + 1
        return low, high

    def _drawn_beyond(self, features: FloatArray, rng: np.random.Generator) -> Float:
        """Draw what lies beyond the coordinates of scores, for items at once: (n, draws)."""
        rows = self.design.rows(features)
        products = self.design.products_beyond(features, rows)
        assert products is not None
        root = _root(self.prior.beyond * products)
        return np.asarray(root @ rng.standard_normal((len(root), _DRAWS)))

    def most_informative(self, seen: PredictionRows, person: int, n: int) -> Index:
        """Choose, one after the other, the items whose labels shrink the uncertainty most.

        The uncertainty is the sum over the items of the variance of the score, as seen from
        their mean score; a label is credited with its expected reduction (to first order). Where
        items have effects of their own, a label reduces the item's variance, too, and that
        variance lowers its information about the user.
        """
        if not 1 <= n <= len(seen):
            raise ValueError(f"n must be between 1 and the number of items, but is {n}.")
        rows = seen.rows.copy()
        rows[:, self.design.n_weights : self.design.size] = 1.0
        contrasts = seen.rows - seen.rows.mean(axis=0)
        wanted = contrasts.T @ contrasts
        covariance = self.covariance(person)
        eta = rows @ self._point(person) + seen.effects
        information = self.likelihood.expected_information(eta)
        # What lies beyond the coordinates is an item's own, nearly: items share little there.
        own = self._of_items(seen, np.full(len(seen), person)) + self._beyond(seen)
        chosen: list[int] = []
        for _ in range(n):
            reached = rows @ covariance
            gain = np.einsum("mp,mp->m", reached @ wanted, reached)
            gain += 2.0 * own * np.einsum("mp,mp->m", reached, contrasts)
            gain += own**2 * (1.0 - 1.0 / len(seen))
            blurred = 1.0 + information * (np.einsum("mp,mp->m", reached, rows) + own)
            gain *= information / blurred
            gain[chosen] = -np.inf
            best = int(gain.argmax())
            step = reached[best]
            covariance = covariance - np.outer(step, step) * information[best] / blurred[best]
            chosen.append(best)
        return np.array(chosen)

    def covariance(self, person: int) -> Float:
        """Return a user's covariance in coordinates, shape (p, p); -1 is the prior's."""
        if person < 0:
            return self.prior.covariance
        known = self.variance_reduction[person].astype(np.float64)
        return np.asarray(self.prior.covariance - known.T @ known)

    def _apart(self, a: PredictionRows, b: PredictionRows, users: Index) -> Float:
        """Return how much higher the items of a score than those of b (-1: for the consensus)."""
        weights = np.vstack([self.points, self.prior.mean])[users]
        return np.asarray(row_dots(a.rows - b.rows, weights) + a.effects - b.effects)

    def _pairs(
        self,
        a: ArrayLike | Annotations,
        b: ArrayLike | Annotations,
        users: Iterable[Hashable] | None,
    ) -> tuple[PredictionRows, PredictionRows, Index]:
        first, positions = self._rows(a, users)
        second = b.X if isinstance(b, Annotations) else as_matrix(b, "b")
        if first.shape != second.shape:
            raise ValueError(f"a has shape {first.shape}, but b has shape {second.shape}.")
        return (
            self.prediction_rows(first, self._ids(a)),
            self.prediction_rows(second, self._ids(b)),
            positions,
        )

    def _point(self, person: int) -> Float:
        return self.prior.mean if person < 0 else np.asarray(self.points[person])

    def _rows_for(
        self, items: ArrayLike | Annotations, user: Hashable | None
    ) -> tuple[FloatArray, int]:
        """Return items' features, and the position of the user who is asked about them."""
        known = items if isinstance(items, Annotations) else as_matrix(items, "items")
        rows, users = self._rows(known, None if user is None else [user] * len(known))
        return rows, int(users[0])

    def _rows(
        self, X: ArrayLike | Annotations, users: Iterable[Hashable] | None
    ) -> tuple[FloatArray, Index]:
        if isinstance(X, Annotations) and users is None and len(self.users) > 1:
            users = X.users
        rows = X.X if isinstance(X, Annotations) else as_matrix(X, "X")
        if rows.shape[1] != len(self.design.origin):
            raise ValueError(
                f"X has {rows.shape[1]} features, but there are {len(self.design.origin)}."
            )
        if users is None:
            if len(self.users) > 1:
                raise ValueError(
                    f"There are {len(self.users)} people: say with users= whose scores to give."
                )
            return rows, np.zeros(len(rows), dtype=np.intp)
        positions = lookup(users, self.users, "users")
        if len(positions) != len(rows):
            raise ValueError(f"users has {len(positions)} entries, but X has {len(rows)} rows.")
        if (positions < 0).any():
            strangers = np.asarray(list(users), dtype=object)[positions < 0]
            raise ValueError(f"Nothing is known about {listing(np.unique(strangers.astype(str)))}.")
        return rows, positions

    def _ids(self, X: object) -> IdArray | None:
        """Return which items rows are of; refuse items of which nothing is known."""
        ids = X.items if isinstance(X, Annotations) and X.has_items else None
        has_features = len(self.design.origin) > 0
        if self.unknown == "error" and self.items is not None and not has_features:
            refuse_new_items(ids, self.items.ids)
        return ids


def _root(covariance: Float) -> Float:
    """Return a matrix L with L L' = covariance."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
