"""What every ranker does with its input and its weights: the scikit-learn manners."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import ClassifierTags, Tags
from sklearn.utils.validation import (
    _check_n_features,
    check_array,
    check_is_fitted,
    validate_data,
)

from likeminds._support.arrays import Float, FloatArray, IdArray, Index
from likeminds._support.checks import as_weights, refuse_not_finite
from likeminds._support.visits import of_rows
from likeminds.data.annotations import Annotations
from likeminds.data.fingerprints import fingerprint, joint_fingerprint
from likeminds.data.grades import read_answers, refuse_mixture
from likeminds.data.identifiers import encode, lookup, positions
from likeminds.data.labels import LabelReading, join_readings
from likeminds.data.spelling import write_as_known
from likeminds.data.stored.folder import AnnotationFolder
from likeminds.metrics.concordance import mean_concordance
from likeminds.prior.items import Items
from likeminds.rankers import inputs, leaks
from likeminds.rankers.callbacks import CallbackSupport, with_callbacks
from likeminds.rankers.candidates.folds import FromRows
from likeminds.rankers.everyday import Everyday
from likeminds.rankers.model import NAMELESS, Model

# Scores are computed in pieces of this many rows: nobody's weights are copied for all rows.
_ROWS_AT_ONCE = 1 << 15


class Ranker(Everyday, Model, CallbackSupport, BaseEstimator):  # type: ignore[misc]
    """Base of the rankers: one vector of weights per person.

    A subclass fits ``users_``, ``coef_`` and ``consensus_`` in ``_fit_annotations``; this
    class turns what the caller has into `Annotations` on the way in, and weights into scores
    on the way out.
    """

    unknown: str
    user_column: int | str | None

    # How a search tunes it.
    _tuning: ClassVar[type[FromRows]] = FromRows
    # Whether items may be known by their ids alone.
    _needs_no_features: ClassVar[bool] = False

    _positions: tuple[IdArray, Mapping[Hashable, int]]
    n_labels_: int
    fingerprint_: str
    label_reading_: LabelReading | None
    users_: IdArray
    classes_: NDArray[Any]
    coef_: Float
    consensus_: Float
    factor_weights_: Float

    @property
    def rankers_(self) -> dict[str, Any]:  # type: ignore[override]
        """The ranker itself, by the name of its only attribute."""
        return {NAMELESS: self}

    @property
    def people_(self) -> IdArray:  # type: ignore[override]
        """Everybody it knows: ``users_``."""
        return self.users_

    @property
    def chosen_(self) -> "Ranker":
        """The ranker, out of the search that found it."""
        return self.learned("best_estimator_") or self

    @with_callbacks
    def fit(
        self,
        X: ArrayLike | Annotations | AnnotationFolder | inputs.Elsewhere,
        y: ArrayLike | None = None,
        users: Iterable[Hashable] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn everybody's ranking.

        Parameters
        ----------
        X : array of shape (n_rows, n_features), data frame, Annotations or AnnotationFolder
            One row per label. With `Annotations`, leave out all other arguments; with an
            `AnnotationFolder`, labels need not fit in memory; `cluster.Shards` are elsewhere.
        y : array of shape (n_rows,)
            The labels, two values; the larger one is positive. More than two numbers are
            grades, where ``users`` say who gave them.
        users : array of shape (n_rows,), optional
            Who gave the label, as ids of any hashable kind. Without it, all rows are one
            person's (unless ``user_column`` names a column of X).
        sample_weight : array of shape (n_rows,), optional
            How much each label counts.

        Returns
        -------
        self
        """
        self._validate_params()
        if isinstance(X, inputs.Elsewhere):
            X.teach(self)
        else:
            self._fit_annotations(self._as_annotations(X, y, users, sample_weight))
        return self

    def decision_function(
        self,
        X: ArrayLike | Annotations,
        users: Iterable[Hashable] | None = None,
        items: Iterable[Hashable] | None = None,
    ) -> Float:
        """Score each row for its person: the higher, the more the item is to their liking.

        Scores order the items of one person; their zero means nothing, and those of two people
        are not comparable. Rows of features alone are scored as items nobody has labelled.

        Parameters
        ----------
        X : array of shape (n_rows, n_features), data frame, or Annotations
            The items.
        users : array of shape (n_rows,), optional
            For whom each row is scored. Without it (and without ``user_column``), for the
            one person the ranker was fitted to, or for the consensus if there were several.
        items : array of shape (n_rows,), optional
            The id of each row's item, for rankers that know items by their ids.

        Returns
        -------
        array of shape (n_rows,)
        """
        rows, people = self._rows_and_people(X, users)
        return self._scores(rows, people, inputs.item_ids_of(X, items, len(rows)))

    def _scores(self, rows: FloatArray, people: Index, items: IdArray | None) -> Float:
        def score(some: slice) -> Float:
            weights = self._weights_of(people[some])
            return np.asarray(np.einsum("nd,nd->n", rows[some], weights))

        return of_rows(score, len(rows), _ROWS_AT_ONCE) + self.item_scores(items, people)

    def _weights_of(self, people: Index) -> Float:
        """Return the weights of people (-1: of all); who is not asked about is not read."""
        known = people >= 0
        if known.all():
            return self.coef_[people]
        weights = np.tile(self.consensus_, (len(people), 1))
        if known.any():
            weights[known] = self.coef_[people[known]]
        return weights

    @property
    def scores_by_weights(self) -> bool:
        """Whether scores are ``coef_`` times features, and what was learned about items."""
        return True

    def item_scores(self, items: IdArray | None, people: Index) -> Float | float:
        """Return what items add beyond features; zero where nobody says which they are."""
        known = self.learned_items()
        if items is None or known is None:
            return 0.0
        weights = np.zeros((len(people), known.n_factors))
        if known.n_factors:
            theirs = people >= 0
            weights[theirs] = self.factor_weights_[people[theirs]]
        return known.scores_of(items, weights)

    def consensus_scores(self, said: Annotations) -> Float:
        """Return scores by what all agree on; what they see in items is part of it."""
        items = inputs.item_ids_of(said, None, len(said))
        return self.chosen_._scores(said.X, np.full(len(said), -1), items)

    def learned_items(self) -> Items | None:
        """Return what was learned about items beyond their features; None for nothing."""
        return cast("Items | None", self.learned("known_items_"))

    @property
    def item_effects_(self) -> bool:
        """Whether items have effects of their own."""
        return self.learned_items() is not None

    def score(
        self,
        X: ArrayLike | Annotations | inputs.Elsewhere,
        y: ArrayLike | None = None,
        users: Iterable[Hashable] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the mean over people of the AUC of their rows; of grades, of the concordance.

        People with labels of one kind only have no AUC and are left out of the mean.

        Parameters
        ----------
        X, y, users, sample_weight
            As in `fit`.

        Returns
        -------
        float
        """
        if isinstance(X, inputs.Elsewhere):
            inputs.refuse_extras(y=y, users=users, sample_weight=sample_weight)
            return X.score(self)
        scores = self.decision_function(X, users)
        if isinstance(X, Annotations):
            inputs.refuse_extras(y=y, users=users, sample_weight=sample_weight)
            self._joint_reading(X)
            return mean_concordance(X.outcomes, scores, X.users, X.weights)
        features, column = self._split_user_column(X)
        owners = column if users is None else users
        owners = np.zeros(len(scores), dtype=np.intp) if owners is None else owners
        graded = self.label_reading_ if self._graded else None
        said = inputs.outcomes(y, len(scores), self.classes_, graded)
        return mean_concordance(said, scores, owners, as_weights(sample_weight, len(features)))

    def _fit_annotations(self, annotations: Annotations) -> None:
        raise NotImplementedError

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
            inputs.refuse_extras(y=y, users=users, sample_weight=sample_weight, groups=groups)
            annotations = self._take_annotations(X, reset=reset)
        else:
            annotations = self._to_annotations(X, y, users, sample_weight, groups, reset=reset)
        if reset:
            self.n_labels_ = len(annotations)
        return annotations

    def _take_annotations(self, annotations: Any, *, reset: bool) -> Any:
        inputs.refuse_attributes(annotations)
        if not reset:
            self._check_width(annotations)
            self._joint_reading(annotations)
            return annotations.written_as(self.users_)
        if not self._needs_no_features:
            inputs.refuse_no_features(annotations, type(self).__name__)
        if isinstance(annotations, Annotations):  # of labels that stream by, nobody can tell
            leaks.warn_of_popularity(annotations)
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
        inputs.refuse_unread(X)
        features, column = self._split_user_column(X, reset=reset)
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        if column is not None and users is not None:
            raise ValueError("Pass people either in user_column or as users=, not both.")
        owners = column if users is None else users
        inputs.warn_of_nobody(owners, fitting=reset)
        if reset and (owners is None or not inputs.are_grades(y)):
            self.classes_ = inputs.two_classes(inputs.check_labels(y))
        elif reset:
            self.classes_ = np.array([False, True])
            self.label_reading_ = read_answers(inputs.check_labels(y)).reading
        graded = self._graded
        return Annotations(
            users=np.zeros(len(features), dtype=np.intp) if owners is None else owners,
            items=None,
            labels=inputs.check_labels(y)
            if graded
            else inputs.outcomes(y, len(features), self.classes_),
            reading=self.label_reading_ if graded else None,
            features=features,
            weights=as_weights(sample_weight, len(features), "sample_weight"),
            groups=groups,
            feature_names=self.feature_names_.tolist(),
            features_per="row",
        )

    def _note_more(self, more: Annotations) -> None:
        """Bring up to date what is known about the training data (files of old have nothing)."""
        if hasattr(self, "n_labels_"):
            self.n_labels_ += len(more)
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
            inputs.refuse_strangers(owners, people < 0)
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
            names = getattr(self, "feature_names_in_", inputs.default_names(rows.shape[1]))
            column = None
        else:
            raw = self._check_rows(X, reset, None)
            names = getattr(self, "feature_names_in_", inputs.default_names(raw.shape[1]))
            where = inputs.column_position(self.user_column, names)
            column = raw[:, where]
            rows = np.delete(raw, where, axis=1)
            names = np.delete(names, where)
            if not rows.shape[1]:
                raise ValueError("X has no feature beside the user_column.")
            rows = inputs.as_numbers(rows)
        refuse_not_finite(rows, "X")
        if reset:
            self.feature_names_ = np.asarray(names, dtype=object)
        return rows, column

    def _check_rows(self, X: ArrayLike, reset: bool, dtype: Any) -> NDArray[Any]:
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

    def __sklearn_tags__(self) -> Tags:
        # Labels are two-valued, as a classifier's; but a ranker ranks, and predicts no label.
        tags: Tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags
