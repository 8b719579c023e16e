"""Labels as choices: each positive label is a choice among the items shown together."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from likeminds._util.array_types import Float, FloatArray, Index
from likeminds._util.checks import listing
from likeminds.data.annotations import Annotations
from likeminds.data.coded_labels import are_choices, classes_by_set, counted_alike
from likeminds.losses.rows import POSITIVE, Rows
from likeminds.mixed_model.design import Design
from likeminds.mixed_model.responses import (
    ItemTableResponses,
    PaddedRows,
    RowItems,
    is_cheap_table,
    plan_blocks,
)

# The code of "none" in a set: a user who says no to a single item chooses none.
_OUTSIDE = -1


def refuse_no_choices(annotations: Annotations) -> None:
    """Raise ValueError unless each choice set has one positive label among some negatives."""
    if are_choices(annotations):
        return
    groups = annotations.choice_set_codes
    assert groups is not None
    chosen, _ = classes_by_set(groups, annotations)
    wrong = np.flatnonzero(chosen != 1)
    if not wrong.size:
        raise ValueError(
            "The model was fitted to choices, whose rows have equal weights, but these rows have "
            "weights that differ within a choice set: give all rows of a set the same weight."
        )
    found = []
    for group in wrong[:6]:
        user = annotations.users[np.argmax(groups == group)]
        name = "" if annotations.choice_set_ids is None else f" {annotations.choice_set_ids[group]}"
        found.append(f"{user}'s choice set{name} ({chosen[group]} positive)")
    raise ValueError(
        "The model was fitted to choices, with one positive row in each choice set. These choice "
        f"sets have another number: {listing(found)}. Sets of one user with the same id are "
        "joined, so a new set needs another id. Add the missing rows of an incomplete set."
    )


def _shown_together(annotations: Annotations) -> Index:
    """Return the choice set of each row; the user, if a set has labels of one class only."""
    groups = annotations.choice_set_codes
    if groups is not None:
        chosen, others = classes_by_set(groups, annotations)
        if chosen.all() and others.all():
            return groups
    return annotations.user_codes


@dataclass(frozen=True, kw_only=True)
class ChoiceBlocks(ItemTableResponses):
    """One set of rows per positive label: itself, then the negatives shown with it.

    The negatives are those of its choice set. Without choice sets, or if one has labels of one
    class only (single items), they are all negatives of the user. A set has the weight of its
    positive label, and each negative in it has its own weight. In a choice set with one chosen row
    and equal weights, only the set has a weight. ``rows`` has one row per set: the positions of its
    items in ``items``, padded to a common size, then the count of each (0 is padding), then 1, or
    -1 if the worst was chosen.
    """

    # (n_items, size) or (n_items, d): the items' coordinates; or their features, where
    # coordinates take too much memory.
    items: FloatArray
    # (n_sets, set_size): the item codes of each set, by its number in ``rows``; -1 for no item.
    members: Index

    @classmethod
    def of_annotations(
        cls, annotations: Annotations, design: Design, *, single: bool = False
    ) -> "ChoiceBlocks":
        """Make the sets of annotations.

        With ``single``, a row that is alone in its choice set (every row, without choice sets) is a
        choice between the item and none. The coordinates of none, the intercept included, are zero,
        so this is logistic regression.
        """
        sets = _with_single(annotations) if single else _sets(annotations)
        set_size = sets.members.shape[1]
        places = np.where(
            sets.members == _OUTSIDE, _OUTSIDE, annotations.feature_rows[sets.members]
        )
        rows = Rows.group(
            np.column_stack([places, sets.counts, sets.sign]),
            index=np.arange(len(places)),
            positive=np.ones(len(places), dtype=np.bool_),
            weight=sets.weight,
            users=sets.users,
            n_users=annotations.n_users,
        )
        table = annotations.features
        is_ready = is_cheap_table(table, len(annotations), design)
        items = design.rows(table) if is_ready else table
        absent = (sets.members == _OUTSIDE) | (sets.counts == 0.0)
        members = np.where(absent, _OUTSIDE, annotations.item_codes[sets.members])
        return cls(
            rows=rows,
            design=design,
            is_ready=is_ready,
            set_size=set_size,
            items=items,
            members=members,
        )

    def places(self) -> RowItems:
        """Return the item of each place, with its sign: see `RowItems`."""
        members = self.members[self.rows.index]
        sizes = np.maximum((members != _OUTSIDE).sum(axis=1), 2)
        _, _, sign = np.split(self.rows.table[self.rows.index], _thirds(self.set_size), axis=1)
        absent = np.full((1, self.set_size), _OUTSIDE)
        return RowItems(
            np.concatenate([members, absent]).ravel(),
            np.repeat(np.append((sizes - 1.0) / sizes**2, 0.0), self.set_size),
            np.repeat(np.append(sign[:, 0], 1.0), self.set_size),
            self.set_size,
        )

    @cached_property
    def plan(self) -> list[Index]:
        """The users of each block."""
        design = self.design
        width = len(design.scale) if design.beyond else design.size
        dual_below = -(-design.size // self.set_size)
        return plan_blocks(
            self.rows, self.n_bytes, 8 * self.set_size * width, dual_below=dual_below
        )

    def _make(self, chosen: Index) -> PaddedRows:
        block = self.rows.block(chosen, np.zeros(self.rows.table.shape[1]))
        n_users, n_sets = len(chosen), block.rows.shape[1]
        members, counts, sign = np.split(block.rows, _thirds(self.set_size), axis=2)
        padding = np.repeat(block.weight[:, POSITIVE] == 0, self.set_size, axis=1)
        first = np.arange(n_sets * self.set_size) % self.set_size == 0
        with np.errstate(divide="ignore"):  # absent items have the logarithm minus infinity
            # Sets that are padding do not count, whatever their values.
            log_count = np.log(np.where(padding, 1.0, counts.reshape(n_users, -1)))
        rows, beyond = self._rows(members.astype(np.intp), sign)
        return PaddedRows(
            users=block.users,
            rows=rows,
            response=np.repeat(first[None].astype(np.float64), n_users, axis=0),
            weight=np.repeat(block.weight[:, POSITIVE], self.set_size, axis=1),
            comparisons=block.weight[:, POSITIVE].sum(axis=1),
            places=self._places(chosen, n_sets),
            set_size=self.set_size,
            log_count=log_count,
            beyond=beyond,
        )

    def _rows(self, members: Index, sign: Float) -> tuple[Float, Float | None]:
        """Return coordinates of the items of sets, (b, n, size), and inner products beyond them.

        Both are negated if the worst was chosen.
        """
        n_users, n_rows = len(members), members.shape[1] * members.shape[2]
        features = self.items[members].reshape(n_users, n_rows, -1)
        rows = np.asarray(
            features if self.is_ready else self.design.rows(features), dtype=np.float64
        )
        times = np.broadcast_to(sign, members.shape).reshape(n_users, n_rows).copy()
        times[members.reshape(n_users, n_rows) == _OUTSIDE] = 0.0
        beyond = self.design.products_beyond(features, rows)
        if (times != 1.0).any():
            rows *= times[..., None]
            beyond = None if beyond is None else beyond * times[:, :, None] * times[:, None, :]
        return rows, beyond


def _thirds(set_size: int) -> list[int]:
    return [set_size, 2 * set_size]


class _ChoiceRows(NamedTuple):
    """Rows of each set, the chosen one first; the weights of rows and sets; the users."""

    members: Index
    counts: Float
    weight: Float
    users: Index
    sign: Float


def _sets(annotations: Annotations, together: Index | None = None) -> _ChoiceRows:
    """Return the sets of rows with equal ``together``, which is -1 for rows to leave out."""
    weight = np.ones(len(annotations))
    if annotations.weights is not None:
        weight[:] = annotations.weights
    together = _shown_together(annotations) if together is None else together
    chosen = annotations.chosen
    counted = (weight > 0) & (together >= 0)
    positives: Index = np.flatnonzero(chosen & counted)
    negatives: Index = np.flatnonzero(~chosen & counted)
    negatives = negatives[np.argsort(together[negatives], kind="stable")]
    # The first and the last negative of each positive.
    begin = np.searchsorted(together[negatives], together[positives], "left")
    end = np.searchsorted(together[negatives], together[positives], "right")
    kept = end > begin  # a choice among one item has no information
    positives, begin, end = positives[kept], begin[kept], end[kept]
    place = begin[:, None] + np.arange((end - begin).max(initial=0))
    inside = place < end[:, None]
    members = np.empty((len(positives), 1 + place.shape[1]), dtype=np.intp)
    members[:, 0] = positives
    if len(positives):
        members[:, 1:] = negatives[np.where(inside, place, begin[:, None])]
    each = weight[members[:, 1:]]
    groups = annotations.choice_set_codes
    if groups is not None and together is not annotations.user_codes:
        n_chosen, _ = classes_by_set(groups, annotations)
        is_set = (n_chosen == 1) & counted_alike(groups, annotations)
        each = np.where(is_set[groups[positives]][:, None], 1.0, each)
    counts = np.column_stack([np.ones(len(positives)), np.where(inside, each, 0.0)])
    users = annotations.user_codes[positives]
    sign = np.ones(len(positives))
    if annotations.picks_worst is not None:
        sign[annotations.picks_worst[positives]] = -1.0
    return _ChoiceRows(members, counts, weight[positives], users, sign)


def _with_single(annotations: Annotations) -> _ChoiceRows:
    """Return the choice sets, and a set of an item and none for each row that is alone."""
    groups = annotations.choice_set_codes
    alone = np.ones(len(annotations), dtype=np.bool_)
    if groups is not None:
        alone = np.bincount(groups)[groups] == 1
    together = np.full(len(annotations), -1) if groups is None else np.where(alone, -1, groups)
    among = _sets(annotations, together)
    weight = np.ones(len(annotations)) if annotations.weights is None else annotations.weights
    rows = np.flatnonzero(alone & (weight > 0))
    yes = annotations.labels[rows]
    (n_sets, set_size), n_all = among.members.shape, len(among.members) + len(rows)
    members = np.full((n_all, max(2, set_size)), _OUTSIDE, dtype=np.intp)
    counts = np.zeros(members.shape)
    members[:n_sets, :set_size], counts[:n_sets, :set_size] = among.members, among.counts
    members[n_sets:, 0] = np.where(yes, rows, _OUTSIDE)
    members[n_sets:, 1] = np.where(yes, _OUTSIDE, rows)
    counts[n_sets:, :2] = 1.0
    return _ChoiceRows(
        members,
        counts,
        np.concatenate([among.weight, weight[rows]]),
        np.concatenate([among.users, annotations.user_codes[rows]]),
        np.concatenate([among.sign, np.ones(len(rows))]),
    )
