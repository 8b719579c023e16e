"""Choices between models by held-out loss: structure of Omega, directions, item factors.

A larger model replaces a smaller one if it lowers the held-out losses of users by more than chance
or a margin explains: `is_lower` is that rule, for the covariance structure, item factors and the
directions of wide features. The number of directions of Omega has a penalised criterion instead:
all ranks come from one rough fit of all users, so no user is held out.

Needless item factors vanish, so their search ends when no more of them stay, or when two rungs in
turn have not lowered the loss. With many features, labels are few for all of Omega: it then
predicts worse than no weights of features at all, and with factors worse still. So weights are
shrunk while factors are added, and factors have to predict better than a few directions.
"""

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from likeminds._util.array_types import Bool, Float
from likeminds._util.per_user_arrays import CollectedRows
from likeminds.mixed_model.item_effects.em_steps import (
    FIRST_VARIANCE,
    ItemMarginalLikelihood,
    step_both,
    with_factors,
)
from likeminds.mixed_model.item_effects.item_responses import ItemRows
from likeminds.mixed_model.laplace import EStepParams, WarmStart, WarmStarts
from likeminds.mixed_model.likelihoods import RowLikelihood
from likeminds.mixed_model.marginal_likelihood import (
    DIAGONAL,
    FULL,
    LOW_RANK,
    CovarianceStructure,
    MarginalLikelihood,
    PriorModel,
)
from likeminds.mixed_model.optimisers import (
    ROUGH,
    ROUGH_STEPS,
    EvaluatedModel,
    descend,
    evaluate_model,
    fit_roughly,
    follow_ridge,
)
from likeminds.mixed_model.responses import ResponseBlock, sample

M = TypeVar("M", bound=MarginalLikelihood)
# The state of a fit: the objective holds the items.
FitState = tuple[ItemMarginalLikelihood, EvaluatedModel]

# The covariance structure is chosen on at most about this many users, and the prior is fitted to
# a sample of at least twice as many: fewer change the choice, more hardly do.
SAMPLE = 1000
# With fewer users, cross-validation over users is too noisy for a choice.
FEWEST_USERS = 40
# The gain per label that changes how users rank items: a hundredth of a bit.
NOTICED = 0.01 * float(np.log(2.0))
# Relative tolerance of a fold's fit.
_FOLD_TOL = 2e-3
# Numbers of item factors tried.
_RUNGS = (1, 2, 4, 8, 16, 32)
# The least variance of weights, at which they change log-odds by a tenth; less has vanished.
_LEAST_VARIANCE = 0.01
# If labels are few for all of Omega, as many pseudo-users as users shrink the weights.
_SHRUNK = CovarianceStructure(pseudo=1.0)
# Half as many pseudo-users as users, with the variance of new factors, keep weak factors; at most
# eight of them, as sixteen were slow to fit and worse calibrated.
_MOST_WEAK = 8
_KEPT = CovarianceStructure(pseudo=0.5, factor_variance=FIRST_VARIANCE)


def is_lower(losses: Float, others: Float, *, n_errors: float = 1.0, noticed: float = 0.0) -> bool:
    """Return whether held-out losses by user are lower, by standard errors and an amount.

    Examples
    --------
    >>> is_lower(np.array([1.0, 1.2]), np.array([2.0, 2.0]))
    True
    >>> is_lower(np.array([1.0, 2.2]), np.array([2.0, 2.0]))
    False
    """
    gain = others - losses
    if len(gain) < 2:
        return False
    error = float(gain.std(ddof=1)) * np.sqrt(len(gain))
    return bool(gain.sum() > max(n_errors * error, noticed))


@dataclass(frozen=True)
class StructureStart:
    """The covariance structure of Omega, and the model to start from."""

    model: PriorModel
    structure: CovarianceStructure
    n_groups: int
    criterion: list[float]


def choose_structure(
    start: MarginalLikelihood,
    n_groups: int | None,
    covariance: str = "auto",
    at: EvaluatedModel | None = None,
) -> StructureStart:
    """Fit all of Omega roughly, and choose its structure by two-fold cross-validation over users.

    ``covariance`` fixes the structure, ``n_groups`` the number of directions. ``at`` is the rough
    fit, if there is one.
    """
    if n_groups is not None and covariance == "auto":
        covariance = LOW_RANK.kind
    if at is None:
        n_steps = 1 if (n_groups, covariance) == (0, LOW_RANK.kind) else ROUGH_STEPS
        at = fit_roughly(start, n_steps)
    if covariance == DIAGONAL.kind:
        start = replace(start, structure=DIAGONAL, model=_uncorrelated(at.model))
        at = fit_roughly(start, ROUGH_STEPS)
    if n_groups is None:
        few = choose_rank(start, at)
    else:
        few = StructureStart(_truncate(start, at, n_groups), LOW_RANK, n_groups, [])
    if covariance == DIAGONAL.kind:
        return replace(few, model=at.model, structure=start.structure)
    shape = FULL if covariance == FULL.kind else LOW_RANK
    found = at.moments
    if covariance != LOW_RANK.kind and enough_for_full(start, found.comparisons, found.n_users):
        shape = _cross_validate(start, at, few.n_groups, with_few=covariance == "auto")
    if shape != LOW_RANK:
        return replace(few, model=at.model, structure=shape)
    return _with_less_shrinkage(start, at, few) if n_groups is None else few


def choose_rank(start: MarginalLikelihood, at: EvaluatedModel) -> StructureStart:
    """Return the leading directions of Omega that lower the criterion.

    Each has p parameters, which Akaike's criterion counts once. As the strongest of all
    directions, one of pure noise gains up to p, too; and a gain below `NOTICED` per label hardly
    changes rankings. The smaller of the two is counted on top. Two worse ranks end the search.
    """
    size = len(start.unit)
    cost = size + min(size, NOTICED * at.moments.comparisons)
    criterion: list[float] = []
    for rank in range(start.n_weights + 1):
        losses = start.losses(_truncate(start, at, rank))
        criterion.append(float(losses.sum()) + rank * cost)
        if rank - int(np.argmin(criterion)) == 2:
            break
    best = int(np.argmin(criterion))
    return StructureStart(_truncate(start, at, best), LOW_RANK, best, criterion)


def _with_less_shrinkage(
    start: MarginalLikelihood, at: EvaluatedModel, few: StructureStart
) -> StructureStart:
    """Try a tenth of the pseudo-users, which may outweigh users with few labels."""
    if at.moments.comparisons >= len(start.unit) * at.moments.n_users:
        return few
    freer = replace(start, structure=replace(start.structure, pseudo=0.1 * start.structure.pseudo))
    second = choose_rank(freer, fit_roughly(freer, ROUGH_STEPS))
    # With as many directions as before, the model with more shrinkage is the better one.
    finds_more = second.n_groups > few.n_groups and min(second.criterion) < min(few.criterion)
    return second if finds_more else few


def enough_for_full(start: MarginalLikelihood, n_labels: float, n_users: float) -> bool:
    """Return whether there are enough labels and users to learn all of Omega."""
    return n_labels >= labels_for_full(len(start.unit)) and n_users >= _users_for_full(start)


def labels_for_full(size: int) -> int:
    """Return the number of labels that is enough for all of Omega: ten per parameter."""
    return 5 * size * (size + 1)


def _users_for_full(start: MarginalLikelihood) -> float:
    return max(4.0 * len(start.unit), FEWEST_USERS)  # four users per coordinate


def _cross_validate(
    start: MarginalLikelihood, at: EvaluatedModel, n_groups: int, *, with_few: bool
) -> CovarianceStructure:
    """Return the structure with the lowest held-out loss; ``with_few`` tries the low rank, too."""
    labels_each = max(at.moments.comparisons / at.moments.n_users, 1.0)
    # Users of both folds, and their labels, at most: beyond these the choice rarely changes.
    most = int(min(max(20_000 / labels_each, _users_for_full(start)), SAMPLE))
    # Mean and variances hardly depend on the structure; each fold learns correlations anew.
    some = replace(start, responses=sample(start.responses, most), model=_uncorrelated(at.model))
    is_even = np.arange(some.responses.n_users) % 2 == 0
    halves = [only_users(some, half) for half in (is_even, ~is_even)]
    one = _Fold(halves[0], halves[1])
    of_one = one.losses(FULL)
    # The second fold starts from the modes of the first, and from then on from its own.
    halves = [replace(half, warm_starts=half.warm_starts.copy()) for half in halves]
    other = _Fold(halves[1], halves[0])
    best, lowest, folds = FULL, np.concatenate([of_one, other.losses(FULL)]), (one, other)
    low_rank = [fold.losses_of_few(n_groups) for fold in folds] if with_few else None
    before = np.inf
    # Shares of pseudo-users that shrink correlations, tried in turn as long as more are better.
    for share in (0.1, 0.3, 1.0):
        shape = CovarianceStructure(pseudo=share, own=True)
        losses = np.concatenate([fold.losses(shape) for fold in folds])
        if losses.sum() < lowest.sum():
            best, lowest = shape, losses
        if losses.sum() > before:
            break
        before = float(losses.sum())
    # One unit of log-likelihood is enough: all of Omega is shrunk, so it costs little if it is not
    # needed. A standard error on top costs the trolley dilemmas half a point of AUC.
    if low_rank is None or is_lower(lowest, np.concatenate(low_rank), n_errors=0.0, noticed=1.0):
        return best
    return LOW_RANK


@dataclass
class _Fold:
    """Training and held-out users; the next structure starts from the last fit ``at``."""

    train: MarginalLikelihood
    held_out: MarginalLikelihood
    at: EvaluatedModel | None = None

    def losses(self, shape: CovarianceStructure) -> Float:
        """Learn all of Omega, and return the held-out losses."""
        start = replace(self.train, structure=shape)
        self.at = fit_roughly(start, 8, _FOLD_TOL, self.at)
        return self.held_out.losses(self.at.model)

    def losses_of_few(self, n_groups: int) -> Float:
        """Learn so many directions, and return the held-out losses."""
        assert self.at is not None
        start = replace(self.train, model=_truncate(self.train, self.at, n_groups))
        found = descend(start, tol=_FOLD_TOL, max_iter=3)
        return self.held_out.losses(found.model)


def only_users(objective: M, chosen: Bool) -> M:
    """Return the objective of some of the users."""
    return replace(
        objective, responses=objective.responses.of_users(chosen), warm_starts=WarmStarts()
    )


def _truncate(start: MarginalLikelihood, at: EvaluatedModel, rank: int) -> PriorModel:
    return replace(at.model, prior=at.model.prior.truncated(rank, start.n_weights))


def _uncorrelated(model: PriorModel) -> PriorModel:
    return replace(model, prior=model.prior.without_correlations())


def evaluated(objective: ItemMarginalLikelihood, model: PriorModel | None = None) -> FitState:
    """Return the state at a model, by default the objective's own."""
    return objective, evaluate_model(objective, objective.model if model is None else model)


def choose_factors(start: ItemMarginalLikelihood, n_factors: int | None) -> FitState:
    """Fit roughly, with ``n_factors`` or, if None, as many as lower the held-out loss."""
    if n_factors is not None:
        state = fit_items_roughly(evaluated(with_shrinkage(start, n_factors)))
        for rung in [n for n in _RUNGS if n < n_factors] + [n_factors] * (n_factors > 0):
            state = _with_rung(state, rung)
        return state
    state = fit_items_roughly(_with_any_factors(start))
    if not state[0].n_factors and state[0].structure != start.structure:
        return fit_items_roughly(evaluated(start))
    return state


def with_shrinkage(start: ItemMarginalLikelihood, n_factors: int) -> ItemMarginalLikelihood:
    """Return the objective with the structure of Omega that selection of factors would use."""
    if not (n_factors and _has_few_labels(start)):
        return start
    return replace(start, structure=_with_any_factors(start)[0].structure)


def _has_few_labels(start: ItemMarginalLikelihood) -> bool:
    """Return whether labels are few for the whole of Omega."""
    n_labels, n_users = start.item_responses.counts.sum(), start.responses.n_users
    return start.n_weights > 0 and not enough_for_full(start, n_labels, n_users)


def _with_any_factors(start: ItemMarginalLikelihood) -> FitState:
    """Return a state for all labels, with factors if these lower the loss of held-out labels."""
    responses = start.item_responses
    # The share of labels held out.
    held_out = responses.holding_out(0.15)
    n_items, n_labels = int(responses.labelled.sum()), int(responses.counts.sum())
    # A factor has a parameter per user and item: with fewer labels for each, none would be found.
    if held_out.counts.sum() == n_labels or n_labels < 5 * (responses.n_users + n_items):
        return evaluated(start)
    some = replace(start, responses=held_out, warm_starts=WarmStarts())
    state = fit_items_roughly(evaluated(some))
    before, n_out = _held_out_losses(*state)
    if _has_few_labels(start):
        few = replace(state[1], model=choose_rank(*state).model)
        before = min(before, _held_out_losses(state[0], few)[0], key=np.sum)
        state = fit_items_roughly(
            evaluated(replace(some, structure=_SHRUNK, warm_starts=WarmStarts()))
        )
    best, lowest, n_before, n_worse = state, None, 0, 0
    for rung in [n for n in _RUNGS if n < min(responses.n_users, n_items)]:
        state = _with_rung(state, rung)
        losses, _ = _held_out_losses(*state)
        n_left = int(have_not_vanished(state[0], state[1].model).sum())
        n_worse += 1
        if n_left and (lowest is None or losses.sum() < lowest.sum()):
            best, lowest, n_worse = state, losses, 0
        if n_worse == 2 or (rung > 1 and n_left <= n_before):  # more factors would vanish, too
            break
        n_before = n_left
    # A thousandth of a bit per label counts: vanishing factors gain less, but for almost every
    # user, so a standard error alone would accept them.
    noticed = 0.1 * NOTICED * n_out
    if lowest is None or not is_lower(lowest, before, noticed=noticed):
        return evaluated(start)  # from the start, as with n_factors=0
    if not start.n_weights:
        best = _with_weak_factors(best, lowest, noticed)
    whole = replace(best[0], responses=best[0].item_responses.holding_out(0.0))
    return evaluated(whole, best[1].model)


def _with_weak_factors(best: FitState, lowest: Float, noticed: float) -> FitState:
    """Return the state with pseudo-users who keep weak factors, if it lowers the held-out loss."""
    objective, at = best
    n_found, responses = objective.n_factors, objective.item_responses
    n_most = min(_MOST_WEAK, responses.n_users - 1, int(responses.labelled.sum()) - 1)
    objective = replace(objective, structure=_KEPT, warm_starts=objective.warm_starts.copy())
    state, kept, losses = evaluated(objective, at.model), best, lowest
    for rung in [n for n in _RUNGS if n_found <= n <= n_most]:
        state = _with_rung(state, rung) if rung > n_found else fit_items_roughly(state)
        before, losses = losses, _held_out_losses(*state)[0]
        if losses.sum() > before.sum():
            losses = before
            break
        kept = state
    # With one standard error, they were accepted on crowds with few labels, and predicted worse.
    return kept if is_lower(losses, lowest, n_errors=2.0, noticed=noticed) else best


def have_not_vanished(objective: ItemMarginalLikelihood, model: PriorModel) -> Bool:
    """Return which factors have weights that differ between users."""
    return np.asarray(model.prior.covariance.diagonal()[objective.n_free :] >= _LEAST_VARIANCE)


def _with_rung(state: FitState, n_factors: int) -> FitState:
    objective, at = state
    more = n_factors - objective.n_factors
    return fit_items_roughly(evaluated(*with_factors(objective, at.model, more)))


def fit_items_roughly(state: FitState) -> FitState:
    """Fit the whole of Omega and the items roughly."""
    objective, at = state
    for _ in range(ROUGH_STEPS):
        before = at.value
        objective, at = step_both(objective, at)
        gain = before - at.value
        at = follow_ridge(objective, at)
        if gain <= ROUGH * abs(at.value):
            break
    return objective, at


def _held_out_losses(objective: ItemMarginalLikelihood, at: EvaluatedModel) -> tuple[Float, int]:
    """Return the losses of held-out labels by user, and the number of these labels."""
    found: CollectedRows
    found, _ = objective.responses.map_reduce(
        _block_losses, objective.e_step_params(at.model), objective.warm_starts.own
    )
    losses, counts = found.in_order()
    return losses, int(counts.sum())


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
