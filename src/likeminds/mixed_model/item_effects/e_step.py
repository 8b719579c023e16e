"""The E-step with item effects: moments of users' posteriors, and sums over labels by item."""

from dataclasses import dataclass, replace

import numpy as np

from likeminds._util.array_types import Float
from likeminds.mixed_model.item_effects.item_responses import ItemEffects, ItemRows
from likeminds.mixed_model.item_effects.scatter_sums import (
    BlockItems,
    SparseItemSums,
    packed,
    unpacked,
)
from likeminds.mixed_model.item_posteriors import ItemPosteriors
from likeminds.mixed_model.laplace import (
    EStepParams,
    Moments,
    PosteriorMode,
    WarmStart,
    WarmStarts,
    moments_of,
)
from likeminds.mixed_model.marginal_likelihood import MarginalLikelihood, PriorModel
from likeminds.mixed_model.primal_dual import information_left
from likeminds.mixed_model.responses import ResponseBlock, RowItems


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
    tasks, prior, mode = block.tasks, params.prior, params.mode_of(block, start)
    assert isinstance(tasks, ItemRows)
    of_block = tasks.of_block(block.number)
    curvature, system, items = mode.derivatives.curvature, mode.system, tasks.items
    places, signed, covariance = mode.task.places, tasks.row_items.signed, mode.covariance
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
    root = prior.root[len(prior.mean) - items.n_factors :]
    sums += _factor_sums(mode, of_block, root, crossed, tasks.row_items)
    by_item = SparseItemSums(of_block.items, sums, len(items.effects))
    return ItemEffectSums(moments, by_item), mode.warm_start


def _factor_sums(
    mode: PosteriorMode, of_block: BlockItems, root: Float, crossed: Float, row_items: RowItems
) -> list[Float]:
    """Return a block's sums for the factors; ``root`` are the rows of L with v = root z."""
    if not len(root):
        return [np.zeros((len(of_block.items), 0))] * 3
    curvature, system, places = mode.derivatives.curvature, mode.system, mode.task.places
    assert places is not None
    v = system.z(mode.state) @ root.T
    covariance = system.covariance_along(mode.covariance, curvature, root.T)
    second = packed(covariance + v[:, :, None] * v[:, None, :])
    residuals = row_items.signed(mode.derivatives.residuals, places)
    bound = row_items.curvature_at(places) * mode.task.weight
    return [
        of_block.sums_of_users(residuals, v) - crossed @ root.T,
        of_block.sums_of_users(curvature.diagonal, second),
        of_block.sums_of_users(bound, second),
    ]


@dataclass(frozen=True)
class ItemMarginalLikelihood(MarginalLikelihood):
    """The objective J with item effects and factors, whose posteriors ``tasks`` has."""

    def with_items(self, items: ItemPosteriors) -> "ItemMarginalLikelihood":
        """Return the objective with other posteriors of the items."""
        return replace(self, tasks=self.item_responses.with_items(items))

    @property
    def item_responses(self) -> ItemEffects:
        """The labels with their items."""
        assert isinstance(self.tasks, ItemEffects)
        return self.tasks

    def e_step(self, model: PriorModel) -> ItemEffectMoments:
        """Find the mode of each user, and return moments and sums by item."""
        return item_effect_moments(self.item_responses, self.e_step_params(model), self.warm_starts)

    @property
    def n_factors(self) -> int:
        """How many coordinates, the last ones, weigh item factors."""
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
