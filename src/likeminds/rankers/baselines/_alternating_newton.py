"""Logistic matrix factorisation by Newton steps that alternate between users and items."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve
from scipy.sparse import csr_array
from scipy.special import expit
from sklearn.utils.extmath import randomized_svd

from likeminds._util.array_types import Float, Index
from likeminds.data.annotations import Annotations
from likeminds.mixed_model.numerics import damped_newton
from likeminds.solvers.solver import Callback

# Users (or items) whose small problems are solved as one batch.
_BATCH = 8192


@dataclass(frozen=True)
class SparseLabels:
    """Labels and weights in compressed rows, by user or by item; repeated labels all count."""

    indices: Index
    indptr: Index
    shape: tuple[int, int]
    label: Float
    weight: Float

    @classmethod
    def of(
        cls, rows: Index, columns: Index, shape: tuple[int, int], label: Float, weight: Float
    ) -> "SparseLabels":
        """Sort the labels by row, then by column."""
        order = np.lexsort((columns, rows))
        indptr = np.append(0, np.cumsum(np.bincount(rows, minlength=shape[0])))
        return cls(columns[order], indptr, shape, label[order], weight[order])

    @property
    def rows(self) -> Index:
        """The row of each label."""
        return np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))

    def matrix(self, values: Float) -> csr_array:
        """Return a sparse matrix with a value for each label."""
        return csr_array((values, self.indices, self.indptr), shape=self.shape)

    def batch(self, start: int, stop: int) -> "SparseLabels":
        """Return the labels of some rows."""
        part = slice(self.indptr[start], self.indptr[stop])
        indptr = self.indptr[start : stop + 1] - self.indptr[start]
        shape = (stop - start, self.shape[1])
        return SparseLabels(self.indices[part], indptr, shape, self.label[part], self.weight[part])


@dataclass(frozen=True)
class FactorState:
    """Factors and biases of users and items (biases last), and the objective by round."""

    by_user: SparseLabels
    by_item: SparseLabels
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
        weight = np.ones(len(label))
        if annotations.weights is not None:
            weight[:] = annotations.weights
        n_users, n_items, size = annotations.n_users, len(table), len(penalty)
        share = np.clip(np.average(label, weights=weight), 1e-6, 1.0 - 1e-6)
        return cls(
            SparseLabels.of(user, item, (n_users, n_items), label, weight),
            SparseLabels.of(item, user, (n_items, n_users), label, weight),
            table,
            penalty,
            users=np.zeros((n_users, size)),
            items=np.zeros((n_items, size)),
            weights=np.zeros((table.shape[1], size)),
            intercept=float(np.log(share / (1.0 - share))),
        )

    def minimise(self, tol: float, max_iter: int, callback: Callback | None) -> "FactorState":
        """Alternate between users, items and features until the objective hardly decreases."""
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
        """Set the items' factors to the leading singular vectors of the biases' residuals."""
        labels, size = self.by_user, len(self.penalty) - 1
        residuals = labels.matrix(labels.weight * (labels.label - expit(self._scores())))
        _, strength, right = randomized_svd(residuals, size, n_iter=8, random_state=0)
        items = self.items.copy()
        # About as long as the penalty permits; only the directions matter at the start.
        items[:, :size] = right.T * np.sqrt(len(items)) * 0.5
        items[:, :size] *= (strength / max(strength[0], 1e-300))[None]
        return replace(self, items=items)

    def _scores(self) -> Float:
        """Return the log-odds of each label, by user."""
        user, item = self.by_user.rows, self.by_user.indices
        dot = np.einsum("nk,nk->n", self.users[user, :-1], self.items[item, :-1])
        return np.asarray(self.intercept + self.users[user, -1] + self.items[item, -1] + dot)

    def _objective(self) -> float:
        scores = self._scores()
        loss = np.logaddexp(0.0, scores) - self.by_user.label * scores
        deviation = self.items - self.table @ self.weights
        parts = (self.users, deviation, self.weights)
        squares = sum(((part**2) @ self.penalty).sum() for part in parts)
        return float(self.by_user.weight @ loss + 0.5 * squares)

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
        """Regress the items' factors on features: ridge regression, in closed form."""
        if not self.table.shape[1]:
            return self
        gram = self.table.T @ self.table + np.eye(self.table.shape[1])
        return replace(self, weights=solve(gram, self.table.T @ self.items))

    def _newton_step(
        self, labels: SparseLabels, points: Float, others: Float, mean: Float
    ) -> Float:
        """Return one side's points after a Newton step each, given those of the other side."""
        moved = np.empty_like(points)
        for start in range(0, len(points), _BATCH):
            batch = slice(start, min(start + _BATCH, len(points)))
            part = labels.batch(batch.start, batch.stop)
            moved[batch] = self._newton_batch(part, points[batch], others, mean[batch])
        return moved

    def _newton_batch(
        self, labels: SparseLabels, points: Float, others: Float, mean: Float
    ) -> Float:
        size, row, column = len(self.penalty), labels.rows, labels.indices
        design = others.copy()
        design[:, -1] = 1.0
        offset = self.intercept + others[column, -1]

        def evaluate(at: Float) -> tuple[tuple[Float, Float], Float]:
            scores = offset + np.einsum("nk,nk->n", at[row], design[column])
            loss = labels.weight * (np.logaddexp(0.0, scores) - labels.label * scores)
            total = np.bincount(row, weights=loss, minlength=len(at))
            return (at, scores), total + 0.5 * (at - mean) ** 2 @ self.penalty

        def step(evaluated: tuple[Float, Float]) -> Float:
            at, scores = evaluated
            odds = expit(scores)
            gradient = labels.matrix(labels.weight * (labels.label - odds)) @ design
            gradient -= (at - mean) * self.penalty
            squares = (design[:, :, None] * design[:, None, :]).reshape(len(design), -1)
            hessian = labels.matrix(labels.weight * odds * (1.0 - odds)) @ squares
            hessian = hessian.reshape(len(at), size, size) + np.diag(self.penalty)
            return np.asarray(np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0])

        return damped_newton(points, evaluate, step, n_steps=1)[0]
