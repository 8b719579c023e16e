"""Learning the prior: which form it takes, and steps down the objective."""

from dataclasses import replace

from likeminds._util.array_types import Float
from likeminds._util.threads import one_blas_thread
from likeminds.mixed_model.blocks import Responses, sample
from likeminds.mixed_model.gaussian_prior import MeanShifts
from likeminds.mixed_model.laplace_moments import WarmStarts
from likeminds.mixed_model.lbfgs import EXACTER, PriorFit, descend, first_model, score
from likeminds.mixed_model.likelihoods import Likelihood
from likeminds.mixed_model.marginal_likelihood import MarginalLikelihood
from likeminds.mixed_model.model_selection import choose_structure, structure_of
from likeminds.mixed_model.subsampled_fit import SubsamplePlan, is_large, learn_from_sample
from likeminds.solvers.solver import Callback

# How exactly modes are found while the form is chosen: see `modes.find_mode`.
_ROUGHLY = 1e-2
# Larger crowds find their directions, and where to start, on this many of the people.
_SAMPLE = 1000


def learn(
    tasks: Responses,
    n_weights: int,
    size: int,
    n_groups: int | None,
    *,
    likelihood: Likelihood,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
    covariance: str = "auto",
    centre: Float | float = 0.0,
    shifts: Float | MeanShifts | None = None,
    earlier: PriorFit | None = None,
    anew: bool = False,
    may_sample: bool = False,
) -> PriorFit:
    """Choose the form of the prior (on a sample of a large crowd), then learn it.

    Parameters
    ----------
    tasks : Responses
        The labels.
    n_weights, size : int
        The number of coordinates that are weights, and of all of them.
    n_groups : int or None
        The number of leading directions; None leaves it to the data.
    likelihood : Likelihood
        The likelihood of labels; a regression's precision is where learning starts.
    tol, max_iter, callback, covariance
        As in `HierarchicalRanker`.
    centre : array of shape (n_weights,), or 0
        Where the consensus is thought to be.
    shifts : array of shape (n_people, size), optional
        How far everybody's mean is from that of all: see `covariates`.
    earlier : PriorFit, optional
        Where to go on from, in the same form.
    anew : bool, default=False
        Choose the form anew all the same.
    may_sample : bool, default=False
        Learn from some of the people where that is enough: see `sampling`.
    """
    few = tasks if tasks.n_people <= 2 * _SAMPLE else sample(tasks, _SAMPLE)
    model = first_model(size, n_weights, likelihood, centre)
    nearly = may_sample and is_large(tasks)
    start = MarginalLikelihood(
        few, n_weights, model, model.prior.residual, shifts=shifts, nearly=nearly
    )
    rough = replace(start, enough=max(start.enough, _ROUGHLY))
    with one_blas_thread():  # the matrices are small, even where there are many of them
        if earlier and not anew:
            form = structure_of(earlier)
        else:
            form = choose_structure(rough, n_groups, covariance)
        enough = min(start.enough, EXACTER * tol)
        start = replace(start, model=form.model, shape=form.shape, enough=enough)
        plan = SubsamplePlan.of(start, tasks, tol) if may_sample else None
        if few is not tasks:
            start = replace(start, tasks=tasks, pulls=WarmStarts())
        if plan is not None:
            found, seen = learn_from_sample(
                plan, start, tasks, tol=tol, max_iter=max_iter, callback=callback
            )
        else:
            finish = descend if form.shape.has_directions else score
            found = finish(start, tol=tol, max_iter=max_iter, callback=callback)
            seen = start.visit(found.model) if found.seen is None else found.seen
        unsure = start.covariance_of_mean(found.model, seen)
    return replace(
        found,
        criterion=form.criterion,
        n_groups=form.n_groups,
        shape=form.shape,
        unsure=unsure,
    )
