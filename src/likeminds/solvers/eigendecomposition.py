"""Everybody's eigenvectors for the fast solver: of all people, or of a sample if they are many."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from likeminds._util.array_types import Bool
from likeminds._util.map_reduce import Executor, ThreadExecutor
from likeminds.losses.quadratic import (
    AbstractQuadraticLoss,
    CurvatureSpectrum,
    QuadraticLoss,
    RowFactors,
    spectra,
    spectra_of_factors,
    spectra_of_matrices,
)
from likeminds.solvers.trust_region import ReducedProblem
from likeminds.solvers.variable_projection import CachedBlock, Penalty, StreamedBlock

# Below so many bytes of eigenvectors, to start threads takes longer than the work.
_WORTH_THREADS = 1 << 22


@dataclass(frozen=True)
class AbstractEigendecomposition(ABC):
    """People with their eigenvectors, wherever they are: what the fast solver works on.

    Attributes
    ----------
    loss : AbstractQuadraticLoss
        The loss that was decomposed.
    """

    loss: AbstractQuadraticLoss

    @property
    @abstractmethod
    def n_kept(self) -> int:
        """How many people's eigenvectors are kept."""

    @abstractmethod
    def kept(self, *, alone: bool) -> Executor[CachedBlock]:
        """Return the people whose eigenvectors are kept, ``alone`` or with all others."""

    @abstractmethod
    def others(self) -> Executor[StreamedBlock] | None:
        """Return the others, if there are any."""

    def problems(
        self, penalty: Penalty, unit: float = 1.0, accuracy: float = 1e-12
    ) -> tuple[ReducedProblem, ReducedProblem | None]:
        """Return everybody's problem, and the sample's if there is one."""
        n_users, n_features = self.loss.shape
        alone = ReducedProblem(
            self.kept(alone=True),
            penalty,
            self.n_kept,
            n_users,
            n_features,
            unit=unit,
            accuracy=accuracy,
        )
        rest = self.others()
        if rest is None:
            return alone, None
        return replace(alone, people=self.kept(alone=False), rest=rest), alone


@dataclass(frozen=True)
class EigenvectorSample:
    """The people with few labels whose eigenvectors are kept.

    Attributes
    ----------
    chosen : array of bool, shape (p,), optional
        Which of them; without it, all are.
    stands_for : float
        How many people each of them stands for.
    """

    chosen: Bool | None = None
    stands_for: float = 1.0

    @classmethod
    def of(cls, n_users: int, n_rows: int, n_features: int, memory: int) -> "EigenvectorSample":
        """Draw as many people as ``memory`` bytes have room for, of those with so many rows.

        Examples
        --------
        >>> EigenvectorSample.of(4, 12, 10, memory=1280).chosen
        >>> EigenvectorSample.of(4, 12, 10, memory=640)
        EigenvectorSample(chosen=array([ True, False,  True, False]), stands_for=2.0)
        """
        need = 8 * n_features * (n_rows + n_users)
        if need <= memory:
            return cls()
        n_kept = max(1, int(n_users * memory / need))
        chosen = np.zeros(n_users, dtype=bool)
        chosen[np.random.default_rng(0).permutation(n_users)[:n_kept]] = True
        return cls(chosen, n_users / n_kept)


@dataclass(frozen=True)
class Eigendecomposition(AbstractEigendecomposition):
    """The eigenvectors of people in this process, or of a sample of them.

    Attributes
    ----------
    loss : QuadraticLoss
        The loss that was decomposed.
    blocks : list of CurvatureSpectrum
        People in memory.
    stands_for : list of float
        How many people each of a block stands for.
    rest : RowFactors, optional
        Those who are not in memory.
    """

    loss: QuadraticLoss
    blocks: list[CurvatureSpectrum]
    stands_for: list[float]
    rest: RowFactors | None = None

    @classmethod
    def of(cls, loss: QuadraticLoss, memory: int) -> "Eigendecomposition":
        """Decompose as many people as fit into ``memory``."""
        rows = loss.factors.rows
        return cls.of_sample(
            loss, EigenvectorSample.of(len(rows.people), len(rows.index), loss.shape[1], memory)
        )

    @classmethod
    def of_sample(cls, loss: QuadraticLoss, sample: EigenvectorSample) -> "Eigendecomposition":
        """Decompose people with many labels, and a sample of the others."""
        if sample.chosen is None:
            blocks = list(spectra(loss))
            return cls(loss, blocks, [1.0] * len(blocks))
        dense, rows = list(spectra_of_matrices(loss)), loss.factors.rows
        some = replace(loss, factors=replace(loss.factors, rows=rows.of(sample.chosen)))
        found = list(spectra_of_factors(some))
        stands_for = [1.0] * len(dense) + [sample.stands_for] * len(found)
        rest = replace(loss.factors, rows=rows.of(~sample.chosen))
        return cls(loss, dense + found, stands_for, rest)

    @property
    def n_kept(self) -> int:
        """How many people are in memory."""
        return sum(len(part.people) for part in self.blocks)

    def kept(self, *, alone: bool) -> ThreadExecutor[CachedBlock]:
        """Return the people in memory; alone, their loss stands for that of others, too."""
        weights: Sequence[float] = self.stands_for if alone else [1.0] * len(self.blocks)
        counted = zip(self.blocks, self.stands_for, weights, strict=True)
        many = sum(part.basis.nbytes for part in self.blocks) >= _WORTH_THREADS
        return ThreadExecutor([CachedBlock(*each) for each in counted], many_threads=many)

    def others(self) -> ThreadExecutor[StreamedBlock] | None:
        """Return those who are not in memory."""
        if self.rest is None:
            return None
        return ThreadExecutor(
            [StreamedBlock(self.rest, chosen) for chosen in self.rest.rows.plan()]
        )
