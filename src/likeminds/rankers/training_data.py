"""What a prior is learned from: rows of users in blocks, and what these add up to.

A fit asks for counts, for the rows of some users, and for responses in blocks. Each is a map over
the blocks of an executor, whether the only block is in this process or many are on a cluster.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import numpy as np

from likeminds._util.array_types import Bool, Float, FloatArray, IdArray, Index
from likeminds._util.map_reduce import Executor, UserBlock
from likeminds._util.per_user_arrays import drawn, of_users
from likeminds.data.annotations import Annotations
from likeminds.data.coded_labels import are_choices
from likeminds.data.covariates import Covariates
from likeminds.data.identifiers import encode, lookup
from likeminds.data.label_parsing import LabelReading
from likeminds.losses.rows import Rows, class_weight_of, has_both_classes
from likeminds.mixed_model.choice_responses import ChoiceBlocks, are_mixed
from likeminds.mixed_model.design import Design, labels_of_rows
from likeminds.mixed_model.grade_scale import GradeCounts
from likeminds.mixed_model.item_effects.feature_regression import features_of_items
from likeminds.mixed_model.item_effects.item_responses import ItemEffects, ItemRows, labelled_by
from likeminds.mixed_model.item_posteriors import ItemPosteriors
from likeminds.mixed_model.likelihoods import Likelihood
from likeminds.mixed_model.losses import (
    ALL_LOSSES,
    ChoiceLoss,
    GradedLoss,
    LogisticLoss,
    MixedLoss,
    PriorLoss,
)
from likeminds.mixed_model.optimisers import PriorFit
from likeminds.mixed_model.responses import (
    AucResponses,
    InMemoryResponses,
    LabelResponses,
    Responses,
)
from likeminds.rankers.ranker import Ranker
from likeminds.rankers.training_checks import warn_of_one_class

_SINGLE, _OTHER = "single", "other"


@dataclass(frozen=True)
class ScoredLabels:
    """Some labels, with the scores of a ranker from the common zero of all users.

    ``people`` are the positions of their users among all users.
    """

    said: Annotations
    scores: Float
    variances: Float
    people: Index


@dataclass(frozen=True)
class PartCounts:
    """Counts of the labels of some users.

    Attributes
    ----------
    user_ids, has_pairs : arrays of shape (b,)
        The users, and who has labels of both classes.
    n_labels, n_positive : int
        Labels, and positive ones.
    class_weight : array of shape (2,)
        The weight of negative and positive labels.
    row_weight : array of shape (n_rows,)
        The weight of the labels of each row of the table of features.
    labelled_by : array of shape (n_items,)
        How many users labelled each item, two standing for more.
    kind : str
        How labels were asked for.
    grades : GradeCounts or None
        How grades were given, where labels are grades.
    """

    user_ids: IdArray
    has_pairs: Bool
    n_labels: int
    n_positive: int
    class_weight: Float
    row_weight: Float
    labelled_by: Index
    kind: str
    grades: GradeCounts | None

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
    """Counts of the labels of all users, whose ids are in the order that `Annotations` give them.

    ``places`` are the positions of each part's users among all users; ``loss`` is the name of the
    loss that suits how labels were asked for; ``has_sets``: they have choice sets. All else is as
    in `PartCounts`.
    """

    user_ids: IdArray
    has_pairs: Bool
    n_labels: int
    n_positive: int
    class_weight: Float
    row_weight: Float
    labelled_by: Index
    places: Sequence[Index]
    loss: str
    has_sets: bool = False
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


@dataclass(frozen=True)
class DataSummary:
    """What is known of everybody's labels before anything is learned."""

    user_ids: IdArray
    item_ids: IdArray
    user_features: Covariates | None
    n_features: int
    n_labels: int
    positive_share: float
    has_grades: bool


@dataclass(frozen=True)
class ResponseSettings:
    """How responses are made of rows: see `TrainingData.tasks`."""

    loss: PriorLoss
    likelihood: Likelihood
    coordinates: Design
    items: bool


# Finds posteriors where users are: see `TrainingData.settled_there`.
Settle = Callable[[Ranker, Responses, PriorFit], ScoredLabels | None]


class TrainingData:
    """Everybody's labels in blocks of users, as a fit asks for them.

    Parameters
    ----------
    rows : Executor of UserBlock of Annotations
        The labels.
    table : SharedTable
        What they have in common.
    counts : LabelCounts
        Their counts.
    settle : callable, optional
        Finds posteriors that stay where users are.
    can_collect : bool
        Whether all rows may be brought into this process.
    """

    def __init__(
        self,
        rows: Executor[UserBlock[Annotations]],
        table: SharedTable,
        counts: LabelCounts,
        *,
        settle: Settle | None = None,
        can_collect: bool = True,
    ) -> None:
        self.rows, self.table, self.counts = rows, table, counts
        self._settle, self._can_collect = settle, can_collect
        self._scored: ScoredLabels | None = None
        self.about = DataSummary(
            counts.user_ids,
            table.item_ids,
            table.user_features,
            len(table.feature_names),
            counts.n_labels,
            counts.n_positive / counts.n_labels,
            counts.grades is not None,
        )

    @classmethod
    def of(cls, annotations: Annotations) -> "TrainingData":
        """Take labels in this process, as one block."""
        counts = LabelCounts.of([PartCounts.of(annotations)])
        return cls(UserBlock.of_all(annotations), SharedTable.of(annotations), counts)

    @property
    def is_shared(self) -> bool:
        """Whether items can have effects: two users labelled one, or choices have no features."""
        if not self.table.has_items:
            return False
        if self.counts.has_sets and not self.about.n_features:
            return True
        return bool((self.counts.labelled_by > 1).any())

    @property
    def n_directions(self) -> int:
        """In how many directions labelled items can differ."""
        return min(self.about.n_features, int((self.counts.row_weight > 0).sum()))

    def loss(self, asked: str | PriorLoss) -> PriorLoss:
        """Return the loss that is asked for, or that suits how labels were asked for."""
        name = self.counts.loss if asked == "auto" else asked
        return ALL_LOSSES[name] if isinstance(name, str) else name

    def refuse_one_class(self, *, teaches: bool) -> None:
        """Refuse labels that are all alike; name the users whose are, unless that ``teaches``."""
        counts = self.counts
        if not counts.class_weight.all():
            if counts.grades is not None and len(counts.grades.values) == 1:
                raise ValueError(
                    "All grades are the same, so there is nothing to rank by: a ranker needs at "
                    "least two different ones."
                )
            raise ValueError(
                "Everybody's labels are of one class, so there is nothing to rank by: a ranker "
                "needs positive and negative labels."
            )
        if not teaches:
            warn_of_one_class(counts.user_ids, counts.has_pairs)

    def coordinates(
        self, *, standardize: bool, intercept: bool, every: bool, most: int | None
    ) -> Design:
        """Return the coordinates of the labelled items, ``most`` leading directions at most."""
        if every:
            self._refuse_to_collect()
        return Design.of_table(
            self.table.features,
            self.counts.row_weight,
            standardize=standardize,
            intercept=intercept,
            every=every,
            most=most,
        )

    def first_likelihood(self, loss: PriorLoss) -> Likelihood:
        """Return the likelihood that learning starts from."""
        if isinstance(loss, GradedLoss):
            return loss.first_given(self.grades_given(loss.name))
        return loss.likelihood

    def tasks(
        self, loss: PriorLoss, likelihood: Likelihood, coordinates: Design, *, items: bool
    ) -> Responses:
        """Return responses in blocks; with ``items``, these have effects of their own."""
        how = ResponseSettings(loss, likelihood, coordinates, items)
        made = self.rows.derive(make_responses, how, here=partial(self._responses_here, how))
        found = cast(Responses, made)
        if items:
            return ItemEffects.of(found, ItemPosteriors.unknown(self.table.item_ids))
        return found

    def _responses_here(self, how: ResponseSettings, people: Index) -> InMemoryResponses:
        rows = self.rows_of(people)
        positions = lookup(rows.user_ids, self.about.user_ids, "users")
        return make_responses(UserBlock(positions, rows), how)

    def rows_of(self, people: Index) -> Annotations:
        """Return the labels of some users, by their positions, in this process."""
        return self._joined(self.rows.map(_rows_of, people))

    def some_rows(self, share: float) -> Annotations:
        """Return about this share of all labels, in this process."""
        return self._joined(self.rows.map(_some_rows, share))

    def all_rows(self) -> Annotations:
        """Return everybody's labels, in this process."""
        self._refuse_to_collect()
        return self.rows_of(np.arange(len(self.about.user_ids)))

    def _joined(self, pieces: Iterable[Annotations | None]) -> Annotations:
        some = [one for one in pieces if one is not None]
        return self.table.joined(some) if some else self.all_rows()

    def _refuse_to_collect(self) -> None:
        if not self._can_collect:
            raise ValueError(
                f"With {self.n_directions} features, the prior is learned in the space of rows, "
                "which is not done on a cluster: reduce the features (likeminds.features.Reduce), "
                "or ask for wide=False."
            )

    def grades_given(self, loss: str = "auto") -> GradeCounts:
        """Return how often grades were given, and how everybody spreads theirs."""
        if self.counts.grades is None:
            raise ValueError(
                f'loss="{loss}" learns from grades, but these labels are yes or no: pass '
                "grades=True where they are read, if they are grades."
            )
        return self.counts.grades

    def item_features(self) -> FloatArray | None:
        """Return the features of all items with labels, if these are the items' own."""
        if self.table.per_item:
            return np.asarray(self.table.features[self.counts.labelled_by > 0])
        return features_of_items(self.all_rows())

    def settled_there(self, ranker: Ranker, tasks: Responses, learned: PriorFit) -> bool:
        """Give a ranker posteriors that stay where users are; return whether that was asked for."""
        if self._settle is None:
            return False
        self._scored = self._settle(ranker, tasks, learned)
        return True

    def scored_there(self) -> ScoredLabels | None:
        """Return the scores of some labels, of users whose posteriors stay where they are."""
        return self._scored


def _positions(block: UserBlock[Annotations]) -> Index:
    return np.arange(block.data.n_users) if isinstance(block.people, slice) else block.people


def _rows_of(block: UserBlock[Annotations], wanted: Index, own: None) -> Annotations | None:  # noqa: ARG001
    chosen = np.isin(_positions(block), wanted)
    return SharedTable.without(block.data[chosen[block.data.user_codes]]) if chosen.any() else None


def _some_rows(block: UserBlock[Annotations], share: float, own: None) -> Annotations | None:  # noqa: ARG001
    some = rows_by_lot(block.data, share, _positions(block))
    return None if some is None else SharedTable.without(some)


def rows_by_lot(annotations: Annotations, share: float, positions: Index) -> Annotations | None:
    """Draw about a share of labels; ``positions`` are those of their users among all users."""
    chosen = drawn(share, positions[annotations.user_codes], annotations.feature_rows)
    return annotations[chosen] if chosen.any() else None


def make_responses(block: UserBlock[Annotations], how: ResponseSettings) -> InMemoryResponses:
    """Return the responses of a block of users, with their positions among all users."""
    people = block.people
    likelihood = how.likelihood if isinstance(people, slice) else of_users(how.likelihood, people)
    prepared = how.loss.prepare(block.data, likelihood)
    made = cast(InMemoryResponses, how.loss.tasks(prepared, how.coordinates, items=how.items))
    return made if isinstance(people, slice) else _renumbered(made, people)


def people_in(responses: InMemoryResponses) -> Index:
    """Return the positions of the users of responses."""
    labels = responses.labels if isinstance(responses, AucResponses | ItemRows) else responses
    assert isinstance(labels, LabelResponses | ChoiceBlocks)
    return labels.people


def _renumbered(responses: InMemoryResponses, positions: Index) -> InMemoryResponses:
    """Return responses whose users have other positions."""
    if isinstance(responses, AucResponses | ItemRows):
        labels = _renumbered(responses.labels, positions)
        return replace(responses, labels=labels)  # type: ignore[arg-type]
    if isinstance(responses, ChoiceBlocks):
        sets = responses.sets
        return replace(responses, sets=replace(sets, people=positions[sets.people]))
    assert isinstance(responses, LabelResponses)
    rows: Rows = responses.rows
    return replace(responses, rows=replace(rows, people=positions[rows.people]))
