"""The form of Omega: all of it, its diagonal, or a few directions and a residual."""

from dataclasses import dataclass, replace

import numpy as np

from likeminds.mixed_model.cross_validated_structure import choose_shape, may_be_whole
from likeminds.mixed_model.fisher_scoring import EvaluatedModel
from likeminds.mixed_model.lbfgs import ROUGH_STEPS, PriorFit, learn_roughly
from likeminds.mixed_model.marginal_likelihood import (
    DIAGONAL,
    FULL,
    LOW_RANK,
    CovarianceStructure,
    MarginalLikelihood,
    PriorModel,
)

# The share of the pseudo-people that is tried, too.
_FEWER = 0.1
# What a direction has to gain for each label to be noticed: a hundredth of a bit.
_NOTICED = 0.01 * float(np.log(2.0))
# Numbers of directions tried beyond the best one before the search ends.
_PATIENCE = 2


@dataclass(frozen=True)
class StructureStart:
    """The form of Omega, and where to start."""

    model: PriorModel
    shape: CovarianceStructure
    n_groups: int
    criterion: list[float]


def form_of(earlier: PriorFit) -> StructureStart:
    """Return the form of what was learned, to go on from there."""
    return StructureStart(earlier.model, earlier.shape, earlier.n_groups, earlier.criterion)


def choose_form(
    start: MarginalLikelihood,
    n_groups: int | None,
    covariance: str = "auto",
    at: EvaluatedModel | None = None,
) -> StructureStart:
    """Learn the whole of Omega roughly, and see which form it takes.

    That is the one under which people's labels are likeliest if it was learned from others:
    see `judging`. ``covariance`` asks for one of the forms, ``n_groups`` for so many
    directions. ``at`` is where the rough learning ended, if it is done.
    """
    if n_groups is not None and covariance == "auto":
        covariance = LOW_RANK.kind
    if at is None:
        n_steps = 1 if (n_groups, covariance) == (0, LOW_RANK.kind) else ROUGH_STEPS
        at = learn_roughly(start, n_steps)
    if covariance == DIAGONAL.kind:
        start = replace(start, shape=DIAGONAL, model=_diagonal(at.model))
        at = learn_roughly(start, ROUGH_STEPS)
    if n_groups is None:
        few = judge_directions(start, at)
    else:
        few = StructureStart(_truncate(start, at, n_groups), LOW_RANK, n_groups, [])
    if covariance == DIAGONAL.kind:
        return replace(few, model=at.model, shape=start.shape)
    shape = FULL if covariance == FULL.kind else LOW_RANK
    found = at.found
    if covariance != LOW_RANK.kind and may_be_whole(start, found.comparisons, found.n_people):
        shape = choose_shape(start, at, few.n_groups, with_few=covariance == "auto")
    if shape != LOW_RANK:
        return replace(few, model=at.model, shape=shape)
    return _freer(start, at, few) if n_groups is None else few


def _freer(start: MarginalLikelihood, at: EvaluatedModel, few: StructureStart) -> StructureStart:
    """Try fewer pseudo-people.

    Where people have fewer labels than there are coordinates the pseudo-people may outweigh
    their labels, so that no direction gets any variance.
    """
    if at.found.comparisons >= len(start.unit) * at.found.n_people:
        return few
    freer = replace(start, shape=replace(start.shape, pseudo=_FEWER * start.shape.pseudo))
    second = judge_directions(freer, learn_roughly(freer, ROUGH_STEPS))
    # With as many directions as before, the model with more shrinkage is the better one.
    finds_more = second.n_groups > few.n_groups and min(second.criterion) < min(few.criterion)
    return second if finds_more else few


def judge_directions(start: MarginalLikelihood, at: EvaluatedModel) -> StructureStart:
    """Return the leading directions of Omega that lower the criterion.

    Each has p numbers, which Akaike's criterion counts once. But as the strongest of all
    directions one that is nothing but noise gains up to p, too; and a gain of less than a
    hundredth of a bit per label hardly changes how people rank items. The smaller of the two is
    counted on top.
    """
    size = len(start.unit)
    cost = size + min(size, _NOTICED * at.found.comparisons)
    criterion: list[float] = []
    for rank in range(start.n_weights + 1):
        value = start.cost(_truncate(start, at, rank))
        criterion.append(value + rank * cost)
        if rank - int(np.argmin(criterion)) == _PATIENCE:
            break
    best = int(np.argmin(criterion))
    return StructureStart(_truncate(start, at, best), LOW_RANK, best, criterion)


def _truncate(start: MarginalLikelihood, at: EvaluatedModel, rank: int) -> PriorModel:
    return replace(at.model, prior=at.model.prior.truncated(rank, start.n_weights))


def _diagonal(model: PriorModel) -> PriorModel:
    return replace(model, prior=model.prior.without_correlations())
