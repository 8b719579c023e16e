"""Data sets that a user points to: tables, or NumPy archives."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from likeminds.data.annotations import Annotations

_SUFFIXES = (".csv", ".parquet", ".npz")
_COLUMNS = ("X", "user", "item", "label")


@dataclass(frozen=True)
class UserDataSet:
    """One attribute of one data set."""

    name: str
    annotations: Annotations
    attribute: str | None = None


def read_data(path: Path, most_users: int | None = None) -> Iterator[UserDataSet]:
    """Yield the attributes of a file, one after the other.

    Parameters
    ----------
    path : Path
        A table as `Annotations.from_csv` and `Annotations.from_parquet` read it, or an archive
        ``.npz`` with ``X`` (items x features), and one row per label in ``user``, ``item``,
        ``label`` (0/1) and, where there are any, ``group`` and ``attribute``.
    most_users : int, optional
        Of larger crowds, this many people take part, drawn at random.
    """
    if path.suffix not in _SUFFIXES:
        raise ValueError(f"{path}: data sets are files that end in {', '.join(_SUFFIXES)}.")
    if path.suffix == ".npz":
        whole = _from_archive(path)
    else:
        read = Annotations.from_csv if path.suffix == ".csv" else Annotations.from_parquet
        whole = read(path)
    parts = whole.by_attribute() if whole.n_attributes > 1 else {None: whole}
    for attribute, rows in parts.items():
        fewer = rows if most_users is None else fewer_people(rows, most_users)
        yield UserDataSet(path.stem, fewer, None if attribute is None else str(attribute))


def fewer_people(annotations: Annotations, most: int) -> Annotations:
    """Return the labels of at most so many people, drawn at random."""
    if annotations.n_users <= most:
        return annotations
    drawn = np.random.default_rng(0).permutation(annotations.user_ids)[:most]
    return annotations.of_users(drawn)


def _from_archive(path: Path) -> Annotations:
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    with np.load(path, allow_pickle=False) as archive:
        columns = {name: archive[name] for name in archive.files}
    missing = [name for name in _COLUMNS if name not in columns]
    if missing:
        raise ValueError(
            f"{path} has no {', '.join(missing)}; it needs {', '.join(_COLUMNS)}, and has "
            f"{', '.join(columns)}."
        )
    group = columns.get("group")
    return Annotations(
        users=columns["user"],
        items=columns["item"],
        labels=columns["label"],
        features=columns["X"].astype(np.float64),
        item_ids=np.arange(len(columns["X"])),
        # Where every label is a group of its own, splits had better balance the labels.
        choice_sets=None if group is None or len(np.unique(group)) == len(group) else group,
        attributes=columns.get("attribute"),
    )
