"""Save and load models as safetensors arrays and a JSON card in one file, without pickle.

The header of a file of format 3 has a readable card, a tree of the model's arrays (see
`storage.model_tree`), and checksums (`storage.safetensors`). The file is written atomically and
mapped into memory, so opening a model of a million users reads only the header. Format 4 is a
folder with the same file and files of users' parameters, read on demand (`storage.user_files`).
Formats 1 and 2 were never released and raise `ModelFileError`.
"""

import json
import math
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from likeminds._util.atomic_files import FileChangedError, FileVersion, place_for
from likeminds._version import __version__
from likeminds.data.annotations import Annotations
from likeminds.data.fingerprints import fingerprint
from likeminds.rankers.capabilities import Capability
from likeminds.rankers.multi_attribute import AttributeModel
from likeminds.rankers.ranker import Ranker
from likeminds.storage.folders import MAIN, UserFolder, open_folder, write_user_files
from likeminds.storage.model_tree import (
    STORED_CLASSES,
    Contents,
    first_not_finite,
    model_from,
    refuse_not_finite,
)
from likeminds.storage.safetensors import ArrayFile, ModelFileError, parse, write_arrays
from likeminds.storage.user_files import UserFile, UserFiles, user_files_of

__all__ = ["FORMAT", "FileChangedError", "ModelFileError", "load", "read_card", "save", "writable"]

FORMAT = 3
# Models whose users are in separate files.
_FOLDER_FORMAT = 4

# The most feature units listed on a card; the file has all.
_LISTED = 10_000

_CARD, _TREE, _PEOPLE = "likeminds", "contents", "people"
_FORMER_NAMES = {"people": "users", "people_files": "user_files"}
_HASHES, _ORDER = "people/hashes", "people/order"


def save(
    model: Ranker | AttributeModel,
    path: str | os.PathLike[str],
    *,
    with_data: bool = False,
    data: Annotations | None = None,
    scores: Mapping[str, Any] | None = None,
    if_unchanged: bool = False,
    users_per_file: int | None = None,
) -> Path:
    """Save a fitted ranker or `AttributeModel` to one file or a folder.

    An existing file is replaced only once the new one is complete, so an interrupt or a full disk
    does not damage it. Arrays are written without a copy.

    Parameters
    ----------
    model : Ranker or AttributeModel
        A fitted model of this library.
    path : path
        The file or folder to write; names usually end in ``.likeminds``.
    with_data : bool, default=False
        Save the training data too (statistics, or labels and features), so a loaded model can be
        updated with more labels (``update``). By default, the file has no labels.
    data : Annotations, optional
        The training data, for the fingerprint on the card. Not needed for rankers that keep their
        data, and for models of several attributes.
    scores : mapping, optional
        Scores of the model for the card: numbers, texts, and lists and mappings of them.
    if_unchanged : bool, default=False
        Raise `FileChangedError` if another program replaced the file after the model was loaded
        from it or last saved to it. The file is then kept, so no update is lost.
    users_per_file : int, optional
        Write a folder with this many users per file. `load` then reads the prior alone, and users'
        files on demand. To replace such a folder, the default is its number.

    Returns
    -------
    Path

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from likeminds import ThreeLevelRanker, load, load_electricity, read_card, save
    >>> ranker = ThreeLevelRanker().fit(load_electricity())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save(ranker, f"{folder}/electricity.likeminds", scores={"auc": 0.85})
    ...     again, card = load(path), read_card(path)
    >>> np.array_equal(again.coef_, ranker.coef_)
    True
    >>> card["ranker"], card["users"], card["scores"]
    ('ThreeLevelRanker', 361, {'auc': 0.85})
    """
    target = Path(path)
    options: dict[str, Any] = {"with_data": with_data, "data": data, "scores": scores}
    if users_per_file is None and not has_main(target):
        write_model(model, writable(path), if_unchanged=if_unchanged, **options)
        return target
    if not isinstance(model, Ranker):
        raise TypeError("An AttributeModel is saved to one file. Leave out users_per_file.")
    _refuse_unfitted(model._fitted_names(), model)
    n_each = users_per_file
    if n_each is None:
        n_each = max(one.n_users for one in read_users(target))
    if n_each < 1:
        raise ValueError(f"users_per_file must be at least 1, but is {n_each}.")
    with folder_of_users(target) as folder:
        stored = write_user_files(model, folder, n_each)
        users = user_files_of(stored)
        write_model(stored, folder.main, if_unchanged=if_unchanged, users=users, **options)
        model._read_from = stored._read_from
    return target


def write_model(
    model: Ranker | AttributeModel,
    target: Path,
    *,
    with_data: bool = False,
    data: Annotations | None = None,
    scores: Mapping[str, Any] | None = None,
    if_unchanged: bool = False,
    users: UserFiles | None = None,
) -> None:
    """Write a model's file (card, tree and arrays), without files of users; see `save`."""
    contents = Contents(with_data=with_data, users=users)
    tree = contents.of_model(model)
    _refuse_unfitted(tree["model"]["fitted"], model)
    if isinstance(model, Ranker):
        fitted = tree["model"]["fitted"] | _fingerprint_of(model, data)
        tree["model"]["fitted"] = dict(sorted(fitted.items()))
    name = first_not_finite(tree["model"]["fitted"], contents.arrays.__getitem__, nested=True)
    if name is not None:
        raise ValueError(
            f"{name} of this {type(model).__name__} has NaN or infinite numbers, so nothing was "
            "saved. Check the training data for extreme values, and fit again."
        )
    card = _make_card(model, tree)
    card["scores"] = _readable(dict(scores or {}))
    card["takes_updates"] = contents.holds_data and Capability.UPDATES.of(model)
    texts = {_TREE: json.dumps(tree)}
    if users is not None:
        card |= {"format": _FOLDER_FORMAT, "user_files": len(users)}
        texts[_PEOPLE] = json.dumps([asdict(one) for one in users.files])
        contents.arrays |= {_HASHES: users.hashes, _ORDER: users.order.astype("<u8")}
    texts[_CARD] = json.dumps(card)
    replacing: FileVersion | None = vars(model).get("_read_from") if if_unchanged else None
    if if_unchanged and replacing is None:
        raise ValueError("if_unchanged=True needs a model that was loaded from a file. Omit it.")
    model._read_from = write_arrays(target, contents.arrays, texts, replacing)


def folder_of_users(target: Path) -> AbstractContextManager[UserFolder]:
    """Open a folder to write a model with files of users; see `open_folder`."""
    files = read_users(target) if has_main(target) else []
    return open_folder(target, {one.name for one in files})


def _refuse_unfitted(fitted: object, model: object) -> None:
    if not fitted:
        raise NotFittedError(f"This {type(model).__name__} is not fitted. Call fit before save.")


def read_users(path: Path) -> list[UserFile]:
    """Return a model's files of users; an empty list if users are in the model's own file."""
    return _listed(_open(path, header_only=True)[0])


def main_file(path: Path) -> Path:
    """Return the file of a model; in a folder, the file with the card."""
    return path / MAIN if path.is_dir() else path


def has_main(path: Path) -> bool:
    """Return whether a path is a folder with a model."""
    return (path / MAIN).is_file()


def writable(path: str | os.PathLike[str]) -> Path:
    """Return the path; raise an error if a model cannot be written there."""
    place_for(main_file(Path(path)) if has_main(Path(path)) else path, "the model")
    return Path(path)


def load(path: str | os.PathLike[str], *, verify: bool = False) -> Any:
    """Load a model that `save` wrote.

    From a folder, `load` reads the prior and an index of ids; users' parameters are read on demand.
    A file of up to 64 MiB is read and checked as a whole. A larger file is mapped into memory, and
    each array is checked on first use. Its arrays are read-only, and the file must not be changed
    in place meanwhile (`save` replaces it instead).

    Parameters
    ----------
    path : path
    verify : bool, default=False
        Also check a large file as a whole, and all files of users.

    Returns
    -------
    Ranker or AttributeModel

    Raises
    ------
    ModelFileError
        If the file is truncated, was changed, has another format, or is not a model.
    """
    file, _ = _open(path)
    file.users = _user_files_beside(file)
    with file.errors_of_content():
        tree = parse(file.metadata[_TREE])
        if verify or file.is_whole:
            for name in file.names:
                file.array(name)
            refuse_not_finite(tree["model"]["fitted"], file, nested=True)
        if verify and file.users is not None:
            file.users.check()
        model: Any = model_from(tree, file)
    model._read_from = file.version
    return model


def read_card(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the card of a model's file, without reading the model.

    Returns
    -------
    dict
        ``ranker`` (its class), the ``format`` of the file, the ``version`` of likeminds,
        ``parameters``, numbers of ``users``, ``labels`` and ``choices``, and ``label_reading`` (see
        `Annotations.reading`). Names of ``features``, ``verb``, ``pictures`` (how their features
        were computed), and ``preprocessing`` (standardisation, and units of up to 10,000 features).
        ``fingerprint`` of the training data (see `likeminds.fingerprint`), ``scores`` as given to
        `save`, and ``takes_updates``. ``attributes`` has the same for each attribute. A folder has
        ``user_files``, their number. Unknown values are None.
    """
    return _open(path, header_only=True)[1]


def _listed(file: ArrayFile) -> list[UserFile]:
    with file.errors_of_content():
        listed = [UserFile(**one) for one in parse(file.metadata.get(_PEOPLE, "[]"))]
        outside = [one.name for one in listed if Path(one.name).name != one.name]
        if outside:
            raise ValueError(f"its file of users {outside[0]!r} is in another folder")
        return listed


def _user_files_beside(file: ArrayFile) -> UserFiles | None:
    """Return the files of users in the folder of a model's file, without opening them."""
    listed = _listed(file)
    if not listed:
        return None
    with file.errors_of_content():
        hashes, order = file.array(_HASHES), file.array(_ORDER)
        users = UserFiles(file.path.parent, listed, hashes, order)
        if hashes.shape != order.shape or hashes.shape != (users.n_users,):
            raise ValueError("its index does not match its users")
        return users


def _open(
    path: str | os.PathLike[str], *, header_only: bool = False
) -> tuple[ArrayFile, dict[str, Any]]:
    source = main_file(Path(path))
    if not source.is_file():
        raise FileNotFoundError(f"There is no model at {path}. Check the name and the folder.")
    file = ArrayFile(source, header_only=header_only)
    with file.errors_of_content():
        card = _renamed(parse(file.metadata[_CARD]))
        _refuse_foreign(card, source)
    file.check_header()
    return file, card


def _renamed(card: dict[str, Any]) -> dict[str, Any]:
    """Return a card with current names, also of the first files of formats 3 and 4."""
    attributes = {name: _renamed(one) for name, one in (card.get("attributes") or {}).items()}
    renamed = {_FORMER_NAMES.get(name, name): value for name, value in card.items()}
    return renamed | ({"attributes": attributes} if attributes else {})


def _refuse_foreign(card: dict[str, Any], source: Path) -> None:
    if not isinstance(card["format"], int) or card["format"] < 1:
        raise ValueError(f"its format, {card['format']}, is unknown")
    if card["format"] < FORMAT:
        raise ModelFileError(
            f"{source} has format {card['format']}, which was never released; this version reads "
            f"formats {FORMAT} and {_FOLDER_FORMAT}. Fit the model again."
        )
    if card["format"] > _FOLDER_FORMAT:
        raise ModelFileError(
            f"{source} was written by likeminds {card['version']} in format {card['format']}; "
            f"this version reads up to {_FOLDER_FORMAT}. Upgrade likeminds."
        )
    if card["ranker"] not in STORED_CLASSES:
        raise ModelFileError(
            f"{source} has an unknown class of ranker: {card['ranker']}. Upgrade likeminds."
        )


def _fingerprint_of(ranker: Ranker, data: Annotations | None) -> dict[str, str]:
    """Return the fingerprint of the training data, if it is known."""
    found = ranker.fingerprint_of() if data is None else None
    annotations = ranker.training_annotations_ if data is None else data
    if found is None and annotations is not None:
        found = fingerprint(annotations)
    return {} if found is None else {"fingerprint_": found}


def _make_card(model: Ranker | AttributeModel, tree: dict[str, Any]) -> dict[str, Any]:
    """Return the card of a model; see `read_card`."""
    card = {
        "format": FORMAT,
        "version": __version__,
        "ranker": type(model).__name__,
        "parameters": _readable(tree["model"]["parameters"]),
        "features": [str(name) for name in model.feature_names_],
        "pictures": (model.pictures_ or {}).get("features"),
    }
    if isinstance(model, AttributeModel):
        card["users"] = len(model.users_)
        listed = _LISTED // len(model.rankers_)
        card["attributes"] = {
            name: _summary(one, model.fingerprint_of(name), listed)
            for name, one in model.rankers_.items()
        }
    else:
        card |= _summary(model, tree["model"]["fitted"].get("fingerprint_"), _LISTED)
        card["attributes"] = None
    return card


def _summary(ranker: Ranker, fingerprint: str | None, listed: int) -> dict[str, Any]:
    parameters, scale = ranker.get_params(), ranker.scale_
    reading = ranker.label_reading_
    standardize = parameters.get("standardize", parameters.get("ranker__standardize"))
    return {
        "ranker": type(ranker).__name__,
        "users": len(ranker.users_),
        "labels": ranker.n_labels_,
        "choices": ranker.n_choices_,
        "label_reading": None if reading is None else _readable(asdict(reading)),
        "verb": ranker.verb.many(),
        "fingerprint": fingerprint,
        "preprocessing": {
            "standardize": standardize,
            "scale": None if scale is None or len(scale) > listed else scale.tolist(),
        },
    }


def _readable(value: object) -> Any:
    """Return a value as strict JSON, with NaN and infinity as texts; raise for other types."""
    if isinstance(value, Mapping):
        if set(value) == {"model"}:
            described = value["model"]
            return {"class": described["class"], **_readable(described["parameters"])}
        if len(value) == 1 and next(iter(value)) in {"tuple", "dict", "float"}:
            return _readable(next(iter(value.values())))
        return {str(key): _readable(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_readable(part) for part in value]
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if value is not None and not isinstance(value, bool | int | float | str):
        raise TypeError(f"scores may be numbers, texts, lists and mappings, but not {value!r}.")
    return value
