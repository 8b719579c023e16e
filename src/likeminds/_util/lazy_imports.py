"""Modules that take long to load, and that most programs never come to use."""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType
from typing import Any


class LazyModule:
    """A module that is loaded when something of it is first asked for.

    Examples
    --------
    >>> LazyModule("math").sqrt(9.0)
    3.0
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, asked: str) -> Any:
        return getattr(import_module(self._name), asked)


def load_later(*names: str) -> None:
    """Load modules, whoever imports them from now on, when something of them is first asked for.

    For programs of one thread: what asks a model something imports scikit-learn, which imports
    pandas and `scipy.stats` without using them, and these take longer than the answer.
    """
    waiting = _LazyFinder(names)
    if waiting not in sys.meta_path:
        sys.meta_path.insert(0, waiting)


class _LazyFinder:
    """Finds the modules of some names, to be loaded later."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _LazyFinder) and self._names == other._names

    def __hash__(self) -> int:
        return hash(self._names)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name in self._names else None
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def require(module: str, purpose: str, extra: str) -> Any:
    """Return a module, or say which extra of likeminds brings it.

    Examples
    --------
    >>> require("no_such_package", "Reading pictures", "images")
    Traceback (most recent call last):
    ...
    ImportError: Reading pictures needs no_such_package: install likeminds[images]
    (pip install 'likeminds[images]').
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0].replace("PIL", "Pillow")
        raise ImportError(
            f"{purpose} needs {package}: install likeminds[{extra}] "
            f"(pip install 'likeminds[{extra}]')."
        ) from error
