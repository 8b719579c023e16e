"""Labels as choices: each positive one is an item chosen among those shown with it."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from likeminds._support.arrays import Float, Index
from likeminds._support.checks import listing
from likeminds.data.annotations import Annotations
from likeminds.losses.rows import POSITIVE, Rows
from likeminds.prior.coordinates import Coordinates
from likeminds.prior.tasks import KeptTasks, Task, evenly, plan_blocks


def are_choices(annotations: Annotations) -> bool:
    """Say whether rows came in groups of which just one each is positive, counted alike."""
    if annotations.group_codes is None:
        return False
    positives, _ = _classes_by_group(annotations.group_codes, annotations)
    alike = annotations.weights is None or not np.ptp(annotations.weights)
    return bool(alike and (positives == 1).all())


def refuse_no_choices(annotations: Annotations) -> None:
    """Say which groups are no choices, where all are to be: one positive among some negatives."""
    if are_choices(annotations):
        return
    groups = annotations.group_codes
    assert groups is not None
    positives, _ = _classes_by_group(groups, annotations)
    wrong = np.flatnonzero(positives != 1)
    if not wrong.size:
        raise ValueError(
            "The model has learned from choices that counted alike, but these rows have weights: "
            "leave them out, or fit everything at once."
        )
    told = []
    for group in wrong[:6]:
        person = annotations.users[np.argmax(groups == group)]
        called = "" if annotations.group_ids is None else f" {annotations.group_ids[group]}"
        told.append(f"{person}'s group{called} ({positives[group]} positive)")
    raise ValueError(
        "The model has learned from choices: groups of rows with one positive label each. With "
        f"these rows, there are others: {listing(told)}. Groups of one person with the same id "
        "are one, so that a group that is new needs an id of its own; a group that is not "
        "complete waits for the rest of its rows."
    )


def _shown_together(annotations: Annotations) -> Index:
    """Return the group of each row; the person, where a group has nothing to choose between."""
    groups = annotations.group_codes
    if groups is not None:
        positives, negatives = _classes_by_group(groups, annotations)
        if positives.all() and negatives.all():
            return groups
    return annotations.user_codes


def _classes_by_group(groups: Index, annotations: Annotations) -> tuple[Index, Index]:
    """Return how many positive and negative labels each group has."""
    n_groups, labels = int(groups.max()) + 1, annotations.labels
    positives = np.bincount(groups[labels], minlength=n_groups)
    return positives, np.bincount(groups[~labels], minlength=n_groups)


@dataclass(frozen=True)
class ChoiceTasks(KeptTasks):
    """One set of rows per positive label: itself, then the negatives shown with it.

    Those are the negatives of its group. Where there are no groups, or a group has labels of one
    class only (somebody was asked about single items), they are all of the person's. A set
    counts as often as its positive label, and in it each negative as often as its own.

    Attributes
    ----------
    sets : Rows
        One row per set, all of its items side by side, filled up to a common size. After its
        coordinates each item has a number that says how often it is there: 0 fills up.
    size, set_size : int
        Coordinates of an item, and items of a set.
    """

    sets: Rows
    size: int
    set_size: int

    @classmethod
    def of_annotations(cls, annotations: Annotations, coordinates: Coordinates) -> "ChoiceTasks":
        """Put the sets together."""
        members, counts, weight = _sets(annotations)
        set_size = members.shape[1]
        table = np.zeros((len(members), set_size, coordinates.size + 1))
        table[:, :, :-1] = coordinates.rows(annotations.features[annotations.feature_rows[members]])
        table[:, :, -1] = counts
        rows = Rows.grouped(
            table.reshape(len(members), -1),
            index=np.arange(len(members)),
            positive=np.ones(len(members), dtype=np.bool_),
            weight=weight,
            people=annotations.user_codes[members[:, 0]],
            n_people=annotations.n_people,
        )
        return cls(rows, coordinates.size, set_size)

    @property
    def n_people(self) -> int:
        """How many people chose."""
        return len(self.sets.people)

    @property
    def n_places(self) -> int:
        """One per item of a set, and a set's for the padding."""
        return (len(self.sets.index) + 1) * self.set_size

    @cached_property
    def plan(self) -> list[Index]:
        """The people of each block."""
        return plan_blocks(self.sets, self.n_bytes)

    @property
    def n_bytes(self) -> int:
        """What all blocks together take."""
        return 8 * self.n_places * self.size

    def sample(self, most: int) -> "ChoiceTasks":
        """Return the choices of at most so many people, evenly spread."""
        rows = self.sets.of(evenly(self.n_people, most))
        return ChoiceTasks(rows, self.size, self.set_size)

    def _make(self, chosen: Index) -> Task:
        block = self.sets.block(chosen, np.zeros(self.sets.table.shape[1]))
        n_people, n_sets = len(chosen), block.rows.shape[1]
        items = block.rows.reshape(n_people, n_sets * self.set_size, self.size + 1)
        padding = np.repeat(block.weight[:, POSITIVE] == 0, self.set_size, axis=1)
        first = np.arange(items.shape[1]) % self.set_size == 0
        position = self.sets.offsets[chosen, None] + np.arange(n_sets)
        position = np.where(
            position < self.sets.offsets[chosen + 1, None], position, len(self.sets.index)
        )
        places = position[:, :, None] * self.set_size + np.arange(self.set_size)
        with np.errstate(divide="ignore"):  # what is not there has the logarithm minus infinity
            # Sets that are padding as a whole do not count, whatever they hold.
            log_count = np.log(np.where(padding, 1.0, items[:, :, -1]))
        return Task(
            people=block.people,
            rows=np.ascontiguousarray(items[:, :, :-1]),
            response=np.repeat(first[None].astype(np.float64), n_people, axis=0),
            weight=np.repeat(block.weight[:, POSITIVE], self.set_size, axis=1),
            comparisons=block.weight[:, POSITIVE].sum(axis=1),
            places=places.reshape(n_people, -1),
            set_size=self.set_size,
            log_count=log_count,
        )


def _sets(annotations: Annotations) -> tuple[Index, Float, Float]:
    """Return the rows of each set, the positive first, how often each counts, and the set."""
    weight = np.ones(len(annotations))
    if annotations.weights is not None:
        weight[:] = annotations.weights
    together = _shown_together(annotations)
    counted = weight > 0
    positives: Index = np.flatnonzero(annotations.labels & counted)
    negatives: Index = np.flatnonzero(~annotations.labels & counted)
    negatives = negatives[np.argsort(together[negatives], kind="stable")]
    # Where the negatives that go with each positive begin and end.
    begin = np.searchsorted(together[negatives], together[positives], "left")
    end = np.searchsorted(together[negatives], together[positives], "right")
    kept = end > begin  # a choice among one item says nothing
    positives, begin, end = positives[kept], begin[kept], end[kept]
    place = begin[:, None] + np.arange((end - begin).max(initial=0))
    inside = place < end[:, None]
    members = np.empty((len(positives), 1 + place.shape[1]), dtype=np.intp)
    members[:, 0] = positives
    members[:, 1:] = negatives[np.where(inside, place, begin[:, None])]
    counts = np.where(inside, weight[members[:, 1:]], 0.0)
    return members, np.column_stack([np.ones(len(positives)), counts]), weight[positives]
