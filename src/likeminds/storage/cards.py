"""The card of a model's file: what it says to people about the model, in strict JSON."""

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from likeminds._version import __version__
from likeminds.rankers.capabilities import ReadableModel
from likeminds.rankers.multi_attribute import AttributeModel

# Units of features that a card lists; nobody reads more of them, and the file has them anyway.
_LISTED = 10_000


def make_card(model: ReadableModel, tree: dict[str, Any], written: int) -> dict[str, Any]:
    """Return what the file of a model says about it: see `likeminds.read_card`."""
    card = {
        "format": written,
        "version": __version__,
        "ranker": type(model).__name__,
        "parameters": readable(tree["model"]["parameters"]),
        "features": [str(name) for name in model.feature_names_],
        "pictures": (model._learned("pictures_") or {}).get("features"),
    }
    if isinstance(model, AttributeModel):
        card["people"] = len(model.people_)
        listed = _LISTED // len(model.rankers_)
        card["attributes"] = {
            name: _summary(one, model.fingerprint_of(name), listed)
            for name, one in model.rankers_.items()
        }
    else:
        card |= _summary(model, tree["model"]["fitted"].get("fingerprint_"), _LISTED)
        card["attributes"] = None
    return card


def _summary(ranker: Any, known_data: str | None, listed: int) -> dict[str, Any]:
    parameters, scale = ranker.get_params(), ranker._learned("scale_")
    reading = ranker._learned("label_reading_")
    standardize = parameters.get("standardize", parameters.get("ranker__standardize"))
    return {
        "ranker": type(ranker).__name__,
        "people": len(ranker.users_),
        "labels": ranker._learned("n_labels_"),
        "choices": ranker._learned("n_choices_"),
        "label_reading": None if reading is None else readable(asdict(reading)),
        "verb": ranker.verb.many(),
        "fingerprint": known_data,
        "preprocessing": {
            "standardize": standardize,
            "scale": None if scale is None or len(scale) > listed else scale.tolist(),
        },
    }


def readable(value: Any) -> Any:
    """Return a value in strict JSON: NaN and infinity as texts; refuse objects of other types."""
    if isinstance(value, Mapping):
        if set(value) == {"model"}:
            described = value["model"]
            return {"class": described["class"], **readable(described["parameters"])}
        if len(value) == 1 and next(iter(value)) in {"tuple", "dict", "float"}:
            return readable(next(iter(value.values())))
        return {str(key): readable(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [readable(part) for part in value]
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if value is not None and not isinstance(value, bool | int | float | str):
        raise TypeError(f"A card holds numbers, texts, lists and mappings of them, not {value!r}.")
    return value
