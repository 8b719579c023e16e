"""What a prior is learned from: rows of users in blocks, and what these add up to.

A fit asks for counts, for the rows of some users, and for responses in blocks. Each is a map over
the blocks of an executor, whether the only block is in this process or many are on a cluster.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import numpy as np

from likeminds._util.array_types import Float, FloatArray, IdArray, Index
from likeminds._util.map_reduce import Executor, UserBlock
from likeminds._util.per_user_arrays import drawn, of_users
from likeminds.data.annotations import Annotations
from likeminds.data.covariates import Covariates
from likeminds.data.identifiers import lookup
from likeminds.losses.rows import Rows
from likeminds.mixed_model.choice_responses import ChoiceBlocks
from likeminds.mixed_model.design import Design
from likeminds.mixed_model.item_effects.feature_regression import features_of_items
from likeminds.mixed_model.item_effects.item_responses import ItemEffects, ItemRows
from likeminds.mixed_model.item_posteriors import ItemPosteriors
from likeminds.mixed_model.likelihoods import Likelihood
from likeminds.mixed_model.losses import (
    ALL_LOSSES,
    GradedLoss,
    PriorLoss,
)
from likeminds.mixed_model.optimisers import PriorFit
from likeminds.mixed_model.ordinal import GradeCounts
from likeminds.mixed_model.responses import (
    AucResponses,
    InMemoryResponses,
    LabelResponses,
    Responses,
)
from likeminds.rankers.label_counts import LabelCounts, PartCounts, SharedTable
from likeminds.rankers.ranker import Ranker
from likeminds.rankers.training_checks import warn_of_one_class


@dataclass(frozen=True)
class ScoredLabels:
    """Some labels, with the scores of a ranker from the common zero of all users.

    ``people`` are the positions of their users among all users.
    """

    annotations: Annotations
    scores: Float
    variances: Float
    users: Index


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


# Finds posteriors where users are: see `TrainingData.fit_in_place`.
PosteriorsInPlace = Callable[[Ranker, Responses, PriorFit], ScoredLabels | None]


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
    posteriors_in_place : callable, optional
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
        posteriors_in_place: PosteriorsInPlace | None = None,
        can_collect: bool = True,
    ) -> None:
        self.rows, self.table, self.counts = rows, table, counts
        self._posteriors_in_place, self._can_collect = posteriors_in_place, can_collect
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

    def _responses_here(self, how: ResponseSettings, users: Index) -> InMemoryResponses:
        rows = self.rows_of(users)
        positions = lookup(rows.user_ids, self.about.user_ids, "users")
        return make_responses(UserBlock(positions, rows), how)

    def rows_of(self, users: Index) -> Annotations:
        """Return the labels of some users, by their positions, in this process."""
        return self._joined(self.rows.map(_rows_of, users))

    def sample_rows(self, share: float) -> Annotations:
        """Return about this share of all labels, in this process."""
        return self._joined(self.rows.map(_sample_rows, share))

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

    def fit_in_place(self, ranker: Ranker, tasks: Responses, learned: PriorFit) -> bool:
        """Give a ranker posteriors that stay where users are; return whether that was asked for."""
        if self._posteriors_in_place is None:
            return False
        self._scored = self._posteriors_in_place(ranker, tasks, learned)
        return True

    def scored_there(self) -> ScoredLabels | None:
        """Return the scores of some labels, of users whose posteriors stay where they are."""
        return self._scored


def _positions(block: UserBlock[Annotations]) -> Index:
    return np.arange(block.data.n_users) if isinstance(block.users, slice) else block.users


def _rows_of(block: UserBlock[Annotations], wanted: Index, own: None) -> Annotations | None:  # noqa: ARG001
    chosen = np.isin(_positions(block), wanted)
    return SharedTable.without(block.data[chosen[block.data.user_codes]]) if chosen.any() else None


def _sample_rows(block: UserBlock[Annotations], share: float, own: None) -> Annotations | None:  # noqa: ARG001
    some = sample_rows(block.data, share, _positions(block))
    return None if some is None else SharedTable.without(some)


def sample_rows(annotations: Annotations, share: float, positions: Index) -> Annotations | None:
    """Draw about a share of labels; ``positions`` are those of their users among all users."""
    chosen = drawn(share, positions[annotations.user_codes], annotations.feature_rows)
    return annotations[chosen] if chosen.any() else None


def make_responses(block: UserBlock[Annotations], how: ResponseSettings) -> InMemoryResponses:
    """Return the responses of a block of users, with their positions among all users."""
    users = block.users
    likelihood = how.likelihood if isinstance(users, slice) else of_users(how.likelihood, users)
    prepared = how.loss.prepare(block.data, likelihood)
    made = cast(InMemoryResponses, how.loss.tasks(prepared, how.coordinates, items=how.items))
    return made if isinstance(users, slice) else _renumbered(made, users)


def users_in(responses: InMemoryResponses) -> Index:
    """Return the positions of the users of responses."""
    labels = responses.labels if isinstance(responses, AucResponses | ItemRows) else responses
    assert isinstance(labels, LabelResponses | ChoiceBlocks)
    return labels.users


def _renumbered(responses: InMemoryResponses, positions: Index) -> InMemoryResponses:
    """Return responses whose users have other positions."""
    if isinstance(responses, AucResponses | ItemRows):
        labels = _renumbered(responses.labels, positions)
        return replace(responses, labels=labels)  # type: ignore[arg-type]
    if isinstance(responses, ChoiceBlocks):
        sets = responses.sets
        return replace(responses, sets=replace(sets, users=positions[sets.users]))
    assert isinstance(responses, LabelResponses)
    rows: Rows = responses.rows
    return replace(responses, rows=replace(rows, users=positions[rows.users]))
