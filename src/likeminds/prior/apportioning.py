"""What all see in an item, divided anew: between its features and what is its own.

Labels know only the sum, x_j'theta + b_j; how it is divided is a regression with items as its
observations. From the fit there is y_j, the sum as labels alone would have it, and its variance
1/k_j (people integrated out), and

    y_j ~ N(a + x_j'theta, tau^2 + 1/k_j),     theta ~ N(0, s^2 I)

where s and tau make y most likely once theta and a are integrated out. While people and items are
learned, theta is a point, as if it were known: where items are few beside the features, tau is then
too small and theta too large, of which only new items learn, who have nothing else.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.optimize import minimize

from likeminds._support.arrays import Float
from likeminds.data.annotations import Annotations
from likeminds.prior.coordinates import Coordinates
from likeminds.prior.descent import Learned
from likeminds.prior.items import OFF_ZERO

# Logarithms of s^2 and tau^2 stay within these bounds, and are searched for from these starts.
_LEAST, _MOST = -16.0, 8.0
_STARTS = ((-6.0, 0.0), (-2.0, -1.0))
_EXACT = {"xatol": 1e-3, "fatol": 1e-4}
# More features than this are left as they were learned: each trial solves with a matrix of them.
_MOST_FEATURES = 512


def apportion(learned: Learned, annotations: Annotations, coordinates: Coordinates) -> Learned:
    """Return what was learned with consensus and effects divided anew; items are those labelled."""
    items, n_weights = learned.items, coordinates.n_weights
    if items is None or not 0 < n_weights <= _MOST_FEATURES:
        return learned
    rows = _rows_of_items(annotations)
    if rows is None:  # features differ from label to label: they are not the items'
        return learned
    X = coordinates.rows(annotations.features[rows])[:, :n_weights]
    prior = learned.model.prior
    known = np.maximum(1.0 / items.doubt - 1.0 / items.variance, 1e-9)
    said = X @ prior.mean[:n_weights] + items.effects * (1.0 + 1.0 / (items.variance * known))
    found = Regression.of(X, said, 1.0 / known)
    own = (said - found.added - X @ found.theta) * known / (known + 1.0 / found.variance)
    doubt = 1.0 / (known + 1.0 / found.variance)
    mean = prior.mean.copy()
    mean[:n_weights] = found.theta
    mean[n_weights] += found.added
    model = replace(learned.model, prior=replace(prior, mean=mean))
    moved = replace(items, effects=own, doubt=doubt, variance=found.variance)
    return replace(learned, model=model, items=moved)


def _rows_of_items(annotations: Annotations) -> np.ndarray | None:
    """Return the row of features of every item with labels; None where an item has several."""
    labelled, first = np.unique(annotations.item_codes, return_index=True)
    rows = np.zeros(annotations.n_items, dtype=np.intp)
    rows[labelled] = annotations.feature_rows[first]
    same = np.array_equal(rows[annotations.item_codes], annotations.feature_rows)
    return rows[labelled] if same else None


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
    def of(cls, X: Float, y: Float, noise: Float) -> "Regression":
        """Find s and tau, and what follows from them."""
        wide = np.column_stack([X, np.ones(len(X))])

        def cost(logs: Float) -> float:
            return _cost(wide, y, noise, *np.exp(np.clip(logs, _LEAST, _MOST)))

        find = partial(minimize, cost, method="Nelder-Mead", options=_EXACT)
        trials = [find(np.array(start)) for start in _STARTS]
        best = min(trials, key=lambda trial: float(trial.fun))
        spread, variance = np.exp(np.clip(best.x, _LEAST, _MOST)).tolist()
        solved = np.linalg.solve(*_normal_equations(wide, y, variance + noise, spread))
        return cls(np.asarray(solved[:-1]), float(solved[-1]), spread, variance)


def _cost(wide: Float, y: Float, noise: Float, spread: float, variance: float) -> float:
    """Return minus the log-likelihood of y, a and theta integrated out, with the prior of tau.

    The last column of ``wide`` is constant.
    """
    total = variance + noise
    precision, right = _normal_equations(wide, y, total, spread)
    factor = np.linalg.cholesky(precision)
    solved = np.linalg.solve(factor, right)
    fit = float((y**2 / total).sum() - solved @ solved)
    half_logs = 0.5 * float(np.log(total).sum()) + float(np.log(factor.diagonal()).sum())
    half_logs += 0.5 * (wide.shape[1] - 1) * float(np.log(spread))
    return float(0.5 * fit + half_logs - 0.5 * OFF_ZERO * np.log(variance))


def _normal_equations(wide: Float, y: Float, total: Float, spread: float) -> tuple[Float, Float]:
    """Return the precision of (theta, a), and what it is multiplied with to be solved."""
    scaled = wide / total[:, None]
    precision = scaled.T @ wide
    precision.flat[: -1 : len(precision) + 1] += 1.0 / spread
    return np.asarray(precision), np.asarray(scaled.T @ y)
