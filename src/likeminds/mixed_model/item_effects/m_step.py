"""The M-step of items: b_j, f_j and their prior, given the users' posteriors.

b_j and the mean of users move together, since both add the same to all scores of an item: the step
of one is conditional on that of the other. The curvature by the b_j is taken as diagonal, their
gradient is exact. Steps that do not lower J are shortened.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from likeminds._util.array_types import Bool, Float
from likeminds._util.per_user_arrays import solve
from likeminds.mixed_model.gaussian_prior import GaussianPrior
from likeminds.mixed_model.item_effects.e_step import ItemEffectMoments, ItemMarginalLikelihood
from likeminds.mixed_model.item_posteriors import ItemPosteriors, update_tau2
from likeminds.mixed_model.marginal_likelihood import FULL, PriorModel
from likeminds.mixed_model.numerics import SHORTER
from likeminds.mixed_model.optimisers import (
    EvaluatedModel,
    ScoringStep,
    StepLength,
    evaluate_model,
    step,
)

Measure = Callable[[ItemMarginalLikelihood, PriorModel], EvaluatedModel]


def step_items(
    objective: ItemMarginalLikelihood, at: EvaluatedModel, measure: Measure
) -> tuple[ItemMarginalLikelihood, EvaluatedModel]:
    """Move items and the mean of users; J, as ``measure`` evaluates it, does not rise."""
    move = _ItemStep(objective, at)
    share = 1.0
    # Items take part in each step of the fit, so their steps may end earlier than others.
    while share > 1e-2:
        items, model = move.to(share)
        moved = objective.with_items(items)
        new = measure(moved, model)
        if new.value <= at.value:
            return moved, new
        share *= SHORTER
    return objective, at


def step_both(
    objective: ItemMarginalLikelihood, at: EvaluatedModel, pace: StepLength | None = None
) -> tuple[ItemMarginalLikelihood, EvaluatedModel]:
    """Move Omega, items and the mean of users at once, or, if J rises, one after the other."""
    move, move_items = ScoringStep(objective, at), _ItemStep(objective, at)
    pace = StepLength.unextended() if pace is None else pace
    for share in dict.fromkeys((pace.factor, 1.0)):
        items, model = move_items.to(share, move.to(share))
        moved = objective.with_items(items)
        new = evaluate_model(moved, model)
        if new.value <= at.value:
            pace.record(share, at.value - new.value)
            return moved, new
    objective, new = step_items(objective, step(objective, at), evaluate_model)
    pace.record(0.0, at.value - new.value)
    return objective, new


class _ItemStep:
    """A step from a model and the posteriors of the items."""

    def __init__(self, objective: ItemMarginalLikelihood, at: EvaluatedModel) -> None:
        responses, found, prior = objective.item_responses, at.moments, at.model.prior
        assert isinstance(found, ItemEffectMoments)
        free, n_weights = objective.n_free, objective.n_weights
        items, sums = responses.items, found.sums
        self._model, self._items, self._sums = at.model, items, sums
        self._labelled = responses.labelled
        self._intercept = n_weights if free > n_weights else None
        precision = sums.information + 1.0 / items.variance
        gradient = sums.gradient - items.effects / items.variance
        gradient = np.where(self._labelled, gradient, 0.0)
        crossed = (sums.crossed @ prior.inverse_root)[:, :free]
        by_mean = (prior.inverse_root.T @ found.first)[:free]
        by_mean[:n_weights] -= at.model.ridge * objective.mean_deviation(at.model)
        by_mean -= crossed.T @ (gradient / precision)
        values, axes = np.linalg.eigh(
            objective.information_about_mean(at.model, found)[:free, :free]
        )
        # Eigenvalues less than this share of the largest are rounding.
        values = np.maximum(values, 1e-9 * values.max(initial=1.0))
        self._mean_step = np.zeros(len(prior.mean))
        self._mean_step[:free] = axes @ ((axes.T @ by_mean) / values)
        self._effect_step = (gradient - crossed @ self._mean_step[:free]) / precision
        if items.n_factors:
            identity = np.eye(items.n_factors)
            by_factors = np.where(self._labelled[:, None], sums.by_factors - items.factors, 0.0)
            self._factor_step = solve(identity + sums.curvature, by_factors[:, :, None])[:, :, 0]
            self._factor_covariance = np.linalg.inv(identity + sums.bound)

    def to(
        self, share: float, moved_to: PriorModel | None = None
    ) -> tuple[ItemPosteriors, PriorModel]:
        """Return items and model after a share of the step; beyond the whole, only f moves on.

        ``moved_to`` is the model with Omega moved, if that moves as well.
        """
        items, model = self._items, self._model if moved_to is None else moved_to
        whole = min(share, 1.0)
        mean = self._model.prior.mean + whole * self._mean_step
        effects = items.effects + whole * self._effect_step
        if self._intercept is not None:
            centre = float(effects[self._labelled].mean())
            effects = np.where(self._labelled, effects - centre, 0.0)
            mean[self._intercept] += centre
        variance = self._variance(effects, whole)
        moved = replace(
            items,
            effects=effects,
            variance=variance,
            effect_variance=1.0 / (self._sums.information + 1.0 / variance),
        )
        prior = replace(model.prior, mean=mean)
        if items.n_factors:
            old = items.factor_covariance
            moved = replace(
                moved,
                factors=items.factors + share * self._factor_step,
                factor_covariance=old + whole * (self._factor_covariance - old),
            )
            moved, prior = in_units(moved, prior, self._labelled)
        return moved, replace(model, prior=prior)

    def _variance(self, effects: Float, share: float) -> float:
        """Return tau^2 after a step."""
        old, information = self._items.variance, self._sums.information[self._labelled]
        variance = old / (1.0 + old * information)
        return update_tau2(old, effects[self._labelled] ** 2 + variance, variance, share)


def with_centred_factors(
    objective: ItemMarginalLikelihood, at: EvaluatedModel
) -> tuple[ItemMarginalLikelihood, PriorModel]:
    """Move the mean factor weight into item effects; scores do not change.

    Weights of f_j have prior mean zero. But if almost all users agree on items, J is least with tau
    near zero and weights of f_j of one sign. Their mean belongs to the item effects b_j, which new
    users and the consensus share.
    """
    items, prior = objective.item_responses.items, at.model.prior
    n_factors = items.n_factors
    if not n_factors:
        return objective, at.model
    average = (prior.root @ at.moments.first)[-n_factors:] / at.moments.n_users
    covariance = prior.covariance[-n_factors:, -n_factors:]
    # The squared mean as a share of the mean square, in the direction where it is largest: above
    # this, weights are almost all of one sign, and below, the mean is noise.
    if average @ np.linalg.solve(covariance, average) <= 0.5:
        return objective, at.model
    information = 1.0 / items.effect_variance - 1.0 / items.variance
    variance = items.variance + float(average @ average)
    moved = replace(
        items,
        effects=items.effects + items.factors @ average,
        effect_variance=1.0 / (information + 1.0 / variance),
        variance=variance,
    )
    centred = _centred(prior, average, is_whole=objective.structure.kind == FULL.kind)
    return objective.with_items(moved), replace(at.model, prior=centred)


def _centred(prior: GaussianPrior, average: Float, *, is_whole: bool) -> GaussianPrior:
    """Subtract the squared mean of the last weights from Omega, which held second moments.

    Unless Omega is estimated as a whole, only its diagonal is corrected.
    """
    mean = np.pad(average, (len(prior.mean) - len(average), 0))
    whitened = prior.inverse_root @ mean
    # At least a twentieth of the second moments remains.
    share = min(1.0, (1.0 - 0.05) / float(whitened @ whitened))
    covariance = prior.covariance - share * np.outer(mean, mean)
    if is_whole:
        centred = GaussianPrior.of_covariance(prior.mean, covariance, prior.beyond)
        return replace(centred, shifts=prior.shifts)
    scale = np.sqrt(covariance.diagonal() / prior.covariance.diagonal())
    return replace(prior, residual=prior.residual * scale)


def in_units(
    items: ItemPosteriors, prior: GaussianPrior, labelled: Bool
) -> tuple[ItemPosteriors, GaussianPrior]:
    """Scale factors to the units of least J; scores do not change."""
    f, T = items.factors[labelled], items.factor_covariance[labelled]
    unit = np.sqrt((f**2).mean(axis=0) / items.share + np.einsum("jaa->a", T) / len(T))
    scaled = replace(
        items,
        factors=items.factors / unit,
        factor_covariance=items.factor_covariance / unit[:, None] / unit,
    )
    # Items without labels keep their prior.
    scaled.factors[~labelled] = 0.0
    scaled.factor_covariance[~labelled] = np.eye(items.n_factors)
    residual = prior.residual.copy()
    residual[-items.n_factors :] *= unit
    return scaled, replace(prior, residual=residual)
