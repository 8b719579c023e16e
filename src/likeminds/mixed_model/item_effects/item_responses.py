"""Responses with their items: item effects b_j and item factors f_j.

    eta_ij = x_j'W_i + a_i + b_j + f_j'v_i,     b_j ~ N(0, tau^2),  f_j ~ N(0, I)

For users, b_j is an offset and f_j is a few more columns of their rows, with the weights v_i. For
items, users are sums over labels. Both sides include the uncertainty of the other's estimate. Users
are integrated out of the likelihood of b_j: of a label's information h, the share 1 - h s^2 is
left, where s^2 is the variance of its score for that user. As the posterior of f_j is N(f_j, T_j),
weights are penalised for its uncertainty: the mean of log(1 + exp) exceeds its value at the mean by
at most an eighth of the variance v_i'T_j v_i (Boehning's bound).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from likeminds._util.array_types import Bool, Float, Index
from likeminds._util.map_reduce import Own
from likeminds._util.per_user_arrays import drawn
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import encode
from likeminds.losses.rows import Rows
from likeminds.mixed_model.choice_responses import ChoiceBlocks
from likeminds.mixed_model.design import Design
from likeminds.mixed_model.gaussian_prior import ItemPosteriors
from likeminds.mixed_model.laplace import PosteriorMode
from likeminds.mixed_model.primal_dual import PosteriorCovariance, information_left
from likeminds.mixed_model.responses import (
    InMemoryResponses,
    LabelResponses,
    PaddedRows,
    ResponseBlock,
    Responses,
    RowItems,
    bins_of,
)

S = TypeVar("S")
R = TypeVar("R")

NOT_SHARED = (
    "No item was labelled by two users, so items have no effects beyond their "
    "features: item effects are off."
)


def are_shared(annotations: Annotations) -> bool:
    """Return whether items can have effects: two users label one, or choices have no features."""
    if not annotations.has_items:
        return False
    if annotations.choice_set_codes is not None and not annotations.n_features:
        return True
    return bool((labelled_by(annotations) > 1).any())


def labelled_by(annotations: Annotations) -> Index:
    """Return the number of users who labelled each item, at most 2.

    Examples
    --------
    >>> annotations = Annotations(["ann", "bob", "bob"], ["cat", "cat", "dog"], [1, 0, 1])
    >>> labelled_by(annotations)
    array([2, 1])
    """
    items, users = annotations.item_codes, annotations.user_codes
    counts = np.zeros(annotations.n_items, dtype=np.intp)
    last_user = np.zeros(annotations.n_items, dtype=np.intp)
    counts[items] = 1
    last_user[items] = users
    counts[items[users != last_user[items]]] = 2
    return counts


@dataclass(frozen=True)
class BlockItems:
    """The items of the labels of a block of users, and sums over labels by item."""

    item: Index  # (b, n): the item of each label; the padding's is one past the last
    items: Index  # (k,): the items, each once
    # (n_labels,): the positions of labels in the block, item by item, and their users.
    place: Index
    user: Index
    start: Index  # (k + 1,): where the labels of each item begin

    @classmethod
    def of(cls, item: Index, n_items: int) -> "BlockItems":
        """Sort the labels of a block; ``item`` has shape (b, n), and ``n_items`` is padding."""
        flat = item.ravel()
        place = np.argsort(flat, kind="stable")[: int((flat < n_items).sum())]
        items, first = np.unique(flat[place], return_index=True)
        start = np.append(first, len(place))
        return cls(item, items, place, place // max(item.shape[1], 1), start)

    def sums(self, numbers: Float) -> Float:
        """Return sums of numbers, one per label, shape (k, 1)."""
        if not len(self.items):
            return np.zeros((0, 1))
        return np.add.reduceat(numbers.ravel()[self.place], self.start[:-1])[:, None]

    def sums_of_rows(self, weight: Float, rows: Float) -> Float:
        """Return weighted sums of rows, (b n, p), one per label."""
        return np.asarray(self._matrix(self.place, self.item.size, weight) @ rows)

    def sums_of_users(self, weight: Float, numbers: Float) -> Float:
        """Return weighted sums of users' numbers, (b, m), one weight per label."""
        return np.asarray(self._matrix(self.user, len(self.item), weight) @ numbers)

    def sums_of_items(self, weight: Float, numbers: Float) -> Float:
        """Return each user's weighted sum of their items' numbers, (k, m)."""
        return np.asarray(self._matrix(self.user, len(self.item), weight).T @ numbers)

    def _matrix(self, columns: Index, n_columns: int, weight: Float) -> sparse.csr_matrix:
        """Return the labels' weights, items x columns."""
        weights = weight.ravel()[self.place]
        return sparse.csr_matrix((weights, columns, self.start), shape=(len(self.items), n_columns))


@dataclass
class SparseItemSums:
    """Sums of some of the items, added up in place.

    Examples
    --------
    >>> total = SparseItemSums(np.array([2]), [np.ones((1, 1))], 3)
    >>> total += SparseItemSums(np.array([0, 2]), [np.ones((2, 1))], 3)
    >>> total.whole[0].ravel()
    array([1., 0., 2.])
    """

    items: Index  # (k,): which items; all of them after the first addition
    sums: list[Float]  # (k, ...): their sums
    n_items: int

    def __iadd__(self, other: "SparseItemSums") -> "SparseItemSums":
        for total, part in zip(self.whole, other.sums, strict=True):
            total[other.items] += part
        return self

    @property
    def whole(self) -> list[Float]:
        """The sums of all items."""
        if len(self.items) < self.n_items:
            totals = [np.zeros((self.n_items, part.shape[1])) for part in self.sums]
            for total, part in zip(totals, self.sums, strict=True):
                total[self.items] = part
            self.items, self.sums = np.arange(self.n_items), totals
        return self.sums


def packed(matrices: Float) -> Float:
    """Return the upper triangles of symmetric matrices, (n, r, r), as rows."""
    upper, _ = _triangle(matrices.shape[2])
    return matrices.reshape(len(matrices), matrices.shape[2] ** 2)[:, upper]


def unpacked(rows: Float, r: int) -> Float:
    """Return the symmetric matrices, (n, r, r), of which rows are the upper triangles."""
    _, place = _triangle(r)
    return np.asarray(rows[:, place])


@lru_cache(maxsize=64)
def _triangle(r: int) -> tuple[Index, Index]:
    """Return the flat positions of the upper triangle, and the position in it of every entry."""
    row, column = np.triu_indices(r)
    place = np.zeros((r, r), dtype=np.intp)
    place[row, column] = np.arange(len(row))
    return r * row + column, np.maximum(place, place.T)


@dataclass(frozen=True)
class ItemState:
    """The state of a map-reduce, with the posteriors of items."""

    items: ItemPosteriors  # without their ids
    share: float  # the share of responses that is held out
    numbers: Index | None  # the numbers of items for the draw: see `ItemEffects`
    state: object  # the state without items


@dataclass(frozen=True)
class ItemEffects:
    """Responses with the posteriors of their items, wherever the responses are."""

    labels: Responses  # the responses: blocks of `ItemRows`
    items: ItemPosteriors  # sent to the blocks with every map-reduce
    counts: Index  # (m,): the number of rows of each item, without those held out
    # The share of responses that is held out, and the numbers of items that they are drawn by.
    share: float = 0.0
    numbers: Index | None = None

    @classmethod
    def of(cls, labels: Responses, items: ItemPosteriors) -> "ItemEffects":
        """Count the rows of items."""
        return cls(labels, items, np.zeros(0, np.intp))._counted()

    def _counted(self) -> "ItemEffects":
        found: SparseItemSums
        found, _ = self.map_reduce(_count, None)
        return replace(self, counts=found.whole[0][:, 0].astype(np.intp))

    @property
    def labelled(self) -> Bool:
        """Which items have labels."""
        return self.counts > 0

    @property
    def n_users(self) -> int:
        """The number of users with labels."""
        return self.labels.n_users

    def with_items(self, items: ItemPosteriors) -> "ItemEffects":
        """Return the same responses, with other posteriors of the items."""
        return replace(self, items=items)

    def holding_out(self, share: float) -> "ItemEffects":
        """Return the same responses, of which a share is left out of the likelihood.

        The draw is by user and item, and does not depend on the order of rows.
        """
        numbers = None
        if share:
            # The order of ids does not depend on that of rows.
            numbers = np.zeros(len(self.items.ids), dtype=np.intp)
            numbers[self.labelled] = encode(self.items.ids[self.labelled], "items")[0]
        return replace(self, share=share, numbers=numbers)._counted()

    def of_users(self, chosen: Bool) -> "ItemEffects":
        """Return the responses of some of the users."""
        return replace(self, labels=self.labels.of_users(chosen))._counted()

    def collected(self) -> "ItemEffects":
        """Return the same responses in this process."""
        return replace(self, labels=self.labels.collected())

    def map_reduce(
        self, work: Callable[[ResponseBlock, S, Any], tuple[R, Any]], state: S, own: Own = None
    ) -> tuple[R, Own]:
        """Return the sum of ``work`` over blocks, and what the blocks keep."""
        return self.labels.map_reduce(work, self.bound(state), own)

    def map(
        self, work: Callable[[ResponseBlock, S, Any], R], state: S, own: Own = None
    ) -> Iterator[R]:
        """Yield the result of ``work`` for each block."""
        return self.labels.map(work, self.bound(state), own)

    def bound(self, state: object) -> Any:
        """Return a state with the posteriors of items."""
        without_ids = replace(self.items, ids=self.items.ids[:0])
        return ItemState(without_ids, self.share, self.numbers, state)


@dataclass(frozen=True)
class ItemRows(InMemoryResponses):
    """Responses in this process, with the items of their rows."""

    labels: LabelResponses | ChoiceBlocks  # the responses; rows of features
    row_items: RowItems  # the item of each place
    n_items: int
    posteriors: ItemPosteriors | None = None  # of the items: part of the state of a map-reduce
    left_out: Bool | None = None  # (n_places,): rows that are left out of the likelihood

    @classmethod
    def of_labels(
        cls,
        annotations: Annotations,
        design: Design,
        curvature: float,
    ) -> "ItemRows":
        """Group the labels by user, in the order of items, so the order of rows does not matter."""
        weights = np.zeros(len(annotations)) if annotations.weights is None else annotations.weights
        annotations = annotations[np.lexsort((weights, annotations.item_codes))]
        every = np.arange(len(annotations))
        by_number = Rows.of_annotations(annotations, index=every, grade=bins_of(annotations))
        number = by_number.index
        rows = replace(by_number, index=annotations.feature_rows[number])
        item = np.append(annotations.item_codes[number], -1)
        labels = LabelResponses.of_rows(rows, design)
        return cls(labels, RowItems(item, np.full(len(item), curvature)), annotations.n_items)

    @property
    def items(self) -> ItemPosteriors:
        """The posteriors of the items."""
        assert self.posteriors is not None
        return self.posteriors

    @property
    def n_bytes(self) -> int:
        """The memory of all blocks, in bytes."""
        size = self.labels.design.size
        return self.labels.n_bytes * (size + self.items.n_factors) // max(size, 1)

    @property
    def plan(self) -> list[Index]:
        """The users of each block."""
        return self.labels.plan

    def bound(self, state: object) -> tuple["ItemRows", Any]:
        """Return the rows with the items of a state, and the state without them."""
        if not isinstance(state, ItemState):
            return self, state
        left_out = self._drawn(state.share, state.numbers)
        rows = replace(self, posteriors=state.items, left_out=left_out)
        for name in ("_of_blocks", "_left_out_by_share"):  # caches that posteriors do not change
            vars(rows)[name] = getattr(self, name)
        return rows, state.state

    @cached_property
    def _of_blocks(self) -> dict[int, BlockItems]:
        return {}

    @cached_property
    def _left_out_by_share(self) -> dict[float, Bool]:
        return {}

    def of_block(self, number: int) -> BlockItems:
        """Return the items of the rows of a block."""
        if number not in self._of_blocks:
            item = self.row_items.item[self.labels.data(number).places]
            item = np.where(item < 0, self.n_items, item)
            self._of_blocks[number] = BlockItems.of(item, self.n_items)
        return self._of_blocks[number]

    def information(
        self, number: int, mode: PosteriorMode, covariance: PosteriorCovariance
    ) -> Float:
        """Return the information of a block's rows on every b_j: see `em_steps.ItemSums`."""
        of_block, information = self.of_block(number), np.zeros(self.n_items)
        left = information_left(mode.system, covariance, mode.derivatives.curvature)
        information[of_block.items] = of_block.sums(left)[:, 0]
        return information

    @cached_property
    def _padded(self) -> tuple[Float, Float]:
        """Effects and factors of all items, and zeros for the padding."""
        zero = np.zeros((1, self.items.n_factors))
        return np.append(self.items.effects, 0.0), np.vstack([self.items.factors, zero])

    def _drawn(self, share: float, numbers: Index | None) -> Bool | None:
        """Draw rows to leave out, by the numbers of their items; a choice, by its first two."""
        if numbers is None:
            return None
        if share not in self._left_out_by_share:
            size = self.row_items.set_size
            users = np.repeat(self.labels.users, self.labels.rows_each // size)
            items = np.append(numbers, 0)[self.row_items.item[:-size].reshape(-1, size)]
            about = items[:, 0] if size == 1 else items[:, 0] * (numbers.max() + 1) + items[:, 1]
            out = np.append(drawn(share, users, about), False)
            self._left_out_by_share[share] = np.repeat(out, size)
        return self._left_out_by_share[share]

    def of_users(self, chosen: Bool) -> "ItemRows":
        """Return the responses of some of the users."""
        padding = np.ones(self.row_items.set_size, dtype=np.bool_)
        kept = np.append(np.repeat(chosen, self.labels.rows_each), padding)
        return ItemRows(self.labels.of_users(chosen), self.row_items.of(kept), self.n_items)

    def data(self, number: int) -> PaddedRows:
        """Return one block."""
        data, of_block = self.labels.data(number), self.of_block(number)
        places, signed = data.places, self.row_items.signed
        assert places is not None
        effects, factors = self._padded
        data = replace(data, offset=signed(effects[of_block.item], places))
        if self.left_out is not None:
            data = replace(data, weight=np.where(self.left_out[places], 0.0, data.weight))
        if not self.items.n_factors:
            return data
        covariance = packed(self.items.factor_covariance[of_block.items])
        weight = self.items.share * self.row_items.curvature[places] * data.weight
        precision = unpacked(of_block.sums_of_items(weight, covariance), self.items.n_factors)
        own = signed(factors[of_block.item], places)
        columns = [data.rows.transpose(0, 2, 1), own.transpose(0, 2, 1)]
        rows = np.concatenate(columns, axis=1).transpose(0, 2, 1)
        return replace(data, rows=rows, precision=precision)


def _count(block: ResponseBlock, state: None, own: None) -> tuple[SparseItemSums, None]:  # noqa: ARG001
    """Count the rows of each item in a block, without those held out."""
    rows = block.responses
    assert isinstance(rows, ItemRows)
    of_block, places = rows.of_block(block.number), rows.labels.data(block.number).places
    assert places is not None
    out = np.zeros(places.shape, np.bool_) if rows.left_out is None else rows.left_out[places]
    counted: Float = of_block.sums((~out).astype(np.float64))
    return SparseItemSums(of_block.items, [counted], rows.n_items), None
