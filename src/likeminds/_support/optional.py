"""Packages that only some parts need: imported when used, and asked for in one sentence."""

from importlib import import_module
from typing import Any


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
