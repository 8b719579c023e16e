"""The eigenvectors for the fast solver: of all users, or of a sample that fits into memory."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np

from likeminds._util.array_types import Bool, Index
from likeminds._util.map_reduce import Executor, Own, ThreadExecutor
from likeminds.losses.quadratic import (
    CurvatureSpectrum,
    LossBlock,
    QuadraticLoss,
    spectra_of_factors,
    spectra_of_matrices,
)
from likeminds.solvers.trust_region import ReducedProblem
from likeminds.solvers.variable_projection import CachedBlock, Penalty, StreamedBlock

B = TypeVar("B")
S = TypeVar("S")
R = TypeVar("R")

# For fewer bytes of eigenvectors, starting threads takes longer than the work.
_MIN_BYTES_FOR_THREADS = 1 << 22
# Users with eigenvectors, whose loss represents others or not; and users without.
_SAMPLE, _CACHED, _STREAMED = "sample", "cached", "streamed"


@dataclass(frozen=True)
class EigenvectorSample:
    """The users with few labels whose eigenvectors are cached."""

    per_user: ClassVar[tuple[str, ...]] = ("chosen",)

    chosen: Bool | None = None  # shape (n_users,); None for all
    multiplicity: float = 1.0  # how many users each of them represents

    @classmethod
    def of(cls, few: Index, n_rows: int, shape: tuple[int, int], memory: int) -> Self:
        """Draw as many of the ``few`` as fit into ``memory`` bytes, given the number of their rows.

        Examples
        --------
        >>> EigenvectorSample.of(np.arange(4), 12, (5, 10), memory=1280).chosen
        >>> EigenvectorSample.of(np.arange(4), 12, (5, 10), memory=640)
        EigenvectorSample(chosen=array([ True, False,  True, False, False]), multiplicity=2.0)
        """
        n_users, n_features = shape
        need = 8 * n_features * (n_rows + len(few))
        if need <= memory:
            return cls()
        n_cached = max(1, int(len(few) * memory / need))
        chosen = np.zeros(n_users, dtype=bool)
        chosen[few[np.random.default_rng(0).permutation(len(few))[:n_cached]]] = True
        return cls(chosen, len(few) / n_cached)


@dataclass(frozen=True)
class Spectra(Executor[Any]):
    """Blocks of decomposed users by role; the state of a pass is (role, inner state)."""

    blocks: dict[str, ThreadExecutor[Any]]

    def map_reduce(
        self,
        work: Callable[[Any, S, Any], tuple[R, Any]],
        state: S,
        own: Own = None,
        *,
        start: R | None = None,
    ) -> tuple[R, Own]:
        """Return the sum over the blocks of the state's role; ``start`` if there are none."""
        role, inner = cast(tuple[str, Any], state)
        chosen = self.blocks[role]
        if not chosen.blocks:
            return cast(R, start), []
        return chosen.map_reduce(work, inner, own, start=start)

    def map(self, work: Callable[[Any, S, Any], R], state: S, own: Own = None) -> Iterator[R]:
        """Yield the results of the blocks of the state's role."""
        role, inner = cast(tuple[str, Any], state)
        return self.blocks[role].map(work, inner, own)


@dataclass(frozen=True)
class SpectraSubset(Executor[B]):
    """The blocks of one role in `Spectra`."""

    spectra: Executor[Any]
    role: str

    def map_reduce(
        self,
        work: Callable[[B, S, Any], tuple[R, Any]],
        state: S,
        own: Own = None,
        *,
        start: R | None = None,
    ) -> tuple[R, Own]:
        """Return the sum over these blocks."""
        bound: Any = (self.role, state)
        return self.spectra.map_reduce(work, bound, own, start=start)

    def map(self, work: Callable[[B, S, Any], R], state: S, own: Own = None) -> Iterator[R]:
        """Yield the results of these blocks."""
        bound: Any = (self.role, state)
        return self.spectra.map(work, bound, own)


@dataclass(frozen=True)
class Eigendecomposition:
    """All users, or a sample of them, with their eigenvectors: the input of the fast solver."""

    loss: QuadraticLoss
    spectra: Executor[Any]  # see `Spectra`
    n_cached: int  # users with eigenvectors
    n_streamed: int  # and without

    @classmethod
    def of(cls, loss: QuadraticLoss, memory: int) -> "Eigendecomposition":
        """Decompose as many users as fit into ``memory``."""
        few, n_rows = zip(*loss.blocks.map(_few, None), strict=True)
        users = np.sort(np.concatenate(few))
        sample = EigenvectorSample.of(users, sum(n_rows), loss.shape, memory)
        spectra = loss.blocks.derive(_decompose, sample)
        found = [
            SpectraSubset[Any](spectra, role).map(_count, None) for role in (_SAMPLE, _STREAMED)
        ]
        return cls(loss, spectra, *map(sum, found))

    def problems(
        self, penalty: Penalty, unit: float = 1.0, accuracy: float = 1e-12
    ) -> tuple[ReducedProblem, ReducedProblem | None]:
        """Return the problem of all users, and that of the sample, if any."""
        sample = SpectraSubset[CachedBlock](self.spectra, _SAMPLE)
        sampled = ReducedProblem(sample, penalty, self.n_cached, *self.loss.shape, unit, accuracy)
        if not self.n_streamed:
            return sampled, None
        users: Executor[CachedBlock] = SpectraSubset(self.spectra, _CACHED)
        rest: Executor[StreamedBlock] = SpectraSubset(self.spectra, _STREAMED)
        return replace(sampled, users=users, rest=rest), sampled


def _few(block: LossBlock, state: None, previous: None) -> tuple[Index, int]:  # noqa: ARG001
    """Return the positions of users without matrices, and the number of their rows."""
    rows = block.factors.rows
    return block.positions(rows.users), len(rows.index)


def _count(block: CachedBlock | StreamedBlock, state: None, previous: None) -> int:  # noqa: ARG001
    return len(block.users)


def _decompose(block: LossBlock, sample: EigenvectorSample) -> Spectra:
    """Decompose users with many labels, and the sample of the streamed."""
    rows, some, rest = block.factors.rows, block, None
    if sample.chosen is not None:
        chosen = sample.chosen[block.positions(rows.users)]
        some = replace(block, factors=replace(block.factors, rows=rows.of(chosen)))
        rest = replace(block.factors, rows=rows.of(~chosen))
    dense, found = spectra_of_matrices(block), spectra_of_factors(some)
    spectra = dense + found
    multiplicity = [1.0] * len(dense) + [sample.multiplicity] * len(found)
    streamed: list[StreamedBlock] = []
    if rest is not None:
        plan = list(rest.rows.plan())
        placed = replace(rest.rows, users=block.positions(rest.rows.users))
        streamed = [StreamedBlock(replace(rest, rows=placed), chosen) for chosen in plan]
    return Spectra(
        {
            _SAMPLE: _cached(spectra, multiplicity, multiplicity),
            _CACHED: _cached(spectra, multiplicity, [1.0] * len(spectra)),
            _STREAMED: ThreadExecutor(streamed),
        }
    )


def _cached(
    spectra: list[CurvatureSpectrum], multiplicity: list[float], weight: list[float]
) -> ThreadExecutor[CachedBlock]:
    many = sum(part.basis.nbytes for part in spectra) >= _MIN_BYTES_FOR_THREADS
    blocks = [CachedBlock(*each) for each in zip(spectra, multiplicity, weight, strict=True)]
    return ThreadExecutor(blocks, many_threads=many)
