"""How rankers take what the caller has: arrays, annotations or folders in, checked labels out."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
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
from likeminds.rankers.capabilities import ReadableModel


class LabelValidation(ReadableModel, BaseEstimator):  # type: ignore[misc]
    """The input side of a ranker: what it is given is checked, and remembered as it was."""

    unknown: str
    user_column: int | str | None

    # Whether items may be known by their ids alone.
    _needs_no_features: ClassVar[bool] = False

    _positions: tuple[IdArray, Mapping[Hashable, int]]
    n_labels_: int
    n_choices_: int
    fingerprint_: str
    label_reading_: LabelReading | None
    users_: IdArray
    classes_: NDArray[Any]

    def _in_reach(self, folder: AnnotationFolder) -> Any:
        """Return labels on disk as they are learned from: grouped by person, by default."""
        return folder.annotations()

    def _as_annotations(
        self,
        X: ArrayLike | Annotations | AnnotationFolder,
        y: ArrayLike | None,
        users: Iterable[Hashable] | None,
        sample_weight: ArrayLike | None,
        groups: Iterable[Hashable] | None = None,
        *,
        reset: bool = True,
    ) -> Any:
        """Check what the caller has; ``reset`` it, or hold it against what was seen before."""
        if reset:
            # A file has nothing to say about what is learned now.
            self._read_all()
            for stale in ("fingerprint_", "kept_schools_"):
                self.__dict__.pop(stale, None)
        if isinstance(X, AnnotationFolder):
            X = self._in_reach(X) if reset else X.annotations()
        if isinstance(X, Annotations | AnnotationFolder):
            array_validation.refuse_extras(
                y=y, users=users, sample_weight=sample_weight, groups=groups
            )
            annotations = self._take_annotations(X, reset=reset)
        else:
            annotations = self._to_annotations(X, y, users, sample_weight, groups, reset=reset)
        if reset:
            self.n_labels_ = len(annotations)
            self.n_choices_ = getattr(annotations, "n_choices", 0)
        return annotations

    def _take_annotations(self, annotations: Any, *, reset: bool) -> Any:
        array_validation.refuse_attributes(annotations)
        if not reset:
            self._check_width(annotations)
            self._joint_reading(annotations)
            return annotations.written_as(self.users_)
        if not self._needs_no_features:
            array_validation.refuse_no_features(annotations, type(self).__name__)
        if isinstance(annotations, Annotations):  # of labels that stream by, nobody can tell
            popularity_leaks.warn_of_popularity(annotations)
        self.fitted_on_annotations_, self.verb_ = True, annotations.verb
        self.label_reading_, self.n_features_in_ = annotations.reading, annotations.n_features
        self.feature_names_in_ = np.array(annotations.feature_names, dtype=object)
        self.feature_names_ = self.feature_names_in_
        self.classes_ = np.array([False, True])
        return annotations

    def _to_annotations(
        self,
        X: ArrayLike,
        y: ArrayLike | None,
        users: Iterable[Hashable] | None,
        sample_weight: ArrayLike | None,
        groups: Iterable[Hashable] | None,
        *,
        reset: bool,
    ) -> Annotations:
        if reset:
            self.fitted_on_annotations_, self.label_reading_, self.verb_ = False, None, None
        array_validation.refuse_unread(X)
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
                f"{array_validation.how_to_fit(X)}"
            )
        features, column = self._split_user_column(X, reset=reset)
        if column is not None and users is not None:
            raise ValueError("Pass people either in user_column or as users=, not both.")
        owners = column if users is None else users
        array_validation.warn_of_nobody(owners, fitting=reset)
        if reset and (owners is None or not array_validation.are_grades(y)):
            self.classes_ = array_validation.two_classes(array_validation.check_labels(y))
        elif reset:
            self.classes_ = np.array([False, True])
            self.label_reading_ = read_answers(array_validation.check_labels(y)).reading
        graded = self._graded
        return Annotations(
            users=np.zeros(len(features), dtype=np.intp) if owners is None else owners,
            items=None,
            labels=array_validation.check_labels(y)
            if graded
            else array_validation.outcomes(y, len(features), self.classes_),
            reading=self.label_reading_ if graded else None,
            features=FiniteRows(features),
            weights=as_weights(sample_weight, len(features), "sample_weight"),
            groups=groups,
            feature_names=self.feature_names_.tolist(),
            features_per="row",
        )

    def _note_more(self, more: Annotations) -> None:
        """Bring up to date what is known about the training data (files of old have nothing)."""
        if hasattr(self, "n_labels_"):
            self.n_labels_ += len(more)
        if hasattr(self, "n_choices_"):
            self.n_choices_ += more.n_choices
        self.label_reading_ = self._joint_reading(more)
        if hasattr(self, "fingerprint_"):
            self.fingerprint_ = joint_fingerprint(self.fingerprint_, fingerprint(more))

    def _rows_and_people(
        self, X: ArrayLike | Annotations, users: Iterable[Hashable] | None
    ) -> tuple[FloatArray, Index]:
        """Return one row of features per score, and whose weights it meets (-1: consensus)."""
        check_is_fitted(self)
        if isinstance(X, Annotations):
            self._check_width(X)
            rows: FloatArray = X.X
            owners: Iterable[Hashable] | None = X.users
        else:
            rows, column = self._split_user_column(X)
            owners = column if users is None else users
        if owners is None:
            return rows, np.full(len(rows), 0 if len(self.users_) == 1 else -1, dtype=np.intp)
        people = self._people(owners)
        if len(people) != len(rows):
            raise ValueError(f"users has {len(people)} entries, but X has {len(rows)} rows.")
        return rows, people

    def _people(self, owners: Iterable[Hashable]) -> Index:
        """Return where people are (-1: not seen in training, if that is allowed)."""
        people = self._places_of(owners)
        if self.unknown == "error":
            array_validation.refuse_strangers(owners, people < 0)
        return people

    def _places_of(self, owners: Iterable[Hashable]) -> Index:
        """Return where people are, also if their ids are written in another way; -1: nowhere."""
        codes, distinct = encode(owners, "users")
        found = lookup(distinct, self._user_positions(), "users")
        if (found < 0).any():
            written = write_as_known(distinct, self.users_, "users")
            found = lookup(written, self._user_positions(), "users")
        return found[codes]

    def _joint_reading(self, more: Annotations) -> LabelReading | None:
        """Return how labels were read, here and there; refuse it if that differs."""
        refuse_mixture(self._graded, more.grades is not None)
        return join_readings(getattr(self, "label_reading_", None), more.reading)

    def _user_positions(self) -> Mapping[Hashable, int]:
        """Return where each person is; made once, as a million of them take a while."""
        if "_positions" not in vars(self) or self._positions[0] is not self.users_:
            self._positions = (self.users_, positions(self.users_))
        return self._positions[1]

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        state.pop("_positions", None)
        return state

    def _check_width(self, annotations: Annotations) -> None:
        if annotations.n_features != len(self.feature_names_):
            raise ValueError(
                f"X has {annotations.n_features} features, but {type(self).__name__} is "
                f"expecting {len(self.feature_names_)} features as input."
            )

    @property
    def _graded(self) -> bool:
        """Whether labels are grades."""
        reading = getattr(self, "label_reading_", None)
        return reading is not None and reading.grades is not None

    def _split_user_column(
        self, X: ArrayLike, *, reset: bool = False
    ) -> tuple[FloatArray, IdArray | None]:
        """Check X; return its features and, where ``user_column`` names one, the people."""
        if self.user_column is None or self.fitted_on_annotations_:
            rows = self._check_rows(X, reset, [np.float64, np.float32])
            names = getattr(
                self, "feature_names_in_", array_validation.default_names(rows.shape[1])
            )
            column = None
        else:
            raw = self._check_rows(X, reset, None)
            names = getattr(self, "feature_names_in_", array_validation.default_names(raw.shape[1]))
            where = array_validation.column_position(self.user_column, names)
            column = raw[:, where]
            rows = np.delete(raw, where, axis=1)
            names = np.delete(names, where)
            if not rows.shape[1]:
                raise ValueError("X has no feature beside the user_column.")
            rows = array_validation.as_numbers(rows)
        refuse_not_finite(rows, "X")
        if reset:
            self.feature_names_ = np.asarray(names, dtype=object)
        return rows, column

    def _check_rows(self, X: ArrayLike, reset: bool, dtype: Any) -> NDArray[Any]:
        try:
            return self._check_numbers(X, reset, dtype)
        except ValueError as error:
            if "could not convert string" not in str(error):
                raise
            raise ValueError(
                f"{error}. X must be numbers.{array_validation.how_to_fit(X)}"
            ) from error

    def _check_numbers(self, X: ArrayLike, reset: bool, dtype: Any) -> NDArray[Any]:
        if self.fitted_on_annotations_ and not hasattr(X, "columns"):
            # Annotations name their features; an array that goes with them need not.
            rows = check_array(
                X,
                dtype=dtype,
                ensure_all_finite=False,
                ensure_min_features=min(1, self.n_features_in_),
                estimator=self,
            )
            _check_n_features(self, rows, reset=False)
            return np.asarray(rows)
        return np.asarray(validate_data(self, X, reset=reset, dtype=dtype, ensure_all_finite=False))
