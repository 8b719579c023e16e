"""What a likelihood of grades learns from everybody's scores: cuts, or the noise of people."""

import numpy as np

from likeminds._support.arrays import Float
from likeminds._support.threads import one_blas_thread
from likeminds.prior.crossed import CrossedTasks
from likeminds.prior.descent import Learned
from likeminds.prior.grading import CumulativeLogit, Graded
from likeminds.prior.likelihoods import Diagonal
from likeminds.prior.posterior import Terms
from likeminds.prior.prior import Prior
from likeminds.prior.tasks import LabelTasks, TaskBlock, Tasks, by_place


def refine_likelihood(tasks: Tasks, learned: Learned, shifts: Float | None = None) -> Graded:
    """Return the likelihood that suits the scores which were learned with another.

    ``shifts`` are how far everybody's mean is from that of all: see `covariates`.
    """
    likelihood = learned.model.likelihood
    labels = tasks.labels if isinstance(tasks, CrossedTasks) else tasks
    assert isinstance(likelihood, Graded)
    assert isinstance(labels, LabelTasks)
    codes, people = labels.rows.grade, labels.rows.owner
    assert codes is not None
    eta, variance = _scores(tasks, learned, learned.model.prior.shifted(shifts))
    if isinstance(likelihood, CumulativeLogit):
        return likelihood.refined(codes, people, eta, variance, free_slope=False)
    return likelihood.refined(codes, people, eta, variance)


def _scores(tasks: Tasks, learned: Learned, prior: Prior) -> tuple[Float, Float]:
    """Return eta at every place, and its posterior variance."""
    if isinstance(tasks, CrossedTasks) and learned.items is not None:
        tasks = tasks.with_items(learned.items)
    with one_blas_thread():
        terms = Terms(prior, learned.model.likelihood)
        eta, variance = by_place(tasks, _seen, terms, learned.pulls.own)
    return eta[:-1], np.minimum(variance[:-1], _MOST_VARIANCE)


def _seen(block: TaskBlock, terms: Terms, pulls: Float | None) -> tuple[Float, Float]:
    mode = terms.mode_of(block, pulls)
    curvature = mode.said.curvature
    assert isinstance(curvature, Diagonal)
    known = np.maximum(curvature.root**2, 1e-12)
    return mode.system.eta(mode.state), mode.system.spread(curvature).variance / known


# Variances are no larger than this: where a label tells nothing, they are not known.
_MOST_VARIANCE = 10.0
