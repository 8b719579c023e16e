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
    bins_of,
)
from likeminds.mixed_model.design import Design
from likeminds.mixed_model.item_effects.scatter_sums import (
    BlockItems,
    packed,
    unpacked,
)
from likeminds.mixed_model.item_posteriors import ItemPosteriors
from likeminds.mixed_model.likelihoods import Curvature, DiagonalCurvature
from likeminds.mixed_model.primal_dual import PosteriorCovariance

S = TypeVar("S")
R = TypeVar("R")

# The largest second derivative of log(1 + exp).
BEND = 0.25


NOT_SHARED = (
    "No item was judged by two people, so that nothing can be learned about items beyond their "
    "features: item effects are off."
)


def are_shared(annotations: Annotations) -> bool:
    """Say whether any item was labelled by two people."""
    return annotations.has_items and bool((labelled_by(annotations) > 1).any())


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
    """Labels in this process, with the posteriors of their items.

    Attributes
    ----------
    labels : LabelResponses
        The labels; rows of features.
    item : array of shape (n_places,)
        The item of each place; the padding's is one past the last.
    items : ItemPosteriors
        Their posteriors.
    left_out : array of shape (n_places,), optional
        Labels that are left out of the likelihood.
    bend : float
        The largest second derivative of a label's loss.
    """

    labels: LabelResponses
    item: Index
    items: ItemPosteriors
    left_out: Bool | None = None
    bend: float = BEND

    @classmethod
    def of_annotations(
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
        item = np.append(annotations.item_codes[number], annotations.n_items)
        return cls(LabelResponses.of_rows(rows, coordinates), item, items, bend=bend)

    @classmethod
    def of_newcomers(
        cls,
        annotations: Annotations,
        coordinates: Design,
        items: ItemPosteriors,
        bend: float = BEND,
    ) -> "ItemEffectBlocks":
        """Take the labels of people not seen in training.

        The variance of an item lowers the information of its label: of h, as much is left as
        h / (1 + h variance).
        """
        if annotations.has_items:
            own = items.of(annotations.item_ids)
        else:
            own = items.nobody_knows(annotations.n_items)
        weight = 1.0 / (1.0 + bend * own.doubt[annotations.item_codes])
        if annotations.weights is not None:
            weight = weight * annotations.weights
        return cls.of_annotations(annotations._with(weights=weight), coordinates, own, bend)

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
        """How many labels each item has, those held out not counted."""
        item = self.item[:-1] if self.left_out is None else self.item[~self.left_out]
        return np.bincount(item, minlength=len(self.items.effects) + 1)[: len(self.items.effects)]

    @cached_property
    def _of_blocks(self) -> dict[int, BlockItems]:
        return {}

    def of_block(self, number: int) -> BlockItems:
        """Return which items the labels of a block are about."""
        if number not in self._of_blocks:
            item = self.item[self.labels.task(number).places]
            self._of_blocks[number] = BlockItems.of(item, len(self.items.effects))
        return self._of_blocks[number]

    def known(self, number: int, curvature: Curvature, spread: PosteriorCovariance) -> Float:
        """Return what a block's labels tell about every b_j: see `e_step.ItemSums`."""
        of_block, known = self.of_block(number), np.zeros(len(self.items.effects))
        known[of_block.items] = of_block.sums(information_left(curvature, spread))[:, 0]
        return known

    @cached_property
    def _padded(self) -> tuple[Float, Float]:
        """B and f of all items, and zeros for the padding."""
        zero = np.zeros((1, self.items.n_factors))
        return np.append(self.items.effects, 0.0), np.vstack([self.items.factors, zero])

    def with_items(self, items: ItemPosteriors) -> "ItemEffectBlocks":
        """Return the same labels, with other posteriors of the items."""
        new = replace(self, items=items)
        for name in ("counts", "_of_blocks"):  # what the posteriors do not change
            vars(new)[name] = getattr(self, name)
        return new

    def holding_out(self, share: float) -> "ItemEffectBlocks":
        """Return the same labels, of which a share is held out."""
        return self.leaving_out(share, self.numbers if share else None)

    def leaving_out(self, share: float, numbers: Index | None) -> "ItemEffectBlocks":
        """Return the same labels, of which a share is left out, by the numbers of their items."""
        left_out = None
        if numbers is not None:
            rows = self.labels.rows
            people = np.repeat(rows.people, rows.counts)
            left_out = np.append(drawn(share, people, numbers[self.item[:-1]]), False)
        new = replace(self, left_out=left_out)
        vars(new)["_of_blocks"] = self._of_blocks
        return new

    def of_users(self, chosen: Bool) -> "ItemEffectBlocks":
        """Return the labels of some of the people."""
        kept = np.append(np.repeat(chosen, self.labels.rows.counts), True)
        left_out = None if self.left_out is None else self.left_out[kept]
        labels = self.labels.of_users(chosen)
        return ItemEffectBlocks(labels, self.item[kept], self.items, left_out, bend=self.bend)

    def task(self, number: int) -> PaddedRows:
        """Return one block."""
        task = self.labels.task(number)
        assert task.places is not None
        item = self.of_block(number).item
        effects, factors = self._padded
        task = replace(task, offset=effects[item])
        if self.left_out is not None:
            task = replace(task, weight=np.where(self.left_out[task.places], 0.0, task.weight))
        if not self.items.n_factors:
            return task
        of_block = self.of_block(number)
        unsure = packed(self.items.unsure[of_block.items])
        counted = self.items.share * self.bend * task.weight
        held = unpacked(of_block.sums_of_items(counted, unsure), self.items.n_factors)
        columns = [task.rows.transpose(0, 2, 1), factors[item].transpose(0, 2, 1)]
        rows = np.concatenate(columns, axis=1).transpose(0, 2, 1)
        return replace(task, rows=rows, held=held)


def information_left(curvature: Curvature, spread: PosteriorCovariance) -> Float:
    """Return what is left of each label's information once its person is integrated out."""
    assert isinstance(curvature, DiagonalCurvature)
    return np.asarray(curvature.root**2 * np.maximum(1.0 - spread.variance, 0.0))
