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
from likeminds.mixed_model.model_selection import choose_structure, structure_of
from likeminds.mixed_model.optimisers import EXACTER, PriorFit, descend, first_model, score
from likeminds.mixed_model.responses import ResponseBlock, Responses, sample
from likeminds.solvers.solver import Callback

# Larger crowds find their directions, and where to start, on this many of the users.
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
    """Choose the form of the prior (on a sample of a large crowd), then learn it."""
    few = tasks if tasks.n_users <= 2 * _SAMPLE else sample(tasks, _SAMPLE)
    model = first_model(size, n_weights, likelihood, centre)
    nearly = may_sample and is_large(tasks)
    start = MarginalLikelihood(
        few, n_weights, model, model.prior.residual, shifts=shifts, approximate=nearly
    )
    # How exactly modes are found while the form is chosen: see `laplace.find_mode`.
    rough = replace(start, mode_tol=max(start.mode_tol, 1e-2))
    with one_blas_thread():  # the matrices are small, even where there are many of them
        if earlier and not anew:
            form = structure_of(earlier)
        else:
            form = choose_structure(rough, n_groups, covariance)
        enough = min(start.mode_tol, EXACTER * tol)
        start = replace(start, model=form.model, structure=form.structure, mode_tol=enough)
        plan = SubsamplePlan.of(start, tasks, tol) if may_sample else None
        if few is not tasks:
            start = replace(start, tasks=tasks, warm_starts=WarmStarts())
        if plan is not None:
            found, seen = learn_from_sample(
                plan, start, tasks, tol=tol, max_iter=max_iter, callback=callback
            )
        else:
            finish = descend if form.structure.has_directions else score
            found = finish(start, tol=tol, max_iter=max_iter, callback=callback)
            seen = start.e_step(found.model) if found.moments is None else found.moments
        unsure = start.covariance_of_mean(found.model, seen)
    return replace(
        found,
        criterion=form.criterion,
        n_groups=form.n_groups,
        structure=form.structure,
        mean_covariance=unsure,
    )


# The least sample; and the share of the crowd that a sample may be: larger ones save no time.
_FEWEST, _LARGEST = 2000, 0.25


@dataclass(frozen=True)
class SubsampleRecord:
    """How the prior of a large crowd was learned from some of its users."""

    # Users from whom the prior was learned, and those whose sums corrected it.
    n_learned: int
    n_asked: int
    # By how much each corrected step promised to lower J, and lowered it, in nats per label.
    promised: list[float] = field(default_factory=list)
    gained: list[float] = field(default_factory=list)
    # How far J is expected to be above the least one, in nats per label: as it was not all users
    # who was asked, and by what the next step promises.
    excess: float = 0.0

    @property
    def n_steps(self) -> int:
        """How many corrected steps were taken."""
        return len(self.gained)


@dataclass(frozen=True)
class SubsamplePlan:
    """How many users learn, and how many correct."""

    # Numbers of the prior (k), and labels of a user (m).
    n_numbers: int
    n_labels: float
    # Users who learn, and who correct.
    n_learned: int
    n_asked: int

    @classmethod
    def of(cls, start: MarginalLikelihood, tasks: Responses, tol: float) -> "SubsamplePlan | None":
        """Return the plan for a crowd, given the form of its prior; None where all are to learn.

        ``start`` is the objective of a few of the users, in the form that was chosen.
        """
        if not is_large(tasks):
            return None
        n_numbers = _numbers(start)
        counts = list(start.tasks.map(_count, None))
        n_labels = max(sum(counts) / start.tasks.n_users, 1e-3)
        # Per label, J is of the size of one: a share of it is as much per label.
        needed = n_numbers / (2.0 * n_labels * max(tol, 1e-300))
        # What a sample, and the users who correct it, may cost, in units of the tolerance.
        n_learned = max(_FEWEST, int(min(needed / 100.0, tasks.n_users)))
        n_asked = max(_FEWEST, int(min(needed / 10.0, tasks.n_users)))
        if n_learned > _LARGEST * tasks.n_users:
            return None
        n_asked = tasks.n_users if 2 * n_asked > tasks.n_users else n_asked
        return cls(n_numbers, n_labels, n_learned, n_asked)

    def excess(self, n_users: int, of: int) -> float:
        """Return what a prior learned from some costs all, in nats per label."""
        return self.n_numbers / (2.0 * self.n_labels) * (1.0 / n_users - 1.0 / of)


def is_large(tasks: Responses) -> bool:
    """Return whether there are users enough for a sample of them."""
    return _LARGEST * tasks.n_users >= _FEWEST


def learn_from_sample(
    plan: SubsamplePlan,
    start: MarginalLikelihood,
    tasks: Responses,
    *,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
) -> tuple[PriorFit, Moments]:
    """Learn the prior from a sample, correct it, and return the moments of those who did."""
    few = _standing_for(start, sample(tasks, plan.n_learned), tasks)
    is_asked = plan.n_asked < tasks.n_users
    many = _standing_for(start, sample(tasks, plan.n_asked) if is_asked else tasks, tasks)
    steps = descend if start.structure.has_directions else score
    found = steps(few, tol=tol, max_iter=max_iter)
    if start.structure.has_directions:
        correcting = _SampleCorrection(plan, few, many, found, tol)
        found = correcting.run(callback)
        seen, sampling = correcting.seen, correcting.sampling
    else:
        many = replace(many, model=found.model)
        found = score(many, tol=tol, max_iter=max_iter, callback=callback)
        seen = many.e_step(found.model)
        gained = -np.diff(found.trace) / (plan.n_labels * tasks.n_users)
        sampling = SubsampleRecord(plan.n_learned, plan.n_asked, gained.tolist(), gained.tolist())
    price = plan.excess(plan.n_asked, tasks.n_users)
    sampling = replace(sampling, excess=sampling.excess + price)
    warm_starts = WarmStarts() if is_asked else many.warm_starts
    return replace(found, warm_starts=warm_starts, sampling=sampling), seen


class _SampleCorrection:
    """Corrected steps from what a sample has learned."""

    def __init__(
        self,
        plan: SubsamplePlan,
        few: MarginalLikelihood,
        many: MarginalLikelihood,
        found: PriorFit,
        tol: float,
    ) -> None:
        self._plan, self._few, self._many = plan, few, many
        self._tol, self._found = tol, found
        self._n_labels = plan.n_labels * few.n_users
        self.sampling = SubsampleRecord(plan.n_learned, plan.n_asked)
        self._look(found.model)

    def _look(self, model: PriorModel) -> None:
        self.seen = self._many.e_step(model)
        self._model, self._value = model, self._many.value(model, self.seen)

    def run(self, callback: Callback | None) -> PriorFit:
        """Take steps until one promises too little; J of those who are asked never rises."""
        trace, converged, stopped = [self._value], False, self._found.interrupted
        try:
            # Corrected steps, and steps on the sample's objective for each of them, at most.
            while not (converged or stopped) and len(trace) <= 10:
                model, promised = self._propose()
                self.sampling = replace(self.sampling, excess=promised / self._n_labels)
                converged = promised <= self._tol * abs(self._value)
                if converged:
                    break
                before, seen, value = self._model, self.seen, self._value
                self._look(model)
                gained = value - self._value
                if gained <= 0.0:
                    # The sample's curvature is not each user's: more users have a better one.
                    self._model, self.seen, self._value = before, seen, value
                    if not self._take_more():
                        break
                    continue
                self._note(promised, gained)
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
        """Return where the sample's curvature leads, and by how much that should lower J."""
        here = replace(self._few, model=self._model)
        own = here.gradient(self._model, here.e_step(self._model))
        theirs = self._many.gradient(self._model, self.seen)
        tilt: Float = (theirs - own) / here.n_users
        found = descend(here, tol=0.1 * self._tol, max_iter=30, tilt=tilt)
        return found.model, found.trace[0] - found.trace[-1]

    def _note(self, promised: float, gained: float) -> None:
        each = self._n_labels
        self.sampling = replace(
            self.sampling,
            promised=[*self.sampling.promised, promised / each],
            gained=[*self.sampling.gained, gained / each],
        )

    def _take_more(self) -> bool:
        """Double the sample, unless it is all users who corrects."""
        n_learned = min(2 * self.sampling.n_learned, self._plan.n_asked)
        if n_learned == self.sampling.n_learned:
            return False
        more = sample(self._many.tasks, n_learned)
        share = self._few.n_users / more.n_users
        self._few = replace(self._few, tasks=more, warm_starts=WarmStarts(), user_weight=share)
        self.sampling = replace(self.sampling, n_learned=n_learned)
        return True


def _standing_for(
    start: MarginalLikelihood, some: Responses, everybody: Responses
) -> MarginalLikelihood:
    """Return the objective of some users who stand for all users."""
    share = everybody.n_users / some.n_users
    return replace(start, tasks=some, warm_starts=WarmStarts(), user_weight=share)


def _numbers(start: MarginalLikelihood) -> int:
    """Return how many numbers a prior of the chosen form has."""
    size = len(start.unit)
    if start.structure.has_directions:
        return len(start.start)
    return 2 * size if start.structure.kind == "diagonal" else size + size * (size + 1) // 2


def _count(block: ResponseBlock, state: None, own: None) -> float:  # noqa: ARG001
    return float(block.task.comparisons.sum())
