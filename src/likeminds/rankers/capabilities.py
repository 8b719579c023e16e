"""The interface of models: one ranker, or one for each of several attributes."""

import inspect
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from enum import Enum
from threading import RLock
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from likeminds._util.array_types import Float, FloatArray, IdArray, Index
from likeminds._util.atomic_files import FileVersion
from likeminds._util.checks import did_you_mean, listing
from likeminds._util.lazy_rows import LazyIds
from likeminds._util.text_format import Verb
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import as_id_array, lookup
from likeminds.data.label_parsing import LabelReading
from likeminds.losses.statistics import Statistics
from likeminds.mixed_model.gaussian_prior import ItemPosteriors
from likeminds.mixed_model.ordinal import CumulativeLogit
from likeminds.mixed_model.ordinal_responses import ResponseStyle
from likeminds.mixed_model.user_posteriors import FittedPrior

if TYPE_CHECKING:
    from likeminds.rankers.ranker import Ranker

Estimator = TypeVar("Estimator")

# The attribute name of a model with one ranker.
NAMELESS = ""
# Methods of other estimators that rankers do not have, and their replacements.
_INSTEAD = {
    "predict": ": call rank for the best items, or decision_function for scores",
}
# Fitted arrays with a row per user, except ``users_``.
_OF_USERS = (
    *("coef_", "group_", "personal_", "raw_group_", "raw_personal_"),
    *("intercept_", "information_", "factor_weights_", "points_", "membership_"),
)
# The most users read from files at once.
MOST_AT_ONCE = 20_000
# Fitted attributes of all users together, which are not valid for a subset.
_OF_ALL = ("annotations_", "statistics_", "cached_schools_", "fingerprint_", "solution_")


class PendingReaders(NamedTuple):
    """Readers of attributes that are still in the file, and their lock."""

    readers: dict[str, Callable[[], Any]]
    lock: RLock  # reentrant: reading one attribute may read another


class ReadableModel:
    """Base class of rankers and of models with several attributes.

    Attributes of a loaded model are read from the file on first use, once, also with several
    threads. Fitted attributes of an unfitted model raise NotFittedError.
    """

    rankers_: "dict[str, Ranker]"
    users_: IdArray
    feature_names_: IdArray
    # Attributes declared with None are None in fitted models that have not learned them.
    annotations_: Annotations | None
    best_estimator_: "Ranker | None"
    best_params_: dict[str, Any] | None
    cached_schools_: dict[str, Any] | None
    converged_: bool | None
    cv_results_: dict[str, Any] | None
    fingerprint_: str | None
    fingerprints_: dict[str, str] | None
    grading_: CumulativeLogit | None
    intercept_: Float | float | None
    item_ids_: IdArray | None
    item_names_: dict[str, IdArray] | None
    known_items_: ItemPosteriors | None
    label_reading_: LabelReading | None
    loss_: str | None
    n_choices_: int | None
    n_groups_: int | None
    n_iter_: int | None
    n_labels_: int | None
    objective_: float | None
    objective_trace_: Float | None
    parts_: dict[str, Float] | None
    pictures_: dict[str, Any] | None
    points_: Float | None
    prior_: FittedPrior | None
    raw_personal_: Float | None
    scale_: Float | None
    solution_: Any | None
    statistics_: Statistics | None
    variance_scale_: float | None
    verb_: str | None
    _unread: PendingReaders | None
    # The version of the file it was read from.
    _read_from: FileVersion | None
    # Fitted attributes by their names in model files.
    _stored_names: ClassVar[dict[str, str]] = {
        "cached_schools_": "kept_schools_",
        "explained_by_users_": "explained_by_people_",
        "prior_": "crowd_",
        "huber_threshold_": "knee_",
        "user_factors_": "people_factors_",
        "variance_scale_": "label_doubt_",
    }
    # Capabilities of a model; see `Capability`.
    takes_updates = takes_newcomers = has_part_worths = has_standard_errors = False

    if not TYPE_CHECKING:  # type checkers would accept any attribute

        def __getattr__(self, name: str) -> Any:
            unread = self.__dict__.get("_unread")
            if unread is not None:
                with unread.lock:
                    if name in unread.readers:
                        setattr(self, name, unread.readers[name]())
                        del unread.readers[name]
            # Another thread may have read it since.
            if name in self.__dict__:
                return self.__dict__[name]
            kind = type(self).__name__
            if name.endswith("_") and not name.startswith("_") and not self._fitted_names():
                raise NotFittedError(
                    f"This {kind} is not fitted, so it has no {name}. Call fit first."
                )
            if self._is_optional(name):
                return None
            raise AttributeError(
                f"{kind!r} object has no attribute {name!r}{_INSTEAD.get(name, '')}"
            )

    def _is_optional(self, name: str) -> bool:
        """Return whether the declared type of an attribute (first in the MRO) allows None."""
        kinds = (inspect.get_annotations(kind) for kind in type(self).__mro__)
        return str(next((kind[name] for kind in kinds if name in kind), "")).endswith("None")

    def _read_all(self) -> None:
        """Read all attributes that are still in the file, and close it."""
        unread = self.__dict__.get("_unread")
        if unread is None:
            return
        with unread.lock:
            for name in list(unread.readers):
                getattr(self, name)
            self.__dict__.pop("_unread", None)

    def _fitted_names(self) -> list[str]:
        """Return the names of the fitted attributes, read or not."""
        unread = self.__dict__.get("_unread")
        # Unread names first, so an attribute that another thread reads meanwhile is in both.
        names = {*([] if unread is None else list(unread.readers)), *list(self.__dict__)}
        return sorted(name for name in names if name.endswith("_") and not name.startswith("_"))

    def __sklearn_is_fitted__(self) -> bool:
        # scikit-learn iterates over the attributes, to which other threads add meanwhile.
        return bool(self._fitted_names())

    def __getstate__(self) -> Any:
        self._read_all()
        return super().__getstate__()

    @property
    def _best_model(self) -> Any:
        """The model itself, or the best model of a search."""
        return (self.best_estimator_ if self._fitted_names() else None) or self

    @property
    def has_attributes(self) -> bool:
        """Whether the model has several attributes."""
        return NAMELESS not in self.rankers_

    @property
    def has_levels(self) -> bool:
        """Whether weights are the sum of a consensus, a group and a personal level."""
        return "group_" in self._fitted_names()

    @property
    def verb(self) -> Verb:
        """The words of explanations for a positive label, such as "like"; default: "rate high"."""
        return Verb.of(self.verb_)

    @property
    def response_style(self) -> ResponseStyle | None:
        """The response styles of users, if labels are grades."""
        if self.grading_ is None or self.label_reading_ is None:
            return None
        return ResponseStyle(self.grading_, self.label_reading_)

    @property
    def item_names(self) -> dict[Any, str]:
        """Titles, names or texts of items, by their ids."""
        names = self.item_names_
        if names is None:
            return {}
        return dict(zip(names["ids"].tolist(), names["names"].tolist(), strict=True))

    def name_items(self, names: Mapping[Any, str] | None) -> None:
        """Store titles, names or texts of items, by their ids, with the model."""
        if names:
            called = as_id_array(list(names.values()), "names")
            self.item_names_ = {"ids": as_id_array(list(names), "items"), "names": called}

    def _ranker_of(self, attribute: str) -> Any:
        """Return the ranker of an attribute."""
        if str(attribute) not in self.rankers_:
            there = listing(list(self.rankers_))
            hint = did_you_mean(attribute, self.rankers_)
            raise KeyError(f"There is no attribute {attribute!r}; choose from {there}.{hint}")
        return self.rankers_[str(attribute)]

    @property
    def training_annotations_(self) -> Annotations | None:
        """The training data, if they are stored in the model."""
        found = (ranker.annotations_ for ranker in self.rankers_.values())
        return next((annotations for annotations in found if annotations is not None), None)

    def training_items(self) -> tuple[IdArray, FloatArray] | None:
        """Return the scorable training items and their features, or None if features are unknown.

        Subsets of annotations include unlabelled items.
        """
        if self.training_annotations_ is None:  # items without features have effects
            best = self._best_model
            ids = None if len(best.feature_names_) else best.scorable_ids()
            return None if ids is None else (ids, np.zeros((len(ids), 0)))
        ids, features = self.training_annotations_.distinct_items()
        scorable = self._best_model.scorable_ids()
        known = slice(None) if scorable is None else lookup(ids, scorable, "items") >= 0
        return ids[known], features[known]

    def scorable_ids(self) -> IdArray | None:
        """Return the ids of all scorable items; None if features score any item."""
        return None

    def fingerprint_of(self, attribute: str = NAMELESS) -> str | None:
        """Return the fingerprint of the training data, if known."""
        mark = (self.fingerprints_ or {}).get(attribute)
        return mark or self._ranker_of(attribute).fingerprint_


def with_consensus(ranker: Estimator) -> Estimator:
    """Return a copy of a ranker with ``unknown="consensus"``."""
    if not isinstance(ranker, ReadableModel):  # another library's estimator
        return ranker
    lenient: Any = copy(ranker._best_model)
    lenient.unknown = "consensus"
    found: Estimator = lenient
    return found


def checked_ranker(ranker: object) -> "Ranker":
    """Return a fitted ranker; raise TypeError for other objects and for models of attributes."""
    if not isinstance(ranker, ReadableModel) or ranker.has_attributes:
        hint = " Pass one of its rankers_." if isinstance(ranker, ReadableModel) else ""
        raise TypeError(f"Expected a ranker of likeminds, but got {type(ranker).__name__}.{hint}")
    check_is_fitted(ranker)
    fitted: Any = ranker
    found: Ranker = fitted
    return found


class Capability(Enum):
    """A capability of some models: an attribute of `ReadableModel`, and an error message."""

    UPDATES = ("takes_updates", "cannot take more labels. Fit it to all labels")
    NEWCOMERS = ("takes_newcomers", "cannot score new users without a refit. Use update")
    LEVELS = ("has_levels", "has no group level. Fit a ThreeLevelRanker or HierarchicalRanker")
    PART_WORTHS = ("has_part_worths", "has no table of part-worths. Fit a HierarchicalRanker")
    UNCERTAINTY = ("has_standard_errors", "has no standard errors. Fit a HierarchicalRanker")

    def of(self, model: object) -> bool:
        """Return whether a model has this capability."""
        return isinstance(model, ReadableModel) and bool(getattr(model, self.value[0]))

    def require(self, model: object) -> None:
        """Raise TypeError for a model without this capability."""
        if not self.of(model):
            raise TypeError(f"{type(model).__name__} {self.value[1]}.")


def arrays_of_users(ranker: "Ranker") -> dict[str, NDArray[Any]]:
    """Return the fitted arrays with a row per user, except ``users_``."""
    there = ranker._fitted_names()
    found = {name: getattr(ranker, name) for name in _OF_USERS if name in there}
    n_users = len(ranker.users_)
    return {name: rows for name, rows in found.items() if np.shape(rows)[:1] == (n_users,)}


def subset_users(ranker: "Ranker", places: slice | Index, *, labels: bool = False) -> Any:
    """Return a ranker of some users, on request with their ``labels``; do not read others.

    Examples
    --------
    >>> from likeminds import ThreeLevelRanker, load_electricity
    >>> ranker = ThreeLevelRanker().fit(load_electricity())
    >>> two = subset_users(ranker, slice(3, 5))
    >>> two.users_.tolist(), two.coef_.shape
    (['household-004', 'household-005'], (2, 6))
    """
    ranker = ranker._best_model
    some = object.__new__(type(ranker))
    some.__dict__ = {name: value for name, value in vars(ranker).items() if name != "_positions"}
    unread = vars(ranker).get("_unread")
    if unread is not None:  # each ranker reads its attributes separately
        readers = {k: v for k, v in unread.readers.items() if k not in _OF_ALL}
        some._unread = PendingReaders(readers, RLock())
    for name in _OF_ALL:
        some.__dict__.pop(name, None)
    for name, rows in arrays_of_users(ranker).items():
        setattr(some, name, rows[places])
    some.users_ = ranker.users_[places]
    grading = ranker.grading_
    if grading is not None:
        shifts = None if grading.shifts is None else grading.shifts[places]
        some.grading_ = replace(grading, use=grading.use[places], shifts=shifts)
    annotations = ranker.annotations_ if labels else None
    if annotations is not None:
        some.annotations_ = annotations.of_users(some.users_.tolist())
    return some


def in_memory(ranker: "Ranker") -> Any:
    """Return a ranker with its users, or a sample of very many users in files, in memory."""
    users = ranker._best_model.users_
    if not isinstance(users, LazyIds):
        return ranker
    return subset_users(ranker, users.sample(min(MOST_AT_ONCE, len(users))), labels=True)
