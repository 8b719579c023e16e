"""Training data of a prior: blocks of users' rows, their counts, and the shared items.

Counts, rows and responses are maps over the blocks of an executor, with one block in this process
or many on a cluster.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np

from likeminds._util.array_types import Bool, Float, FloatArray, IdArray, Index
from likeminds._util.map_reduce import Executor, UserBlock
from likeminds._util.per_user_arrays import drawn, of_users
from likeminds.data.annotations import Annotations
from likeminds.data.coded_labels import are_choices
from likeminds.data.covariates import Covariates
from likeminds.data.identifiers import encode, lookup
from likeminds.data.joining import joined_marks
from likeminds.data.label_parsing import LabelReading
from likeminds.losses.rows import class_weight_of, has_both_classes
from likeminds.mixed_model.design import Design, labels_of_rows
from likeminds.mixed_model.gaussian_prior import ItemPosteriors
from likeminds.mixed_model.item_effects.feature_regression import features_of_items
from likeminds.mixed_model.item_effects.item_responses import ItemEffects, ItemRows, labelled_by
from likeminds.mixed_model.likelihoods import Likelihood
from likeminds.mixed_model.losses import (
    ALL_LOSSES,
    ChoiceLoss,
    GradedLoss,
    LogisticLoss,
    MixedLoss,
    PriorLoss,
    are_mixed,
    tie_weights,
)
from likeminds.mixed_model.optimisers import PriorFit
from likeminds.mixed_model.ordinal import GradeCounts
from likeminds.mixed_model.responses import (
    AucResponses,
    InMemoryResponses,
    ItemTableResponses,
    Responses,
)
from likeminds.rankers.ranker import Ranker
from likeminds.rankers.training_checks import warn_of_one_class

if TYPE_CHECKING:
    from likeminds.rankers.prior_ranker import PriorRanker

# Kinds of choice sets, in addition to those of losses: single rows, and other sets.
_SINGLE, _OTHER = "single", "other"
# The most labels, and most feature values, for calibration.
_MOST_ROWS, _MOST_NUMBERS = 20_000, 8_000_000


@dataclass(frozen=True)
class LabelCounts:
    """Counts of the labels of all users, or of a part of the data."""

    user_ids: IdArray
    has_pairs: Bool  # whether users have labels of both classes
    n_labels: int
    n_positive: int
    class_weight: Float  # of negative and positive labels, (2,)
    row_weight: Float  # of the labels of each row of the table of features
    labelled_by: Index  # the number of users who labelled each item, at most 2
    kinds: frozenset[str]  # kinds of choice sets, or the loss of single labels
    ties: Float  # (3,), see `losses.tie_weights`
    grades: GradeCounts | None
    places: Sequence[Index] = ()  # of each part's users among all users

    @classmethod
    def of(cls, annotations: Annotations) -> "LabelCounts":
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
            frozenset({_kind(annotations)}),
            tie_weights(annotations),
            None if grades is None else GradeCounts.of(grades, annotations.user_codes),
        )

    @classmethod
    def joined(cls, parts: Sequence["LabelCounts"]) -> "LabelCounts":
        """Add up the counts of parts; user ids are in the order of `Annotations`."""
        codes, user_ids = encode(np.concatenate([one.user_ids for one in parts]), "users")
        has_pairs = np.zeros(len(user_ids), dtype=np.bool_)
        has_pairs[codes] = np.concatenate([one.has_pairs for one in parts])
        places = np.split(codes, np.cumsum([len(one.user_ids) for one in parts])[:-1])
        grades = [one.grades for one in parts if one.grades is not None]
        return cls(
            user_ids,
            has_pairs,
            sum(one.n_labels for one in parts),
            sum(one.n_positive for one in parts),
            np.sum([one.class_weight for one in parts], axis=0),
            np.sum([one.row_weight for one in parts], axis=0),
            np.sum([one.labelled_by for one in parts], axis=0),
            frozenset().union(*(one.kinds for one in parts)),
            np.sum([one.ties for one in parts], axis=0),
            GradeCounts.joined(grades, places) if grades else None,
            places,
        )

    @property
    def loss(self) -> str:
        """The name of the loss for all labels."""
        if self.kinds == {ChoiceLoss.name}:
            return ChoiceLoss.name
        some_are_sets = self.kinds & {ChoiceLoss.name, MixedLoss.name}
        if some_are_sets and self.kinds <= {ChoiceLoss.name, MixedLoss.name, _SINGLE}:
            return MixedLoss.name
        return LogisticLoss.name


def _kind(annotations: Annotations) -> str:
    if annotations.choice_set_codes is None:
        return LogisticLoss.name
    if are_choices(annotations):
        return ChoiceLoss.name
    if are_mixed(annotations):
        return MixedLoss.name
    return _SINGLE if np.bincount(annotations.choice_set_codes).max() == 1 else _OTHER


@dataclass(frozen=True)
class SharedTable:
    """Items, features and covariates of all parts, sent only once."""

    features: FloatArray
    item_ids: IdArray
    feature_names: tuple[str, ...]
    has_items: bool
    per_item: bool
    reading: LabelReading | None
    user_features: Covariates | None

    @property
    def n_features(self) -> int:
        """The number of features."""
        return len(self.feature_names)

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
        """Return rows without the table, for sending."""
        return rows._with(
            features=rows.features[:0], item_ids=rows.item_ids[:0], user_features=None
        )

    def joined(self, pieces: Sequence[Annotations]) -> Annotations:
        """Join rows of several parts, with the table."""
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
            changes |= {name: joined_marks(pieces, name) for name in ("picks_worst", "tied")}
            sets = [one.choice_set_codes for one in pieces if one.choice_set_codes is not None]
            if sets:
                starts = np.cumsum([0, *(int(one.max()) + 1 for one in sets)])
                moved = [one + start for one, start in zip(sets, starts, strict=False)]
                changes |= {"choice_set_codes": np.concatenate(moved), "choice_set_ids": None}
        return first._with(**changes)


@dataclass(frozen=True)
class ScoredLabels:
    """Some labels, with a ranker's scores, their variances, and users' positions."""

    annotations: Annotations
    scores: Float
    variances: Float
    users: Index

    @classmethod
    def of(cls, ranker: "PriorRanker", annotations: Annotations) -> "ScoredLabels":
        """Score labels of users in training."""
        users = lookup(annotations.user_ids, ranker.users_, "users")[annotations.user_codes]
        posterior, places = ranker._posterior_of(users)
        items = annotations.items if annotations.has_items else None
        rows = posterior.prediction_rows(annotations.X, items)
        return cls(annotations, *posterior.linear_predictor(rows, places), users)


@dataclass(frozen=True)
class ResponseSettings:
    """Settings of `TrainingData.responses`."""

    loss: PriorLoss
    likelihood: Likelihood
    coordinates: Design
    items: bool


@dataclass(eq=False)
class TrainingData:
    """All labels in blocks of users, and scores of a sample."""

    rows: Executor[UserBlock[Annotations]]
    table: SharedTable
    counts: LabelCounts
    _: KW_ONLY
    # Computes posteriors that stay in the blocks.
    posteriors_in_place: Callable[[Ranker, Responses, PriorFit], ScoredLabels | None] | None = None
    can_collect: bool = True  # whether all rows may be brought into this process
    scored: ScoredLabels | None = None

    @classmethod
    def of(cls, annotations: Annotations) -> "TrainingData":
        """Return the training data of labels in this process, as one block."""
        table, counts = SharedTable.of(annotations), LabelCounts.of(annotations)
        return cls(UserBlock.of_all(annotations), table, counts)

    @property
    def is_shared(self) -> bool:
        """Whether items can have effects: several users label one, or choices lack features."""
        if not self.table.has_items:
            return False
        if self.counts.kinds != {LogisticLoss.name} and not self.table.n_features:
            return True
        return bool((self.counts.labelled_by > 1).any())

    @property
    def n_directions(self) -> int:
        """The most directions in which labelled items can differ."""
        return min(self.table.n_features, int((self.counts.row_weight > 0).sum()))

    def loss(self, requested: str | PriorLoss) -> PriorLoss:
        """Return the requested loss; for "auto", the loss for these labels."""
        name = self.counts.loss if requested == "auto" else requested
        return ALL_LOSSES[name] if isinstance(name, str) else name

    def refuse_one_class(self, *, informs: bool) -> None:
        """Raise if all labels are of one class; warn of such users, unless this ``informs``."""
        counts = self.counts
        if not counts.class_weight.all():
            found, needed = "All labels are of one class", "positive and negative labels"
            if counts.grades is not None and len(counts.grades.values) == 1:
                found, needed = "All grades are the same", "at least two different grades"
            raise ValueError(f"{found}, so a ranking cannot be learned: a ranker needs {needed}.")
        if not informs:
            warn_of_one_class(counts.user_ids, counts.has_pairs)

    def coordinates(
        self, *, standardize: bool, intercept: bool, every: bool, most: int | None
    ) -> Design:
        """Return the coordinates of labelled items, with at most ``most`` leading directions."""
        if every:
            self._refuse_to_collect()
        table, weight = self.table.features, self.counts.row_weight
        return Design.of_table(
            table, weight, standardize=standardize, intercept=intercept, every=every, most=most
        )

    def first_likelihood(self, loss: PriorLoss) -> Likelihood:
        """Return the initial likelihood."""
        if not isinstance(loss, GradedLoss):
            return loss.first_of_ties(self.counts.ties)
        if self.counts.grades is None:
            raise ValueError(
                f'loss="{loss.name}" needs grades, but these labels are yes or no. If they are '
                "grades, read them with grades=True."
            )
        return loss.graded.given(self.counts.grades)

    def responses(
        self, loss: PriorLoss, likelihood: Likelihood, coordinates: Design, *, items: bool
    ) -> Responses:
        """Return responses in blocks, with item effects if ``items``."""
        how = ResponseSettings(loss, likelihood, coordinates, items)
        here = partial(self._responses_here, how)
        found = cast(Responses, self.rows.derive(make_responses, how, here=here))
        unknown = ItemPosteriors.unknown(self.table.item_ids)
        return ItemEffects.of(found, unknown) if items else found

    def _responses_here(self, how: ResponseSettings, users: Index) -> InMemoryResponses:
        rows = self.rows_of(users)
        positions = lookup(rows.user_ids, self.counts.user_ids, "users")
        return make_responses(UserBlock(positions, rows), how)

    def rows_of(self, users: Index) -> Annotations:
        """Return the labels of some users, by their positions, in this process."""
        return self._joined(self.rows.map(_rows_of, users))

    def sample_rows(self, share: float) -> Annotations:
        """Return about this share of all labels, in this process."""
        return self._joined(self.rows.map(_sample_rows, share))

    def all_rows(self) -> Annotations:
        """Return all labels, in this process."""
        self._refuse_to_collect()
        return self.rows_of(np.arange(len(self.counts.user_ids)))

    def _joined(self, pieces: Iterable[Annotations | None]) -> Annotations:
        some = [one for one in pieces if one is not None]
        return self.table.joined(some) if some else self.all_rows()

    def _refuse_to_collect(self) -> None:
        if not self.can_collect:
            raise ValueError(
                f"With {self.n_directions} features, the prior is learned in the space of rows, "
                "which is not possible on a cluster. Reduce the features "
                "(likeminds.features.Reduce), or set wide=False."
            )

    def item_features(self) -> FloatArray | None:
        """Return the features of all labelled items; None if rows of an item differ."""
        if self.table.per_item:
            return np.asarray(self.table.features[self.counts.labelled_by > 0])
        return features_of_items(self.all_rows())

    def scored_by(self, ranker: "PriorRanker") -> ScoredLabels:
        """Return a sample of labels with the scores of a fitted ranker."""
        if self.scored is None:
            share = scored_share(self.table.n_features, self.counts.n_labels)
            self.scored = ScoredLabels.of(ranker, self.sample_rows(share))
        return self.scored


def _positions(block: UserBlock[Annotations]) -> Index:
    return np.arange(block.data.n_users) if isinstance(block.users, slice) else block.users


def _rows_of(block: UserBlock[Annotations], users: Index, own: None) -> Annotations | None:  # noqa: ARG001
    chosen = np.isin(_positions(block), users)
    return SharedTable.without(block.data[chosen[block.data.user_codes]]) if chosen.any() else None


def _sample_rows(block: UserBlock[Annotations], share: float, own: None) -> Annotations | None:  # noqa: ARG001
    some = sample_rows(block.data, share, _positions(block))
    return None if some is None else SharedTable.without(some)


def scored_share(n_features: int, n_labels: int) -> float:
    """Return the share of labels that calibration uses."""
    return min(_MOST_ROWS, _MOST_NUMBERS // max(n_features, 1)) / n_labels


def sample_rows(annotations: Annotations, share: float, positions: Index) -> Annotations | None:
    """Draw about a share of labels; ``positions`` are users' positions among all users."""
    chosen = drawn(share, positions[annotations.user_codes], annotations.feature_rows)
    return annotations[chosen] if chosen.any() else None


def make_responses(block: UserBlock[Annotations], how: ResponseSettings) -> InMemoryResponses:
    """Return the responses of a block of users, with their positions among all users."""
    users = block.users
    likelihood = how.likelihood if isinstance(users, slice) else of_users(how.likelihood, users)
    prepared = how.loss.prepare(block.data, likelihood)
    made = cast(InMemoryResponses, how.loss.responses(prepared, how.coordinates, items=how.items))
    return made if isinstance(users, slice) else _renumbered(made, users)


def users_in(responses: InMemoryResponses) -> Index:
    """Return the positions of the users of responses."""
    labels = responses.labels if isinstance(responses, AucResponses | ItemRows) else responses
    assert isinstance(labels, ItemTableResponses)
    return labels.users


def _renumbered(responses: InMemoryResponses, positions: Index) -> InMemoryResponses:
    """Return responses with other positions of users."""
    if isinstance(responses, AucResponses | ItemRows):
        labels = _renumbered(responses.labels, positions)
        return replace(responses, labels=labels)  # type: ignore[arg-type]
    assert isinstance(responses, ItemTableResponses)
    rows = replace(responses.rows, users=positions[responses.rows.users])
    return replace(responses, rows=rows)
