"""Repeated labels of one item by one person: keep, merge or refuse them."""

import numpy as np

from likeminds._util.array_types import Float, Index
from likeminds._util.checks import listing
from likeminds._util.text_format import counted
from likeminds.data.coded_labels import CodedLabels
from likeminds.data.identifiers import encode_pairs

DUPLICATES = ("keep", "weights", "error")


def merge_duplicates(annotations: CodedLabels, how: str) -> tuple[Index, Float] | None:
    """Return which rows stay and what they weigh; None where all rows stay as they are.

    Rows are duplicates if they have the same user, item, attribute and choice set.
    """
    if how not in DUPLICATES:
        raise ValueError(f'duplicates must be "keep", "weights" or "error", not {how!r}.')
    if how == "keep" or not annotations.has_items:
        return None
    pair = encode_pairs(annotations.user_codes, annotations.item_codes)
    for name in ("attribute_codes", "choice_set_codes"):
        codes = getattr(annotations, name)
        if codes is not None:
            pair = encode_pairs(pair, codes)
    if how == "error":
        _refuse_duplicates(pair, annotations)
        return None
    label = np.unique(annotations.outcomes, return_inverse=True)[1]
    return _merge_rows(encode_pairs(pair, label), annotations)


def _refuse_duplicates(pair: Index, annotations: CodedLabels) -> None:
    _, first, count = np.unique(pair, return_index=True, return_counts=True)
    twice = np.sort(first[count > 1])
    if twice.size:
        people = annotations.user_ids[annotations.user_codes[twice]]
        items = annotations.item_ids[annotations.item_codes[twice]]
        named = [f"{who} of {what}" for who, what in zip(people, items, strict=True)]
        raise ValueError(
            f"{counted(len(named), 'judgement')} of an item by a person came more than once: "
            f'{listing(named)}. Keep one of each, or pass duplicates="weights" to let equal '
            'ones be one that counts more, or duplicates="keep" to let each row count.'
        )


def _merge_rows(same: Index, annotations: CodedLabels) -> tuple[Index, Float] | None:
    """Merge equal rows into one, with the sum of their weights."""
    _, first, place = np.unique(same, return_index=True, return_inverse=True)
    if len(first) == len(same):
        return None
    rows, table = annotations.feature_rows, annotations.features
    differ = (table[rows] != table[rows[first[place]]]).any(axis=1)
    if differ.any():
        raise ValueError(
            "The same judgement of an item by a person differs in its features in row(s) "
            f"{listing(np.flatnonzero(differ))}: no row could stand for all. "
            'Give different items different ids, or pass duplicates="keep".'
        )
    total = np.bincount(place, weights=annotations.weights).astype(np.float64)
    order = np.argsort(first)
    return first[order], total[order]
