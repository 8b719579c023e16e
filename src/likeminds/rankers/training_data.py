"""What a prior is learned from: everybody's labels, in this process or elsewhere.

A fit asks for a few things only: who there is, which items were labelled, what kind of labels they
are, and tasks that can be visited. So it is written once, for labels in this process
(`LocalTrainingData`), and
for those that live elsewhere and answer the same questions by sums.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from likeminds._util.array_types import Float, FloatArray, IdArray, Index
from likeminds._util.per_user_arrays import drawn
from likeminds.data.annotations import Annotations
from likeminds.data.covariates import Covariates
from likeminds.mixed_model.design import Design
from likeminds.mixed_model.grade_scale import GradeCounts
from likeminds.mixed_model.item_effects.feature_regression import features_of_items
from likeminds.mixed_model.item_effects.item_responses import ItemEffects, are_shared
from likeminds.mixed_model.item_posteriors import ItemPosteriors
from likeminds.mixed_model.likelihoods import Likelihood
from likeminds.mixed_model.losses import PriorLoss, choose_loss
from likeminds.mixed_model.optimisers import PriorFit
from likeminds.mixed_model.responses import Responses
from likeminds.rankers.statistics_rankers import refuse_one_class
from likeminds.rankers.wide_switch import directions_of


@dataclass(frozen=True)
class ScoredLabels:
    """Some labels, with the scores that a ranker has for them.

    Attributes
    ----------
    said : Annotations
        The labels.
    scores, variances : arrays of shape (n_rows,)
        Scores from the common zero of all people, and their variances.
    people : array of shape (n_rows,)
        The positions of their people among all people.
    """

    said: Annotations
    scores: Float
    variances: Float
    people: Index


@dataclass(frozen=True)
class DataSummary:
    """What is known of everybody's labels before anything is learned.

    Attributes
    ----------
    user_ids, item_ids : arrays
        The people and the items.
    user_features : Covariates or None
        What is known about people.
    n_features : int
        How many features there are.
    n_labels : int
        How many labels there are.
    positive_share : float
        The share of positive labels.
    has_grades : bool
        Whether labels are grades.
    """

    user_ids: IdArray
    item_ids: IdArray
    user_features: Covariates | None
    n_features: int
    n_labels: int
    positive_share: float
    has_grades: bool


class TrainingData(ABC):
    """Everybody's labels, wherever they are, as a fit asks for them."""

    about: DataSummary

    @property
    @abstractmethod
    def is_shared(self) -> bool:
        """Whether any item was labelled by two people."""

    @property
    @abstractmethod
    def n_directions(self) -> int:
        """In how many directions labelled items can differ."""

    @abstractmethod
    def loss(self, asked: str | PriorLoss) -> PriorLoss:
        """Return the loss that is asked for, or that suits how labels were asked for."""

    @abstractmethod
    def refuse_one_class(self, *, teaches: bool) -> None:
        """Refuse labels that are all alike; name the people whose are, unless that ``teaches``."""

    @abstractmethod
    def coordinates(
        self, *, standardize: bool, intercept: bool, every: bool, most: int | None
    ) -> Design:
        """Return coordinates of the labelled items, ``most`` leading directions at most."""

    @abstractmethod
    def first_likelihood(self, loss: PriorLoss) -> Likelihood:
        """Return the likelihood that learning starts from."""

    @abstractmethod
    def tasks(
        self, loss: PriorLoss, likelihood: Likelihood, coordinates: Design, *, items: bool
    ) -> Responses:
        """Return the labels to be visited, with ``items`` that have effects of their own."""

    @abstractmethod
    def rows_of(self, people: Index) -> Annotations:
        """Return the labels of a few people, by their positions, in this process."""

    @abstractmethod
    def some_rows(self, share: float) -> Annotations:
        """Return about this share of all labels, in this process."""

    @abstractmethod
    def grades_given(self) -> GradeCounts:
        """Return how often grades were given, and how everybody spreads theirs."""

    @abstractmethod
    def all_rows(self) -> Annotations:
        """Return everybody's labels, in this process."""

    def brought_here(self, tasks: Responses) -> Responses:
        """Return everybody's labels as tasks of this process, for what holds more than these."""
        return tasks

    def settled_there(self, ranker: Any, tasks: Responses, learned: PriorFit) -> bool:  # noqa: ARG002
        """Give a ranker people who stay where they are; say whether that was asked for."""
        return False

    def scored_there(self) -> ScoredLabels | None:
        """Return the scores of some labels, of people who were settled where they are."""
        return None

    @abstractmethod
    def item_features(self) -> FloatArray | None:
        """Return the features of all items with labels, if these are the items' own."""


class LocalTrainingData(TrainingData):
    """Labels in this process."""

    def __init__(self, said: Annotations) -> None:
        self.said = said
        self.about = DataSummary(
            said.user_ids,
            said.item_ids,
            said.user_features,
            said.n_features,
            len(said),
            float(said.labels.mean()),
            said.grades is not None,
        )

    @cached_property
    def is_shared(self) -> bool:
        """Whether any item was labelled by two people."""
        return are_shared(self.said)

    @property
    def n_directions(self) -> int:
        """In how many directions labelled items can differ."""
        return directions_of(self.said)

    def loss(self, asked: str | PriorLoss) -> PriorLoss:
        """Return the loss: see `choose_loss`."""
        return choose_loss(asked, self.said)

    def refuse_one_class(self, *, teaches: bool) -> None:
        """Refuse labels that are all alike."""
        refuse_one_class(self.said, teaches=teaches)

    def coordinates(
        self, *, standardize: bool, intercept: bool, every: bool, most: int | None
    ) -> Design:
        """Return coordinates of the labelled items."""
        return Design.of_annotations(
            self.said, standardize=standardize, intercept=intercept, every=every, most=most
        )

    def first_likelihood(self, loss: PriorLoss) -> Likelihood:
        """Return the likelihood that learning starts from."""
        return loss.first_likelihood(self.said)

    def tasks(
        self, loss: PriorLoss, likelihood: Likelihood, coordinates: Design, *, items: bool
    ) -> Responses:
        """Return the labels to be visited."""
        prepared = loss.prepare(self.said, likelihood)
        rows = loss.tasks(prepared, coordinates, items=items)
        return ItemEffects.of(rows, ItemPosteriors.unknown(self.said.item_ids)) if items else rows

    def rows_of(self, people: Index) -> Annotations:
        """Return the labels of some people."""
        return self.said.of_users(self.said.user_ids[people].tolist())

    def some_rows(self, share: float) -> Annotations:
        """Return about this share of all labels."""
        return rows_by_lot(self.said, share, np.arange(self.said.n_users)) or self.said

    def grades_given(self) -> GradeCounts:
        """Return how often grades were given, and how everybody spreads theirs."""
        assert self.said.grades is not None
        return GradeCounts.of(self.said.grades, self.said.user_codes)

    def all_rows(self) -> Annotations:
        """Return everybody's labels."""
        return self.said

    def item_features(self) -> FloatArray | None:
        """Return the features of all items with labels, if these are the items' own."""
        return features_of_items(self.said)


def rows_by_lot(said: Annotations, share: float, positions: Index) -> Annotations | None:
    """Draw about a share of labels; ``positions`` are those of their people among all people."""
    chosen = drawn(share, positions[said.user_codes], said.feature_rows)
    return said[chosen] if chosen.any() else None
