"""Losses that a prior can be learned from, each with its likelihood and tasks."""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import ClassVar

from likeminds.data.annotations import Annotations
from likeminds.prior.choices import ChoiceTasks, are_choices, are_mixed
from likeminds.prior.coordinates import Coordinates
from likeminds.prior.crossed import CrossedTasks
from likeminds.prior.crowd import Crowd
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
    """

    name: ClassVar[str]
    likelihood: ClassVar[Likelihood]
    has_intercept: ClassVar[bool]
    one_class_teaches: ClassVar[bool]
    takes_items: ClassVar[bool] = False

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

    def tasks(self, annotations: Annotations, coordinates: Coordinates) -> Tasks:
        """Return one row per label."""
        return LabelTasks.of_annotations(annotations, coordinates)

    def of_newcomers(
        self, annotations: Annotations, crowd: Crowd, positive_share: float
    ) -> tuple[Tasks, Crowd]:
        """Return newcomers' labels, with the posteriors of their items where there are any."""
        if crowd.items is None:
            return super().of_newcomers(annotations, crowd, positive_share)
        tasks = CrossedTasks.of_newcomers(annotations, crowd.coordinates, crowd.items)
        return tasks, crowd


class ChoiceLoss(PriorLoss):
    """Each positive label is a choice among it and the negatives shown with it."""

    name = "choice"
    likelihood = Choice()
    has_intercept = False
    one_class_teaches = False

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


def choose_loss(loss: str | PriorLoss, annotations: Annotations) -> PriorLoss:
    """Return the loss that a name stands for; "auto" goes by how the labels were asked for."""
    if isinstance(loss, PriorLoss):
        return loss
    if loss == "auto":
        loss = LogisticLoss.name
        if annotations.group_codes is not None:
            loss = ChoiceLoss.name if are_choices(annotations) else loss
            loss = MixedLoss.name if are_mixed(annotations) else loss
    return PRIOR_LOSSES[loss]
