"""Matrix factorisation: people and items as points of one space, found from who said what."""

from itertools import product
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from likeminds._util.array_types import Float, FloatArray, IdArray, Index
from likeminds.data.annotations import Annotations
from likeminds.losses.statistics import Statistics
from likeminds.rankers.baselines._alternating_newton import FactorState, SparseVotes
from likeminds.rankers.baselines.popularity import (
    features_of_items,
    labelled_items,
    places_of_items,
)
from likeminds.rankers.ranker import Ranker, both_callbacks


class Factorisation(Ranker):
    """Logistic matrix factorisation of people x items, with biases and features of items.

    The log-odds of a positive label of item j by person i are

        a + a_i + b_j + p_i'q_j,        b_j = x_j'w + beta_j,    q_j = E'x_j + eps_j

    and the sum of the logistic losses, plus ``alpha`` / 2 times the squares of p, eps and E, plus
    ``alpha_bias`` / 2 times those of a_i, beta and w, is minimised by Newton steps that alternate
    between people and items: each is a small problem of its own. Items are known by their ids.

    Parameters
    ----------
    n_factors : int, default=2
        Dimensions of the space; 0 leaves the biases alone.
    alpha : float, default=4.0
        Ridge on everybody's and every item's place in the space.
    alpha_bias : float, default=0.3
        Ridge on the biases of people and items.
    item_features : bool, default=True
        Let features say what to expect of an item (w and E above), as LightFM does: new items
        then have a place. Without, ``unknown`` decides about new items.
    tol : float, default=3e-4
        Stop when a round of steps improves the objective by less than this share of it.
    max_iter : int, default=100
        Rounds after which to stop in any case.
    unknown : {"error", "consensus"}, default="error"
        What users get that were not seen in training: an error, or a_i = 0 and p_i = 0. The same
        holds for items without features: an error, or b_j = 0 and q_j = 0.
    user_column, verbose
        As in `ThreeLevelRanker`.

    Attributes
    ----------
    item_ids_ : array of shape (n_items,)
        The items that somebody labelled.
    user_factors_, item_factors_ : arrays of shape (n_users or n_items, n_factors + 1)
        p_i and a_i; q_j and b_j: the bias comes last.
    feature_factors_ : array of shape (n_features, n_factors + 1)
        E and w, in units of ``scale_`` around ``origin_``.
    intercept_ : float
        a.
    origin_, scale_ : arrays of shape (n_features,)
        Mean and spread of the features over the items.
    objective_trace_ : array
        The objective by round, from where people and items were spread along directions on.
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

    item_ids_: IdArray
    user_factors_: Float
    item_factors_: Float
    feature_factors_: Float
    intercept_: float
    origin_: Float
    scale_: Float

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

    def __init__(
        self,
        n_factors: int = 2,
        alpha: float = 4.0,
        *,
        alpha_bias: float = 0.3,
        item_features: bool = True,
        tol: float = 3e-4,
        max_iter: int = 100,
        unknown: str = "error",
        user_column: int | str | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_factors = n_factors
        self.alpha = alpha
        self.alpha_bias = alpha_bias
        self.item_features = item_features
        self.tol = tol
        self.max_iter = max_iter
        self.unknown = unknown
        self.user_column = user_column
        self.verbose = verbose

    def scorable_ids(self) -> IdArray | None:
        """Return the ids of labelled items; None where features place any item."""
        return None if self.item_features and len(self.feature_names_) else self.item_ids_

    def _scores(self, rows: FloatArray, users: Index, items: IdArray | None) -> Float:
        """Return the log-odds of a positive label of each row's item by its person."""
        item = places_of_items(self, items)
        theirs = np.vstack([self.user_factors_, np.zeros(self.user_factors_.shape[1])])[users]
        places = self.item_factors_[item]
        new = item < 0
        places[new] = ((rows[new] - self.origin_) / self.scale_) @ self.feature_factors_
        ours = theirs.copy()
        ours[:, -1] = 1.0
        return np.asarray(
            self.intercept_ + theirs[:, -1] + np.einsum("nk,nk->n", ours, places), dtype=np.float64
        )

    def _fit_annotations(self, annotations: Annotations) -> None:
        self.item_ids_, item = labelled_items(annotations, type(self).__name__)
        self.users_ = annotations.user_ids
        table = features_of_items(annotations, item, len(self.item_ids_))
        self.origin_, spread = table.mean(axis=0), table.std(axis=0)
        self.scale_ = np.where(spread > 1e-12 * (1.0 + abs(self.origin_)), spread, 1.0)
        table = (table - self.origin_) / self.scale_ if self.item_features else table[:, :0]
        data = SparseVotes.of(annotations, item, len(self.item_ids_))
        n_factors = min(self.n_factors, min(data.shape) - 1)
        penalty = np.append(np.full(n_factors, float(self.alpha)), self.alpha_bias)
        model = FactorState.start(data, table, penalty)
        with both_callbacks(self, None) as callback:
            model = model.settle(self.tol, self.max_iter, callback)
            if n_factors:
                model = model.with_directions().settle(self.tol, self.max_iter, callback)
        self.user_factors_, self.item_factors_ = model.users, model.items
        self.intercept_ = model.intercept
        self.feature_factors_ = np.zeros((len(self.origin_), n_factors + 1))
        if self.item_features:
            self.feature_factors_ = model.weights
        self.objective_trace_ = np.array(model.trace)
        self.n_iter_ = len(model.trace) - 1

    def _default_grid(self, statistics: Statistics) -> list[dict[str, Any]]:  # noqa: ARG002
        """Return candidates, few dimensions and strong penalties first."""
        return [
            {"n_factors": rank, "alpha": alpha, "alpha_bias": bias, "item_features": features}
            for rank, alphas, biases in _GRID
            for alpha, bias, features in product(alphas, biases, (True, False))
        ]


# Numbers of factors, with the penalties on these and on biases that are worth trying.
_GRID = ((0, (4.0,), (1.0, 0.3)), (2, (8.0, 4.0, 2.0), (0.5,)), (8, (8.0, 4.0, 2.0), (0.5,)))
