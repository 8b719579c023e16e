"""Moments of users' posteriors and sums over labels by item: the E-step with item effects."""

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
from likeminds.mixed_model.laplace import (
    EStepParams,
    Moments,
    PosteriorMode,
    WarmStart,
    WarmStarts,
    moments_of,
)
from likeminds.mixed_model.marginal_likelihood import MarginalLikelihood, PriorModel
from likeminds.mixed_model.primal_dual import PosteriorCovariance, information_left
from likeminds.mixed_model.responses import ResponseBlock, RowItems


@dataclass(frozen=True)
class ItemSums:
    """Derivatives of J by the items' effects and factors: sums over labels."""

    # (m,): minus the gradient of J by b_j, and its curvature, users integrated out.
    slope: Float
    known: Float
    crossed: Float  # (m, p): the curvature by b_j and by the mean of z
    slope_of_factors: Float  # (m, r): minus the gradient of J by f_j
    seen: Float  # (m, r, r): the sum over labels of h times the second moment of v_i
    bound: Float  # (m, r, r): the same with the largest h there is


@dataclass(frozen=True)
class ItemEffectMoments(Moments):
    """Moments of the users' posteriors, and the sums by item."""

    sums: ItemSums


def crossed_moments(
    tasks: ItemEffects, terms: EStepParams, warm_starts: WarmStarts
) -> ItemEffectMoments:
    """Return what `laplace.moments` does, with the sums by item."""
    found, warm_starts.own = tasks.map_reduce(_visit_items, terms, warm_starts.own)
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
        slope, known, crossed, of_factors, seen, bound = self.items.whole
        r = of_factors.shape[1]
        by_item = ItemSums(
            slope[:, 0], known[:, 0], crossed, of_factors, unpacked(seen, r), unpacked(bound, r)
        )
        return ItemEffectMoments(**vars(self.users), sums=by_item)


def _visit_items(
    block: ResponseBlock, terms: EStepParams, kept: WarmStart | None
) -> tuple[ItemEffectSums, WarmStart | None]:
    """Return a block's moments and the sums of its items."""
    tasks, prior, mode = block.tasks, terms.prior, terms.mode_of(block, kept)
    assert isinstance(tasks, ItemRows)
    of_block = tasks.of_block(block.number)
    curvature, system, items = mode.derivatives.curvature, mode.system, tasks.items
    places, signed = mode.task.places, tasks.row_items.signed
    assert places is not None
    spread = mode.covariance
    shift = system.shift(spread, curvature)
    found = moments_of(mode, terms.likelihood, spread, shift)
    # Users' means are not their modes: neither is the slope by what is added to their scores.
    moved = system.eta(shift) - system.offset
    residuals = mode.derivatives.residuals - curvature.grad_half_logdet(spread.variance)
    residuals += curvature.times_root(curvature.times_root_back(moved))
    # The posterior variance of b_j adds to the users': they share its items.
    doubt = np.append(items.effect_variance, 0.0)[of_block.item]
    by_row = signed(curvature.times_root(spread.with_scores), places)
    flat = by_row.reshape(by_row.shape[0] * by_row.shape[1], len(prior.mean))
    shared = (flat * doubt.reshape(-1, 1)).T @ flat
    crossed = of_block.sums_of_rows(np.ones(doubt.shape), flat)
    left = information_left(system, spread, curvature)
    sums = [of_block.sums(signed(residuals, places)), of_block.sums(left), crossed]
    root = prior.root[len(prior.mean) - items.n_factors :]
    sums += _sums_for_factors(mode, spread, of_block, root, crossed, row_items=tasks.row_items)
    found = replace(found, second=found.second + shared)
    return ItemEffectSums(
        found, SparseItemSums(of_block.items, sums, len(items.effects))
    ), mode.warm_start


def _sums_for_factors(
    mode: PosteriorMode,
    spread: PosteriorCovariance,
    of_block: BlockItems,
    root: Float,
    crossed: Float,
    *,
    row_items: RowItems,
) -> list[Float]:
    """Return a block's sums for the factors; ``root`` are the rows of L that make v of z."""
    curvature, system, places = mode.derivatives.curvature, mode.system, mode.task.places
    assert places is not None
    if not len(root):
        return [np.zeros((len(of_block.items), 0))] * 3
    v = system.z(mode.state) @ root.T
    second = system.covariance_along(spread, curvature, root.T) + v[:, :, None] * v[:, None, :]
    upper = packed(second)
    residuals = row_items.signed(mode.derivatives.residuals, places)
    slope = of_block.sums_of_users(residuals, v) - crossed @ root.T
    seen = of_block.sums_of_users(curvature.diagonal, upper)
    bound = row_items.curvature_at(places) * mode.task.weight
    return [slope, seen, of_block.sums_of_users(bound, upper)]


@dataclass(frozen=True)
class ItemMarginalLikelihood(MarginalLikelihood):
    """The objective J with item effects and factors, whose posteriors ``tasks`` has."""

    @property
    def crossed(self) -> ItemEffects:
        """The labels with their items."""
        assert isinstance(self.tasks, ItemEffects)
        return self.tasks

    def e_step(self, model: PriorModel) -> ItemEffectMoments:
        """Find the mode of each user, and return moments and sums by item."""
        return crossed_moments(self.crossed, self.e_step_params(model), self.warm_starts)

    @property
    def n_factors(self) -> int:
        """How many coordinates, the last ones, weigh item factors."""
        return self.crossed.items.n_factors

    def item_penalty(self, found: Moments) -> float:
        """Return the items' part of J."""
        assert isinstance(found, ItemEffectMoments)
        return self.crossed.items.cost(found.sums.known, self.crossed.labelled)

    def information_about_mean(self, model: PriorModel, found: Moments) -> Float:
        """Return the information about the mean, shape (p, p), items integrated out."""
        assert isinstance(found, ItemEffectMoments)
        inverse, crossed = model.prior.inverse_root, found.sums.crossed
        known_of_items = found.sums.known + 1.0 / self.crossed.items.variance
        held = super().information_about_mean(model, found)
        # In z, and then turned: items are many more than coordinates.
        held -= inverse.T @ (crossed.T @ (crossed / known_of_items[:, None])) @ inverse
        return held
