"""Partitions as Arrow tables: their labels, and their rows by the shard of the user."""

import zlib
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from likeminds._util.array_types import Bool, Float, Index
from likeminds._util.checks import listing
from likeminds.cluster.item_broadcast import ItemBroadcast
from likeminds.data.annotations import Annotations
from likeminds.data.column_roles import MARKS, find_column
from likeminds.data.identifiers import IntegerCodes, coerce_ids, join_ids, lookup
from likeminds.data.label_parsing import LabelReading
from likeminds.data.out_of_core.first_pass import read_counted_labels, refuse_passes
from likeminds.data.out_of_core.parquet_parts import is_csv
from likeminds.data.sources import read_csv

# The name of a partition, its distinct labels, and their counts.
Counted = tuple[str, list[Hashable], list[int]]
# The columns of a row after `read_part`.
_ROLES = ("user", "item", "label", "weight", "choice_set", *MARKS)
_KINDS_IN_A_BYTE = 127
# Columns of ids, which repeat in many rows.
_CODED = ("user", "item")
# Optional columns of partitions.
_OPTIONAL = ("weight", "choice_set")
_TEXTS, _WHOLE = "texts", "whole numbers"


@dataclass(frozen=True)
class LabelTable:
    """The distinct labels of all partitions: which are positive, and their counts.

    Grades above the threshold that divides all labels most evenly are positive. ``grades`` are the
    grades that occur, ascending.
    """

    values: tuple[Hashable, ...] = ()
    binary: Bool | None = None
    reading: LabelReading | None = None
    counts: tuple[int, ...] = ()
    grades: Float | None = None

    def arguments(self, labels: NDArray[Any]) -> dict[str, Any]:
        """Return the arguments of `Annotations` for the labels of some rows."""
        if self.reading is not None and self.reading.grades is not None:
            return {"labels": labels, "reading": self.reading}
        if self.reading is not None and self.reading.threshold == "median":
            return {"labels": labels, "threshold": "median"}
        assert self.binary is not None
        positive: list[Any] = list(compress(self.values, self.binary))
        if labels.dtype.kind != "O":
            return {"labels": np.isin(labels, positive)}
        return {"labels": np.array([one in positive for one in labels.tolist()], dtype=np.bool_)}


def count_labels(table: pa.Table, name: str) -> Counted:
    """Return the distinct labels of a partition, and their counts."""
    found = table["label"].combine_chunks().value_counts()
    return name, found.field("values").to_pylist(), found.field("counts").to_pylist()


def read_label_table(
    counted: Sequence[Counted],
    *,
    column: str = "label",
    positive: Hashable | None = None,
    threshold: float | str | None = None,
    grades: bool | Sequence[Hashable] | None = None,
) -> LabelTable:
    """Read the labels of all partitions; errors name the partitions."""
    total: Counter[Hashable] = Counter()
    for _, values, counts in counted:
        total.update(dict(zip(values, counts, strict=True)))
    if not total:
        raise ValueError("There are no annotations: all partitions are empty.")
    kinds = {name: isinstance(values[0], str) for name, values, _ in counted if values}
    _refuse_other_kinds(
        "Labels", {name: _TEXTS if is_text else "numbers" for name, is_text in kinds.items()}
    )
    every = list(total)
    if positive is None and threshold is None and grades is None:
        refuse_passes(every, column)
    often = tuple(total.values())
    try:
        found = read_counted_labels(
            every, np.array(often), positive=positive, threshold=threshold, grades=grades
        )
    except ValueError as error:
        rare = min(every, key=lambda value: total[value])
        where = [name for name, values, _ in counted if rare in values]
        raise ValueError(f"{error} ({rare!r} is in {listing(where)}.)") from error
    given = None if found.grades is None else np.unique(found.grades).astype(np.float64)
    return LabelTable(tuple(every), found.binary, found.reading, often, given)


@dataclass(frozen=True)
class PartitionColumns:
    """The names of the columns of partitions."""

    user: str = "user"
    item: str = "item"
    label: str = "label"
    weight: str | None = None
    choice_set: str | None = None

    def found_in(self, names: Iterable[str], features: Sequence[str] = ()) -> dict[str, str]:
        """Return the column of each role; weights and choice sets by their usual names."""
        free = [name for name in names if name not in {*vars(self).values(), *features}]
        found = {role: name or find_column(role, free) for role, name in vars(self).items()}
        return {role: name for role, name in found.items() if name is not None}


def read_part(
    part: object,
    name: str,
    columns: PartitionColumns,
    catalogue: ItemBroadcast | None,
    features: Sequence[str],
) -> pa.Table:
    """Return a partition as a plain table: user, item, label, and weights, sets and marks, if any.

    Users and items are codes of four bytes. ``name`` names the partition in errors. With a
    catalogue, labels of other items raise ValueError. ``features`` are columns of features.
    """
    table = _as_table(part, name, columns)
    wanted = columns.found_in(table.column_names, features)
    wanted |= {mark: mark for mark in MARKS if mark in {*table.column_names} - {*features}}
    wanted |= {column: column for column in features}
    missing = [column for column in wanted.values() if column not in table.column_names]
    if missing:
        raise ValueError(
            f"{name} has no column {listing(missing)}, only {listing(table.column_names)}."
        )
    plain = {to: _plain(table[column]) for to, column in wanted.items()}
    for column, values in plain.items():
        if values.null_count:
            raise ValueError(f"{name} has {values.null_count} rows without a {wanted[column]}.")
    plain |= {role: plain[role].dictionary_encode() for role in _CODED}
    plain |= {mark: plain[mark].cast(pa.bool_()) for mark in MARKS if mark in plain}
    if catalogue is not None:
        plain["item"] = _as_in_catalogue(plain["item"], name, catalogue)
    return pa.table(plain)


def by_shard(table: pa.Table, n_shards: int) -> list[pa.Table]:
    """Return the rows of each shard, chosen by the checksum of the user's id."""
    table = _with_short_labels(table.select([one for one in _ROLES if one in table.column_names]))
    users = table["user"].combine_chunks()
    shards = shards_of(users.dictionary.to_pylist(), n_shards)
    mine = shards[users.indices.to_numpy(zero_copy_only=False)] if len(shards) else np.zeros(0)
    return [_only_their_ids(table.filter(pa.array(mine == n))) for n in range(n_shards)]


def shards_of(ids: Sequence[Hashable], n_shards: int) -> Index:
    """Return the shard of each user, by the checksum of the id."""
    return np.array([zlib.crc32(str(one).encode()) % n_shards for one in ids], dtype=np.intp)


def join_pieces(
    pieces: Sequence[pa.Table], catalogue: ItemBroadcast, labels: LabelTable
) -> Annotations | None:
    """Return the labels of a shard; None if it is empty."""
    some = [piece for piece in pieces if piece.num_rows]
    if not some:
        return None
    table = pa.concat_tables(
        [one.drop_columns(_CODED) for one in some], promote_options="permissive"
    )
    columns = {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}
    marks = {mark: table[mark].fill_null(False).to_numpy() for mark in MARKS if mark in columns}
    found = Annotations(
        users=_coded(some, "user"),
        items=_coded(some, "item"),
        **labels.arguments(columns["label"]),
        weights=columns.get("weight"),
        choice_sets=columns.get("choice_set"),
        **catalogue.arguments,
    )
    return found._with(**marks) if marks else found


def kinds_of_columns(table: pa.Table, name: str) -> tuple[str, dict[str, str]]:
    """Return the types of ids in a partition, and its optional columns; none if it is empty."""
    if not table.num_rows:
        return name, {}
    kinds = {role: _kind(table.schema.field(role).type.value_type) for role in _CODED}
    return name, kinds | {role: "" for role in _OPTIONAL if role in table.column_names}


def _kind(kind: pa.DataType) -> str:
    if pa.types.is_string(kind):
        return _TEXTS
    # Whole numbers of all widths are the same ids; decimals such as 1.0 are not.
    return _WHOLE if pa.types.is_integer(kind) else str(kind)


def mixed_ids(found: Sequence[tuple[str, dict[str, str]]]) -> list[str]:
    """Return the roles whose ids are texts in some partitions and whole numbers in others.

    Other differences between partitions, in types of user ids and in columns, raise ValueError.
    """
    mixed = []
    for role in _OPTIONAL:
        without = [name for name, kind in found if kind and role not in kind]
        having = [name for name, kind in found if role in kind]
        if without and having:
            raise ValueError(
                f"{without[0]} has no column {role}, but {having[0]} has one: write all "
                f"partitions with the same columns, or name the column with {role}=."
            )
    for role in _CODED:
        kinds = {name: kind[role] for name, kind in found if kind}
        if set(kinds.values()) == {_TEXTS, _WHOLE}:
            mixed.append(role)
        elif role == "user":
            _refuse_other_kinds("Ids of users", kinds)
    return mixed


def _refuse_other_kinds(what: str, kinds: dict[str, str]) -> None:
    """Raise ValueError if a partition's values are of another kind than the first's."""
    for name, kind in kinds.items():
        first = next(iter(kinds))
        if kind != kinds[first]:
            raise ValueError(
                f"{what} are {kinds[first]} in {first}, but {kind} in {name}: write them in the "
                "same way."
            )


def ids_as_texts(table: pa.Table, roles: Sequence[str]) -> pa.Table:
    """Return a partition whose ids of some roles are texts: 7 is "7"."""
    for role in roles:
        coded = table[role].combine_chunks()
        texts = pa.DictionaryArray.from_arrays(coded.indices, coded.dictionary.cast(pa.string()))
        table = _with_column(table, role, texts)
    return table


def _with_short_labels(table: pa.Table) -> pa.Table:
    """Return rows whose labels are codes of one byte, if at most 127 are distinct."""
    coded = table["label"].combine_chunks().dictionary_encode()
    if len(coded.dictionary) > _KINDS_IN_A_BYTE:
        return table
    short = pa.DictionaryArray.from_arrays(coded.indices.cast(pa.int8()), coded.dictionary)
    return _with_column(table, "label", short)


def _only_their_ids(table: pa.Table) -> pa.Table:
    """Return rows whose dictionaries have only the ids of these rows."""
    for role in _CODED:
        ids = table[role].combine_chunks().dictionary_decode()
        table = _with_column(table, role, ids.dictionary_encode())
    return table


def _with_column(table: pa.Table, role: str, column: pa.Array) -> pa.Table:
    return table.set_column(table.column_names.index(role), role, column)


def _coded(pieces: Sequence[pa.Table], role: str) -> IntegerCodes:
    """Return the ids of all rows of some pieces, which hold each id once."""
    chunks = [piece[role].combine_chunks() for piece in pieces]
    ids = [chunk.dictionary.to_numpy(zero_copy_only=False) for chunk in chunks]
    starts = np.cumsum([0, *map(len, ids)])
    codes = [
        chunk.indices.to_numpy(zero_copy_only=False) + int(start)
        for chunk, start in zip(chunks, starts, strict=False)
    ]
    return IntegerCodes(np.concatenate(codes), reduce(join_ids, ids))


def _as_in_catalogue(
    items: pa.DictionaryArray, name: str, catalogue: ItemBroadcast
) -> pa.DictionaryArray:
    """Return items as in the catalogue, which may have 7 as "7"; unknown ones raise ValueError."""
    values = items.dictionary.to_pylist()
    written = coerce_ids(values, catalogue.ids, "items")
    unknown = lookup(written, catalogue.ids, "items") < 0
    if unknown.any():
        some = listing(np.array(values, dtype=object)[unknown])
        raise ValueError(f"{name} has labels of items without features: {some}. Add features.")
    if written.tolist() == values:
        return items
    return pa.DictionaryArray.from_arrays(items.indices, pa.array(written.tolist()))


def _as_table(part: object, name: str, columns: PartitionColumns) -> pa.Table:
    if isinstance(part, pa.Table):
        return part
    if isinstance(part, str | Path) and is_csv(part):
        return read_csv(part, lambda names: _ids_among(names, columns))
    if isinstance(part, str | Path):
        # Workers have enough threads, and each thread of Arrow keeps its own memory.
        return pq.ParquetFile(part).read(use_threads=False)
    if isinstance(part, Annotations):
        codes, ids, choice_sets = part.choice_set_codes, part.choice_set_ids, None
        if codes is not None:  # sets without ids do not continue in other partitions
            choice_sets = [f"{name}, {one}" for one in codes] if ids is None else ids[codes]
        found: dict[str, Iterable[object] | None] = {
            "user": part.users,
            "item": part.items,
            "label": part.outcomes,
            "weight": part.weights,
            "choice_set": choice_sets,
            **{mark: getattr(part, mark) for mark in MARKS},
        }
        given = {role: values for role, values in found.items() if values is not None}
        return pa.table({role: pa.array(list(values)) for role, values in given.items()})
    return pa.Table.from_pandas(part, preserve_index=False)


def _ids_among(names: Sequence[str], columns: PartitionColumns) -> list[str]:
    found = columns.found_in(names)
    return [found[role] for role in (*_CODED, "choice_set") if found.get(role) in names]


def _plain(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return values instead of categories, which may differ between partitions."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_large_string(column.type):
        column = column.cast(pa.string())
    return column
