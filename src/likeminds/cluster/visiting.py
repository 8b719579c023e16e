"""Shards of people, visited on the workers that have them."""

import operator
import pickle
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from likeminds._support.arrays import Bool, Index
from likeminds._support.threads import in_this_thread, one_blas_thread
from likeminds._support.visits import Own
from likeminds.cluster.checkpoints import Journal, read_own, write_own
from likeminds.data.annotations import Annotations
from likeminds.prior.choices import ChoiceTasks
from likeminds.prior.coordinates import Coordinates
from likeminds.prior.likelihoods import Likelihood
from likeminds.prior.losses import PriorLoss
from likeminds.prior.tasks import AucTasks, TaskBlock, Tasks

S = TypeVar("S")
R = TypeVar("R")

# Versions of what people have of their own that are held: those who learn go back to an earlier
# one at times.
_VERSIONS = 4


@dataclass(frozen=True)
class Shard:
    """Some people's labels on a worker."""

    tasks: Any

    def visit(self, work: Any, state: Any, before: tuple[Any, Any] | None) -> tuple[Any, Any]:
        """Return the sum of what the blocks answer, and what they keep from now on.

        ``before`` is what an earlier visit returned. So whatever is lost with a worker, the cluster
        computes again, and it is the same to the last digit.
        """
        with in_this_thread(), one_blas_thread():
            found: tuple[Any, Any] = self.tasks.visit(work, state, before and before[1])
        return found

    def ask(self, work: Any, state: Any, before: tuple[Any, Any] | None) -> list[Any]:
        """Return what each block answers."""
        with in_this_thread(), one_blas_thread():
            return list(self.tasks.ask(work, state, before and before[1]))


def make_shard(
    said: Annotations,
    loss: PriorLoss,
    likelihood: Likelihood,
    coordinates: Coordinates,
    positions: Index,
) -> Shard:
    """Return labels to be visited; ``positions`` are their people's among all people."""
    return Shard(_renumbered(loss.tasks(loss.prepare(said, likelihood), coordinates), positions))


def people_of(shard: Shard) -> Index:
    """Return the positions of the people who have rows in a shard."""
    return np.asarray(_rows_of(shard.tasks).people)


def _rows_of(tasks: Any) -> Any:
    tasks = tasks.labels if isinstance(tasks, AucTasks) else tasks
    return tasks.sets if isinstance(tasks, ChoiceTasks) else tasks.rows


def _renumbered(tasks: Any, positions: Index) -> Any:
    if isinstance(tasks, AucTasks):
        return replace(tasks, labels=_renumbered(tasks.labels, positions))
    rows = _rows_of(tasks)
    rows = replace(rows, people=positions[rows.people])
    return replace(tasks, **{"sets" if isinstance(tasks, ChoiceTasks) else "rows": rows})


def _visit(shard: Shard, before: Any, work: Any, state: Any) -> tuple[Any, Any]:
    return shard.visit(work, state, before)


def _ask(shard: Shard, before: Any, work: Any, state: Any) -> list[Any]:
    return shard.ask(work, state, before)


def _answer(visited: tuple[Any, Any]) -> Any:
    return visited[0]


def let_go(futures: Iterable[Any]) -> None:
    """Tell the cluster that nobody wants these any more: what is not done yet is not begun."""
    for one in futures:
        if one is not None:
            one.release()


@dataclass
class Traffic:
    """What was sent to shards and came back, in bytes: of visits, and of what people answered."""

    visits: int = 0
    sent: int = 0
    returned: int = 0
    asked: int = 0


@dataclass
class ShardTasks:
    """Everybody's labels on a cluster, visited as those in this process are: see `Tasks`.

    Attributes
    ----------
    client : distributed.Client
        The cluster.
    shards : list of futures
        The shards; the cluster makes one again when its worker is lost.
    places : list of arrays
        The positions of each shard's people among those who have rows.
    locally : callable
        Brings the labels of some people here.
    journal : Journal
        Remembers the answers of visits.
    """

    client: Any
    shards: list[Any]
    places: list[Index]
    locally: Callable[[list[Bool]], Tasks]
    journal: Journal
    traffic: Traffic = field(default_factory=Traffic)
    n_places: int = 0
    _kept: "OrderedDict[int, list[Any]]" = field(default_factory=OrderedDict)
    _visits: int = 0

    @property
    def n_people(self) -> int:
        """How many people have rows."""
        return sum(map(len, self.places))

    def visit(
        self, work: Callable[[TaskBlock, S, Any], tuple[R, Any]], state: S, own: Own = None
    ) -> tuple[R, Own]:
        """Return the sum of what shards answer, in their order, and the number of the visit."""
        self._visits += 1
        found = self.journal.replay(state)
        if found is None:
            visited = self._submitted(_visit, own, (work, state))
            try:
                found = self._sum(visited)
            except BaseException:
                let_go(visited)
                raise
            self._keep(visited)
            self.journal.note(state, found, partial(self._write_own, visited))
            self.traffic.visits += 1
            self.traffic.sent += len(self.shards) * len(pickle.dumps((work, state)))
            self.traffic.returned += len(self.shards) * len(pickle.dumps(found))
        return found, self._visits

    def ask(self, work: Callable[[TaskBlock, S, Any], R], state: S, own: Own = None) -> Iterator[R]:
        """Yield what each block answers, shard by shard."""
        waiting = self._submitted(_ask, own, (work, state))
        try:
            for future in waiting:
                answers = future.result()
                self.traffic.asked += len(pickle.dumps(answers))
                yield from answers
        finally:
            let_go(waiting)

    def of_people(self, chosen: Bool) -> Tasks:
        """Return the labels of some of the people, in this process: they are few."""
        return self.locally([chosen[places] for places in self.places])

    def release(self) -> None:
        """Take all that people keep off the cluster."""
        let_go(chain(*self._kept.values()))
        self._kept.clear()

    def _submitted(self, work: Any, own: Own, given: tuple[Any, ...]) -> list[Any]:
        before = self._before(own)
        return [
            self.client.submit(work, shard, mine, *given, pure=False)
            for shard, mine in zip(self.shards, before, strict=True)
        ]

    def _before(self, own: Own) -> list[Any]:
        """Return what shards kept after a visit, from the checkpoint if it was before this fit."""
        if own is None:
            return [None] * len(self.shards)
        if own not in self._kept:
            files = [self.journal.own_file(own, shard) for shard in range(len(self.shards))]
            read = partial(self.client.submit, read_own, pure=False)
            self._kept[own] = [None if file is None else read(file) for file in files]
        return self._kept[own]

    def _sum(self, visited: list[Any]) -> Any:
        answers = [self.client.submit(_answer, one, pure=False) for one in visited]
        try:
            return reduce(operator.iadd, (one.result() for one in answers))
        finally:
            let_go(answers)

    def _keep(self, visited: list[Any]) -> None:
        self._kept[self._visits] = visited
        while len(self._kept) > _VERSIONS:
            let_go(self._kept.popitem(last=False)[1])

    def _write_own(self, visited: list[Any], files: list[str]) -> None:
        written = [
            self.client.submit(write_own, one, file, pure=False)
            for one, file in zip(visited, files, strict=True)
        ]
        try:
            self.client.gather(written)
        finally:
            let_go(written)
