"""The interface of models: one ranker, or one for each of several attributes."""

import threading
from collections.abc import Callable, Mapping
from copy import copy
from enum import Enum
from typing import TYPE_CHECKING, Any

from likeminds._util.array_types import FloatArray, IdArray
from likeminds._util.atomic_files import FileVersion
from likeminds._util.checks import did_you_mean, listing
from likeminds._util.verbs import Verb
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import as_id_array, lookup

# The name of the attribute where there is only one, without a name.
NAMELESS = ""


# Methods of other estimators that rankers do not have, and what to call instead.
_INSTEAD = {
    "predict": ": call rank for the best items, decision_function for scores, predict_proba for "
    "probabilities of labels, or predict_grades for expected grades",
}


class PendingReaders:
    """Readers of the attributes that are still in a file, by name, and the lock around them."""

    def __init__(self, readers: dict[str, Callable[[], Any]]) -> None:
        self.readers = readers
        # Reentrant: reading one attribute may read another.
        self.lock = threading.RLock()


class ReadableModel:
    """Base of rankers and of models with several attributes.

    Attributes of a model that is read from a file are read when they are first used, each once,
    whatever the number of threads.

    Attributes
    ----------
    rankers_ : dict
        The fitted ranker of each attribute; of a single ranker, itself, called `NAMELESS`.
    people_ : array
        Everybody it knows.
    feature_names_ : array of str
        The features.
    """

    rankers_: dict[str, Any]
    people_: IdArray
    feature_names_: IdArray
    _unread: PendingReaders | None
    # The version of the file it was read from.
    _read_from: FileVersion | None

    if not TYPE_CHECKING:  # to a type checker it would promise every attribute there is

        def __getattr__(self, name: str) -> Any:
            unread = self.__dict__.get("_unread")
            if unread is not None:
                with unread.lock:
                    if name in unread.readers:
                        setattr(self, name, unread.readers[name]())
                        del unread.readers[name]
            # Another thread may have read it since it was looked for.
            if name in self.__dict__:
                return self.__dict__[name]
            hint = _INSTEAD.get(name, "")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}")

    def _read_all(self) -> None:
        """Read what is still in the file, and forget the file."""
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
        # Those unread first: what another thread reads meanwhile is then in both.
        names = {*([] if unread is None else list(unread.readers)), *list(self.__dict__)}
        return sorted(name for name in names if name.endswith("_") and not name.startswith("_"))

    def __sklearn_is_fitted__(self) -> bool:
        # scikit-learn's own way walks through the attributes, which threads add to meanwhile.
        return bool(self._fitted_names())

    def __getstate__(self) -> Any:
        self._read_all()
        return super().__getstate__()

    @property
    def _best_model(self) -> Any:
        """The model, out of the search that found it."""
        return self._learned("best_estimator_") or self

    @property
    def has_attributes(self) -> bool:
        """Whether it tells several attributes apart, by name."""
        return NAMELESS not in self.rankers_

    def _learned(self, name: str) -> Any:
        """Return a fitted attribute that not every model has; None where this one has none."""
        return getattr(self, name, None)

    @property
    def verb(self) -> Verb:
        """What people do with items, as far as the labels said; of files of old, "like"."""
        return Verb.of(self._learned("verb_"))

    @property
    def item_names(self) -> dict[Any, str]:
        """Titles, names or texts of items, by their ids; empty where the model has none."""
        held = self._learned("item_names_")
        if held is None:
            return {}
        return dict(zip(held["ids"].tolist(), held["names"].tolist(), strict=True))

    def name_items(self, names: Mapping[Any, str] | None) -> None:
        """Keep titles, names or texts of items, by their ids, with the model."""
        if names:
            called = as_id_array(list(names.values()), "names")
            self.item_names_ = {"ids": as_id_array(list(names), "items"), "names": called}

    def _ranker_of(self, attribute: str) -> Any:
        """Return the ranker of an attribute."""
        if str(attribute) not in self.rankers_:
            there = listing(list(self.rankers_))
            hint = did_you_mean(attribute, self.rankers_)
            raise KeyError(f"There is no attribute {attribute!r}; there are {there}.{hint}")
        return self.rankers_[str(attribute)]

    @property
    def kept_(self) -> Annotations | None:
        """The labels and items it was fitted to, where it still has them."""
        kept = (ranker._learned("annotations_") for ranker in self.rankers_.values())
        return next((said for said in kept if said is not None), None)

    def kept_items(self) -> tuple[IdArray, FloatArray] | None:
        """Return the items it was fitted to and can score, and their features, where it has them.

        A part of some annotations has the items of the whole, labelled or not.
        """
        if self.kept_ is None:
            return None
        ids, features = self.kept_.distinct_items()
        scorable = self._best_model.scorable_ids()
        known = slice(None) if scorable is None else lookup(ids, scorable, "items") >= 0
        return ids[known], features[known]

    def scorable_ids(self) -> IdArray | None:
        """Return the ids of all items that have a score; None where features score any item."""
        return None

    def fingerprint_of(self, attribute: str = NAMELESS) -> str | None:
        """Return the fingerprint of what it was fitted to, if that is known."""
        marks = self._learned("fingerprints_") or {}
        mark: str | None = marks.get(attribute)
        return mark or self._ranker_of(attribute)._learned("fingerprint_")


def with_consensus(ranker: Any) -> Any:
    """Return a ranker that scores unknown users and items, whatever its ``unknown`` says."""
    if not isinstance(ranker, ReadableModel):  # an estimator of the caller's
        return ranker
    lenient: Any = copy(ranker._best_model)
    lenient.unknown = "consensus"
    return lenient


class Capability(Enum):
    """Methods that only some models have, each with the message for the others."""

    UPDATES = ("update", "takes no more labels: fit it to all of them")
    NEWCOMERS = ("newcomer", "cannot take newcomers without a refit: use update")
    LEVELS = ("group_", "has no group level: nothing says who thinks alike")
    PART_WORTHS = ("wtp", "has no table of part-worths: fit a HierarchicalRanker")
    UNCERTAINTY = ("standard_error", "does not know how sure it is of its scores")

    def of(self, model: Any) -> bool:
        """Say whether a model has it."""
        return hasattr(model, self.value[0])

    def require(self, model: Any) -> None:
        """Refuse a model that does not have it."""
        if not self.of(model):
            raise TypeError(f"{type(model).__name__} {self.value[1]}.")
