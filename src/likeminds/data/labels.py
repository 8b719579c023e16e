"""Labels of any convention - true/false, 0/1, -1/+1, words, ratings - as yes or no."""

import math
from collections.abc import Hashable, Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeminds._support.arrays import Bool, FloatArray, Index
from likeminds._support.checks import as_vector, listing
from likeminds.data.identifiers import as_id_array, compact, encode, encode_pairs

# The negative and the positive label; True and False are 1 and 0.
_CONVENTIONS = ({0, 1}, {-1, 1})


def as_binary(
    values: Iterable[Hashable],
    *,
    positive: Hashable | None = None,
    threshold: float | str | None = None,
    within: Sequence[Index] = (),
) -> Bool:
    """Return one boolean per label.

    Parameters
    ----------
    values : iterable
        True/False, 0/1 or -1/+1 as they are; any two values with ``positive``;
        ratings with ``threshold``.
    positive : hashable, optional
        The value that counts as positive; the other one is negative.
    threshold : float or "median", optional
        A rating is positive if it is *strictly* above this number, or strictly above
        the median of its block.
    within : sequence of integer arrays
        The codes, one per row, whose combinations are the blocks of ``"median"``:
        the person, or the person and the attribute.

    Examples
    --------
    >>> as_binary(["good", "bad", "good"], positive="good")
    array([ True, False,  True])
    >>> as_binary([1, 3, 5, 4], threshold=3)
    array([False, False,  True,  True])
    """
    labels = as_id_array(values, "labels")
    if positive is not None and threshold is not None:
        raise ValueError(
            "Pass positive= (which of two answers is the positive one) or threshold= "
            "(above which a rating is positive), not both."
        )
    if threshold is not None:
        return _above(as_vector(labels, "labels"), threshold, within)
    return _one_of_two(labels, positive)


def count_labels(codes: Index, labels: Bool) -> Index:
    """Return the number of negative and positive labels of each code.

    Examples
    --------
    >>> count_labels(np.array([0, 1, 1]), np.array([True, False, False]))
    array([[0, 1],
           [2, 0]])
    """
    n_codes = int(codes.max()) + 1
    return np.bincount(2 * codes + labels, minlength=2 * n_codes).reshape(n_codes, 2)


def block_medians(values: FloatArray, blocks: Index) -> FloatArray:
    """Return, for each row, the median of the values in the row's block.

    Examples
    --------
    >>> block_medians(np.array([1.0, 9.0, 2.0, 5.0]), np.array([0, 1, 0, 0]))
    array([2., 9., 2., 2.])
    """
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


def _one_of_two(labels: NDArray[Any], positive: Hashable | None) -> Bool:
    codes, distinct = encode(labels, "labels")
    found = distinct.tolist()
    known = any(set(found) <= convention for convention in _CONVENTIONS)
    if positive is None:
        if not known:
            raise ValueError(
                f"labels has {_described(found)}, which is none of true/false, 0/1 and -1/+1. "
                "Pass positive= to say which of two answers is the positive one, or threshold= "
                'for ratings: a number, or "median" for above each person\'s own median.'
            )
        positive = 1
    elif len(found) > 2:
        raise ValueError(
            f"labels has {_described(found)}, but positive= needs two. Drop or merge the "
            "others, or pass threshold= instead if these are ratings."
        )
    elif positive not in found and not _in_one_convention(found, positive):
        raise ValueError(
            f"positive={positive!r} does not occur in labels, which has {_described(found)}."
        )
    return np.array([value == positive for value in found], dtype=bool)[codes]


def _in_one_convention(found: Sequence[Hashable], positive: Hashable) -> bool:
    # All labels negative is no mistake as long as the pair of values is a usual one.
    return any({*found, positive} <= convention for convention in _CONVENTIONS)


def _described(found: Sequence[Hashable]) -> str:
    values = listing([repr(value) for value in found])
    return f"the value {values}" if len(found) == 1 else f"{len(found)} values ({values})"
