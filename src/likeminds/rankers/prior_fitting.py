"""How a ranker with a learned prior learns: the same steps wherever the labels are."""

import logging
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from likeminds._util.array_types import Float
from likeminds._util.checks import refuse_not_finite
from likeminds.mixed_model.design import Design
from likeminds.mixed_model.extensions.covariate_effects import CovariateEffects, learn_with_people
from likeminds.mixed_model.fit_prior import learn
from likeminds.mixed_model.item_effects.feature_regression import (
    MOST_FEATURES,
    regress_items_on_features,
    with_weights,
)
from likeminds.mixed_model.item_effects.fit_items import learn_crossed
from likeminds.mixed_model.item_effects.item_responses import NOT_SHARED, ItemEffects
from likeminds.mixed_model.likelihoods import Likelihood
from likeminds.mixed_model.losses import ALL_LOSSES, PriorLoss
from likeminds.mixed_model.optimisers import PriorFit
from likeminds.mixed_model.ordinal import Graded
from likeminds.mixed_model.ordinal_responses import refine_likelihood
from likeminds.mixed_model.responses import Responses
from likeminds.mixed_model.user_posteriors import posterior_of
from likeminds.mixed_model.wide.wide_fit import learn_in_rows
from likeminds.rankers.callbacks import both_callbacks
from likeminds.rankers.choice_reporting import ChoiceReporting
from likeminds.rankers.graded_answers import choose_grade_loss, learn_grading, users_weigh_features
from likeminds.rankers.probabilities import calibrate_variance_scale
from likeminds.rankers.training_data import TrainingData
from likeminds.rankers.wide_switch import choose_width

logger = logging.getLogger(__name__)

# Likelihoods of grades suit people's scores after so many rounds, learned not very exactly.
_ROUNDS, _ROUGH = 2, 1e-3


class PriorFittingMixin(ChoiceReporting):
    """Base: learns prior and posteriors from everybody's labels, in this process or elsewhere."""

    # A trial is judged by its scores: it says nothing, and learns no more than these take.
    _is_trial, _has_steps = False, True
    # Whether users weigh features too many for Omega; None: held-out labels decide.
    _weighs_features: bool | None = None

    n_groups: int | str
    item_effects: bool | str
    n_item_factors: int | str
    covariance: str
    consensus: ArrayLike | None
    wide: bool | str
    standardize: bool
    tol: float

    def _learn_from(self, data: TrainingData, chosen: str | None = None) -> None:
        """Learn the prior, and find everybody's posterior; ``chosen`` is the loss of grades."""
        loss = self._choose_loss(data, chosen)
        data.refuse_one_class(teaches=loss.one_class_informs)
        self.loss_ = loss.name
        self.positive_share_ = data.about.positive_share
        self.wide_, most = self._choose_width(loss, data)
        self._say_if_not_shared(loss, data)
        coordinates = data.coordinates(
            standardize=self.standardize,
            intercept=loss.has_intercept,
            every=self.wide_,
            most=most,
        )
        items_only = self._describe_items_only(loss, data, coordinates)
        inner = coordinates.without_weights() if items_only else coordinates
        likelihood = self._first_likelihood(loss, data, inner)
        traits = None
        if self.wide_:
            learned, tasks, coordinates = self._learn_wide(loss, data, likelihood, coordinates)
        else:
            tasks = self._tasks(loss, data, likelihood, inner)
            learned, traits = self._learn(tasks, likelihood, data, inner)
        if items_only:
            learned = with_weights(learned, coordinates.n_weights)
            tasks = self._tasks(loss, data, likelihood, coordinates)
        if not self._specification().is_plain:
            simulated = tasks.collected()
            learned = self._refine(learned, simulated, coordinates, _shifts(traits, data))
            del simulated
        self._interrupted = learned.interrupted
        self._warn_if_unfinished(learned)
        if learned.items is not None and isinstance(tasks, ItemEffects):
            labelled = np.flatnonzero(tasks.labelled)
            learned = replace(learned, items=learned.items.take(labelled))
            counts = tasks.counts[labelled]
            n_groups = self._asked_groups(coordinates.n_weights)
            learned = regress_items_on_features(learned, data.item_features(), counts, coordinates)
            learned = learned if n_groups is None else replace(learned, n_groups=n_groups)
            assert learned.items is not None
            tasks = tasks.with_items(learned.items.of(data.about.item_ids))
        self._set_prior(learned, coordinates, traits)
        self.grading_, self.label_doubt_ = None, None
        points = self._settle(data, tasks, learned)
        del tasks, learned  # a large crowd's levels need the memory that its rows take
        if points is not None:
            self._set_levels(points)
        if data.about.has_grades and loss.has_intercept and not self._is_trial:
            self.grading_ = learn_grading(self, data)
        elif self.loss_ in {"logistic", "choice", "mixed"} and not self._is_trial:
            self.label_doubt_ = calibrate_variance_scale(self, data)

    def _settle(self, data: TrainingData, tasks: Responses, learned: PriorFit) -> Float | None:
        """Find everybody's posterior, given the prior; return points, unless they stay there."""
        self.users_ = data.about.user_ids
        self.crowd_ = self._specification().told(self.crowd_)
        if data.settled_there(self, tasks, learned):
            return None
        points, self.information_ = posterior_of(
            tasks,
            len(self.users_),
            self.crowd_,
            pulls=learned.pulls,
            rank=self.covariance_rank,
            shifts=self.crowd_.shifts(data.about.user_features, self.users_),
            quick=learned.sampling is not None,
        )
        return points

    def _choose_loss(self, data: TrainingData, chosen: str | None) -> PriorLoss:
        """Return the loss; of grades, unless one was ``chosen``, by held-out people."""
        loss = data.loss(self.loss)
        self.grade_scores_: dict[str, float] = {}
        if self.loss != "auto" or not data.about.has_grades or not loss.takes_items:
            return loss
        if chosen is None:
            chosen, self.grade_scores_ = choose_grade_loss(self, data)
        return ALL_LOSSES[chosen]

    def _first_likelihood(
        self, loss: PriorLoss, data: TrainingData, coordinates: Design
    ) -> Likelihood:
        """Return the likelihood; of grades, that which suits people's scores roughly."""
        likelihood = data.first_likelihood(loss)
        for _ in range(_ROUNDS if isinstance(likelihood, Graded) else 0):
            tasks = self._tasks(loss, data, likelihood, coordinates)
            learned, traits = self._learn(tasks, likelihood, data, coordinates, rough=True)
            if learned.interrupted:
                raise KeyboardInterrupt
            shifts = _shifts(traits, data)
            likelihood = refine_likelihood(tasks, learned, data.about.n_labels, shifts)
        return likelihood

    def _tasks(
        self, loss: PriorLoss, data: TrainingData, likelihood: Likelihood, coordinates: Design
    ) -> Responses:
        """Return everybody's labels, with their items where those have effects of their own."""
        has_items = self._has_items(loss, data)
        if not (has_items or data.about.n_features):
            raise ValueError(
                "These annotations have no features, so items are known by their effects alone: "
                "that takes items that several users judge, item_effects not False, and another "
                'loss than "auc".'
            )
        return data.tasks(loss, likelihood, coordinates, items=has_items)

    def _describe_items_only(
        self, loss: PriorLoss, data: TrainingData, coordinates: Design
    ) -> bool:
        """Tell whether features describe items, but are too many for people to weigh.

        That is so where shared items have features, such as components of texts, labels are fewer
        than the numbers of Omega, and held-out labels are not ranked better by users' weights of
        the leading components. Then people differ by thresholds and by learned factors, and item
        effects and factors are regressed on features: see `apportioning`.
        """
        n_weights, about = coordinates.n_weights, data.about
        return (
            not self.wide_
            and about.n_labels < n_weights * (n_weights + 1) // 2
            and n_weights <= MOST_FEATURES
            and self.covariance == "auto"
            and self.n_groups in {"auto", 0}
            and about.user_features is None
            and self.consensus is None
            and self._has_items(loss, data)
            and data.item_features() is not None
            and not (
                users_weigh_features(self, data)
                if self._weighs_features is None
                else self._weighs_features
            )
        )

    def _has_items(self, loss: PriorLoss, data: TrainingData) -> bool:
        if not self._specification().is_plain:
            if self.item_effects is True:
                raise ValueError(
                    "Items have effects of their own, or draws, fixed and signs are given: a "
                    "likelihood that is simulated person by person cannot have items that people "
                    "share. Leave out either."
                )
            return False
        if self.item_effects not in {False, "auto"} and not loss.takes_items:
            raise ValueError(
                f'item_effects=True does not go with loss="{loss.name}", which is about pairs of '
                'labels, not about single items. Leave item_effects at "auto", or change the loss.'
            )
        return bool(self.item_effects) and loss.takes_items and data.is_shared

    def _say_if_not_shared(self, loss: PriorLoss, data: TrainingData) -> None:
        """Say that item effects are off since no item repeats: a warning if they were asked for."""
        if self._is_trial or not self.item_effects or not loss.takes_items:
            return
        if self._has_items(loss, data) or data.is_shared:
            return
        if self.item_effects == "auto":  # nothing is wrong: it is there for those who look
            logger.info(NOT_SHARED)
        else:
            warnings.warn(NOT_SHARED, UserWarning, stacklevel=6)

    def _learn(
        self,
        tasks: Responses,
        likelihood: Likelihood,
        data: TrainingData,
        coordinates: Design,
        *,
        rough: bool = False,
    ) -> tuple[PriorFit, CovariateEffects | None]:
        n_weights = coordinates.n_weights
        teach: Callable[..., PriorFit] = learn
        if isinstance(tasks, ItemEffects):
            asked = 0 if rough else self.n_item_factors
            teach = partial(learn_crossed, n_factors=None if isinstance(asked, str) else int(asked))
        elif data.about.user_features is None:
            teach = partial(learn, may_sample=True)
        with both_callbacks(self, self.callback) as callback:
            learning = partial(
                teach,
                tasks,
                n_weights,
                coordinates.size,
                self._asked_groups(n_weights),
                likelihood=likelihood,
                covariance=self.covariance,
                centre=self._centre(coordinates),
                tol=max(self.tol, _ROUGH) if rough else self.tol,
                max_iter=self.max_iter,
                callback=callback,
            )
            about = data.about
            return learn_with_people(
                about.user_features, about.user_ids, coordinates, tasks, learning, self.tol
            )

    def _choose_width(self, loss: PriorLoss, data: TrainingData) -> tuple[bool, int | None]:
        """Return whether to learn in the space of rows, else how many directions are kept."""
        return choose_width(
            self.wide,
            data.n_directions,
            each_feature=not self._specification().is_plain,
            matrices=self.covariance in {"full", "diagonal"}
            or data.about.user_features is not None
            or not loss.rows_are_items
            or self.item_effects is True,
            shared=self.item_effects == "auto" and loss.takes_items and data.is_shared,
        )

    def _learn_wide(
        self,
        loss: PriorLoss,
        data: TrainingData,
        likelihood: Likelihood,
        coordinates: Design,
    ) -> tuple[PriorFit, Responses, Design]:
        """Learn in the space of rows; return what was learned in a few coordinates."""
        said = loss.prepare(data.all_rows(), likelihood)
        with both_callbacks(self, self.callback) as callback:
            return learn_in_rows(
                loss,
                said,
                coordinates,
                self._asked_groups(coordinates.n_weights),
                likelihood=likelihood,
                centre=self._centre(coordinates),
                tol=self.tol,
                max_iter=self.max_iter,
                callback=callback,
            )

    def _centre(self, coordinates: Design) -> Float | float:
        """Return the consensus that is known already, in coordinates."""
        if self.consensus is None:
            return 0.0
        weights = np.asarray(self.consensus, dtype=np.float64)
        if weights.shape != coordinates.scale.shape:
            raise ValueError(
                f"consensus has shape {weights.shape}, but there are {len(coordinates.scale)} "
                "features: give one weight for each."
            )
        refuse_not_finite(weights[None], "consensus")
        return coordinates.points(weights[None], np.zeros(1))[0, : coordinates.n_weights]

    def _asked_groups(self, n_weights: int) -> int | None:
        if isinstance(self.n_groups, str):
            return None
        if self.n_groups > n_weights:
            raise ValueError(
                f"n_groups is {self.n_groups}, but the items differ in {n_weights} direction(s) "
                f'only. Choose from 0 to {n_weights}, or "auto".'
            )
        return int(self.n_groups)

    def _warn_if_unfinished(self, learned: PriorFit) -> None:
        if learned.converged:
            return
        how = "Interrupted" if learned.interrupted else "Stopped"
        warnings.warn(
            f"{how} after {len(learned.trace) - 1} steps, before a step changed the objective by "
            f"less than tol={self.tol:g}: these are the best weights so far.",
            ConvergenceWarning,
            stacklevel=6,
        )


def _shifts(traits: CovariateEffects | None, data: TrainingData) -> Float | None:
    """Return how far everybody's mean is from that of all, by their covariates."""
    about = data.about
    return None if traits is None else traits.shifts(about.user_features, about.user_ids)
