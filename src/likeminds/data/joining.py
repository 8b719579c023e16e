"""Link rows of annotations to features, join annotations, and merge duplicates."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from likeminds._util.array_types import Bool, Float, FloatArray, IdArray, Index
from likeminds._util.checks import as_names, both_or_neither, listing, same_length
from likeminds._util.text_format import counted
from likeminds.data.coded_labels import CodedLabels
from likeminds.data.grades import refuse_mixture
from likeminds.data.identifiers import (
    as_distinct,
    coerce_ids,
    encode,
    encode_pairs,
    join_codes,
    join_ids,
    lookup,
)
from likeminds.data.label_parsing import LabelReading, join_readings
from likeminds.data.tables import read_matrix


class LinkedFeatures(NamedTuple):
    """A table of features, the ids of its items, and the row of each annotation."""

    features: FloatArray
    feature_names: tuple[str, ...]
    item_ids: IdArray
    item_codes: Index
    feature_rows: Index
    features_per: str
    has_items: bool


def link_features(
    features: object,
    items: tuple[Index, IdArray] | None,
    n_rows: int,
    *,
    item_ids: Iterable[Hashable] | None = None,
    names: Sequence[str] | None = None,
    features_per: str = "auto",
) -> LinkedFeatures:
    """Find the row of features that each annotation is about.

    ``items`` are codes and distinct ids, or None if each annotation has an item of its own;
    the other parameters are those of `Annotations`.
    """
    if features is None:
        if items is None:
            raise ValueError(
                "There are neither features nor items: pass features=, or items= with the item of "
                "each row."
            )
        none = np.zeros((len(items[1]), 0))
        return LinkedFeatures(none, (), items[1], items[0], items[0], "item", True)
    if isinstance(features, Mapping):
        if item_ids is not None:
            raise ValueError("features is a mapping by item id already: leave item_ids out.")
        features, item_ids = list(features.values()), list(features)
    if items is not None and isinstance(features, np.ndarray) and features.shape[1:] == (0,):
        matrix: FloatArray = np.zeros((len(features), 0))  # items have ids only
        found_names: tuple[str, ...] | None = None
    else:
        matrix, found_names = read_matrix(features)
    names = as_names(found_names if names is None else names, matrix.shape[1])
    per = _features_per(features_per, items, item_ids, len(matrix), n_rows)
    every_row = np.arange(len(matrix))
    if per == "row" and len(matrix) != n_rows:
        raise ValueError(
            f"features has {len(matrix)} rows, but there are {n_rows} annotations. "
            "Give one row of features per annotation; or one per item, with items= and item_ids=."
        )
    if items is None:
        return LinkedFeatures(matrix, names, every_row, every_row, every_row, "row", False)
    codes, distinct = items
    if per == "row":
        return LinkedFeatures(matrix, names, distinct, codes, every_row, "row", True)
    if item_ids is None:
        _refuse_not_index(distinct, len(matrix))
        known, codes = every_row, distinct[codes].astype(np.intp)
    else:
        known = as_distinct(item_ids, "item_ids").copy()
        same_length(item_ids=known, features=matrix)
        codes = _positions(distinct, known)[codes]
    return LinkedFeatures(matrix, names, known, codes, codes, "item", True)


def _positions(distinct: IdArray, known: IdArray) -> Index:
    positions = lookup(coerce_ids(distinct, known, "items"), known, "items")
    if (positions < 0).any():
        raise ValueError(
            f"There are no features for item(s) {listing(distinct[positions < 0])}. "
            "Add them to the features, or drop the rows about these items."
        )
    return positions


def _features_per(
    features_per: str,
    items: tuple[Index, IdArray] | None,
    item_ids: Iterable[Hashable] | None,
    n_features: int,
    n_rows: int,
) -> str:
    if features_per not in {"auto", "item", "row"}:
        raise ValueError(f'features_per must be "auto", "item" or "row", not {features_per!r}.')
    if item_ids is not None and features_per == "row":
        raise ValueError('features with item ids are per item: leave out features_per="row".')
    if items is None and (item_ids is not None or features_per == "item"):
        raise ValueError("features are per item: pass items= with the item of each row.")
    if features_per != "auto" or items is None:
        return "row" if items is None else features_per
    if item_ids is not None or n_features != n_rows:
        return "item"
    codes, distinct = items
    is_index = distinct.dtype.kind in "iu" and distinct.min() >= 0 and distinct.max() < n_features
    if is_index and not np.array_equal(distinct[codes], np.arange(n_features)):
        raise ValueError(
            f"There are as many rows of features as annotations ({n_features}), and items could "
            'be the numbers of these rows. Pass features_per="row" if row k of features belongs '
            'to annotation k, or features_per="item" if it belongs to item k.'
        )
    return "row"


def _refuse_not_index(distinct: IdArray, n_features: int) -> None:
    if distinct.dtype.kind not in "iu":
        raise ValueError(
            f"features has {n_features} rows, one per item, but items are not row numbers: "
            f"{listing([repr(value) for value in distinct.tolist()])}. "
            "Pass item_ids= with the item of each row of features."
        )
    outside = distinct[(distinct < 0) | (distinct >= n_features)]
    if outside.size:
        raise ValueError(
            f"items must be row numbers of features, 0 to {n_features - 1}, but there are also "
            f"{listing(outside)}. Pass item_ids= if items are not row numbers."
        )


def joined_columns(first: CodedLabels, second: CodedLabels) -> dict[str, Any]:
    """Return the columns of both; ids of the second get the type of those of the first."""
    if first.feature_names != second.feature_names:
        raise ValueError(
            f"Both need the same features, but have {listing(first.feature_names)} and "
            f"{listing(second.feature_names)}."
        )
    reading = join_readings(first.reading, second.reading)
    second = second.written_as(first.user_ids, first.item_ids, first.attribute_ids)
    both = (first, second)
    columns: dict[str, Any] = unite_features(first, second)._asdict()
    for names in (("user_codes", "user_ids"), ("attribute_codes", "attribute_ids")):
        ours, theirs = (tuple(getattr(part, name) for name in names) for part in both)
        if both_or_neither(ours[0], theirs[0], "attributes"):
            columns |= zip(names, join_codes(ours, theirs), strict=True)
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
    """Join a column of marks of rows; None if no part has it."""
    marks = [getattr(part, name) for part in parts]
    if all(one is None for one in marks):
        return None
    none = [np.zeros(len(part), dtype=np.bool_) for part in parts]
    pairs = zip(none, marks, strict=True)
    return np.concatenate([empty if own is None else own for empty, own in pairs])


def unite_features(first: CodedLabels, second: CodedLabels) -> LinkedFeatures:
    """Concatenate two sets of annotations, over one table of features.

    Features per item are united; an item with different features raises ValueError. Features per
    row are stacked. Rows without ids of items remain items of their own.
    """
    names = first.feature_names
    if first.features is second.features and first.item_ids is second.item_ids:
        codes = np.concatenate([first.item_codes, second.item_codes])
        rows = np.concatenate([first.feature_rows, second.feature_rows])
        about = first.features_per, first.has_items
        return LinkedFeatures(first.features, names, first.item_ids, codes, rows, *about)
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
    """Return numbers that differ from all known ids."""
    numbers = [value for value in known.tolist() if isinstance(value, int | float)]
    return np.arange(n) + (int(max(numbers)) + 1 if numbers else 0)


def _unite_items(first: CodedLabels, second: CodedLabels) -> tuple[IdArray, FloatArray, Index]:
    places = lookup(second.item_ids, first.item_ids, "items")
    new = places < 0
    differ = (first.features[places[~new]] != second.features[~new]).any(axis=1)
    if differ.any():
        raise ValueError(
            f"Item(s) {listing(second.item_ids[~new][differ])} have different features in the two "
            "sets of annotations. Give different items different ids."
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


def _join_choice_sets(users: Index, first: CodedLabels, second: CodedLabels) -> dict[str, Any]:
    """Join choice sets with the same id, if both sides have ids. A row without a set becomes a set.

    A column of ids on one side only raises ValueError.
    """
    codes_of_both = first.choice_set_codes, second.choice_set_codes
    if all(codes is None for codes in codes_of_both):
        return {}
    if first.choice_set_ids is not None or second.choice_set_ids is not None:
        both_or_neither(*codes_of_both, "choice_sets")
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
    """Return labels and grades; raise ValueError for a mixture of both."""
    refuse_mixture(first.grades is not None, second.grades is not None)
    if first.grades is None or second.grades is None or reading is None:
        return {"labels": np.concatenate([first.labels, second.labels]), "reading": reading}
    grades = np.concatenate([first.grades, second.grades])
    return {"labels": grades > reading.threshold, "reading": reading, "grades": grades}


DUPLICATES = ("keep", "weights", "error")


def merge_duplicates(annotations: CodedLabels, how: str) -> tuple[Index, Float] | None:
    """Return which rows stay, and their weights; None if all rows stay as they are.

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
            f"{counted(len(named), 'label')} of an item by a user occur more than once: "
            f'{listing(named)}. Keep one of each, or pass duplicates="weights" to merge equal '
            'labels and add their weights, or duplicates="keep" to let each row count.'
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
            "The same label of an item by a user has different features in row(s) "
            f"{listing(np.flatnonzero(differ))}: they cannot be merged. "
            'Give different items different ids, or pass duplicates="keep".'
        )
    total = np.bincount(place, weights=annotations.weights).astype(np.float64)
    order = np.argsort(first)
    return first[order], total[order]
