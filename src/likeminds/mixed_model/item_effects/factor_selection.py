"""Choose the number of item factors by held-out labels, and fit users and items roughly.

The number of factors has the lowest loss of held-out labels, if that is lower than without factors
by more than chance explains: see `model_selection.is_lower`. Needless factors shrink to nothing, so
the search ends where more of them neither lower the loss nor stay.

With many features, labels are few for all of Omega: it then predicts worse than no weights of
features at all, and with factors worse still. There, weights are shrunk while factors are added,
and factors have to predict better than the few directions that would be used instead.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from likeminds._util.array_types import Bool, Float
from likeminds._util.per_user_arrays import CollectedRows
from likeminds.mixed_model.item_effects.item_responses import CURVATURE_BOUND, ItemEffects, ItemRows
from likeminds.mixed_model.item_effects.m_step import step_both
from likeminds.mixed_model.item_effects.scatter_sums import SparseItemSums
from likeminds.mixed_model.laplace import EStepParams, WarmStart, WarmStarts
from likeminds.mixed_model.likelihoods import RowLikelihood
from likeminds.mixed_model.marginal_likelihood import (
    CovarianceStructure,
    MarginalLikelihood,
    PriorModel,
)
from likeminds.mixed_model.model_selection import (
    NOTICED,
    choose_rank,
    enough_for_full,
    is_lower,
)
from likeminds.mixed_model.numerics import ROUNDING
from likeminds.mixed_model.optimisers import (
    ROUGH,
    ROUGH_STEPS,
    EvaluatedModel,
    evaluate_model,
    follow_ridge,
)
from likeminds.mixed_model.responses import ResponseBlock

# The variance of the weights of a new factor.
_FIRST_VARIANCE = 0.1
# The unit of these weights: see `MarginalLikelihood`.
FIRST_UNIT = 0.5
# Weights with less variance than this are nothing: they change log-odds by less than a tenth.
NOTHING = 0.01


@dataclass(frozen=True)
class FactorStart:
    """An objective and a model to start from."""

    objective: MarginalLikelihood
    model: PriorModel


def with_factors(
    objective: MarginalLikelihood, model: PriorModel, n_more: int, share: float
) -> FactorStart:
    """Add factors: the leading directions of the labels' residuals."""
    tasks = objective.tasks
    assert isinstance(tasks, ItemEffects)
    items = tasks.items
    factors = np.hstack([items.factors, _leading(objective, n_more)])
    r = factors.shape[1]
    unsure = np.zeros((len(factors), r, r))
    old = items.n_factors
    unsure[:, :old, :old] = items.factor_covariance
    known = 1.0 + CURVATURE_BOUND * _FIRST_VARIANCE * tasks.counts
    for new in range(old, r):
        unsure[:, new, new] = 1.0 / known
    items = replace(items, factors=factors, factor_covariance=unsure, share=share)
    prior = model.prior
    for _ in range(n_more):
        prior = prior.with_coordinate(0.0, np.sqrt(_FIRST_VARIANCE))
    unit = np.append(objective.unit, np.full(n_more, FIRST_UNIT))
    bigger = replace(
        objective,
        tasks=tasks.with_items(items),
        unit=unit,
        warm_starts=objective.warm_starts.copy(),
    )
    return FactorStart(bigger, replace(model, prior=prior))


def are_there(objective: MarginalLikelihood, model: PriorModel, least: float) -> Bool:
    """Return which factors have not shrunk to nothing, as users weigh them."""
    return np.asarray(model.prior.covariance.diagonal()[objective.n_free :] >= least)


def without_vanished(objective: MarginalLikelihood, model: PriorModel, least: float) -> FactorStart:
    """Leave out the factors that have shrunk to nothing."""
    tasks, kept = objective.tasks, are_there(objective, model, least)
    assert isinstance(tasks, ItemEffects)
    items, prior = tasks.items, model.prior
    items = replace(
        items,
        factors=items.factors[:, kept],
        factor_covariance=items.factor_covariance[:, kept][:, :, kept],
    )
    stays = np.append(np.ones(objective.n_free, dtype=np.bool_), kept)
    prior = replace(
        prior,
        mean=prior.mean[stays],
        loadings=prior.loadings[stays],
        residual=prior.residual[stays],
    )
    smaller = replace(objective, tasks=tasks.with_items(items), unit=objective.unit[stays])
    return FactorStart(smaller, replace(model, prior=prior))


def _leading(objective: MarginalLikelihood, n_factors: int) -> Float:
    """Return the leading right singular vectors of the residuals, users x items, mean square 1.

    Only the products of the residuals' square, items x items, with a few vectors are needed.
    Residuals that are all zero have none: the factors are zero.
    """
    tasks = objective.tasks
    assert isinstance(tasks, ItemEffects)
    n_items = len(tasks.items.effects)

    def squared(vectors: Float) -> Float:
        vectors = vectors.reshape(n_items, -1)
        found: SparseItemSums
        found, _ = tasks.map_reduce(_times_square, vectors, objective.warm_starts.own)
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
    block: ResponseBlock, vectors: Float, kept: WarmStart | None
) -> tuple[SparseItemSums, None]:
    """Return the square of a block's residuals, items x items, times vectors (m, k)."""
    tasks = block.tasks
    assert isinstance(tasks, ItemRows)
    of_block = tasks.of_block(block.number)
    task = tasks.labels.task(block.number)
    weight, places = task.weight, task.places
    assert places is not None
    pull = np.zeros(weight.shape) if kept is None else kept.residuals
    miss = np.abs(pull) / np.maximum(weight, 1e-300)
    # Added to the curvature of a label, by whose root its residual is divided.
    residual = pull / np.sqrt(np.maximum(miss * (1.0 - miss), 0.0) + 0.05)
    residual = tasks.row_items.signed(residual, places)
    by_user = of_block.sums_of_items(residual, vectors[of_block.items])
    squared = of_block.sums_of_users(residual, by_user)
    return SparseItemSums(of_block.items, [squared], len(vectors)), None


# Numbers of factors tried.
_RUNGS = (1, 2, 4, 8, 16, 32)
# The share of factors' uncertainty that is penalised: with less, spurious factors are found, and
# with more, real ones are lost.
_SHARE = 0.6
# Where labels are few for all of Omega, as many pseudo-users as users shrink the weights.
_SHRUNK = CovarianceStructure(pseudo=1.0)
# The gain per label that counts, a thousandth of a bit: vanishing factors gain less, but for
# almost every user, so a standard error alone would accept them.
_NOTICED = 0.1 * NOTICED


@dataclass(frozen=True)
class HeldOut:
    """The losses of held-out labels, summed by user, and how many labels they are."""

    losses: Float
    n_labels: int

    @property
    def total(self) -> float:
        """What all of them cost."""
        return float(self.losses.sum())


def held_out_losses(objective: MarginalLikelihood, model: PriorModel) -> HeldOut:
    """Return what the labels cost that are held out, under a model."""
    found: CollectedRows
    found, _ = objective.tasks.map_reduce(
        _cost, objective.e_step_params(model), objective.warm_starts.own
    )
    losses, counts = found.in_order()
    return HeldOut(losses, int(counts.sum()))


def _cost(
    block: ResponseBlock, terms: EStepParams, kept: WarmStart | None
) -> tuple[CollectedRows, None]:
    """Return the losses of a block's users."""
    mode, tasks, likelihood = terms.mode_of(block, kept), block.tasks, terms.likelihood
    assert isinstance(tasks, ItemRows)
    assert tasks.left_out is not None
    assert isinstance(likelihood, RowLikelihood)
    task = tasks.labels.task(block.number)  # with the weights of all labels
    out = tasks.left_out[task.places]
    each = likelihood.response_losses(mode.eta, task)
    losses = np.where(out, task.weight * each, 0.0).sum(axis=1)
    n_out = out[:, :: task.set_size].sum(axis=1)
    return CollectedRows([task.users], [[losses, n_out]]), None


@dataclass(frozen=True)
class FitState:
    """The state of learning: the objective holds the items, ``EvaluatedModel`` the model."""

    objective: MarginalLikelihood
    at: EvaluatedModel

    @classmethod
    def first(cls, objective: MarginalLikelihood, model: PriorModel) -> "FitState":
        """Return the state at a model."""
        return cls(objective, evaluate_model(objective, model))


def choose_factors(start: MarginalLikelihood, n_factors: int | None) -> FitState:
    """Learn everything roughly, with the number of factors asked for, or as many as there are."""
    if n_factors is not None:
        start = with_shrinkage(start, n_factors)
        state = fit_roughly(FitState.first(start, start.model))
        for rung in [n for n in _RUNGS if n < n_factors] + [n_factors] * (n_factors > 0):
            state = _with_rung(state, rung)
        return state
    state = fit_roughly(_with_any_factors(start))
    if not state.objective.n_factors and state.objective.structure != start.structure:
        return fit_roughly(FitState.first(start, start.model))
    return state


def with_shrinkage(start: MarginalLikelihood, n_factors: int) -> MarginalLikelihood:
    """Return the objective with the pseudo-users beside whom factors would be found."""
    if not (n_factors and _is_too_much(start)):
        return start
    return replace(start, structure=_with_any_factors(start).objective.structure)


def _is_too_much(start: MarginalLikelihood) -> bool:
    """Return whether labels are few for the whole of Omega."""
    tasks = start.tasks
    assert isinstance(tasks, ItemEffects)
    return start.n_weights > 0 and not enough_for_full(start, tasks.counts.sum(), tasks.n_users)


def _with_any_factors(start: MarginalLikelihood) -> FitState:
    """Return a state with factors if held-out labels are predicted better; it is of all labels."""
    tasks = start.tasks
    assert isinstance(tasks, ItemEffects)
    # The share of labels held out.
    held_out = tasks.holding_out(0.15)
    numbers, n_labels = tasks.n_users + int(tasks.labelled.sum()), int(tasks.counts.sum())
    # A factor has a parameter per user and item: with fewer labels for each, none would be found.
    if held_out.counts.sum() == n_labels or n_labels < 5 * numbers:
        return FitState.first(start, start.model)
    some = replace(start, tasks=held_out, warm_starts=WarmStarts())
    state = none = fit_roughly(FitState.first(some, some.model))
    before = _lost(none)
    if _is_too_much(start):
        few = choose_rank(none.objective, none.at).model
        before = min(before, held_out_losses(none.objective, few), key=lambda lost: lost.total)
        some = replace(some, structure=_SHRUNK, warm_starts=WarmStarts())
        state = fit_roughly(FitState.first(some, some.model))
    best, lowest, n_before = state, None, 0
    for rung in _possible(tasks):
        state = _with_rung(state, rung)
        lost, n_left = _lost(state), int(are_there(state.objective, state.at.model, NOTHING).sum())
        if n_left and (lowest is None or lost.total < lowest.total):
            best, lowest = state, lost
        elif rung > 1 and n_left <= n_before:  # more factors would shrink to nothing, too
            break
        n_before = n_left
    chosen = lowest is not None and _is_better(lowest, before)
    if not chosen:  # with all labels from the start, as where none is asked for
        return FitState.first(start, start.model)
    held = best.objective.tasks
    assert isinstance(held, ItemEffects)
    whole = replace(best.objective, tasks=held.holding_out(0.0))
    return FitState.first(whole, best.at.model)


def _lost(state: FitState) -> HeldOut:
    return held_out_losses(state.objective, state.at.model)


def _possible(tasks: ItemEffects) -> list[int]:
    """Return the numbers of factors that there may be."""
    most = min(tasks.n_users, int(tasks.labelled.sum()))
    return [rung for rung in _RUNGS if rung < most]


def _is_better(found: HeldOut, other: HeldOut) -> bool:
    return is_lower(found.losses, other.losses, noticed=_NOTICED * found.n_labels)


def _with_rung(state: FitState, n_factors: int) -> FitState:
    more = n_factors - state.objective.n_factors
    guess = with_factors(state.objective, state.at.model, more, _SHARE)
    return fit_roughly(FitState.first(guess.objective, guess.model))


def fit_roughly(state: FitState) -> FitState:
    """Learn the whole of Omega and the items, not very exactly."""
    objective, at = state.objective, state.at
    for _ in range(ROUGH_STEPS):
        before = at.value
        objective, at = step_both(objective, at)
        gain = before - at.value
        at = follow_ridge(objective, at)
        if gain <= ROUGH * abs(at.value):
            break
    return FitState(objective, at)
