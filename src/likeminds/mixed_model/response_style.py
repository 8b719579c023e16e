"""How people turn scores into grades, and the grades that they would give."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from likeminds._util.array_types import Bool, Float, FloatArray, IdArray, Index
from likeminds.data.label_parsing import LabelReading
from likeminds.mixed_model.ordinal import CumulativeLogit


@dataclass(frozen=True)
class GradePredictions:
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


@dataclass(frozen=True)
class ResponseStyle:
    """How some people use a scale: with the same score, one gives a 5 and another a 7.

    Attributes
    ----------
    grading : CumulativeLogit
        How grades follow from scores, with everybody's use of the scale and shift.
    reading : LabelReading
        How grades were read, with their words where they are words.
    """

    grading: CumulativeLogit
    reading: LabelReading

    def predict(self, eta: Float, variance: Float, people: Index) -> GradePredictions:
        """Return the grades that people (-1: anybody) would give, by scores and their variances."""
        grading, words = self.grading, self.reading.grades
        use, added = grading.ways(people)
        chances = grading.chances(eta + added, variance, use)
        levels: NDArray[np.generic] = grading.scale.levels
        if words:
            levels = np.array(words, dtype=object)[levels.astype(np.intp)]
        return GradePredictions(levels, chances, chances @ grading.scale.levels)

    def told(self, grades: FloatArray, people: Index) -> "PointwiseLoss":
        """Return what grades say of their scores."""
        use, added = self.grading.ways(people)
        return PointwiseGradeLoss(self.grading, self.grading.scale.codes(grades), use, added)

    def some(self, people: slice | Index) -> "ResponseStyle":
        """Return the ways of some of the people."""
        grading, shifts = self.grading, self.grading.shifts
        shifts = None if shifts is None else shifts[people]
        return replace(self, grading=replace(grading, use=grading.use[people], shifts=shifts))

    def of_strangers(self, n_people: int) -> "ResponseStyle":
        """Return the crowd's way, for people of whom nothing is known."""
        usual = replace(self.grading, use=np.ones(n_people), shifts=np.zeros(n_people))
        return replace(self, grading=usual)

    def of_newcomers(self, grades: FloatArray, people: Index, eta: Float) -> "ResponseStyle":
        """Return the ways of newcomers, by their own grades of items with such scores."""
        grading, shifts = self.grading, self.grading.shifts
        shifts = np.zeros(1) if shifts is None else shifts
        usual = replace(grading.of_people(grades, people), shifts=None)
        codes = grading.scale.codes(grades)
        variance = float((shifts**2).mean())
        return replace(self, grading=usual.with_shifts(codes, people, eta, variance=variance))


class PointwiseLoss:
    """What somebody said of items, as a function of the scores."""

    def at(self, scores: Float) -> tuple[Float, Float]:
        """Return minus the slope of each label's loss by its score, and its curvature."""
        raise NotImplementedError


@dataclass(frozen=True)
class PointwiseLabelLoss(PointwiseLoss):
    """Labels of yes or no; scores are their log-odds."""

    positive: Bool

    def at(self, scores: Float) -> tuple[Float, Float]:
        """Return minus the slope, and the curvature."""
        chance = expit(scores)
        return self.positive - chance, chance * (1.0 - chance)


@dataclass(frozen=True)
class PointwiseGradeLoss(PointwiseLoss):
    """Grades: their bins, and how those who gave them use the scale."""

    grading: CumulativeLogit
    codes: Index
    use: Float
    added: Float

    def at(self, scores: Float) -> tuple[Float, Float]:
        """Return minus the slope, and the curvature."""
        return self.grading.slopes(scores + self.added, self.codes, self.use)
