"""Validate arrays passed to rankers: features, labels, users and items of rows."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Mapping
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_n_features,
    check_array,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from likeminds._util.array_types import Bool, FloatArray, IdArray, Index
from likeminds._util.checks import as_weights, listing, refuse_not_finite
from likeminds.data.annotations import Annotations
from likeminds.data.column_roles import usual_columns
from likeminds.data.grades import read_answers, refuse_mixture
from likeminds.data.identifiers import coerce_ids, encode, lookup, positions
from likeminds.data.label_parsing import LabelReading, join_readings
from likeminds.data.tables import FiniteRows

if TYPE_CHECKING:
    from likeminds.rankers.ranker import Ranker


def to_annotations(
    ranker: Ranker,
    X: ArrayLike,
    y: ArrayLike | None,
    users: Iterable[Hashable] | None,
    sample_weight: ArrayLike | None,
    *,
    choice_sets: Iterable[Hashable] | None,
    reset: bool,
) -> Annotations:
    """Return rows of features with labels and users as annotations."""
    if reset:
        ranker.fitted_on_annotations_, ranker.label_reading_, ranker.verb_ = False, None, None
    _refuse_unread(X)
    if y is None:
        raise ValueError(
            f"{type(ranker).__name__} requires y to be passed, but the target y is None."
            f"{_how_to_fit(X)}"
        )
    features, column = split_user_column(ranker, X, reset=reset)
    if column is not None and users is not None:
        raise ValueError("Pass users either in user_column or as users=, not both.")
    owners = column if users is None else users
    if reset and owners is None:
        warnings.warn(
            "Labels have no users, so all of them count as labels of one user. Pass users=, or "
            "name a column of X with user_column=. In a pipeline or a search, enable "
            "scikit-learn's metadata routing and call set_fit_request(users=True).",
            UserWarning,
            stacklevel=4,
        )
    labels = check_labels(y)
    if reset:
        read = read_answers(labels) if owners is not None and labels.dtype.kind in "iuf" else None
        graded = read is not None and read.grades is not None
        ranker.classes_ = np.array([False, True]) if graded else two_classes(labels)
        ranker.label_reading_ = read.reading if read is not None and graded else None
    graded = is_graded(ranker)
    return Annotations(
        users=np.zeros(len(features), dtype=np.intp) if owners is None else owners,
        items=None,
        labels=labels if graded else outcomes(y, len(features), ranker.classes_),
        reading=ranker.label_reading_ if graded else None,
        features=FiniteRows(features),
        weights=as_weights(sample_weight, len(features), "sample_weight"),
        choice_sets=choice_sets,
        feature_names=ranker.feature_names_.tolist(),
        features_per="row",
    )


def rows_and_users(
    ranker: Ranker, X: ArrayLike | Annotations, users: Iterable[Hashable] | None
) -> tuple[FloatArray, Index]:
    """Return the features and the user's position of each row (-1: consensus)."""
    check_is_fitted(ranker)
    if isinstance(X, Annotations):
        check_width(ranker, X)
        rows: FloatArray = X.X
        owners: Iterable[Hashable] | None = X.users
    else:
        rows, column = split_user_column(ranker, X)
        owners = column if users is None else users
    if owners is None:
        return rows, np.full(len(rows), 0 if len(ranker.users_) == 1 else -1, dtype=np.intp)
    positions = user_positions(ranker, owners)
    if len(positions) != len(rows):
        raise ValueError(f"users has {len(positions)} entries, but X has {len(rows)} rows.")
    return rows, positions


def user_positions(ranker: Ranker, owners: Iterable[Hashable]) -> Index:
    """Return the positions of users (-1: not in training, if allowed)."""
    users = find_users(ranker, owners)
    if ranker.unknown == "error":
        refuse_unknown_users(owners, users < 0)
    return users


def find_users(ranker: Ranker, owners: Iterable[Hashable]) -> Index:
    """Return the positions of users, also by ids of another type ("1" for 1); -1 if unknown."""
    codes, distinct = encode(owners, "users")
    found = lookup(distinct, positions_by_user(ranker), "users")
    if (found < 0).any():
        written = coerce_ids(distinct, ranker.users_, "users")
        found = lookup(written, positions_by_user(ranker), "users")
    return found[codes]


def positions_by_user(ranker: Ranker) -> Mapping[Hashable, int]:
    """Return the position of each user (cached, because many users take long)."""
    if "_positions" not in vars(ranker) or ranker._positions[0] is not ranker.users_:
        ranker._positions = (ranker.users_, positions(ranker.users_))
    return ranker._positions[1]


def joint_reading(ranker: Ranker, more: Annotations) -> LabelReading | None:
    """Return the joint reading of labels; raise if readings differ."""
    refuse_mixture(is_graded(ranker), more.grades is not None)
    return join_readings(ranker.label_reading_, more.reading)


def check_width(ranker: Ranker, annotations: Annotations) -> None:
    """Raise ValueError for annotations with another number of features."""
    if annotations.n_features != len(ranker.feature_names_):
        raise ValueError(
            f"X has {annotations.n_features} features, but {type(ranker).__name__} is "
            f"expecting {len(ranker.feature_names_)} features as input. Read tables with "
            "features=list(ranker.feature_names_), because constant columns are dropped otherwise."
        )


def is_graded(ranker: Ranker) -> bool:
    """Whether labels are grades."""
    reading = ranker.label_reading_
    return reading is not None and reading.grades is not None


def split_user_column(
    ranker: Ranker, X: ArrayLike, *, reset: bool = False
) -> tuple[FloatArray, IdArray | None]:
    """Check X; return its features and, with ``user_column``, the users."""
    has_column = ranker.user_column is not None and not ranker.fitted_on_annotations_
    rows = _check_rows(ranker, X, reset, None if has_column else [np.float64, np.float32])
    unnamed = np.array([f"x{i}" for i in range(rows.shape[1])], dtype=object)
    names, column = getattr(ranker, "feature_names_in_", unnamed), None
    if has_column:
        assert ranker.user_column is not None
        where = _column_position(ranker.user_column, names)
        column, names = rows[:, where], np.delete(names, where)
        rows = np.delete(rows, where, axis=1)
        if not rows.shape[1]:
            raise ValueError("X has no features except the user_column. Pass at least one feature.")
        try:
            rows = np.asarray(rows, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"X must be numeric except for the user_column: {error}.") from error
    refuse_not_finite(rows, "X")
    if reset:
        ranker.feature_names_ = np.asarray(names, dtype=object)
    return rows, column


def _check_rows(
    ranker: Ranker, X: ArrayLike, reset: bool, dtype: DTypeLike | list[type] | None
) -> NDArray[Any]:
    try:
        if not ranker.fitted_on_annotations_ or getattr(X, "columns", None) is not None:
            return np.asarray(
                validate_data(ranker, X, reset=reset, dtype=dtype, ensure_all_finite=False)
            )
        # Annotations have feature names, which later arrays need not have.
        least = min(1, ranker.n_features_in_)
        rows = check_array(
            X, dtype=dtype, ensure_all_finite=False, ensure_min_features=least, estimator=ranker
        )
        _check_n_features(ranker, rows, reset=False)
        return np.asarray(rows)
    except ValueError as error:
        if "could not convert string" not in str(error):
            raise
        raise ValueError(f"{error}. X must be numbers.{_how_to_fit(X)}") from error


def _column_position(user_column: int | str, names: NDArray[Any]) -> int:
    if isinstance(user_column, str):
        found = np.flatnonzero(names == user_column)
        if not found.size:
            raise ValueError(
                f"user_column={user_column!r} is not a column of X. Choose from {listing(names)}."
            )
        return int(found[0])
    if not -len(names) <= user_column < len(names):
        raise ValueError(f"user_column={user_column} is outside X's {len(names)} columns.")
    return user_column % len(names)


def outcomes(
    y: ArrayLike | None, length: int, classes: NDArray[Any], grading: LabelReading | None = None
) -> Bool | FloatArray:
    """Return whether labels are positive, or grades if labels were read as grades."""
    if y is None:
        raise ValueError("score needs the labels. Pass y=.")
    labels = check_labels(y)
    if len(labels) != length:
        raise ValueError(f"y has {len(labels)} entries, but X has {length} rows.")
    if grading is not None:
        return np.asarray(read_answers(labels, reading=grading).grades)
    positive = np.asarray(labels == classes[-1])
    if not (positive | (labels == classes[0])).all():
        new = np.setdiff1d(labels, classes)
        raise ValueError(
            f"y has labels not seen in training: {listing(new)}. Use {listing(classes)}."
        )
    return positive


def _refuse_unread(X: object) -> None:
    """Raise TypeError for file names and frames on a cluster, which must be read first."""
    if isinstance(X, str | PathLike):
        raise TypeError(
            f"X is the file name {fspath(X)}. Read the file first, with "
            "Annotations.from_source(file), AnnotationFolder(folder) if labels do not fit in "
            "memory, or likeminds.cluster.Shards.from_folder(folder, client, features)."
        )
    if getattr(X, "__dask_graph__", None) is not None:
        raise TypeError(
            "X is a Dask collection, whose rows must be grouped by user first. Fit to "
            "likeminds.cluster.Shards.from_frame(frame, client, features)."
        )


def _how_to_fit(X: object) -> str:
    """Return advice for a table of labels, or a matrix of users by items, passed as X."""
    columns = [str(name) for name in getattr(X, "columns", ())]
    if usual_columns("user", columns) or usual_columns("label", columns):
        return (
            " Read a table of users, items and labels with Annotations.from_frame(frame), and fit "
            "to the result."
        )
    return (
        " X must have the features of one item per row. Item ids are not features; pass "
        "Annotations(users=, items=, labels=), or Annotations.from_matrix of users by items."
    )


def refuse_unknown_users(owners: Iterable[Hashable], is_new: Bool) -> None:
    """Raise ValueError for users who were not in training."""
    if is_new.any():
        names = np.unique(np.asarray(list(owners), dtype=object)[is_new].astype(str))
        raise ValueError(
            f"Unknown user(s): {listing(names)}. Use newcomer(...) for new users, or set "
            'unknown="consensus" to give them consensus scores.'
        )


def item_ids_of(
    X: ArrayLike | Annotations, items: Iterable[Hashable] | None, n_rows: int
) -> IdArray | None:
    """Return the id of each row's item, from annotations or the caller, or None."""
    if isinstance(X, Annotations):
        if items is not None:
            raise ValueError("Annotations include items. Leave out items.")
        return X.items if X.has_items else None
    if items is None:
        return None
    codes, ids = encode(items, "items")
    if len(codes) != n_rows:
        raise ValueError(f"items has {len(codes)} entries, but X has {n_rows} rows.")
    return ids[codes]


def check_labels(y: ArrayLike) -> NDArray[Any]:
    """Check labels as scikit-learn does, and name the rows of invalid labels."""
    labels = column_or_1d(y, warn=True)
    bad = np.flatnonzero(~np.isfinite(labels)) if labels.dtype.kind == "f" else labels[:0]
    if bad.size:
        is_nan = np.isnan(labels[bad]).any()
        what = "NaN" if is_nan else f"infinity or a value too large for {labels.dtype!r}"
        raise ValueError(f"Input y contains {what}. It is in row(s) {listing(bad)}.")
    return np.asarray(labels)


def two_classes(labels: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct labels; raise if there are more than two."""
    if labels.dtype.kind in "biu":  # faster than scikit-learn's checks, which sort
        _, classes = encode(labels, "y")
        if len(classes) <= 2:
            return classes
    check_classification_targets(labels)
    classes = np.unique(labels)
    if len(classes) > 2:
        raise ValueError(
            "Only binary classification is supported, with labels of two classes, but y has "
            f"{len(classes)}: {listing(classes)}. For grades, pass users= or Annotations."
        )
    return np.asarray(classes)
