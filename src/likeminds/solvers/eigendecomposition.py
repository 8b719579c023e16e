"""The eigenvectors for the fast solver: of all users, or of a sample if they are many."""

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

# Below so many bytes of eigenvectors, to start threads takes longer than the work.
_WORTH_THREADS = 1 << 22
# Users with eigenvectors, whose loss stands for that of others or not; and the others.
_ALONE, _TOGETHER, _OTHERS = "alone", "together", "others"


@dataclass(frozen=True)
class EigenvectorSample:
    """The users with few labels whose eigenvectors are cached."""

    per_user: ClassVar[tuple[str, ...]] = ("chosen",)

    chosen: Bool | None = None  # shape (n_users,); None for all
    stands_for: float = 1.0  # how many users each of them stands for

    @classmethod
    def of(cls, few: Index, n_rows: int, shape: tuple[int, int], memory: int) -> Self:
        """Draw as many of the ``few`` as ``memory`` bytes have room for, given all their rows.

        Examples
        --------
        >>> EigenvectorSample.of(np.arange(4), 12, (5, 10), memory=1280).chosen
        >>> EigenvectorSample.of(np.arange(4), 12, (5, 10), memory=640)
        EigenvectorSample(chosen=array([ True, False,  True, False, False]), stands_for=2.0)
        """
        n_users, n_features = shape
        need = 8 * n_features * (n_rows + len(few))
        if need <= memory:
            return cls()
        n_kept = max(1, int(len(few) * memory / need))
        chosen = np.zeros(n_users, dtype=bool)
        chosen[few[np.random.default_rng(0).permutation(len(few))[:n_kept]]] = True
        return cls(chosen, len(few) / n_kept)


@dataclass(frozen=True)
class Spectra(Executor[Any]):
    """Blocks of decomposed users, by what they are needed for: a state is (which blocks, state)."""

    blocks: dict[str, ThreadExecutor[Any]]

    def map_reduce(
        self,
        work: Callable[[Any, S, Any], tuple[R, Any]],
        state: S,
        own: Own = None,
        *,
        start: R | None = None,
    ) -> tuple[R, Own]:
        """Return the sum over the blocks that the state is for; without any, ``start``."""
        which, inner = cast(tuple[str, Any], state)
        some = self.blocks[which]
        if not some.blocks:
            return cast(R, start), []
        return some.map_reduce(work, inner, own, start=start)

    def map(self, work: Callable[[Any, S, Any], R], state: S, own: Own = None) -> Iterator[R]:
        """Yield the answers of the blocks that the state is for."""
        which, inner = cast(tuple[str, Any], state)
        return self.blocks[which].map(work, inner, own)


@dataclass(frozen=True)
class SpectraSubset(Executor[B]):
    """Blocks of `Spectra` that are needed for one thing."""

    spectra: Executor[Any]
    which: str

    def map_reduce(
        self,
        work: Callable[[B, S, Any], tuple[R, Any]],
        state: S,
        own: Own = None,
        *,
        start: R | None = None,
    ) -> tuple[R, Own]:
        """Return the sum over these blocks."""
        bound: Any = (self.which, state)
        return self.spectra.map_reduce(work, bound, own, start=start)

    def map(self, work: Callable[[B, S, Any], R], state: S, own: Own = None) -> Iterator[R]:
        """Yield the answers of these blocks."""
        bound: Any = (self.which, state)
        return self.spectra.map(work, bound, own)


@dataclass(frozen=True)
class Eigendecomposition:
    """Users with their eigenvectors, or a sample of them: what the fast solver works on."""

    loss: QuadraticLoss
    spectra: Executor[Any]  # see `Spectra`
    n_kept: int  # users with eigenvectors
    n_others: int  # and without

    @classmethod
    def of(cls, loss: QuadraticLoss, memory: int) -> "Eigendecomposition":
        """Decompose as many users as fit into ``memory``."""
        few, n_rows = zip(*loss.blocks.map(_few, None), strict=True)
        users = np.sort(np.concatenate(few))
        sample = EigenvectorSample.of(users, sum(n_rows), loss.shape, memory)
        spectra = loss.blocks.derive(_decompose, sample)
        found = [
            SpectraSubset[Any](spectra, which).map(_count, None) for which in (_ALONE, _OTHERS)
        ]
        return cls(loss, spectra, *map(sum, found))

    def problems(
        self, penalty: Penalty, unit: float = 1.0, accuracy: float = 1e-12
    ) -> tuple[ReducedProblem, ReducedProblem | None]:
        """Return the problem of all users, and the sample's if there is one."""
        sample = SpectraSubset[CachedBlock](self.spectra, _ALONE)
        alone = ReducedProblem(sample, penalty, self.n_kept, *self.loss.shape, unit, accuracy)
        if not self.n_others:
            return alone, None
        users: Executor[CachedBlock] = SpectraSubset(self.spectra, _TOGETHER)
        rest: Executor[StreamedBlock] = SpectraSubset(self.spectra, _OTHERS)
        return replace(alone, users=users, rest=rest), alone


def _few(block: LossBlock, state: None, own: None) -> tuple[Index, int]:  # noqa: ARG001
    """Return the positions of users without matrices, and how many rows they have."""
    rows = block.factors.rows
    return block.positions(rows.users), len(rows.index)


def _count(block: CachedBlock | StreamedBlock, state: None, own: None) -> int:  # noqa: ARG001
    return len(block.users)


def _decompose(block: LossBlock, sample: EigenvectorSample) -> Spectra:
    """Decompose users with many labels, and the sample of the others."""
    rows, some, rest = block.factors.rows, block, None
    if sample.chosen is not None:
        chosen = sample.chosen[block.positions(rows.users)]
        some = replace(block, factors=replace(block.factors, rows=rows.of(chosen)))
        rest = replace(block.factors, rows=rows.of(~chosen))
    dense, found = spectra_of_matrices(block), spectra_of_factors(some)
    spectra = dense + found
    stands_for = [1.0] * len(dense) + [sample.stands_for] * len(found)
    others: list[StreamedBlock] = []
    if rest is not None:
        plan = list(rest.rows.plan())
        placed = replace(rest.rows, users=block.positions(rest.rows.users))
        others = [StreamedBlock(replace(rest, rows=placed), chosen) for chosen in plan]
    return Spectra(
        {
            _ALONE: _cached(spectra, stands_for, stands_for),
            _TOGETHER: _cached(spectra, stands_for, [1.0] * len(spectra)),
            _OTHERS: ThreadExecutor(others),
        }
    )


def _cached(
    spectra: list[CurvatureSpectrum], stands_for: list[float], weight: list[float]
) -> ThreadExecutor[CachedBlock]:
    many = sum(part.basis.nbytes for part in spectra) >= _WORTH_THREADS
    blocks = [CachedBlock(*each) for each in zip(spectra, stands_for, weight, strict=True)]
    return ThreadExecutor(blocks, many_threads=many)
