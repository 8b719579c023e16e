"""Files with a row per comparison, read as a row per winner and loser."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from likeminds._util.lazy_imports import pa
from likeminds.data.choice_sets import TieModel, pair_rows
from likeminds.data.column_roles import (
    as_arrow,
    as_frame,
    find_columns,
    id_texts,
    read_values,
    usual_columns,
)
from likeminds.data.identifiers import join_ids
from likeminds.data.out_of_core.parquet_parts import ParquetParts, Stamp, TablePart
from likeminds.data.sources import Texts

PAIR_ROLES = ("user", "winner", "loser", "tie", "strength")
_SIDES = ("winner", "loser")


def are_pairs(columns: Sequence[str], names: Mapping[str, str | None]) -> bool:
    """Return whether a table has comparisons: columns of the preferred and of the other item."""
    return all(names.get(side) is not None or usual_columns(side, columns) for side in _SIDES)


def texts_of_pairs(names: Mapping[str, str | None], otherwise: Texts) -> Texts:
    """Return which columns hold ids, if a table has comparisons, and ``otherwise`` if not."""
    ids = id_texts({role: names.get(role) for role in PAIR_ROLES})
    return lambda columns: (ids if are_pairs(columns, names) else otherwise)(columns)


@dataclass(frozen=True)
class PairParts:
    """Comparisons in files, with the methods of `ParquetParts` for rows of single items.

    These have the columns item, label, choice_set and that of the users; also weight and tied, if
    there are ties.
    """

    parts: ParquetParts
    columns: dict[str, str]  # in the files, by role
    n_ties: int
    tie_model: TieModel

    @classmethod
    def of(
        cls, parts: ParquetParts, names: Mapping[str, str | None], tie_model: TieModel
    ) -> "PairParts":
        """Find the columns of comparisons, and count ties."""
        named = {role: names.get(role) for role in PAIR_ROLES}
        found = find_columns(as_frame(parts.head), named, ())
        columns = {role: name for role, name in found.items() if name is not None}
        n_ties, tie = 0, columns.get("tie")
        if tie is not None:
            for piece in parts.pieces([tie], 1 << 20):
                n_ties += int(np.count_nonzero(read_values(as_frame(piece.table), tie)))
        return cls(parts, columns, n_ties, tie_model)

    @property
    def folder(self) -> Path:
        """The folder, or the only file."""
        return self.parts.folder

    @property
    def files(self) -> tuple[Path, ...]:
        """The files."""
        return self.parts.files

    @property
    def lengths(self) -> tuple[int, ...]:
        """The number of comparisons in each file."""
        return self.parts.lengths

    @property
    def stamps(self) -> tuple[Stamp, ...]:
        """The versions of the files."""
        return self.parts.stamps

    def __len__(self) -> int:
        return 2 * (len(self.parts) + self.n_ties)

    @cached_property
    def head(self) -> "pa.Table":
        """The first rows."""
        return next(self.pieces((), 1 << 10)).table

    def pieces(self, columns: Sequence[str], n_rows: int) -> Iterator[TablePart]:  # noqa: ARG002
        """Read the rows of some comparisons at a time; all columns, as each needs several."""
        first = 0
        for piece in self.parts.pieces(list(self.columns.values()), max(1, n_rows // 2)):
            with piece.blamed():
                table, n_sets = self._rows(piece.table, first)
            yield replace(piece, table=table)
            first += n_sets

    def sources(self, names: Iterable[str]) -> list[str]:
        """Return the columns themselves."""
        return list(names)

    def _rows(self, table: "pa.Table", first: int) -> "tuple[pa.Table, int]":
        """Return rows of single items, their sets counted from ``first``; and how many sets."""
        frame = as_frame(table)
        values: dict[str, Any] = {
            role: read_values(frame, name, as_ids=role in {"user", *_SIDES})
            for role, name in self.columns.items()
        }
        won, lost = values["winner"], values["loser"]
        given = {"users": values["user"], "strength": values.get("strength")}
        given |= {"ties": values.get("tie"), "tie_model": self.tie_model}
        rows, sides = pair_rows(given, won, lost)
        made = {
            self.columns["user"]: as_arrow(rows["users"].tolist()),
            "item": as_arrow(join_ids(won, lost)[sides].tolist()),
            "label": pa.array(rows["labels"]),
            "choice_set": pa.array(rows["choice_sets"] + first),
        }
        if self.n_ties or "strength" in self.columns:
            weights = rows["weights"]
            made["weight"] = pa.array(np.ones(len(sides)) if weights is None else weights)
        if self.n_ties and self.tie_model == "davidson":
            tied = rows["tied"]
            made["tied"] = pa.array(np.zeros(len(sides), np.bool_) if tied is None else tied)
        return pa.table(made), len(sides) // 2
