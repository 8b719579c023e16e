"""Arrays with an entry per user: small matrices, Newton steps, collected rows, hash sampling."""

import zlib
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from likeminds._util.array_types import Bool, Float, Index

Hashes = NDArray[np.uint64]
S = TypeVar("S")
T = TypeVar("T")

_TINY = 1e-300
# The gain at which Newton's method stops, in units of log-likelihood; steps are limited.
EXACT = 1e-9
NEWTON_STEPS = 100
# For matrices up to this size, the overhead of LAPACK's calls is larger than its work.
_FEW_ROWS = 10


def times(matrices: Float, vectors: Float) -> Float:
    """Return M_i x_i, shape (p, m), of matrices (p, m, n) and vectors (p, n)."""
    return np.asarray((matrices @ vectors[:, :, None])[:, :, 0])


def times_back(matrices: Float, vectors: Float) -> Float:
    """Return M_i' y_i, shape (p, n), of matrices (p, m, n) and vectors (p, m)."""
    return np.asarray((vectors[:, None, :] @ matrices)[:, 0])


def row_dots(x: Float, y: Float) -> Float:
    """Return the inner products of the rows, shape (p,)."""
    return np.asarray(np.einsum("ij,ij->i", x, y))


def solve(matrices: Float, right: Float) -> Float:
    """Return M_i^-1 R_i, shape (p, n, m), of matrices (p, n, n) and right sides (p, n, m)."""
    return np.asarray(np.linalg.solve(matrices, right), dtype=np.float64)


def solve_nearly(times_matrix: Callable[[Float], Float], right: Float, share: float) -> Float:
    """Approximate M_i^-1 r_i, shape (p, n), by conjugate gradients.

    The residual is at most a share of r_i. M_i is symmetric, positive definite, and given by its
    products with vectors. Converged systems are frozen, so no solution depends on other systems.
    """
    found, residual = np.zeros_like(right), right.copy()
    direction, length = right.copy(), row_dots(right, right)
    enough = share**2 * length
    for _ in range(right.shape[1]):
        product = times_matrix(direction)
        full_step = length / np.maximum(row_dots(direction, product), _TINY)
        step = np.where(length > enough, full_step, 0.0)[:, None]
        found += step * direction
        residual -= step * product
        before, length = length, row_dots(residual, residual)
        if (length <= enough).all():
            break
        direction *= (length / np.maximum(before, _TINY))[:, None]
        direction += residual
    return found


def lift_diagonal(matrices: Float, share: float) -> Float:
    """Add a share of its trace to each matrix's diagonal, so none is singular."""
    lift = share * np.einsum("ijj->i", matrices) + 1e-200
    return np.asarray(matrices + lift[:, None, None] * np.eye(matrices.shape[-1]))


def symmetric_root(covariances: Float) -> Float:
    """Return matrices L with L L' = covariances, which may be singular."""
    values, vectors = np.linalg.eigh(covariances)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :])


def half_log_determinant(matrices: Float) -> Float:
    """Return half of log |M_i|, shape (p,), of positive definite matrices (p, n, n)."""
    factor = np.linalg.cholesky(matrices)
    return np.asarray(np.log(np.einsum("ijj->ij", factor)).sum(axis=1))


def inverse_and_log(matrices: Float) -> tuple[Float, Float]:
    """Return M_i^-1, (p, n, n), and half of log |M_i|, (p,), of positive definite matrices."""
    if matrices.shape[1] > _FEW_ROWS:
        inverse = np.asarray(np.linalg.inv(matrices), dtype=np.float64)
        return inverse, half_log_determinant(matrices)
    # Gauss-Jordan elimination of all at once; positive definite matrices need no pivoting.
    swept = np.array(matrices.transpose(1, 2, 0), order="C")
    pivots = np.empty(swept.shape[1:])
    for place, pivot in enumerate(pivots):
        pivot[:] = swept[place, place]
        row, column = swept[place] / pivot, swept[:, place].copy()
        column[place] = 0.0
        swept -= column[:, None] * row
        swept[:, place] = column / -pivot
        swept[place] = row
        swept[place, place] = 1.0 / pivot
    return np.ascontiguousarray(swept.transpose(2, 0, 1)), 0.5 * np.log(pivots).sum(axis=0)


def damped_step(
    state: Float, step: Float, at: Callable[[Float], tuple[T, Float]], moves: Bool, scale: Float
) -> tuple[T, Float]:
    """Halve the steps of users whose objective rises; return the last evaluation and its gains.

    ``at`` evaluates a state and returns each user's gain; rises below rounding, relative to
    ``scale``, do not count. Users who do not move keep their state.
    """
    share = moves.astype(np.float64)
    for _ in range(40):
        new, gain = at(state + share[:, None] * step)
        rises = gain < -EXACT * scale
        if not rises.any():
            break
        share = np.where(rises, 0.5 * share, share)
    return new, gain


def damped_newton(
    state: Float,
    at: Callable[[Float], tuple[T, Float | None]],
    step_of: Callable[[T], Float],
    *,
    longest: float = np.inf,
    enough: float = EXACT,
    n_steps: int = NEWTON_STEPS,
) -> T:
    """Solve n problems of size k by Newton's method, damped per problem; return the last ``at``.

    ``at`` evaluates a state: the input of ``step_of``, and objectives, which never increase.
    Without objectives (only slopes are known), steps are cut to ``longest``, and iterations stop
    once all are shorter than ``enough``.
    """
    found, value = at(state)
    moves = np.ones(len(state), dtype=np.bool_)
    for _ in range(n_steps):
        step = step_of(found)
        length = np.abs(step).max(axis=1)
        step = step / np.maximum(length / longest, 1.0)[:, None]
        scale = np.ones(len(state)) if value is None else 1.0 + np.abs(value)

        def tried(
            new: Float, before: Float | None = value, length: Float = length
        ) -> tuple[tuple[T, Float, Float | None], Float]:
            found, objective = at(new)
            gain = length if before is None or objective is None else before - objective
            return (found, new, objective), gain

        (found, state, value), gain = damped_step(state, step, tried, moves, scale)
        moves &= gain > enough
        if not moves.any():
            break
    return found


@dataclass
class CollectedRows:
    """Arrays with a row for each of some users (by position); ``+=`` joins two collections."""

    users: list[Index]
    numbers: list[list[NDArray[Any]]]

    def __iadd__(self, other: "CollectedRows") -> "CollectedRows":
        self.users = self.users + other.users
        self.numbers = self.numbers + other.numbers
        return self

    def in_order(self) -> list[NDArray[Any]]:
        """Return the arrays in the order of users; rows of one user stay in theirs."""
        order = np.argsort(np.concatenate(self.users), kind="stable")
        columns = zip(*self.numbers, strict=True)
        return [np.concatenate(column)[order] for column in columns]


@dataclass(frozen=True)
class SubsetRows:
    """Rows of some of the users, indexed by positions among all of them."""

    values: NDArray[Any]
    users: Index

    def __len__(self) -> int:
        return len(self.users)

    def __getitem__(self, users: Index) -> NDArray[Any]:
        return np.asarray(self.values[np.searchsorted(self.users, users)])


@dataclass(frozen=True)
class SeparateArray:
    """Placeholder of an array that is sent separately from its state."""

    number: int


def split_user_arrays(state: S, arrays: list[Any]) -> S:
    """Replace the per-user arrays of a state by placeholders, and append them to ``arrays``.

    A dataclass names its arrays with a row per user in ``per_user``. Cached attributes that
    are not fields are dropped.
    """

    def change(value: object, of_users: bool) -> object:
        if not (of_users and isinstance(value, np.ndarray | SubsetRows) and len(value)):
            return value
        arrays.append(value)
        return SeparateArray(len(arrays) - 1)

    split: S = _changed(state, change)
    return split


def restore_user_arrays(state: S, arrays: list[Any]) -> S:
    """Return a state with arrays in place of its placeholders."""
    whole: S = _changed(
        state, lambda one, _: arrays[one.number] if isinstance(one, SeparateArray) else one
    )
    return whole


def _changed(
    value: object, change: Callable[[object, bool], object], of_users: bool = False
) -> Any:
    """Change the parts of a state; ``change`` gets each part and whether it has a row per user."""
    new = change(value, of_users)
    if new is not value:
        return new
    if isinstance(value, tuple):
        return tuple(_changed(one, change) for one in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    parts = fields(value)
    if not all(one.init for one in parts):
        return value
    per_user = getattr(value, "per_user", ())
    changed = {
        one.name: _changed(getattr(value, one.name), change, one.name in per_user) for one in parts
    }
    return replace(value, **changed)


def of_users(state: S, users: Index | slice) -> S:
    """Return a state with the rows of some users, in their order.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Known:
    ...     per_user = ("ages",)
    ...     ages: NDArray[Any]
    >>> of_users(Known(np.array([30, 41, 52])), np.array([2, 0]))
    Known(ages=array([52, 30]))
    """
    arrays: list[Any] = []
    split = split_user_arrays(state, arrays)
    return restore_user_arrays(split, [array[users] for array in arrays])


def nan_mean(values: Float) -> Float:
    """Return the mean over the last axis of the finite values; NaN without any."""
    finite = np.isfinite(values)
    count = finite.sum(axis=-1)
    total = np.where(finite, values, 0.0).sum(axis=-1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def order_by(codes: Index, n_codes: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Sort rows stably by their codes; return their order, and the first place of each code.

    Many codes and row numbers share one 64-bit key, because sorting plain numbers is several
    times faster than sorting positions by a key.

    Examples
    --------
    >>> order_by(np.array([2, 0, 2, 0]), 3)
    (array([1, 3, 0, 2]), array([0, 2, 2, 4]))
    """
    offsets = np.zeros(n_codes + 1, dtype=np.intp)
    np.cumsum(np.bincount(codes, minlength=n_codes), out=offsets[1:])
    rows = np.arange(len(codes), dtype=np.intp)
    if (codes[1:] >= codes[:-1]).all():
        return rows, offsets
    if n_codes <= 1 << 16:  # a radix sort
        return np.argsort(codes.astype(np.uint16), kind="stable"), offsets
    if max(len(codes), n_codes) >= 1 << 32:
        return np.argsort(codes, kind="stable"), offsets
    keys = codes.astype(np.uint64) << np.uint64(32)
    keys |= rows.view(np.uint64)
    keys.sort()
    keys &= np.uint64((1 << 32) - 1)
    return keys.view(np.intp), offsets


def drawn(share: float, users: Index, numbers: Index) -> Bool:
    """Sample about this share of labels by hashes of users and items, whatever their order."""
    if share >= 1.0:
        return np.ones(len(users), dtype=np.bool_)
    return np.asarray(lots_of(users, numbers) < np.uint64(int(share * 2.0**64)))


def hashes_of(ids: Iterable[Hashable], seed: int = 0) -> Hashes:
    """Return a hash for each id, which depends only on its text and the seed."""
    return np.array([zlib.crc32(f"{seed} {one}".encode()) for one in ids], dtype=np.uint64)


def lots_of(users: Index | Hashes, numbers: Index | Hashes) -> Hashes:
    """Return a hash for each label, computed from the numbers of its user and item (splitmix64)."""
    lots = users.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + numbers.astype(np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        lots = (lots ^ (lots >> np.uint64(shift))) * np.uint64(factor)
    lots ^= lots >> np.uint64(31)
    return np.asarray(lots)
