"""Read data frames and files, and link each annotation with its row of features."""

import logging
import warnings
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, NamedTuple, TypedDict, cast

import numpy as np
from numpy.typing import ArrayLike

from likeminds._util.array_types import FloatArray, IdArray, Index
from likeminds._util.checks import as_matrix, as_names, listing, same_length
from likeminds._util.lazy_imports import nw
from likeminds._util.result_tables import Frames, kind_of
from likeminds.data.alternatives import (
    add_constants,
    available_rows,
    find_alternatives,
    known_constants,
)
from likeminds.data.column_roles import (
    ID_ROLES,
    LABEL_ROLES,
    Frame,
    as_frame,
    default_verb,
    find_columns,
    find_item_column,
    id_texts,
    item_texts,
    may_be_feature,
    not_found,
    read_coded,
    read_values,
    refuse_unknown,
    with_index,
)
from likeminds.data.covariates import Covariates
from likeminds.data.feature_columns import (
    FiniteRows,
    feature_matrix,
    is_numeric,
    matrix_of,
    numeric_columns,
)
from likeminds.data.id_coercion import write_as_known
from likeminds.data.identifiers import as_distinct, lookup
from likeminds.data.label_parsing import LabelReading, passes_among
from likeminds.data.sources import Texts, give_back, read_table

logger = logging.getLogger(__name__)


class FrameOptions(TypedDict, total=False):
    """The keyword arguments that frames and files have in common."""

    user: str | None
    item: str | None
    label: str | None
    attribute: str | None
    weight: str | None
    choice_set: str | None
    alternative: str | None
    availability: str | None
    constants: bool
    base: Hashable | None
    features: object
    item_column: str | None
    positive: Hashable | None
    threshold: float | str | None
    grades: bool | Sequence[Hashable] | None
    reading: LabelReading | None
    duplicates: str
    user_features: object
    verb: str | None


class LinkedFeatures(NamedTuple):
    """A table of features, the ids of its items, and where each annotation points."""

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
                "There are neither features nor items: pass features=, or items= to say which item "
                "each row is about."
            )
        none = np.zeros((len(items[1]), 0))
        return LinkedFeatures(none, (), items[1], items[0], items[0], "item", True)
    if isinstance(features, Mapping):
        if item_ids is not None:
            raise ValueError("features is a mapping by item id already: leave item_ids out.")
        features, item_ids = list(features.values()), list(features)
    if items is not None and isinstance(features, np.ndarray) and features.shape[1:] == (0,):
        matrix: FloatArray = np.zeros((len(features), 0))  # known by their ids alone
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


def is_frame(features: object) -> bool:
    """Tell whether features are a data frame of any library."""
    if isinstance(features, np.ndarray | list | tuple):
        return False
    return isinstance(nw.from_native(features, pass_through=True), nw.DataFrame | nw.LazyFrame)


def read_matrix(features: object) -> tuple[FloatArray, tuple[str, ...] | None]:
    """Return an array or a data frame as a matrix, and the names of its columns, if it has any."""
    if isinstance(features, FiniteRows):
        return features.matrix, None
    if is_frame(features):
        frame = as_frame(features)
        return feature_matrix(frame, frame.columns), tuple(map(str, frame.columns))
    return as_matrix(cast("ArrayLike", features), "features"), None


def _positions(distinct: IdArray, known: IdArray) -> Index:
    positions = lookup(write_as_known(distinct, known, "items"), known, "items")
    if (positions < 0).any():
        raise ValueError(
            f"There are no features for item(s) {listing(distinct[positions < 0])}. "
            "Add them to the features, or drop the rows about these items."
        )
    return positions


def _features_per(
    asked: str,
    items: tuple[Index, IdArray] | None,
    item_ids: Iterable[Hashable] | None,
    n_features: int,
    n_rows: int,
) -> str:
    if asked not in {"auto", "item", "row"}:
        raise ValueError(f'features_per must be "auto", "item" or "row", not {asked!r}.')
    if item_ids is not None and asked == "row":
        raise ValueError('features with item ids are per item: leave out features_per="row".')
    if items is None and (item_ids is not None or asked == "item"):
        raise ValueError("features are per item, so items= must say which item each row is about.")
    if asked != "auto" or items is None:
        return "row" if items is None else asked
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
            f"features has {n_features} rows, one per item, but items are no row numbers: "
            f"{listing([repr(value) for value in distinct.tolist()])}. "
            "Pass item_ids= to say which item each row of features describes."
        )
    outside = distinct[(distinct < 0) | (distinct >= n_features)]
    if outside.size:
        raise ValueError(
            f"items must be row numbers of features, 0 to {n_features - 1}, but there are also "
            f"{listing(outside)}. Pass item_ids= if items are no row numbers."
        )


def texts_among(options: Mapping[str, Any]) -> Texts:
    """Say which columns of a file hold ids, given the options of `Annotations.from_frame`."""
    features = options.get("features")
    listed = features if isinstance(features, list | tuple) else ()
    return id_texts({role: options.get(role) for role in LABEL_ROLES}, listed)


def frame_arguments(frame: object, options: FrameOptions) -> tuple[dict[str, Any], Frames]:
    """Return the arguments of Annotations, and the kind of the frame.

    Columns are released as they are read: a frame without another reference and its copy are not
    in memory at once.
    """
    given: dict[str, Any] = dict(options)
    unknown = given.keys() - FrameOptions.__annotations__.keys()
    if unknown:
        raise TypeError(
            f"Unexpected option(s) {listing(sorted(unknown))}; there are "
            f"{', '.join(FrameOptions.__annotations__)}."
        )
    kind, frames = kind_of(frame), [frame]
    del frame
    columns = _read_columns(frames, given)
    columns |= {name: given.get(name) for name in ("positive", "threshold", "reading")}
    if any(given.get(name) is not None for name in ("grades", "positive", "threshold")):
        columns["grades"] = given.get("grades")
    known = given.get("user_features")
    columns["user_features"] = None if known is None else Covariates.read(known, given.get("user"))
    columns["verb"] = given.get("verb") or default_verb(given.get("positive")) or columns["verb"]
    columns["duplicates"] = given.get("duplicates", "keep")
    return columns, kind


def _read_columns(frames: list[object], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of the frame in a list, which is empty then."""
    features = options.get("features")
    table = as_frame(frames.pop())
    found, columns = find_roles(table, {role: options.get(role) for role in LABEL_ROLES}, features)
    table = _answered_rows(available_rows(table, found, options.get("positive")), found, options)
    alternative, made = _alternatives(table, found, columns), {}
    if alternative is not None and columns and isinstance(features, list | tuple):
        made = known_constants(*alternative, columns)
        columns = [column for column in columns if column not in made]
    arguments: dict[str, Any] = {"items": None}
    arguments["grades"] = ordered_categories(table, found["label"])
    left = Counter([*found.values(), *(columns or ())])
    for role, column in found.items():
        if column is None or role in {"alternative", "availability"}:
            continue
        arguments[f"{role}s"] = read_coded(table, column, as_ids=role in ID_ROLES)
        left[column] -= 1
        # What is read need not wait for the rest; other kinds of frames would be copied.
        if table.implementation.is_pyarrow() and not left[column]:
            table = table.drop(column)
            give_back()
    # Where there are several attributes, each has a verb of its own.
    arguments["verb"] = default_verb(found["label"]) if found.get("attribute") is None else None
    if columns is None:
        assert found["item"] is not None
        return arguments | read_items(features, found["item"], options.get("item_column"))
    if not columns and not made and alternative is None and found.get("item") is not None:
        return arguments | {"features": None}
    arguments |= {"feature_names": [*columns, *made], "features_per": "row"}
    matrix: FloatArray = np.zeros((len(arguments["users"]), 0))
    if columns:
        numeric = numeric_columns(table, columns)
        del table
        matrix = matrix_of(numeric)
    if made:
        matrix = np.column_stack([matrix, *made.values()])
    elif alternative is not None and options.get("constants", True):
        listed, base = features is not None, options.get("base")
        arguments |= {"features": matrix}
        arguments = add_constants(arguments, *alternative, base=base, listed=listed)
        matrix = arguments["features"]
    return arguments | {"features": FiniteRows(matrix) if matrix.shape[1] else matrix}


def _answered_rows(
    table: Frame, found: Mapping[str, str | None], options: Mapping[str, object]
) -> Frame:
    """Leave out rows whose label is a pass, where the others mean yes and no; warn of it."""
    label = found["label"]
    asked = any(options.get(name) is not None for name in ("positive", "threshold", "grades"))
    votes = default_verb(label) == "agree with"
    if asked or label is None or not (votes or table.schema[label] == nw.String):
        return table
    passes = passes_among(table[label].drop_nulls().unique().to_list(), votes=votes)
    if not passes:
        return table
    is_answer = ~table[label].is_in(passes)
    warnings.warn(
        f"Leaving out {int((~is_answer).sum()):,} row(s) that answer neither yes nor no: "
        f"{listing(passes)}.",
        UserWarning,
        stacklevel=6,
    )
    return table.filter(is_answer)


def _alternatives(
    table: Frame, found: Mapping[str, str | None], columns: list[str] | None
) -> tuple[str, IdArray] | None:
    """Return the column of alternatives and its values, where features are in the rows."""
    column = found.get("alternative")
    if column is None or columns is None or found.get("choice_set") is None:
        return None
    return column, read_values(table, column, as_ids=True)


def find_roles(
    table: Frame, names: Mapping[str, str | None], features: object
) -> tuple[dict[str, str | None], list[str] | None]:
    """Return the column of each role, and those of features; None where they are elsewhere."""
    listed = list(features) if isinstance(features, list | tuple) else None
    found = find_columns(table, names, listed or ())
    found = find_alternatives(table, found, names)
    if found["label"] in (listed or ()):
        raise ValueError(f"The label column {found['label']!r} must not be among the features.")
    if features is None:
        return found, _remaining_numeric(table, found)
    if listed is None and found["item"] is None:
        raise not_found("item", table)
    return found, listed


def ordered_categories(table: Frame, label: str | None) -> list[str] | None:
    """Return the order of a column of ordered categories; None if it is another column."""
    kind = None if label is None else table.schema[label]
    if not isinstance(kind, nw.Enum) or len(kind.categories) < 3:
        return None
    return list(kind.categories)


def _remaining_numeric(table: Frame, found: Mapping[str, str | None]) -> list[str]:
    """Return the columns of numbers without a role; log or warn which are taken and left out."""
    used = set(found.values())
    free = {column: kind for column, kind in table.schema.items() if column not in used}
    columns = [name for name, kind in free.items() if is_numeric(kind) and may_be_feature(name)]
    left_out = {name: kind for name, kind in free.items() if name not in columns}
    named = [f"{name} ({str(kind).partition('(')[0].lower()})" for name, kind in left_out.items()]
    message = (
        f"Features: {listing(columns) or 'none'}. Columns left out: {listing(named) or 'none'}."
    )
    if all(is_numeric(kind) for kind in left_out.values()):
        logger.info(message)
    else:
        warnings.warn(
            f"{message} Features must be numbers: encode the others, or name the columns to take "
            "with features=[...].",
            UserWarning,
            stacklevel=2,
        )
    if not columns and found.get("item") is None:
        raise ValueError(
            "There is no column of numbers left to be a feature. Pass features=: a list of "
            "columns, or a second frame with one row per item; or item=, the column that says "
            "which item each row is about: items that several people judge need no features."
        )
    return columns


def item_table(
    features: object, item_ids: Iterable[Hashable] | None, names: Sequence[str] | None
) -> tuple[IdArray, FloatArray, tuple[str, ...]]:
    """Return ids, features and names of items, of a mapping, a table, a file or an array."""
    if isinstance(features, Mapping):
        features, item_ids = list(features.values()), list(features)
    elif item_ids is None and (isinstance(features, str | PathLike) or is_frame(features)):
        found = read_items(features, "item", None)
        features, item_ids = found["features"], found["item_ids"]
        names = names or found["feature_names"]
    matrix, found_names = read_matrix(features)
    called = as_names(found_names if names is None else names, matrix.shape[1])
    ids: IdArray = np.arange(len(matrix))
    if item_ids is not None:
        ids = as_distinct(item_ids, "item_ids")
    same_length(item_ids=ids, features=matrix)
    return ids, matrix, called


def read_items(features: object, item: str, item_column: str | None) -> dict[str, Any]:
    """Read a table of one row per item; return its features, their names, and the items."""
    if isinstance(features, str | PathLike):
        features = read_table(features, item_texts(item_column, item))
    table = as_frame(features)
    if find_item_column(table.columns, item_column or item) is None:
        table = with_index(features, item_column or item)
    if item_column is not None:
        refuse_unknown(table, [item_column], "item_column")
    item_column = find_item_column(table.columns, item_column, item)
    if item_column is None:
        raise not_found("item", table, "item_column")
    columns = [column for column in table.columns if column != item_column]
    return {
        "features": feature_matrix(table, columns),
        "feature_names": columns,
        "item_ids": read_values(table, item_column, as_ids=True),
    }
