"""Labels of any convention - true/false, 0/1, -1/+1, words, ratings - as yes or no."""

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from likeminds._util.array_types import Bool, FloatArray, Index
from likeminds._util.checks import as_vector, listing
from likeminds.data.identifiers import as_id_array, compact, encode, encode_pairs

# The negative and the positive label; True and False are 1 and 0.
_CONVENTIONS = ({0, 1}, {-1, 1})
# Answers in words, whatever their case: the positive ones, and the negative ones.
_WORDS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("yes", "y"), ("no", "n")),
    (("true", "t"), ("false", "f")),
    (("agree", "agrees", "agreed"), ("disagree", "disagrees", "disagreed")),
    (("like", "likes", "liked"), ("dislike", "dislikes", "disliked")),
    (("approve", "approves", "approved"), ("disapprove", "disapproves", "disapproved")),
    (("1",), ("0",)),
    (("1", "+1"), ("-1",)),
)
# Words for passes: neither yes nor no.
_PASSES = ("pass", "passes", "passed", "skip", "skips", "skipped", "abstain", "abstains")


def read_labels(
    values: Iterable[Hashable],
    *,
    positive: Hashable | None = None,
    threshold: float | str | None = None,
    within: Sequence[Index] = (),
    known: "LabelReading | None" = None,
) -> tuple[Bool, "LabelReading | None"]:
    """Return one boolean per label, and their reading (None if they were booleans).

    The median is over rows with the same codes in ``within``. ``known`` is the reading of earlier
    labels, which these must fit.
    """
    labels = as_id_array(values, "labels")
    if positive is not None and threshold is not None:
        raise ValueError(
            "Pass positive= (the positive one of two answers) or threshold= (ratings above it are "
            "positive), not both."
        )
    if known is not None:
        known.refuse_other(positive, threshold)
        threshold = known.threshold
    if threshold is not None:
        if labels.dtype.kind == "b":
            raise ValueError(
                "labels are true and false, which are not ratings: leave out threshold="
                f"{threshold}."
            )
        binary = _above(as_vector(labels, "labels"), threshold, within)
        return binary, LabelReading(threshold=as_plain(threshold))
    codes, distinct = encode(labels, "labels")
    spelt = _one_spelling(distinct.tolist())
    found = list(dict.fromkeys(spelt))
    positive = _positive_of(found, positive) if known is None else known.positive_among(found)
    binary = np.array([value == positive for value in spelt], dtype=bool)[codes]
    if known is None and labels.dtype.kind == "b":
        return binary, None
    negative = next((value for value in found if value != positive), None)
    now = LabelReading(as_plain(positive), as_plain(negative))
    return binary, now if known is None else join_readings(known, now)


@dataclass(frozen=True)
class LabelReading:
    """The reading of labels as yes or no: by a threshold, or by the positive one of two values."""

    positive: Hashable | None = None
    negative: Hashable | None = None
    threshold: float | str | None = None
    # Files of earlier versions have none.
    grades: tuple[Hashable, ...] | None = None
    # Classes without an order.
    classes: tuple[Hashable, ...] | None = None

    def __str__(self) -> str:
        if self.classes is not None:
            return f"labels are the classes {listing([repr(one) for one in self.classes])}"
        if self.grades is not None:
            ends = f" from {self.grades[0]!r} to {self.grades[-1]!r}" if self.grades else ""
            return f"labels are grades{ends}"
        if self.threshold == "median":
            return "ratings above a user's own median are positive"
        if self.threshold is not None:
            return f"ratings above {self.threshold:g} are positive"
        other = "" if self.negative is None else f" and {self.negative!r} is not"
        return f"{self.positive!r} is positive{other}"

    def refuse_other(self, positive: Hashable | None, threshold: float | str | None) -> None:
        """Raise ValueError for arguments that contradict this reading."""
        asked = threshold is not None and threshold != self.threshold
        if asked or (positive is not None and not same_label(positive, self.positive)):
            asks = f"positive={positive!r}" if threshold is None else f"threshold={threshold}"
            raise ValueError(
                f"{asks} contradicts the reading of earlier labels: {self}. Leave it out, or "
                "recode the labels."
            )

    def positive_among(self, found: Sequence[Hashable]) -> Hashable:
        """Return the value that is positive; raise ValueError for new values."""
        others = [value for value in found if not same_label(value, self.positive)]
        fits = all(same_label(value, self.negative) for value in others)
        if self.negative is None:
            usual = _is_convention({self.positive, *others})
            fits = len(others) < 2 and (usual or self.positive not in {0, 1})
        if not fits:
            raise ValueError(
                f"labels has {_described(found)}, which does not fit the reading of earlier "
                f"labels: {self}."
            )
        same = [value for value in found if same_label(value, self.positive)]
        return same[0] if same else self.positive


def join_readings(first: LabelReading | None, second: LabelReading | None) -> LabelReading | None:
    """Return the common reading of the labels of both; raise ValueError if there is none."""
    if first is None or second is None:
        return second if first is None else first
    ours, theirs = first.grades, second.grades
    if ours is not None and theirs is not None:
        alike = same_words(ours, theirs)
    else:
        alike = first.threshold == second.threshold and ours is theirs is None
    alike = alike and same_words(first.classes or (), second.classes or ())
    alike = alike and same_label(first.positive, second.positive)
    negatives = first.negative, second.negative
    if not alike or not (None in negatives or same_label(*negatives)):
        raise ValueError(
            f"Labels were read in two ways: in some, {first}; in others, {second}. Read all of "
            "them in one way (positive=, threshold=, grades=, nominal=)."
        )
    return first if first.negative is not None else replace(first, negative=second.negative)


def count_labels(codes: Index, labels: Bool) -> Index:
    """Return the number of negative and positive labels of each code."""
    n_codes = int(codes.max()) + 1
    return np.bincount(2 * codes + labels, minlength=2 * n_codes).reshape(n_codes, 2)


def block_medians(values: FloatArray, blocks: Index) -> FloatArray:
    """Return, for each row, the median of the values in the row's block."""
    blocks, _ = compact(blocks, int(blocks.max()) + 1)
    ordered = values[np.lexsort((values, blocks))]
    counts = np.bincount(blocks)
    starts = np.cumsum(counts) - counts
    lower, upper = ordered[starts + (counts - 1) // 2], ordered[starts + counts // 2]
    medians: FloatArray = (lower + upper) / 2
    return medians[blocks]


def _above(ratings: FloatArray, threshold: float | str, within: Sequence[Index]) -> Bool:
    if isinstance(threshold, Real) and not isinstance(threshold, bool) and math.isfinite(threshold):
        return ratings > float(threshold)
    if not isinstance(threshold, str) or threshold != "median":
        raise ValueError(f'threshold must be a number or "median", not {threshold!r}.')
    blocks: Index = np.zeros(len(ratings), dtype=np.intp)
    for codes in within:
        blocks = encode_pairs(blocks, codes)
    return ratings > block_medians(ratings, blocks) if ratings.size else ratings > 0


def is_pass(answer: Hashable) -> bool:
    """Return whether an answer is a word for a pass, such as pass or skip."""
    return isinstance(answer, str) and _letters(answer) in _PASSES


def passes_among(found: Iterable[Hashable], *, votes: bool = False) -> list[Hashable]:
    """Return the words for passes among distinct labels, if the other labels are yes and no.

    With ``votes``, 0 is a pass if the labels are -1, 0 and 1.
    """
    values = list(found)
    if votes and set(values) == {-1, 0, 1}:
        return [0]
    none = [value for value in values if is_pass(value)]
    rest = [value for value in values if value not in none]
    return none if rest and are_yes_and_no(rest) else []


def are_yes_and_no(found: Iterable[Hashable]) -> bool:
    """Return whether all values are words for yes and no, such as agree and disagree."""
    return _words_of(found) is not None


def _words_of(found: Iterable[Hashable]) -> list[bool] | None:
    """Return which of some words are positive; None unless all are words of one pair."""
    words = [_letters(value) if isinstance(value, str) else None for value in found]
    for yes, no in _WORDS:
        if words and all(word in (*yes, *no) for word in words):
            return [word in yes for word in words]
    return None


def _letters(word: str) -> str:
    return word.strip().lower()


def _one_spelling(found: Sequence[Hashable]) -> list[Hashable]:
    """Return words for yes and no in their first spelling, other values as they are."""
    words = _words_of(found)
    if words is None:
        return list(found)
    first = {word: str(found[words.index(word)]).strip() for word in set(words)}
    return [first[word] for word in words]


def _positive_of(found: Sequence[Hashable], positive: Hashable | None) -> Hashable:
    """Return the positive one of the values."""
    if positive is None:
        words = _words_of(found)
        if words is not None:
            if True in words:
                return found[words.index(True)]
            negative = _letters(str(found[0]))
            return next(yes[no.index(negative)] for yes, no in _WORDS if negative in no)
        if not _is_convention(set(found)):
            raise ValueError(
                f"labels has {_described(found)}, not one of the pairs "
                "true/false, 0/1, -1/+1, yes/no and agree/disagree. "
                "Pass positive= with the positive one of two answers; threshold= for ratings (a "
                'number, or "median" for each user\'s own median); or grades=True to learn from '
                "ratings as they are."
            )
        return 1
    if len(found) > 2:
        raise ValueError(
            f"labels has {_described(found)}, but positive= needs two. Drop or merge the "
            "others, or pass threshold= instead if these are ratings."
        )
    same = [value for value in found if same_label(value, positive)]
    if same and positive not in found:
        return same[0]
    # All labels may be negative if the two values are a usual pair.
    both = {*found, positive}
    if not same and not _is_convention(both) and not are_yes_and_no(both):
        raise ValueError(
            f"positive={positive!r} does not occur in labels, which has {_described(found)}."
        )
    return positive


def same_label(first: object, second: object) -> bool:
    """Return whether two labels are equal; the number 1 and the text "1" are."""
    return first == second or (
        None not in (first, second) and label_text(first) == label_text(second)
    )


def same_words(first: Sequence[Hashable], second: Sequence[Hashable]) -> bool:
    """Return whether two lists have the same labels in the same order."""
    return len(first) == len(second) and all(map(same_label, first, second))


def label_text(value: object) -> str:
    """Return a label as lower-case text, whole numbers without decimals."""
    if isinstance(value, bool) or (isinstance(value, float) and value.is_integer()):
        value = int(value)
    return str(value).lower()


def as_plain(value: object) -> Any:
    """Return a label in a type that files can hold."""
    value = value.item() if isinstance(value, np.generic) else value
    plain = value is None or isinstance(value, bool | int | float | str)
    return value if plain else str(value)


def _is_convention(values: set[Hashable]) -> bool:
    return any(values <= convention for convention in _CONVENTIONS)


def _described(found: Sequence[Hashable]) -> str:
    values = listing([repr(value) for value in found])
    return f"the value {values}" if len(found) == 1 else f"{len(found)} values ({values})"
