"""Fit `HierarchicalRanker` to labels in memory, on disk or on a cluster."""

import logging
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from likeminds._util.array_types import Float
from likeminds._util.checks import refuse_not_finite
from likeminds._util.map_reduce import one_blas_thread
from likeminds.choice_models.importance_sampling import refuse_many_draws
from likeminds.choice_models.simulated_likelihood import refine
from likeminds.mixed_model.choice_probabilities import calibrate_choices
from likeminds.mixed_model.design import Design
from likeminds.mixed_model.extensions.covariate_effects import (
    CovariateEffects,
    learn_with_covariates,
)
from likeminds.mixed_model.fit_items import learn_crossed
from likeminds.mixed_model.fit_prior import learn
from likeminds.mixed_model.item_effects.feature_regression import (
    MOST_FEATURES,
    regress_items_on_features,
    with_weights,
)
from likeminds.mixed_model.item_effects.item_responses import NOT_SHARED, ItemEffects
from likeminds.mixed_model.likelihoods import Likelihood, calibrate_variance
from likeminds.mixed_model.losses import ALL_LOSSES, PriorLoss
from likeminds.mixed_model.marginal_likelihood import NO_WEIGHTS
from likeminds.mixed_model.model_selection import labels_for_full
from likeminds.mixed_model.optimisers import PriorFit
from likeminds.mixed_model.ordinal import Graded
from likeminds.mixed_model.ordinal_responses import DavidsonLikelihood, refine_likelihood
from likeminds.mixed_model.responses import Responses
from likeminds.mixed_model.user_posteriors import posterior_of
from likeminds.mixed_model.wide_fit import learn_wide
from likeminds.rankers.loss_selection import choose_grade_loss, users_weigh_features
from likeminds.rankers.prior_ranker import PriorRanker
from likeminds.rankers.probabilities import learn_grading
from likeminds.rankers.ranker import both_callbacks
from likeminds.rankers.training_data import TrainingData

logger = logging.getLogger(__name__)

# Rounds of refining the likelihood of grades and ties, and the tolerance of their fits.
_ROUNDS, _ROUGH = 2, 1e-3
# With more directions than this, the prior is learned in the space of rows, or in this many
# directions. The second limit holds with item effects.
WIDE, _WIDE_SHARED = 256, 512
# Rows of choice sets that calibration uses.
_MOST_ROWS = 20_000


@one_blas_thread()
def fit(ranker: PriorRanker, data: TrainingData, chosen: str | None = None) -> None:
    """Fit prior and posteriors; ``chosen`` is the loss of grades that an earlier fit selected."""
    # Validate: the loss, and labels of both classes.
    loss = _choose_loss(ranker, data, chosen)
    data.refuse_one_class(informs=loss.one_class_informs)
    simulated = ranker._simulation()
    if simulated is not None:
        n_varying = data.table.n_features - len(simulated.fixed)
        refuse_many_draws(simulated.n_draws, len(data.counts.user_ids), n_varying)
    ranker.loss_, ranker.positive_share_ = loss.name, data.counts.n_positive / data.counts.n_labels
    has_items = _have_effects(ranker, loss, data)
    ranker.wide_, most = choose_width(ranker, loss, data, has_items=has_items)
    # Design: coordinates of rows, for weights of users or for regressions of items alone.
    is_scaled, intercept = ranker.standardize, loss.has_intercept
    design = data.coordinates(
        standardize=is_scaled, intercept=intercept, every=ranker.wide_, most=most
    )
    items_only = _describe_items_only(ranker, data, design, has_items=has_items)
    weighed = design.without_weights() if items_only else design
    # Select: the likelihood. Structure of Omega and factors are selected on the way to the optimum.
    respond = partial(data.responses, loss, items=has_items)
    likelihood = _likelihood(ranker, loss, data, respond, weighed)
    # Optimise: minus the penalised log marginal likelihood, by Laplace's method or simulated.
    effects = None
    if ranker.wide_:
        learned, responses, design = _optimise_wide(ranker, loss, data, likelihood, design)
    else:
        responses = respond(likelihood, weighed)
        learned, effects = _optimise(ranker, responses, likelihood, data, weighed)
    if items_only:
        learned = with_weights(learned, design.n_weights)
        effects = None if effects is None else effects.with_weights(design.n_weights)
        responses = respond(likelihood, design)
    shifts = _shifts(effects, data)
    if simulated is not None:
        maximise = partial(refine, simulated, learned, responses.collected(), design)
        with both_callbacks(ranker, ranker.callback) as callback:
            learned = maximise(shifts=shifts, max_iter=ranker.max_iter, callback=callback)
    elif isinstance(likelihood, DavidsonLikelihood) and not learned.interrupted:
        refined = refine_likelihood(responses, learned, data.counts.n_labels, shifts)
        learned = replace(learned, model=replace(learned.model, likelihood=refined))
    ranker._interrupted = learned.interrupted
    _warn_if_unfinished(ranker, learned)
    # Finalise: the steps after the optimum.
    learned, responses, transform = finalise(ranker, learned, responses, data, design)
    effects = None if effects is None else effects.transformed(transform)
    ranker._set_prior(learned, design, effects)
    if simulated is not None:
        ranker.prior_ = simulated.constrain(ranker.prior_)
    # Posteriors of users, in this process or where their labels are.
    points = _posteriors(ranker, data, responses, learned)
    del responses, learned  # free memory for the levels of many users
    if points is not None:
        ranker._set_levels(points)
    _calibrate(ranker, loss, data)


def finalise(
    ranker: PriorRanker, learned: PriorFit, responses: Responses, data: TrainingData, design: Design
) -> tuple[PriorFit, Responses, Float]:
    """Regress item effects and factors on features; also return the matrix of coordinates.

    Further optimisation would undo this, as users' weights can absorb the effects of features.
    """
    ranker.final_steps_ = []
    if learned.items is None or not isinstance(responses, ItemEffects):
        return learned, responses, np.eye(len(learned.model.prior.mean))
    labelled = np.flatnonzero(responses.labelled)
    learned = replace(learned, items=learned.items.take(labelled))
    n_groups = _requested_groups(ranker, design.n_weights)
    learned, transform = regress_items_on_features(
        learned, data.item_features(), responses.counts[labelled], design
    )
    learned = learned if n_groups is None else replace(learned, n_groups=n_groups)
    assert learned.items is not None
    ranker.final_steps_.append("regress_items_on_features")
    return learned, responses.with_items(learned.items.of(data.table.item_ids)), transform


def _calibrate(ranker: PriorRanker, loss: PriorLoss, data: TrainingData) -> None:
    """Fit the model of grades given scores, or the scale of the predictive variance."""
    ranker.grading_, ranker.variance_scale_ = None, None
    if ranker._is_trial:
        return
    if data.counts.grades is not None and loss.has_intercept:
        ranker.grading_ = learn_grading(ranker, data)
        ranker.final_steps_.append("calibrate_grades")
        return
    if ranker.loss_ in {"choice", "mixed"}:
        n_users = len(ranker.users_)
        most = int(np.ceil(n_users * min(1.0, _MOST_ROWS / data.counts.n_labels)))
        some = np.unique(np.linspace(0, n_users - 1, most).astype(np.intp))
        ranker.variance_scale_ = calibrate_choices(ranker.newcomer, data.rows_of(some))
    elif ranker.loss_ == "logistic":
        scored = data.scored_by(ranker)
        given = scored.annotations.labels, scored.scores, scored.variances
        ranker.variance_scale_ = calibrate_variance(*given, scored.annotations.weights)
    if ranker.variance_scale_ is not None:
        ranker.final_steps_.append("calibrate_variance")


def _posteriors(
    ranker: PriorRanker, data: TrainingData, responses: Responses, learned: PriorFit
) -> Float | None:
    """Compute posteriors of users; return their modes, or None if these stay in blocks."""
    ranker.users_ = data.counts.user_ids
    if data.posteriors_in_place is not None:
        data.scored = data.posteriors_in_place(ranker, responses, learned)
        return None
    points, ranker.information_ = posterior_of(
        responses,
        len(ranker.users_),
        ranker.prior_,
        warm_starts=learned.warm_starts,
        rank=ranker.covariance_rank,
        shifts=ranker.prior_.shifts(data.table.user_features, ranker.users_),
        quick=learned.sampling is not None,
    )
    return points


def _choose_loss(ranker: PriorRanker, data: TrainingData, chosen: str | None) -> PriorLoss:
    """Return the loss; for grades, ``chosen`` or the best for held-out users."""
    loss = data.loss(ranker.loss)
    ranker.grade_scores_ = {}
    if ranker.loss != "auto" or data.counts.grades is None or not loss.takes_items:
        return loss
    if chosen is None:
        chosen, ranker.grade_scores_ = choose_grade_loss(ranker, data)
    return ALL_LOSSES[chosen]


def _likelihood(
    ranker: PriorRanker,
    loss: PriorLoss,
    data: TrainingData,
    respond: Callable[[Likelihood, Design], Responses],
    design: Design,
) -> Likelihood:
    """Return the likelihood; for grades and ties, refined by the scores of rough fits."""
    likelihood = data.first_likelihood(loss)
    is_refined = isinstance(likelihood, Graded | DavidsonLikelihood)
    for _ in range(_ROUNDS if is_refined else 0):
        responses = respond(likelihood, design)
        learned, effects = _optimise(ranker, responses, likelihood, data, design, rough=True)
        if learned.interrupted:
            raise KeyboardInterrupt
        n_labels, shifts = data.counts.n_labels, _shifts(effects, data)
        likelihood = refine_likelihood(responses, learned, n_labels, shifts)
    return likelihood


def _describe_items_only(
    ranker: PriorRanker, data: TrainingData, design: Design, *, has_items: bool
) -> bool:
    """Return whether features describe items only, without users' weights.

    With "auto", held-out labels decide, if there are less than a quarter of the labels for a full
    Omega.
    """
    n_weights = design.n_weights
    is_possible = (
        has_items
        and not ranker.wide_
        and n_weights <= MOST_FEATURES
        and ranker.consensus is None
        and data.item_features() is not None
    )
    if ranker.covariance == NO_WEIGHTS.kind and not is_possible:
        raise ValueError(
            'covariance="none" regresses item effects on features. It needs items labelled by '
            f"several users, with 1 to {MOST_FEATURES} features, and no consensus=. Leave "
            'covariance at "auto".'
        )
    return ranker.covariance == NO_WEIGHTS.kind or (
        is_possible
        and ranker.covariance == "auto"
        and ranker.n_groups in {"auto", 0}
        and data.counts.n_labels < labels_for_full(n_weights) // 4
        and (ranker._is_trial or not users_weigh_features(ranker, data))
    )


def _have_effects(ranker: PriorRanker, loss: PriorLoss, data: TrainingData) -> bool:
    """Return whether items have effects; if not, log why, or warn if item_effects=True."""
    may_have = bool(ranker.item_effects) and loss.takes_items
    if ranker._simulation() is not None:
        if ranker.item_effects is True:
            raise ValueError(
                "draws, fixed and signs simulate the likelihood user by user, which is not "
                "possible with item effects. Leave out item_effects=True, or the other "
                "parameters."
            )
        may_have = False
    elif ranker.item_effects not in {False, "auto"} and not loss.takes_items:
        raise ValueError(
            f'item_effects=True is not possible with loss="{loss.name}", which compares pairs of '
            'labels. Leave item_effects at "auto", or change the loss.'
        )
    has_items = may_have and data.is_shared
    if not (has_items or data.table.n_features):
        raise ValueError(
            "These annotations have no features, so the model needs item effects. Item effects "
            "need items that several users labelled, item_effects not False, and a loss other "
            'than "auc".'
        )
    if may_have and not has_items and not ranker._is_trial:
        if ranker.item_effects == "auto":
            logger.info(NOT_SHARED)
        else:
            warnings.warn(NOT_SHARED, UserWarning, stacklevel=6)
    return has_items


def choose_width(
    ranker: PriorRanker, loss: PriorLoss, data: TrainingData, *, has_items: bool
) -> tuple[bool, int | None]:
    """Return whether to learn in the space of rows, and the most directions (or None)."""
    is_simulated, size = ranker._simulation() is not None, data.n_directions
    if ranker.wide is True and is_simulated:
        raise ValueError(
            "wide=True mixes features into directions, but fixed, signs and draws need single "
            "features. Leave out either."
        )
    most = _WIDE_SHARED if has_items and ranker.item_effects == "auto" else WIDE
    if is_simulated or not (ranker.wide and size) or (ranker.wide == "auto" and size <= most):
        return False, None
    # The space of rows has no matrices of directions x directions.
    needs_matrices = (
        ranker.covariance in {"full", "diagonal"}
        or data.table.user_features is not None
        or not loss.rows_are_items
        or ranker.item_effects is True
        or has_items
    )
    return (False, WIDE) if needs_matrices else (True, None)


def _optimise(
    ranker: PriorRanker,
    responses: Responses,
    likelihood: Likelihood,
    data: TrainingData,
    design: Design,
    *,
    rough: bool = False,
) -> tuple[PriorFit, CovariateEffects | None]:
    """Maximise the marginal likelihood over the prior, items and effects of covariates."""
    n_weights, covariates = design.n_weights, data.table.user_features
    learn_prior: Callable[..., PriorFit] = learn
    if isinstance(responses, ItemEffects):
        requested = 0 if rough else ranker.n_item_factors
        n_factors = None if isinstance(requested, str) else int(requested)
        learn_prior = partial(learn_crossed, n_factors=n_factors)
    elif covariates is None:
        learn_prior = partial(learn, may_sample=True)
    with both_callbacks(ranker, ranker.callback) as callback:
        learning = partial(
            learn_prior,
            responses,
            n_weights,
            design.size,
            _requested_groups(ranker, n_weights),
            likelihood=likelihood,
            covariance="auto" if ranker.covariance == NO_WEIGHTS.kind else ranker.covariance,
            centre=_centre(ranker, design),
            tol=max(ranker.tol, _ROUGH) if rough else ranker.tol,
            max_iter=ranker.max_iter,
            callback=callback,
        )
        if covariates is None:
            return learning(), None
        return learn_with_covariates(
            covariates, data.counts.user_ids, design, responses, learning, ranker.tol
        )


def _optimise_wide(
    ranker: PriorRanker,
    loss: PriorLoss,
    data: TrainingData,
    likelihood: Likelihood,
    design: Design,
) -> tuple[PriorFit, Responses, Design]:
    """Optimise in the space of rows; return the fit in a few coordinates."""
    with both_callbacks(ranker, ranker.callback) as callback:
        return learn_wide(
            loss,
            loss.prepare(data.all_rows(), likelihood),
            design,
            _requested_groups(ranker, design.n_weights),
            likelihood=likelihood,
            centre=_centre(ranker, design),
            tol=ranker.tol,
            max_iter=ranker.max_iter,
            callback=callback,
        )


def _centre(ranker: PriorRanker, design: Design) -> Float | float:
    """Return the given consensus, in coordinates."""
    if ranker.consensus is None:
        return 0.0
    weights = np.asarray(ranker.consensus, dtype=np.float64)
    if weights.shape != design.scale.shape:
        raise ValueError(
            f"consensus has shape {weights.shape}, but there are {len(design.scale)} "
            "features. Pass one weight for each."
        )
    refuse_not_finite(weights[None], "consensus")
    return design.points(weights[None], np.zeros(1))[0, : design.n_weights]


def _requested_groups(ranker: PriorRanker, n_weights: int) -> int | None:
    if isinstance(ranker.n_groups, str):
        return None
    if ranker.n_groups > n_weights:
        raise ValueError(
            f"n_groups is {ranker.n_groups}, but the items differ in only {n_weights} "
            f'direction(s). Choose from 0 to {n_weights}, or "auto".'
        )
    return int(ranker.n_groups)


def _warn_if_unfinished(ranker: PriorRanker, learned: PriorFit) -> None:
    if learned.converged:
        return
    how = "Interrupted" if learned.interrupted else "Stopped"
    warnings.warn(
        f"{how} after {len(learned.trace) - 1} steps, before a step changed the objective by "
        f"less than tol={ranker.tol:g}. The weights are the best so far.",
        ConvergenceWarning,
        stacklevel=6,
    )


def _shifts(effects: CovariateEffects | None, data: TrainingData) -> Float | None:
    """Return the shift of each user's prior mean by covariates."""
    if effects is None:
        return None
    return effects.shifts(data.table.user_features, data.counts.user_ids)
