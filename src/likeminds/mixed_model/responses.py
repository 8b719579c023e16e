"""Each user's labels as rows and responses, in blocks that are processed at once."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from likeminds._util.array_types import Bool, Float, FloatArray, Index
from likeminds._util.map_reduce import Executor, Own, ThreadExecutor
from likeminds.data.annotations import Annotations
from likeminds.losses import SquaredAUC
from likeminds.losses.rows import POSITIVE, RowBlock, Rows
from likeminds.mixed_model.design import Design

S = TypeVar("S")
R = TypeVar("R")

# Blocks are kept in memory if all of them together take no more than this.
_KEPT_BYTES = 1 << 28
# Smaller responses are processed by one thread, in few blocks even with more padding, since the
# overhead of calls would exceed their work.
_SMALL_BYTES = 1 << 22


@dataclass(frozen=True)
class PaddedRows:
    """A few users' rows, padded to a common length (padding has weight 0)."""

    users: Index  # (b,): their positions among all users
    rows: Float  # (b, n, p): coordinates
    response: Float  # (b, n)
    weight: Float  # (b, n)
    comparisons: Float  # (b,): the effective number of a user's observations
    # (b, n): the positions of rows among all rows; the padding's are past the last.
    places: Index | None = None
    set_size: int = 1  # consecutive rows that form a choice set: see `choice_responses`
    # (b, n): the logarithm of an item's count in its set (minus infinity is padding).
    log_count: Float | float = 0.0
    offset: Float | None = None  # (b, n): added to eta: see `item_responses`
    # (b, r, r): added to each user's prior precision of the last r coordinates, with mean zero.
    precision: Float | None = None
    beyond: Float | None = None  # (b, n, n): inner products of rows beyond the coordinates


@dataclass(frozen=True)
class RowItems:
    """The item of each row, if items have effects of their own."""

    item: Index  # (n_places,): item codes; -1 for none, as in the padding
    # (n_places,): the second derivative of the loss that weighs the uncertainty of an item.
    curvature: Float
    sign: Float | None = None  # (n_places,): -1 if the worst was chosen, else 1
    set_size: int = 1  # the number of consecutive rows of one response

    def signed(self, numbers: Float, places: Index) -> Float:
        """Return numbers of rows, or of their columns, with the signs of their places."""
        if self.sign is None:
            return numbers
        sign = self.sign[places]
        return np.asarray(numbers * (sign if numbers.ndim == sign.ndim else sign[..., None]))

    def of(self, kept: Bool) -> "RowItems":
        """Return some of the places."""
        sign = None if self.sign is None else self.sign[kept]
        return replace(self, item=self.item[kept], sign=sign, curvature=self.curvature[kept])


class Responses(Protocol):
    """Each user's labels, in blocks: see `likeminds._util.map_reduce`."""

    @property
    def n_users(self) -> int:
        """The number of users."""
        ...

    def map_reduce(
        self, work: "Callable[[ResponseBlock, S, Any], tuple[R, Any]]", state: S, own: Own = None
    ) -> tuple[R, Own]:
        """Return the sum of the blocks' results, and their own states."""
        ...

    def map(
        self, work: "Callable[[ResponseBlock, S, Any], R]", state: S, own: Own = None
    ) -> Iterator[R]:
        """Yield the result of each block."""
        ...

    def of_users(self, chosen: Bool) -> "Responses":
        """Return the labels of some of the users, shape (n_users,)."""
        ...

    def collected(self) -> "Responses":
        """Return the same responses in this process."""
        ...


@dataclass(frozen=True)
class ResponseBlock:
    """A block of users, by its number in the responses."""

    responses: "InMemoryResponses"
    number: int

    @property
    def data(self) -> PaddedRows:
        """The users' rows and responses."""
        return self.responses.data(self.number)


def data_of(block: ResponseBlock, state: None, own: None) -> PaddedRows:  # noqa: ARG001 - the form of a work
    """Return the rows and responses of a block."""
    return block.data


def users_of(block: ResponseBlock, state: None, own: None) -> Index:  # noqa: ARG001
    """Return the users of a block."""
    return block.data.users


class InMemoryResponses(Executor[ResponseBlock]):
    """Base: blocks of users in this process, on all cores if there is much to compute."""

    @property
    def plan(self) -> Sequence[Index]:
        """The users (positions in the rows) of each block."""
        raise NotImplementedError

    @property
    def n_bytes(self) -> int:
        """The approximate memory of all blocks, in bytes."""
        raise NotImplementedError

    @property
    def n_users(self) -> int:
        """The number of users with labels."""
        return sum(map(len, self.plan))

    def data(self, number: int) -> PaddedRows:
        """Return one block."""
        raise NotImplementedError

    @property
    def _blocks(self) -> ThreadExecutor[ResponseBlock]:
        blocks = [ResponseBlock(self, number) for number in range(len(self.plan))]
        return ThreadExecutor(blocks, many_threads=self.n_bytes >= _SMALL_BYTES)

    def map_reduce(
        self,
        work: Callable[[ResponseBlock, S, Any], tuple[R, Any]],
        state: S,
        own: Own = None,
        *,
        start: R | None = None,
    ) -> tuple[R, Own]:
        """Return the sum of the blocks' results, and their own states."""
        rows, state = self.bound(state)
        return rows._blocks.map_reduce(work, state, own, start=start)

    def map(
        self, work: Callable[[ResponseBlock, S, Any], R], state: S, own: Own = None
    ) -> Iterator[R]:
        """Yield the result of each block."""
        rows, state = self.bound(state)
        return rows._blocks.map(work, state, own)

    def collected(self) -> Self:
        """Return the responses in this process."""
        return self

    def bound(self, state: object) -> "tuple[InMemoryResponses, Any]":
        """Return the blocks to map over with this state, and the state that they get."""
        return self, state


class CachedResponses(InMemoryResponses):
    """Base: blocks are made once, and kept if all of them fit into memory."""

    @cached_property
    def _kept(self) -> dict[int, PaddedRows]:
        return {}

    def data(self, number: int) -> PaddedRows:
        """Return one block, from memory if all of them fit there."""
        if number in self._kept:
            return self._kept[number]
        data = self._make(self.plan[number])
        if self.n_bytes <= _KEPT_BYTES:
            self._kept[number] = data
        return data

    def _make(self, chosen: Index) -> PaddedRows:
        raise NotImplementedError


@dataclass(frozen=True)
class ItemTableResponses(CachedResponses):
    """Base: rows of a table of items, grouped by user; the rows of a set are consecutive."""

    rows: Rows  # the labels, or the choice sets
    design: Design  # the coordinates of the items
    is_ready: bool  # whether the table of the items is in coordinates already
    set_size: int = 1

    @property
    def users(self) -> Index:
        """The positions of the users among all users."""
        return self.rows.users

    @property
    def rows_each(self) -> Index:
        """The number of places of each user."""
        return self.rows.counts * self.set_size

    @property
    def n_places(self) -> int:
        """One per row of a response, and one more response for the padding."""
        return (len(self.rows.index) + 1) * self.set_size

    @property
    def n_bytes(self) -> int:
        """The memory of all blocks, in bytes."""
        return 8 * self.n_places * self.design.size

    def of_users(self, chosen: Bool) -> Self:
        """Return the responses of some of the users."""
        return replace(self, rows=self.rows.of(chosen))

    def _places(self, chosen: Index, n_responses: int) -> Index:
        """Return the places of so many responses of each user, (b, n)."""
        number = self.rows.offsets[chosen, None] + np.arange(n_responses)
        is_padding = number >= self.rows.offsets[chosen + 1, None]
        number = np.where(is_padding, len(self.rows.index), number)
        places = number[:, :, None] * self.set_size + np.arange(self.set_size)
        return places.reshape(len(chosen), -1)


class LabelResponses(ItemTableResponses):
    """One row per label, for the logistic loss."""

    @classmethod
    def of_annotations(cls, annotations: Annotations, design: Design) -> "LabelResponses":
        """Group the labels by user; grades are numbers of bins here."""
        return cls.of_rows(Rows.of_annotations(annotations, grade=bins_of(annotations)), design)

    @classmethod
    def of_rows(cls, rows: Rows, design: Design) -> "LabelResponses":
        """Take labels grouped by user; make the items' coordinates once if that is cheap."""
        is_ready = is_cheap_table(rows.table, len(rows.index), design)
        if is_ready:
            rows = replace(rows, table=design.rows(rows.table))
        return cls(rows, design, is_ready)

    @cached_property
    def plan(self) -> list[Index]:
        """The users of each block."""
        return plan_blocks(self.rows, self.n_bytes, dual_below=self.design.size)

    def _make(self, chosen: Index) -> PaddedRows:
        rows = self.rows
        block = rows.block(chosen, np.zeros(rows.table.shape[1]))
        in_coordinates = block.rows if self.is_ready else self.design.rows(block.rows)
        return PaddedRows(
            users=block.users,
            rows=by_column(in_coordinates),
            response=_response(block),
            weight=block.weight.sum(axis=1),
            comparisons=block.class_weight.sum(axis=1),
            places=self._places(chosen, block.rows.shape[1]),
            beyond=self.design.products_beyond(block.rows, in_coordinates),
        )


@dataclass(frozen=True)
class AucResponses(CachedResponses):
    """The squared AUC loss as a regression: |Z w - (0, ..., 0, 1)|^2 for each user.

    Z has a row per label: the item less the mean of its class, over the root of the class's weight.
    Its last row is the difference of the means: see `losses.SquaredAUC.rows`. Users with more
    labels than coordinates have one row more than coordinates, by an orthogonal rotation. A user
    counts n+ n- / (n+ + n-) times, so users without pairs do not count.
    """

    labels: LabelResponses

    @property
    def plan(self) -> list[Index]:
        """The users of each block."""
        return self.labels.plan

    @property
    def n_bytes(self) -> int:
        """The approximate memory of all blocks, in bytes."""
        size = self.labels.design.size
        return 8 * size * int(np.minimum(self.labels.rows.counts, size).sum() + self.n_users)

    def of_users(self, chosen: Bool) -> "AucResponses":
        """Return the labels of some of the users."""
        return AucResponses(self.labels.of_users(chosen))

    def _make(self, chosen: Index) -> PaddedRows:
        rows, design = self.labels.rows, self.labels.design
        block = rows.block(chosen, np.zeros(rows.table.shape[1]))
        if not self.labels.is_ready:
            block = replace(block, rows=design.rows(block.rows))
        Z, response = SquaredAUC().rows(block)
        strength, comparisons = SquaredAUC().weight_and_count(block.class_weight)
        if Z.shape[1] > Z.shape[2] + 1:
            joint = _triangle(np.concatenate([Z, response[:, :, None]], axis=2))
            Z, response = np.ascontiguousarray(joint[:, :, :-1]), joint[:, :, -1]
        return PaddedRows(
            users=block.users,
            rows=Z,
            response=response,
            weight=np.repeat(strength[:, None], Z.shape[1], axis=1),
            comparisons=comparisons,
        )


def of_each_user(data: PaddedRows, change: Callable[[Any], Any]) -> PaddedRows:
    """Return a block with its arrays by user changed, and without places."""
    parts = {field.name: getattr(data, field.name) for field in fields(data)}
    arrays = {name: part for name, part in parts.items() if isinstance(part, np.ndarray)}
    changed = {name: change(part) for name, part in arrays.items()}
    return replace(data, **(changed | {"places": None}))


def by_column(rows: Float) -> Float:
    """Return rows, (b, n, p), in column-major order if they exceed coordinates: see `Primal`."""
    if rows.shape[1] < rows.shape[2]:
        return rows
    return np.ascontiguousarray(rows.transpose(0, 2, 1)).transpose(0, 2, 1)


def bins_of(annotations: Annotations) -> Index | None:
    """Return the bins of grades that a loss has made; None for labels of yes or no."""
    return None if annotations.grades is None else annotations.grades.astype(np.intp)


def _response(block: RowBlock) -> Float:
    """Return 1 for a positive label, or the bin of a grade; padding is 0."""
    if block.grade is None:
        return np.asarray((block.weight[:, POSITIVE] > 0).astype(np.float64))
    return np.where(block.weight.sum(axis=1) > 0, block.grade, 0).astype(np.float64)


def plan_blocks(
    rows: Rows, n_bytes: int, row_bytes: int | None = None, *, dual_below: int
) -> list[Index]:
    """Divide users into blocks, few of them for small data.

    Users with fewer rows than ``dual_below`` have dual systems (see `primal_dual`) and separate
    blocks, so results do not depend on the other users.
    """
    if n_bytes < _SMALL_BYTES:
        return list(rows.plan(2.0, row_bytes, dual_below))
    return list(rows.plan(row_bytes=row_bytes, apart=dual_below))


def is_cheap_table(table: FloatArray, n_labels: int, design: Design) -> bool:
    """Return whether to compute the coordinates of a table of items once, for all labels."""
    if design.beyond:  # the parts beyond them are needed, too
        return False
    # The table is small, or several labels share its rows.
    shared = 2 * len(table) <= n_labels
    return shared or 8 * len(table) * design.size <= _KEPT_BYTES


def _triangle(matrices: Float) -> Float:
    """Return R of the QR factors of each matrix."""
    return np.asarray(np.linalg.qr(matrices, mode="r"), dtype=np.float64)


def sample(responses: Responses, most: int) -> Responses:
    """Return the labels of at most ``most`` users, evenly spaced."""
    chosen = np.zeros(responses.n_users, dtype=np.bool_)
    places = np.linspace(0, responses.n_users - 1, min(most, responses.n_users))
    chosen[places.astype(np.intp)] = True
    return responses.of_users(chosen)
