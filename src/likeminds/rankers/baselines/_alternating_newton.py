"""Alternating Newton steps of a logistic matrix factorisation, many small problems at once."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit
from sklearn.utils.extmath import randomized_svd

from likeminds._util.array_types import Float, Index
from likeminds.data.annotations import Annotations
from likeminds.solvers.solver import Callback

# People (or items) whose small problems are solved at once.
_AT_ONCE = 8192
# How often a Newton step that made things worse is halved before it is given up.
_HALVINGS = 12


@dataclass(frozen=True)
class SparseVotes:
    """Labels in compressed rows by user and by item; ``order`` maps the latter to the former."""

    by_user: csr_array
    by_item: csr_array
    order: Index
    label: Float
    weight: Float

    @classmethod
    def of(cls, said: Annotations, item: Index, n_items: int) -> "SparseVotes":
        """Sort the labels both ways; several of one item by one person all count."""
        weight = np.ones(len(said)) if said.weights is None else np.asarray(said.weights)
        person = said.user_codes
        ours = np.lexsort((item, person))
        theirs = np.lexsort((person[ours], item[ours]))
        return cls(
            _pointers(person[ours], item[ours], (said.n_users, n_items)),
            _pointers(item[ours][theirs], person[ours][theirs], (n_items, said.n_users)),
            theirs,
            said.labels[ours].astype(np.float64),
            weight[ours].astype(np.float64),
        )

    @property
    def shape(self) -> tuple[int, int]:
        """How many people and items there are."""
        n_users, n_items = self.by_user.shape
        return n_users, n_items


def _pointers(rows: Index, columns: Index, shape: tuple[int, int]) -> csr_array:
    begin = np.append(0, np.cumsum(np.bincount(rows, minlength=shape[0])))
    return csr_array((np.ones(len(rows)), columns, begin), shape=shape)


@dataclass(frozen=True)
class FactorState:
    """Where people and items are, and what that costs."""

    data: SparseVotes
    table: Float
    penalty: Float
    users: Float
    items: Float
    weights: Float
    intercept: float
    trace: tuple[float, ...]

    @classmethod
    def start(cls, data: SparseVotes, table: Float, penalty: Float) -> "FactorState":
        """Start with everybody in the middle."""
        share = float(np.average(data.label, weights=data.weight))
        share = min(max(share, 1e-6), 1.0 - 1e-6)
        n_users, n_items = data.shape
        size = len(penalty)
        users, items = np.zeros((n_users, size)), np.zeros((n_items, size))
        weights = np.zeros((table.shape[1], size))
        odds = float(np.log(share / (1.0 - share)))
        return cls(data, table, penalty, users, items, weights, odds, ())

    def settle(self, tol: float, max_iter: int, callback: Callback | None = None) -> "FactorState":
        """Alternate between people and items until little changes."""
        model, values = self, [self._objective()]
        for step in range(1, max_iter + 1):
            model = model._step_users()._step_items()._step_features()
            values.append(model._objective())
            change = values[-2] - values[-1]
            stop = callback is not None and callback(step, values[-1], change)
            if stop or change <= tol * abs(values[-1]):
                break
        return _change(model, trace=tuple(values))

    def with_directions(self) -> "FactorState":
        """Spread people and items along the main directions of what the biases leave."""
        votes = self.data
        odds = expit(self._scores())
        left = votes.weight * (votes.label - odds)
        size = len(self.penalty) - 1
        matrix = _fill(votes.by_user, left)
        _, strength, right = randomized_svd(matrix, size, n_iter=8, random_state=0)
        items = self.items.copy()
        # About as long as the penalty lets them be; only the directions matter at the start.
        items[:, :size] = right.T * np.sqrt(len(items)) * 0.5
        items[:, :size] *= (strength / max(strength[0], 1e-300))[None]
        return _change(self, items=items)

    def _scores(self) -> Float:
        """Return the log-odds of each label, by person."""
        person, item = _owners(self.data.by_user), self.data.by_user.indices
        dot = np.einsum("nk,nk->n", self.users[person, :-1], self.items[item, :-1])
        return np.asarray(self.intercept + self.users[person, -1] + self.items[item, -1] + dot)

    def _objective(self) -> float:
        scores = self._scores()
        loss = np.logaddexp(0.0, scores) - self.data.label * scores
        own = self.items - self.table @ self.weights
        squares = sum(((part**2) @ self.penalty).sum() for part in (self.users, own, self.weights))
        return float(self.data.weight @ loss + 0.5 * squares)

    def _step_users(self) -> "FactorState":
        votes = self.data
        moved = _newton(
            votes.by_user,
            (votes.label, votes.weight),
            self.users,
            self.items,
            intercept=self.intercept,
            centre=np.zeros_like(self.users),
            penalty=self.penalty,
        )
        # A bias that all people share is the intercept's, at no price.
        shift = float(moved[:, -1].mean())
        moved[:, -1] -= shift
        return _change(self, users=moved, intercept=self.intercept + shift)

    def _step_items(self) -> "FactorState":
        votes = self.data
        moved = _newton(
            votes.by_item,
            (votes.label[votes.order], votes.weight[votes.order]),
            self.items,
            self.users,
            intercept=self.intercept,
            centre=self.table @ self.weights,
            penalty=self.penalty,
        )
        return _change(self, items=moved)

    def _step_features(self) -> "FactorState":
        """Find what features say of items: ridge regression, in closed form."""
        if not self.table.shape[1]:
            return self
        gram = self.table.T @ self.table + np.eye(self.table.shape[1])
        return _change(self, weights=np.linalg.solve(gram, self.table.T @ self.items))


def _change(model: FactorState, **changes: Any) -> FactorState:
    return FactorState(**{**vars(model), **changes})


def _fill(where: csr_array, data: Float) -> csr_array:
    return csr_array((data, where.indices, where.indptr), shape=where.shape)


def _owners(where: csr_array) -> Index:
    return np.repeat(np.arange(where.shape[0]), np.diff(where.indptr))


def _newton(
    where: csr_array,
    votes: tuple[Float, Float],
    points: Float,
    others: Float,
    *,
    intercept: float,
    centre: Float,
    penalty: Float,
) -> Float:
    """Return one side's points after a Newton step each, the other side staying where it is.

    Nobody moves to where it is worse: such a step is halved.
    """
    moved = points.copy()
    for start in range(0, len(points), _AT_ONCE):
        chosen = slice(start, min(start + _AT_ONCE, len(points)))
        side = _Side.of(
            where,
            votes,
            chosen,
            others,
            intercept=intercept,
            centre=centre[chosen],
            penalty=penalty,
        )
        moved[chosen] = side.step(points[chosen])
    return moved


@dataclass(frozen=True)
class _Side:
    """Some people with the items they labelled, or some items with the people who did."""

    where: csr_array
    owner: Index
    label: Float
    weight: Float
    rows: Float
    offset: Float
    centre: Float
    penalty: Float

    @classmethod
    def of(
        cls,
        where: csr_array,
        votes: tuple[Float, Float],
        chosen: slice,
        others: Float,
        *,
        intercept: float,
        centre: Float,
        penalty: Float,
    ) -> "_Side":
        begin, end = where.indptr[chosen.start], where.indptr[chosen.stop]
        columns = where.indices[begin:end]
        pointers = where.indptr[chosen.start : chosen.stop + 1] - begin
        shape = (chosen.stop - chosen.start, where.shape[1])
        part = csr_array((np.ones(end - begin), columns, pointers), shape=shape)
        rows = others.copy()
        rows[:, -1] = 1.0
        offset = intercept + others[columns, -1]
        label, weight = (column[begin:end] for column in votes)
        return cls(part, _owners(part), label, weight, rows, offset, centre, penalty)

    def values(self, points: Float, scores: Float) -> Float:
        """Return what each point costs, given the log-odds of the labels there."""
        loss = self.weight * (np.logaddexp(0.0, scores) - self.label * scores)
        summed = np.bincount(self.owner, weights=loss, minlength=len(points))
        return np.asarray(summed + 0.5 * (points - self.centre) ** 2 @ self.penalty)

    def step(self, points: Float) -> Float:
        """Return the points after a Newton step, halved where it leads up."""
        seen = self.rows[self.where.indices]
        scores = self.offset + np.einsum("nk,nk->n", points[self.owner], seen)
        odds = expit(scores)
        slope = _fill(self.where, self.weight * (self.label - odds)) @ self.rows
        slope -= (points - self.centre) * self.penalty
        size = self.rows.shape[1]
        squares = (self.rows[:, :, None] * self.rows[:, None, :]).reshape(len(self.rows), -1)
        bend = _fill(self.where, self.weight * odds * (1.0 - odds)) @ squares
        bend = bend.reshape(len(points), size, size) + np.diag(self.penalty)
        way = np.linalg.solve(bend, slope[:, :, None])[:, :, 0]
        before, share = self.values(points, scores), np.ones(len(points))
        change = np.einsum("nk,nk->n", way[self.owner], seen)
        for _ in range(_HALVINGS):
            there = scores + share[self.owner] * change
            worse = self.values(points + share[:, None] * way, there) > before
            if not worse.any():
                break
            share[worse] *= 0.5
        else:
            share[worse] = 0.0
        return np.asarray(points + share[:, None] * way)
