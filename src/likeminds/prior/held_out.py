"""Labels that are held out while people and items are learned: what they cost, person by person."""

from dataclasses import dataclass

import numpy as np

from likeminds._support.arrays import Float
from likeminds._support.by_person import Collected
from likeminds.prior.crossed import CrossedTasks
from likeminds.prior.grading import Graded
from likeminds.prior.likelihoods import Logistic
from likeminds.prior.modes import Kept
from likeminds.prior.objective import Model, Objective
from likeminds.prior.posterior import Terms
from likeminds.prior.tasks import TaskBlock


@dataclass(frozen=True)
class HeldOut:
    """The losses of held-out labels, summed by person, and how many labels they are."""

    losses: Float
    n_labels: int

    @property
    def total(self) -> float:
        """What all of them cost."""
        return float(self.losses.sum())


def held_out_losses(objective: Objective, model: Model) -> HeldOut:
    """Return what the labels cost that are held out, under a model."""
    found: Collected
    found, _ = objective.tasks.visit(_cost, objective.terms(model), objective.pulls.own)
    losses, counts = found.in_order()
    return HeldOut(losses, int(counts.sum()))


def _cost(block: TaskBlock, terms: Terms, kept: Kept | None) -> tuple[Collected, None]:
    """Return the losses of a block's people."""
    mode, tasks, likelihood = terms.mode_of(block, kept), block.tasks, terms.likelihood
    assert isinstance(tasks, CrossedTasks)
    assert tasks.left_out is not None
    assert isinstance(likelihood, Logistic | Graded)
    task = tasks.labels.task(block.number)  # with the weights of all labels
    out = tasks.left_out[task.places]
    each = likelihood.each(mode.eta, task.response, task.people[:, None])
    losses = np.where(out, task.weight * each, 0.0).sum(axis=1)
    return Collected([task.people], [[losses, out.sum(axis=1)]]), None
