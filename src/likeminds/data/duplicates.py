"""Repeated labels of one item by one person: keep, merge or refuse them."""

import numpy as np

from likeminds._util.array_types import Float, Index
from likeminds._util.checks import listing
from likeminds._util.text_format import counted
from likeminds.data.identifiers import encode_pairs
from likeminds.data.integer_coding import CodedLabels

DUPLICATES = ("keep", "weights", "error")


def settle_duplicates(said: CodedLabels, how: str) -> tuple[Index, Float] | None:
    """Return which rows stay and what they weigh; None where all rows stay as they are.

    ``how`` is the parameter ``duplicates`` of `Annotations`. Two rows are
    judgements of the same if person, item, attribute and group are.
    """
    if how not in DUPLICATES:
        raise ValueError(f'duplicates must be "keep", "weights" or "error", not {how!r}.')
    if how == "keep" or not said.has_items:
        return None
    pair = encode_pairs(said.user_codes, said.item_codes)
    for name in ("attribute_codes", "choice_set_codes"):
        codes = getattr(said, name)
        if codes is not None:
            pair = encode_pairs(pair, codes)
    if how == "error":
        _refuse_duplicates(pair, said)
        return None
    label = np.unique(said.outcomes, return_inverse=True)[1]
    return _merge_rows(encode_pairs(pair, label), said)


def _refuse_duplicates(pair: Index, said: CodedLabels) -> None:
    _, first, count = np.unique(pair, return_index=True, return_counts=True)
    twice = np.sort(first[count > 1])
    if twice.size:
        people = said.user_ids[said.user_codes[twice]]
        items = said.item_ids[said.item_codes[twice]]
        named = [f"{who} of {what}" for who, what in zip(people, items, strict=True)]
        raise ValueError(
            f"{counted(len(named), 'judgement')} of an item by a person came more than once: "
            f'{listing(named)}. Keep one of each, or pass duplicates="weights" to let equal '
            'ones be one that counts more, or duplicates="keep" to let each row count.'
        )


def _merge_rows(same: Index, said: CodedLabels) -> tuple[Index, Float] | None:
    """Merge equal rows into one, with the sum of their weights."""
    _, first, place = np.unique(same, return_index=True, return_inverse=True)
    if len(first) == len(same):
        return None
    rows, table = said.feature_rows, said.features
    differ = (table[rows] != table[rows[first[place]]]).any(axis=1)
    if differ.any():
        raise ValueError(
            "The same judgement of an item by a person differs in its features in row(s) "
            f"{listing(np.flatnonzero(differ))}: no row could stand for all. "
            'Give different items different ids, or pass duplicates="keep".'
        )
    total = np.bincount(place, weights=said.weights).astype(np.float64)
    order = np.argsort(first)
    return first[order], total[order]
