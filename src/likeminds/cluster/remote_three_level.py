"""Three levels on a cluster: statistics and eigenvectors stay with their people.

What comes here is what a ranker has of each person anyway, one row of features, and sums. The
solver is that of one process, and so is the sample of people whose eigenvectors are kept.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from operator import iadd
from typing import Any, ClassVar, TypeVar

import numpy as np

from likeminds._util.array_types import Bool, Float, Index
from likeminds._util.map_reduce import SumTuple, ThreadExecutor
from likeminds._util.threads import in_this_thread, one_blas_thread
from likeminds.cluster.session import ClusterSession, let_go
from likeminds.cluster.shard_people import DaskExecutor, Shard
from likeminds.losses import Loss, QuadraticLoss
from likeminds.losses.statistics import Statistics, scale_from
from likeminds.solvers.eigendecomposition import (
    AbstractEigendecomposition,
    Eigendecomposition,
    EigenvectorSample,
)
from likeminds.solvers.remote import RemoteLoss, RemoteStatistics
from likeminds.solvers.variable_projection import CachedBlock, StreamedBlock

B = TypeVar("B")

# Whom a visit is to: everybody's loss; people with eigenvectors, alone or with others; the others.
_LOSS, _ALONE, _TOGETHER, _OTHERS = "loss", "alone", "together", "others"


@dataclass(frozen=True)
class _SubsetState:
    """The state of a visit to some of the people of each shard."""

    whom: str
    state: Any


@dataclass(frozen=True)
class _LevelShard(Shard):
    """Some people on a worker, in blocks."""

    places: Index
    blocks: dict[str, ThreadExecutor[Any]]

    @property
    def people(self) -> Index:
        """The positions of its people among all people."""
        return self.places

    def bound(self, state: _SubsetState) -> tuple[ThreadExecutor[Any], Any]:
        """Return the blocks of those whom a visit is to."""
        return self.blocks[state.whom], state.state


@dataclass
class _SubsetExecutor(DaskExecutor[B]):
    """Some of the people of each shard: see `DaskExecutor`."""

    whom: str

    def addressed(self, state: Any) -> _SubsetState:
        """Return a state with whom it is for."""
        return _SubsetState(self.whom, state)


@dataclass(frozen=True)
class _StatisticsOutline:
    """What is told of a shard's statistics: one row a person, and sums."""

    origin: Float
    class_weight: Float
    few: Index
    n_rows: int
    n_items: int
    sums: SumTuple


def _outline(statistics: Statistics, places: Index) -> _StatisticsOutline:
    rows = statistics.rows
    return _StatisticsOutline(
        statistics.origin,
        statistics.class_weight,
        places[rows.people],
        len(rows.index),
        len(rows.table),
        statistics.feature_sums(),
    )


@dataclass(frozen=True)
class RemoteShardStatistics(RemoteStatistics):
    """Everybody's statistics, in shards on a cluster.

    Attributes
    ----------
    user_ids, origin, class_weight : arrays
        As in `RemoteStatistics`.
    site : ClusterSession
        The fit that they belong to.
    futures : list of futures
        The statistics of each shard, until there is a loss.
    places : list of arrays
        The positions of each shard's people among all people.
    few : list of arrays
        The positions of those who have too few labels for matrices.
    n_rows : int
        How many labels these have.
    n_items : int
        How many rows of features there are that shards have for themselves.
    sums : SumTuple
        Of what `feature_scale` is made.
    """

    site: ClusterSession
    futures: list[Any]
    places: list[Index]
    few: list[Index]
    n_rows: int
    n_items: int
    sums: SumTuple

    @classmethod
    def of(
        cls, site: ClusterSession, futures: list[Any], census: Any, *, own_tables: bool
    ) -> "RemoteShardStatistics":
        """Ask shards for what is to be known of their statistics.

        ``own_tables``: rows of people with few labels are not those of a table that all have.
        """
        parts = zip(futures, census.places, strict=True)
        found = site.gathered(site.submit(_outline, *part) for part in parts)
        return cls(
            census.user_ids,
            found[0].origin,
            _in_place(zip(census.places, (one.class_weight for one in found), strict=True)),
            site,
            futures,
            census.places,
            [one.few for one in found],
            sum(one.n_rows for one in found),
            sum(one.n_items for one in found) if own_tables else 0,
            reduce(iadd, (one.sums for one in found)),
        )

    @property
    def n_bytes(self) -> int:
        """What all of them would take in this process, about."""
        n_dense, n_kinds = self.n_users - sum(map(len, self.few)), self.class_weight.shape[1]
        matrices = 8 * n_dense * n_kinds * self.n_features**2
        return int(matrices + 17 * self.n_rows + 8 * self.n_items * self.n_features)

    def feature_scale(self) -> Float:
        """Return the standard deviation of each feature over all rows (1 if constant)."""
        return scale_from(*self.sums)

    def loss(self, kind: Loss, scale: Float) -> "RemoteShardLoss":
        """Return the loss of everybody's weights, made where they are in place of statistics."""
        parts = zip(self.futures, self.places, strict=True)
        shards = [self.site.making(_measured, *part, kind, scale) for part in parts]
        people: _SubsetExecutor[_ShardLoss] = _SubsetExecutor(self.site, shards, self.places, _LOSS)
        answers = list(people.map(_vectors, None))
        let_go(self.futures)  # half of what workers have; what is lost can be made again
        linear = _in_place((places, linear) for places, linear, _ in answers)
        constant = _in_place((places, constant) for places, _, constant in answers)
        return RemoteShardLoss(linear, constant, people, self.few, self.n_rows)


def _in_place(parts: Iterable[tuple[Index, Float]]) -> Float:
    """Return rows in the order of people."""
    places, rows = map(np.concatenate, zip(*parts, strict=True))
    found = np.empty_like(rows)
    found[places] = rows
    return found


@dataclass(frozen=True)
class _ShardLoss:
    """The loss of a shard's people, whose positions among all people are ``places``."""

    loss: QuadraticLoss
    places: Index


@in_this_thread()
@one_blas_thread()
def _measured(statistics: Statistics, places: Index, kind: Loss, scale: Float) -> _LevelShard:
    found = _ShardLoss(kind.of(statistics, scale), places)
    return _LevelShard(places, {_LOSS: ThreadExecutor([found])})


def _vectors(block: _ShardLoss, state: None, own: None) -> tuple[Index, Float, Float]:  # noqa: ARG001
    return block.places, block.loss.linear, block.loss.constant


@dataclass(frozen=True)
class _Weights:
    """Everybody's weights, and who is chosen: the state of a visit."""

    people_have: ClassVar[tuple[str, ...]] = ("W", "chosen")

    W: Float
    chosen: Bool | None = None


def _gradient(block: _ShardLoss, at: _Weights, own: None) -> tuple[Index, Float]:  # noqa: ARG001
    return block.places, block.loss.gradient(at.W[block.places])


def _squares(block: _ShardLoss, at: _Weights, own: None) -> tuple[Index, Float]:  # noqa: ARG001
    assert at.chosen is not None
    return block.places, block.loss.squares(at.W[block.places], at.chosen[block.places])


@dataclass(frozen=True)
class RemoteShardLoss(RemoteLoss):
    """The loss of people in shards on a cluster.

    Attributes
    ----------
    linear, constant : arrays
        As in `AbstractQuadraticLoss`.
    people : DaskExecutor
        The people, with their A_i.
    few, n_rows
        As in `RemoteShardStatistics`.
    """

    people: DaskExecutor[_ShardLoss]
    few: list[Index]
    n_rows: int

    def gradient(self, W: Float) -> Float:
        """Return A_i w_i - b_i for every person."""
        return _in_place(self.people.map(_gradient, _Weights(W)))

    def squares(self, W: Float, chosen: Bool) -> Float:
        """Return |Z_i w_i - t_i|^2 of the people who are chosen, and 0 of the others."""
        return _in_place(self.people.map(_squares, _Weights(W, chosen)))

    def decompose(self, memory: int) -> "RemoteEigendecomposition":
        """Let workers find the eigenvectors of those for whom one process would have room."""
        everybody = np.sort(np.concatenate(self.few))
        sample = EigenvectorSample.of(len(everybody), self.n_rows, self.shape[1], memory)
        samples = [sample] * len(self.few)
        if sample.chosen is not None:
            samples = [
                replace(sample, chosen=sample.chosen[np.searchsorted(everybody, mine)])
                for mine in self.few
            ]
        site, parts = self.people.site, zip(self.people.shards, samples, strict=True)
        shards = [site.making(_decomposed, *part) for part in parts]
        sizes = np.array(site.gathered(site.submit(_sizes, shard) for shard in shards))
        return RemoteEigendecomposition(self, self.people, shards, sizes)


@in_this_thread()
@one_blas_thread()
def _decomposed(shard: _LevelShard, sample: EigenvectorSample) -> _LevelShard:
    """Decompose the loss of a shard's people, who get their positions among all people."""
    places, loss = shard.places, shard.blocks[_LOSS].blocks[0].loss
    found = Eigendecomposition.of_sample(loss, sample)
    blocks, rest = [replace(one, people=places[one.people]) for one in found.blocks], found.rest
    if rest is not None:
        rest = replace(rest, rows=replace(rest.rows, people=places[rest.rows.people]))
    found = replace(found, blocks=blocks, rest=rest)
    whom = {_ALONE: found.kept(alone=True), _TOGETHER: found.kept(alone=False)}
    return _LevelShard(places, whom | {_OTHERS: found.others() or ThreadExecutor([])})


def _sizes(shard: _LevelShard) -> tuple[int, int]:
    """Return how many people have eigenvectors, and how many have not."""
    kept, others = ([len(one.people) for one in shard.blocks[w].blocks] for w in (_ALONE, _OTHERS))
    return sum(kept), sum(others)


@dataclass(frozen=True)
class RemoteEigendecomposition(AbstractEigendecomposition):
    """People in shards on a cluster, with their eigenvectors.

    Attributes
    ----------
    loss : RemoteShardLoss
        The loss that was decomposed.
    people : DaskExecutor
        Where they are.
    shards : list of futures
        The shards with eigenvectors.
    sizes : array of shape (n_shards, 2)
        How many people of each have eigenvectors, and how many have not.
    """

    people: DaskExecutor[Any]
    shards: list[Any]
    sizes: Index

    @property
    def n_kept(self) -> int:
        """How many people have eigenvectors."""
        return int(self.sizes[:, 0].sum())

    def kept(self, *, alone: bool) -> DaskExecutor[CachedBlock]:
        """Return the people who have eigenvectors."""
        return self._some(0, _ALONE if alone else _TOGETHER)

    def others(self) -> DaskExecutor[StreamedBlock] | None:
        """Return the others, if there are any."""
        return self._some(1, _OTHERS) if self.sizes[:, 1].any() else None

    def _some(self, column: int, whom: str) -> _SubsetExecutor[Any]:
        there = np.flatnonzero(self.sizes[:, column])
        shards = [self.shards[number] for number in there]
        return _SubsetExecutor(
            self.people.site, shards, [self.people.people[n] for n in there], whom
        )
