"""Which form of Omega foretells the labels of people it was not learned from.

Two-fold cross-validation over people: the prior is learned roughly from one half of them, and the
marginal likelihood of the other half's labels under it is what counts.
"""

from dataclasses import dataclass, replace

import numpy as np

from likeminds._util.array_types import Bool
from likeminds.mixed_model.blocks import sample
from likeminds.mixed_model.fisher_scoring import EvaluatedModel
from likeminds.mixed_model.laplace_moments import WarmStarts
from likeminds.mixed_model.lbfgs import descend, learn_roughly
from likeminds.mixed_model.marginal_likelihood import (
    FULL,
    LOW_RANK,
    CovarianceStructure,
    MarginalLikelihood,
)

# Pseudo-people who pull Omega to its own variances: shares that are tried, as long as more of
# them are better.
_SHARES = (0.1, 0.3, 1.0)
# The whole of Omega takes so many labels for each of its numbers, and people for each coordinate;
# and people can be asked at all if they are so many.
_LABELS_EACH = 10.0
_PEOPLE_EACH = 4.0
_FEWEST = 40
# What the whole has to gain over a few directions, in units of log-likelihood, lest chance decide.
_SIMPLER = 1.0
# People in the two halves together, at most, and their labels (more if it takes more people).
_PEOPLE, _LABELS = 1000, 20_000
# How exactly the prior of a half is learned, and in how many steps.
_ENOUGH = 2e-3
_STEPS = 8
_STEPS_OF_FEW = 3


def may_be_whole(start: MarginalLikelihood, n_labels: float, n_people: float) -> bool:
    """Say whether there are labels and people enough to learn the whole of Omega."""
    size = len(start.unit)
    enough = _LABELS_EACH * 0.5 * size * (size + 1)
    return n_labels >= enough and n_people >= _needed(start)


def _needed(start: MarginalLikelihood) -> float:
    """Return how many people it takes."""
    return max(_PEOPLE_EACH * len(start.unit), _FEWEST)


def choose_shape(
    start: MarginalLikelihood, at: EvaluatedModel, n_groups: int, *, with_few: bool
) -> CovarianceStructure:
    """Return the form under which held-out people's labels are likeliest.

    Parameters
    ----------
    start : MarginalLikelihood
        The labels.
    at : EvaluatedModel
        The whole of Omega, learned roughly from all people.
    n_groups : int
        How many directions the form of low rank has.
    with_few : bool
        Whether that form is to be tried.
    """
    labels_each = max(at.found.comparisons / at.found.n_people, 1.0)
    most = int(min(max(_LABELS / labels_each, _needed(start)), _PEOPLE))
    # Mean and variances are nearly the same for all forms; correlations each half has to find.
    model = replace(at.model, prior=at.model.prior.without_correlations())
    some = replace(start, tasks=sample(start.tasks, most), model=model)
    even = np.arange(some.tasks.n_people) % 2 == 0
    halves = [_only(some, half) for half in (even, ~even)]
    one = _UserHalf(halves[0], halves[1])
    costs = {FULL: one.cost(FULL)}
    # The other fold finds modes from where the first has found them, and from then on its own.
    halves = [replace(half, pulls=half.pulls.copy()) for half in halves]
    other = _UserHalf(halves[1], halves[0])
    costs[FULL] += other.cost(FULL)
    folds = (one, other)
    if with_few:
        few = sum(fold.cost_of_few(n_groups) for fold in folds)
        costs[LOW_RANK] = few - _SIMPLER
    before = np.inf
    for share in _SHARES:
        shape = CovarianceStructure(pseudo=share, own=True)
        costs[shape] = sum(fold.cost(shape) for fold in folds)
        if costs[shape] > before:
            break
        before = costs[shape]
    return min(costs, key=lambda shape: costs[shape])


def _only(objective: MarginalLikelihood, chosen: Bool) -> MarginalLikelihood:
    return replace(objective, tasks=objective.tasks.of_people(chosen), pulls=WarmStarts())


@dataclass
class _UserHalf:
    """One half of the people, of whom the prior is learned, and the other half.

    Attributes
    ----------
    one, other : MarginalLikelihood
        Their labels.
    at : EvaluatedModel, optional
        What was learned last; the next form starts from there.
    """

    one: MarginalLikelihood
    other: MarginalLikelihood
    at: EvaluatedModel | None = None

    def cost(self, shape: CovarianceStructure) -> float:
        """Learn the whole of Omega, and return what the labels of the others cost."""
        self.at = learn_roughly(replace(self.one, shape=shape), _STEPS, _ENOUGH, self.at)
        return self.other.cost(self.at.model)

    def cost_of_few(self, n_groups: int) -> float:
        """Learn that many directions, and return what the labels of the others cost."""
        assert self.at is not None
        few = self.at.model.prior.truncated(n_groups, self.one.n_weights)
        start = replace(self.one, model=replace(self.at.model, prior=few))
        return self.other.cost(descend(start, tol=_ENOUGH, max_iter=_STEPS_OF_FEW).model)
