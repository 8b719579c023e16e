"""Columns of a table of items that are no numbers: lists of words, categories, names."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from likeminds._util.lazy_imports import pa

SEPARATOR = "|"
# A category that fewer items share says nothing about others that share it.
_FEWEST = 3
# More would be names rather than kinds.
_MOST_KINDS = 50
# "(no genres listed)" is no genre.
_NOTHING = re.compile(r"\(no\b.*\)", re.IGNORECASE)


@dataclass(frozen=True)
class EncodedItems:
    """A table of items whose features are all numbers."""

    table: Any
    left_out: tuple[str, ...]


def encode_items(table: "pa.Table", key: str, known: Sequence[str] | None = None) -> EncodedItems:
    """Turn texts in a table of items into numbers, where they are lists or categories."""
    columns: dict[str, Any] = {}
    left_out = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name == key or not _is_text(column):
            columns[name] = column
            continue
        words = [set((text or "").split(SEPARATOR)) - {""} for text in column.to_pylist()]
        wanted = _known_words(name, known) or _words_worth(words)
        if not wanted:
            left_out.append(name)
        for word in wanted:
            columns[_called(name, word)] = pa.array([int(word in row) for row in words])
    return EncodedItems(pa.table(columns), tuple(left_out))


def _is_text(column: "pa.ChunkedArray") -> bool:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _called(column: str, word: str) -> str:
    return f"{column}: {word}"


def _known_words(column: str, known: Sequence[str] | None) -> list[str]:
    start = _called(column, "")
    return [name.removeprefix(start) for name in known or () if name.startswith(start)]


def _words_worth(rows: Sequence[set[str]]) -> list[str]:
    """Return the words of a column, sorted; none where they are names rather than kinds."""
    words = sorted(word for word in set().union(*rows) if not _NOTHING.fullmatch(word))
    is_list = any(len(row) > 1 for row in rows)
    shared = len(words) * _FEWEST <= len(rows)
    return words if is_list or (shared and 1 < len(words) <= _MOST_KINDS) else []
