"""Labels that are held out while people and items are learned: what they cost, person by person."""

from dataclasses import dataclass

import numpy as np

from likeminds._support.arrays import Float, Index
from likeminds._support.by_person import Collected
from likeminds.prior.crossed import CrossedTasks
from likeminds.prior.grading import Graded
from likeminds.prior.modes import Kept
from likeminds.prior.objective import Model, Objective
from likeminds.prior.posterior import Terms
from likeminds.prior.tasks import TaskBlock


@dataclass(frozen=True)
class HeldOut:
    """The losses of held-out labels, summed by person, and how many labels they are."""

    losses: Float
    n_labels: int


def held_out_losses(objective: Objective, model: Model) -> HeldOut:
    """Return what the labels cost that are held out, under a model."""
    found: Collected
    found, _ = objective.tasks.visit(_cost, objective.terms(model), objective.pulls.own)
    losses, counts = found.in_order()
    return HeldOut(losses, int(counts.sum()))


def _cost(block: TaskBlock, terms: Terms, kept: Kept | None) -> tuple[Collected, None]:
    """Return the losses of a block's people."""
    mode, tasks = terms.mode_of(block, kept), block.tasks
    assert isinstance(tasks, CrossedTasks)
    assert tasks.left_out is not None
    task = tasks.labels.task(block.number)  # with the weights of all labels
    out = tasks.left_out[task.places]
    each = _each(terms, mode.system.eta(mode.state), task.response, task.people)
    losses = np.where(out, task.weight * each, 0.0).sum(axis=1)
    return Collected([task.people], [[losses, out.sum(axis=1)]]), None


def _each(terms: Terms, eta: Float, response: Float, people: Index) -> Float:
    """Return the loss of every label at its score, all of shape (b, n)."""
    if isinstance(terms.likelihood, Graded):
        return terms.likelihood.each(eta, response.astype(np.intp), people[:, None])
    return np.asarray(np.logaddexp(0.0, eta) - response * eta)
