"""The equations of people's modes, given the prior: in weights, or in the pulls of their rows.

A person's weights are mean + L z with z ~ N(0, I) and L L' = Omega, so that in z the prior is
the identity. People with more rows than coordinates are solved in z (*primal*, matrices of
coordinates x coordinates), the others in the pulls a of their rows, z = X'a (*dual*, matrices
of rows x rows).

Where features of items are learned, their uncertainty adds a penalty (see `crossed`): a
quadratic form in z, one for each person. It is part of their prior (`Held`), and what is
said above of z then holds of y, with z = A y.
"""

from dataclasses import dataclass

import numpy as np

from likeminds._support.arrays import Float, Index
from likeminds._support.stacks import row_dots, solve_nearly, times, times_back
from likeminds.prior.held import Held
from likeminds.prior.likelihoods import Curvature
from likeminds.prior.prior import Prior
from likeminds.prior.tasks import Task

# What a step that is nearly solved for leaves of it: it gains this squared less than it might.
_LEFT = 0.03


@dataclass(frozen=True)
class Spread:
    """The covariance S of z, and what is needed of it.

    Attributes
    ----------
    log_determinant : array of shape (b,)
        Half of log |S^-1|.
    total : array of shape (p, p)
        The sum of S over the people.
    variance : array of shape (b, n)
        The variance of R' eta, where R R' is the likelihood's curvature.
    inner : array
        S itself (primal), or (I + R' X X' R)^-1 (dual).
    """

    log_determinant: Float
    total: Float
    variance: Float
    inner: Float


@dataclass(frozen=True)
class Primal:
    """People with at least as many rows as coordinates; the state is z (or y).

    Rows are held column by column: coordinates may be few, and loops over few numbers are slow.
    """

    rows: Float
    offset: Float
    held: Held | None = None

    def of(self, people: Index) -> "Primal":
        """Return the system of some of the people, by their places in the block."""
        held = None if self.held is None else self.held.of(people)
        columns = self.rows.transpose(0, 2, 1)[people]
        return Primal(columns.transpose(0, 2, 1), self.offset[people], held)

    def start(self, pulls: Float) -> Float:
        """Return the state that has these pulls."""
        return times_back(self.rows, pulls)

    def eta(self, state: Float) -> Float:
        """Return everybody's eta."""
        return self.offset + times(self.rows, state)

    def penalty(self, state: Float, eta: Float) -> Float:
        """Return half the squared length of z."""
        del eta
        return 0.5 * row_dots(state, state)

    def newton(self, state: Float, eta: Float, pull: Float, curvature: Curvature) -> Float:
        """Return the state that Newton's method proposes."""
        del eta
        slope = times_back(self.rows, pull) - state
        precision = _plus_identity(_gram(curvature.times_root_back(self.rows)))
        return np.asarray(state + np.linalg.solve(precision, slope[:, :, None])[:, :, 0])

    def z(self, state: Float) -> Float:
        """Return everybody's z: the state, or A times it."""
        return state if self.held is None else self.held.of_vectors(state)

    def spread(self, curvature: Curvature) -> Spread:
        """Return everybody's posterior covariance."""
        scaled = curvature.times_root_back(self.rows)
        covariance, half = _inverse(_plus_identity(_gram(scaled)))
        columns = scaled.transpose(0, 2, 1)
        variance = np.einsum("bpn,bpn->bn", covariance @ columns, columns)
        if self.held is None:
            return Spread(half, covariance.sum(axis=0), variance, covariance)
        total = self.held.around(covariance).sum(axis=0)
        return Spread(half + self.held.log_determinant, total, variance, covariance)

    def shift(self, spread: Spread, curvature: Curvature) -> Float:
        """Return how far the mode's state lies from the mean's, to first order: see `Moments`."""
        return times(spread.inner, times_back(self.rows, curvature.tilt(spread.variance)))

    def with_scores(self, spread: Spread, curvature: Curvature) -> Float:
        """Return the covariance of every row's eta with z, shape (b, n, p)."""
        del curvature
        crossed = self.rows @ spread.inner
        return np.asarray(crossed if self.held is None else self.held.of_rows(crossed))

    def seen_along(self, spread: Spread, curvature: Curvature, directions: Float) -> Float:
        """Return the covariances of directions' z, (b, r, r); directions have shape (p, r)."""
        del curvature
        seen = _as_stack(directions, len(self.rows), self.held)
        return np.asarray(seen @ spread.inner @ seen.transpose(0, 2, 1))

    def information(self, curvature: Curvature, most: int) -> tuple[Float, Float]:
        """Return the directions of z known best, (b, most, p), and 1 - their variances."""
        precision = _plus_identity(_gram(curvature.times_root_back(self.rows)))
        values, vectors = np.linalg.eigh(precision)
        best = vectors[:, :, ::-1][:, :, :most].transpose(0, 2, 1)
        return best, 1.0 - 1.0 / np.maximum(values[:, ::-1][:, :most], 1.0)


@dataclass(frozen=True)
class Dual:
    """People with fewer rows than coordinates; the state is the pulls of their rows.

    ``nearly`` is for large crowds: steps are solved for by products alone, to within a small share.
    """

    rows: Float
    offset: Float
    gram: Float
    held: Held | None = None
    nearly: bool = False

    def of(self, people: Index) -> "Dual":
        """Return the system of some of the people, by their places in the block."""
        held = None if self.held is None else self.held.of(people)
        rows, offset, gram = self.rows[people], self.offset[people], self.gram[people]
        return Dual(rows, offset, gram, held, self.nearly)

    def start(self, pulls: Float) -> Float:
        """Return the state that has these pulls."""
        return pulls

    def eta(self, state: Float) -> Float:
        """Return everybody's eta."""
        return self.offset + times(self.gram, state)

    def penalty(self, state: Float, eta: Float) -> Float:
        """Return half the squared length of z = X'a."""
        return 0.5 * row_dots(state, eta - self.offset)

    def newton(self, state: Float, eta: Float, pull: Float, curvature: Curvature) -> Float:
        """Return the state that Newton's method proposes."""
        if self.nearly:
            return self._nearly_newton(state, pull, curvature)
        wanted = curvature.times_root(curvature.times_root_back(eta - self.offset)) + pull
        right = curvature.times_root_back(times(self.gram, wanted))
        solved = np.linalg.solve(self.inner(curvature), right[:, :, None])[:, :, 0]
        return np.asarray(wanted - curvature.times_root(np.asarray(solved)))

    def _nearly_newton(self, state: Float, pull: Float, curvature: Curvature) -> Float:
        """Return it nearly: a - R (I + R'GR)^-1 R'G (a - state), with a the pulls that are wanted.

        What is solved for is nothing at the mode, so that a share of it may be left out.
        """

        def times_inner(vectors: Float) -> Float:
            seen = times(self.gram, curvature.times_root(vectors))
            return np.asarray(vectors + curvature.times_root_back(seen))

        right = curvature.times_root_back(times(self.gram, pull - state))
        return np.asarray(pull - curvature.times_root(solve_nearly(times_inner, right, _LEFT)))

    def z(self, state: Float) -> Float:
        """Return everybody's z."""
        inner = times_back(self.rows, state)
        return inner if self.held is None else self.held.of_vectors(inner)

    def spread(self, curvature: Curvature) -> Spread:
        """Return everybody's posterior covariance."""
        inner, half = _inverse(self.inner(curvature))
        n_people, n_rows, size = self.rows.shape
        scaled = curvature.times_root_back(self.rows)
        whole = n_people * np.eye(size)
        if self.held is not None:
            scaled, whole = self.held.of_rows(scaled), self.held.squared()
            half = half + self.held.log_determinant
        reduced = (inner @ scaled).reshape(n_people * n_rows, size)
        total = whole - scaled.reshape(n_people * n_rows, size).T @ reduced
        return Spread(half, total, 1.0 - np.einsum("bnn->bn", inner), inner)

    def shift(self, spread: Spread, curvature: Curvature) -> Float:
        """Return how far the mode's state lies from the mean's, to first order: see `Moments`."""
        slope = curvature.tilt(spread.variance)
        less = times(spread.inner, curvature.times_root_back(times(self.gram, slope)))
        return np.asarray(slope - curvature.times_root(less))

    def with_scores(self, spread: Spread, curvature: Curvature) -> Float:
        """Return the covariance of every row's eta with z, shape (b, n, p)."""
        scaled = curvature.times_root_back(self.rows)
        back = curvature.times_root_back(self.gram).transpose(0, 2, 1)
        crossed = self.rows - back @ (spread.inner @ scaled)
        return np.asarray(crossed if self.held is None else self.held.of_rows(crossed))

    def seen_along(self, spread: Spread, curvature: Curvature, directions: Float) -> Float:
        """Return the covariances of directions' z, (b, r, r); directions have shape (p, r)."""
        seen = _as_stack(directions, len(self.rows), self.held)
        scaled = curvature.times_root_back(self.rows) @ seen.transpose(0, 2, 1)
        known = scaled.transpose(0, 2, 1) @ spread.inner @ scaled
        return np.asarray(seen @ seen.transpose(0, 2, 1) - known)

    def information(self, curvature: Curvature, most: int) -> tuple[Float, Float]:
        """Return the directions of z known best, (b, most, p), and 1 - their variances."""
        values, vectors = np.linalg.eigh(self.inner(curvature))
        values, vectors = values[:, ::-1][:, :most], vectors[:, :, ::-1][:, :, :most]
        known = values > 1.0 + 1e-12
        scale = np.where(known, 1.0 / np.sqrt(np.maximum(values - 1.0, 1e-300)), 0.0)
        best = (vectors * scale[:, None, :]).transpose(0, 2, 1)
        scaled = curvature.times_root_back(self.rows)
        return best @ scaled, np.where(known, 1.0 - 1.0 / values, 0.0)

    def inner(self, curvature: Curvature) -> Float:
        """Return I + R' X X' R."""
        half = curvature.times_root_back(self.gram).transpose(0, 2, 1)
        return _plus_identity(curvature.times_root_back(half))


def system_of(task: Task, prior: Prior, *, nearly: bool = False) -> Primal | Dual:
    """Return the primal or dual system of a block, with rows whitened by the prior."""
    rows = prior.whitened(task.rows)
    offset = task.rows @ prior.mean
    if prior.shifts is not None:
        offset += times(task.rows, prior.shifts[task.people])
    held = None
    if task.offset is not None:
        offset += task.offset
    if task.held is not None:
        held = Held.of_precision(task.held, prior.root[-task.held.shape[1] :])
        rows = held.of_rows(rows)
    if task.beyond is not None:
        gram = rows @ rows.transpose(0, 2, 1) + prior.beyond * task.beyond
        return Dual(rows, offset, gram, held)
    if rows.shape[1] < rows.shape[2]:
        return Dual(rows, offset, rows @ rows.transpose(0, 2, 1), held, nearly)
    columns = np.ascontiguousarray(rows.transpose(0, 2, 1))
    return Primal(columns.transpose(0, 2, 1), offset, held)


def _as_stack(directions: Float, n_people: int, held: Held | None) -> Float:
    """Return directions, shape (p, r), in everybody's y: (b, r, p)."""
    stack = np.repeat(directions.T[None], n_people, axis=0)
    return stack if held is None else held.of_rows(stack)


def _plus_identity(matrices: Float) -> Float:
    diagonal = np.einsum("bii->bi", matrices)
    diagonal += 1.0
    return matrices


def _gram(rows: Float) -> Float:
    """Return X'X for each person."""
    return np.asarray(rows.transpose(0, 2, 1) @ rows)


def _inverse(matrices: Float) -> tuple[Float, Float]:
    """Return the inverses of matrices, and half the logarithms of their determinants."""
    factor = np.linalg.cholesky(matrices)
    half = np.log(np.einsum("bii->bi", factor)).sum(axis=1)
    return np.asarray(np.linalg.inv(matrices), dtype=np.float64), np.asarray(half)
