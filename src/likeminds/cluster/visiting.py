"""Shards of people, visited on the workers that have them."""

import operator
import pickle
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, TypeVar

import numpy as np

from likeminds._support.arrays import Bool, Index
from likeminds._support.threads import in_this_thread, one_blas_thread
from likeminds._support.visits import Own
from likeminds.cluster.checkpoints import Journal
from likeminds.data.annotations import Annotations
from likeminds.prior.choices import ChoiceTasks
from likeminds.prior.coordinates import Coordinates
from likeminds.prior.likelihoods import Likelihood
from likeminds.prior.losses import PriorLoss
from likeminds.prior.tasks import AucTasks, TaskBlock, Tasks

S = TypeVar("S")
R = TypeVar("R")

# Versions of what people have of their own that a shard holds: those who learn go back to an
# earlier one at times.
_VERSIONS = 4


class Shard:
    """Some people's labels on a worker, and what these people keep between visits.

    That is nothing but where a search starts: a shard that was lost, and made again by another
    worker, starts from nothing and finds the same.
    """

    def __init__(self, tasks: Any) -> None:
        self.tasks = tasks
        self._kept: OrderedDict[str, Any] = OrderedDict()

    def __getstate__(self) -> dict[str, Any]:
        return {"tasks": self.tasks, "_kept": OrderedDict()}

    def visit(self, work: Any, state: Any, own: str | None, version: str) -> Any:
        """Return the sum of what the shard's blocks answer."""
        with in_this_thread(), one_blas_thread():
            total, kept = self.tasks.visit(work, state, self._kept.get(own or ""))
        self._kept[version] = kept
        while len(self._kept) > _VERSIONS:
            self._kept.popitem(last=False)
        return total

    def ask(self, work: Any, state: Any, own: str | None) -> list[Any]:
        """Return what each block answers."""
        with in_this_thread(), one_blas_thread():
            return list(self.tasks.ask(work, state, self._kept.get(own or "")))


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


def _visit(shard: Shard, work: Any, state: Any, own: str | None, version: str) -> Any:
    return shard.visit(work, state, own, version)


def _ask(shard: Shard, work: Any, state: Any, own: str | None) -> list[Any]:
    return shard.ask(work, state, own)


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

    @property
    def n_people(self) -> int:
        """How many people have rows."""
        return sum(map(len, self.places))

    def visit(
        self, work: Callable[[TaskBlock, S, Any], tuple[R, Any]], state: S, own: Own = None
    ) -> tuple[R, Own]:
        """Return the sum of what shards answer, in their order, and a name of what they keep."""
        found = self.journal.replay(state)
        version = uuid.uuid4().hex
        if found is None:
            parts = self._gathered(_visit, (work, state, own, version))
            found = reduce(operator.iadd, parts)
            self.journal.note(state, found)
            self.traffic.visits += 1
            self.traffic.sent += len(self.shards) * len(pickle.dumps((work, state)))
            self.traffic.returned += len(self.shards) * len(pickle.dumps(found))
        return found, version

    def ask(self, work: Callable[[TaskBlock, S, Any], R], state: S, own: Own = None) -> Iterator[R]:
        """Yield what each block answers, shard by shard."""
        for answers in self._gathered(_ask, (work, state, own)):
            self.traffic.asked += len(pickle.dumps(answers))
            yield from answers

    def of_people(self, chosen: Bool) -> Tasks:
        """Return the labels of some of the people, in this process: they are few."""
        return self.locally([chosen[places] for places in self.places])

    def _gathered(self, work: Any, given: Sequence[Any]) -> Iterator[Any]:
        """Yield the answer of every shard, in their order; leave nothing running behind."""
        waiting = [self.client.submit(work, shard, *given, pure=False) for shard in self.shards]
        try:
            for future in waiting:
                yield future.result()
        finally:
            self.client.cancel(waiting)
