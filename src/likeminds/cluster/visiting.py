"""Shards of people, visited on the workers that have them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from likeminds._support.arrays import Bool, Float, Index
from likeminds._support.by_person import OfSome, of_people, put_together, take_apart
from likeminds._support.threads import in_this_thread, one_blas_thread
from likeminds._support.visits import Own
from likeminds.cluster.memory import kept_memory
from likeminds.cluster.site import Site, let_go, size_of
from likeminds.data.annotations import Annotations
from likeminds.prior.choices import ChoiceTasks
from likeminds.prior.coordinates import Coordinates
from likeminds.prior.crossed import Crossed, CrossedTasks
from likeminds.prior.item_sums import OfItems
from likeminds.prior.items import Items
from likeminds.prior.losses import PriorLoss
from likeminds.prior.tasks import AucTasks, TaskBlock, Tasks
from likeminds.rankers.voices import Here

S = TypeVar("S")
R = TypeVar("R")

# The labels of so many people may come to this process: a sample that form and start are found on.
_FEW = 2000


@dataclass(frozen=True)
class WithItems:
    """The state of a visit, with what is known of items.

    Attributes
    ----------
    items : Items
        Their posteriors, without their ids.
    share : float
        The share of labels that is held out.
    numbers : array, optional
        By which they are drawn: see `Crossed`.
    state : object
        What else there is.
    """

    items: Items
    share: float
    numbers: Index | None
    state: Any


@dataclass(frozen=True)
class Shard:
    """Some people's labels on a worker."""

    tasks: Any

    @cached_property
    def people(self) -> Index:
        """The positions of its people among all people."""
        return np.asarray(_rows_of(self.tasks).people)

    def visit(self, work: Any, state: Any, before: tuple[Any, Any] | None) -> tuple[Any, Any]:
        """Return the sum of what the blocks answer, and what they keep from now on.

        ``before`` is what an earlier visit returned. So whatever is lost with a worker, the cluster
        computes again, and it is the same to the last digit.
        """
        tasks, state = self._bound(state)
        with in_this_thread(), one_blas_thread(), kept_memory():
            found: tuple[Any, Any] = tasks.visit(work, state, before and before[1])
        return found

    def ask(self, work: Any, state: Any, before: tuple[Any, Any] | None) -> list[Any]:
        """Return what each block answers."""
        tasks, state = self._bound(state)
        with in_this_thread(), one_blas_thread(), kept_memory():
            return list(tasks.ask(work, state, before and before[1]))

    def of_people(self, chosen: Bool) -> "Shard":
        """Return some of the people."""
        return Shard(self.tasks.of_people(chosen))

    def _bound(self, state: Any) -> tuple[Any, Any]:
        """Return the tasks with what is known of items, and the state without."""
        if not isinstance(state, WithItems):
            return self.tasks, state
        tasks: CrossedTasks = self.tasks
        if state.numbers is not None:
            tasks = tasks.leaving_out(state.share, state.numbers)
        return tasks.with_items(state.items), state.state


@dataclass(frozen=True)
class How:
    """How labels are learned from.

    Attributes
    ----------
    loss, likelihood, coordinates
        As in `Voices.tasks`.
    items : bool
        Whether items have effects of their own.
    """

    loss: PriorLoss
    likelihood: Any
    coordinates: Coordinates
    items: bool

    def of(self, people: Index) -> "How":
        """Return the same with what some people have of their own, in their order."""
        return replace(self, likelihood=of_people(self.likelihood, people))


def make_shard(said: Annotations, how: How, positions: Index) -> Shard:
    """Return labels to be visited; ``positions`` are their people's among all people."""
    tasks = Here(said).tasks(how.loss, how.likelihood, how.coordinates, items=how.items)
    return Shard(renumbered(tasks, positions))


def _rows_of(tasks: Any) -> Any:
    tasks = tasks.labels if isinstance(tasks, AucTasks | CrossedTasks) else tasks
    return tasks.sets if isinstance(tasks, ChoiceTasks) else tasks.rows


def renumbered(tasks: Any, positions: Index) -> Any:
    """Return tasks whose people have other positions."""
    if isinstance(tasks, AucTasks | CrossedTasks):
        return replace(tasks, labels=renumbered(tasks.labels, positions))
    rows = _rows_of(tasks)
    rows = replace(rows, people=positions[rows.people])
    return replace(tasks, **{"sets" if isinstance(tasks, ChoiceTasks) else "rows": rows})


def _people_of(shard: Shard) -> Index:
    return shard.people


def _some_of(shard: Shard, chosen: Bool) -> Shard:
    return shard.of_people(chosen)


def _whole(state: Any, shard: Shard, pieces: Sequence[Any]) -> Any:
    people = np.sort(shard.people) if pieces else shard.people
    return put_together(state, [OfSome(piece, people) for piece in pieces])


def _visit(shard: Shard, before: Any, given: Any, *pieces: Any) -> tuple[Any, Any]:
    work, state = given
    return shard.visit(work, _whole(state, shard, pieces), before)


def _ask(shard: Shard, before: Any, given: Any, *pieces: Any) -> list[Any]:
    work, state = given
    return shard.ask(work, _whole(state, shard, pieces), before)


@dataclass
class ShardTasks:
    """Everybody's labels on a cluster, visited as those in this process are: see `Tasks`.

    Attributes
    ----------
    site : Site
        The fit that they belong to.
    shards : list of futures
        The shards; the cluster makes one again when its worker is lost.
    people : list of arrays
        The positions of each shard's people among all people.
    locally : callable
        Brings the labels of some people here, by their positions.
    """

    site: Site
    shards: list[Any]
    people: list[Index]
    locally: Callable[[Index], Tasks]
    _parts: list[Any] = field(default_factory=list)

    @classmethod
    def of_shards(
        cls, site: Site, shards: list[Any], locally: Callable[[Index], Tasks]
    ) -> "ShardTasks":
        """Ask the shards who is there."""
        people = site.gathered(site.submit(_people_of, shard) for shard in shards)
        return cls(site, shards, people, locally)

    @property
    def n_people(self) -> int:
        """How many people have rows."""
        return sum(map(len, self.people))

    def visit(
        self, work: Callable[[TaskBlock, S, Any], tuple[R, Any]], state: S, own: Own = None
    ) -> tuple[R, Own]:
        """Return the sum of what shards answer, in their order, and what they keep."""
        site = self.site
        site.visits += 1
        asked = (work, self.n_people, state)
        found = site.journal.replay(asked)
        if found is not None:
            return found, site.keep(len(self.shards))
        visited = self._submitted(_visit, own, (work, state))
        try:
            found = site.total(visited)
        except BaseException:
            let_go(visited)
            raise
        kept = site.keep(len(self.shards), visited)
        site.traffic.visits += 1
        site.traffic.returned += len(self.shards) * size_of(found)
        site.journal.note(asked, found, site.write_all)
        return found, kept

    def asked(self, work: Callable[[TaskBlock, S, Any], R], state: S, own: Own = None) -> list[Any]:
        """Return what the blocks of each shard answer, as futures: it stays where it is."""
        return self._submitted(_ask, own, (work, state))

    def asked_of(
        self, work: Callable[[TaskBlock, S, Any], R], state: S, wanted: Index
    ) -> list[Any]:
        """Return the same of some of the people, by their positions; None of other shards."""
        some, there = self._where(wanted)
        found: list[Any] = [None] * len(self.shards)
        for number, future in zip(there, some.asked(work, state), strict=True):
            found[number] = future
        return found

    def ask(self, work: Callable[[TaskBlock, S, Any], R], state: S, own: Own = None) -> Iterator[R]:
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

    def of_people(self, chosen: Bool) -> Tasks:
        """Return the labels of some of the people: of a few, in this process."""
        everybody = np.sort(np.concatenate(self.people))
        wanted = everybody[chosen]
        if len(wanted) <= _FEW:
            return self.locally(wanted)
        return self._where(wanted)[0]

    def _where(self, wanted: Index) -> tuple["ShardTasks", list[int]]:
        """Return the labels of some of the people where they are, and the shards these are in."""
        masks = [np.isin(theirs, wanted) for theirs in self.people]
        there = [number for number, mask in enumerate(masks) if mask.any()]
        shards = [self.site.submit(_some_of, self.shards[n], masks[n]) for n in there]
        some = ShardTasks(
            self.site, shards, [self.people[n][masks[n]] for n in there], self.locally
        )
        self._parts.append(some)
        return some, there

    def release(self) -> None:
        """Take the shards off the cluster."""
        for part in self._parts:
            part.release()
        let_go(self.shards)

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


@dataclass
class CrossedShards(Crossed):
    """Everybody's labels on a cluster, with the posteriors of their items.

    Attributes
    ----------
    labels : ShardTasks
        The labels.
    items : Items
        What is known of items; it goes with every visit.
    counts : array of shape (m,)
        How many labels each item has.
    share, drawn : float, array
        The share of labels that is held out, and the numbers that they are drawn by.
    """

    labels: ShardTasks
    items: Items
    counts: Index
    share: float = 0.0
    drawn: Index | None = None

    @classmethod
    def of_labels(cls, labels: ShardTasks, items: Items) -> "CrossedShards":
        """Count the labels of items."""
        return cls(labels, items, np.zeros(0, np.intp))._counted()

    def _counted(self) -> "CrossedShards":
        found: OfItems
        found, _ = self.visit(_count, None)
        return replace(self, counts=found.whole[0][:, 0].astype(np.intp))

    @property
    def n_people(self) -> int:
        """How many people have labels."""
        return self.labels.n_people

    def with_items(self, items: Items) -> "CrossedShards":
        """Return the same labels, with other posteriors of the items."""
        return replace(self, items=items)

    def holding_out(self, share: float) -> "CrossedShards":
        """Return the same labels, of which a share is held out."""
        drawn = self.numbers if share else None
        return replace(self, share=share, drawn=drawn)._counted()

    def of_people(self, chosen: Bool) -> Crossed:
        """Return the labels of some of the people: of a few, in this process."""
        some = self.labels.of_people(chosen)
        if isinstance(some, CrossedTasks):
            return some.leaving_out(self.share, self.drawn).with_items(self.items)
        assert isinstance(some, ShardTasks)
        return replace(self, labels=some)._counted()

    def visit(
        self, work: Callable[[TaskBlock, S, Any], tuple[R, Any]], state: S, own: Own = None
    ) -> tuple[R, Own]:
        """Return the sum of what shards answer, and what they keep."""
        return self.labels.visit(work, self._with_items(state), own)

    def ask(self, work: Callable[[TaskBlock, S, Any], R], state: S, own: Own = None) -> Iterator[R]:
        """Yield what each block answers, shard by shard."""
        return self.labels.ask(work, self._with_items(state), own)

    def asked(self, work: Callable[[TaskBlock, S, Any], R], state: S, own: Own = None) -> list[Any]:
        """Return what the blocks of each shard answer, as futures."""
        return self.labels.asked(work, self._with_items(state), own)

    def asked_of(
        self, work: Callable[[TaskBlock, S, Any], R], state: S, wanted: Index
    ) -> list[Any]:
        """Return the same of some of the people, by their positions; None of other shards."""
        return self.labels.asked_of(work, self._with_items(state), wanted)

    def _with_items(self, state: Any) -> Any:
        nameless = replace(self.items, ids=self.items.ids[:0])
        return WithItems(nameless, self.share, self.drawn, state)


def _count(block: TaskBlock, state: None, own: None) -> tuple[OfItems, None]:  # noqa: ARG001
    """Return how many labels of a block each item has, those held out not counted."""
    tasks = block.tasks
    assert isinstance(tasks, CrossedTasks)
    of_block, places = tasks.of_block(block.number), tasks.labels.task(block.number).places
    assert places is not None
    out = np.zeros(places.shape, np.bool_) if tasks.left_out is None else tasks.left_out[places]
    counted: Float = of_block.sums((~out).astype(np.float64))
    return OfItems(of_block.items, [counted], len(tasks.items.effects)), None
