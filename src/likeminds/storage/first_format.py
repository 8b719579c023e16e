"""Files of format 1: arrays and a card, read at once."""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeminds.storage.contents import MODELS, ids_from_bytes
from likeminds.storage.earlier import before, renew
from likeminds.storage.finite import first_not_finite
from likeminds.storage.safetensors import ArrayFile, ModelFileError

# How the arrays of ids are named.
_IDS = "ids:"


def load_first_format(file: ArrayFile, card: dict[str, Any]) -> Any:
    """Return the model of a file of format 1, which is read at once."""
    with file.damage_told():
        arrays = {name: file.unchecked(name) for name in file.names}
        if card["checksum"] != _first_checksum(arrays):
            raise ModelFileError(
                f"{file.path} was changed since it was saved: its checksum differs."
            )
        fitted = card["values"] | {name: {"array": name} for name in arrays}
        wrong = first_not_finite(fitted, arrays.__getitem__, nested=True)
        if wrong is not None:
            raise file.not_finite(wrong)
        kind = card["ranker"]
        ranker: Any = MODELS[kind](**(before(kind) | card["parameters"]))
        for name, value in card["values"].items():
            setattr(ranker, name, value)
        for name, array in arrays.items():
            if name.startswith(_IDS):
                setattr(ranker, name.removeprefix(_IDS), ids_from_bytes(array))
            else:
                setattr(ranker, name, array)
        renew(ranker)
        return ranker


def _first_checksum(arrays: Mapping[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype.str} {arrays[name].shape} ".encode())
        digest.update(np.ascontiguousarray(arrays[name]).data)
    return digest.hexdigest()
