"""Loaders of the paper's data sets, Shoes and SUN: labels, and pictures or features."""

import os
import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from likeminds._util.checks import listing
from likeminds._util.text_format import counted
from likeminds.data.annotations import Annotations
from likeminds.data.column_roles import as_frame, id_texts
from likeminds.data.item_features import (
    FEATURE_FILES,
    find_names,
    read_features,
)
from likeminds.data.sources import read_table
from likeminds.data.splits import split_within_users

TABLES = ("annotations.parquet", "annotations.csv")
IMAGES = "images"
# The paper leaves out users with fewer labels of either kind.
ENOUGH_LABELS = 8
_ROLES = ("attribute", "person", "image", "label")
_CACHE = ".features"
_DOCS = "The documentation's page on features lists the files."


@dataclass(frozen=True)
class FolderKind:
    """The files of one data set, and the features the paper computes."""

    title: str
    attributes: Mapping[str, Sequence[str]]  # the names, and their synonyms
    network: str | None = None  # an ONNX file; without it, features are GIST and colours


@dataclass(frozen=True, eq=False, repr=False)
class ImageCrowd:
    """Labels of pictures about several attributes, and the share of variance to keep.

    Attributes
    ----------
    annotations : Annotations
        All labels of users with enough labels of both kinds, with all features.
    reduce : float or None
        The share of the variance that principal components keep for each attribute.
    """

    annotations: Annotations
    reduce: float | None

    @property
    def attributes(self) -> list[str]:
        """The names of the attributes."""
        names = self.annotations.attribute_ids
        return [] if names is None else [str(name) for name in names]

    def of_attribute(self, attribute: str) -> Annotations:
        """Return the labels of one attribute, with all features."""
        return self.annotations.of_attribute(attribute)

    def reduced(self, attribute: str) -> Annotations:
        """Return the labels of one attribute, with components of all its labelled pictures.

        As in the paper, components are computed before the split, so they use the features of
        pictures that are held out later. `split` avoids this.
        """
        rows = self.of_attribute(attribute)
        return self._reduce(rows, rows)[0]

    def split(
        self,
        attribute: str,
        test_size: float = 0.3,
        random_state: int | Generator | None = None,
    ) -> tuple[Annotations, Annotations]:
        """Hold out a share of each user's labels about one attribute.

        The components are computed from the training pictures only.

        Parameters
        ----------
        attribute : str
            The name of the attribute.
        test_size, random_state
            As in `likeminds.split_within_users`.

        Returns
        -------
        train, test : Annotations
        """
        train, test = split_within_users(self.of_attribute(attribute), test_size, random_state)
        reduced, held_out = self._reduce(train, train, test)
        return reduced, held_out

    def _reduce(self, fitted: Annotations, *parts: Annotations) -> list[Annotations]:
        if self.reduce is None:
            return list(parts)
        from likeminds.features.reduction import Reduce  # noqa: PLC0415 - imports scikit-learn

        reduction = Reduce(self.reduce).fit(fitted)
        return [reduction.transform(part) for part in parts]

    def __repr__(self) -> str:
        share = "" if self.reduce is None else f"; {self.reduce:.0%} of the variance to be kept"
        return f"ImageCrowd about {', '.join(self.attributes)}{share}\n  {self.annotations!r}"


def load_folder(  # noqa: PLR0917 - the arguments of `load_shoes`
    folder: str | os.PathLike[str],
    kind: FolderKind,
    attributes: Iterable[str] | None,
    min_labels: int,
    reduce: float | None,
    positive: Hashable | None,
    **options: Any,
) -> ImageCrowd:
    """Read the folder of a data set; ``options`` are those of its extractors."""
    if reduce is not None and not 0 < reduce <= 1:
        raise ValueError(f"reduce must lie above 0 and up to 1, or be None, but is {reduce}.")
    root = Path(folder)
    table, precomputed = _find_files(root, kind)
    columns = _read_labels(table, kind, attributes)
    pictures = list(dict.fromkeys(columns["items"]))
    if precomputed is not None:
        items = read_features(precomputed)
        full_names = find_names(pictures, items.images, precomputed)
    else:
        from likeminds.features import inception_v3  # noqa: PLC0415 - imports scikit-learn
        from likeminds.features.reduction import compute_features, gist_and_colour  # noqa: PLC0415

        options = _with_cache(root, options)
        network = kind.network and inception_v3(root / kind.network, **options)
        extractors = [network] if network else gist_and_colour(options)
        items = compute_features(root / IMAGES, pictures, extractors)
        full_names = items.images
    # A picture may have several names: items are the full names.
    full = dict(zip(pictures, full_names, strict=True))
    rows = {name: row for row, name in enumerate(items.images)}
    distinct = list(dict.fromkeys(full_names))
    annotations = Annotations(
        users=columns["users"],
        items=[full[name] for name in columns["items"]],
        labels=columns["labels"],
        features=items.features[[rows[name] for name in distinct]],
        attributes=columns["attributes"],
        item_ids=distinct,
        feature_names=items.names,
        positive=positive,
    )
    return ImageCrowd(_with_enough_labels(annotations, min_labels), reduce)


def _find_files(root: Path, kind: FolderKind) -> tuple[Path, Path | None]:
    """Return the paths of the table and of any features; raise FileNotFoundError without them."""
    if not root.is_dir():
        raise FileNotFoundError(f"There is no folder {root} with {kind.title}. {_DOCS}")
    table = next((root / name for name in TABLES if (root / name).is_file()), None)
    features = next((root / name for name in FEATURE_FILES if (root / name).is_file()), None)
    missing_files = []
    if table is None:
        missing_files.append(f"a table of labels ({' or '.join(TABLES)})")
    if features is None:
        from likeminds.features.images import list_images  # noqa: PLC0415 - only with pictures

        try:
            list_images(root / IMAGES)
        except FileNotFoundError:
            missing_files.append(f"pictures in {IMAGES}/ (or {' or '.join(FEATURE_FILES)})")
        if kind.network is not None and not (root / kind.network).is_file():
            missing_files.append(kind.network)
    if table is None or missing_files:
        raise FileNotFoundError(f"{root} lacks {'; and '.join(missing_files)}. {_DOCS}")
    return table, features


def _read_labels(path: Path, kind: FolderKind, attributes: Iterable[str] | None) -> dict[str, Any]:
    """Return the columns of the rows of the chosen attributes, with ids as texts."""
    texts = id_texts({"user": None, "item": "image", "attribute": None})
    frame = as_frame(read_table(path, texts))
    by_name = {str(column).lower(): column for column in frame.columns}
    missing = [role for role in _ROLES if role not in by_name]
    if missing:
        raise ValueError(
            f"{path} has no column {listing(missing)}; it needs {', '.join(_ROLES)}, and has "
            f"{listing(frame.columns)}."
        )
    if not len(frame):
        raise ValueError(f"{path} has no rows. Add labels.")
    columns = {}
    for role in _ROLES:
        values = frame.get_column(by_name[role])
        empty = np.flatnonzero(values.is_null().to_numpy())
        if empty.size:
            raise ValueError(
                f"{path} has no {role} in row(s) {listing(empty)} (counted from 0). "
                "Fill in or drop these rows."
            )
        columns[role] = values.to_numpy()
    names = np.array(_as_attributes(columns["attribute"].tolist(), kind, path), dtype=object)
    chosen = list(kind.attributes)
    if attributes is not None:
        listed = [attributes] if isinstance(attributes, str) else list(attributes)
        chosen = _as_attributes(listed, kind, "attributes=")
    absent = [name for name in chosen if name not in set(names)]
    if absent:
        raise ValueError(
            f"{path} has no label about {listing(absent)}. Add labels, or leave it out of "
            "attributes=."
        )
    keep = np.isin(names, chosen)
    users, items = (columns[role][keep].astype(str).tolist() for role in ("person", "image"))
    return {
        "attributes": names[keep],
        "users": users,
        "items": items,
        "labels": columns["label"][keep],
    }


def _as_attributes(names: Sequence[object], kind: FolderKind, where: Path | str) -> list[str]:
    every = kind.attributes.items()
    calls = {_plain(call): name for name, synonyms in every for call in (name, *synonyms)}
    unknown = sorted({str(name) for name in names if _plain(name) not in calls})
    if unknown:
        raise ValueError(
            f"{where}: {kind.title} has no attribute {listing(unknown)}; the attributes are "
            f"{', '.join(kind.attributes)}."
        )
    return [calls[_plain(name)] for name in names]


def _plain(name: object) -> str:
    return " ".join(str(name).lower().replace("_", " ").replace("-", " ").split())


def _with_cache(root: Path, options: dict[str, Any]) -> dict[str, Any]:
    """Cache features in the data set's folder, if it is writable and ``cache`` is True."""
    cache = options.get("cache")
    if cache is True and not os.access(root, os.W_OK):
        warnings.warn(
            f"Features are not cached, as {root} is not writable. Pass cache= with a folder.",
            UserWarning,
            stacklevel=5,
        )
        cache = None
    return options | {"cache": root / _CACHE if cache is True else cache or None}


def _with_enough_labels(annotations: Annotations, min_labels: int) -> Annotations:
    """Leave out users with too few labels of either kind, for each attribute."""
    for attribute, rows in annotations.by_attribute().items():
        most = int(rows.label_counts().min(axis=1).max())
        if most < min_labels:
            raise ValueError(
                f"No user gave {min_labels} positive and {min_labels} negative labels about "
                f"{attribute} ({counted(rows.n_users, 'user')}, at most {most} of the rarer "
                f"kind). Lower min_labels, or leave {attribute} out of attributes=."
            )
    return annotations.with_enough_labels(min_labels)


# The shares of the variance that the paper keeps.
SHOES_VARIANCE, SUN_VARIANCE = 0.99, 0.9


_SHOES = FolderKind(
    title="Shoes",
    attributes={
        "brown": ("BR",),
        "comfortable": ("CM",),
        "fashionable": ("FA",),
        "formal": ("FM",),
        "open": ("OP",),
        "ornate": ("ON",),
        "pointy": ("PT",),
    },
)
_SUN = FolderKind(
    title="SUN",
    attributes={
        "cluttered": ("CL", "cluttered space"),
        "modern": ("MO",),
        "opening area": ("OP", "open area"),
        "rustic": ("RU",),
        "soothe": ("SO", "soothing"),
    },
    network="inception_v3.onnx",
)


def load_shoes(
    folder: str | os.PathLike[str],
    *,
    attributes: str | Iterable[str] | None = None,
    min_labels: int = ENOUGH_LABELS,
    reduce: float | None = SHOES_VARIANCE,
    positive: Hashable | None = None,
    cache: bool | str | os.PathLike[str] = True,
    progress: bool = False,
) -> ImageCrowd:
    """Read the Shoes data from a folder, and prepare them as the paper does.

    The data cannot be bundled with the package. The folder has

    - ``annotations.csv`` (or ``.parquet``) with columns ``attribute``, ``person``, ``image``
      and ``label`` (1 and 0, or 1 and -1);
    - ``images/`` with the pictures; or ``features.npy``, ``.mat``, ``.parquet`` or ``.csv``
      with precomputed features (see the page on features).

    The features of pictures are GIST (512 values) and a histogram of colours (Lab, 10 bins per
    channel). Users with fewer than 8 labels of either kind for an attribute are left out of it.
    Principal components keep 99 % of the variance of each attribute, and are computed from training
    pictures only: see `ImageCrowd.split`.

    Parameters
    ----------
    folder : path
        The folder of the files.
    attributes : str or list of str, optional
        Some of brown, comfortable, fashionable, formal, open, ornate and pointy; or the paper's
        abbreviations BR, CM, FA, FM, OP, ON, PT. By default, all.
    min_labels : int
        The least number of labels of each kind per user.
    reduce : float or None
        The share of the variance to keep; None keeps the features as they are.
    positive : hashable, optional
        The positive one of two labels, if they are not 1 and 0 or 1 and -1.
    cache : bool or path
        The folder in which computed features are stored; True is ``.features`` in ``folder``, False
        stores nothing.
    progress : bool
        Show a progress bar.

    Returns
    -------
    ImageCrowd

    Raises
    ------
    FileNotFoundError
        If a file is missing; the message names it.
    """
    options = {"cache": cache, "progress": progress}
    return load_folder(folder, _SHOES, attributes, min_labels, reduce, positive, **options)


def load_sun(
    folder: str | os.PathLike[str],
    *,
    attributes: str | Iterable[str] | None = None,
    min_labels: int = ENOUGH_LABELS,
    reduce: float | None = SUN_VARIANCE,
    positive: Hashable | None = None,
    cache: bool | str | os.PathLike[str] = True,
    progress: bool = False,
) -> ImageCrowd:
    """Read the SUN data with personal labels from a folder, and prepare them as the paper does.

    The folder is laid out as for `likeminds.load_shoes`: ``annotations.csv``, and ``images/`` or
    precomputed features. Features of pictures are the 2,048 values of Inception-V3's second-last
    layer, from the network ``inception_v3.onnx`` in the folder. The page on features shows how to
    export it; running it needs the extra ``onnx``. For each attribute, users with fewer than 8
    labels of either kind are left out, and principal components keep 90 % of the variance: see
    `ImageCrowd.split`.

    Parameters
    ----------
    folder : path
        The folder of the files.
    attributes : str or list of str, optional
        Some of cluttered, modern, opening area, rustic and soothe; or the paper's abbreviations
        CL, MO, OP, RU, SO. By default, all.
    min_labels, reduce, positive, cache, progress
        As in `likeminds.load_shoes`.

    Returns
    -------
    ImageCrowd

    Raises
    ------
    FileNotFoundError
        If a file is missing; the message names it.
    """
    options = {"cache": cache, "progress": progress}
    return load_folder(folder, _SUN, attributes, min_labels, reduce, positive, **options)
