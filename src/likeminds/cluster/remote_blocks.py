"""Labels in shards, as a learned prior visits them."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from likeminds._util.array_types import Bool, Index
from likeminds._util.per_user_arrays import of_users
from likeminds.cluster.session import ClusterSession, let_go
from likeminds.cluster.shard_people import DaskExecutor, Shard
from likeminds.data.annotations import Annotations
from likeminds.mixed_model.choice_responses import ChoiceBlocks
from likeminds.mixed_model.design import Design
from likeminds.mixed_model.item_effects.item_responses import ItemRows
from likeminds.mixed_model.losses import PriorLoss
from likeminds.mixed_model.responses import AucResponses, ResponseBlock, Responses

S = TypeVar("S")
R = TypeVar("R")

# The labels of so many people may come to this process: a sample that form and start are found on.
_FEW = 2000


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
        """Return the labels, which take what is known of items from the state themselves."""
        return self.tasks, state


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
    prepared = how.loss.prepare(said, how.likelihood)
    tasks = how.loss.tasks(prepared, how.coordinates, items=how.items)
    return ResponseShard(renumbered(tasks, positions))


def _rows_of(tasks: Any) -> Any:
    tasks = tasks.labels if isinstance(tasks, AucResponses | ItemRows) else tasks
    return tasks.sets if isinstance(tasks, ChoiceBlocks) else tasks.rows


def renumbered(tasks: Any, positions: Index) -> Any:
    """Return tasks whose people have other positions."""
    if isinstance(tasks, AucResponses | ItemRows):
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
