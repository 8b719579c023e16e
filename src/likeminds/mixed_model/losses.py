"""Losses of labels for a learned prior, each with its likelihood and responses."""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import ClassVar

import numpy as np

from likeminds._util.array_types import Float
from likeminds.data.annotations import Annotations
from likeminds.data.coded_labels import are_choices, classes_by_set, counted_alike
from likeminds.data.label_parsing import block_medians
from likeminds.mixed_model.choice_responses import ChoiceBlocks
from likeminds.mixed_model.design import Design
from likeminds.mixed_model.gaussian_prior import ItemPosteriors
from likeminds.mixed_model.item_effects.item_responses import (
    ItemEffects,
    ItemRows,
)
from likeminds.mixed_model.likelihoods import (
    ChoiceLikelihood,
    GaussianLikelihood,
    Likelihood,
    LogisticLikelihood,
)
from likeminds.mixed_model.ordinal import CumulativeLogit, Graded, StandardNormal
from likeminds.mixed_model.ordinal_responses import DavidsonLikelihood
from likeminds.mixed_model.responses import AucResponses, LabelResponses, Responses
from likeminds.mixed_model.user_posteriors import FittedPrior


def discount_labels(
    annotations: Annotations, items: ItemPosteriors, curvature: float
) -> Annotations:
    """Return new users' labels with weights lowered by the uncertainty of their items.

    The information h of a label becomes h / (1 + h variance). In a choice set, the variance is that
    of the difference between two items, on average over the set.
    """
    variance = posteriors_of_items(annotations, items).effect_variance[annotations.item_codes]
    sets = annotations.choice_set_codes
    if sets is not None:
        size = np.bincount(sets)
        variance = (np.minimum(size, 2) * np.bincount(sets, weights=variance) / size)[sets]
    weight = 1.0 / (1.0 + curvature * variance)
    if annotations.weights is not None:
        weight = weight * annotations.weights
    return annotations._with(weights=weight)


def posteriors_of_items(annotations: Annotations, items: ItemPosteriors) -> ItemPosteriors:
    """Return the posteriors of the items of annotations, in their order."""
    if annotations.has_items:
        return items.of(annotations.item_ids)
    return items.prior_of(annotations.n_items)


class PriorLoss(ABC):
    """A loss of labels, for a ranker with a learned prior; the page on losses has an example.

    Attributes
    ----------
    name : str
        The name that selects it in rankers.
    likelihood : Likelihood
        The likelihood of labels; the precision of a regression is a starting value.
    has_intercept : bool
        Whether users have an intercept: the log-odds of liking the average item.
    one_class_informs : bool
        Whether users with labels of one class only carry information.
    takes_items : bool
        Whether items may have effects of their own; see `item_effects`.
    curvature_bound : float
        The largest second derivative of a label's loss, if items may have effects.
    rows_are_items : bool
        Whether the rows of `responses` are items (the intercept last), or items times a number. The
        prior can then be learned from wide features: see `wide_fit`.
    """

    name: ClassVar[str]
    likelihood: ClassVar[Likelihood]
    has_intercept: ClassVar[bool]
    one_class_informs: ClassVar[bool]
    takes_items: ClassVar[bool] = False
    curvature_bound: ClassVar[float] = LogisticLikelihood.curvature_bound
    rows_are_items: ClassVar[bool] = False

    def first_of_ties(self, ties: Float) -> Likelihood:  # noqa: ARG002
        """Return the starting likelihood, given the weights of `tie_weights`."""
        return self.likelihood

    def prepare(self, annotations: Annotations, likelihood: Likelihood) -> Annotations:  # noqa: ARG002
        """Return the labels for the likelihood; for grades, labels of yes or no."""
        return annotations._with(grades=None)

    def prepare_new_users(
        self, annotations: Annotations, fitted_prior: FittedPrior
    ) -> tuple[Annotations, FittedPrior]:
        """Return new users' prepared labels, and their fitted prior."""
        return self.prepare(annotations, fitted_prior.likelihood), fitted_prior

    @abstractmethod
    def responses(
        self, annotations: Annotations, design: Design, *, items: bool = False
    ) -> Responses:
        """Return each user's labels as rows and responses; with ``items``, rows name items."""

    def of_newcomers(
        self,
        annotations: Annotations,
        fitted_prior: FittedPrior,
        positive_share: float,  # noqa: ARG002 - for losses that do not identify intercepts
    ) -> tuple[Responses, FittedPrior]:
        """Return new users' labels, and their fitted prior, which may have more coordinates.

        ``positive_share`` is the share of positive training labels.
        """
        if fitted_prior.items is None:
            return self.responses(annotations, fitted_prior.design), fitted_prior
        weighed = discount_labels(annotations, fitted_prior.items, self.curvature_bound)
        rows = self.responses(weighed, fitted_prior.design, items=True)
        return ItemEffects.of(
            rows, posteriors_of_items(annotations, fitted_prior.items)
        ), fitted_prior


class LogisticLoss(PriorLoss):
    """Each label is a logistic regression, with an intercept per user."""

    name = "logistic"
    likelihood = LogisticLikelihood()
    has_intercept = True
    one_class_informs = True
    takes_items = True
    rows_are_items = True

    def responses(
        self, annotations: Annotations, design: Design, *, items: bool = False
    ) -> Responses:
        """Return one row per label."""
        if items:
            return ItemRows.of_labels(annotations, design, self.curvature_bound)
        return LabelResponses.of_annotations(annotations, design)


class MedianLoss(LogisticLoss):
    """The logistic loss of grades above each user's own median."""

    name = "median"

    def prepare(self, annotations: Annotations, likelihood: Likelihood) -> Annotations:  # noqa: ARG002
        """Return labels that are positive for grades above the user's median."""
        if annotations.grades is None:
            return annotations
        median = block_medians(annotations.grades, annotations.user_codes)
        return annotations._with(labels=annotations.grades > median, grades=None)


class GradedLoss(LogisticLoss):
    """Base of the losses of grades; responses are bins."""

    rows_are_items = False
    graded: ClassVar[type[Graded]]  # the likelihood

    def prepare(self, annotations: Annotations, likelihood: Likelihood) -> Annotations:
        """Return labels with the bin of each grade."""
        assert annotations.grades is not None
        assert isinstance(likelihood, Graded)
        bins = likelihood.scale.codes(annotations.grades)
        return annotations._with(grades=bins.astype(np.float64))

    def prepare_new_users(
        self, annotations: Annotations, fitted_prior: FittedPrior
    ) -> tuple[Annotations, FittedPrior]:
        """Return new users' prepared grades, with their own response styles."""
        assert isinstance(fitted_prior.likelihood, Graded)
        likelihood = fitted_prior.likelihood.of_users(annotations.grades, annotations.user_codes)
        return self.prepare(annotations, likelihood), replace(fitted_prior, likelihood=likelihood)


class CumulativeLoss(GradedLoss):
    """A cumulative logit of grades: see `ordinal`."""

    name = "cumulative"
    graded = CumulativeLogit
    curvature_bound = CumulativeLogit.curvature_bound


class GaussianLoss(GradedLoss):
    """Each user's standardised grades are normal, with a variance of their own: see `ordinal`."""

    name = "gaussian"
    graded = StandardNormal
    curvature_bound = StandardNormal.curvature_bound

    def prepare(self, annotations: Annotations, likelihood: Likelihood) -> Annotations:
        """Return labels with the bin of each grade, weighted by the user's precision."""
        assert isinstance(likelihood, StandardNormal)
        weight = likelihood.precision[annotations.user_codes]
        if annotations.weights is not None:
            weight = weight * annotations.weights
        return super().prepare(annotations, likelihood)._with(weights=weight)


class MixedLoss(PriorLoss):
    """Choice sets of several rows are choices, single rows are labels; users have an intercept.

    A label is a choice between the item and none, whose score is zero. Intercepts cancel in all
    other sets.
    """

    name = "mixed"
    likelihood = ChoiceLikelihood()
    has_intercept = True
    one_class_informs = True
    takes_items = True
    rows_are_items = True

    def responses(
        self, annotations: Annotations, design: Design, *, items: bool = False
    ) -> Responses:
        """Return one set of rows per choice, and one per label if users have intercepts."""
        choices = ChoiceBlocks.of_annotations(annotations, design, single=self.has_intercept)
        return ItemRows(choices, choices.places(), annotations.n_items) if items else choices


class ChoiceLoss(MixedLoss):
    """Each positive label is a choice among it and the negatives shown with it."""

    name = "choice"
    has_intercept = False
    one_class_informs = False

    def first_of_ties(self, ties: Float) -> Likelihood:
        """Return the likelihood of choices; with ties, if there are some and all sets are pairs."""
        tied, pairs, others = ties
        return DavidsonLikelihood.of_share(tied / pairs) if tied and not others else self.likelihood

    def of_newcomers(
        self, annotations: Annotations, fitted_prior: FittedPrior, positive_share: float
    ) -> tuple[Responses, FittedPrior]:
        """Return new users' choices, or their labels of single items."""
        if are_choices(annotations):
            return super().of_newcomers(annotations, fitted_prior, positive_share)
        single = fitted_prior.of_single_labels(positive_share)
        if are_mixed(annotations):
            both = replace(single, likelihood=MixedLoss.likelihood)
            return MixedLoss().of_newcomers(annotations, both, positive_share)
        return LogisticLoss().of_newcomers(annotations, single, positive_share)


class AucLoss(PriorLoss):
    """The squared AUC loss as a regression, whose precision is learned."""

    name = "auc"
    likelihood = GaussianLikelihood(2.0)  # the initial precision
    has_intercept = False
    one_class_informs = False

    def responses(
        self,
        annotations: Annotations,
        design: Design,
        *,
        items: bool = False,  # noqa: ARG002 - pairs of labels have no single item
    ) -> Responses:
        """Return one row per label, and one per user."""
        return AucResponses(LabelResponses.of_annotations(annotations, design))


PRIOR_LOSSES: dict[str, PriorLoss] = {
    loss.name: loss for loss in (LogisticLoss(), ChoiceLoss(), MixedLoss(), AucLoss())
}
# Candidates for grades, besides "logistic".
GRADE_LOSSES: dict[str, PriorLoss] = {
    loss.name: loss for loss in (CumulativeLoss(), GaussianLoss(), MedianLoss())
}
ALL_LOSSES = PRIOR_LOSSES | GRADE_LOSSES


def are_mixed(annotations: Annotations) -> bool:
    """Return whether some choice sets are choices, and all others single labels."""
    groups = annotations.choice_set_codes
    if groups is None or are_choices(annotations):
        return False
    chosen, others = classes_by_set(groups, annotations)
    single = chosen + others == 1
    are_sets = (chosen == 1) & counted_alike(groups, annotations)
    return bool(single.any() and not single.all() and (single | are_sets).all())


def tie_weights(annotations: Annotations) -> Float:
    """Return the weights of tied pairs, of all pairs, and of larger choice sets.

    Examples
    --------
    >>> pairs = Annotations.from_comparisons(
    ...     ["ann"] * 3, list("aab"), list("bcc"), ties=[False, True, False])
    >>> tie_weights(pairs)
    array([1., 3., 0.])
    """
    sets, tied = annotations.choice_set_codes, annotations.tied
    if sets is None or tied is None:
        return np.zeros(3)
    weight = np.ones(len(sets)) if annotations.weights is None else annotations.weights
    weight, is_pair = weight * annotations.chosen, np.bincount(sets)[sets] == 2
    return np.array([weight[tied].sum(), weight[is_pair].sum(), weight[~is_pair].sum()])
