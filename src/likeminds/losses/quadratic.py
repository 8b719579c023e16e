"""The sum over users of 1/2 |Z_i w - t_i|^2 = 1/2 (w' A_i w - 2 b_i' w + c_i), and its spectra.

Solvers use only this loss, so iterations do not read rows of users with at least as many rows as
features. In the eigenbasis of the curvature, A_i = Q_i' diag(a_i) Q_i and b_i = Q_i' s_i with
orthonormal rows of Q_i, so ridge problems are divisions. For users with few labels, Q_i has as many
rows as labels, computed from the small matrix Z_i Z_i', never d x d.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from likeminds._util.array_types import Float, Index
from likeminds._util.map_reduce import Executor, ThreadExecutor, in_order, in_threads
from likeminds._util.per_user_arrays import row_dots, times, times_back
from likeminds.losses.rows import RowBlock, Rows

# Users, and their Z and t.
Factor = tuple[Index, Float, Float]

# With fewer numbers, starting threads takes longer than the work.
_MIN_SIZE_FOR_THREADS = 1 << 20

# Eigenvalues below this share of a user's largest are rounding errors, and set to zero.
_NEGLIGIBLE = 1e-13
# The size of blocks of users that fit into the processor's cache.
_BLOCK_BYTES = 1 << 21


@dataclass(frozen=True)
class RowFactors:
    """Z_i and t_i of the users with few labels, computed at each pass unless they are cached."""

    rows: Rows
    origin: Float  # the origin of the features
    scale: Float  # their units
    make: Callable[[RowBlock], tuple[Float, Float]]
    cached: list[Factor] | None = None

    def __iter__(self) -> Iterator[Factor]:
        """Yield (users, Z, t), a block of users at a time."""
        return map(self.of, self.rows.plan()) if self.cached is None else iter(self.cached)

    def of(self, chosen: Index) -> Factor:
        """Return (users, Z, t) of one block of the plan."""
        block = self.rows.block(chosen, self.origin)
        Z, target = self.make(block)
        Z /= self.scale
        return block.users, Z, target

    def each(self, work: Callable[[Factor], None]) -> None:
        """Call ``work`` on every block, in threads if there are many numbers."""
        many = self._size > _MIN_SIZE_FOR_THREADS
        if self.cached is not None:
            ThreadExecutor(self.cached, many).each(work)
        else:
            ThreadExecutor(list(self.rows.plan()), many).each(lambda chosen: work(self.of(chosen)))

    def cache(self, memory: int) -> "RowFactors":
        """Return the same factors, cached if they fit into ``memory`` bytes."""
        fits = self.cached is None and 8 * self._size <= memory
        return replace(self, cached=list(self)) if fits else self

    @property
    def _size(self) -> int:
        return (len(self.rows.index) + len(self.rows.users)) * len(self.scale)


@dataclass(frozen=True)
class LossBlock:
    """The loss of some users: b_i, c_i, and A_i as matrices or as factors."""

    users: Index | slice  # positions among all users; other positions are in the block
    linear: Float  # the vectors b_i, shape (b, n_features)
    constant: Float  # the numbers c_i, shape (b,)
    dense_users: Index  # users whose A_i is a matrix, shape (p,)
    matrices: Float  # their A_i, shape (p, n_features, n_features)
    factors: RowFactors  # the A_i of other users

    def positions(self, users: Index) -> Index:
        """Return the positions among all users, given positions in the block."""
        return users if isinstance(self.users, slice) else self.users[users]

    def placed(self, found: "Iterable[CurvatureSpectrum]") -> "list[CurvatureSpectrum]":
        """Return spectra with positions among all users instead of in the block."""
        return [replace(one, users=self.positions(one.users)) for one in found]


@dataclass(frozen=True)
class UserWeights:
    """All users' weights: the state of a pass."""

    per_user: ClassVar[tuple[str, ...]] = ("W",)

    W: Float


@dataclass(frozen=True)
class QuadraticLoss:
    """The sum over users of 1/2 (w_i' A_i w_i - 2 b_i' w_i + c_i).

    Weights, gradients and products have one row per user, shape (n_users, n_features).
    """

    linear: Float  # the vectors b_i, shape (n_users, n_features)
    constant: Float  # the numbers c_i, shape (n_users,)
    blocks: Executor[LossBlock]  # the A_i, in blocks of users

    @classmethod
    def of_blocks(cls, blocks: Executor[LossBlock], n_users: int) -> "QuadraticLoss":
        """Collect the vectors and numbers of all users."""
        parts = list(blocks.map(_vectors, None))
        linear = in_order(((users, linear) for users, linear, _ in parts), n_users)
        constant = in_order(((users, constant) for users, _, constant in parts), n_users)
        return cls(linear, constant, blocks)

    @property
    def shape(self) -> tuple[int, int]:
        """(n_users, n_features)."""
        n_users, n_features = self.linear.shape
        return n_users, n_features

    def apply(self, W: Float) -> Float:
        """Return A_i w_i for every user."""
        return in_order(self.blocks.map(_apply, UserWeights(W)), len(W))

    def cache(self, memory: int) -> "QuadraticLoss":
        """Return the same loss with cached factors, if they fit into ``memory`` bytes."""
        return replace(self, blocks=self.blocks.derive(_cache, memory))

    def total_matrix(self) -> Float:
        """Return the sum over users of A_i, shape (n_features, n_features)."""
        total: Float
        total, _ = self.blocks.map_reduce(_total_matrix, None)
        return total

    def gradient(self, W: Float) -> Float:
        """Return A_i w_i - b_i for every user."""
        return self.apply(W) - self.linear

    def squares(self, W: Float) -> Float:
        """Return |Z_i w_i - t_i|^2 of every user: twice their losses."""
        return in_order(self.blocks.map(_squares, UserWeights(W)), len(W))

    def value(self, W: Float, gradient: Float | None = None) -> float:
        """Return the loss; if the gradient at W is given, without a pass over users."""
        if gradient is None:
            gradient = self.gradient(W)
        # w'Aw - 2 b'w = w'(Aw - b) - b'w
        return 0.5 * float(np.vdot(W, gradient - self.linear) + self.constant.sum())


def _vectors(block: LossBlock, *_unused: None) -> tuple[Index | slice, Float, Float]:
    return block.users, block.linear, block.constant


def _apply(block: LossBlock, at: UserWeights, own: None) -> tuple[Index | slice, Float]:  # noqa: ARG001
    W, product = at.W[block.users], np.zeros(block.linear.shape)
    product[block.dense_users] = times(block.matrices, W[block.dense_users])

    def fill(factor: Factor) -> None:
        users, Z, _ = factor
        product[users] = times_back(Z, times(Z, W[users]))

    block.factors.each(fill)
    return block.users, product


def _squares(block: LossBlock, at: UserWeights, own: None) -> tuple[Index | slice, Float]:
    users, product = _apply(block, at, own)
    return users, row_dots(at.W[users], product - 2.0 * block.linear) + block.constant


def _cache(block: LossBlock, memory: int) -> ThreadExecutor[LossBlock]:
    cached = replace(block, factors=block.factors.cache(memory))
    return ThreadExecutor([cached], many_threads=False)


def _total_matrix(block: LossBlock, *_unused: None) -> tuple[Float, None]:
    total: Float = block.matrices.sum(axis=0)
    for _, Z, _ in block.factors:
        rows = Z.reshape(-1, Z.shape[2])
        total += rows.T @ rows
    return total, None


@dataclass(frozen=True)
class CurvatureSpectrum:
    """The curvature of some users who have the same number r of eigen-directions."""

    users: Index  # their positions among all users, shape (p,)
    basis: Float  # Q_i, shape (p, r, d); rows of zeros if the curvature is zero
    curvature: Float  # the eigenvalues a_i, shape (p, r)
    slope: Float  # s_i = Q_i b_i, shape (p, r)

    def into(self, vectors: Float) -> Float:
        """Return Q_i x_i, for one vector per user or one for all."""
        if vectors.ndim == 1:
            return np.asarray(self.basis @ vectors)
        return times(self.basis, vectors)

    def back(self, coordinates: Float) -> Float:
        """Return Q_i' y_i."""
        return times_back(self.basis, coordinates)

    def weighted_sum(self, weight: Float) -> Float:
        """Return the sum over users of Q_i' diag(weight_i) Q_i, shape (d, d)."""
        rows = (np.sqrt(weight)[:, :, None] * self.basis).reshape(-1, self.basis.shape[2])
        return np.asarray(rows.T @ rows)


def spectra(loss: QuadraticLoss) -> Iterator[CurvatureSpectrum]:
    """Yield the spectra of all users; in each block, users with matrices first."""
    for found in loss.blocks.map(_spectra, None):
        yield from found


def _spectra(block: LossBlock, *_unused: None) -> list[CurvatureSpectrum]:
    return [*spectra_of_matrices(block), *spectra_of_factors(block)]


def spectra_of_matrices(block: LossBlock) -> list[CurvatureSpectrum]:
    """Return the spectra of users whose A_i is a matrix, with positions among all users."""

    def spectrum(some: slice) -> CurvatureSpectrum:
        users = block.dense_users[some]
        curvature, vectors = np.linalg.eigh(block.matrices[some])
        keep = curvature > _NEGLIGIBLE * curvature[:, -1:]
        basis = np.ascontiguousarray(vectors.transpose(0, 2, 1)) * keep[:, :, None]
        slope = times(basis, block.linear[users])
        return CurvatureSpectrum(users, basis, np.where(keep, curvature, 0.0), slope)

    size = max(1, _BLOCK_BYTES // (8 * block.linear.shape[1] ** 2))
    starts = range(0, len(block.dense_users), size)
    return block.placed(in_threads(spectrum, [slice(start, start + size) for start in starts]))


def spectra_of_factors(block: LossBlock) -> list[CurvatureSpectrum]:
    """Return the spectra of users with few labels, with positions among all users."""
    factors = block.factors
    return block.placed(
        in_threads(lambda chosen: spectrum_of_factors(*factors.of(chosen)), factors.rows.plan())
    )


def spectrum_of_factors(users: Index, Z: Float, target: Float) -> CurvatureSpectrum:
    """Return the spectrum of A_i = Z_i'Z_i, with b_i = Z_i't_i."""
    # Z = S diag(sqrt(a)) Q, so the eigenvectors S of the small Z Z' give Q = a^-1/2 S' Z.
    curvature, vectors = np.linalg.eigh(Z @ Z.transpose(0, 2, 1))
    keep = curvature > _NEGLIGIBLE * curvature[:, -1:]
    root = np.sqrt(np.where(keep, curvature, 1.0))
    basis = (vectors * (keep / root)[:, None, :]).transpose(0, 2, 1) @ Z
    slope = np.where(keep, times_back(vectors, target) * root, 0.0)  # Q Z't = sqrt(a) S't
    return CurvatureSpectrum(users, basis, np.where(keep, curvature, 0.0), slope)
