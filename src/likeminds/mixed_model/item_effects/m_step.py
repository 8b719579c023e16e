"""The items' step: b_j, f_j and their prior, given the users' posteriors.

b_j and the mean of users are found together: both add the same to all scores of an item, and
what is left of one once the other is known is what it moves by. Of the curvature by the b_j, only
the diagonal is kept; of their slope, all. Steps that do not lower J are shortened.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from likeminds._util.array_types import Bool, Float
from likeminds._util.per_user_arrays import solve
from likeminds.mixed_model.gaussian_prior import GaussianPrior
from likeminds.mixed_model.item_effects.e_step import ItemEffectMoments
from likeminds.mixed_model.item_effects.item_responses import ItemEffects
from likeminds.mixed_model.item_posteriors import ItemPosteriors, update_tau2
from likeminds.mixed_model.marginal_likelihood import FULL, MarginalLikelihood, PriorModel
from likeminds.mixed_model.numerics import SHORTER
from likeminds.mixed_model.optimisers import (
    EvaluatedModel,
    ScoringStep,
    StepLength,
    evaluate_model,
    step,
)

Measure = Callable[[MarginalLikelihood, PriorModel], EvaluatedModel]


def step_items(
    objective: MarginalLikelihood, at: EvaluatedModel, measure: Measure
) -> tuple[MarginalLikelihood, EvaluatedModel]:
    """Move items and the mean of users; J, as it is measured, does not rise."""
    move = _ItemStep(objective, at)
    share = 1.0
    # Items take part in each step of learning: their steps are given up earlier than others.
    while share > 1e-2:
        items, model = move.to(share)
        moved = with_items(objective, items)
        new = measure(moved, model)
        if new.value <= at.value:
            return moved, new
        share *= SHORTER
    return objective, at


def step_both(
    objective: MarginalLikelihood, at: EvaluatedModel, pace: StepLength | None = None
) -> tuple[MarginalLikelihood, EvaluatedModel]:
    """Move Omega, items and the mean of users at once, or, if J rises, one after the other."""
    move, move_items = ScoringStep(objective, at), _ItemStep(objective, at)
    pace = StepLength.unextended() if pace is None else pace
    for share in dict.fromkeys((pace.factor, 1.0)):
        items, model = move_items.to(share, move.to(share))
        moved = with_items(objective, items)
        new = evaluate_model(moved, model)
        if new.value <= at.value:
            pace.record(share, at.value - new.value)
            return moved, new
    objective, new = step_items(objective, step(objective, at), evaluate_model)
    pace.record(0.0, at.value - new.value)
    return objective, new


def with_items(objective: MarginalLikelihood, items: ItemPosteriors) -> MarginalLikelihood:
    """Return the objective with other posteriors of the items."""
    assert isinstance(objective.tasks, ItemEffects)
    return replace(objective, tasks=objective.tasks.with_items(items))


class _ItemStep:
    """A step from a model and the posteriors of the items."""

    def __init__(self, objective: MarginalLikelihood, at: EvaluatedModel) -> None:
        tasks, found = objective.tasks, at.moments
        assert isinstance(tasks, ItemEffects)
        assert isinstance(found, ItemEffectMoments)
        self._model, self._items, self._sums = at.model, tasks.items, found.sums
        self._labelled, self._n_free = tasks.labelled, objective.n_free
        self._intercept = objective.n_weights if objective.n_free > objective.n_weights else None
        known = found.sums.known + 1.0 / self._items.variance
        slope = found.sums.slope - self._items.effects / self._items.variance
        slope = np.where(self._labelled, slope, 0.0)
        free, n_weights = objective.n_free, objective.n_weights
        prior = at.model.prior
        crossed = (found.sums.crossed @ prior.inverse_root)[:, :free]
        of_mean = (prior.inverse_root.T @ found.first)[:free]
        of_mean[:n_weights] -= at.model.ridge * objective.mean_deviation(at.model)
        of_mean -= crossed.T @ (slope / known)
        values, axes = np.linalg.eigh(
            objective.information_about_mean(at.model, found)[:free, :free]
        )
        # Eigenvalues less than this share of the largest are rounding.
        values = np.maximum(values, 1e-9 * values.max(initial=1.0))
        self._shift = np.zeros(len(prior.mean))
        self._shift[:free] = axes @ ((axes.T @ of_mean) / values)
        self._growth = (slope - crossed @ self._shift[:free]) / known
        if self._items.n_factors:
            self._set_factors()

    def _set_factors(self) -> None:
        items, sums, identity = self._items, self._sums, np.eye(self._items.n_factors)
        slope = np.where(self._labelled[:, None], sums.slope_of_factors - items.factors, 0.0)
        self._turn = solve(identity + sums.seen, slope[:, :, None])[:, :, 0]
        self._unsure = np.linalg.inv(identity + sums.bound)

    def to(
        self, share: float, moved_to: PriorModel | None = None
    ) -> tuple[ItemPosteriors, PriorModel]:
        """Return items and model after a share of the whole step; beyond it, only f moves on.

        ``moved_to`` is the model with Omega moved, where that moves as well.
        """
        items, model = self._items, self._model if moved_to is None else moved_to
        whole = min(share, 1.0)
        mean = self._model.prior.mean + whole * self._shift
        effects = items.effects + whole * self._growth
        if self._intercept is not None:
            centre = float(effects[self._labelled].mean())
            effects = np.where(self._labelled, effects - centre, 0.0)
            mean[self._intercept] += centre
        variance = self._variance(effects, whole)
        moved = replace(
            items,
            effects=effects,
            variance=variance,
            effect_variance=1.0 / (self._sums.known + 1.0 / variance),
        )
        prior = replace(model.prior, mean=mean)
        if items.n_factors:
            unsure = items.factor_covariance + whole * (self._unsure - items.factor_covariance)
            moved = replace(
                moved, factors=items.factors + share * self._turn, factor_covariance=unsure
            )
            moved, prior = in_units(moved, prior, self._labelled)
        return moved, replace(model, prior=prior)

    def _variance(self, effects: Float, share: float) -> float:
        """Return tau^2 after a step."""
        old, known = self._items.variance, self._sums.known[self._labelled]
        doubt = old / (1.0 + old * known)
        return update_tau2(old, effects[self._labelled] ** 2 + doubt, doubt, share)


def with_centred_factors(
    objective: MarginalLikelihood, at: EvaluatedModel
) -> tuple[MarginalLikelihood, PriorModel]:
    """Give the items what users weigh on average of learned features; scores stay what they are.

    Weights of f_j have mean zero, but one number per item is cheaper than two: where almost all
    want the same of items, J is least with tau near zero and weights of f_j that have one sign.
    What all want is the items' effect, b_j, so new users and the consensus want it, too.
    """
    tasks, prior = objective.tasks, at.model.prior
    assert isinstance(tasks, ItemEffects)
    items, n_factors = tasks.items, objective.n_factors
    if not n_factors:
        return objective, at.model
    average = (prior.root @ at.moments.first)[-n_factors:] / at.moments.n_users
    # The largest share of the mean in any mixture of the weights, whichever way factors are turned.
    spread = prior.covariance[-n_factors:, -n_factors:]
    # Weights whose mean is more than this share of their mean square, along it, are almost all of
    # one sign; what less is due to the mean is noise. Centred, they keep at least this share of
    # them.
    if average @ np.linalg.solve(spread, average) <= 0.5:
        return objective, at.model
    known = 1.0 / items.effect_variance - 1.0 / items.variance
    variance = items.variance + float(average @ average)
    moved = replace(
        items,
        effects=items.effects + items.factors @ average,
        effect_variance=1.0 / (known + 1.0 / variance),
        variance=variance,
    )
    centred = _centred(prior, average, is_whole=objective.structure.kind == FULL.kind)
    return with_items(objective, moved), replace(at.model, prior=centred)


def _centred(prior: GaussianPrior, average: Float, *, is_whole: bool) -> GaussianPrior:
    """Take the mean of the last weights out of their second moments, which Omega has been.

    Where Omega is not learned as a whole, only its diagonal is that of what is left.
    """
    mean = np.pad(average, (len(prior.mean) - len(average), 0))
    whitened = prior.inverse_root @ mean
    share = min(1.0, (1.0 - 0.05) / float(whitened @ whitened))
    covariance = prior.covariance
    left = covariance - share * np.outer(mean, mean)
    if is_whole:
        centred = GaussianPrior.of_covariance(prior.mean, left, prior.beyond)
        return replace(centred, shifts=prior.shifts)
    shorter = np.sqrt(left.diagonal() / covariance.diagonal())
    return replace(prior, residual=prior.residual * shorter)


def in_units(
    items: ItemPosteriors, prior: GaussianPrior, labelled: Bool
) -> tuple[ItemPosteriors, GaussianPrior]:
    """Measure factors in the units in which J is least; scores stay what they are."""
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
