"""Read data frames and files as the arguments of `Annotations`."""

import logging
import re
import warnings
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike

from likeminds._util.array_types import FloatArray, IdArray
from likeminds._util.checks import as_matrix, as_names, listing, same_length
from likeminds._util.lazy_imports import nw, pa
from likeminds._util.result_tables import KINDS, Frames
from likeminds.data.alternatives import add_constants, available_rows, constants_among
from likeminds.data.column_roles import (
    LABEL_ROLES,
    MARKS,
    Frame,
    as_frame,
    default_verb,
    find_columns,
    id_texts,
    may_be_feature,
    not_found,
    read_role,
    read_values,
    refuse_unknown,
    split_keys,
)
from likeminds.data.covariates import Covariates
from likeminds.data.grades import ReadingOptions
from likeminds.data.identifiers import as_distinct
from likeminds.data.label_parsing import passes_among
from likeminds.data.sources import Texts, give_back

logger = logging.getLogger(__name__)

# Columns with this many rows are freed as soon as they are read.
_MANY_ROWS = 1 << 20
SEPARATOR = "|"
# A category of fewer items is not a feature.
_FEWEST = 3
# With more distinct texts, a column holds names, not categories.
_MOST_KINDS = 50
# "(no genres listed)" is not a genre.
_NOTHING = re.compile(r"\(no\b.*\)", re.IGNORECASE)


class LabelKeywords(ReadingOptions, total=False):
    """The keyword arguments for the reading of labels, and for users."""

    duplicates: str
    user_features: object
    verb: str | None


class FrameOptions(LabelKeywords, total=False):
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


def texts_among(options: Mapping[str, Any]) -> Texts:
    """Return which columns of a file hold ids, given the options of `Annotations.from_frame`."""
    features = options.get("features")
    listed = features if isinstance(features, list | tuple) else ()
    return id_texts({role: options.get(role) for role in LABEL_ROLES}, listed)


def frame_arguments(frame: object, options: FrameOptions) -> tuple[dict[str, Any], Frames]:
    """Return the arguments of Annotations, and the kind of the frame.

    Columns are released as they are read. So a frame without other references is not in memory
    together with its copy.
    """
    named: dict[str, Any] = dict(options)
    unknown = named.keys() - FrameOptions.__annotations__.keys()
    if unknown:
        raise TypeError(
            f"Unexpected option(s) {listing(sorted(unknown))}; there are "
            f"{', '.join(FrameOptions.__annotations__)}."
        )
    kind, frames = _kind_of(frame), [frame]
    del frame
    columns = _read_columns(frames, named)
    passed_on = ("positive", "threshold", "reading", "nominal", "duplicates")
    columns |= {name: named[name] for name in passed_on if name in named}
    if _is_declared(named):
        columns["grades"] = named.get("grades")
    if named.get("user_features") is not None:
        columns["user_features"] = Covariates.read(named["user_features"], named.get("user"))
    columns["verb"] = named.get("verb") or default_verb(named.get("positive")) or columns["verb"]
    return columns, kind


def _read_columns(frames: list[object], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that a frame holds; its list is emptied to release the frame."""
    features = options.get("features")
    table = as_frame(frames.pop())
    found, columns = find_roles(table, {role: options.get(role) for role in LABEL_ROLES}, features)
    label = str(found["label"])
    table = _answered_rows(table, label, found["availability"], options)
    alternative, made = _alternatives(table, found, columns), {}
    if alternative is not None and columns and isinstance(features, list | tuple):
        made = constants_among(*alternative, columns)
        columns = [column for column in columns if column not in made]
    arguments: dict[str, Any] = {"items": None}
    arguments["grades"] = ordered_categories(table, label)
    uses = Counter([*found.values(), *(columns or ())])
    for role, column in found.items():
        if column is None or role in {"alternative", "availability"}:
            continue
        arguments |= read_role(table, role, column)
        uses[column] -= 1
        # Columns of Arrow are released one by one; other kinds of frames would be copied.
        if table.implementation.is_pyarrow() and not uses[column]:
            table = table.drop(column)
            give_back()
    # With several attributes, each has its own verb.
    arguments["verb"] = default_verb(label) if found.get("attribute") is None else None
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
    table: Frame, label: str, availability: str | None, options: Mapping[str, Any]
) -> Frame:
    """Leave out alternatives that were not available; and passes, if other labels are yes or no."""
    if availability is not None:
        table = available_rows(table, availability, label, options.get("positive"))
    votes = default_verb(label) == "agree with"
    if _is_declared(options) or not (votes or table.schema[label] == nw.String):
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


def _is_declared(options: Mapping[str, Any]) -> bool:
    """Return whether options define the reading of labels."""
    known = options.get("reading")
    ways = (options.get(name) for name in ("grades", "positive", "threshold"))
    is_nominal = options.get("nominal") or (known is not None and known.classes is not None)
    return bool(is_nominal) or any(one is not None for one in ways)


def _alternatives(
    table: Frame, found: Mapping[str, str | None], columns: list[str] | None
) -> tuple[str, IdArray] | None:
    """Return the column of alternatives and its values, if features are in the rows."""
    column = found.get("alternative")
    if column is None or columns is None or found.get("choice_set") is None:
        return None
    return column, read_values(table, column, as_ids=True)


def find_roles(
    table: Frame, names: Mapping[str, str | None], features: object
) -> tuple[dict[str, str | None], list[str] | None]:
    """Return the columns of roles and of features; None for features in another table."""
    listed = list(features) if isinstance(features, list | tuple) else None
    found = find_columns(table, names, listed or ())
    if found["label"] in (listed or ()):
        raise ValueError(f"The label column {found['label']!r} must not be among the features.")
    if found.get("choice_set") is not None:
        free = {*table.columns} - {*found.values()} - {*(listed or ())}
        found |= {mark: mark for mark in MARKS if mark in free}
    if features is None:
        return found, _remaining_numeric(table, found)
    if listed is None and found["item"] is None:
        raise not_found("item", table)
    return found, listed


def ordered_categories(table: Frame, label: str) -> list[str] | None:
    """Return the order of a column of ordered categories; None if it is another column."""
    kind = table.schema[label]
    if not isinstance(kind, nw.Enum) or len(kind.categories) < 3:
        return None
    return list(kind.categories)


def _remaining_numeric(table: Frame, found: Mapping[str, str | None]) -> list[str]:
    """Return the numeric columns without a role; log or warn which columns are left out."""
    used = set(found.values())
    free = {column: kind for column, kind in table.schema.items() if column not in used}
    if not free:
        return []
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
            "No numeric column is left as a feature. Pass features= (a list of columns, or a "
            "second frame with one row per item). Or pass item= (the column of items): items that "
            "several users label need no features."
        )
    return columns


def item_table(
    features: object, item_ids: Iterable[Hashable] | None, names: Sequence[str] | None
) -> tuple[IdArray, FloatArray, tuple[str, ...]]:
    """Return ids, features and names of items, from a mapping, a table, a file or an array."""
    if isinstance(features, Mapping):
        features, item_ids = list(features.values()), list(features)
    elif item_ids is None and (isinstance(features, str | PathLike) or is_frame(features)):
        found = read_items(features, "item", None)
        features, item_ids = found["features"], found["item_ids"]
        names = names or found["feature_names"]
    matrix, found_names = read_matrix(features)
    feature_names = as_names(found_names if names is None else names, matrix.shape[1])
    ids: IdArray = np.arange(len(matrix))
    if item_ids is not None:
        ids = as_distinct(item_ids, "item_ids")
    same_length(item_ids=ids, features=matrix)
    return ids, matrix, feature_names


def read_items(features: object, item: str, item_column: str | None) -> dict[str, Any]:
    """Read a table of one row per item; return its features, their names, and the items."""
    ids, table = split_keys(features, "item", item, item_column, "item_column")
    matrix = feature_matrix(table, table.columns)
    return {"features": matrix, "feature_names": table.columns, "item_ids": ids}


def _kind_of(frame: object) -> Frames:
    """Return the kind of a data frame; pyarrow for any other object."""
    found = nw.from_native(frame, pass_through=True)
    if not isinstance(found, nw.DataFrame | nw.LazyFrame):
        return "pyarrow"
    name = str(found.implementation.name).lower()
    return next((kind for kind in KINDS if kind == name), "pyarrow")


class FiniteRows(NamedTuple):
    """A checked matrix of features: large tables are not checked twice."""

    matrix: FloatArray


def feature_matrix(frame: Frame, columns: Sequence[str]) -> FloatArray:
    """Return columns of numbers (or true/false) as a matrix; raise ValueError for others."""
    if not columns:  # items have ids only
        return np.zeros((len(frame), 0))
    return matrix_of(numeric_columns(frame, columns))


def numeric_columns(frame: Frame, columns: Sequence[str]) -> "list[nw.Series[Any]]":
    """Return columns of numbers (or true/false), one by one; raise ValueError for others."""
    refuse_unknown(frame, columns, "features")
    kinds = frame.schema
    types = [kinds[column] for column in columns]
    bad = [c for c, t in zip(columns, types, strict=True) if not is_numeric(t)]
    if bad:
        raise ValueError(
            f"Features must be numbers, but these columns are not: {listing(bad)}. "
            "Leave them out, or encode them as numbers first (for instance one-hot)."
        )
    # All at once: the time of a lookup by name is proportional to the number of columns.
    return list(frame.select(nw.col(*columns)).iter_columns())


def matrix_of(columns: "list[nw.Series[Any]]") -> FloatArray:
    """Return columns as a matrix; empties the list, so each column is released once copied."""
    single = all(column.dtype == nw.Float32 for column in columns)
    n_rows, n_columns = len(columns[0]), len(columns)
    matrix = np.empty((n_rows, n_columns), dtype=np.float32 if single else np.float64)
    for position in reversed(range(n_columns)):
        column = columns.pop()
        matrix[:, position] = (column if single else column.cast(nw.Float64)).to_numpy()
        if n_rows >= _MANY_ROWS:
            del column
            give_back()
    return as_matrix(matrix, "features")


def is_numeric(dtype: "nw.dtypes.DType") -> bool:
    """Return whether a column of this type may be a feature: numbers, or true and false."""
    return dtype.is_numeric() or dtype == nw.Boolean


def is_frame(features: object) -> bool:
    """Return whether features are a data frame of any library."""
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


def encode_items(
    table: "pa.Table", key: str, known: Sequence[str] | None = None
) -> "tuple[pa.Table, list[str]]":
    """Encode lists and categories in a table of items as dummies; return the columns left out.

    ``known`` are the names of the features of an earlier table, whose dummies are used again.
    """
    columns: dict[str, Any] = {}
    left_out = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if name == key or not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            columns[name] = column
            continue
        rows = [set((text or "").split(SEPARATOR)) - {""} for text in column.to_pylist()]
        start = f"{name}: "
        encoded = [one.removeprefix(start) for one in known or () if one.startswith(start)]
        categories = encoded or _categories(rows)
        if not categories:
            left_out.append(name)
        for category in categories:
            columns[start + category] = pa.array([int(category in row) for row in rows])
    return pa.table(columns), left_out


def _categories(rows: Sequence[set[str]]) -> list[str]:
    """Return the categories of a column, sorted; none if its texts are names."""
    words = sorted(word for word in set().union(*rows) if not _NOTHING.fullmatch(word))
    is_list = any(len(row) > 1 for row in rows)
    shared = len(words) * _FEWEST <= len(rows)
    return words if is_list or (shared and 1 < len(words) <= _MOST_KINDS) else []
