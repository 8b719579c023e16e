"""Models serialised to arrays and a tree in JSON, and deserialised lazily.

A node of the tree is a plain value, a list of nodes, or an object whose only key is its kind:

- ``array``: an array of the file, by name (with ``as``, the type of its dates)
- ``ids``: an array of texts, tuples and other ids, stored as JSON
- ``people``: an array with a row for each user, in the files of users (`storage.user_files`)
- ``tuple``: a tuple of nodes
- ``dict``: a mapping from texts to nodes
- ``float``: a number that JSON does not have: nan, inf, -inf
- ``data``: annotations, statistics or a prior, field by field
- ``model``: a ranker: its class, its parameters, and its fitted attributes
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from itertools import islice
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeminds._util.lazy_rows import LazyRows
from likeminds.data.annotations import Annotations
from likeminds.data.covariates import CovariateEncoder, Covariates
from likeminds.data.identifiers import as_objects
from likeminds.data.label_parsing import LabelReading
from likeminds.losses.rows import Rows
from likeminds.losses.statistics import ClassMoments, Statistics
from likeminds.mixed_model.design import Design
from likeminds.mixed_model.extensions.covariate_effects import CovariateEffects
from likeminds.mixed_model.extensions.sign_constraints import LogNormalPrior
from likeminds.mixed_model.fit_prior import SubsampleRecord
from likeminds.mixed_model.gaussian_prior import GaussianPrior, ItemPosteriors
from likeminds.mixed_model.likelihoods import (
    ChoiceLikelihood,
    GaussianLikelihood,
    LogisticLikelihood,
)
from likeminds.mixed_model.ordinal import CumulativeLogit, GradeScale, StandardNormal
from likeminds.mixed_model.ordinal_responses import DavidsonLikelihood
from likeminds.mixed_model.user_posteriors import FittedPrior
from likeminds.rankers.capabilities import PendingReaders
from likeminds.rankers.multi_attribute import AttributeModel
from likeminds.rankers.nominal import NominalRanker
from likeminds.rankers.ranker import Ranker
from likeminds.rankers.registry import RANKERS
from likeminds.storage.safetensors import ArrayFile, all_finite, tag, untag
from likeminds.storage.user_files import USERS, StoredIds, StoredRows, UserFiles

# Classes by their names in files, which stay when a class is renamed. Other classes are never
# instantiated.
STORED_CLASSES: dict[str, type[Any]] = {
    "Annotations": Annotations,
    "Covariates": Covariates,
    "LabelReading": LabelReading,
    "Statistics": Statistics,
    "Dense": ClassMoments,
    "Rows": Rows,
    "Crowd": FittedPrior,
    "Coordinates": Design,
    "Prior": GaussianPrior,
    "Items": ItemPosteriors,
    "Logistic": LogisticLikelihood,
    "Choice": ChoiceLikelihood,
    "Davidson": DavidsonLikelihood,
    "Regression": GaussianLikelihood,
    "Traits": CovariateEffects,
    "CovariateEncoder": CovariateEncoder,
    "Scale": GradeScale,
    "CumulativeLogit": CumulativeLogit,
    "StandardNormal": StandardNormal,
    "Sampling": SubsampleRecord,
    "LogNormal": LogNormalPrior,
    "AttributeModel": AttributeModel,
    "NominalRanker": NominalRanker,
    "LogisticPerPerson": RANKERS["LogisticPerUser"],
    **RANKERS,
}
del STORED_CLASSES["DecomposedRanker"]  # its components are not plain values
_STORED_NAMES = {kind: name for name, kind in STORED_CLASSES.items()}
# Attributes that contain training labels, or from which labels can be inferred.
_LABELS = ("statistics_", "annotations_")
_PRIVATE = (*_LABELS, "cached_schools_")
# Attributes in which NaN and infinity are valid: untried settings of a search, and bounds.
_MAY_BE_INFINITE = ("cv_results_", "best_params_")


class CannotStoreError(TypeError):
    """A value that cannot be serialised."""


class Contents:
    """Serialise models to nodes and arrays; store shared arrays once.

    ``with_data`` keeps training labels; ``holds_data`` tells whether there were any. ``users`` are
    the files with users' parameters, if already written.
    """

    def __init__(self, *, with_data: bool, users: UserFiles | None = None) -> None:
        self.with_data, self.users = with_data, users
        self.holds_data = False
        self.arrays: dict[str, NDArray[Any]] = {}
        self._nodes: dict[int, tuple[object, Any]] = {}

    def of_model(self, model: Ranker | AttributeModel, name: str = "") -> dict[str, Any]:
        """Return the node of a ranker, fitted or not."""
        kind = type(model).__name__
        if STORED_CLASSES.get(kind) is not type(model):
            raise CannotStoreError(f"{kind} cannot be saved; save a ranker of this library.")
        parameters = {}
        for key, value in model.get_params(deep=False).items():
            if key == "verbose":  # a setting of the session
                continue
            try:
                parameters[key] = self.of(value, f"{name}{key}")
            except CannotStoreError as error:
                raise CannotStoreError(
                    f"The parameter {key}={value!r} cannot be saved. Use set_params({key}=...) "
                    "with a plain value before saving."
                ) from error
        fitted = {}
        for key in model._fitted_names():
            if key in _PRIVATE and not self.with_data:
                continue
            self.holds_data |= key in _LABELS
            n_arrays, n_nodes = len(self.arrays), len(self._nodes)
            try:
                stored = model._stored_names.get(key, key)
                fitted[stored] = self.of(getattr(model, key), f"{name}{stored}")
            except CannotStoreError:  # skip diagnostics of the solver
                self.arrays = dict(islice(self.arrays.items(), n_arrays))
                self._nodes = dict(islice(self._nodes.items(), n_nodes))
        return {"model": {"class": kind, "parameters": parameters, "fitted": fitted}}

    def of(self, value: object, name: str) -> Any:  # noqa: C901, PLR0911 - one for each kind of value
        """Return the node of a value; ``name`` is the name of its array."""
        if isinstance(value, np.generic) and value.dtype.kind in "biuf":
            value = value.item()
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, list):
            return [self.of(part, f"{name}/{i}") for i, part in enumerate(value)]
        if isinstance(value, tuple):
            return {"tuple": [self.of(part, f"{name}/{i}") for i, part in enumerate(value)]}
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return {"dict": {key: self.of(part, f"{name}/{key}") for key, part in value.items()}}
        if isinstance(value, LazyRows):
            return self._of_rows(value, name)
        if isinstance(value, np.ndarray):
            return self._once(value, lambda: self._of_array(value, name))
        if isinstance(value, Ranker | AttributeModel):
            return self.of_model(value, f"{name}/")
        if type(value) in _STORED_NAMES:
            return self._once(value, lambda: self._of_data(value, name))
        raise CannotStoreError(f"{name} is a {type(value).__name__}.")

    def _once(self, value: object, node: Callable[[], Any]) -> Any:
        # Keep the object alive with its node, because Python reuses ids of deleted objects.
        if id(value) not in self._nodes:
            self._nodes[id(value)] = (value, node())
        return self._nodes[id(value)][1]

    def _of_array(self, array: NDArray[Any], name: str) -> dict[str, Any]:
        if array.dtype.kind in "OUS":
            self.arrays[name] = _ids_to_bytes(array, name)
            return {"ids": name}
        if array.dtype.kind in "mM":
            self.arrays[name] = array.astype(array.dtype.newbyteorder("<")).view("<i8")
            return {"array": name, "as": array.dtype.newbyteorder("<").str}
        self.arrays[name] = array.astype(array.dtype.newbyteorder("<"), copy=False)
        return {"array": name}

    def _of_rows(self, value: LazyRows, name: str) -> Any:
        if not isinstance(value, StoredRows) or value.files is not self.users:
            return self.of(np.asarray(value), name)
        shape = [int(size) for size in value.shape[1:]]
        return {"people": {"name": value.name, "dtype": value.dtype.str, "shape": shape}}

    def _of_data(self, value: object, name: str) -> dict[str, Any]:
        parts = {
            stored: self.of(getattr(value, field), f"{name}/{stored}")
            for stored, field in _fields_by_stored_name(type(value)).items()
        }
        return {"data": {"class": _STORED_NAMES[type(value)], "fields": parts}}


def _fields_by_stored_name(kind: type[Any]) -> dict[str, str]:
    """Return the fields of a class by their names in files."""
    names = {field.metadata.get("stored", field.name): field.name for field in fields(kind)}
    names.pop(False, None)
    return names


def model_from(node: dict[str, Any], file: ArrayFile) -> Ranker | AttributeModel:
    """Return a model; its arrays and data are read lazily."""
    described = node["model"]
    kind = STORED_CLASSES.get(described["class"])
    if kind is None or not issubclass(kind, Ranker | AttributeModel):
        raise file.incomplete(f"{described['class']} is an unknown class of ranker")
    parameters = {key: value_from(part, file) for key, part in described["parameters"].items()}
    if "item_effects" not in kind._get_param_names():  # parameters of earlier versions
        if parameters.pop("item_effects", False):
            raise file.incomplete(f"{described['class']} no longer has item effects; fit it again")
        parameters.pop("alpha_item", None)
    model = kind(**parameters)
    stored: dict[str, Callable[[], Any]] = {}
    names = {stored: name for name, stored in kind._stored_names.items()}
    for stored_key, part in described["fitted"].items():
        key = names.get(stored_key, stored_key)
        if not key.endswith("_") or key.startswith("_"):
            raise file.incomplete(f"{key} is not a fitted attribute")
        if isinstance(part, dict | list):
            stored[key] = partial(_read_fitted, key, part, file)
        else:
            refuse_not_finite({key: part}, file, nested=False)
            setattr(model, key, part)
    model._unread = PendingReaders(stored, RLock())
    return model


def refuse_not_finite(fitted: Mapping[str, Any], file: ArrayFile, *, nested: bool) -> None:
    """Raise ModelFileError for fitted attributes with NaN or infinity."""
    name = first_not_finite(fitted, file.array, nested=nested)
    if name is not None:
        raise file.not_finite(name)


def _read_fitted(key: str, node: object, file: ArrayFile) -> Any:
    with file.errors_of_content():
        if not file.is_whole:  # a whole file was checked when it was read
            refuse_not_finite({key: node}, file, nested=False)
        return value_from(node, file)


def first_not_finite(
    fitted: Mapping[str, Any], array: Callable[[str], NDArray[Any]], *, nested: bool
) -> str | None:
    """Return the first fitted attribute with NaN or infinity, ``nested`` rankers included."""
    for name, node in fitted.items():
        if name not in _MAY_BE_INFINITE and not _is_finite(node, array, nested):
            return name
    return None


def _is_finite(node: object, array: Callable[[str], NDArray[Any]], nested: bool) -> bool:
    if not isinstance(node, dict):
        plain = not isinstance(node, float) or math.isfinite(node)
        parts = node if isinstance(node, list) else []
        return plain and all(_is_finite(part, array, nested) for part in parts)
    inside: Any
    kind, inside = next(iter(node.items()), ("", None))
    if kind == "people":  # checked file by file
        return True
    if kind == "array":
        return all_finite(array(inside))
    if kind == "model":
        return not nested or first_not_finite(inside["fitted"], array, nested=True) is None
    if kind in {"dict", "data"}:
        inside = list((inside["fields"] if kind == "data" else inside).values())
    return kind != "float" and _is_finite(inside, array, nested)


def value_from(node: object, file: ArrayFile) -> Any:
    """Return the value of a node."""
    if isinstance(node, list):
        return [value_from(part, file) for part in node]
    if not isinstance(node, dict):
        return node
    return _READERS[next(iter(node), "")](node, file)


def _array_from(node: dict[str, Any], file: ArrayFile) -> NDArray[Any]:
    array = file.array(node["array"])
    return array.view(node["as"]) if "as" in node else array


def _users_from(node: dict[str, Any], file: ArrayFile) -> StoredRows:
    if file.users is None:
        raise ValueError("its list of files with users is missing")
    form = node["people"]
    kind = StoredIds if form["name"] == USERS else StoredRows
    return kind(file.users, form["name"], form["dtype"], form["shape"])


def _data_from(node: dict[str, Any], file: ArrayFile) -> Any:
    kind = STORED_CLASSES[node["data"]["class"]]
    names = _fields_by_stored_name(kind)
    parts = {names[key]: value_from(part, file) for key, part in node["data"]["fields"].items()}
    if kind is not Annotations:
        return kind(**parts)
    annotations = object.__new__(Annotations)
    annotations.__setstate__(parts)
    return annotations


_READERS: dict[str, Callable[[dict[str, Any], ArrayFile], Any]] = {
    "array": _array_from,
    "people": _users_from,
    "ids": lambda node, file: file.made(node["ids"], ids_from_bytes),
    "tuple": lambda node, file: tuple(value_from(part, file) for part in node["tuple"]),
    "dict": lambda node, file: {k: value_from(part, file) for k, part in node["dict"].items()},
    "float": lambda node, _: float(node["float"]),
    "data": _data_from,
    "model": model_from,
}


def _ids_to_bytes(ids: NDArray[Any], name: str) -> NDArray[np.uint8]:
    try:
        text = json.dumps([tag(value) for value in ids.tolist()])
    except TypeError as error:
        raise TypeError(
            f"{name} has ids that cannot be saved: {error}. Use numbers, texts or tuples."
        ) from error
    return np.frombuffer(text.encode(), dtype=np.uint8)


def ids_from_bytes(array: NDArray[np.uint8]) -> NDArray[Any]:
    """Return ids of any kind from their JSON."""
    return as_objects([untag(value) for value in json.loads(array.tobytes())])
