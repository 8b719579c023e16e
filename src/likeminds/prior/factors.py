"""Factors: features of items that are learned, and where their search starts."""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds

from likeminds._support.arrays import Float
from likeminds.prior.crossed import BEND, CrossedTasks
from likeminds.prior.objective import Model, Objective
from likeminds.prior.posterior import Terms
from likeminds.prior.tasks import TaskBlock, by_place

# The variance of the weights of a new factor.
_FIRST_VARIANCE = 0.1
# The unit of these weights: see `Objective`.
FIRST_UNIT = 0.5
# Added to the curvature of a label, by whose root its residual is divided.
_LEAST_CURVATURE = 0.05


@dataclass(frozen=True)
class Guess:
    """An objective and a model to start from."""

    objective: Objective
    model: Model


def with_factors(objective: Objective, model: Model, n_more: int, share: float) -> Guess:
    """Add factors: the leading directions of the labels' residuals."""
    tasks = objective.tasks
    assert isinstance(tasks, CrossedTasks)
    items = tasks.items
    factors = np.hstack([items.factors, _leading(objective, n_more)])
    r = factors.shape[1]
    unsure = np.zeros((len(factors), r, r))
    old = items.n_factors
    unsure[:, :old, :old] = items.unsure
    known = 1.0 + BEND * _FIRST_VARIANCE * tasks.counts
    for new in range(old, r):
        unsure[:, new, new] = 1.0 / known
    items = replace(items, factors=factors, unsure=unsure, share=share)
    prior = model.prior
    for _ in range(n_more):
        prior = prior.with_coordinate(0.0, np.sqrt(_FIRST_VARIANCE))
    unit = np.append(objective.unit, np.full(n_more, FIRST_UNIT))
    bigger = replace(
        objective, tasks=tasks.with_items(items), unit=unit, pulls=objective.pulls.copy()
    )
    return Guess(bigger, replace(model, prior=prior))


def _leading(objective: Objective, n_factors: int) -> Float:
    """Return the leading right singular vectors of the residuals, people x items, mean square 1."""
    tasks = objective.tasks
    assert isinstance(tasks, CrossedTasks)
    rows, n_items = tasks.labels.rows, len(tasks.items.effects)
    (pull,) = by_place(tasks, _pulls, None, objective.pulls.own)
    pull = pull[:-1]
    miss = np.abs(pull) / np.maximum(rows.weight, 1e-300)
    residual = pull / np.sqrt(np.maximum(miss * (1.0 - miss), 0.0) + _LEAST_CURVATURE)
    person = np.repeat(np.arange(len(rows.people)), rows.counts)
    shape = (len(rows.people), n_items)
    matrix = sparse.csr_matrix((residual, (person, tasks.item[:-1])), shape=shape)
    start = np.random.default_rng(0).standard_normal(min(shape))
    if n_factors < min(shape) - 1:
        _, values, vectors = svds(matrix, k=n_factors, v0=start)
    else:
        _, values, vectors = np.linalg.svd(matrix.toarray(), full_matrices=False)
    strongest = np.argsort(-values)[:n_factors]
    factors = np.zeros((n_items, n_factors))
    factors[:, : len(strongest)] = vectors[strongest].T
    length = np.sqrt((factors**2).mean(axis=0))
    # The sign is arbitrary: the largest is positive.
    largest = np.abs(factors).argmax(axis=0)
    length *= np.where(factors[largest, np.arange(n_factors)] < 0, -1.0, 1.0)
    return np.asarray(factors / np.where(length == 0, 1.0, length))


def scores_at(objective: Objective, model: Model) -> Float:
    """Return eta at every place, those left out included."""
    (scores,) = by_place(objective.tasks, _scores, objective.terms(model), objective.pulls.own)
    return scores


def _scores(block: TaskBlock, terms: Terms, pulls: Float | None) -> tuple[Float]:
    mode = terms.mode_of(block, pulls)
    return (mode.system.eta(mode.state),)


def _pulls(block: TaskBlock, state: None, pulls: Float | None) -> tuple[Float]:  # noqa: ARG001
    return (np.zeros(block.task.weight.shape) if pulls is None else pulls,)
