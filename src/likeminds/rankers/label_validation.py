"""How rankers take what the caller has: arrays, annotations or folders in, checked labels out."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import (
    _check_n_features,
    check_array,
    check_is_fitted,
    validate_data,
)

from likeminds._util.array_types import FloatArray, IdArray, Index
from likeminds._util.checks import as_weights, refuse_not_finite
from likeminds.data.annotations import Annotations
from likeminds.data.feature_columns import FiniteRows
from likeminds.data.fingerprints import fingerprint, joint_fingerprint
from likeminds.data.grades import read_answers, refuse_mixture
from likeminds.data.id_coercion import write_as_known
from likeminds.data.identifiers import encode, lookup, positions
from likeminds.data.label_parsing import LabelReading, join_readings
from likeminds.data.out_of_core.annotation_folder import AnnotationFolder
from likeminds.rankers import array_validation, popularity_leaks

if TYPE_CHECKING:
    from likeminds.rankers.ranker import Ranker


def as_annotations(
    ranker: Ranker,
    X: ArrayLike | Annotations | AnnotationFolder,
    y: ArrayLike | None,
    users: Iterable[Hashable] | None,
    sample_weight: ArrayLike | None,
    *,
    choice_sets: Iterable[Hashable] | None = None,
    reset: bool = True,
) -> Any:
    """Check what the caller has; ``reset`` it, or hold it against what was seen before."""
    if reset:
        # A file has nothing to say about what is learned now.
        ranker._read_all()
        for stale in ("fingerprint_", "kept_schools_"):
            ranker.__dict__.pop(stale, None)
    if isinstance(X, AnnotationFolder):
        X = ranker._in_reach(X) if reset else X.annotations()
    if isinstance(X, Annotations | AnnotationFolder):
        array_validation.refuse_extras(
            y=y, users=users, sample_weight=sample_weight, choice_sets=choice_sets
        )
        annotations = _take_annotations(ranker, X, reset=reset)
    else:
        annotations = _to_annotations(
            ranker, X, y, users, sample_weight, choice_sets=choice_sets, reset=reset
        )
    if reset:
        ranker.n_labels_ = len(annotations)
        ranker.n_choices_ = getattr(annotations, "n_choices", 0)
    return annotations


def _take_annotations(ranker: Ranker, annotations: Any, *, reset: bool) -> Any:
    array_validation.refuse_attributes(annotations)
    if not reset:
        check_width(ranker, annotations)
        joint_reading(ranker, annotations)
        return annotations.written_as(ranker.users_)
    if not ranker._needs_no_features:
        array_validation.refuse_no_features(annotations, type(ranker).__name__)
    if isinstance(annotations, Annotations):  # of labels that stream by, nobody can tell
        popularity_leaks.warn_of_popularity(annotations)
    ranker.fitted_on_annotations_, ranker.verb_ = True, annotations.verb
    ranker.label_reading_, ranker.n_features_in_ = annotations.reading, annotations.n_features
    ranker.feature_names_in_ = np.array(annotations.feature_names, dtype=object)
    ranker.feature_names_ = ranker.feature_names_in_
    ranker.classes_ = np.array([False, True])
    return annotations


def _to_annotations(
    ranker: Ranker,
    X: ArrayLike,
    y: ArrayLike | None,
    users: Iterable[Hashable] | None,
    sample_weight: ArrayLike | None,
    *,
    choice_sets: Iterable[Hashable] | None,
    reset: bool,
) -> Annotations:
    if reset:
        ranker.fitted_on_annotations_, ranker.label_reading_, ranker.verb_ = False, None, None
    array_validation.refuse_unread(X)
    if y is None:
        raise ValueError(
            f"{type(ranker).__name__} requires y to be passed, but the target y is None."
            f"{array_validation.how_to_fit(X)}"
        )
    features, column = split_user_column(ranker, X, reset=reset)
    if column is not None and users is not None:
        raise ValueError("Pass people either in user_column or as users=, not both.")
    owners = column if users is None else users
    array_validation.warn_of_nobody(owners, fitting=reset)
    if reset and (owners is None or not array_validation.are_grades(y)):
        ranker.classes_ = array_validation.two_classes(array_validation.check_labels(y))
    elif reset:
        ranker.classes_ = np.array([False, True])
        ranker.label_reading_ = read_answers(array_validation.check_labels(y)).reading
    graded = is_graded(ranker)
    return Annotations(
        users=np.zeros(len(features), dtype=np.intp) if owners is None else owners,
        items=None,
        labels=array_validation.check_labels(y)
        if graded
        else array_validation.outcomes(y, len(features), ranker.classes_),
        reading=ranker.label_reading_ if graded else None,
        features=FiniteRows(features),
        weights=as_weights(sample_weight, len(features), "sample_weight"),
        choice_sets=choice_sets,
        feature_names=ranker.feature_names_.tolist(),
        features_per="row",
    )


def note_more(ranker: Ranker, more: Annotations) -> None:
    """Bring up to date what is known about the training data (files of old have nothing)."""
    if hasattr(ranker, "n_labels_"):
        ranker.n_labels_ += len(more)
    if hasattr(ranker, "n_choices_"):
        ranker.n_choices_ += more.n_choices
    ranker.label_reading_ = joint_reading(ranker, more)
    if hasattr(ranker, "fingerprint_"):
        ranker.fingerprint_ = joint_fingerprint(ranker.fingerprint_, fingerprint(more))


def rows_and_users(
    ranker: Ranker, X: ArrayLike | Annotations, users: Iterable[Hashable] | None
) -> tuple[FloatArray, Index]:
    """Return one row of features per score, and whose weights it meets (-1: consensus)."""
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
    people = people_of(ranker, owners)
    if len(people) != len(rows):
        raise ValueError(f"users has {len(people)} entries, but X has {len(rows)} rows.")
    return rows, people


def people_of(ranker: Ranker, owners: Iterable[Hashable]) -> Index:
    """Return where people are (-1: not seen in training, if that is allowed)."""
    people = places_of(ranker, owners)
    if ranker.unknown == "error":
        array_validation.refuse_unknown_users(owners, people < 0)
    return people


def places_of(ranker: Ranker, owners: Iterable[Hashable]) -> Index:
    """Return where people are, also if their ids are written in another way; -1: nowhere."""
    codes, distinct = encode(owners, "users")
    found = lookup(distinct, user_positions(ranker), "users")
    if (found < 0).any():
        written = write_as_known(distinct, ranker.users_, "users")
        found = lookup(written, user_positions(ranker), "users")
    return found[codes]


def joint_reading(ranker: Ranker, more: Annotations) -> LabelReading | None:
    """Return how labels were read, here and there; refuse it if that differs."""
    refuse_mixture(is_graded(ranker), more.grades is not None)
    return join_readings(getattr(ranker, "label_reading_", None), more.reading)


def user_positions(ranker: Ranker) -> Mapping[Hashable, int]:
    """Return where each person is; made once, as a million of them take a while."""
    if "_positions" not in vars(ranker) or ranker._positions[0] is not ranker.users_:
        ranker._positions = (ranker.users_, positions(ranker.users_))
    return ranker._positions[1]


def check_width(ranker: Ranker, annotations: Annotations) -> None:
    """Refuse annotations with another number of features."""
    if annotations.n_features != len(ranker.feature_names_):
        raise ValueError(
            f"X has {annotations.n_features} features, but {type(ranker).__name__} is "
            f"expecting {len(ranker.feature_names_)} features as input."
        )


def is_graded(ranker: Ranker) -> bool:
    """Whether labels are grades."""
    reading = getattr(ranker, "label_reading_", None)
    return reading is not None and reading.grades is not None


def split_user_column(
    ranker: Ranker, X: ArrayLike, *, reset: bool = False
) -> tuple[FloatArray, IdArray | None]:
    """Check X; return its features and, where ``user_column`` names one, the people."""
    if ranker.user_column is None or ranker.fitted_on_annotations_:
        rows = _check_rows(ranker, X, reset, [np.float64, np.float32])
        names = getattr(ranker, "feature_names_in_", array_validation.default_names(rows.shape[1]))
        column = None
    else:
        raw = _check_rows(ranker, X, reset, None)
        names = getattr(ranker, "feature_names_in_", array_validation.default_names(raw.shape[1]))
        where = array_validation.column_position(ranker.user_column, names)
        column = raw[:, where]
        rows = np.delete(raw, where, axis=1)
        names = np.delete(names, where)
        if not rows.shape[1]:
            raise ValueError("X has no feature beside the user_column.")
        rows = array_validation.as_numbers(rows)
    refuse_not_finite(rows, "X")
    if reset:
        ranker.feature_names_ = np.asarray(names, dtype=object)
    return rows, column


def _check_rows(ranker: Ranker, X: ArrayLike, reset: bool, dtype: Any) -> NDArray[Any]:
    try:
        return _check_numbers(ranker, X, reset, dtype)
    except ValueError as error:
        if "could not convert string" not in str(error):
            raise
        raise ValueError(f"{error}. X must be numbers.{array_validation.how_to_fit(X)}") from error


def _check_numbers(ranker: Ranker, X: ArrayLike, reset: bool, dtype: Any) -> NDArray[Any]:
    if ranker.fitted_on_annotations_ and not hasattr(X, "columns"):
        # Annotations name their features; an array that goes with them need not.
        rows = check_array(
            X,
            dtype=dtype,
            ensure_all_finite=False,
            ensure_min_features=min(1, ranker.n_features_in_),
            estimator=ranker,
        )
        _check_n_features(ranker, rows, reset=False)
        return np.asarray(rows)
    return np.asarray(validate_data(ranker, X, reset=reset, dtype=dtype, ensure_all_finite=False))
