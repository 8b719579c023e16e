"""Losses that a prior can be learned from, each with its likelihood and tasks."""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import ClassVar

import numpy as np

from likeminds._support.arrays import FloatArray
from likeminds.data.annotations import Annotations
from likeminds.data.choice_sets import are_choices
from likeminds.data.labels import block_medians
from likeminds.prior.choices import ChoiceTasks, are_mixed
from likeminds.prior.coordinates import Coordinates
from likeminds.prior.crossed import BEND, CrossedTasks
from likeminds.prior.crowd import Crowd
from likeminds.prior.grades_given import GradesGiven
from likeminds.prior.grading import CumulativeLogit, Graded, StandardNormal
from likeminds.prior.likelihoods import Choice, Likelihood, Logistic, Regression
from likeminds.prior.tasks import AucTasks, LabelTasks, Tasks


class PriorLoss(ABC):
    """A loss of labels, for a ranker with a learned prior; docs/losses.md writes one.

    Attributes
    ----------
    name : str
        The name by which rankers take it.
    likelihood : Likelihood
        The likelihood of labels; a regression's precision is where learning starts.
    has_intercept : bool
        Whether people have one: the log-odds of liking the average item.
    one_class_teaches : bool
        Whether people with labels of one class only carry information.
    takes_items : bool
        Whether items may have effects of their own; see `crossed`.
    bend : float
        The largest second derivative of a label's loss, where they may.
    rows_are_items : bool
        Whether the rows of `tasks` are items, the intercept last, or items times a number: then
        the prior can be learned from wide features. See `prior.wide`.
    """

    name: ClassVar[str]
    likelihood: ClassVar[Likelihood]
    has_intercept: ClassVar[bool]
    one_class_teaches: ClassVar[bool]
    takes_items: ClassVar[bool] = False
    bend: ClassVar[float] = BEND
    rows_are_items: ClassVar[bool] = False

    def first_likelihood(self, annotations: Annotations) -> Likelihood:  # noqa: ARG002
        """Return the likelihood that learning starts from."""
        return self.likelihood

    def prepare(self, annotations: Annotations, likelihood: Likelihood) -> Annotations:  # noqa: ARG002
        """Return the labels that are learned from: of grades, which are yes or no."""
        return annotations._with(grades=None)

    def welcome(self, annotations: Annotations, crowd: Crowd) -> tuple[Annotations, Crowd]:
        """Return newcomers' labels as they are learned from, and the crowd as they meet it."""
        return self.prepare(annotations, crowd.likelihood), crowd

    @abstractmethod
    def tasks(self, annotations: Annotations, coordinates: Coordinates) -> Tasks:
        """Return everybody's labels as rows and responses."""

    def of_newcomers(
        self,
        annotations: Annotations,
        crowd: Crowd,
        positive_share: float,  # noqa: ARG002 - for losses that cannot tell the odds themselves
    ) -> tuple[Tasks, Crowd]:
        """Return newcomers' labels, and the crowd whose prior they are combined with.

        ``positive_share`` is that of the labels in training. The crowd returned may have more
        coordinates than the one given, after its own.
        """
        return self.tasks(annotations, crowd.coordinates), crowd


class LogisticLoss(PriorLoss):
    """Each label is a logistic regression, with an intercept per person."""

    name = "logistic"
    likelihood = Logistic()
    has_intercept = True
    one_class_teaches = True
    takes_items = True
    rows_are_items = True

    def tasks(self, annotations: Annotations, coordinates: Coordinates) -> Tasks:
        """Return one row per label."""
        return LabelTasks.of_annotations(annotations, coordinates)

    def of_newcomers(
        self, annotations: Annotations, crowd: Crowd, positive_share: float
    ) -> tuple[Tasks, Crowd]:
        """Return newcomers' labels, with the posteriors of their items where there are any."""
        if crowd.items is None:
            return super().of_newcomers(annotations, crowd, positive_share)
        tasks = CrossedTasks.of_newcomers(annotations, crowd.coordinates, crowd.items, self.bend)
        return tasks, crowd


class MedianLoss(LogisticLoss):
    """The logistic loss of grades above each person's own median."""

    name = "median"

    def prepare(self, annotations: Annotations, likelihood: Likelihood) -> Annotations:  # noqa: ARG002
        """Return which grades are above the median of those of their person."""
        if annotations.grades is None:
            return annotations
        median = block_medians(annotations.grades, annotations.user_codes)
        return annotations._with(labels=annotations.grades > median, grades=None)


class GradedLoss(LogisticLoss):
    """Base of the losses of grades; responses are bins."""

    # Cuts and noise are refined from rows in coordinates.
    rows_are_items = False

    def first_likelihood(self, annotations: Annotations) -> Likelihood:
        """Return the likelihood that learning starts from."""
        grades = need_grades(annotations, self.name)
        return self.first_given(GradesGiven.of(grades, annotations.user_codes))

    @abstractmethod
    def first_given(self, said: GradesGiven) -> Graded:
        """Return the likelihood that learning starts from, by how grades were given."""

    def prepare(self, annotations: Annotations, likelihood: Likelihood) -> Annotations:
        """Return labels with the bin of each grade."""
        assert annotations.grades is not None
        assert isinstance(likelihood, Graded)
        bins = likelihood.scale.codes(annotations.grades)
        return annotations._with(grades=bins.astype(np.float64))

    def welcome(self, annotations: Annotations, crowd: Crowd) -> tuple[Annotations, Crowd]:
        """Let newcomers use the scale in their own way."""
        assert isinstance(crowd.likelihood, Graded)
        likelihood = crowd.likelihood.of_people(annotations.grades, annotations.user_codes)
        return self.prepare(annotations, likelihood), replace(crowd, likelihood=likelihood)


class CumulativeLoss(GradedLoss):
    """A cumulative logit of grades: see `grading`."""

    name = "cumulative"
    bend = CumulativeLogit.bend

    def first_given(self, said: GradesGiven) -> Graded:
        """Return cuts by the shares of grades."""
        return CumulativeLogit.given(said)


class GaussianLoss(GradedLoss):
    """Everybody's standardised grades are normal, with a variance of their own: see `grading`."""

    name = "gaussian"
    bend = StandardNormal.bend

    def first_given(self, said: GradesGiven) -> Graded:
        """Return everybody's mean and spread; noise as large as half the variance."""
        return StandardNormal.given(said)

    def prepare(self, annotations: Annotations, likelihood: Likelihood) -> Annotations:
        """Return labels with the bin of each grade, which weigh the person's precision."""
        assert isinstance(likelihood, StandardNormal)
        weight = likelihood.precision[annotations.user_codes]
        if annotations.weights is not None:
            weight = weight * annotations.weights
        return super().prepare(annotations, likelihood)._with(weights=weight)


def need_grades(annotations: Annotations, loss: str) -> FloatArray:
    """Return the grades; refuse labels that are none."""
    if annotations.grades is None:
        raise ValueError(f'loss="{loss}" learns from grades, but these labels are yes or no.')
    return annotations.grades


class ChoiceLoss(PriorLoss):
    """Each positive label is a choice among it and the negatives shown with it."""

    name = "choice"
    likelihood = Choice()
    has_intercept = False
    one_class_teaches = False
    rows_are_items = True

    def tasks(self, annotations: Annotations, coordinates: Coordinates) -> Tasks:
        """Return one set of rows per positive label."""
        return ChoiceTasks.of_annotations(annotations, coordinates)

    def of_newcomers(
        self, annotations: Annotations, crowd: Crowd, positive_share: float
    ) -> tuple[Tasks, Crowd]:
        """Return newcomers' choices, or, where they judge single items, their labels."""
        if are_choices(annotations):
            return super().of_newcomers(annotations, crowd, positive_share)
        single = crowd.of_single_labels(positive_share)
        if are_mixed(annotations):
            both = replace(single, likelihood=MixedLoss.likelihood)
            return MixedLoss().tasks(annotations, single.coordinates), both
        return LabelTasks.of_annotations(annotations, single.coordinates), single


class MixedLoss(PriorLoss):
    """Groups of rows are choices, rows of their own are labels, with an intercept per person.

    A label is a choice between the item and none, whose score is zero. Intercepts cancel in all
    other sets.
    """

    name = "mixed"
    likelihood = Choice()
    has_intercept = True
    one_class_teaches = True
    rows_are_items = True

    def tasks(self, annotations: Annotations, coordinates: Coordinates) -> Tasks:
        """Return one set of rows per choice, and one per label."""
        return ChoiceTasks.of_annotations(annotations, coordinates, single=True)


class AucLoss(PriorLoss):
    """The squared AUC loss as a regression, whose precision is learned."""

    name = "auc"
    likelihood = Regression(2.0)  # that of labels nothing is known about
    has_intercept = False
    one_class_teaches = False

    def tasks(self, annotations: Annotations, coordinates: Coordinates) -> Tasks:
        """Return one row per label, and one per person."""
        return AucTasks(LabelTasks.of_annotations(annotations, coordinates))


PRIOR_LOSSES: dict[str, PriorLoss] = {
    loss.name: loss for loss in (LogisticLoss(), ChoiceLoss(), MixedLoss(), AucLoss())
}
# Those that grades may be learned by, "logistic" among them: the best for the crowd is chosen.
GRADE_LOSSES: dict[str, PriorLoss] = {
    loss.name: loss for loss in (CumulativeLoss(), GaussianLoss(), MedianLoss())
}
ALL_LOSSES = PRIOR_LOSSES | GRADE_LOSSES


def choose_loss(loss: str | PriorLoss, annotations: Annotations) -> PriorLoss:
    """Return the loss that a name stands for; "auto" goes by how the labels were asked for."""
    if isinstance(loss, PriorLoss):
        return loss
    if loss == "auto":
        loss = LogisticLoss.name
        if annotations.group_codes is not None:
            loss = ChoiceLoss.name if are_choices(annotations) else loss
            loss = MixedLoss.name if are_mixed(annotations) else loss
    return ALL_LOSSES[loss]
