"""Counts of labels in several parts, and the table of items that their rows share."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from likeminds._util.array_types import Bool, Float, FloatArray, IdArray, Index
from likeminds.data.annotations import Annotations
from likeminds.data.coded_labels import are_choices
from likeminds.data.covariates import Covariates
from likeminds.data.identifiers import encode
from likeminds.data.label_parsing import LabelReading
from likeminds.losses.rows import class_weight_of, has_both_classes
from likeminds.mixed_model.choice_responses import are_mixed
from likeminds.mixed_model.design import labels_of_rows
from likeminds.mixed_model.item_effects.item_responses import labelled_by
from likeminds.mixed_model.losses import ChoiceLoss, LogisticLoss, MixedLoss
from likeminds.mixed_model.ordinal import GradeCounts

_SINGLE, _OTHER = "single", "other"


@dataclass(frozen=True)
class PartCounts:
    """Counts of the labels of some users."""

    user_ids: IdArray
    has_pairs: Bool  # who has labels of both classes
    n_labels: int
    n_positive: int
    class_weight: Float  # of negative and positive labels, (2,)
    row_weight: Float  # of the labels of each row of the table of features
    labelled_by: Index  # how many users labelled each item, two standing for more
    kind: str  # how labels were asked for
    grades: GradeCounts | None  # how grades were given, where labels are grades

    @classmethod
    def of(cls, annotations: Annotations) -> "PartCounts":
        """Count labels."""
        weight, grades = class_weight_of(annotations), annotations.grades
        return cls(
            annotations.user_ids,
            has_both_classes(weight),
            len(annotations),
            int(annotations.labels.sum()),
            weight.sum(axis=0),
            labels_of_rows(annotations),
            labelled_by(annotations),
            _kind(annotations),
            None if grades is None else GradeCounts.of(grades, annotations.user_codes),
        )


@dataclass(frozen=True)
class LabelCounts:
    """Counts of the labels of all users: see `PartCounts`.

    Ids of users are in the order that `Annotations` give them.
    """

    user_ids: IdArray
    has_pairs: Bool
    n_labels: int
    n_positive: int
    class_weight: Float
    row_weight: Float
    labelled_by: Index
    places: Sequence[Index]  # of each part's users among all users
    loss: str  # the loss that suits how labels were asked for
    has_sets: bool = False  # whether labels have choice sets
    grades: GradeCounts | None = None

    @classmethod
    def of(cls, parts: Sequence[PartCounts]) -> "LabelCounts":
        """Add up the counts of parts."""
        codes: Index = np.arange(len(parts[0].user_ids))
        user_ids = parts[0].user_ids
        if len(parts) > 1:
            codes, user_ids = encode(np.concatenate([one.user_ids for one in parts]), "users")
        ends = np.cumsum([len(one.user_ids) for one in parts])
        has_pairs = np.zeros(len(user_ids), dtype=np.bool_)
        has_pairs[codes] = np.concatenate([one.has_pairs for one in parts])
        places = np.split(codes, ends[:-1])
        grades = [one.grades for one in parts if one.grades is not None]
        return cls(
            user_ids,
            has_pairs,
            sum(one.n_labels for one in parts),
            sum(one.n_positive for one in parts),
            np.sum([one.class_weight for one in parts], axis=0),
            np.sum([one.row_weight for one in parts], axis=0),
            np.sum([one.labelled_by for one in parts], axis=0),
            places,
            _loss_of({one.kind for one in parts}),
            any(one.kind != LogisticLoss.name for one in parts),
            GradeCounts.joined(grades, places) if grades else None,
        )


def _kind(annotations: Annotations) -> str:
    if annotations.choice_set_codes is None:
        return LogisticLoss.name
    if are_choices(annotations):
        return ChoiceLoss.name
    if are_mixed(annotations):
        return MixedLoss.name
    return _SINGLE if np.bincount(annotations.choice_set_codes).max() == 1 else _OTHER


def _loss_of(kinds: set[str]) -> str:
    """Return the loss for all parts together: see `choose_loss`."""
    if kinds == {ChoiceLoss.name}:
        return ChoiceLoss.name
    some_are_sets = kinds & {ChoiceLoss.name, MixedLoss.name}
    if some_are_sets and kinds <= {ChoiceLoss.name, MixedLoss.name, _SINGLE}:
        return MixedLoss.name
    return LogisticLoss.name


@dataclass(frozen=True)
class SharedTable:
    """What the rows of all parts have in common, and which does not travel with them."""

    features: FloatArray
    item_ids: IdArray
    feature_names: tuple[str, ...]
    has_items: bool
    per_item: bool
    reading: LabelReading | None
    user_features: Covariates | None

    @classmethod
    def of(cls, rows: Annotations) -> "SharedTable":
        """Return the table of annotations."""
        return cls(
            rows.features,
            rows.item_ids,
            rows.feature_names,
            rows.has_items,
            rows.features_per == "item",
            rows.reading,
            rows.user_features,
        )

    @staticmethod
    def without(rows: Annotations) -> Annotations:
        """Return rows as they travel."""
        return rows._with(
            features=rows.features[:0], item_ids=rows.item_ids[:0], user_features=None
        )

    def joined(self, pieces: Sequence[Annotations]) -> Annotations:
        """Put rows of several parts together, with the table."""
        first = pieces[0]
        changes: dict[str, object] = {
            "features": self.features,
            "item_ids": self.item_ids,
            "reading": self.reading,
            "user_features": self.user_features,
        }
        if len(pieces) > 1:
            codes, user_ids = encode(np.concatenate([one.users for one in pieces]), "users")
            changes |= {"user_codes": codes, "user_ids": user_ids}
            for name in ("item_codes", "feature_rows", "labels", "weights", "grades"):
                if getattr(first, name) is not None:
                    changes[name] = np.concatenate([getattr(one, name) for one in pieces])
            sets = [one.choice_set_codes for one in pieces if one.choice_set_codes is not None]
            if sets:
                starts = np.cumsum([0, *(int(one.max()) + 1 for one in sets)])
                moved = [one + start for one, start in zip(sets, starts, strict=False)]
                changes |= {"choice_set_codes": np.concatenate(moved), "choice_set_ids": None}
        return first._with(**changes)
