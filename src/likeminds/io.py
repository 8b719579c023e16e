"""Models on disk: safetensors arrays and a card in JSON, in one file, never a pickle.

A file holds the fitted attributes of a ranker as arrays, and in its header a card: format
version, class, parameters, and a checksum of the arrays. It is written whole or not at all.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from likeminds import baselines
from likeminds._files import write_whole
from likeminds._ranker import Ranker
from likeminds._version import __version__
from likeminds.hierarchical import HierarchicalRanker
from likeminds.rankers import ThreeLevelRanker
from likeminds.tuning import ThreeLevelRankerCV

FORMAT = 1

_RANKERS: dict[str, type[Ranker]] = {
    ranker.__name__: ranker
    for ranker in (
        ThreeLevelRanker,
        ThreeLevelRankerCV,
        HierarchicalRanker,
        *(getattr(baselines, name) for name in baselines.__all__),
    )
}
_CARD = "likeminds"
# How arrays of ids, which safetensors does not know, are named in the file.
_IDS = "ids:"


class ModelFileError(ValueError):
    """A file that is not a model this version can read, and why."""


def save(ranker: Ranker, path: str | os.PathLike[str]) -> Path:
    """Write a fitted ranker to a file.

    An existing file is replaced only once the new one is complete: an interrupt or a full
    disk leaves it as it was.

    Parameters
    ----------
    ranker : Ranker
        A fitted ranker of this library.
    path : path
        Where to; any name will do, ``.likeminds`` is customary.

    Returns
    -------
    Path

    Examples
    --------
    >>> import tempfile
    >>> from likeminds import ThreeLevelRanker, load, load_electricity, save
    >>> ranker = ThreeLevelRanker().fit(load_electricity())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = load(save(ranker, f"{folder}/electricity.likeminds"))
    >>> np.array_equal(again.coef_, ranker.coef_)
    True
    """
    target = writable(path)
    name = type(ranker).__name__
    if _RANKERS.get(name) is not type(ranker):
        hint = "; save its best_estimator_" if hasattr(ranker, "best_estimator_") else ""
        raise TypeError(f"Only rankers of this library can be saved, not {name}{hint}.")
    arrays, values = _fitted_attributes(ranker)
    card = {
        "format": FORMAT,
        "version": __version__,
        "ranker": name,
        "parameters": _plain_parameters(ranker),
        "values": values,
        "checksum": _checksum(arrays),
    }
    write_whole(target, to_bytes(arrays, metadata={_CARD: json.dumps(card)}))
    return target


def writable(path: str | os.PathLike[str]) -> Path:
    """Return the path if a file can go there; else say what is in the way, before any work."""
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; name a file in it to save the model to.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {target.parent} to save the model in.")
    return target


def load(path: str | os.PathLike[str]) -> Any:
    """Read a ranker that `save` wrote.

    Raises
    ------
    ModelFileError
        When the file is truncated, was changed, is of a newer format, or no model at all.
    """
    source = Path(path)
    if not source.is_file():
        raise FileNotFoundError(f"There is no model at {source}.")
    card, arrays = _read(source)
    if card["checksum"] != _checksum(arrays):
        raise ModelFileError(f"{source} was changed since it was saved: its checksum differs.")
    ranker = _RANKERS[card["ranker"]](**card["parameters"])
    for name, value in card["values"].items():
        setattr(ranker, name, value)
    for name, array in arrays.items():
        if name.startswith(_IDS):
            setattr(ranker, name.removeprefix(_IDS), _ids_from_bytes(array))
        else:
            setattr(ranker, name, array)
    return ranker


def _fitted_attributes(
    ranker: Ranker,
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return what ``fit`` set: arrays, and plain values (what is neither is not kept)."""
    fitted = {
        name: value
        for name, value in vars(ranker).items()
        if name.endswith("_") and not name.startswith("_")
    }
    if not fitted:
        raise ValueError(f"This {type(ranker).__name__} is not fitted yet: call fit before save.")
    arrays: dict[str, NDArray[Any]] = {}
    for name, value in fitted.items():
        if isinstance(value, np.ndarray) and value.dtype.kind in "OUS":
            arrays[_IDS + name] = _ids_to_bytes(value, name)
        elif isinstance(value, np.ndarray):
            arrays[name] = np.ascontiguousarray(value)
    values = {name: _plain(value) for name, value in fitted.items() if _is_plain(value)}
    return arrays, values


def _plain_parameters(ranker: Ranker) -> dict[str, Any]:
    parameters: dict[str, Any] = ranker.get_params(deep=False)
    for name, value in parameters.items():
        if not _is_plain(value):
            raise TypeError(
                f"The parameter {name}={value!r} cannot be written to a file; "
                f"use set_params({name}=...) with a plain value before saving."
            )
    return {name: _plain(value) for name, value in parameters.items()}


def _is_plain(value: Any) -> bool:
    """Say whether JSON can hold it: numbers, texts, and lists and dicts of them."""
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(part) for key, part in value.items())
    if isinstance(value, list | tuple):
        return all(_is_plain(part) for part in value)
    return isinstance(value, bool | int | float | str | np.generic | None)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value.item() if isinstance(value, np.generic) else value


def _ids_to_bytes(ids: NDArray[Any], name: str) -> NDArray[np.uint8]:
    try:
        text = json.dumps([_tagged(value) for value in ids.tolist()])
    except TypeError as error:
        raise TypeError(f"{name} holds ids that cannot be written to a file: {error}.") from error
    return np.frombuffer(text.encode(), dtype=np.uint8)


def _ids_from_bytes(array: NDArray[np.uint8]) -> NDArray[Any]:
    values = [_untagged(value) for value in json.loads(array.tobytes())]
    ids = np.empty(len(values), dtype=object)
    ids[:] = values
    return ids


def _tagged(value: Any) -> Any:
    # JSON has no tuples; a list can only be one, because lists are no ids.
    return [_tagged(part) for part in value] if isinstance(value, tuple) else value


def _untagged(value: Any) -> Any:
    return tuple(_untagged(part) for part in value) if isinstance(value, list) else value


def _checksum(arrays: Mapping[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype.str} {arrays[name].shape} ".encode())
        digest.update(np.ascontiguousarray(arrays[name]).data)
    return digest.hexdigest()


def _read(source: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    try:
        with safe_open(source, framework="numpy") as file:
            card = json.loads((file.metadata() or {})[_CARD])
            _refuse_foreign(card, source)
            return card, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except ModelFileError:
        raise
    except (SafetensorError, KeyError, TypeError, ValueError, OSError) as error:
        raise ModelFileError(
            f"{source} is not a complete likeminds model: {error}. Save it again."
        ) from error


def _refuse_foreign(card: dict[str, Any], source: Path) -> None:
    if card["format"] > FORMAT:
        raise ModelFileError(
            f"{source} was written by likeminds {card['version']} in format {card['format']}; "
            f"this version reads up to {FORMAT}. Upgrade likeminds."
        )
    if card["ranker"] not in _RANKERS:
        raise ModelFileError(f"{source} holds an unknown kind of ranker: {card['ranker']}.")
