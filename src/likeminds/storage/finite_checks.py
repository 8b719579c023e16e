"""Checks that the arrays of a model are finite: NaN would silently spoil every ranking."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Where they mean something: what a search has not tried, and bounds that somebody asked for.
_MEANT = ("cv_results_", "best_params_")
_PIECE = 1 << 24


def first_not_finite(
    fitted: Mapping[str, Any], array: Callable[[str], NDArray[Any]], *, nested: bool
) -> str | None:
    """Return the name of the first fitted attribute with NaN or infinity.

    Parameters
    ----------
    fitted : mapping from name to node
        Fitted attributes, as the tree of a file has them (see `storage.model_tree`).
    array : callable
        Returns an array by its name.
    nested : bool
        Whether to look into the rankers that are attributes, too.
    """
    for name, node in fitted.items():
        if name not in _MEANT and not _is_finite(node, array, nested):
            return name
    return None


def _is_finite(node: Any, array: Callable[[str], NDArray[Any]], nested: bool) -> bool:
    if not isinstance(node, dict):
        plain = not isinstance(node, float) or math.isfinite(node)
        parts = node if isinstance(node, list) else []
        return plain and all(_is_finite(part, array, nested) for part in parts)
    inside: Any
    kind, inside = next(iter(node.items()), ("", None))
    if kind == "people":  # checked where they are, file by file
        return True
    if kind == "array":
        return all_finite(array(inside))
    if kind == "model":
        return not nested or first_not_finite(inside["fitted"], array, nested=True) is None
    if kind in {"dict", "data"}:
        inside = list((inside["fields"] if kind == "data" else inside).values())
    return kind != "float" and _is_finite(inside, array, nested)


def all_finite(array: NDArray[Any]) -> bool:
    """Return whether all numbers of an array are finite, without a mask of its size."""
    if array.dtype.kind != "f" or not array.size:
        return True
    rows = np.atleast_1d(array)
    step = max(1, _PIECE * len(rows) // rows.nbytes)
    pieces = (rows[start : start + step] for start in range(0, len(rows), step))
    return all(bool(np.isfinite(piece).all()) for piece in pieces)
