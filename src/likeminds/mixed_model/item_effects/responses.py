"""People crossed with items: what an item adds to every score, and features of items to be learned.

    eta_ij = x_j'W_i + a_i + b_j + f_j'v_i,     b_j ~ N(0, tau^2),  f_j ~ N(0, I)

To people, b_j is an offset and f_j is a few more columns of their rows, with the weights v_i. To
items, people are sums over labels. Neither side takes the other's estimate as exact. People
are integrated out of the likelihood of b_j: of a label's information h, the share 1 - h s^2 is
left, where s^2 is the variance of its score for that person. And as f_j is known only as
N(f_j, T_j), weights are penalised by the uncertainty of what they weigh: the mean of log(1 + exp)
exceeds its value at the mean by at most an eighth of the variance v_i'T_j v_i (Boehning's bound).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np

from likeminds._util.array_types import Bool, Float, Index
from likeminds._util.hash_sampling import drawn
from likeminds._util.map_reduce import Own
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import encode
from likeminds.losses.rows import Rows
from likeminds.mixed_model.blocks import (
    InMemoryResponses,
    LabelResponses,
    PaddedRows,
    ResponseBlock,
    RowItems,
    bins_of,
)
from likeminds.mixed_model.choice_blocks import ChoiceBlocks
from likeminds.mixed_model.design import Design
from likeminds.mixed_model.item_effects.scatter_sums import (
    BlockItems,
    packed,
    unpacked,
)
from likeminds.mixed_model.item_posteriors import ItemPosteriors
from likeminds.mixed_model.map_newton import PosteriorMode
from likeminds.mixed_model.primal_dual import PosteriorCovariance, information_left

S = TypeVar("S")
R = TypeVar("R")

# The largest second derivative of log(1 + exp).
BEND = 0.25


NOT_SHARED = (
    "No item was judged by two people, so that nothing can be learned about items beyond their "
    "features: item effects are off."
)


def are_shared(annotations: Annotations) -> bool:
    """Return whether items can have effects: two users judge one, or choices have no features."""
    if not annotations.has_items:
        return False
    if annotations.group_codes is not None and not annotations.n_features:
        return True
    return bool((labelled_by(annotations) > 1).any())


def labelled_by(annotations: Annotations) -> Index:
    """Return how many people labelled each item, two standing for more.

    Examples
    --------
    >>> said = Annotations(["ann", "bob", "bob"], ["cat", "cat", "dog"], [True, False, True])
    >>> labelled_by(said)
    array([2, 1])
    """
    items, people = annotations.item_codes, annotations.user_codes
    found = np.zeros(annotations.n_items, dtype=np.intp)
    one_of_them = np.zeros(annotations.n_items, dtype=np.intp)
    found[items] = 1
    one_of_them[items] = people  # whoever comes last
    found[items[people != one_of_them[items]]] = 2
    return found


class ItemEffects(ABC):
    """Labels with the posteriors of their items, wherever the labels are.

    Attributes
    ----------
    items : ItemPosteriors
        The items, and what is known of them.
    counts : array of shape (m,)
        How many labels each item has, those held out not counted.
    """

    items: ItemPosteriors
    counts: Index

    @property
    def labelled(self) -> Bool:
        """Which items have labels."""
        return self.counts > 0

    @property
    @abstractmethod
    def n_users(self) -> int:
        """How many people have labels."""

    @abstractmethod
    def with_items(self, items: ItemPosteriors) -> Self:
        """Return the same labels, with other posteriors of the items."""

    @abstractmethod
    def holding_out(self, share: float) -> Self:
        """Return the same labels, of which a share is held out: left out of the likelihood.

        They are drawn by who gave them to what, whatever the order of rows and items.
        """

    @abstractmethod
    def of_users(self, chosen: Bool) -> "ItemEffects":
        """Return the labels of some of the people."""

    @abstractmethod
    def visit(
        self, work: Callable[[ResponseBlock, S, Any], tuple[R, Any]], state: S, own: Own = None
    ) -> tuple[R, Own]:
        """Return the sum of what blocks answer, and what they keep."""

    @abstractmethod
    def ask(
        self, work: Callable[[ResponseBlock, S, Any], R], state: S, own: Own = None
    ) -> Iterator[R]:
        """Yield what each block answers."""

    @property
    def numbers(self) -> Index:
        """A number for each item with labels, by the order of their ids where they have one."""
        numbers, labelled = np.zeros(len(self.items.ids), dtype=np.intp), self.labelled
        numbers[labelled] = encode(self.items.ids[labelled], "items")[0]
        return numbers


@dataclass(frozen=True)
class ItemEffectBlocks(InMemoryResponses, ItemEffects):
    """Responses in this process, with the posteriors of their items.

    Attributes
    ----------
    labels : LabelResponses or ChoiceBlocks
        The responses; rows of features.
    row_items : RowItems
        The item of each place.
    items : ItemPosteriors
        Their posteriors.
    left_out : array of shape (n_places,), optional
        Rows that are left out of the likelihood.
    """

    labels: LabelResponses | ChoiceBlocks
    row_items: RowItems
    items: ItemPosteriors
    left_out: Bool | None = None

    @classmethod
    def of_labels(
        cls,
        annotations: Annotations,
        coordinates: Design,
        items: ItemPosteriors,
        bend: float = BEND,
    ) -> "ItemEffectBlocks":
        """Group the labels by person, and keep which item each is about.

        A person's labels are in the order of their items, so that nothing depends on that of rows.
        """
        weights = np.zeros(len(annotations)) if annotations.weights is None else annotations.weights
        annotations = annotations[np.lexsort((weights, annotations.item_codes))]
        every = np.arange(len(annotations))
        by_number = Rows.of_annotations(annotations, index=every, grade=bins_of(annotations))
        number = by_number.index
        rows = replace(by_number, index=annotations.feature_rows[number])
        item = np.append(annotations.item_codes[number], -1)
        return cls(LabelResponses.of_rows(rows, coordinates), RowItems(item, bend=bend), items)

    @classmethod
    def of_choices(cls, choices: ChoiceBlocks, items: ItemPosteriors) -> "ItemEffectBlocks":
        """Take choices, whose rows know their items."""
        return cls(choices, choices.places(), items)

    @property
    def n_users(self) -> int:
        """How many people have labels."""
        return self.labels.n_users

    @property
    def n_bytes(self) -> int:
        """What all blocks together take."""
        size = self.labels.coordinates.size
        return self.labels.n_bytes * (size + self.items.n_factors) // max(size, 1)

    @property
    def plan(self) -> list[Index]:
        """The people of each block."""
        return self.labels.plan

    @cached_property
    def counts(self) -> Index:  # type: ignore[override]
        """How many rows each item has, those held out not counted."""
        item = self.row_items.item
        item = item[item >= 0] if self.left_out is None else item[(item >= 0) & ~self.left_out]
        return np.bincount(item, minlength=len(self.items.effects))

    @cached_property
    def _of_blocks(self) -> dict[int, BlockItems]:
        return {}

    def of_block(self, number: int) -> BlockItems:
        """Return which items the rows of a block are about."""
        if number not in self._of_blocks:
            n_items = len(self.items.effects)
            item = self.row_items.item[self.labels.task(number).places]
            self._of_blocks[number] = BlockItems.of(np.where(item < 0, n_items, item), n_items)
        return self._of_blocks[number]

    def known(self, number: int, mode: PosteriorMode, spread: PosteriorCovariance) -> Float:
        """Return what a block's rows tell about every b_j: see `e_step.ItemSums`."""
        of_block, known = self.of_block(number), np.zeros(len(self.items.effects))
        left = information_left(mode.system, spread, mode.said.curvature)
        known[of_block.items] = of_block.sums(left)[:, 0]
        return known

    @cached_property
    def _padded(self) -> tuple[Float, Float]:
        """B and f of all items, and zeros for the padding."""
        zero = np.zeros((1, self.items.n_factors))
        return np.append(self.items.effects, 0.0), np.vstack([self.items.factors, zero])

    def with_items(self, items: ItemPosteriors) -> "ItemEffectBlocks":
        """Return the same responses, with other posteriors of the items."""
        new = replace(self, items=items)
        for name in ("counts", "_of_blocks"):  # what the posteriors do not change
            vars(new)[name] = getattr(self, name)
        return new

    def holding_out(self, share: float) -> "ItemEffectBlocks":
        """Return the same responses, of which a share is held out."""
        return self.leaving_out(share, self.numbers if share else None)

    def leaving_out(self, share: float, numbers: Index | None) -> "ItemEffectBlocks":
        """Return the same responses, of which a share is left out, by the numbers of their items.

        A choice is drawn by the first two of its items.
        """
        left_out = None
        if numbers is not None:
            size = self.row_items.set_size
            people = np.repeat(self.labels.people, self.labels.rows_each // size)
            items = np.append(numbers, 0)[self.row_items.item[:-size].reshape(-1, size)]
            about = items[:, 0] if size == 1 else items[:, 0] * (numbers.max() + 1) + items[:, 1]
            out = np.append(drawn(share, people, about), False)
            left_out = np.repeat(out, size)
        new = replace(self, left_out=left_out)
        vars(new)["_of_blocks"] = self._of_blocks
        return new

    def of_users(self, chosen: Bool) -> "ItemEffectBlocks":
        """Return the responses of some of the people."""
        padding = np.ones(self.row_items.set_size, dtype=np.bool_)
        kept = np.append(np.repeat(chosen, self.labels.rows_each), padding)
        left_out = None if self.left_out is None else self.left_out[kept]
        labels = self.labels.of_users(chosen)
        return ItemEffectBlocks(labels, self.row_items.of(kept), self.items, left_out)

    def task(self, number: int) -> PaddedRows:
        """Return one block."""
        task, of_block, signed = (
            self.labels.task(number),
            self.of_block(number),
            self.row_items.signed,
        )
        places = task.places
        assert places is not None
        effects, factors = self._padded
        task = replace(task, offset=signed(effects[of_block.item], places))
        if self.left_out is not None:
            task = replace(task, weight=np.where(self.left_out[places], 0.0, task.weight))
        if not self.items.n_factors:
            return task
        unsure = packed(self.items.unsure[of_block.items])
        counted = self.items.share * self.row_items.bend_at(places) * task.weight
        held = unpacked(of_block.sums_of_items(counted, unsure), self.items.n_factors)
        own = signed(factors[of_block.item], places)
        columns = [task.rows.transpose(0, 2, 1), own.transpose(0, 2, 1)]
        rows = np.concatenate(columns, axis=1).transpose(0, 2, 1)
        return replace(task, rows=rows, held=held)


def of_new_users(annotations: Annotations, items: ItemPosteriors, bend: float) -> Annotations:
    """Return new users' labels with weights that the uncertainty of their items lowers.

    Of the information h of a label, as much is left as h / (1 + h variance). In a choice set, the
    variance is that of the difference between two items, on average over the set.
    """
    own = items_of(annotations, items)
    doubt = own.doubt[annotations.item_codes]
    sets = annotations.group_codes
    if sets is not None:
        size = np.bincount(sets)
        doubt = (np.minimum(size, 2) * np.bincount(sets, weights=doubt) / size)[sets]
    weight = 1.0 / (1.0 + bend * doubt)
    if annotations.weights is not None:
        weight = weight * annotations.weights
    return annotations._with(weights=weight)


def items_of(annotations: Annotations, items: ItemPosteriors) -> ItemPosteriors:
    """Return the posteriors of the items of annotations, in their order."""
    if annotations.has_items:
        return items.of(annotations.item_ids)
    return items.nobody_knows(annotations.n_items)
