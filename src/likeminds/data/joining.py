"""Rows of annotations joined: `Annotations.concat`, and duplicates of one label."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from likeminds._util.array_types import Bool, Float, FloatArray, IdArray, Index
from likeminds._util.checks import both_or_neither, listing
from likeminds._util.text_format import counted
from likeminds.data.coded_labels import CodedLabels
from likeminds.data.feature_columns import LinkedFeatures
from likeminds.data.grades import refuse_mixture
from likeminds.data.identifiers import (
    coerce_ids,
    encode,
    encode_pairs,
    join_codes,
    join_ids,
    lookup,
)
from likeminds.data.label_parsing import LabelReading, join_readings


def joined_columns(first: CodedLabels, second: CodedLabels) -> dict[str, Any]:
    """Return the columns of both, ids of the second written as those of the first."""
    if first.feature_names != second.feature_names:
        raise ValueError(
            f"The features differ: {listing(first.feature_names)} here, "
            f"{listing(second.feature_names)} there."
        )
    reading = join_readings(first.reading, second.reading)
    second = second.written_as(first.user_ids, first.item_ids, first.attribute_ids)
    both = (first, second)
    linked = (
        LinkedFeatures(*(getattr(part, name) for name in LinkedFeatures._fields)) for part in both
    )
    columns: dict[str, Any] = unite_features(*linked)._asdict()
    for names in (("user_codes", "user_ids"), ("attribute_codes", "attribute_ids")):
        ours, theirs = (tuple(getattr(part, name) for name in names) for part in both)
        if both_or_neither(ours[0], theirs[0], "attributes"):
            columns |= zip(names, join_codes(ours, theirs), strict=True)
    if _have_choice_sets(first, second):
        columns |= _join_choice_sets(columns["user_codes"], first, second)
    columns |= {name: joined_marks(both, name) for name in ("picks_worst", "tied")}
    if first.weights is not None or second.weights is not None:
        weights = [np.ones(len(a)) if a.weights is None else a.weights for a in both]
        columns["weights"] = np.concatenate(weights)
    columns |= _join_labels(first, second, reading)
    users, more = first.user_features, second.user_features
    if users is None or more is None or users is more:
        columns["user_features"] = users or more
    else:
        columns["user_features"] = users.join(more)
    columns["verb"] = first.verb or second.verb
    return columns


def joined_marks(parts: Sequence[CodedLabels], name: str) -> Bool | None:
    """Join a column of marks of rows; None where no part has it."""
    marks = [getattr(part, name) for part in parts]
    if all(one is None for one in marks):
        return None
    none = [np.zeros(len(part), dtype=np.bool_) for part in parts]
    pairs = zip(none, marks, strict=True)
    return np.concatenate([empty if own is None else own for empty, own in pairs])


def unite_features(first: LinkedFeatures, second: LinkedFeatures) -> LinkedFeatures:
    """Put two sets of annotations one after the other, over one table of features.

    Features per item are united, and an item that differs is refused; else they are stacked.
    Rows that are items of their own stay so: they share no item with any other row.
    """
    names = first.feature_names
    if first.features is second.features and first.item_ids is second.item_ids:
        codes = np.concatenate([first.item_codes, second.item_codes])
        rows = np.concatenate([first.feature_rows, second.feature_rows])
        return LinkedFeatures(*first[:3], codes, rows, *first[5:])
    if first.features_per == second.features_per == "item":
        ids, features, places = _unite_items(first, second)
        rows = np.concatenate([first.item_codes, places[second.item_codes]])
        return LinkedFeatures(features, names, ids, rows, rows, "item", True)
    ours, theirs = first.item_ids, second.item_ids
    if not second.has_items:
        theirs = _fresh_ids(ours, len(theirs))
    elif not first.has_items:
        ours = _fresh_ids(theirs, len(ours))
    codes, ids = join_codes((first.item_codes, ours), (second.item_codes, theirs))
    rows = np.concatenate([first.feature_rows, second.feature_rows + len(first.features)])
    features = np.vstack([first.features, second.features])
    either = first.has_items or second.has_items
    return LinkedFeatures(features, names, ids, codes, rows, "row", either)


def _fresh_ids(known: IdArray, n: int) -> Index:
    """Return numbers that none of the known ids is equal to."""
    numbers = [value for value in known.tolist() if isinstance(value, int | float)]
    return np.arange(n) + (int(max(numbers)) + 1 if numbers else 0)


def _unite_items(
    first: LinkedFeatures, second: LinkedFeatures
) -> tuple[IdArray, FloatArray, Index]:
    places = lookup(second.item_ids, first.item_ids, "items")
    new = places < 0
    differ = (first.features[places[~new]] != second.features[~new]).any(axis=1)
    if differ.any():
        raise ValueError(
            f"Item(s) {listing(second.item_ids[~new][differ])} have other features in one set of "
            "annotations than in the other. Give different items different ids."
        )
    if not new.any():
        return first.item_ids, first.features, places
    places[new] = len(first.features) + np.arange(new.sum())
    features = np.vstack([first.features, second.features[new]])
    return join_ids(first.item_ids, second.item_ids[new]), features, places


def named_choice_sets(users: Index, codes: Index | None, ids: IdArray | None) -> dict[str, Any]:
    """Return the choice set of each row and its id; one id used by two users makes two sets."""
    if codes is None or ids is None:
        return {"choice_set_codes": None, "choice_set_ids": None}
    sets = encode_pairs(users, codes)
    id_codes = np.zeros(int(sets.max()) + 1, dtype=np.intp)
    id_codes[sets] = codes
    return {"choice_set_codes": sets, "choice_set_ids": ids[id_codes]}


def _have_choice_sets(first: CodedLabels, second: CodedLabels) -> bool:
    """Tell whether there are choice sets; a column of their ids on one side only is refused."""
    if first.choice_set_ids is None and second.choice_set_ids is None:
        return first.choice_set_codes is not None or second.choice_set_codes is not None
    return both_or_neither(first.choice_set_codes, second.choice_set_codes, "choice_sets")


def _join_choice_sets(users: Index, first: CodedLabels, second: CodedLabels) -> dict[str, Any]:
    """Join sets of one id; without ids on both sides, none. Rows without a set are one each."""
    ours, theirs = (
        np.arange(len(part)) if part.choice_set_codes is None else part.choice_set_codes
        for part in (first, second)
    )
    if first.choice_set_ids is None or second.choice_set_ids is None:
        joint = np.concatenate([ours, theirs + int(ours.max()) + 1])
        return {"choice_set_codes": joint, "choice_set_ids": None}
    codes, ids = encode(second.choice_set_ids, "choice_sets")
    known = encode(first.choice_set_ids, "choice_sets")[1]
    second_sets = codes[theirs], coerce_ids(ids, known, "choice_sets")
    return named_choice_sets(users, *join_codes((ours, first.choice_set_ids), second_sets))


def _join_labels(
    first: CodedLabels, second: CodedLabels, reading: LabelReading | None
) -> dict[str, Any]:
    """Return labels and grades; refuse a mixture of both."""
    refuse_mixture(first.grades is not None, second.grades is not None)
    if first.grades is None or second.grades is None or reading is None:
        return {"labels": np.concatenate([first.labels, second.labels]), "reading": reading}
    grades = np.concatenate([first.grades, second.grades])
    return {"labels": grades > reading.threshold, "reading": reading, "grades": grades}


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
        users = annotations.user_ids[annotations.user_codes[twice]]
        items = annotations.item_ids[annotations.item_codes[twice]]
        named = [f"{who} of {what}" for who, what in zip(users, items, strict=True)]
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
