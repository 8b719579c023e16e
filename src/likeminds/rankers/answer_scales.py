"""The answer scale of a ranker: its levels, and their names."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from likeminds._util.array_types import IdArray
from likeminds.data.label_parsing import LabelReading, is_pass, label_text, same_label

if TYPE_CHECKING:
    from likeminds.rankers.ranker import Ranker

# Spellings of yes and no, in addition to those of the labels.
_YES, _NO = ("yes", "true", "1"), ("no", "false", "0", "-1")
# With this many grades, levels may be bins of grades, so any number is valid.
_FINE = 20


@dataclass(frozen=True)
class AnswerScale:
    """Answers from worst to best: no and yes, or the grades of the labels.

    Examples
    --------
    >>> graded = LabelReading(threshold=2.0, grades=())
    >>> stars = AnswerScale((1.0, 2.0, 3.0), ("1", "2", "3"), graded)
    >>> stars.read(3), stars.read("2"), stars.read(True)
    (3.0, 2.0, 3.0)
    >>> votes = AnswerScale((0.0, 1.0), ("Disagree", "Agree"), LabelReading(1, -1))
    >>> votes.read("Agree"), votes.read(-1), votes.read("Pass")
    (1.0, 0.0, None)
    """

    levels: tuple[float, ...]
    words: tuple[str, ...]
    reading: LabelReading | None = None

    @classmethod
    def of_ranker(cls, ranker: "Ranker") -> "AnswerScale":
        """Return the scale on which the users of a fitted ranker answered."""
        reading: LabelReading | None = ranker.label_reading_
        levels = _levels(ranker)
        if reading is not None and reading.grades is not None and levels is not None:
            words = reading.grades or [f"{level:.3g}" for level in levels]
            if reading.grades:
                levels = [float(place) for place in range(len(words))]
            return cls(tuple(levels), tuple(map(str, words)), reading)
        named = () if reading is None else (reading.negative, reading.positive)
        if len(named) == 2 and all(isinstance(word, str) for word in named):
            return cls((0.0, 1.0), tuple(str(word).capitalize() for word in named), reading)
        agrees = ranker.verb.words == "agree with it"
        return cls((0.0, 1.0), ("Disagree", "Agree") if agrees else ("No", "Yes"), reading)

    @property
    def is_graded(self) -> bool:
        """Whether answers are grades."""
        return self.reading is not None and self.reading.grades is not None and bool(self.levels)

    def read(self, answer: Hashable) -> float | None:
        """Return the number of an answer, None for a pass.

        For grades, True is the middle grade above the threshold, and False the middle one below.
        """
        if isinstance(answer, bool | np.bool_):
            return self._typical(bool(answer)) if self.is_graded else float(answer)
        text = label_text(answer).strip()
        names = [word.lower() for word in self.words]
        if text in names:
            return self.levels[names.index(text)]
        number = _as_number(text)
        if number is not None and not self._has_words and self._spans(number):
            return number
        is_of_votes = self.reading is not None and self.reading.negative == -1
        if is_pass(answer) or (text == "0" and is_of_votes):
            return None
        found = None if self.is_graded else self._as_before(answer, text)
        if found is None:
            ends = f"a number from {self.words[0]} to {self.words[-1]}"
            known = ", ".join(self.words) if self._has_words or not self.is_graded else ends
            raise ValueError(f"{answer!r} is not an answer on this scale. Use {known}.")
        return found

    def holds(self, level: float) -> bool:
        """Whether a number is on the scale."""
        return level in self.levels or (self.is_graded and self._spans(level))

    def _spans(self, number: float) -> bool:
        fine = len(self.levels) >= _FINE
        return self.is_graded and (fine or self.levels[0] <= number <= self.levels[-1])

    def _as_before(self, answer: Hashable, text: str) -> float | None:
        """Read a yes or no in the spelling of the labels, or in a usual spelling."""
        reading = self.reading
        if reading is not None and isinstance(reading.threshold, float):
            number = _as_number(text)
            return None if number is None else float(number > reading.threshold)
        if reading is not None:
            for level, word in ((0.0, reading.negative), (1.0, reading.positive)):
                if word is not None and same_label(word, answer):
                    return level
        return float(text in _YES) if text in _YES + _NO else None

    def value_of(self, level: float) -> bool | float | str:
        """Return the answer with a number, in the spelling of the labels."""
        if not self.is_graded:
            return bool(level)
        return self.words[int(level)] if self._has_words else level

    def labels_of(self, levels: Sequence[float]) -> tuple[IdArray, LabelReading | None]:
        """Return answers as labels of `Annotations`, with their reading."""
        values = [self.value_of(level) for level in levels]
        if not self.is_graded:
            return np.array(values, dtype=bool), None
        return np.array(values, dtype=object if self._has_words else float), self.reading

    @property
    def _has_words(self) -> bool:
        return self.reading is not None and bool(self.reading.grades)

    def _typical(self, yes: bool) -> float:
        assert self.reading is not None
        levels = [one for one in self.levels if (one > float(self.reading.threshold or 0.0)) is yes]
        levels = levels or list(self.levels)
        return levels[len(levels) // 2]


def _levels(ranker: "Ranker") -> list[float] | None:
    """Return the grades of the training data, ascending; None without grades."""
    grading, annotations = ranker.grading_, ranker.annotations_
    if grading is not None:
        return [float(level) for level in grading.scale.levels]
    if annotations is not None and annotations.grades is not None:
        return [float(level) for level in np.unique(annotations.grades)]
    return None


def _as_number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
