"""Matrix factorisation: users and items as points of one space, learned from labels."""

from dataclasses import KW_ONLY, dataclass
from itertools import product
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from likeminds._util.array_types import Float, FloatArray, IdArray, Index
from likeminds.data.annotations import Annotations
from likeminds.losses.statistics import Statistics
from likeminds.rankers.baselines._alternating_newton import FactorState
from likeminds.rankers.baselines.popularity import (
    features_of_items,
    labelled_items,
    places_of_items,
)
from likeminds.rankers.ranker import Ranker, both_callbacks

# Numbers of factors, with the penalties on these and on biases that a search tries.
_GRID = ((0, (4.0,), (1.0, 0.3)), (2, (8.0, 4.0, 2.0), (0.5,)), (8, (8.0, 4.0, 2.0), (0.5,)))


# Parameters are the fields of a dataclass: see `ComponentsRanker`.
@dataclass(eq=False, repr=False)
class Factorisation(Ranker):
    """Logistic matrix factorisation of users x items, with biases and features of items.

    The log-odds of a positive label of item j by user i are

        a + a_i + b_j + p_i'q_j,        b_j = x_j'w + beta_j,    q_j = E'x_j + eps_j

    and the sum of the logistic losses, plus ``alpha`` / 2 times the squares of p, eps and E, plus
    ``alpha_bias`` / 2 times those of a_i, beta and w, is minimised by Newton steps that alternate
    between users and items. Items are identified by their ids.

    Parameters
    ----------
    n_factors : int, default=2
        Dimensions of the space; 0 leaves the biases alone.
    alpha : float, default=4.0
        Ridge on the factors of users and items.
    alpha_bias : float, default=0.3
        Ridge on the biases of users and items.
    item_features : bool, default=True
        Predict the factors of items from features (w and E above), as LightFM does, also for new
        items. Otherwise ``unknown`` applies to new items.
    tol : float, default=3e-4
        Stop when a round of steps improves the objective by less than this share of it.
    max_iter : int, default=100
        Stop after this many rounds in any case.
    unknown : {"error", "consensus"}, default="error"
        Users not seen in training raise an error, or get a_i = 0 and p_i = 0. New items without
        features raise an error, or get b_j = 0 and q_j = 0.
    user_column, verbose
        As in `ThreeLevelRanker`.

    Attributes
    ----------
    item_ids_ : array of shape (n_items,)
        The labelled items.
    user_factors_, item_factors_ : arrays of shape (n_users or n_items, n_factors + 1)
        p_i and a_i; q_j and b_j: the bias comes last.
    feature_factors_ : array of shape (n_features, n_factors + 1)
        E and w, in units of ``scale_`` around ``origin_``.
    intercept_ : float
        a.
    origin_, scale_ : arrays of shape (n_features,)
        Mean and standard deviation of the features over the items.
    objective_trace_ : array
        The objective by round, from the spectral start on.
    users_, classes_
        As in `ThreeLevelRanker`.

    Examples
    --------
    >>> from likeminds import make_schools
    >>> crowd = make_schools(40, 30, 60, 6, 2, random_state=0).annotations
    >>> crowd.has_items
    True
    >>> Factorisation(n_factors=1).fit(crowd).user_factors_.shape
    (40, 2)
    """

    n_factors: int = 2
    alpha: float = 4.0
    _: KW_ONLY
    alpha_bias: float = 0.3
    item_features: bool = True
    tol: float = 3e-4
    max_iter: int = 100
    unknown: str = "error"
    user_column: int | str | None = None
    verbose: bool = False

    _needs_no_features = True
    _has_steps = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_factors": [Interval(Integral, 0, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "alpha_bias": [Interval(Real, 0, None, closed="neither")],
        "item_features": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "unknown": [StrOptions({"consensus", "error"})],
        "user_column": [Integral, str, None],
        "verbose": ["boolean"],
    }

    def scorable_ids(self) -> IdArray | None:
        """Return the ids of labelled items; None where features place any item."""
        return None if self.item_features and len(self.feature_names_) else self.item_ids_

    def _scores(self, rows: FloatArray, users: Index, items: IdArray | None) -> Float:
        """Return the log-odds of a positive label of each row's item by its user."""
        item = places_of_items(self, items)
        factors = np.vstack([self.user_factors_, np.zeros(self.user_factors_.shape[1])])[users]
        of_items = self.item_factors_[item]
        new = item < 0
        of_items[new] = ((rows[new] - self.origin_) / self.scale_) @ self.feature_factors_
        bias = factors[:, -1].copy()
        factors[:, -1] = 1.0
        return np.asarray(self.intercept_ + bias + np.einsum("nk,nk->n", factors, of_items))

    def _fit_annotations(self, annotations: Annotations) -> None:
        self.item_ids_, item = labelled_items(annotations, type(self).__name__)
        self.users_ = annotations.user_ids
        table = features_of_items(annotations, item, len(self.item_ids_))
        self.origin_, spread = table.mean(axis=0), table.std(axis=0)
        self.scale_ = np.where(spread > 1e-12 * (1.0 + abs(self.origin_)), spread, 1.0)
        table = (table - self.origin_) / self.scale_ if self.item_features else table[:, :0]
        n_factors = min(self.n_factors, min(annotations.n_users, len(table)) - 1)
        penalty = np.append(np.full(n_factors, float(self.alpha)), self.alpha_bias)
        state = FactorState.start(annotations, item, table, penalty)
        with both_callbacks(self, None) as callback:
            state = state.minimise(self.tol, self.max_iter, callback)
            if n_factors:
                state = state.with_spectral_start().minimise(self.tol, self.max_iter, callback)
        self.user_factors_, self.item_factors_ = state.users, state.items
        self.intercept_ = state.intercept
        self.feature_factors_ = np.zeros((len(self.origin_), n_factors + 1))
        if self.item_features:
            self.feature_factors_ = state.weights
        self.objective_trace_ = np.array(state.trace)
        self.n_iter_ = len(state.trace) - 1

    def _default_grid(self, statistics: Statistics) -> list[dict[str, Any]]:  # noqa: ARG002
        """Return candidates, few dimensions and strong penalties first."""
        return [
            {"n_factors": rank, "alpha": alpha, "alpha_bias": bias, "item_features": features}
            for rank, alphas, biases in _GRID
            for alpha, bias, features in product(alphas, biases, (True, False))
        ]
