"""Posteriors of new users and new items, given a fitted prior."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit

from likeminds._util.array_types import Bool, Float, FloatArray, Index
from likeminds._util.per_user_arrays import damped_newton, solve
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import compact, lookup
from likeminds.mixed_model.design import PredictionRows
from likeminds.mixed_model.gaussian_prior import ItemPosteriors
from likeminds.mixed_model.laplace import WarmStarts
from likeminds.mixed_model.likelihoods import Slopes
from likeminds.mixed_model.losses import PriorLoss
from likeminds.mixed_model.ordinal_responses import DavidsonLikelihood
from likeminds.mixed_model.posterior import Posterior
from likeminds.mixed_model.user_posteriors import Answered, FittedPrior, Single, posterior_of


@dataclass(frozen=True)
class NewUserPosteriors:
    """Posteriors of new users, given a fitted prior."""

    fitted_prior: FittedPrior
    loss: PriorLoss
    positive_share: float  # of the labels in training
    rank: int  # the largest number of rows of K

    def fold_in(self, annotations: Annotations) -> tuple[Float, Single]:
        """Return each user's mode and matrix K; see `Posterior`."""
        annotations, fitted_prior = self.loss.prepare_new_users(annotations, self.fitted_prior)
        responses, fitted_prior = self.loss.of_newcomers(
            annotations, fitted_prior, self.positive_share
        )
        shifts = fitted_prior.shifts(annotations.user_features, annotations.user_ids)
        points, reduction = posterior_of(
            responses,
            annotations.n_users,
            fitted_prior,
            warm_starts=WarmStarts(),
            rank=self.rank,
            shifts=shifts,
        )
        # Scores do not need the coordinates that only new users have.
        own = slice(self.fitted_prior.design.size, fitted_prior.design.size)
        return np.delete(points, own, axis=1), np.delete(reduction, own, axis=2)

    def answered(self, annotations: Annotations, posterior: Posterior) -> Answered | None:
        """Return the residuals of labelled items, if items have ids; choices have none."""
        if (
            self.fitted_prior.items is None
            or not annotations.has_items
            or annotations.choice_set_codes is not None
        ):
            return None
        annotations, fitted_prior = self.loss.prepare_new_users(annotations, self.fitted_prior)
        users = annotations.user_codes
        eta = posterior.eta(posterior.prediction_rows(annotations.X, annotations.items), users)
        likelihood: Any = fitted_prior.likelihood
        utility = likelihood.utility(eta, annotations.outcomes, users)
        return Answered(users, annotations.items, utility - eta)


def new_item_posteriors(
    posterior: Posterior, annotations: Annotations, users: Index
) -> ItemPosteriors:
    """Return the posteriors of items not in training, from the labels of users.

    Choice sets may also show training items, whose posteriors do not change.
    """
    if posterior.items is None:
        raise ValueError("This model has no item effects (`item_effects_` is False).")
    design, n_rows = posterior.design, len(annotations)
    targets = posterior.prediction_rows(annotations.X, annotations.items)
    is_new = ~targets.is_known(posterior.items)
    item = np.full(n_rows, -1)
    item[is_new], which = compact(annotations.item_codes[is_new], annotations.n_items)
    unknown = replace(posterior.items.prior_of(len(which)), ids=annotations.item_ids[which])
    points = np.vstack([posterior.points, posterior.prior.mean])[users]
    # The factors of new items are zero a priori.
    rows = targets.rows.copy()
    rows[:, design.n_weights : design.size] = 1.0
    slopes, differences = _pointwise(posterior, annotations, users, rows)
    return fold_in(
        unknown,
        item,
        slopes,
        bound=1.0 if annotations.choice_set_codes is None else 2.0,
        weight=np.ones(n_rows) if annotations.weights is None else annotations.weights,
        eta=np.einsum("np,np->n", rows, points) + targets.effects,
        score_variance=posterior.deviation(PredictionRows(differences), users) ** 2,
        v=points[:, design.size :],
    )


def without_choices(
    posterior: Posterior, annotations: Annotations, users: Index
) -> ItemPosteriors | None:
    """Return the posteriors of items without some choices in training, by one Newton step.

    ``posterior`` is that of users without these choices.
    """
    items = posterior.items
    if items is None:
        return None
    targets = posterior.prediction_rows(annotations.X, annotations.items)
    slopes, differences = _pointwise(posterior, annotations, users, targets.rows)
    residuals, h = slopes(posterior.eta(targets, users))
    weight = np.ones(len(annotations)) if annotations.weights is None else annotations.weights
    # What is left of a choice once its user is integrated out.
    variance = posterior.deviation(PredictionRows(differences), users) ** 2
    left = weight / (1.0 + weight * h * variance)
    v = posterior.points[users, posterior.design.size :]
    rows = np.column_stack([np.ones(len(v)), v])
    item, size = lookup(annotations.items, items.ids, "items"), rows.shape[1]
    slope, information = np.zeros((len(items.ids), size)), np.zeros((len(items.ids), size, size))
    np.add.at(slope, item, rows * (left * residuals)[:, None])
    np.add.at(information, item, rows[:, :, None] * rows[:, None, :] * (left * h)[:, None, None])
    covariance = np.zeros(information.shape)
    covariance[:, 0, 0], covariance[:, 1:, 1:] = items.effect_variance, items.factor_covariance
    prior = np.diag(np.append(1.0 / items.variance, np.ones(size - 1)))
    # Choices have no more information than the posterior has, beyond the prior's.
    known, axes = np.linalg.eigh(np.linalg.inv(covariance) - information - prior)
    known = np.maximum(known, 0.0)[:, None]
    covariance = np.linalg.inv(prior + (axes * known) @ axes.transpose(0, 2, 1))
    step = np.einsum("jab,jb->ja", covariance, slope)
    return replace(
        items,
        effects=items.effects - step[:, 0],
        effect_variance=covariance[:, 0, 0],
        factors=items.factors - step[:, 1:],
        factor_covariance=np.ascontiguousarray(covariance[:, 1:, 1:]),
    )


def _pointwise(
    posterior: Posterior, annotations: Annotations, users: Index, rows: Float
) -> tuple[Slopes, Float]:
    """Return the slopes of rows' losses, and the rows less the mean of the others in a set."""
    sets = annotations.choice_set_codes
    if sets is None:
        if annotations.grades is not None and posterior.response_style is not None:
            return posterior.response_style.slopes(annotations.grades, users), rows
        return partial(label_slopes, annotations.labels), rows
    others = np.maximum(np.bincount(sets) - 1, 1)[sets, None]
    total = np.zeros((int(sets.max()) + 1, rows.shape[1]))
    np.add.at(total, sets, rows)
    worst = annotations.picks_worst
    sign = np.ones(len(annotations)) if worst is None else np.where(worst, -1.0, 1.0)
    differences = rows - (total[sets] - rows) / others
    likelihood = posterior.likelihood
    nu = likelihood.nu if isinstance(likelihood, DavidsonLikelihood) else 0.0
    return partial(choice_slopes, annotations.chosen, sets, sign, nu), differences


def label_slopes(positive: Bool, scores: Float) -> tuple[Float, Float]:
    """Return `Slopes` of labels of yes or no; scores are their log-odds."""
    chance = expit(scores)
    return positive - chance, chance * (1.0 - chance)


def choice_slopes(
    chosen: Bool, sets: Index, sign: Float, nu: float, scores: Float
) -> tuple[Float, Float]:
    """Return `Slopes` of choices, row by row; a row that is alone in its set is a label.

    ``nu`` is that of ties of pairs: see `ordinal_responses`.
    """
    signed = sign * scores
    size = np.bincount(sets)
    highest = np.where(size == 1, 0.0, -np.inf)
    np.maximum.at(highest, sets, signed)
    exponentials = np.exp(signed - highest[sets])
    total = np.bincount(sets, weights=exponentials) + (size == 1) * np.exp(-highest)
    mean = np.bincount(sets, weights=signed - highest[sets]) / 2.0
    tie = (size == 2) * nu * np.exp(mean)
    chance = (exponentials + 0.5 * tie[sets]) / (total + tie)[sets]
    # In a pair with ties, the variance of an item's wins lacks a quarter of a tie's chance.
    tied = (tie / (total + tie))[sets]
    return sign * (chosen - chance), chance * (1.0 - chance) - 0.25 * tied


def fold_in(
    unknown: ItemPosteriors,
    item: Index,
    slopes: Slopes,
    *,
    bound: float,
    weight: FloatArray,
    eta: Float,
    score_variance: Float,
    v: Float,
) -> ItemPosteriors:
    """Return the posteriors of new items, given labels; ``eta`` are scores by the prior of items.

    ``bound`` times the curvatures of rows bounds the Hessian. It is 2 if rows share a choice set,
    whose Hessian is diagonally dominant.
    """
    n_items, size = len(unknown.effects), 1 + unknown.n_factors
    new = item >= 0
    item, rows = item[new], np.column_stack([np.ones(new.sum()), v[new]])
    weight, score_variance = weight[new], score_variance[new]
    prior = np.append(1.0 / unknown.variance, np.ones(unknown.n_factors))
    order = np.argsort(item, kind="stable")
    starts = np.searchsorted(item[order], np.arange(n_items))

    def at(state: Float) -> tuple[tuple[Float, Float, Float], None]:
        scores = eta.copy()
        scores[new] += np.einsum("na,na->n", rows, state[item])
        residuals, h = (part[new] for part in slopes(scores))
        h = weight * h
        left = 1.0 / (1.0 + h * score_variance)
        residuals = left * weight * residuals
        slope = np.add.reduceat((rows * residuals[:, None])[order], starts, axis=0) - state * prior
        outer = (rows[:, :, None] * rows[:, None, :]) * (left * h)[:, None, None]
        return (state, slope, np.add.reduceat(outer[order], starts, axis=0)), None

    def step_of(found: tuple[Float, Float, Float]) -> Float:
        _, slope, information = found
        return solve(bound * information + np.diag(prior), slope[:, :, None])[:, :, 0]

    # Steps longer than a few units overshoot if all labels are equal.
    start = np.zeros((n_items, size))
    state, _, information = damped_newton(start, at, step_of, longest=2.0, enough=1e-8)
    covariance: Float = np.asarray(np.linalg.inv(information + np.diag(prior)))
    return replace(
        unknown,
        effects=state[:, 0],
        effect_variance=covariance[:, 0, 0],
        factors=state[:, 1:],
        factor_covariance=np.ascontiguousarray(covariance[:, 1:, 1:]),
    )
