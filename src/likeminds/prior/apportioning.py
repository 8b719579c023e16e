"""What all see in an item, divided anew: between its features and what is its own.

Labels know only the sum, x_j'theta + b_j; how it is divided is a regression with items as its
observations. From the fit there is y_j, the sum as labels alone would have it, and its variance
1/k_j (people integrated out), and

    y_j ~ N(a + c z_j + x_j'theta, tau^2 + 1/k_j),     theta ~ N(0, s^2 I)

where s and tau make y most likely once theta, a and c are integrated out (with the prior that keeps
tau off zero, see `items`: of features that tell little, the little counts). While people and items
are learned, theta is a point, as if it were known: where items are few beside the features, tau is
then too small and theta too large, of which only new items learn, who have nothing else.

z_j says whether one person alone judged an item. Such people often chose it: whoever writes a
statement agrees with it before anybody else sees it. Without z_j, features would learn to tell what
nobody else was shown from all other items. c z_j stays with the items' effects.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from likeminds._support.arrays import Float, FloatArray, Index
from likeminds._support.later import Later
from likeminds.data.annotations import Annotations
from likeminds.prior.coordinates import Coordinates
from likeminds.prior.descent import Learned
from likeminds.prior.items import OFF_ZERO

optimize: Any = Later("scipy.optimize")

# Logarithms of s^2 and tau^2 stay within these bounds, and are searched for from these starts.
_BOUNDS = ((-16.0, 8.0), (-16.0, 8.0))
_STARTS = ((-6.0, 0.0), (-2.0, -1.0))
# a and c are N(0, 10^2): next to nothing is known about them.
_VAGUE = 0.01
# More features than this are left as they were learned: each trial solves with a matrix of them.
_MOST_FEATURES = 512


def apportion(
    learned: Learned, features: FloatArray | None, counts: Index, coordinates: Coordinates
) -> Learned:
    """Return what was learned with consensus and effects divided anew.

    Items are those labelled, and so are their features (see `features_of_items`), and ``counts``,
    how many labels each has.
    """
    items, n_weights = learned.items, coordinates.n_weights
    if items is None or features is None or not 0 < n_weights <= _MOST_FEATURES:
        return learned
    X = coordinates.rows(features)[:, :n_weights]
    prior = learned.model.prior
    known = np.maximum(1.0 / items.doubt - 1.0 / items.variance, 1e-9)
    said = X @ prior.mean[:n_weights] + items.effects * (1.0 + 1.0 / (items.variance * known))
    found = Regression.of(X, said, 1.0 / known, judged_alone(counts))
    own = (said - found.added - X @ found.theta) * known / (known + 1.0 / found.variance)
    doubt = 1.0 / (known + 1.0 / found.variance)
    mean = prior.mean.copy()
    mean[:n_weights] = found.theta
    mean[n_weights] += found.added
    model = replace(learned.model, prior=replace(prior, mean=mean))
    moved = replace(items, effects=own, doubt=doubt, variance=found.variance)
    return replace(learned, model=model, items=moved)


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
class Regression:
    """The most likely division.

    Attributes
    ----------
    theta : array of shape (p,)
        The posterior mean of the consensus.
    added : float
        The constant a.
    spread, variance : float
        s^2 and tau^2.
    """

    theta: Float
    added: float
    spread: float
    variance: float

    @classmethod
    def of(cls, X: Float, y: Float, noise: Float, alone: Float) -> "Regression":
        """Find s and tau, and what follows from them; ``alone`` is z."""
        wide = np.column_stack([X, np.ones(len(X)), alone])
        items = SeenItems(wide, X.shape[1], y, noise)
        trials = [
            optimize.minimize(items.cost, start, jac=True, method="L-BFGS-B", bounds=_BOUNDS)
            for start in _STARTS
        ]
        best = min(trials, key=lambda trial: float(trial.fun))
        spread, variance = np.exp(best.x).tolist()
        solved = np.linalg.solve(*items.normal_equations(spread, variance))
        return cls(np.asarray(solved[: X.shape[1]]), float(solved[X.shape[1]]), spread, variance)


@dataclass(frozen=True)
class SeenItems:
    """Items as observations.

    Attributes
    ----------
    wide : array of shape (m, q)
        Their features, a one, and z.
    n_features : int
        How many of the columns are features.
    y, noise : arrays of shape (m,)
        What labels say of each, and its variance.
    """

    wide: Float
    n_features: int
    y: Float
    noise: Float

    def cost(self, logs: Float) -> tuple[float, Float]:
        """Return minus the log-likelihood of y with the priors of s and tau, and its slope.

        theta, a and c are integrated out; ``logs`` are those of s^2 and tau^2.
        """
        spread, variance = np.exp(logs).tolist()
        total, p = variance + self.noise, self.n_features
        precision, right = self.normal_equations(spread, variance)
        inverse = np.linalg.inv(np.linalg.cholesky(precision))
        doubt, solved = (inverse**2).sum(axis=0), inverse.T @ (inverse @ right)
        left = (self.y - self.wide @ solved) / total
        known = np.square(self.wide @ inverse.T).sum(axis=1) / total
        cost = 0.5 * float(self.y @ left) - float(np.log(inverse.diagonal()).sum())
        cost += 0.5 * float(np.log(total).sum()) + 0.5 * p * float(logs[0])
        by_spread = 0.5 * (p - float((doubt[:p] + solved[:p] ** 2).sum()) / spread)
        by_variance = 0.5 * variance * float(((1.0 - known) / total - left**2).sum())
        slope = np.array([by_spread, by_variance]) - 0.5 * OFF_ZERO
        return cost - 0.5 * OFF_ZERO * float(logs.sum()), slope

    def normal_equations(self, spread: float, variance: float) -> tuple[Float, Float]:
        """Return the precision of theta, a and c, and what it is multiplied with to be solved."""
        scaled = self.wide / (variance + self.noise)[:, None]
        precision = scaled.T @ self.wide
        held = np.full(len(precision), _VAGUE)
        held[: self.n_features] = 1.0 / spread
        precision[np.diag_indices(len(precision))] += held
        return np.asarray(precision), np.asarray(scaled.T @ self.y)
