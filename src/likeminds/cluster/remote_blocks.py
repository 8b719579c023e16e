"""Labels in shards, as a learned prior visits them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from likeminds._util.array_types import Bool, Float, Index
from likeminds._util.map_reduce import Own
from likeminds._util.per_user_arrays import of_users
from likeminds.cluster.session import ClusterSession, let_go
from likeminds.cluster.shard_people import DaskExecutor, Shard
from likeminds.data.annotations import Annotations
from likeminds.mixed_model.blocks import AucResponses, ResponseBlock, Responses
from likeminds.mixed_model.choice_blocks import ChoiceBlocks
from likeminds.mixed_model.design import Design
from likeminds.mixed_model.item_effects.responses import ItemEffectBlocks, ItemEffects
from likeminds.mixed_model.item_effects.scatter_sums import SparseItemSums
from likeminds.mixed_model.item_posteriors import ItemPosteriors
from likeminds.mixed_model.losses import PriorLoss
from likeminds.rankers.training_data import LocalTrainingData

S = TypeVar("S")
R = TypeVar("R")

# The labels of so many people may come to this process: a sample that form and start are found on.
_FEW = 2000


@dataclass(frozen=True)
class ItemState:
    """The state of a visit, with what is known of items.

    Attributes
    ----------
    items : ItemPosteriors
        Their posteriors, without their ids.
    share : float
        The share of labels that is held out.
    numbers : array, optional
        By which they are drawn: see `ItemEffects`.
    state : object
        What else there is.
    """

    items: ItemPosteriors
    share: float
    numbers: Index | None
    state: Any


@dataclass(frozen=True)
class ResponseShard(Shard):
    """Some people's labels on a worker."""

    tasks: Any

    @cached_property
    def people(self) -> Index:
        """The positions of its people among all people."""
        return np.asarray(_rows_of(self.tasks).people)

    def of_users(self, chosen: Bool) -> "ResponseShard":
        """Return some of the people."""
        return ResponseShard(self.tasks.of_users(chosen))

    def bound(self, state: Any) -> tuple[Any, Any]:
        """Return the tasks with what is known of items, and the state without."""
        if not isinstance(state, ItemState):
            return self.tasks, state
        tasks: ItemEffectBlocks = self.tasks
        if state.numbers is not None:
            tasks = tasks.leaving_out(state.share, state.numbers)
        return tasks.with_items(state.items), state.state


@dataclass(frozen=True)
class LossSettings:
    """How labels are learned from.

    Attributes
    ----------
    loss, likelihood, coordinates
        As in `TrainingData.tasks`.
    items : bool
        Whether items have effects of their own.
    """

    loss: PriorLoss
    likelihood: Any
    coordinates: Design
    items: bool

    def of(self, people: Index) -> "LossSettings":
        """Return the same with what some people have of their own, in their order."""
        return replace(self, likelihood=of_users(self.likelihood, people))


def make_shard(said: Annotations, how: LossSettings, positions: Index) -> ResponseShard:
    """Return labels to be visited; ``positions`` are their people's among all people."""
    tasks = LocalTrainingData(said).tasks(
        how.loss, how.likelihood, how.coordinates, items=how.items
    )
    return ResponseShard(renumbered(tasks, positions))


def _rows_of(tasks: Any) -> Any:
    tasks = tasks.labels if isinstance(tasks, AucResponses | ItemEffectBlocks) else tasks
    return tasks.sets if isinstance(tasks, ChoiceBlocks) else tasks.rows


def renumbered(tasks: Any, positions: Index) -> Any:
    """Return tasks whose people have other positions."""
    if isinstance(tasks, AucResponses | ItemEffectBlocks):
        return replace(tasks, labels=renumbered(tasks.labels, positions))
    rows = _rows_of(tasks)
    rows = replace(rows, people=positions[rows.people])
    return replace(tasks, **{"sets" if isinstance(tasks, ChoiceBlocks) else "rows": rows})


def _people_of(shard: ResponseShard) -> Index:
    return shard.people


def _some_of(shard: ResponseShard, chosen: Bool) -> ResponseShard:
    return shard.of_users(chosen)


@dataclass
class RemoteResponses(DaskExecutor[ResponseBlock]):
    """Everybody's labels on a cluster, visited as those in this process are: see `Responses`.

    Attributes
    ----------
    site, shards, people
        As in `DaskExecutor`.
    locally : callable
        Brings the labels of some people here, by their positions.
    """

    locally: Callable[[Index], Responses]
    _parts: list[Any] = field(default_factory=list)

    @classmethod
    def of_shards(
        cls, site: ClusterSession, shards: list[Any], locally: Callable[[Index], Responses]
    ) -> "RemoteResponses":
        """Ask the shards who is there."""
        people = site.gathered(site.submit(_people_of, shard) for shard in shards)
        return cls(site, shards, people, locally)

    def asked_of(
        self, work: Callable[[ResponseBlock, S, Any], R], state: S, wanted: Index
    ) -> list[Any]:
        """Return the same of some of the people, by their positions; None of other shards."""
        some, there = self._where(wanted)
        found: list[Any] = [None] * len(self.shards)
        for number, future in zip(there, some.asked(work, state), strict=True):
            found[number] = future
        return found

    def of_users(self, chosen: Bool) -> Responses:
        """Return the labels of some of the people: of a few, in this process."""
        everybody = np.sort(np.concatenate(self.people))
        wanted = everybody[chosen]
        if len(wanted) <= _FEW:
            return self.locally(wanted)
        return self._where(wanted)[0]

    def _where(self, wanted: Index) -> tuple["RemoteResponses", list[int]]:
        """Return the labels of some of the people where they are, and the shards these are in."""
        masks = [np.isin(theirs, wanted) for theirs in self.people]
        there = [number for number, mask in enumerate(masks) if mask.any()]
        shards = [self.site.submit(_some_of, self.shards[n], masks[n]) for n in there]
        some = RemoteResponses(
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
class RemoteItemEffects(ItemEffects):
    """Everybody's labels on a cluster, with the posteriors of their items.

    Attributes
    ----------
    labels : RemoteResponses
        The labels.
    items : ItemPosteriors
        What is known of items; it goes with every visit.
    counts : array of shape (m,)
        How many labels each item has.
    share, drawn : float, array
        The share of labels that is held out, and the numbers that they are drawn by.
    """

    labels: RemoteResponses
    items: ItemPosteriors
    counts: Index
    share: float = 0.0
    drawn: Index | None = None

    @classmethod
    def of_labels(cls, labels: RemoteResponses, items: ItemPosteriors) -> "RemoteItemEffects":
        """Count the labels of items."""
        return cls(labels, items, np.zeros(0, np.intp))._counted()

    def _counted(self) -> "RemoteItemEffects":
        found: SparseItemSums
        found, _ = self.visit(_count, None)
        return replace(self, counts=found.whole[0][:, 0].astype(np.intp))

    @property
    def n_users(self) -> int:
        """How many people have labels."""
        return self.labels.n_users

    def with_items(self, items: ItemPosteriors) -> "RemoteItemEffects":
        """Return the same labels, with other posteriors of the items."""
        return replace(self, items=items)

    def holding_out(self, share: float) -> "RemoteItemEffects":
        """Return the same labels, of which a share is held out."""
        drawn = self.numbers if share else None
        return replace(self, share=share, drawn=drawn)._counted()

    def of_users(self, chosen: Bool) -> ItemEffects:
        """Return the labels of some of the people: of a few, in this process."""
        some = self.labels.of_users(chosen)
        if isinstance(some, ItemEffectBlocks):
            return some.leaving_out(self.share, self.drawn).with_items(self.items)
        assert isinstance(some, RemoteResponses)
        return replace(self, labels=some)._counted()

    def visit(
        self, work: Callable[[ResponseBlock, S, Any], tuple[R, Any]], state: S, own: Own = None
    ) -> tuple[R, Own]:
        """Return the sum of what shards answer, and what they keep."""
        return self.labels.visit(work, self._with_items(state), own)

    def ask(
        self, work: Callable[[ResponseBlock, S, Any], R], state: S, own: Own = None
    ) -> Iterator[R]:
        """Yield what each block answers, shard by shard."""
        return self.labels.ask(work, self._with_items(state), own)

    def asked(
        self, work: Callable[[ResponseBlock, S, Any], R], state: S, own: Own = None
    ) -> list[Any]:
        """Return what the blocks of each shard answer, as futures."""
        return self.labels.asked(work, self._with_items(state), own)

    def asked_of(
        self, work: Callable[[ResponseBlock, S, Any], R], state: S, wanted: Index
    ) -> list[Any]:
        """Return the same of some of the people, by their positions; None of other shards."""
        return self.labels.asked_of(work, self._with_items(state), wanted)

    def _with_items(self, state: Any) -> Any:
        nameless = replace(self.items, ids=self.items.ids[:0])
        return ItemState(nameless, self.share, self.drawn, state)


def _count(block: ResponseBlock, state: None, own: None) -> tuple[SparseItemSums, None]:  # noqa: ARG001
    """Return how many labels of a block each item has, those held out not counted."""
    tasks = block.tasks
    assert isinstance(tasks, ItemEffectBlocks)
    of_block, places = tasks.of_block(block.number), tasks.labels.task(block.number).places
    assert places is not None
    out = np.zeros(places.shape, np.bool_) if tasks.left_out is None else tasks.left_out[places]
    counted: Float = of_block.sums((~out).astype(np.float64))
    return SparseItemSums(of_block.items, [counted], len(tasks.items.effects)), None
