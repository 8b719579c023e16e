"""Precomputed features of pictures, and the lookup of pictures by name."""

import os
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from likeminds._util.array_types import FloatArray
from likeminds._util.checks import as_matrix, listing
from likeminds._util.text_format import counted
from likeminds.data.column_roles import split_keys
from likeminds.data.identifiers import as_distinct
from likeminds.data.sources.files import load_numpy
from likeminds.data.tables import feature_matrix

# In order of preference.
FEATURE_FILES = ("features.parquet", "features.csv", "features.npy", "features.mat")
NAMES_FILE = "features.txt"


class ItemFeatures(NamedTuple):
    """A row of features for each picture, and the names of rows and columns."""

    images: list[str]
    features: FloatArray
    names: tuple[str, ...]


def read_features(path: Path) -> ItemFeatures:
    """Read precomputed features, and the picture that each row describes.

    - ``.parquet``, ``.csv``: a column ``image``, and columns of numbers.
    - ``.npy``: a matrix; the pictures are listed in ``features.txt``, one per line.
    - ``.mat``: all matrices of numbers with one row per picture, side by side in the order of
      their names; the pictures are in a cell array ``images`` or ``im_names``, or in
      ``features.txt``.
    """
    if path.suffix in {".parquet", ".csv"}:
        return _from_table(path)
    listed = path.with_name(NAMES_FILE)
    images = listed.read_text(encoding="utf-8-sig").split("\n") if listed.is_file() else None
    images = None if images is None else [line.strip() for line in images if line.strip()]
    if path.suffix == ".npy":
        parts = {"x": load_numpy(path)}
    else:
        parts, inside = _load_mat(path)
        images = images or inside
    if images is None:
        raise FileNotFoundError(
            f"The names of the pictures of {path} are missing. Add {listed}: one name per line, in "
            "the order of the rows."
        )
    return _join(path, images, parts)


def _from_table(path: Path) -> ItemFeatures:
    try:
        ids, table = split_keys(path, "item")
        matrix = feature_matrix(table, table.columns)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    if not table.columns:
        raise ValueError(f"{path} has no features, only pictures. Add columns of numbers.")
    images = [str(value) for value in ids.tolist()]
    as_distinct(images, f"Pictures in {path}")
    return ItemFeatures(images, matrix, tuple(table.columns))


def _load_mat(path: Path) -> tuple[dict[str, Any], list[str] | None]:
    from scipy.io import loadmat  # noqa: PLC0415 - keeps the import of the data sets light
    from scipy.io.matlab import MatReadError  # noqa: PLC0415

    try:
        content = loadmat(path, chars_as_strings=True)
    except NotImplementedError as error:
        raise ValueError(
            f"{path} is of MATLAB's version 7.3. Save it again with "
            f"save('{path.name}', ..., '-v7')."
        ) from error
    except (MatReadError, ValueError, TypeError, OSError) as error:
        raise ValueError(f"{path} cannot be read as a .mat file: {error}.") from error
    parts = {
        name: value
        for name, value in sorted(content.items())
        if not name.startswith("__") and value.dtype.kind in "fiub" and value.ndim == 2
    }
    cells = content.get("images", content.get("im_names"))
    if cells is None or cells.dtype.kind not in "OU":
        return parts, None
    # Each cell of a cell array is an array of one string.
    return parts, [str(np.asarray(cell).ravel()[0]).strip() for cell in cells.ravel()]


def _join(path: Path, images: list[str], parts: dict[str, Any]) -> ItemFeatures:
    fitting = {k: v for k, v in parts.items() if v.ndim == 2 and len(v) == len(images)}
    if not fitting:
        shapes = listing([f"{name} {value.shape}" for name, value in parts.items()])
        raise ValueError(
            f"{path} has no matrix with one row for each of the "
            f"{counted(len(images), 'picture')} listed; it has {shapes or 'no matrix at all'}."
        )
    as_distinct(images, f"Pictures in {path}")
    names = tuple(f"{name}{k}" for name, part in fitting.items() for k in range(part.shape[1]))
    return ItemFeatures(images, as_matrix(np.hstack(list(fitting.values())), str(path)), names)


def find_names(pictures: Sequence[str], names: Sequence[str], where: Path | str) -> list[str]:
    """Return the full names of pictures; errors list missing or ambiguous ones.

    A name may be given in full (``boots/7.jpg``), without the folder, without the ending, or
    without both; a number without its leading zeros.
    """
    index: dict[str, list[str]] = defaultdict(list)
    for name in names:
        slashed = name.replace(os.sep, "/")
        forms = {name, slashed, _without_ending(slashed)}
        forms |= {form.rpartition("/")[2] for form in forms}
        forms |= {str(int(form)) for form in forms if form.isdecimal()}
        for form in forms:
            index[form].append(name)
    known, found = set(names), {}
    for picture in pictures:
        # A list of features may lack the endings only.
        exact = [name for name in (picture, _without_ending(picture)) if name in known][:1]
        found[picture] = exact or index.get(picture, [])
    missing = [picture for picture, matches in found.items() if not matches]
    if missing:
        raise FileNotFoundError(
            f"{where} lacks {counted(len(missing), 'picture')} that have labels: "
            f"{listing(missing)}. Add them, or drop their rows from the annotations."
        )
    for picture, matches in found.items():
        if len(matches) > 1:
            raise ValueError(
                f"The name {picture!r} in the annotations is ambiguous in {where}: it may mean "
                f"{listing(matches)}. Write the name in full."
            )
    return [matches[0] for matches in found.values()]


def _without_ending(name: str) -> str:
    return name[: -len(PurePosixPath(name).suffix) or None]
