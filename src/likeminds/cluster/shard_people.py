"""People in shards, visited on the workers that have them."""

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from likeminds._util.array_types import Index
from likeminds._util.map_reduce import Executor, Own
from likeminds._util.per_user_arrays import SubsetRows, put_together, take_apart
from likeminds._util.threads import in_this_thread, one_blas_thread
from likeminds.cluster.session import ClusterSession, let_go, size_of

B = TypeVar("B")
S = TypeVar("S")
R = TypeVar("R")

_add: Callable[[Any, Any], Any] = operator.iadd


class Shard(ABC):
    """Some people on a worker."""

    @property
    @abstractmethod
    def people(self) -> Index:
        """The positions of its people among all people."""

    @abstractmethod
    def bound(self, state: Any) -> tuple[Any, Any]:
        """Return the blocks that a visit with this state is to, and the state that they get."""

    def map_reduce(self, work: Any, state: Any, before: tuple[Any, Any] | None) -> tuple[Any, Any]:
        """Return the sum of what the blocks answer, and what they keep from now on.

        ``before`` is what an earlier visit returned. So whatever is lost with a worker, the cluster
        computes again, and it is the same to the last digit.
        """
        blocks, state = self.bound(state)
        with in_this_thread(), one_blas_thread():
            found: tuple[Any, Any] = blocks.map_reduce(work, state, before and before[1])
        return found

    def map(self, work: Any, state: Any, before: tuple[Any, Any] | None) -> list[Any]:
        """Return what each block answers."""
        blocks, state = self.bound(state)
        with in_this_thread(), one_blas_thread():
            return list(blocks.map(work, state, before and before[1]))


def _whole(state: Any, shard: Shard, pieces: Sequence[Any]) -> Any:
    people = np.sort(shard.people) if pieces else shard.people
    return put_together(state, [SubsetRows(piece, people) for piece in pieces])


def _visit(shard: Shard, before: Any, given: Any, *pieces: Any) -> tuple[Any, Any]:
    work, state = given
    return shard.map_reduce(work, _whole(state, shard, pieces), before)


def _ask(shard: Shard, before: Any, given: Any, *pieces: Any) -> list[Any]:
    work, state = given
    return shard.map(work, _whole(state, shard, pieces), before)


@dataclass
class DaskExecutor(Executor[B]):
    """People on a cluster, visited as those in this process are: see `Executor`.

    Attributes
    ----------
    site : ClusterSession
        The fit that they belong to.
    shards : list of futures
        The shards; the cluster makes one again when its worker is lost.
    people : list of arrays
        The positions of each shard's people among all people.
    """

    site: ClusterSession
    shards: list[Any]
    people: list[Index]

    @property
    def n_users(self) -> int:
        """How many people there are."""
        return sum(map(len, self.people))

    def map_reduce(
        self,
        work: Callable[[B, S, Any], tuple[R, Any]],
        state: S,
        own: Own = None,
        *,
        start: R | None = None,
    ) -> tuple[R, Own]:
        """Return the sum of what shards answer, in their order, and what they keep."""
        site, given = self.site, (work, self.addressed(state))
        site.visits += 1
        asked = (work, self.n_users, given[1])
        found = site.journal.replay(asked)
        if found is not None:
            kept = site.keep(len(self.shards))
        else:
            visited = self._submitted(_visit, own, given)
            try:
                found = site.total(visited)
            except BaseException:
                let_go(visited)
                raise
            kept = site.keep(len(self.shards), visited)
            site.traffic.visits += 1
            site.traffic.returned += len(self.shards) * size_of(found)
            site.journal.note(asked, found, site.write_all)
        return (found if start is None else _add(start, found)), kept

    def addressed(self, state: Any) -> Any:
        """Return a state as shards get it: by default as it is."""
        return state

    def asked(self, work: Callable[[B, S, Any], R], state: S, own: Own = None) -> list[Any]:
        """Return what the blocks of each shard answer, as futures: it stays where it is."""
        return self._submitted(_ask, own, (work, self.addressed(state)))

    def map(self, work: Callable[[B, S, Any], R], state: S, own: Own = None) -> Iterator[R]:
        """Yield what each block answers, shard by shard."""
        waiting = self.asked(work, state, own)
        try:
            for place, future in enumerate(waiting):
                with self.site.in_reach():
                    # Straight from the worker: there is much of it.
                    answers = self.site.client.gather(future, direct=True)
                self.site.traffic.asked += size_of(answers)
                yield from answers
                let_go(waiting[place : place + 1])
        finally:
            let_go(waiting)

    def _submitted(self, work: Any, own: Own, given: tuple[Any, Any]) -> list[Any]:
        arrays: list[Any] = []
        given = given[0], take_apart(given[1], arrays)
        self.site.traffic.sent += len(self.shards) * size_of(given)
        pieces = [self._pieces(array) for array in arrays]
        before = [None] * len(self.shards) if own is None else own.of_shards()
        sent = self.site.send(given)
        submitted = [
            self.site.submit(work, shard, mine, sent, *theirs)
            for shard, mine, *theirs in zip(self.shards, before, *pieces, strict=True)
        ]
        if sent is not given:
            let_go([sent])
        return submitted

    def _pieces(self, array: Any) -> list[Any]:
        """Return the futures of what each shard's people have in an array."""
        return self.site.sent(array, [array[np.sort(one)] for one in self.people], id(self))
