"""Choose the number of item factors by held-out labels, and fit users and items roughly.

The number of factors has the lowest loss of held-out labels, if that is significantly lower than
without factors: see `model_selection.is_lower`. Needless factors vanish, so the search ends when
no more of them stay, or when two rungs in turn have not lowered the loss.

With many features, labels are few for all of Omega: it then predicts worse than no weights of
features at all, and with factors worse still. So weights are shrunk while factors are added, and
factors have to predict better than the few directions that would be used instead.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from likeminds._util.array_types import Bool, Float
from likeminds._util.per_user_arrays import CollectedRows
from likeminds.mixed_model.gaussian_prior import ROUNDING
from likeminds.mixed_model.item_effects.em_steps import ItemMarginalLikelihood, step_both
from likeminds.mixed_model.item_effects.item_responses import (
    ItemRows,
    SparseItemSums,
)
from likeminds.mixed_model.laplace import EStepParams, WarmStart, WarmStarts
from likeminds.mixed_model.likelihoods import LogisticLikelihood, RowLikelihood
from likeminds.mixed_model.marginal_likelihood import (
    CovarianceStructure,
    PriorModel,
)
from likeminds.mixed_model.model_selection import (
    NOTICED,
    choose_rank,
    enough_for_full,
    is_lower,
)
from likeminds.mixed_model.optimisers import (
    ROUGH,
    ROUGH_STEPS,
    EvaluatedModel,
    evaluate_model,
    first_guess,
    follow_ridge,
)
from likeminds.mixed_model.responses import ResponseBlock

# The variance of the weights of a new factor.
_FIRST_VARIANCE = 0.1
# The least variance of weights, at which they change log-odds by a tenth; less has vanished.
_LEAST_VARIANCE = 0.01
# Numbers of factors tried.
_RUNGS = (1, 2, 4, 8, 16, 32)
# The share of factors' uncertainty that is penalised: with less, spurious factors are found, and
# with more, real ones are lost.
_SHARE = 0.6
# If labels are few for all of Omega, as many pseudo-users as users shrink the weights.
_SHRUNK = CovarianceStructure(pseudo=1.0)
# The gain per label that counts, a thousandth of a bit: vanishing factors gain less, but for
# almost every user, so a standard error alone would accept them.
_NOTICED = 0.1 * NOTICED


def _with_factors(
    objective: ItemMarginalLikelihood, model: PriorModel, n_more: int
) -> tuple[ItemMarginalLikelihood, PriorModel]:
    """Add factors: the leading directions of the labels' residuals."""
    responses, items = objective.item_responses, objective.item_responses.items
    factors = np.hstack([items.factors, _leading(objective, n_more)])
    old, r = items.n_factors, factors.shape[1]
    covariance = np.zeros((len(factors), r, r))
    covariance[:, :old, :old] = items.factor_covariance
    new = np.arange(old, r)
    precision = 1.0 + LogisticLikelihood.curvature_bound * _FIRST_VARIANCE * responses.counts
    covariance[:, new, new] = 1.0 / precision[:, None]
    prior = model.prior
    for _ in range(n_more):
        prior = prior.with_coordinate(0.0, np.sqrt(_FIRST_VARIANCE))
    bigger = replace(
        objective.with_items(
            replace(items, factors=factors, factor_covariance=covariance, share=_SHARE)
        ),
        unit=np.append(objective.unit, first_guess(n_more, 0)),
        warm_starts=objective.warm_starts.copy(),
    )
    return bigger, replace(model, prior=prior)


def have_not_vanished(objective: ItemMarginalLikelihood, model: PriorModel) -> Bool:
    """Return which factors have weights that differ between users."""
    return np.asarray(model.prior.covariance.diagonal()[objective.n_free :] >= _LEAST_VARIANCE)


def without_vanished(
    objective: ItemMarginalLikelihood, model: PriorModel
) -> ItemMarginalLikelihood:
    """Leave vanished factors out of the objective and its model."""
    items, prior = objective.item_responses.items, model.prior
    kept = have_not_vanished(objective, model)
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
    model = replace(model, prior=prior)
    return replace(objective.with_items(items), unit=objective.unit[stays], model=model)


def _leading(objective: ItemMarginalLikelihood, n_factors: int) -> Float:
    """Return the leading right singular vectors of the residuals, users x items, mean square 1.

    Only products of the residuals' square, items x items, with a few vectors are needed. If all
    residuals are zero, so are the factors.
    """
    responses = objective.item_responses
    n_items = len(responses.items.effects)

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


@dataclass(frozen=True)
class HeldOut:
    """The losses of held-out labels, summed by user, and how many labels they are."""

    losses: Float
    n_labels: int

    @property
    def total(self) -> float:
        """The sum of all losses."""
        return float(self.losses.sum())


def held_out_losses(objective: ItemMarginalLikelihood, model: PriorModel) -> HeldOut:
    """Return the losses of held-out labels under a model."""
    found: CollectedRows
    found, _ = objective.responses.map_reduce(
        _block_losses, objective.e_step_params(model), objective.warm_starts.own
    )
    losses, counts = found.in_order()
    return HeldOut(losses, int(counts.sum()))


def _block_losses(
    block: ResponseBlock, params: EStepParams, start: WarmStart | None
) -> tuple[CollectedRows, None]:
    """Return the losses of a block's users."""
    mode, responses, likelihood = params.mode_of(block, start), block.responses, params.likelihood
    assert isinstance(responses, ItemRows)
    assert responses.left_out is not None
    assert isinstance(likelihood, RowLikelihood)
    data = responses.labels.data(block.number)  # with the weights of all labels
    out = responses.left_out[data.places]
    each = likelihood.response_losses(mode.eta, data)
    losses = np.where(out, data.weight * each, 0.0).sum(axis=1)
    n_out = out[:, :: data.set_size].sum(axis=1)
    return CollectedRows([data.users], [[losses, n_out]]), None


@dataclass(frozen=True)
class FitState:
    """The state of the fit: the objective holds the items, ``at`` the model."""

    objective: ItemMarginalLikelihood
    at: EvaluatedModel

    @classmethod
    def first(cls, objective: ItemMarginalLikelihood, model: PriorModel) -> "FitState":
        """Return the state at a model."""
        return cls(objective, evaluate_model(objective, model))


def choose_factors(start: ItemMarginalLikelihood, n_factors: int | None) -> FitState:
    """Fit roughly, with ``n_factors`` or, if None, as many as lower the held-out loss."""
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


def with_shrinkage(start: ItemMarginalLikelihood, n_factors: int) -> ItemMarginalLikelihood:
    """Return the objective with the structure of Omega that selection of factors would use."""
    if not (n_factors and _has_few_labels(start)):
        return start
    return replace(start, structure=_with_any_factors(start).objective.structure)


def _has_few_labels(start: ItemMarginalLikelihood) -> bool:
    """Return whether labels are few for the whole of Omega."""
    responses = start.item_responses
    return start.n_weights > 0 and not enough_for_full(
        start, responses.counts.sum(), responses.n_users
    )


def _with_any_factors(start: ItemMarginalLikelihood) -> FitState:
    """Return a state for all labels, with factors if these lower the loss of held-out labels."""
    responses = start.item_responses
    # The share of labels held out.
    held_out = responses.holding_out(0.15)
    n_items, n_labels = int(responses.labelled.sum()), int(responses.counts.sum())
    # A factor has a parameter per user and item: with fewer labels for each, none would be found.
    if held_out.counts.sum() == n_labels or n_labels < 5 * (responses.n_users + n_items):
        return FitState.first(start, start.model)
    some = replace(start, responses=held_out, warm_starts=WarmStarts())
    state = none = fit_roughly(FitState.first(some, some.model))
    before = held_out_losses(none.objective, none.at.model)
    if _has_few_labels(start):
        few = choose_rank(none.objective, none.at).model
        before = min(before, held_out_losses(none.objective, few), key=lambda losses: losses.total)
        some = replace(some, structure=_SHRUNK, warm_starts=WarmStarts())
        state = fit_roughly(FitState.first(some, some.model))
    best, lowest, n_before, n_worse = state, None, 0, 0
    for rung in [n for n in _RUNGS if n < min(responses.n_users, n_items)]:
        state = _with_rung(state, rung)
        losses = held_out_losses(state.objective, state.at.model)
        n_left = int(have_not_vanished(state.objective, state.at.model).sum())
        n_worse += 1
        if n_left and (lowest is None or losses.total < lowest.total):
            best, lowest, n_worse = state, losses, 0
        if n_worse == 2 or (rung > 1 and n_left <= n_before):  # more factors would vanish, too
            break
        n_before = n_left
    if lowest is None or not is_lower(
        lowest.losses, before.losses, noticed=_NOTICED * lowest.n_labels
    ):  # from the start, as with n_factors=0
        return FitState.first(start, start.model)
    whole = replace(best.objective, responses=best.objective.item_responses.holding_out(0.0))
    return FitState.first(whole, best.at.model)


def _with_rung(state: FitState, n_factors: int) -> FitState:
    more = n_factors - state.objective.n_factors
    return fit_roughly(FitState.first(*_with_factors(state.objective, state.at.model, more)))


def fit_roughly(state: FitState) -> FitState:
    """Fit the whole of Omega and the items, not very exactly."""
    objective, at = state.objective, state.at
    for _ in range(ROUGH_STEPS):
        before = at.value
        objective, at = step_both(objective, at)
        gain = before - at.value
        at = follow_ridge(objective, at)
        if gain <= ROUGH * abs(at.value):
            break
    return FitState(objective, at)
