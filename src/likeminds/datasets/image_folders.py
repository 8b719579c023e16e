"""Labels of pictures, from a folder with a table of labels and pictures or features."""

import os
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator

from likeminds._util.array_types import IdArray
from likeminds._util.checks import listing
from likeminds._util.text_format import counted
from likeminds.data.annotations import Annotations
from likeminds.data.column_roles import as_frame, id_texts
from likeminds.data.item_features import (
    FEATURE_FILES,
    ItemFeatures,
    find_names,
    read_features,
)
from likeminds.data.sources import read_table
from likeminds.data.splits import split_within_users

if TYPE_CHECKING:
    from likeminds.features.extractor import ImageExtractor

TABLES = ("annotations.parquet", "annotations.csv")
IMAGES = "images"
# The paper removes users with fewer labels of either kind.
ENOUGH_LABELS = 8
_ROLES = ("attribute", "person", "image", "label")
_CACHE = ".features"
_DOCS = "The documentation's page on features lists the files."

MakeExtractors = Callable[[Path, dict[str, Any]], "list[ImageExtractor]"]


@dataclass(frozen=True)
class FolderKind:
    """The files of one data set, and the features the paper computes."""

    title: str
    attributes: Mapping[str, Sequence[str]]  # the names, and their synonyms
    extractors: MakeExtractors = field(repr=False)
    needs: tuple[str, ...] = ()  # files besides the pictures, if features are to be computed


@dataclass(frozen=True, eq=False, repr=False)
class ImageCrowd:
    """Labels of pictures about several attributes, and the share of variance to keep.

    Attributes
    ----------
    annotations : Annotations
        All labels of users with enough labels of both kinds, with all features.
    reduce : float or None
        The share of the variance that the principal components of an attribute keep.
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
        """Return one attribute with the components of all its labelled pictures.

        As in the paper, components are found before the split, so they use the features of
        pictures that are held out later. `split` avoids that.
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

        The components are those of the training pictures only.

        Parameters
        ----------
        attribute : str
            Which one.
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
    options: dict[str, Any],
) -> ImageCrowd:
    """Read the folder of a data set; ``options`` are those of its extractors."""
    if reduce is not None and not 0 < reduce <= 1:
        raise ValueError(f"reduce must lie above 0 and up to 1, or be None, but is {reduce}.")
    root = Path(folder)
    table, precomputed = _find_files(root, kind)
    columns = _read_labels(table, kind, attributes)
    pictures = list(dict.fromkeys(columns["items"]))
    if precomputed is not None:
        items = _take(read_features(precomputed), pictures, precomputed)
    else:
        from likeminds.features.picture_folder import compute_features  # noqa: PLC0415 - as above

        extractors = kind.extractors(root, _with_cache(root, options))
        items = compute_features(root / IMAGES, pictures, extractors)
    # A picture may be called by more than one name: items are the full names.
    full = dict(zip(pictures, items.images, strict=True))
    distinct = {name: place for place, name in enumerate(items.images)}
    annotations = Annotations(
        users=columns["users"],
        items=[full[name] for name in columns["items"]],
        labels=columns["labels"],
        features=items.features[list(distinct.values())],
        attributes=columns["attributes"],
        item_ids=list(distinct),
        feature_names=items.names,
        positive=positive,
    )
    return ImageCrowd(_with_enough_labels(annotations, min_labels), reduce)


def _find_files(root: Path, kind: FolderKind) -> tuple[Path, Path | None]:
    """Return the table and the features, if any; raise if files are missing."""
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
        missing_files += [name for name in kind.needs if not (root / name).is_file()]
    if table is None or missing_files:
        raise FileNotFoundError(f"{root} lacks {'; and '.join(missing_files)}. {_DOCS}")
    return table, features


def _read_labels(path: Path, kind: FolderKind, attributes: Iterable[str] | None) -> dict[str, Any]:
    """Return the columns of the rows about the chosen attributes, ids as texts."""
    columns = _complete_columns(path)
    names = np.array(_as_attributes(columns["attribute"].tolist(), kind, path), dtype=object)
    chosen = list(kind.attributes)
    if attributes is not None:
        listed = [attributes] if isinstance(attributes, str) else list(attributes)
        chosen = _as_attributes(listed, kind, "attributes=")
    absent = [name for name in chosen if name not in set(names)]
    if absent:
        raise ValueError(
            f"{path} has no label about {listing(absent)}. Add them, or pass attributes= with "
            "those to load."
        )
    keep = np.isin(names, chosen)
    users, items = (columns[role][keep].astype(str).tolist() for role in ("person", "image"))
    labels = columns["label"][keep]
    return {"attributes": names[keep], "users": users, "items": items, "labels": labels}


def _complete_columns(path: Path) -> dict[str, IdArray]:
    names = {"user": None, "item": "image", "attribute": None}
    frame = as_frame(read_table(path, id_texts(names)))
    by_name = {str(column).lower(): column for column in frame.columns}
    missing = [role for role in _ROLES if role not in by_name]
    if missing:
        raise ValueError(
            f"{path} has no column {listing(missing)}; it needs {', '.join(_ROLES)}, and has "
            f"{listing(frame.columns)}."
        )
    if not len(frame):
        raise ValueError(f"{path} has no rows: there are no labels.")
    for role in _ROLES:
        empty = np.flatnonzero(frame.get_column(by_name[role]).is_null().to_numpy())
        if empty.size:
            raise ValueError(
                f"{path} has no {role} in row(s) {listing(empty)} (counted from 0). "
                "Fill in or drop these rows."
            )
    return {role: frame.get_column(by_name[role]).to_numpy() for role in _ROLES}


def _as_attributes(names: Sequence[object], kind: FolderKind, where: Path | str) -> list[str]:
    calls = {
        _plain(call): name
        for name, synonyms in kind.attributes.items()
        for call in (name, *synonyms)
    }
    unknown = sorted({str(name) for name in names if _plain(name) not in calls})
    if unknown:
        raise ValueError(
            f"{where}: {kind.title} has no attribute {listing(unknown)}; there are "
            f"{', '.join(kind.attributes)}."
        )
    return [calls[_plain(name)] for name in names]


def _plain(name: object) -> str:
    return " ".join(str(name).lower().replace("_", " ").replace("-", " ").split())


def _take(items: ItemFeatures, pictures: list[str], path: Path) -> ItemFeatures:
    names = find_names(pictures, items.images, path)
    places = {name: place for place, name in enumerate(items.images)}
    return ItemFeatures(names, items.features[[places[name] for name in names]], items.names)


def _with_cache(root: Path, options: dict[str, Any]) -> dict[str, Any]:
    """Cache features in the data set's folder, if it is writable and ``cache`` is True."""
    cache = options.get("cache")
    if cache is True and not os.access(root, os.W_OK):
        warnings.warn(
            f"{root} cannot be written to: its features are not kept. Pass cache= with a folder.",
            UserWarning,
            stacklevel=5,
        )
        cache = None
    return options | {"cache": root / _CACHE if cache is True else cache or None}


def _with_enough_labels(annotations: Annotations, min_labels: int) -> Annotations:
    """Remove users with too few labels of either kind, attribute by attribute."""
    for attribute, rows in annotations.by_attribute().items():
        most = int(rows.label_counts().min(axis=1).max())
        if most < min_labels:
            raise ValueError(
                f"No user gave {min_labels} positive and {min_labels} negative labels about "
                f"{attribute} ({counted(rows.n_users, 'person', 'people')}, at best "
                f"{most} of the rarer kind). Lower min_labels, or leave it out of attributes=."
            )
    return annotations.with_enough_labels(min_labels)
