"""Fit the prior: choose its covariance structure, then minimise the objective.

With large data, the prior is fitted to a sample of users, then corrected for all. The prior has k
parameters. A fit to n of U users with m labels each leaves J above its minimum, per label, by

    excess(n) = k / (2 m) (1/n - 1/U).

The sample gives the curvature, a larger sample the gradient. A step minimises J of the sample plus
(the larger sample's gradient - the sample's) times the parameters (Jordan, Lee and Yang 2019). It
squares the sample's error. Steps repeat until the predicted gain is below the tolerance. With all
of Omega, steps are those of `optimisers`.

The sample's excess is at most 100 times the tolerance, the larger sample's at most 10 times. All
users are the larger sample if it would be more than half of them. The prior is fitted to all users
if the sample would be more than a quarter of them.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from likeminds._util.array_types import Float
from likeminds._util.map_reduce import one_blas_thread
from likeminds.mixed_model.gaussian_prior import MeanShifts
from likeminds.mixed_model.laplace import Moments, WarmStarts
from likeminds.mixed_model.likelihoods import Likelihood
from likeminds.mixed_model.marginal_likelihood import MarginalLikelihood
from likeminds.mixed_model.model_selection import SAMPLE, StructureStart, choose_structure
from likeminds.mixed_model.optimisers import (
    EXACTER,
    PriorFit,
    descend,
    evaluate_directions,
    first_model,
    score,
)
from likeminds.mixed_model.responses import ResponseBlock, Responses, sample
from likeminds.solvers.solver import Callback


def learn(
    responses: Responses,
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
    shifts: MeanShifts | None = None,
    earlier: PriorFit | None = None,
    anew: bool = False,
    may_sample: bool = False,
) -> PriorFit:
    """Choose the covariance structure (on a sample of many users), then fit the prior."""
    subsample = responses if responses.n_users <= 2 * SAMPLE else sample(responses, SAMPLE)
    model = first_model(size, n_weights, likelihood, centre)
    approximate = may_sample and is_large(responses)
    start = MarginalLikelihood(
        subsample, n_weights, model, model.prior.residual, shifts=shifts, approximate=approximate
    )
    rough = replace(start, mode_tol=max(start.mode_tol, 1e-2))
    with one_blas_thread():  # the matrices are small
        if earlier and not anew:
            form: StructureStart | PriorFit = earlier
        else:
            form = choose_structure(rough, n_groups, covariance)
        mode_tol = min(start.mode_tol, EXACTER * tol)
        start = replace(start, model=form.model, structure=form.structure, mode_tol=mode_tol)
        plan = SubsamplePlan.of(start, responses, tol) if may_sample else None
        if subsample is not responses:
            start = replace(start, responses=responses, warm_starts=WarmStarts())
        if plan is not None:
            found, moments = learn_from_sample(
                plan, start, responses, tol=tol, max_iter=max_iter, callback=callback
            )
        else:
            finish = descend if form.structure.has_directions else score
            found = finish(start, tol=tol, max_iter=max_iter, callback=callback)
            moments = start.e_step(found.model) if found.moments is None else found.moments
        mean_covariance = start.covariance_of_mean(found.model, moments)
    return replace(
        found,
        criterion=form.criterion,
        n_groups=form.n_groups,
        structure=form.structure,
        mean_covariance=mean_covariance,
    )


# The least sample, and its largest share of the users: larger ones save no time.
_FEWEST = 2 * SAMPLE
_LARGEST = 0.25


@dataclass(frozen=True)
class SubsampleRecord:
    """The record of a fit of the prior to a sample of many users."""

    n_learned: int  # users to whom the prior was fitted
    n_asked: int  # users whose gradient corrected it
    # The predicted and actual decrease of J by each corrected step, in nats per label.
    promised: list[float] = field(default_factory=list)
    gained: list[float] = field(default_factory=list)
    # The expected excess of J over its minimum, in nats per label: from correcting with a sample,
    # plus the predicted decrease by the next step.
    excess: float = 0.0

    @property
    def n_steps(self) -> int:
        """The number of corrected steps."""
        return len(self.gained)


@dataclass(frozen=True)
class SubsamplePlan:
    """The sizes of the sample, and of the larger sample that corrects it."""

    n_numbers: int  # parameters of the prior (k)
    n_labels: float  # labels per user (m)
    n_learned: int
    n_asked: int

    @classmethod
    def of(
        cls, start: MarginalLikelihood, responses: Responses, tol: float
    ) -> "SubsamplePlan | None":
        """Return sizes for the chosen covariance structure; None to fit to all users."""
        if not is_large(responses):
            return None
        n_numbers = _numbers(start)
        counts = list(start.responses.map(_count, None))
        n_labels = max(sum(counts) / start.responses.n_users, 1e-3)
        # J per label is about one, so the relative tolerance is about the excess per label.
        needed = n_numbers / (2.0 * n_labels * max(tol, 1e-300))
        # Excess at most 100 times the tolerance for the sample, 10 times for the correction.
        n_learned = max(_FEWEST, int(min(needed / 100.0, responses.n_users)))
        n_asked = max(_FEWEST, int(min(needed / 10.0, responses.n_users)))
        if n_learned > _LARGEST * responses.n_users:
            return None
        n_asked = responses.n_users if 2 * n_asked > responses.n_users else n_asked
        return cls(n_numbers, n_labels, n_learned, n_asked)

    def excess(self, n_users: int, of: int) -> float:
        """Return the expected excess of J per label of a fit to a sample."""
        return self.n_numbers / (2.0 * self.n_labels) * (1.0 / n_users - 1.0 / of)


def is_large(responses: Responses) -> bool:
    """Return whether there are enough users to fit to a sample."""
    return _LARGEST * responses.n_users >= _FEWEST


def learn_from_sample(
    plan: SubsamplePlan,
    start: MarginalLikelihood,
    responses: Responses,
    *,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
) -> tuple[PriorFit, Moments]:
    """Fit to a sample, then correct; also return the moments of the larger sample."""
    n_users = responses.n_users
    subsample = _weighted(start, sample(responses, plan.n_learned), n_users)
    is_partial = plan.n_asked < n_users
    many = _weighted(start, sample(responses, plan.n_asked) if is_partial else responses, n_users)
    steps = descend if start.structure.has_directions else score
    found = steps(subsample, tol=tol, max_iter=max_iter)
    if start.structure.has_directions:
        found, moments = _correct(plan, subsample, many, found, tol, callback)
        sampling = found.sampling
    else:
        many = replace(many, model=found.model)
        found = score(many, tol=tol, max_iter=max_iter, callback=callback)
        moments = many.e_step(found.model)
        gained = -np.diff(found.trace) / (plan.n_labels * n_users)
        sampling = SubsampleRecord(plan.n_learned, plan.n_asked, gained.tolist(), gained.tolist())
    price = plan.excess(plan.n_asked, n_users)
    sampling = replace(sampling, excess=sampling.excess + price)
    warm_starts = WarmStarts() if is_partial else many.warm_starts
    return replace(found, warm_starts=warm_starts, sampling=sampling), moments


def _correct(  # noqa: PLR0917 - the sizes, two objectives and a fit to correct
    plan: SubsamplePlan,
    few: MarginalLikelihood,
    many: MarginalLikelihood,
    found: PriorFit,
    tol: float,
    callback: Callback | None,
) -> tuple[PriorFit, Moments]:
    """Take steps on the sample's objective ``few``, with the gradient of ``many`` users.

    Steps end when one predicts too little gain. J of the larger sample never rises.
    """
    at, n_labels = evaluate_directions(many, found.model), plan.n_labels * few.n_users
    record = SubsampleRecord(plan.n_learned, plan.n_asked)
    trace, converged, stopped = [at.value], False, found.interrupted
    try:
        while not (converged or stopped) and len(trace) <= 10:
            few = replace(few, model=at.model)
            own = few.gradient(at.model, few.e_step(at.model))
            tilt: Float = (many.gradient(at.model, at.moments) - own) / few.n_users
            step = descend(few, tol=0.1 * tol, max_iter=30, tilt=tilt)
            promised = step.trace[0] - step.trace[-1]
            record = replace(record, excess=promised / n_labels)
            converged = promised <= tol * abs(at.value)
            if converged:
                break
            new = evaluate_directions(many, step.model)
            gained = at.value - new.value
            if gained <= 0.0:
                # The sample's curvature was not accurate enough: enlarge the sample.
                n_learned = min(2 * record.n_learned, plan.n_asked)
                if n_learned == record.n_learned:
                    break
                few = _weighted(few, sample(many.responses, n_learned), few.n_users)
                record = replace(record, n_learned=n_learned)
                continue
            at = new
            record.promised.append(promised / n_labels)
            record.gained.append(gained / n_labels)
            trace.append(at.value)
            if callback is not None:
                stopped = bool(callback(len(trace) - 1, at.value, promised))
    except KeyboardInterrupt:
        stopped = True
    converged = converged and found.converged
    found = replace(found, model=at.model, trace=trace, converged=converged, interrupted=stopped)
    return replace(found, sampling=record), at.moments


def _weighted(start: MarginalLikelihood, some: Responses, n_users: float) -> MarginalLikelihood:
    """Return the objective of a sample, weighted as ``n_users``."""
    share = n_users / some.n_users
    return replace(start, responses=some, warm_starts=WarmStarts(), user_weight=share)


def _numbers(start: MarginalLikelihood) -> int:
    """Return the number of parameters of a prior with the chosen structure."""
    size = len(start.unit)
    if start.structure.has_directions:
        return len(start.start)
    return 2 * size if start.structure.kind == "diagonal" else size + size * (size + 1) // 2


def _count(block: ResponseBlock, state: None, own: None) -> float:  # noqa: ARG001
    return float(block.data.comparisons.sum())
