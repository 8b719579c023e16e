"""What all people of a crowd say together: sums over shards, before anything is learned."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import iadd

import numpy as np

from likeminds._util.array_types import Bool, Float, IdArray, Index
from likeminds.cluster.label_table import LabelTable
from likeminds.data.annotations import Annotations
from likeminds.data.coded_labels import are_choices
from likeminds.data.identifiers import encode
from likeminds.losses.rows import class_weight_of, has_both_classes
from likeminds.losses.statistics import Statistics
from likeminds.mixed_model.choice_responses import are_mixed
from likeminds.mixed_model.design import labels_of_rows
from likeminds.mixed_model.grade_scale import GradeCounts
from likeminds.mixed_model.item_effects.item_responses import labelled_by
from likeminds.mixed_model.losses import ChoiceLoss, LogisticLoss, MixedLoss

_SINGLE, _OTHER = "single", "other"


@dataclass(frozen=True)
class ShardCounts:
    """What one shard says.

    Attributes
    ----------
    user_ids : array of shape (b,)
        Its people.
    has_pairs : array of shape (b,)
        Who has labels of both classes.
    n_labels, n_positive : int
        Labels, and positive ones.
    counted : (float, float)
        The weight of negative and positive labels.
    by_item : array of shape (n_items,)
        The weight of each item's labels.
    judged : array of shape (n_items,)
        People who judged each item, two standing for more.
    kind : str
        How labels were asked for.
    grades : GradeCounts, optional
        How grades were given, where labels are such.
    """

    user_ids: IdArray
    has_pairs: Bool
    n_labels: int
    n_positive: int
    counted: Float
    by_item: Float
    judged: Index
    kind: str
    grades: GradeCounts | None


@dataclass(frozen=True)
class GlobalCounts:
    """What all shards say: ids are in the order in which `Annotations` would have them.

    Attributes
    ----------
    user_ids, has_pairs, n_labels, n_positive, counted, by_item
        As in `ShardCounts`.
    places : list of arrays
        The positions of each shard's people among all people.
    is_shared : bool
        Whether any item was judged by two people.
    loss : str
        The loss that suits how labels were asked for.
    grades : GradeCounts, optional
        How grades were given, where labels are such.
    """

    user_ids: IdArray
    has_pairs: Bool
    n_labels: int
    n_positive: int
    counted: Float
    by_item: Float
    places: list[Index]
    is_shared: bool
    loss: str
    grades: GradeCounts | None = None


def count(said: Annotations | None) -> ShardCounts | None:
    """Return what a shard says; None if nobody is in it."""
    if said is None:
        return None
    weight = class_weight_of(said)
    return ShardCounts(
        said.user_ids,
        has_both_classes(weight),
        len(said),
        int(said.labels.sum()),
        weight.sum(axis=0),
        labels_of_rows(said),
        labelled_by(said),
        _kind(said),
        None if said.grades is None else GradeCounts.of(said.grades, said.user_codes),
    )


def count_statistics(found: Statistics | None, labels: LabelTable) -> ShardCounts | None:
    """Return what a shard's statistics say; of how many labels and items, they know nothing."""
    if found is None:
        return None
    weight, nothing = found.class_weight.sum(axis=0), np.zeros(0)
    if found.grades is not None:
        yes = labels.are_positive(found.grades)
        weight = np.array([weight[~yes].sum(), weight[yes].sum()])
    said = (0, 0, weight, nothing, nothing.astype(np.intp), LogisticLoss.name, None)
    return ShardCounts(found.user_ids, found.has_pairs, *said)


def joint_census(counts: Sequence[ShardCounts]) -> GlobalCounts:
    """Add up what shards say."""
    codes, user_ids = encode(np.concatenate([one.user_ids for one in counts]), "users")
    ends = np.cumsum([len(one.user_ids) for one in counts])
    has_pairs = np.zeros(len(user_ids), dtype=np.bool_)
    has_pairs[codes] = np.concatenate([one.has_pairs for one in counts])
    judged = reduce(iadd, (one.judged.copy() for one in counts))
    places = np.split(codes, ends[:-1])
    grades = [one.grades for one in counts if one.grades is not None]
    return GlobalCounts(
        user_ids,
        has_pairs,
        sum(one.n_labels for one in counts),
        sum(one.n_positive for one in counts),
        reduce(iadd, (one.counted.copy() for one in counts)),
        reduce(iadd, (one.by_item.copy() for one in counts)),
        places,
        bool((judged > 1).any()),
        _loss_of({one.kind for one in counts}),
        GradeCounts.joined(grades, places) if grades else None,
    )


def _kind(said: Annotations) -> str:
    if said.choice_set_codes is None:
        return LogisticLoss.name
    if are_choices(said):
        return ChoiceLoss.name
    if are_mixed(said):
        return MixedLoss.name
    return _SINGLE if np.bincount(said.choice_set_codes).max() == 1 else _OTHER


def _loss_of(kinds: set[str]) -> str:
    """Return the loss for all shards together: see `choose_loss`."""
    if kinds == {ChoiceLoss.name}:
        return ChoiceLoss.name
    some_are_sets = kinds & {ChoiceLoss.name, MixedLoss.name}
    if some_are_sets and kinds <= {ChoiceLoss.name, MixedLoss.name, _SINGLE}:
        return MixedLoss.name
    return LogisticLoss.name
