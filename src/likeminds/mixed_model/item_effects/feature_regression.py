"""Regress item effects and factors on item features, after the fit.

Labels determine only the sum x_j'theta + b_j. The fit gives y_j, the sum by the labels of item j
alone, and its variance 1/k_j (users integrated out), and

    y_j ~ N(a + c z_j + x_j'theta, tau^2 + 1/k_j),     theta ~ N(0, s^2 I)

where s and tau maximise the likelihood of y once theta, a and c are integrated out. A prior keeps
tau off zero, see `gaussian_prior`. During the fit, theta is a point estimate: with few items and
many features, tau would be too small and theta too large, which matters for new items.

z_j is 1 if a single user labelled item j. Such users often chose the item: authors of a statement
agree with it. Without z_j, weights of features would separate these items from all others. c z_j
remains part of the item effects.

The same holds for x_j'W_i + f_j'v_i. During the fit, factors explain all of it, since an f_j of its
own fits better than any function of features. Afterwards each factor is regressed in the same way,

    f_j ~ N(a + c z_j + C'x_j, tau^2),     and (W_i + C v_i, v_i) are users' weights

if the gain in log-likelihood exceeds one (Akaike). So users differ about new items, too, and
directions of Omega can be named after features.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import optimize

from likeminds._util.array_types import Float, FloatArray, Index
from likeminds.data.annotations import Annotations
from likeminds.mixed_model.design import Design
from likeminds.mixed_model.gaussian_prior import OFF_ZERO, GaussianPrior, ItemPosteriors
from likeminds.mixed_model.laplace import WarmStarts
from likeminds.mixed_model.marginal_likelihood import NO_WEIGHTS
from likeminds.mixed_model.optimisers import PriorFit

# With more features than this there is no regression: each trial solves with a matrix of them.
MOST_FEATURES = 512


def regress_items_on_features(
    learned: PriorFit, features: FloatArray | None, counts: Index, design: Design
) -> tuple[PriorFit, Float]:
    """Replace consensus, item effects and factors by their regression on features and residuals.

    ``features`` (see `features_of_items`) and ``counts`` of labels are those of labelled items.
    Returns the matrix, (p, p), that maps users' coordinates to those afterwards, too.
    """
    items, n_weights = learned.items, design.n_weights
    if items is None or features is None or not 0 < n_weights <= MOST_FEATURES:
        return learned, np.eye(len(learned.model.prior.mean))
    X, single = design.rows(features)[:, :n_weights], single_labels(counts)
    learned = _regress_effects(learned, items, X, single, design)
    return _regress_factors(learned, X, single, design)


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
        structure=NO_WEIGHTS,
        moments=None,
    )


def _regress_effects(
    learned: PriorFit, items: ItemPosteriors, X: Float, single: Float, design: Design
) -> PriorFit:
    n_weights, prior = X.shape[1], learned.model.prior
    information = np.maximum(1.0 / items.effect_variance - 1.0 / items.variance, 1e-9)
    y = X @ prior.mean[:n_weights] + items.effects * (1.0 + 1.0 / (items.variance * information))
    found = ItemFeatureRegression.of(X, y, 1.0 / information, single)
    effect_variance = 1.0 / (information + 1.0 / found.variance)
    effects = (y - found.intercept - X @ found.theta) * information * effect_variance
    mean = prior.mean.copy()
    mean[:n_weights] = found.theta
    if design.intercept:
        mean[n_weights] += found.intercept
    mean_covariance = learned.mean_covariance.copy()
    if not mean_covariance[:n_weights, :n_weights].any():  # fitted without weights
        mean_covariance[:n_weights, :n_weights] = found.covariance
    return replace(
        learned,
        model=replace(learned.model, prior=replace(prior, mean=mean)),
        items=replace(
            items, effects=effects, effect_variance=effect_variance, variance=found.variance
        ),
        mean_covariance=mean_covariance,
    )


def _regress_factors(
    learned: PriorFit, X: Float, single: Float, design: Design
) -> tuple[PriorFit, Float]:
    """Move the part of factors that features explain into users' weights of features."""
    items, prior, n_weights = learned.items, learned.model.prior, X.shape[1]
    assert items is not None
    regressions = [_regress_factor(items, factor, X, single) for factor in range(items.n_factors)]
    accepted = [one for one in regressions if one is not None]
    transform = np.eye(len(prior.mean))
    if not accepted:
        return learned, transform
    none = ItemFeatureRegression(np.zeros(n_weights), 0.0, 0.0, 1.0)
    found = [none if one is None else one for one in regressions]
    # Units of factors are those of the residuals, so factors of new items are N(0, I) again.
    unit = np.sqrt(np.minimum([one.variance for one in found], 1.0))
    slopes = np.array([np.append(one.theta, one.intercept) for one in found])
    predicted = X @ slopes[:, :-1].T + slopes[:, -1]
    transform[: design.size, -len(unit) :] = slopes.T[: design.size]
    transform[-len(unit) :, -len(unit) :] = np.diag(unit)
    covariance = transform @ prior.covariance @ transform.T
    prior_after = GaussianPrior.of_covariance(prior.mean, covariance, prior.beyond)
    leading = prior.directions(learned.n_groups, n_weights)
    learned = replace(
        learned,
        model=replace(learned.model, prior=prior_after),
        items=_residual_factors(items, predicted, unit),
        n_groups=_count_directions(leading, [one.theta for one in accepted]),
    )
    return learned, transform


def _count_directions(leading: Float, slopes: list[Float]) -> int:
    """Count the leading directions, and slopes that are not in their span."""
    for slope in slopes:
        rest = slope - leading @ (leading.T @ slope)
        # A slope counts if at least this share of its length is orthogonal to all others.
        if np.linalg.norm(rest) > 0.5 * np.linalg.norm(slope):
            leading = np.column_stack([leading, rest / np.linalg.norm(rest)])
    return int(leading.shape[1])


def _regress_factor(
    items: ItemPosteriors, factor: int, X: Float, single: Float
) -> "ItemFeatureRegression | None":
    """Regress a factor on features; None unless the likelihood gains by that."""
    information = 1.0 / items.factor_covariance[:, factor, factor] - 1.0
    # Items with less information on their factor, in units of the prior's, are left out.
    enough = information > 0.05
    if enough.sum() <= 2:
        return None
    information = information[enough]
    y = items.factors[enough, factor] * (1.0 + 1.0 / information)
    found = ItemFeatureRegression.of(X[enough], y, 1.0 / information, single[enough])
    # Akaike's criterion, for one more parameter, s.
    return found if found.gain > 1.0 else None


def _residual_factors(items: ItemPosteriors, predicted: Float, unit: Float) -> ItemPosteriors:
    """Return posteriors of factors less their predictions, shrunk to these instead of zero."""
    precision = np.linalg.inv(items.factor_covariance)
    covariance = np.linalg.inv(precision + np.diag(1.0 / unit**2 - 1.0))
    y = np.einsum("jab,jb->ja", precision, items.factors - predicted) + predicted
    factors = np.einsum("jab,jb->ja", covariance, y) / unit
    return replace(items, factors=factors, factor_covariance=covariance / unit[:, None] / unit)


def features_of_items(annotations: Annotations) -> FloatArray | None:
    """Return the features of every labelled item; None if they differ between labels of an item."""
    labelled, first = np.unique(annotations.item_codes, return_index=True)
    rows = np.zeros(annotations.n_items, dtype=np.intp)
    rows[labelled] = annotations.feature_rows[first]
    same = np.array_equal(rows[annotations.item_codes], annotations.feature_rows)
    return annotations.features[rows[labelled]] if same else None


def single_labels(counts: Index) -> Float:
    """Return z, (m,): whether items have one label only, less the share of such labels."""
    single = (counts == 1).astype(np.float64)
    return np.asarray(single - counts @ single / counts.sum())


@dataclass(frozen=True)
class ItemFeatureRegression:
    """The regression of items on features that maximises the likelihood."""

    theta: Float  # (p,): the posterior mean of the consensus
    intercept: float  # the constant a
    # s^2 and tau^2.
    spread: float
    variance: float
    gain: float = 0.0  # in log-likelihood, compared with no features
    covariance: Float | float = 0.0  # (p, p): the posterior covariance of theta

    @classmethod
    def of(cls, X: Float, y: Float, noise: Float, single: Float) -> "ItemFeatureRegression":
        """Estimate s and tau, and theta given these; ``single`` is z."""
        # Weights of more features than items lie in the span of the items.
        axes = np.linalg.svd(X, full_matrices=False)[2] if X.shape[1] > len(X) else None
        rows = X if axes is None else X @ axes.T
        n_features = rows.shape[1]
        others = np.column_stack([np.ones(len(X)), single])
        items = ItemObservations(np.column_stack([rows, others]), n_features, y, noise)
        logs, cost = items.minimise_cost()
        spread, variance = np.exp(logs).tolist()
        precision, right = items.normal_equations(spread, variance)
        solved = np.linalg.solve(precision, right)
        covariance = np.linalg.inv(precision)[:n_features, :n_features]
        theta = solved[:n_features] if axes is None else solved[:n_features] @ axes
        _, without = ItemObservations(others, 0, y, noise).minimise_cost()
        return cls(
            np.asarray(theta, np.float64),
            float(solved[n_features]),
            spread,
            variance,
            without - cost,
            np.asarray(covariance if axes is None else axes.T @ covariance @ axes, np.float64),
        )


@dataclass(frozen=True)
class ItemObservations:
    """Items as observations of a linear regression."""

    columns: Float  # (m, q): their features, a one, and z
    n_features: int  # the number of columns that are features
    y: Float  # (m,)
    noise: Float  # (m,): the variance of y

    def minimise_cost(self) -> tuple[Float, float]:
        """Return the log s^2 and log tau^2 of least cost, and that cost without the prior of s."""
        # The cost has one minimum in practice.
        best = optimize.minimize(
            self.cost, (-2.0, -1.0), jac=True, method="L-BFGS-B", bounds=((-16.0, 8.0),) * 2
        )
        return best.x, float(best.fun) + 0.5 * OFF_ZERO * float(best.x[0])

    def cost(self, logs: Float) -> tuple[float, Float]:
        """Return minus the log-posterior of (log s^2, log tau^2), and its gradient.

        theta, a and c are integrated out.
        """
        spread, variance = np.exp(logs).tolist()
        total, p = variance + self.noise, self.n_features
        precision, right = self.normal_equations(spread, variance)
        inverse = np.linalg.inv(np.linalg.cholesky(precision))
        covariance, solved = inverse.T @ inverse, inverse.T @ (inverse @ right)
        squares = covariance.diagonal() + solved**2
        residual = (self.y - self.columns @ solved) / total
        scaled = self.columns / total[:, None]
        # Products of a matrix with itself take half the time of others.
        explained = float((covariance * (scaled.T @ scaled)).sum())
        cost = 0.5 * float(self.y @ residual) - float(np.log(inverse.diagonal()).sum())
        cost += 0.5 * float(np.log(total).sum()) + 0.5 * p * float(logs[0])
        by_spread = 0.5 * (p - float(squares[:p].sum()) / spread)
        by_variance = 0.5 * variance * (float((1.0 / total - residual**2).sum()) - explained)
        gradient = np.array([by_spread, by_variance]) - 0.5 * OFF_ZERO
        return cost - 0.5 * OFF_ZERO * float(logs.sum()), gradient

    def normal_equations(self, spread: float, variance: float) -> tuple[Float, Float]:
        """Return matrix and right-hand side of the normal equations of theta, a and c."""
        root = np.sqrt(variance + self.noise)
        scaled = self.columns / root[:, None]
        precision = scaled.T @ scaled
        # a and c have a vague prior, N(0, 10^2).
        ridge = np.full(len(precision), 0.01)
        ridge[: self.n_features] = 1.0 / spread
        precision[np.diag_indices(len(precision))] += ridge
        return np.asarray(precision), np.asarray(scaled.T @ (self.y / root))
