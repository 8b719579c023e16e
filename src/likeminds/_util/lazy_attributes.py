"""Fitted attributes that are loaded lazily from their file."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from likeminds._util.atomic_files import FileVersion

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


class LazyAttributes:
    """Base of objects that are loaded lazily: an attribute is read when it is first used.

    It is thread-safe: each attribute is read once.
    """

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
