"""Labels with more than two values: ordered grades, and classes without an order."""

import warnings
from collections.abc import Hashable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np

from likeminds._util.array_types import Bool, Float, FloatArray, IdArray, Index
from likeminds._util.checks import as_vector, listing
from likeminds.data.identifiers import IntegerCodes, as_id_array, encode
from likeminds.data.label_parsing import (
    LabelReading,
    are_yes_and_no,
    as_plain,
    join_readings,
    read_labels,
    same_label,
    same_words,
)

# Grades have this many decimals: 1.0000001 is 1.
_DECIMALS = 6
# More distinct grades than this are binned by rank, into as many bins.
MOST_GRADES = 20
# The largest number of classes without an order: each has a row for every label.
MOST_CLASSES = 100


class ParsedLabels(NamedTuple):
    """Labels that were read; the grades of classes without an order are their positions."""

    binary: Bool
    reading: LabelReading | None
    grades: FloatArray | None = None


class ReadingOptions(TypedDict, total=False):
    """The keyword arguments for the reading of labels: see `likeminds.Annotations`."""

    positive: Hashable | None
    threshold: float | str | None
    grades: bool | Sequence[Hashable] | None
    nominal: bool | Sequence[Hashable]
    reading: LabelReading | None


def read_answers(
    values: Iterable[Hashable], *, within: Sequence[Index] = (), **options: Unpack[ReadingOptions]
) -> ParsedLabels:
    """Read labels as yes or no, as grades from worst to best, or as classes without an order.

    By default, labels of more than two numbers or of an ordered categorical are grades, unless
    ``positive`` or ``threshold`` is given.
    """
    positive, threshold = options.get("positive"), options.get("threshold")
    grades, known = options.get("grades"), options.get("reading")
    if options.get("nominal") or (known is not None and known.classes is not None):
        return _classified(values, options)
    if isinstance(values, IntegerCodes) and "median" not in {threshold, known and known.threshold}:
        # Whether a value is positive depends neither on users nor on frequencies.
        each = read_answers(values.distinct, **options)
        if each.grades is None:
            return ParsedLabels(each.binary[values.codes], each.reading)
    order = _order(values) if grades is None or grades is True else _listed(grades)
    labels = as_id_array(values, "labels")
    binary = partial(read_labels, labels, within=within)
    cut = positive is not None or threshold is not None
    if grades and cut:
        raise ValueError("Pass grades= (several levels), or positive= or threshold= (yes or no).")
    if known is not None and (known.grades is not None or grades):
        return _as_before(labels, order, known, positive, threshold)
    if known is not None or cut or grades is False:
        return ParsedLabels(*binary(positive=positive, threshold=threshold, known=known))
    if grades is None and order is not None and len(order) == 2:
        # Categories in alphabetical order: agree, disagree.
        best = None if are_yes_and_no(order) else order[1]
        return ParsedLabels(*binary(positive=best))
    is_undeclared = grades is None and order is None
    if is_undeclared:
        labels = _without_accidents(labels)
    return _undeclared(labels, within) if is_undeclared else _graded(labels, order, None)


def _classified(values: Iterable[Hashable], options: ReadingOptions) -> ParsedLabels:
    """Read labels as classes without an order."""
    nominal, known = options.get("nominal") or True, options.get("reading")
    if any(options.get(name) is not None for name in ("positive", "threshold", "grades")):
        raise ValueError(
            "Pass nominal= (classes without an order), or positive=, threshold= or grades=."
        )
    order = None if nominal is True else _listed(nominal, "nominal", "classes")
    if known is not None:
        if known.classes is None or (order is not None and not same_words(order, known.classes)):
            raise ValueError(
                f"nominal= contradicts the reading of earlier labels: {known}. Leave it out."
            )
        order = known.classes
    labels = as_id_array(values, "labels")
    if order is None:
        order = [as_plain(value) for value in encode(labels, "labels")[1].tolist()]
    if not 2 <= len(order) <= MOST_CLASSES:
        raise ValueError(
            f"nominal= takes 2 to {MOST_CLASSES} classes, but labels has {len(order)}: "
            f"{listing([repr(one) for one in order])}. Merge rare classes, or list all with "
            "nominal=[...]."
        )
    codes = positions_among(labels, order, "classes")
    return ParsedLabels(codes > 0, LabelReading(classes=tuple(order)), codes)


def _undeclared(labels: IdArray, within: Sequence[Index]) -> ParsedLabels:
    """Read more than two distinct numbers as grades; warn if there are too many for a scale."""
    distinct = encode(labels, "labels")[1]
    if labels.dtype.kind == "b" or len(distinct) <= 2 or are_yes_and_no(distinct.tolist()):
        return ParsedLabels(*read_labels(labels, within=within))
    found = _graded(labels, None, None)
    n_grades = len(np.unique(np.asarray(found.grades)))
    if n_grades > MOST_GRADES:
        warnings.warn(
            f"Labels have {n_grades:,} distinct numbers, which are read as grades in {MOST_GRADES} "
            'bins. Pass grades=True to accept this, or threshold= (a number or "median") to read '
            "them as yes or no.",
            UserWarning,
            stacklevel=2,
        )
    return found


def positions_among(
    labels: IdArray, order: Sequence[Hashable], called: str = "grades from worst to best"
) -> Float:
    """Return the positions of labels in a list of words; raise ValueError for other labels."""
    codes, distinct = encode(labels, "labels")
    found = distinct.tolist()
    place = [
        next((i for i, word in enumerate(order) if same_label(value, word)), -1) for value in found
    ]
    unknown = [repr(value) for value, i in zip(found, place, strict=True) if i < 0]
    if unknown:
        raise ValueError(
            f"labels has {listing(unknown)}, but the {called} are "
            f"{listing([repr(word) for word in order])}."
        )
    return np.array(place, dtype=np.float64)[codes]


def divide_evenly(grades: FloatArray, counts: Index | None = None) -> float:
    """Return the grade above which about half of the grades lie.

    With ``counts``, the grades are distinct, and these are their frequencies.
    """
    distinct, place = np.unique(grades, return_inverse=True)
    total = np.bincount(place, weights=counts)
    if len(distinct) == 1:
        return float(distinct[0])
    not_above = np.cumsum(total)
    return float(distinct[int(np.argmin(np.abs(2 * not_above[:-1] - not_above[-1])))])


def refuse_mixture(ours: bool, theirs: bool) -> None:
    """Raise ValueError for a mixture of grades and labels of yes or no."""
    if ours != theirs:
        before, now = ("grades", "yes or no") if ours else ("yes or no", "grades")
        raise ValueError(
            f"Earlier labels were read as {before}, and these as {now}. Read both in one way: "
            "threshold= turns grades into yes or no, and grades= keeps them. To join grades with "
            "comparisons, call choices() on the grades."
        )


def _order(values: object) -> Sequence[Hashable] | None:
    """Return the order of an ordered categorical (of pandas or similar); None for others."""
    kind: Any = getattr(values, "dtype", None)
    if not getattr(kind, "ordered", False):
        return None
    return list(kind.categories)


def _listed(
    words: object, name: str = "grades", called: str = "grades from worst to best"
) -> Sequence[Hashable] | None:
    """Return the words given; None for True and False."""
    if isinstance(words, bool):
        return None
    if isinstance(words, str) or not isinstance(words, Iterable):
        raise TypeError(f"{name} must be a list of {called}, or True, not {words!r}.")
    order = [as_plain(value) for value in words]
    repeated = [repr(a) for i, a in enumerate(order) if any(same_label(a, b) for b in order[:i])]
    if repeated or len(order) < 2:
        wrong = f"{listing(repeated)} occurs twice" if repeated else f"there are {len(order)}"
        raise ValueError(
            f"{name} must list two or more different {called.split(maxsplit=1)[0]}, but {wrong}."
        )
    return order


def _as_before(
    labels: IdArray,
    order: Sequence[Hashable] | None,
    known: LabelReading,
    positive: Hashable | None,
    threshold: float | str | None,
) -> ParsedLabels:
    """Read labels as earlier grades were read."""
    refuse_mixture(known.grades is not None, True)
    if positive is not None or threshold is not None:
        known.refuse_other(positive, threshold)
        raise ValueError(f"In the earlier reading, {known}: leave out threshold=.")
    words = known.grades or None
    if order is not None and not _are_numbers(order):
        join_readings(known, LabelReading(threshold=known.threshold, grades=tuple(order)))
    return _graded(labels, words, known)


def _graded(
    labels: IdArray, order: Sequence[Hashable] | None, known: LabelReading | None
) -> ParsedLabels:
    words: tuple[Hashable, ...] = ()
    if order is not None and not _ascends(order):
        words = tuple(as_plain(value) for value in order)
        grades = positions_among(labels, words)
    else:
        grades = np.round(_numbers(labels), _DECIMALS)
        _refuse_too_fine(labels, grades)
        if order is not None:
            positions_among(grades, list(order))
    cut = divide_evenly(grades) if known is None else known.threshold
    assert isinstance(cut, float)
    reading = LabelReading(threshold=cut, grades=words) if known is None else known
    return ParsedLabels(grades > cut, reading, grades)


def _numbers(labels: IdArray) -> FloatArray:
    """Return labels as numbers; texts of numbers are converted."""
    if labels.dtype.kind == "b":
        raise ValueError("labels are true and false, which are not grades.")
    if labels.dtype.kind != "O":
        return as_vector(labels, "labels")
    distinct = encode(labels, "labels")[1].tolist()
    words = [repr(value) for value in distinct if not _is_number(value)]
    if words:
        raise ValueError(
            f"labels has {len(distinct)} values, of which {listing(words)} are words without an "
            "order. Pass grades= with all of them from worst to best (or an ordered categorical), "
            "nominal=True for classes without an order, or positive= with the positive one of two "
            "answers. Leave out rows that answer neither yes nor no, such as passes."
        )
    return as_vector(labels.astype(np.float64), "labels")


def _without_accidents(labels: IdArray) -> IdArray:
    """Round numbers to the decimals of grades."""
    if labels.dtype.kind == "O" and {type(value) for value in labels.tolist()} == {int, float}:
        labels = labels.astype(np.float64)  # a list of both
    if labels.dtype.kind != "f":
        return labels
    rounded: IdArray = np.round(labels.astype(np.float64), _DECIMALS)
    _refuse_too_fine(labels, rounded)
    return rounded


def _refuse_too_fine(labels: IdArray, rounded: FloatArray) -> None:
    if np.ptp(rounded) == 0.0 and labels.dtype.kind == "f" and np.ptp(labels) > 0.0:
        raise ValueError(
            f"labels are from {labels.min()!r} to {labels.max()!r}, all {rounded[0]:g} to "
            f"{_DECIMALS} decimals, which is one grade only. Multiply them if they differ in "
            "meaning."
        )


def _is_number(value: Hashable) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return not isinstance(value, bool)


def _are_numbers(order: Sequence[Hashable]) -> bool:
    return all(_is_number(value) for value in order)


def _ascends(order: Sequence[Hashable]) -> bool:
    """Return whether grades are listed as ascending numbers."""
    return _are_numbers(order) and bool((np.diff([float(v) for v in order]) > 0).all())  # type: ignore[arg-type]
