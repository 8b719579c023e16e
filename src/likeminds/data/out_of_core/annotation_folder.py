"""Labels in a folder of Parquet or CSV files, read with bounded memory."""

import hashlib
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, Unpack

import numpy as np

from likeminds._util import checks
from likeminds._util.array_types import Float, IdArray, Index
from likeminds._util.per_user_arrays import order_by
from likeminds.data.annotations import Annotations, LabelSource
from likeminds.data.choice_sets import TieModel
from likeminds.data.column_roles import MARKS, as_frame, read_marks, read_values
from likeminds.data.joining import named_choice_sets
from likeminds.data.label_parsing import LabelReading, block_medians
from likeminds.data.out_of_core.external_sort import ExternalSort, find_grouped, working_folder
from likeminds.data.out_of_core.first_pass import FirstPass, survey
from likeminds.data.out_of_core.pair_parts import PairParts, are_pairs, texts_of_pairs
from likeminds.data.out_of_core.parquet_parts import ParquetParts, TablePart
from likeminds.data.tables import FrameOptions, feature_matrix, texts_among

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", re.IGNORECASE)
_LEAST = 64 << 20
# Pieces that are read, and ranges that are sorted, take several times their size in memory.
_PIECES, _RANGES = 32, 8
_FEWEST_ROWS, _MOST_ROWS = 1 << 12, 1 << 20


class FolderRanker(Protocol):
    """The methods of rankers that take a folder of labels."""

    def _fit_folder(self, folder: "AnnotationFolder") -> None: ...

    def score(self, X: Annotations) -> float:
        """Return the mean over users of the AUC."""
        ...

    def newcomer(self, X: Annotations) -> object:
        """Return the posteriors of new users."""
        ...


# Called as progress(what, done, total), in rows.
Progress = Callable[[str, int, int], None]


def as_bytes(size: str | float) -> int:
    """Return an amount of memory in bytes."""
    found = _SIZE.fullmatch(size) if isinstance(size, str) else None
    if isinstance(size, str) and found is None:
        raise ValueError(f"memory_limit must be a size like 4GB or 512MiB, not {size!r}.")
    if found is not None:
        size = float(found[1]) * (_UNITS | _BINARY)[found[2].lower()]
    if not float(size) >= _LEAST:
        raise ValueError(f"memory_limit must be at least {_LEAST >> 20} MiB, but is {size:,.0f} B.")
    return int(size)


class AnnotationFolder(LabelSource[FolderRanker, object]):
    """Labels in Parquet files that need not fit in memory, in any order.

    Rankers accept it in place of `Annotations`, and the fit is the same. Rankers that need only
    sums over rows read the files twice (ids and labels, then all columns) and write nothing. Others
    call `annotations`, which groups the rows by user on disk.

    The ids of users and items, the table of items and the parameters are always in memory.

    Parameters
    ----------
    path : str or path
        A folder of Parquet or CSV files with the same columns, or one file. Ids that are texts in
        one file and whole numbers in another become texts.
    memory_limit : str or number, default="2GB"
        The memory for reading and grouping: "4GB", "512MiB", or a number of bytes.
    scratch : str or path, optional
        A folder for the rows grouped by user, which are reused if neither files nor options have
        changed. By default, they are temporary.
    progress : callable, optional
        Called as ``progress(what, done, total)`` while rows are read.
    winner, loser, tie, strength : str, optional
        Columns of comparisons, which name items by their ids, as in `Annotations.from_preferences`.
        Files with columns of a winner and a loser, by their usual names, have one row each.
    tie_model : {"davidson", "half"}
        As in `Annotations.from_comparisons`.
    options
        Options of `Annotations.from_frame`: names of columns, ``features=`` (columns, or a table
        with one row per item), ``positive=``, ``threshold=``, ``grades=``, ``user_features=``.
        Columns of attributes, alternatives and availability raise ValueError.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pyarrow
    >>> from pyarrow import parquet
    >>> from likeminds import AnnotationFolder, ThreeLevelRanker, make_schools
    >>> annotations = make_schools(n_users=12, random_state=0).annotations
    >>> columns = {"user": annotations.users, "label": annotations.labels}
    >>> columns |= dict(zip(annotations.feature_names, annotations.X.T))
    >>> folder = Path(tempfile.mkdtemp())
    >>> parquet.write_table(pyarrow.table(columns), folder / "part-0.parquet")
    >>> ranker = ThreeLevelRanker().fit(AnnotationFolder(folder, memory_limit="1GB"))
    >>> len(ranker.users_)
    12
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        memory_limit: str | float = "2GB",
        scratch: str | PathLike[str] | None = None,
        progress: Progress | None = None,
        winner: str | None = None,
        loser: str | None = None,
        tie: str | None = None,
        strength: str | None = None,
        tie_model: TieModel = "davidson",
        **options: Unpack[FrameOptions],
    ) -> None:
        self.memory = as_bytes(memory_limit)
        names = {"user": options.get("user"), "winner": winner, "loser": loser}
        names |= {"tie": tie, "strength": strength}
        parts = ParquetParts.of(path, texts_of_pairs(names, texts_among(options)))
        is_paired = are_pairs(list(parts.types), names)
        self.parts = PairParts.of(parts, names, tie_model) if is_paired else parts
        self.scratch = None if scratch is None else Path(scratch)
        self.options = options
        self._progress = progress or (lambda *_: None)

    def __len__(self) -> int:
        return len(self.parts)

    def __repr__(self) -> str:
        return f"AnnotationFolder: {len(self):,} labels in {self.parts.folder}"

    @cached_property
    def survey(self) -> FirstPass:
        """The result of a first pass over ids and labels."""
        return survey(self.parts, self.options, self._rows_at_once, self._counter("reading ids"))

    @property
    def user_ids(self) -> IdArray:
        """The users, sorted."""
        return np.asarray(self.survey.shared["user_ids"])

    @property
    def counts(self) -> Index:
        """The number of labels of each user."""
        return self.survey.counts

    @property
    def reading(self) -> LabelReading | None:
        """The reading of labels: see `Annotations`."""
        return self.survey.answers.reading

    @property
    def grades(self) -> Float | None:
        """The distinct grades, ascending, if labels are grades."""
        grades = self.survey.answers.grades
        return None if grades is None else np.unique(grades).astype(np.float64)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features."""
        return tuple(self.survey.shared["feature_names"])

    @property
    def verb(self) -> str | None:
        """The verb for a positive label in explanations: see `Annotations`."""
        verb: str | None = self.survey.shared["verb"]
        return verb

    @property
    def can_stream(self) -> bool:
        """Whether a label can be read without the user's other labels."""
        return not self.survey.by_median and self.survey.choice_set_ids is None

    def fit_ranker(self, ranker: FolderRanker) -> None:
        """Fit a ranker to these labels: ``ranker.fit(folder)``."""
        ranker._fit_folder(self)

    def score(self, ranker: FolderRanker) -> float:
        """Return the mean over these users of the AUC of their rows: ``ranker.score(folder)``."""
        return ranker.score(self.annotations())

    def newcomers(self, ranker: FolderRanker) -> object:
        """Return the posteriors of these users as new users: ``ranker.newcomer(folder)``."""
        return ranker.newcomer(self.annotations())

    def batches(self) -> Iterator[Annotations]:
        """Read the labels piece by piece, as annotations with the same users and items."""
        advance = self._counter("reading labels")
        for piece in self.parts.pieces(self._columns, self._rows_at_once):
            with piece.blamed():
                users, columns = self._read(piece)
            yield self._annotations(columns, users)
            advance(len(piece.table))

    def annotations(self) -> Annotations:
        """Return all labels, grouped by user in files that are mapped into memory."""
        # Users with equally many labels are processed together, so their rows are adjacent.
        order = np.argsort(self.counts, kind="stable")
        if self.scratch is not None:
            target = self.scratch / f"grouped-{self._order['fingerprint']}"
            columns = find_grouped(target, self._order) or self._group(target, order)
        else:
            place = Path(tempfile.mkdtemp(prefix="likeminds-"))
            try:
                columns = self._group(place / "grouped", order)
            finally:
                # Open files remain readable until they are closed, even if they have been deleted.
                shutil.rmtree(place, ignore_errors=True)
        return self._annotations(columns, np.repeat(order, self.counts[order]))

    @property
    def _rows_at_once(self) -> int:
        row = 8 * (len(self.parts.head.column_names) + 4)
        return int(np.clip(self.memory // (_PIECES * row), _FEWEST_ROWS, _MOST_ROWS))

    @property
    def _columns(self) -> list[str]:
        found = self.survey
        names = [name for name in found.roles.values() if name is not None]
        return self.parts.sources([*names, *found.features])

    def _read(self, piece: TablePart) -> tuple[Index, dict[str, Any]]:
        """Return the users and the columns of a piece as numbers."""
        found = self.survey
        frame = as_frame(piece.table)
        columns: dict[str, Any] = {
            role: one.look_up(piece.table.column(found.roles[role]))
            for role, one in found.coded.items()
        }
        if found.roles["weight"] is not None:
            weights = read_values(frame, found.roles["weight"])
            columns["weight"] = checks.as_weights(weights, len(frame), all_zero=True)
        columns |= {mark: read_marks(frame, mark) for mark in MARKS if mark in found.roles}
        if found.features:
            columns["features"] = feature_matrix(frame, found.features)
        return columns.pop("user"), columns

    def _group(self, target: Path, order: Index) -> dict[str, Any]:
        """Write the rows to a folder: users in ``order``, the rows of each in their own order."""
        found, advance = self.survey, self._counter("grouping labels")
        _, first = self._read(next(self.parts.pieces(self._columns, 1)))
        kinds = {name: (column.dtype, column.shape[1:]) for name, column in first.items()}
        starts = np.zeros(len(order), dtype=np.intp)
        starts[order[1:]] = np.cumsum(found.counts[order])[:-1]
        columns: dict[str, Any] | None = None
        grouping = ExternalSort(kinds, len(self), self.memory // _RANGES)
        with working_folder(target, grouping.n_bytes) as folder:
            for piece in self.parts.pieces(self._columns, self._rows_at_once):
                with piece.blamed():
                    users, read = self._read(piece)
                grouping.spill(folder, _next_places(users, starts), read)
                advance(len(piece.table))
            ordered = self._counter("ordering labels")
            for n_rows in grouping.write_sorted(folder, self._order):
                ordered(n_rows)
            columns = find_grouped(folder, self._order)
        assert columns is not None
        return columns

    def _annotations(self, columns: dict[str, Any], users: Index) -> Annotations:
        """Return columns from `_read` as annotations."""
        found, every_row = self.survey, np.arange(len(users))
        answers, label, item = found.answers, columns["label"], columns.get("item", every_row)
        labels = answers.binary[label]
        if found.by_median:
            values = found.coded["label"].values.to_numpy(zero_copy_only=False)
            ratings = np.asarray(values, dtype=np.float64)[label]
            labels = ratings > block_medians(ratings, users)
        own: dict[str, Any] = {"item_ids": every_row, "features": columns.get("features")}
        own |= found.shared
        own |= named_choice_sets(users, columns.get("choice_set"), found.choice_set_ids)
        own |= {"user_codes": users, "item_codes": item, "weights": columns.get("weight")}
        own |= {mark: columns[mark] for mark in MARKS if mark in columns}
        own["feature_rows"] = item if found.shared["features_per"] == "item" else every_row
        grades = None if answers.grades is None else answers.grades[label]
        return Annotations._of(**own | {"labels": labels, "grades": grades})

    @cached_property
    def _order(self) -> dict[str, object]:
        """The distinct labels of the codes, and a hash of all inputs of the grouped rows."""
        found, files = self.survey, list(map(str, self.parts.files))
        about = (files, self.parts.lengths, self.parts.stamps, found.roles, found.features)
        digest = hashlib.blake2b(repr(about).encode(), digest_size=16)
        labels = found.coded["label"].values.to_pylist()
        for ids in (self.user_ids, found.shared.get("item_ids"), found.choice_set_ids):
            digest.update(repr(None if ids is None else ids.tolist()).encode())
        digest.update(repr(labels).encode())
        for column in found.coded.values():
            digest.update(column.codes.tobytes())
        return {"fingerprint": digest.hexdigest(), "labels": list(map(repr, labels))}

    def _counter(self, what: str) -> Callable[[int], None]:
        done = 0

        def advance(n_rows: int) -> None:
            nonlocal done
            done += n_rows
            self._progress(what, done, len(self))

        return advance


def _next_places(users: Index, free: Index) -> Index:
    """Return the next free place of each row's user, and take it (``free`` is changed)."""
    order, offsets = order_by(users, len(free))
    counts = np.diff(offsets)
    places = np.empty(len(users), dtype=np.intp)
    places[order] = np.arange(len(users)) + np.repeat(free - offsets[:-1], counts)
    free += counts
    return places
