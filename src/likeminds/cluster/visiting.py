"""Labels in shards, as a learned prior visits them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from likeminds._support.arrays import Bool, Float, Index
from likeminds._support.by_person import of_people
from likeminds._support.visits import Own
from likeminds.cluster.shard_people import Shard, ShardPeople
from likeminds.cluster.site import Site, let_go
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
class TaskShard(Shard):
    """Some people's labels on a worker."""

    tasks: Any

    @cached_property
    def people(self) -> Index:
        """The positions of its people among all people."""
        return np.asarray(_rows_of(self.tasks).people)

    def of_people(self, chosen: Bool) -> "TaskShard":
        """Return some of the people."""
        return TaskShard(self.tasks.of_people(chosen))

    def bound(self, state: Any) -> tuple[Any, Any]:
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


def make_shard(said: Annotations, how: How, positions: Index) -> TaskShard:
    """Return labels to be visited; ``positions`` are their people's among all people."""
    tasks = Here(said).tasks(how.loss, how.likelihood, how.coordinates, items=how.items)
    return TaskShard(renumbered(tasks, positions))


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


def _people_of(shard: TaskShard) -> Index:
    return shard.people


def _some_of(shard: TaskShard, chosen: Bool) -> TaskShard:
    return shard.of_people(chosen)


@dataclass
class ShardTasks(ShardPeople[TaskBlock]):
    """Everybody's labels on a cluster, visited as those in this process are: see `Tasks`.

    Attributes
    ----------
    site, shards, people
        As in `ShardPeople`.
    locally : callable
        Brings the labels of some people here, by their positions.
    """

    locally: Callable[[Index], Tasks]
    _parts: list[Any] = field(default_factory=list)

    @classmethod
    def of_shards(
        cls, site: Site, shards: list[Any], locally: Callable[[Index], Tasks]
    ) -> "ShardTasks":
        """Ask the shards who is there."""
        people = site.gathered(site.submit(_people_of, shard) for shard in shards)
        return cls(site, shards, people, locally)

    def asked_of(
        self, work: Callable[[TaskBlock, S, Any], R], state: S, wanted: Index
    ) -> list[Any]:
        """Return the same of some of the people, by their positions; None of other shards."""
        some, there = self._where(wanted)
        found: list[Any] = [None] * len(self.shards)
        for number, future in zip(there, some.asked(work, state), strict=True):
            found[number] = future
        return found

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
