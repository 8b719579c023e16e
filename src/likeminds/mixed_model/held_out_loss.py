"""Labels that are held out while people and items are learned: what they cost, person by person."""

from dataclasses import dataclass

import numpy as np

from likeminds._util.array_types import Float
from likeminds._util.per_user_arrays import CollectedRows
from likeminds.mixed_model.blocks import ResponseBlock
from likeminds.mixed_model.item_effects_e_step import ItemEffectBlocks
from likeminds.mixed_model.laplace_moments import EStepParams
from likeminds.mixed_model.likelihoods import LogisticLikelihood
from likeminds.mixed_model.map_newton import WarmStart
from likeminds.mixed_model.marginal_likelihood import MarginalLikelihood, PriorModel
from likeminds.mixed_model.ordinal import Graded


@dataclass(frozen=True)
class HeldOut:
    """The losses of held-out labels, summed by person, and how many labels they are."""

    losses: Float
    n_labels: int

    @property
    def total(self) -> float:
        """What all of them cost."""
        return float(self.losses.sum())


def held_out_losses(objective: MarginalLikelihood, model: PriorModel) -> HeldOut:
    """Return what the labels cost that are held out, under a model."""
    found: CollectedRows
    found, _ = objective.tasks.visit(_cost, objective.terms(model), objective.pulls.own)
    losses, counts = found.in_order()
    return HeldOut(losses, int(counts.sum()))


def _cost(
    block: ResponseBlock, terms: EStepParams, kept: WarmStart | None
) -> tuple[CollectedRows, None]:
    """Return the losses of a block's people."""
    mode, tasks, likelihood = terms.mode_of(block, kept), block.tasks, terms.likelihood
    assert isinstance(tasks, ItemEffectBlocks)
    assert tasks.left_out is not None
    assert isinstance(likelihood, LogisticLikelihood | Graded)
    task = tasks.labels.task(block.number)  # with the weights of all labels
    out = tasks.left_out[task.places]
    each = likelihood.each(mode.eta, task.response, task.people[:, None])
    losses = np.where(out, task.weight * each, 0.0).sum(axis=1)
    return CollectedRows([task.people], [[losses, out.sum(axis=1)]]), None
