"""EM steps with item effects: sums over labels by item, and b_j, f_j and their prior given these.

In the M-step, b_j and the mean of users move together, since both add the same to all scores of an
item: the step of one is conditional on that of the other. The curvature by the b_j is taken as
diagonal, their gradient is exact. Steps that do not lower J are shortened.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from likeminds._util.array_types import Bool, Float
from likeminds._util.per_user_arrays import solve
from likeminds.mixed_model.gaussian_prior import ROUNDING, GaussianPrior, ItemPosteriors
from likeminds.mixed_model.item_effects.item_responses import (
    BlockItems,
    ItemEffects,
    ItemRows,
    SparseItemSums,
    packed,
    unpacked,
)
from likeminds.mixed_model.laplace import (
    EStepParams,
    Moments,
    PosteriorMode,
    WarmStart,
    WarmStarts,
    moments_of,
)
from likeminds.mixed_model.likelihoods import LogisticLikelihood
from likeminds.mixed_model.marginal_likelihood import MarginalLikelihood, PriorModel
from likeminds.mixed_model.optimisers import (
    SHORTER,
    EvaluatedModel,
    ScoringStep,
    StepLength,
    evaluate_model,
    first_guess,
    step,
    update_tau2,
)
from likeminds.mixed_model.primal_dual import information_left
from likeminds.mixed_model.responses import ResponseBlock

# The variance of the weights of a new factor.
FIRST_VARIANCE = 0.1
# The share of factors' uncertainty that is penalised: with less, spurious factors are found, and
# with more, real ones are lost.
_SHARE = 0.6


@dataclass(frozen=True)
class ItemSums:
    """Derivatives of J by the items' effects and factors: sums over labels."""

    # (m,): minus the gradient of J by b_j, and its curvature, users integrated out.
    gradient: Float
    information: Float
    crossed: Float  # (m, p): the curvature by b_j and by the mean of z
    by_factors: Float  # (m, r): minus the gradient of J by f_j
    curvature: Float  # (m, r, r): the sum over labels of h times the second moment of v_i
    bound: Float  # (m, r, r): the same with the upper bound of h


@dataclass(frozen=True)
class ItemEffectMoments(Moments):
    """Moments of the users' posteriors, and the sums by item."""

    sums: ItemSums


def item_effect_moments(
    responses: ItemEffects, params: EStepParams, warm_starts: WarmStarts
) -> ItemEffectMoments:
    """Return the moments of `laplace.sum_moments`, with the sums by item."""
    found, warm_starts.own = responses.map_reduce(_block_sums, params, warm_starts.own)
    return found.moments


@dataclass
class ItemEffectSums:
    """Moments of some users, with the sums of their items in the order of `ItemSums`."""

    users: Moments
    items: SparseItemSums

    def __iadd__(self, other: "ItemEffectSums") -> "ItemEffectSums":
        self.users += other.users
        self.items += other.items
        return self

    @property
    def moments(self) -> ItemEffectMoments:
        """The moments of users, and the sums by item."""
        gradient, information, crossed, by_factors, *matrices = self.items.whole
        curvature, bound = (unpacked(rows, by_factors.shape[1]) for rows in matrices)
        sums = ItemSums(gradient[:, 0], information[:, 0], crossed, by_factors, curvature, bound)
        return ItemEffectMoments(**vars(self.users), sums=sums)


def _block_sums(
    block: ResponseBlock, params: EStepParams, start: WarmStart | None
) -> tuple[ItemEffectSums, WarmStart | None]:
    """Return a block's moments and the sums of its items."""
    responses, prior, mode = block.responses, params.prior, params.mode_of(block, start)
    assert isinstance(responses, ItemRows)
    of_block = responses.of_block(block.number)
    curvature, system, items = mode.derivatives.curvature, mode.system, responses.items
    places, signed, covariance = mode.data.places, responses.row_items.signed, mode.covariance
    assert places is not None
    shift = system.shift(covariance, curvature)
    moments = moments_of(mode, params.likelihood, covariance, shift)
    # Gradients by offsets of scores are those at users' means, not at their modes.
    moved = system.eta(shift) - system.offset
    residuals = mode.derivatives.residuals - curvature.grad_half_logdet(covariance.variance)
    residuals += curvature.times_root(curvature.times_root_back(moved))
    # The posterior variance of b_j adds to that of users.
    variance = np.append(items.effect_variance, 0.0)[of_block.item]
    by_row = signed(curvature.times_root(covariance.with_scores), places)
    flat = by_row.reshape(by_row.shape[0] * by_row.shape[1], len(prior.mean))
    moments = replace(moments, second=moments.second + (flat * variance.reshape(-1, 1)).T @ flat)
    crossed = of_block.sums_of_rows(np.ones(variance.shape), flat)
    left = information_left(system, covariance, curvature)
    sums = [of_block.sums(signed(residuals, places)), of_block.sums(left), crossed]
    sums += _factor_sums(mode, of_block, prior, crossed, responses)
    by_item = SparseItemSums(of_block.items, sums, len(items.effects))
    return ItemEffectSums(moments, by_item), mode.warm_start


def _factor_sums(
    mode: PosteriorMode,
    of_block: BlockItems,
    prior: GaussianPrior,
    crossed: Float,
    responses: ItemRows,
) -> list[Float]:
    """Return a block's sums for the factors."""
    r, row_items = responses.items.n_factors, responses.row_items
    if not r:
        return [np.zeros((len(of_block.items), 0))] * 3
    root = prior.root[-r:]  # v = its mean + root z
    curvature, system, places = mode.derivatives.curvature, mode.system, mode.data.places
    assert places is not None
    v = prior.means(mode.data.users)[:, -r:] + mode.z @ root.T
    covariance = system.covariance_along(mode.covariance, curvature, root.T)
    second = packed(covariance + v[:, :, None] * v[:, None, :])
    residuals = row_items.signed(mode.derivatives.residuals, places)
    bound = row_items.curvature[places] * mode.data.weight
    return [
        of_block.sums_of_users(residuals, v) - crossed @ root.T,
        of_block.sums_of_users(curvature.diagonal, second),
        of_block.sums_of_users(bound, second),
    ]


@dataclass(frozen=True)
class ItemMarginalLikelihood(MarginalLikelihood):
    """The objective J with item effects and factors, whose posteriors ``responses`` has."""

    def with_items(self, items: ItemPosteriors) -> "ItemMarginalLikelihood":
        """Return the objective with other posteriors of the items."""
        return replace(self, responses=self.item_responses.with_items(items))

    @property
    def item_responses(self) -> ItemEffects:
        """The labels with their items."""
        assert isinstance(self.responses, ItemEffects)
        return self.responses

    def e_step(self, model: PriorModel) -> ItemEffectMoments:
        """Find the mode of each user, and return moments and sums by item."""
        return item_effect_moments(self.item_responses, self.e_step_params(model), self.warm_starts)

    @property
    def n_factors(self) -> int:
        """The number of coordinates, the last ones, that are weights of item factors."""
        return self.item_responses.items.n_factors

    def item_penalty(self, found: Moments) -> float:
        """Return the items' part of J."""
        assert isinstance(found, ItemEffectMoments)
        return self.item_responses.items.cost(found.sums.information, self.item_responses.labelled)

    def information_about_mean(self, model: PriorModel, found: Moments) -> Float:
        """Return the information about the mean, shape (p, p), items integrated out."""
        assert isinstance(found, ItemEffectMoments)
        inverse, crossed = model.prior.inverse_root, found.sums.crossed
        precision = found.sums.information + 1.0 / self.item_responses.items.variance
        information = super().information_about_mean(model, found)
        # The product over items comes first: they are many more than coordinates.
        information -= inverse.T @ (crossed.T @ (crossed / precision[:, None])) @ inverse
        return information


Measure = Callable[[ItemMarginalLikelihood, PriorModel], EvaluatedModel]


def step_items(
    objective: ItemMarginalLikelihood, at: EvaluatedModel, measure: Measure
) -> tuple[ItemMarginalLikelihood, EvaluatedModel]:
    """Move items and the mean of users; J, as ``measure`` evaluates it, does not rise."""
    move = _ItemStep(objective, at)
    share = 1.0
    # Items move in each step of the fit, so their tolerance may be larger than others'.
    while share > 1e-2:
        moved, model = move.to(share)
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
    pace = StepLength(1.0) if pace is None else pace
    for share in dict.fromkeys((pace.factor, 1.0)):
        moved, model = move_items.to(share, move.to(share))
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
        self._objective, self._model, self._items, self._sums = objective, at.model, items, sums
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
    ) -> tuple[ItemMarginalLikelihood, PriorModel]:
        """Return objective and model (``moved_to``, if Omega moves) after a share of the step."""
        items, model = self._items, self._model if moved_to is None else moved_to
        whole = min(share, 1.0)  # beyond that, only f moves on
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
        objective, prior = self._objective, replace(model.prior, mean=mean)
        if items.n_factors:
            old = items.factor_covariance
            moved = replace(
                moved,
                factors=items.factors + share * self._factor_step,
                factor_covariance=old + whole * (self._factor_covariance - old),
            )
            moved, prior, unit = in_units(moved, prior, self._labelled)
            if objective.shifts is not None:
                objective = replace(objective, shifts=objective.shifts.rescaled(unit))
        return objective.with_items(moved), replace(model, prior=prior)

    def _variance(self, effects: Float, share: float) -> float:
        """Return tau^2 after a step."""
        old, information = self._items.variance, self._sums.information[self._labelled]
        variance = old / (1.0 + old * information)
        return update_tau2(old, effects[self._labelled] ** 2 + variance, variance, share)


def in_units(
    items: ItemPosteriors, prior: GaussianPrior, labelled: Bool
) -> tuple[ItemPosteriors, GaussianPrior, Float]:
    """Scale factors to the units of least J, which are returned last; scores do not change."""
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
    return scaled, replace(prior, residual=residual), unit


def with_factors(
    objective: ItemMarginalLikelihood, model: PriorModel, n_more: int
) -> tuple[ItemMarginalLikelihood, PriorModel]:
    """Add factors: the leading directions of the labels' residuals."""
    responses, items = objective.item_responses, objective.item_responses.items
    factors = np.hstack([items.factors, _leading(objective, n_more)])
    old, r = items.n_factors, factors.shape[1]
    covariance = np.zeros((len(factors), r, r))
    covariance[:, :old, :old] = items.factor_covariance
    new = np.arange(old, r)
    precision = 1.0 + LogisticLikelihood.curvature_bound * FIRST_VARIANCE * responses.counts
    covariance[:, new, new] = 1.0 / precision[:, None]
    prior = model.prior
    for _ in range(n_more):
        prior = prior.with_coordinate(0.0, np.sqrt(FIRST_VARIANCE))
    bigger = replace(
        objective.with_items(
            replace(items, factors=factors, factor_covariance=covariance, share=_SHARE)
        ),
        unit=np.append(objective.unit, first_guess(n_more, 0)),
        warm_starts=objective.warm_starts.copy(),
    )
    return bigger, replace(model, prior=prior)


def _leading(objective: ItemMarginalLikelihood, n_factors: int) -> Float:
    """Return the leading right singular vectors of the residuals, users x items, mean square 1."""
    responses, n_items = objective.item_responses, len(objective.item_responses.items.effects)

    def squared(vectors: Float) -> Float:
        vectors = vectors.reshape(n_items, -1)
        found: SparseItemSums
        found, _ = responses.map_reduce(_times_square, vectors, objective.warm_starts.own)
        return found.whole[0]

    if n_factors < n_items - 1:
        square = LinearOperator((n_items, n_items), squared, matmat=squared, dtype=np.float64)
        start = np.random.default_rng(0).standard_normal(n_items)
        if not squared(start).any():  # ARPACK cannot start
            return np.zeros((n_items, n_factors))
        values, vectors = eigsh(square, k=n_factors, v0=start)
    else:
        values, vectors = np.linalg.eigh(squared(np.eye(n_items)))
    strongest = np.argsort(-values)[:n_factors]
    strongest = strongest[values[strongest] > ROUNDING * values.max()]
    factors = np.zeros((n_items, n_factors))
    factors[:, : len(strongest)] = vectors[:, strongest]
    length = np.sqrt((factors**2).mean(axis=0))
    # The sign is arbitrary: the largest is positive.
    largest = np.abs(factors).argmax(axis=0)
    length *= np.where(factors[largest, np.arange(n_factors)] < 0, -1.0, 1.0)
    return np.asarray(factors / np.where(length == 0, 1.0, length))


def _times_square(
    block: ResponseBlock, vectors: Float, start: WarmStart | None
) -> tuple[SparseItemSums, None]:
    """Return the square of a block's residuals, items x items, times vectors (m, k)."""
    responses = block.responses
    assert isinstance(responses, ItemRows)
    of_block = responses.of_block(block.number)
    data = responses.labels.data(block.number)
    weight, places = data.weight, data.places
    assert places is not None
    gradient = np.zeros(weight.shape) if start is None else start.residuals
    error = np.abs(gradient) / np.maximum(weight, 1e-300)
    # Pearson residuals; the constant keeps their denominators off zero.
    residual = gradient / np.sqrt(np.maximum(error * (1.0 - error), 0.0) + 0.05)
    residual = responses.row_items.signed(residual, places)
    by_user = of_block.sums_of_items(residual, vectors[of_block.items])
    squared = of_block.sums_of_users(residual, by_user)
    return SparseItemSums(of_block.items, [squared], len(vectors)), None
