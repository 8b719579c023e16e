"""Logistic matrix factorisation, by Newton steps that alternate between users and items."""

from dataclasses import KW_ONLY, dataclass, replace
from itertools import product
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import solve
from scipy.sparse import csr_array
from scipy.special import expit
from sklearn.utils._param_validation import Interval
from sklearn.utils.extmath import randomized_svd

from likeminds._util.array_types import Float, FloatArray, IdArray, Index
from likeminds._util.per_user_arrays import damped_newton
from likeminds.data.annotations import Annotations
from likeminds.losses.statistics import Statistics
from likeminds.rankers.baselines.popularity import (
    features_of_items,
    label_counts,
    labelled_items,
    places_of_items,
)
from likeminds.rankers.ranker import Ranker, both_callbacks
from likeminds.solvers.solver import Callback

# Numbers of factors, and penalties on factors and on biases, that a search tries.
_GRID = ((0, (4.0,), (1.0, 0.3)), (2, (8.0, 4.0, 2.0), (0.5,)), (8, (8.0, 4.0, 2.0), (0.5,)))


# Parameters are the fields of a dataclass; see `IterativeRanker`.
@dataclass(eq=False, repr=False)
class Factorisation(Ranker):
    """Logistic matrix factorisation of users x items, with biases and features of items.

    The log-odds of a positive label of item j by user i are

        a + a_i + b_j + p_i'q_j,        b_j = x_j'w + beta_j,    q_j = E'x_j + eps_j

    Newton steps, alternating between users and items, minimise the logistic losses plus penalties.
    The penalties are ``alpha`` / 2 times the squares of p, eps and E, and ``alpha_bias`` / 2 times
    the squares of a_i, beta and w. Items are identified by their ids.

    Parameters
    ----------
    n_factors : int, default=2
        The number of factors; with 0, the model has biases only.
    alpha : float, default=4.0
        Ridge on the factors of users and items.
    alpha_bias : float, default=0.3
        Ridge on the biases of users and items.
    item_features : bool, default=True
        Predict items' factors and biases from features (w and E above), as LightFM does, also for
        new items. Otherwise, ``unknown`` applies to new items.
    tol : float, default=3e-4
        Stop when a round of steps improves the objective by less than this share.
    max_iter : int, default=100
        The largest number of rounds.
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
        p_i and a_i, or q_j and b_j; the bias comes last.
    feature_factors_ : array of shape (n_features, n_factors + 1)
        E and w, in units of ``scale_`` around ``origin_``.
    intercept_ : float
        a.
    origin_, scale_ : arrays of shape (n_features,)
        Mean and standard deviation of the features over the items.
    objective_trace_ : array
        The objective by round, starting with the spectral start.
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
    }

    def scorable_ids(self) -> IdArray | None:
        """Return the ids of labelled items; None if features predict factors of new items."""
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
        """Return candidates, with few factors and strong penalties first."""
        return [
            {"n_factors": rank, "alpha": alpha, "alpha_bias": bias, "item_features": features}
            for rank, alphas, biases in _GRID
            for alpha, bias, features in product(alphas, biases, (True, False))
        ]


# Users (or items) whose small problems are solved as one batch.
_BATCH = 8192


def _by_row(rows: Index, columns: Index, shape: tuple[int, int]) -> csr_array:
    """Return positions of labels as a sparse matrix, with repeated labels kept."""
    order = np.lexsort((columns, rows))
    indptr = np.append(0, np.cumsum(np.bincount(rows, minlength=shape[0])))
    return csr_array((order, columns[order], indptr), shape=shape)


def _rows_of(labels: csr_array) -> Index:
    return np.repeat(np.arange(labels.shape[0]), np.diff(labels.indptr))


def _matrix(labels: csr_array, values: Float) -> csr_array:
    """Return a sparse matrix with a value for each label."""
    return csr_array((values, labels.indices, labels.indptr), shape=labels.shape)


@dataclass(frozen=True)
class FactorState:
    """Factors and biases of users and items (biases last), and the objective by round."""

    by_user: csr_array
    by_item: csr_array
    label: Float
    weight: Float
    table: Float
    penalty: Float
    users: Float
    items: Float
    weights: Float
    intercept: float
    trace: tuple[float, ...] = ()

    @classmethod
    def start(
        cls, annotations: Annotations, item: Index, table: Float, penalty: Float
    ) -> "FactorState":
        """Start at zero factors, with the log-odds of all labels as the intercept."""
        user, label = annotations.user_codes, annotations.labels.astype(np.float64)
        weight = label_counts(annotations)[:, 0]
        n_users, n_items, size = annotations.n_users, len(table), len(penalty)
        share = np.clip(np.average(label, weights=weight), 1e-6, 1.0 - 1e-6)
        return cls(
            _by_row(user, item, (n_users, n_items)),
            _by_row(item, user, (n_items, n_users)),
            label,
            weight,
            table,
            penalty,
            users=np.zeros((n_users, size)),
            items=np.zeros((n_items, size)),
            weights=np.zeros((table.shape[1], size)),
            intercept=float(np.log(share / (1.0 - share))),
        )

    def minimise(self, tol: float, max_iter: int, callback: Callback | None) -> "FactorState":
        """Alternate between users, items and features until the objective converges."""
        state, values = self, [self._objective()]
        for step in range(1, max_iter + 1):
            state = state._step_users()._step_items()._step_features()
            values.append(state._objective())
            change = values[-2] - values[-1]
            stop = callback is not None and callback(step, values[-1], change)
            if stop or change <= tol * abs(values[-1]):
                break
        return replace(state, trace=tuple(values))

    def with_spectral_start(self) -> "FactorState":
        """Set items' factors to the leading singular vectors of the residuals of biases alone."""
        order, size = self.by_user.data, len(self.penalty) - 1
        slopes = self.weight[order] * (self.label[order] - expit(self._scores()))
        residuals = _matrix(self.by_user, slopes)
        _, strength, right = randomized_svd(residuals, size, n_iter=8, random_state=0)
        items = self.items.copy()
        # The length is about that at the optimum; at the start, directions matter more.
        items[:, :size] = right.T * np.sqrt(len(items)) * 0.5
        items[:, :size] *= (strength / max(strength[0], 1e-300))[None]
        return replace(self, items=items)

    def _scores(self) -> Float:
        """Return the log-odds of each label, by user."""
        user, item = _rows_of(self.by_user), self.by_user.indices
        dot = np.einsum("nk,nk->n", self.users[user, :-1], self.items[item, :-1])
        return np.asarray(self.intercept + self.users[user, -1] + self.items[item, -1] + dot)

    def _objective(self) -> float:
        scores, order = self._scores(), self.by_user.data
        loss = np.logaddexp(0.0, scores) - self.label[order] * scores
        deviation = self.items - self.table @ self.weights
        parts = (self.users, deviation, self.weights)
        squares = sum(((part**2) @ self.penalty).sum() for part in parts)
        return float(self.weight[order] @ loss + 0.5 * squares)

    def _step_users(self) -> "FactorState":
        users = self._newton_step(self.by_user, self.users, self.items, np.zeros_like(self.users))
        # The mean bias of users moves into the intercept, which has no penalty.
        shift = float(users[:, -1].mean())
        users[:, -1] -= shift
        return replace(self, users=users, intercept=self.intercept + shift)

    def _step_items(self) -> "FactorState":
        mean = self.table @ self.weights
        return replace(self, items=self._newton_step(self.by_item, self.items, self.users, mean))

    def _step_features(self) -> "FactorState":
        """Regress items' factors on features by ridge regression."""
        if not self.table.shape[1]:
            return self
        gram = self.table.T @ self.table + np.eye(self.table.shape[1])
        return replace(self, weights=solve(gram, self.table.T @ self.items))

    def _newton_step(self, labels: csr_array, points: Float, others: Float, mean: Float) -> Float:
        """Return one side's points after a Newton step each, given the other side's points."""
        moved = np.empty_like(points)
        for start in range(0, len(points), _BATCH):
            batch = slice(start, start + _BATCH)
            moved[batch] = self._newton_batch(labels[batch], points[batch], others, mean[batch])
        return moved

    def _newton_batch(self, labels: csr_array, points: Float, others: Float, mean: Float) -> Float:
        label, weight = self.label[labels.data], self.weight[labels.data]
        size, row, column = len(self.penalty), _rows_of(labels), labels.indices
        design = others.copy()
        design[:, -1] = 1.0
        offset = self.intercept + others[column, -1]

        def evaluate(at: Float) -> tuple[tuple[Float, Float], Float]:
            scores = offset + np.einsum("nk,nk->n", at[row], design[column])
            loss = weight * (np.logaddexp(0.0, scores) - label * scores)
            total = np.bincount(row, weights=loss, minlength=len(at))
            return (at, scores), total + 0.5 * (at - mean) ** 2 @ self.penalty

        def step(evaluated: tuple[Float, Float]) -> Float:
            at, scores = evaluated
            odds = expit(scores)
            gradient = _matrix(labels, weight * (label - odds)) @ design
            gradient -= (at - mean) * self.penalty
            squares = (design[:, :, None] * design[:, None, :]).reshape(len(design), -1)
            hessian = _matrix(labels, weight * odds * (1.0 - odds)) @ squares
            hessian = hessian.reshape(len(at), size, size) + np.diag(self.penalty)
            return np.asarray(np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0])

        return damped_newton(points, evaluate, step, n_steps=1)[0]
