"""Fit the prior: choose its covariance structure, then minimise the objective.

Large data sets fit the prior to a sample of users, then correct it for all. The prior has k
parameters. A fit to n of U users with m labels each leaves J above its minimum, per label, by

    excess(n) = k / (2 m) (1/n - 1/U).

The sample gives the curvature, a larger sample of users the gradient: J of the sample plus (their
gradient - the sample's) times the parameters is minimised (Jordan, Lee and Yang 2019), which
squares the sample's error. Corrected steps repeat until one promises less than the tolerance.
With all of Omega, steps are those of `optimisers`.

The sample's excess is at most 100 times the tolerance, that of the users who correct it at most 10
times. All users correct if that is more than half of them; there is no sample if it would be more
than a quarter.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from likeminds._util.array_types import Float
from likeminds._util.map_reduce import one_blas_thread
from likeminds.mixed_model.gaussian_prior import MeanShifts
from likeminds.mixed_model.laplace import Moments, WarmStarts
from likeminds.mixed_model.likelihoods import Likelihood
from likeminds.mixed_model.marginal_likelihood import MarginalLikelihood, PriorModel
from likeminds.mixed_model.model_selection import SAMPLE, choose_structure, structure_of
from likeminds.mixed_model.optimisers import EXACTER, PriorFit, descend, first_model, score
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
            form = structure_of(earlier)
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
    """How a prior was fitted to a sample of many users."""

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
    """Fit to a sample and correct; return the moments of the users who correct, too."""
    subsample = _weighted(start, sample(responses, plan.n_learned), responses)
    is_partial = plan.n_asked < responses.n_users
    many = _weighted(start, sample(responses, plan.n_asked) if is_partial else responses, responses)
    steps = descend if start.structure.has_directions else score
    found = steps(subsample, tol=tol, max_iter=max_iter)
    if start.structure.has_directions:
        correcting = _SampleCorrection(plan, subsample, many, found, tol)
        found = correcting.run(callback)
        moments, sampling = correcting.moments, correcting.sampling
    else:
        many = replace(many, model=found.model)
        found = score(many, tol=tol, max_iter=max_iter, callback=callback)
        moments = many.e_step(found.model)
        gained = -np.diff(found.trace) / (plan.n_labels * responses.n_users)
        sampling = SubsampleRecord(plan.n_learned, plan.n_asked, gained.tolist(), gained.tolist())
    price = plan.excess(plan.n_asked, responses.n_users)
    sampling = replace(sampling, excess=sampling.excess + price)
    warm_starts = WarmStarts() if is_partial else many.warm_starts
    return replace(found, warm_starts=warm_starts, sampling=sampling), moments


class _SampleCorrection:
    """Steps on the sample's objective, with the gradient of more users."""

    def __init__(
        self,
        plan: SubsamplePlan,
        subsample: MarginalLikelihood,
        many: MarginalLikelihood,
        found: PriorFit,
        tol: float,
    ) -> None:
        self._plan, self._few, self._many = plan, subsample, many
        self._tol, self._found = tol, found
        self._n_labels = plan.n_labels * subsample.n_users
        self.sampling = SubsampleRecord(plan.n_learned, plan.n_asked)
        self._evaluate(found.model)

    def _evaluate(self, model: PriorModel) -> None:
        self.moments = self._many.e_step(model)
        self._model, self._value = model, self._many.value(model, self.moments)

    def run(self, callback: Callback | None) -> PriorFit:
        """Take steps until one predicts too little gain; J of the larger sample never rises."""
        trace, converged, stopped = [self._value], False, self._found.interrupted
        try:
            while not (converged or stopped) and len(trace) <= 10:
                model, promised = self._propose()
                self.sampling = replace(self.sampling, excess=promised / self._n_labels)
                converged = promised <= self._tol * abs(self._value)
                if converged:
                    break
                before, moments, value = self._model, self.moments, self._value
                self._evaluate(model)
                gained = value - self._value
                if gained <= 0.0:
                    # The sample's curvature was too far off: a larger sample has a better one.
                    self._model, self.moments, self._value = before, moments, value
                    if not self._enlarge_sample():
                        break
                    continue
                self._record(promised, gained)
                trace.append(self._value)
                if callback is not None:
                    stopped = bool(callback(len(trace) - 1, self._value, promised))
        except KeyboardInterrupt:
            stopped = True
        return replace(
            self._found,
            model=self._model,
            trace=trace,
            converged=converged and self._found.converged,
            interrupted=stopped,
        )

    def _propose(self) -> tuple[PriorModel, float]:
        """Return the minimum of the sample's corrected objective, and the predicted gain."""
        objective = replace(self._few, model=self._model)
        own = objective.gradient(self._model, objective.e_step(self._model))
        full_gradient = self._many.gradient(self._model, self.moments)
        tilt: Float = (full_gradient - own) / objective.n_users
        found = descend(objective, tol=0.1 * self._tol, max_iter=30, tilt=tilt)
        return found.model, found.trace[0] - found.trace[-1]

    def _record(self, promised: float, gained: float) -> None:
        each = self._n_labels
        self.sampling = replace(
            self.sampling,
            promised=[*self.sampling.promised, promised / each],
            gained=[*self.sampling.gained, gained / each],
        )

    def _enlarge_sample(self) -> bool:
        """Double the sample; return False if it already is the larger one."""
        n_learned = min(2 * self.sampling.n_learned, self._plan.n_asked)
        if n_learned == self.sampling.n_learned:
            return False
        more = sample(self._many.responses, n_learned)
        share = self._few.n_users / more.n_users
        self._few = replace(self._few, responses=more, warm_starts=WarmStarts(), user_weight=share)
        self.sampling = replace(self.sampling, n_learned=n_learned)
        return True


def _weighted(
    start: MarginalLikelihood, some: Responses, population: Responses
) -> MarginalLikelihood:
    """Return the objective of a sample, weighted to the size of the population."""
    share = population.n_users / some.n_users
    return replace(start, responses=some, warm_starts=WarmStarts(), user_weight=share)


def _numbers(start: MarginalLikelihood) -> int:
    """Return the number of parameters of a prior with the chosen structure."""
    size = len(start.unit)
    if start.structure.has_directions:
        return len(start.start)
    return 2 * size if start.structure.kind == "diagonal" else size + size * (size + 1) // 2


def _count(block: ResponseBlock, state: None, own: None) -> float:  # noqa: ARG001
    return float(block.data.comparisons.sum())
