"""The catalogue of items, which is sent to every worker."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from typing import Any, TypeGuard

import narwhals as nw
import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from likeminds._util.array_types import Float, FloatArray, IdArray, Index
from likeminds._util.checks import as_names
from likeminds.data.column_roles import as_frame
from likeminds.data.identifiers import as_id_array, encode
from likeminds.data.tables import feature_matrix, read_items
from likeminds.losses.statistics import near

# Features of items: an array, a mapping, a data frame, a file, or columns of the partitions.
FeatureSource = ArrayLike | Mapping[Hashable, ArrayLike] | PathLike[str] | Sequence[str] | object


@dataclass(frozen=True)
class ItemBroadcast:
    """The items and their features, which are sent to every worker.

    With ``in_rows``, features stay in the rows of labels, and one average item represents them all.
    """

    ids: IdArray
    features: FloatArray
    names: tuple[str, ...]
    in_rows: bool = False

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of `Annotations` about the items."""
        names = {"item_ids": self.ids, "feature_names": list(self.names)}
        return {"features": self.features, "features_per": "item"} | names

    @property
    def origin(self) -> Float:
        """A point near all items: see `Statistics`."""
        return near(self.features)


def is_in_rows(features: FeatureSource | None) -> TypeGuard[Sequence[str] | None]:
    """Return whether items come from the rows of labels: by their ids, or some columns."""
    if features is None:
        return True
    if not isinstance(features, list | tuple) or not features:
        return False
    return all(isinstance(one, str) for one in features)


def read_catalogue(
    features: FeatureSource | None,
    item: str,
    item_ids: Iterable[Hashable] | None,
    names: Iterable[str] | None,
) -> ItemBroadcast:
    """Return the items of an array, a mapping, a data frame or a file."""
    if isinstance(features, Mapping):
        item_ids, features = list(features), [features[one] for one in features]
    elif isinstance(features, str | PathLike) or nw.dependencies.is_into_dataframe(features):
        found = read_items(features, item, None)
        features, item_ids, names = found["features"], found["item_ids"], found["feature_names"]
    table = np.asarray(features)
    if table.dtype.kind != "f":
        table = table.astype(np.float64)
    if table.ndim != 2:
        raise ValueError(f"features must be items x features, but have {table.ndim} dimension(s).")
    ids: IdArray = np.arange(len(table)) if item_ids is None else as_id_array(item_ids, "items")
    if len(ids) != len(table):
        raise ValueError(f"There are {len(ids)} items, but {len(table)} rows of features.")
    return ItemBroadcast(
        ids, table, as_names(None if names is None else list(names), table.shape[1])
    )


@contextmanager
def in_partition(name: str) -> Iterator[None]:
    """Add the partition's name to errors."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def features_in(table: pa.Table, columns: Sequence[str]) -> tuple[Index, FloatArray]:
    """Return the items of a partition with their features, and the item of each row.

    If the rows of an item differ, each row is an item of its own.
    """
    codes, first, rows, other = _by_item(table, columns)
    return (np.arange(len(rows)), rows) if len(other) else (codes, rows[first])


def items_in(table: pa.Table, name: str, columns: Sequence[str]) -> tuple[str, Any, FloatArray]:
    """Return the items of a partition, and their features by its columns."""
    with in_partition(name):
        codes, first, rows, other = _by_item(table, columns)
    ids = table["item"].combine_chunks().dictionary.to_pylist()
    if len(other):
        raise ValueError(
            f"{name} has different features in the rows of item {ids[codes[other[0]]]!r}: give "
            "each item one row of features, or pass statistics=True."
        )
    return name, ids, rows[first]


def _by_item(table: pa.Table, columns: Sequence[str]) -> tuple[Index, Index, FloatArray, Index]:
    """Return each row's item, each item's first row, features, and rows that differ from it."""
    codes = table["item"].combine_chunks().indices.to_numpy(zero_copy_only=False)
    _, first = np.unique(codes, return_index=True)
    rows = feature_matrix(as_frame(table.select(list(columns))), list(columns))
    other = np.flatnonzero((rows != rows[first][codes]).any(axis=1)) if len(rows) else codes
    return codes, first, rows, other


def near_in(table: pa.Table, name: str, columns: Sequence[str]) -> tuple[int, Float]:
    """Return the number of rows of a partition, and a point near their features."""
    if not table.num_rows:
        return 0, np.zeros(len(columns))
    with in_partition(name):
        return table.num_rows, near(features_in(table, columns)[1])


def catalogue_in_rows(found: Sequence[tuple[int, Float]], names: Sequence[str]) -> ItemBroadcast:
    """Return one item that represents the items of all partitions: see `near_in`."""
    counts, points = zip(*found, strict=True)
    middle = np.average(np.stack(points), axis=0, weights=counts)
    return ItemBroadcast(np.arange(1), middle[np.newaxis], as_names(list(names), len(names)), True)


def join_catalogue(
    found: Sequence[tuple[str, list[Hashable], FloatArray]], names: Sequence[str]
) -> ItemBroadcast:
    """Join the items of partitions; an item with different features raises ValueError."""
    codes, ids = encode([one for _, some, _ in found for one in some], "items")
    rows = np.concatenate([features for _, _, features in found])
    parts = np.repeat(np.arange(len(found)), [len(some) for _, some, _ in found])
    _, first = np.unique(codes, return_index=True)
    other = np.flatnonzero((rows != rows[first][codes]).any(axis=1))
    if len(other):
        item = codes[other[0]]
        where = [found[parts[first[item]]][0], found[parts[other[0]]][0]]
        named = ids[item : item + 1].tolist()[0]
        raise ValueError(f"Item {named!r} has different features in {' and '.join(where)}.")
    return ItemBroadcast(ids, rows[first], as_names(list(names), len(names)))
