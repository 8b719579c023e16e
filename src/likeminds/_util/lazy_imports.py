"""Modules that are loaded at first use, because importing them is slow."""

import sys
from importlib import import_module
from importlib.util import LazyLoader, find_spec, module_from_spec
from typing import TYPE_CHECKING, Any

__all__ = ["LazyModule", "compute", "csv", "load_later", "np", "nw", "pa", "parquet", "require"]


class LazyModule:
    """A module that is loaded when one of its attributes is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        found = getattr(import_module(self._name), name)
        setattr(self, name, found)  # the next time, it is found without this method
        return found


# Libraries of data frames, which some programs do not use.
if TYPE_CHECKING:
    import narwhals as nw
    import numpy as np
    import pyarrow as pa
    from pyarrow import compute, csv, parquet
else:
    nw, np, pa = (LazyModule(name) for name in ("narwhals", "numpy", "pyarrow"))
    compute, csv = LazyModule("pyarrow.compute"), LazyModule("pyarrow.csv")
    parquet = LazyModule("pyarrow.parquet")


def load_later(*names: str) -> None:
    """Register modules in `sys.modules` that load at first use; not safe with several threads."""
    for name in names:
        spec = None if name in sys.modules else find_spec(name)
        if spec is not None and spec.loader is not None:
            loader = spec.loader = LazyLoader(spec.loader)
            sys.modules[name] = module_from_spec(spec)
            loader.exec_module(sys.modules[name])


def require(module: str, purpose: str, extra: str | None = None) -> Any:
    """Import a module; if it is missing, the error names the extra or the package to install."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0].replace("PIL", "Pillow")
        install = f"likeminds[{extra}]" if extra else package
        raise ImportError(f"{purpose} needs {package}: pip install '{install}'.") from error
