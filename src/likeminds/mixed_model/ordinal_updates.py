"""What a likelihood of grades learns from everybody's scores: cuts, or the noise of people."""

import numpy as np

from likeminds._util.array_types import Bool, Float, Index
from likeminds._util.hash_sampling import drawn
from likeminds._util.per_user_arrays import CollectedRows
from likeminds._util.threads import one_blas_thread
from likeminds.mixed_model.blocks import LabelResponses, ResponseBlock, Responses
from likeminds.mixed_model.item_effects.responses import ItemEffectBlocks, ItemEffects
from likeminds.mixed_model.laplace_moments import EStepParams
from likeminds.mixed_model.lbfgs import PriorFit
from likeminds.mixed_model.likelihoods import DiagonalCurvature
from likeminds.mixed_model.map_newton import WarmStart
from likeminds.mixed_model.ordinal import CumulativeLogit, Graded, StandardNormal

# Variances are no larger than this: where a label tells nothing, they are not known.
_MOST_VARIANCE = 10.0
# Cuts are learned from about so many grades.
_MOST_ROWS = 20_000


def refine_likelihood(
    tasks: Responses, learned: PriorFit, n_labels: int, shifts: Float | None = None
) -> Graded:
    """Return the likelihood that suits the scores which were learned with another.

    ``shifts`` are how far everybody's mean is from that of all: see `covariates`.
    """
    likelihood = learned.model.likelihood
    assert isinstance(likelihood, Graded)
    terms = EStepParams(learned.model.prior.shifted(shifts), likelihood)
    if isinstance(tasks, ItemEffects) and learned.items is not None:
        tasks = tasks.with_items(learned.items)
    found: CollectedRows
    with one_blas_thread():
        if isinstance(likelihood, StandardNormal):
            found, _ = tasks.visit(_errors, terms, learned.pulls.own)
            return likelihood.refined(*found.in_order())
        share = _MOST_ROWS / max(n_labels, 1)
        found, _ = tasks.visit(_some_scores, (terms, share), learned.pulls.own)
    codes, use, eta, variance = found.in_order()
    return likelihood.refined(codes, use, eta, variance, free_slope=False)


def _errors(
    block: ResponseBlock, terms: EStepParams, kept: WarmStart | None
) -> tuple[CollectedRows, None]:
    """Return how many grades everybody gave, and the squared errors of their scores."""
    likelihood, task = terms.likelihood, block.task
    assert isinstance(likelihood, StandardNormal)
    eta, variance = _seen(block, terms, kept)
    there = task.weight > 0
    expected = likelihood.standardised(task.response.astype(np.intp), task.people[:, None])
    squares = np.where(there, (expected - eta) ** 2 + variance, 0.0).sum(axis=1)
    return CollectedRows([task.people], [[there.sum(axis=1).astype(np.float64), squares]]), None


def _some_scores(
    block: ResponseBlock, state: tuple[EStepParams, float], kept: WarmStart | None
) -> tuple[CollectedRows, None]:
    """Return bins, how their people use the scale, scores and their variances, of some grades."""
    terms, share = state
    likelihood, task = terms.likelihood, block.task
    assert isinstance(likelihood, CumulativeLogit)
    eta, variance = _seen(block, terms, kept)
    some = _drawn(block, share) & (task.weight > 0)
    person = np.nonzero(some)[0]
    codes = task.response[some].astype(np.intp)
    numbers = [codes, likelihood.use[task.people][person], eta[some], variance[some]]
    return CollectedRows([task.people[person]], [numbers]), None


def _drawn(block: ResponseBlock, share: float) -> Bool:
    """Draw some rows of a block, by their people and the rows of the table of features."""
    labels = block.tasks.labels if isinstance(block.tasks, ItemEffectBlocks) else block.tasks
    assert isinstance(labels, LabelResponses)
    task = labels.task(block.number)
    number: Index = np.append(labels.rows.index, 0)[task.places]
    people = np.repeat(task.people, number.shape[1])
    return drawn(share, people, number.ravel()).reshape(number.shape)


def _seen(block: ResponseBlock, terms: EStepParams, kept: WarmStart | None) -> tuple[Float, Float]:
    """Return everybody's scores and their posterior variances."""
    mode = terms.mode_of(block, kept)
    curvature = mode.said.curvature
    assert isinstance(curvature, DiagonalCurvature)
    known = np.maximum(curvature.root**2, 1e-12)
    variance = mode.spread.variance / known
    return mode.system.eta(mode.state), np.minimum(variance, _MOST_VARIANCE)
