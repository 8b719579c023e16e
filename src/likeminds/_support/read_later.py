"""Fitted attributes that stay in their file until somebody asks for them."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any


class ReadLater:
    """Base of what is loaded from a file lazily: an attribute is read when it is first used."""

    # By name, what reads each attribute that is still in the file.
    _stored: dict[str, Callable[[], Any]]

    if not TYPE_CHECKING:  # to a type checker it would promise every attribute there is

        def __getattr__(self, name: str) -> Any:
            read = self.__dict__.get("_stored", {}).get(name)
            if read is None:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            value = read()
            setattr(self, name, value)
            self._stored.pop(name, None)
            return value

    def _read_all(self) -> None:
        """Read what is still in the file, and forget the file."""
        for name in list(self.__dict__.get("_stored", ())):
            getattr(self, name)
        self.__dict__.pop("_stored", None)

    def _fitted_names(self) -> list[str]:
        """Return the names of the fitted attributes, read or not."""
        names = {*vars(self), *self.__dict__.get("_stored", ())}
        return sorted(name for name in names if name.endswith("_") and not name.startswith("_"))

    def __getstate__(self) -> Any:
        self._read_all()
        return super().__getstate__()
