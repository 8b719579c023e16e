"""Regress item effects and factors on item features, after the fit.

Labels determine only the sum x_j'theta + b_j. From the fit there is y_j, the sum by the labels of
item j alone, and its variance 1/k_j (users integrated out), and

    y_j ~ N(a + c z_j + x_j'theta, tau^2 + 1/k_j),     theta ~ N(0, s^2 I)

where s and tau maximise the likelihood of y once theta, a and c are integrated out (with the prior
that keeps tau off zero, see `item_posteriors`). During the fit, theta is a point: with few items
and many features, tau would be too small and theta too large, which matters for new items.

z_j is 1 if a single user judged item j. Such users often chose the item: authors of a statement
agree with it. Without z_j, features would learn to tell these items from all others. c z_j stays
with the items' effects.

The same holds for x_j'W_i + f_j'v_i: during the fit, factors explain all of it, since an own f_j
fits better than any function of features. Afterwards each factor is regressed in the same way,

    f_j ~ N(a + c z_j + C'x_j, tau^2),     and (W_i + C v_i, v_i) are users' weights

if the gain in likelihood exceeds one (Akaike). So users differ about new items, too, and directions
of Omega can be named after features.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from likeminds._util.array_types import Float, FloatArray, Index
from likeminds._util.lazy_imports import LazyModule
from likeminds.data.annotations import Annotations
from likeminds.mixed_model.design import Design
from likeminds.mixed_model.gaussian_prior import GaussianPrior
from likeminds.mixed_model.item_posteriors import OFF_ZERO, ItemPosteriors
from likeminds.mixed_model.laplace import WarmStarts
from likeminds.mixed_model.marginal_likelihood import LOW_RANK
from likeminds.mixed_model.optimisers import PriorFit

optimize: Any = LazyModule("scipy.optimize")

# More features than this are left as they were learned: each trial solves with a matrix of them.
MOST_FEATURES = 512


def regress_items_on_features(
    learned: PriorFit, features: FloatArray | None, counts: Index, coordinates: Design
) -> PriorFit:
    """Return what was learned with consensus, effects and factors divided anew.

    Items are those labelled, and so are their features (see `features_of_items`), and ``counts``,
    how many labels each has.
    """
    items, n_weights = learned.items, coordinates.n_weights
    if items is None or features is None or not 0 < n_weights <= MOST_FEATURES:
        return learned
    X, alone = coordinates.rows(features)[:, :n_weights], judged_alone(counts)
    learned = _apportion_effects(learned, items, X, alone, coordinates)
    return _apportion_factors(learned, X, alone, coordinates)


def with_weights(learned: PriorFit, n_weights: int) -> PriorFit:
    """Add weights of features, which hardly differ between users, to a fit without them."""
    prior = learned.model.prior
    # The standard deviation of weights that were not estimated is small, but not zero.
    prior = replace(
        prior,
        mean=np.pad(prior.mean, (n_weights, 0)),
        loadings=np.pad(prior.loadings, ((n_weights, 0), (0, 0))),
        residual=np.pad(prior.residual, (n_weights, 0), constant_values=1e-3),
    )
    return replace(
        learned,
        model=replace(learned.model, prior=prior),
        mean_covariance=np.pad(learned.mean_covariance, (n_weights, 0)),
        warm_starts=WarmStarts(),
        structure=LOW_RANK,
        moments=None,
    )


def _apportion_effects(
    learned: PriorFit, items: ItemPosteriors, X: Float, alone: Float, coordinates: Design
) -> PriorFit:
    n_weights = X.shape[1]
    prior = learned.model.prior
    known = np.maximum(1.0 / items.effect_variance - 1.0 / items.variance, 1e-9)
    y = X @ prior.mean[:n_weights] + items.effects * (1.0 + 1.0 / (items.variance * known))
    found = ItemFeatureRegression.of(X, y, 1.0 / known, alone)
    own = (y - found.added - X @ found.theta) * known / (known + 1.0 / found.variance)
    doubt = 1.0 / (known + 1.0 / found.variance)
    mean = prior.mean.copy()
    mean[:n_weights] = found.theta
    if coordinates.intercept:
        mean[n_weights] += found.added
    model = replace(learned.model, prior=replace(prior, mean=mean))
    moved = replace(items, effects=own, effect_variance=doubt, variance=found.variance)
    unsure = learned.mean_covariance.copy()
    if not unsure[:n_weights, :n_weights].any():  # learned without weights
        unsure[:n_weights, :n_weights] = found.unsure
    return replace(learned, model=model, items=moved, mean_covariance=unsure)


def _apportion_factors(learned: PriorFit, X: Float, alone: Float, coordinates: Design) -> PriorFit:
    """Give features what they tell of factors, and let users' weights follow."""
    items, prior, n_weights = learned.items, learned.model.prior, X.shape[1]
    assert items is not None
    told = [_factor_told(items, factor, X, alone) for factor in range(items.n_factors)]
    if all(one is None for one in told):
        return learned
    nothing = ItemFeatureRegression(np.zeros(n_weights), 0.0, 0.0, 1.0)
    found = [nothing if one is None else one for one in told]
    # Factors are measured in units of what is left of them: that of new items is N(0, I) again.
    unit = np.sqrt(np.minimum([one.variance for one in found], 1.0))
    slopes = np.array([np.append(one.theta, one.added) for one in found])
    predicted = X @ slopes[:, :-1].T + slopes[:, -1]
    moved = np.eye(len(prior.mean))
    moved[: coordinates.size, -len(unit) :] = slopes.T[: coordinates.size]
    moved[-len(unit) :, -len(unit) :] = np.diag(unit)
    covariance = moved @ prior.covariance @ moved.T
    model = replace(
        learned.model, prior=GaussianPrior.of_covariance(prior.mean, covariance, prior.beyond)
    )
    leading = prior.directions(learned.n_groups, n_weights)
    n_groups = _n_directions(leading, [one.theta for one in told if one is not None])
    left = _left_of_factors(items, predicted, unit)
    return replace(learned, model=model, items=left, n_groups=n_groups)


def _n_directions(leading: Float, slopes: list[Float]) -> int:
    """Return how many directions lead: those that did, and slopes that are no mixture of them."""
    for slope in slopes:
        rest = slope - leading @ (leading.T @ slope)
        # A direction is one more where this share of its length, or more, is across all others.
        if np.linalg.norm(rest) > 0.5 * np.linalg.norm(slope):
            leading = np.column_stack([leading, rest / np.linalg.norm(rest)])
    return int(leading.shape[1])


def _factor_told(
    items: ItemPosteriors, factor: int, X: Float, alone: Float
) -> "ItemFeatureRegression | None":
    """Return what features tell of a factor, if it is likelier with than without them."""
    known = 1.0 / items.factor_covariance[:, factor, factor] - 1.0
    # Items whose factor is known less than this, in units of the prior, say nothing about it.
    enough = known > 0.05
    if enough.sum() <= 2:
        return None
    known = known[enough]
    y = items.factors[enough, factor] * (1.0 + 1.0 / known)
    found = ItemFeatureRegression.of(X[enough], y, 1.0 / known, alone[enough])
    # What the likelihood has to gain for one more number, s: Akaike's criterion.
    return found if found.gain > 1.0 else None


def _left_of_factors(items: ItemPosteriors, predicted: Float, unit: Float) -> ItemPosteriors:
    """Return factors less what features predict, given labels: shrunk to that instead of zero."""
    precision = np.linalg.inv(items.factor_covariance)
    unsure = np.linalg.inv(precision + np.diag(1.0 / unit**2 - 1.0))
    y = np.einsum("jab,jb->ja", precision, items.factors - predicted) + predicted
    factors = np.einsum("jab,jb->ja", unsure, y) / unit
    return replace(items, factors=factors, factor_covariance=unsure / unit[:, None] / unit)


def features_of_items(annotations: Annotations) -> FloatArray | None:
    """Return the features of every item with labels; None where an item has several rows of them.

    Where features differ from label to label, they are not the items'.
    """
    labelled, first = np.unique(annotations.item_codes, return_index=True)
    rows = np.zeros(annotations.n_items, dtype=np.intp)
    rows[labelled] = annotations.feature_rows[first]
    same = np.array_equal(rows[annotations.item_codes], annotations.feature_rows)
    return annotations.features[rows[labelled]] if same else None


def judged_alone(counts: Index) -> Float:
    """Return z, (m,): whether items have one label only, less the share of such labels."""
    alone = (counts == 1).astype(np.float64)
    return np.asarray(alone - counts @ alone / counts.sum())


@dataclass(frozen=True)
class ItemFeatureRegression:
    """The most likely division."""

    theta: Float  # (p,): the posterior mean of the consensus
    added: float  # the constant a
    # s^2 and tau^2.
    spread: float
    variance: float
    gain: float = 0.0  # by how much y is likelier (in nats) than if features told nothing of it
    unsure: Float | float = 0.0  # (p, p): the posterior covariance of theta

    @classmethod
    def of(cls, X: Float, y: Float, noise: Float, alone: Float) -> "ItemFeatureRegression":
        """Find s and tau, and what follows from them; ``alone`` is z."""
        # As many features as items are enough: their weights lie in the span of the items.
        axes = np.linalg.svd(X, full_matrices=False)[2] if X.shape[1] > len(X) else None
        rows = X if axes is None else X @ axes.T
        n_features = rows.shape[1]
        others = np.column_stack([np.ones(len(X)), alone])
        items = ItemObservations(np.column_stack([rows, others]), n_features, y, noise)
        logs, cost = items.likeliest()
        spread, variance = np.exp(logs).tolist()
        precision, right = items.normal_equations(spread, variance)
        solved = np.linalg.solve(precision, right)
        unsure = np.linalg.inv(precision)[:n_features, :n_features]
        theta = solved[:n_features] if axes is None else solved[:n_features] @ axes
        _, without = ItemObservations(others, 0, y, noise).likeliest()
        return cls(
            np.asarray(theta, np.float64),
            float(solved[n_features]),
            spread,
            variance,
            without - cost,
            np.asarray(unsure if axes is None else axes.T @ unsure @ axes, np.float64),
        )


@dataclass(frozen=True)
class ItemObservations:
    """Items as observations."""

    wide: Float  # (m, q): their features, a one, and z
    n_features: int  # how many of the columns are features
    # (m,): what labels say of each, and its variance.
    y: Float
    noise: Float

    def likeliest(self) -> tuple[Float, float]:
        """Return the logarithms of s^2 and tau^2 of least cost, and that cost but for s's prior."""
        # L-BFGS-B starts here and stays within these bounds; the cost has one minimum in practice.
        best = optimize.minimize(
            self.cost, (-2.0, -1.0), jac=True, method="L-BFGS-B", bounds=((-16.0, 8.0),) * 2
        )
        return best.x, float(best.fun) + 0.5 * OFF_ZERO * float(best.x[0])

    def cost(self, logs: Float) -> tuple[float, Float]:
        """Return minus the log-likelihood of y with the priors of s and tau, and its slope.

        theta, a and c are integrated out; ``logs`` are those of s^2 and tau^2.
        """
        spread, variance = np.exp(logs).tolist()
        total, p = variance + self.noise, self.n_features
        precision, right = self.normal_equations(spread, variance)
        inverse = np.linalg.inv(np.linalg.cholesky(precision))
        covariance, solved = inverse.T @ inverse, inverse.T @ (inverse @ right)
        doubt = covariance.diagonal()
        left = (self.y - self.wide @ solved) / total
        scaled = self.wide / total[:, None]
        # Products of a matrix with itself take half the time of others.
        known = float((covariance * (scaled.T @ scaled)).sum())
        cost = 0.5 * float(self.y @ left) - float(np.log(inverse.diagonal()).sum())
        cost += 0.5 * float(np.log(total).sum()) + 0.5 * p * float(logs[0])
        by_spread = 0.5 * (p - float((doubt[:p] + solved[:p] ** 2).sum()) / spread)
        by_variance = 0.5 * variance * (float((1.0 / total - left**2).sum()) - known)
        slope = np.array([by_spread, by_variance]) - 0.5 * OFF_ZERO
        return cost - 0.5 * OFF_ZERO * float(logs.sum()), slope

    def normal_equations(self, spread: float, variance: float) -> tuple[Float, Float]:
        """Return the precision of theta, a and c, and what it is multiplied with to be solved."""
        root = np.sqrt(variance + self.noise)
        scaled = self.wide / root[:, None]
        precision = scaled.T @ scaled
        # a and c are N(0, 10^2): next to nothing is known about them.
        held = np.full(len(precision), 0.01)
        held[: self.n_features] = 1.0 / spread
        precision[np.diag_indices(len(precision))] += held
        return np.asarray(precision), np.asarray(scaled.T @ (self.y / root))
