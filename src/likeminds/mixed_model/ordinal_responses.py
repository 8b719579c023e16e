"""Users' response styles, predicted grades, and updates of ordinal likelihoods from scores."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from likeminds._util.array_types import Bool, Float, FloatArray, IdArray, Index
from likeminds._util.lazy_imports import pa
from likeminds._util.map_reduce import one_blas_thread
from likeminds._util.per_user_arrays import CollectedRows, drawn
from likeminds._util.result_tables import ResultTable
from likeminds._util.text_format import counted
from likeminds.data.label_parsing import LabelReading
from likeminds.mixed_model.item_effects.item_responses import ItemEffects, ItemRows
from likeminds.mixed_model.item_posteriors import PointwiseLoss
from likeminds.mixed_model.laplace import EStepParams, WarmStart
from likeminds.mixed_model.likelihoods import DiagonalCurvature
from likeminds.mixed_model.optimisers import PriorFit
from likeminds.mixed_model.ordinal import CumulativeLogit, Graded, StandardNormal
from likeminds.mixed_model.responses import LabelResponses, ResponseBlock, Responses


@dataclass(frozen=True)
class GradePredictions(ResultTable):
    """Distributions of grades.

    Attributes
    ----------
    grades : array of shape (n_grades,)
        The grades, from worst to best (the mean of each bin, where there are very many).
    probabilities : array of shape (n_rows, n_grades)
        The probability of each.
    expected : array of shape (n_rows,)
        Their mean; of words, the mean of their positions from 0.
    """

    grades: IdArray
    probabilities: Float
    expected: Float

    @property
    def typical(self) -> NDArray[np.generic]:
        """The expected grade; for words, the word nearest to it."""
        if self.grades.dtype != object:
            return self.expected
        return np.asarray(self.grades[np.rint(self.expected).astype(np.intp)])

    def to_arrow(self) -> "pa.Table":
        """Return a table of pyarrow: the expected grade, and the probability of each."""
        columns = zip(self.grades.tolist(), self.probabilities.T, strict=True)
        return pa.table({"expected": self.typical} | {str(grade): p for grade, p in columns})

    def _headline(self) -> str:
        return f"Grades of {counted(len(self.expected), 'row')}"


@dataclass(frozen=True)
class ResponseStyle:
    """How some users use a scale: with the same score, one gives a 5 and another a 7."""

    grading: CumulativeLogit
    reading: LabelReading  # how grades were read, with their words where they are words

    def predict(self, eta: Float, variance: Float, users: Index) -> GradePredictions:
        """Return predicted grades (-1: of a new user), given scores and their variances."""
        grading, words = self.grading, self.reading.grades
        use, added = grading.scale_use(users)
        chances = grading.chances(eta + added, variance, use)
        levels: NDArray[np.generic] = grading.scale.levels
        if words:
            levels = np.array(words, dtype=object)[levels.astype(np.intp)]
        return GradePredictions(levels, chances, chances @ grading.scale.levels)

    def pointwise_loss(self, grades: FloatArray, users: Index) -> "PointwiseLoss":
        """Return the loss of grades as a function of their scores."""
        use, added = self.grading.scale_use(users)
        return PointwiseGradeLoss(self.grading, self.grading.scale.codes(grades), use, added)

    def some(self, users: slice | Index) -> "ResponseStyle":
        """Return the response styles of some of the users."""
        grading, shifts = self.grading, self.grading.shifts
        shifts = None if shifts is None else shifts[users]
        return replace(self, grading=replace(grading, use=grading.use[users], shifts=shifts))

    def of_unknown_users(self, n_users: int) -> "ResponseStyle":
        """Return the typical response style, for users without grades."""
        usual = replace(self.grading, use=np.ones(n_users), shifts=np.zeros(n_users))
        return replace(self, grading=usual)

    def of_newcomers(self, grades: FloatArray, users: Index, eta: Float) -> "ResponseStyle":
        """Return the response styles of new users, given their grades and scores."""
        grading, shifts = self.grading, self.grading.shifts
        shifts = np.zeros(1) if shifts is None else shifts
        usual = replace(grading.of_users(grades, users), shifts=None)
        codes = grading.scale.codes(grades)
        variance = float((shifts**2).mean())
        return replace(self, grading=usual.with_shifts(codes, users, eta, variance=variance))


@dataclass(frozen=True)
class PointwiseGradeLoss(PointwiseLoss):
    """The loss of grades, given their bins and their users' response styles."""

    grading: CumulativeLogit
    codes: Index
    use: Float
    added: Float

    def at(self, scores: Float) -> tuple[Float, Float]:
        """Return minus the slope, and the curvature."""
        return self.grading.slopes(scores + self.added, self.codes, self.use)


def refine_likelihood(
    tasks: Responses, learned: PriorFit, n_labels: int, shifts: Float | None = None
) -> Graded:
    """Return the likelihood that suits the scores which were learned with another.

    ``shifts`` are how far each user's mean is from that of all: see `covariate_effects`.
    """
    likelihood = learned.model.likelihood
    assert isinstance(likelihood, Graded)
    terms = EStepParams(learned.model.prior.shifted(shifts), likelihood)
    if isinstance(tasks, ItemEffects) and learned.items is not None:
        tasks = tasks.with_items(learned.items)
    found: CollectedRows
    with one_blas_thread():
        if isinstance(likelihood, StandardNormal):
            found, _ = tasks.map_reduce(_errors, terms, learned.warm_starts.own)
            return likelihood.refined(*found.in_order())
        # Cuts are learned from about so many grades.
        share = 20_000 / max(n_labels, 1)
        found, _ = tasks.map_reduce(_some_scores, (terms, share), learned.warm_starts.own)
    codes, use, eta, variance = found.in_order()
    return likelihood.refined(codes, use, eta, variance, free_slope=False)


def _errors(
    block: ResponseBlock, terms: EStepParams, warm_start: WarmStart | None
) -> tuple[CollectedRows, None]:
    """Return how many grades all users gave, and the squared errors of their scores."""
    likelihood, task = terms.likelihood, block.task
    assert isinstance(likelihood, StandardNormal)
    eta, variance = _scores_and_variances(block, terms, warm_start)
    there = task.weight > 0
    expected = likelihood.standardised(task.response.astype(np.intp), task.users[:, None])
    squares = np.where(there, (expected - eta) ** 2 + variance, 0.0).sum(axis=1)
    return CollectedRows([task.users], [[there.sum(axis=1).astype(np.float64), squares]]), None


def _some_scores(
    block: ResponseBlock, state: tuple[EStepParams, float], warm_start: WarmStart | None
) -> tuple[CollectedRows, None]:
    """Return bins, how their users use the scale, scores and their variances, of some grades."""
    terms, share = state
    likelihood, task = terms.likelihood, block.task
    assert isinstance(likelihood, CumulativeLogit)
    eta, variance = _scores_and_variances(block, terms, warm_start)
    some = _drawn(block, share) & (task.weight > 0)
    user = np.nonzero(some)[0]
    codes = task.response[some].astype(np.intp)
    numbers = [codes, likelihood.use[task.users][user], eta[some], variance[some]]
    return CollectedRows([task.users[user]], [numbers]), None


def _drawn(block: ResponseBlock, share: float) -> Bool:
    """Draw some rows of a block, by their users and the rows of the table of features."""
    labels = block.tasks.labels if isinstance(block.tasks, ItemRows) else block.tasks
    assert isinstance(labels, LabelResponses)
    task = labels.task(block.number)
    number: Index = np.append(labels.rows.index, 0)[task.places]
    users = np.repeat(task.users, number.shape[1])
    return drawn(share, users, number.ravel()).reshape(number.shape)


def _scores_and_variances(
    block: ResponseBlock, terms: EStepParams, warm_start: WarmStart | None
) -> tuple[Float, Float]:
    """Return each user's scores and their posterior variances."""
    mode = terms.mode_of(block, warm_start)
    curvature = mode.derivatives.curvature
    assert isinstance(curvature, DiagonalCurvature)
    known = np.maximum(curvature.root**2, 1e-12)
    variance = mode.covariance.variance / known
    # Labels without information do not bound the variance.
    return mode.system.eta(mode.state), np.minimum(variance, 10.0)
