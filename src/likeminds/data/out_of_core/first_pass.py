"""A first pass over labels on disk, which counts users, items and labels."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from likeminds._util.array_types import IdArray, Index
from likeminds._util.checks import as_names, listing
from likeminds._util.lazy_imports import compute, pa
from likeminds._util.text_format import read_verb
from likeminds.data.column_roles import Frame, as_frame, default_verb, read_values
from likeminds.data.covariates import Covariates
from likeminds.data.grades import ParsedLabels, ReadingOptions, divide_evenly, read_answers
from likeminds.data.identifiers import encode
from likeminds.data.joining import link_features
from likeminds.data.label_parsing import passes_among
from likeminds.data.out_of_core.pair_parts import PairParts
from likeminds.data.out_of_core.parquet_parts import ParquetParts, TablePart
from likeminds.data.tables import find_roles, ordered_categories, read_items

# More distinct labels than this are measurements, not labels.
_MOST_LABELS = 1 << 20
# Lists of counted values are merged when they have grown by this many.
_WAITING = 1 << 22
# Columns that are not read from disk.
_NOT_READ = ("attribute", "alternative", "availability")
_READ = ("user", "item", "label", "choice_set")

# Called with the number of rows that were read.
Progress = Callable[[int], None]


@dataclass(frozen=True)
class DistinctValues:
    """The distinct values of a column, how many rows have each, and its code."""

    values: "pa.Array"
    counts: Index
    codes: Index

    def look_up(self, column: "pa.ChunkedArray") -> Index:
        """Return the code of each row of a column."""
        places = compute.index_in(_plain(column), value_set=self.values)
        if places.null_count:
            raise ValueError("The files were changed while they were read. Start again.")
        codes: Index = self.codes[places.to_numpy()]
        return codes


@dataclass(frozen=True)
class FirstPass:
    """The result of a first pass."""

    roles: dict[str, str | None]  # the column of each role
    features: list[str]  # columns of features; none if a table of items has them
    coded: dict[str, DistinctValues]  # by role; codes of labels are positions in ``answers``
    answers: ParsedLabels  # the reading of each label
    by_median: bool  # whether labels above a user's median are positive
    choice_set_ids: IdArray | None
    shared: dict[str, Any]  # the columns of annotations that are the same in all pieces

    @property
    def counts(self) -> Index:
        """The number of labels of each user."""
        users = self.coded["user"]
        return np.bincount(users.codes, weights=users.counts).astype(np.intp)


def survey(
    parts: ParquetParts | PairParts, options: Mapping[str, Any], n_rows: int, progress: Progress
) -> FirstPass:
    """Read the columns of users, items and labels once, ``n_rows`` at a time.

    ``options`` are those of `Annotations.from_frame`.
    """
    names = {role: options.get(role) for role in (*_READ, "weight", *_NOT_READ)}
    head = as_frame(parts.head)
    roles, features = find_roles(head, names, options.get("features"))
    _refuse_not_read(roles, options)
    columns = {role: name for role in _READ if (name := roles[role]) is not None}
    counters = {role: _ValueCounter(name) for role, name in columns.items()}
    for piece in parts.pieces(parts.sources(columns.values()), n_rows):
        for counter in counters.values():
            counter.add(piece)
        progress(len(piece.table))
    ids, coded = {}, {}
    for role, counter in counters.items():
        ids[role], coded[role] = counter.ids()
    labels = coded["label"]
    if len(labels.codes) > _MOST_LABELS:
        raise ValueError(
            f"Column {columns['label']!r} has {len(labels.codes):,} distinct values, too many for "
            "labels or grades. Round them first, or replace them by 1 above a threshold, else 0."
        )
    answers, by_median = _read_labels(ids["label"], labels.counts, columns["label"], options, head)
    # With few distinct labels, each takes a byte on disk.
    kind = np.min_scalar_type(len(labels.codes))
    coded["label"] = replace(labels, codes=labels.codes.astype(kind))
    codes, user_ids = encode(ids["user"], "users")
    coded["user"] = replace(coded["user"], codes=codes)
    shared: dict[str, Any] = {"features_per": "row", "has_items": "item" in ids}
    if "item" in ids:
        codes, items = encode(ids["item"], "items")
        shared["item_ids"] = items
        if not features:
            table: dict[str, Any] = {"features": None, "item_ids": None, "feature_names": None}
            if features is None:
                table = read_items(options["features"], columns["item"], options.get("item_column"))
            linked = link_features(
                table["features"],
                (codes, items),
                len(codes),
                item_ids=table["item_ids"],
                names=table["feature_names"],
                features_per="item",
            )
            codes, shared = linked.item_codes, linked._asdict()
        coded["item"] = replace(coded["item"], codes=codes)
    covariates, verb = options.get("user_features"), read_verb(options.get("verb"))
    if covariates is not None:
        shared["user_features"] = Covariates.read(covariates, options.get("user")).written_as(
            user_ids
        )
    shared |= {"user_ids": user_ids, "reading": answers.reading}
    shared["verb"] = verb or default_verb(options.get("positive"), columns["label"])
    shared.setdefault("feature_names", as_names(features, len(features or ())))
    return FirstPass(
        roles, features or [], coded, answers, by_median, ids.get("choice_set"), shared
    )


def _read_labels(
    values: IdArray, counts: Index, name: str, options: Mapping[str, Any], head: Frame
) -> tuple[ParsedLabels, bool]:
    """Return the reading of each distinct label, and whether users' medians are the thresholds."""
    if options.get("nominal"):
        raise ValueError(
            "Labels on disk are read as yes or no, or as grades, not as classes (nominal=). Read "
            "them into memory with Annotations.from_parquet or from_csv."
        )
    how = ReadingOptions(
        positive=options.get("positive"),
        threshold=options.get("threshold"),
        grades=options.get("grades"),
        reading=options.get("reading"),
    )
    if "median" in {how["threshold"], how["reading"] and how["reading"].threshold}:
        return read_counted_labels(values, counts, threshold="median"), True
    if all(value is None for value in how.values()):
        refuse_passes(values.tolist(), name)
        how["grades"] = ordered_categories(head, name)
    return read_counted_labels(values, counts, **how), False


def refuse_passes(values: Sequence[Hashable], name: str) -> None:
    """Raise ValueError for votes with passes: streamed rows cannot be left out."""
    passes = passes_among(values, votes=default_verb(name) == "agree with")
    if passes:
        raise ValueError(
            f"Column {name!r} has labels that are neither yes nor no: {listing(passes)}. Remove "
            "them from the files, or pass grades= with all labels from worst to best."
        )


def read_counted_labels(
    values: Sequence[Hashable] | IdArray, counts: Index, **options: Unpack[ReadingOptions]
) -> ParsedLabels:
    """Read distinct labels, given the frequency of each: see `read_answers`.

    Grades above the one that divides all labels most evenly are positive. With the median as
    threshold, labels are not divided yet: medians need all labels of a user.
    """
    within = [np.arange(len(values))] if options.get("threshold") == "median" else ()
    answers = read_answers(values, within=within, **options)
    if answers.grades is None or options.get("reading") is not None or answers.reading is None:
        return answers
    cut = divide_evenly(answers.grades, counts)
    reading = replace(answers.reading, threshold=cut)
    return ParsedLabels(answers.grades > cut, reading, answers.grades)


def _refuse_not_read(roles: Mapping[str, str | None], options: Mapping[str, Any]) -> None:
    present = [str(roles[role]) for role in _NOT_READ if roles[role] is not None]
    if present:
        raise ValueError(
            f"With memory_limit=, labels cannot have attributes or alternatives, but there is a "
            f"column {listing(present)}. Remove it from the files, or read them without "
            "memory_limit=."
        )
    if options.get("duplicates", "keep") != "keep":
        raise ValueError(
            "With memory_limit=, repeated labels count repeatedly: leave out duplicates=."
        )


class _ValueCounter:
    """The distinct values of a column, counted piece by piece."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.waiting: list[pa.Table] = []
        self.n_waiting = 0

    def add(self, piece: TablePart) -> None:
        """Count the values of a piece; raise ValueError for missing values."""
        column = _plain(piece.table.column(self.name))
        with piece.blamed():
            _refuse_gaps(column, self.name)
        counts = column.value_counts()
        table = pa.table({"value": counts.field("values"), "count": counts.field("counts")})
        self.waiting.append(table)
        self.n_waiting += len(table)
        if self.n_waiting > _WAITING + 2 * len(self.waiting[0]):
            self._merge()

    def _merge(self) -> None:
        total = pa.concat_tables(self.waiting).group_by("value").aggregate([("count", "sum")])
        total = total.select(["value", "count_sum"]).rename_columns(["value", "count"])
        self.waiting, self.n_waiting = [total.combine_chunks()], len(total)

    def ids(self) -> tuple[IdArray, DistinctValues]:
        """Return the distinct values, as ids and as they are in the files."""
        self._merge()
        # Threads count the values, in an order that depends on their timing.
        table = self.waiting[0].sort_by("value")
        values = table["value"].combine_chunks()
        ids = read_values(as_frame(pa.table({self.name: values})), self.name, as_ids=True)
        return ids, DistinctValues(values, table["count"].to_numpy(), np.arange(len(values)))


def _plain(column: "pa.ChunkedArray") -> "pa.ChunkedArray":
    """Return a column of categories as a column of values."""
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    return column


def _refuse_gaps(column: "pa.ChunkedArray", name: str) -> None:
    gaps = compute.is_null(column, nan_is_null=True)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        gaps = compute.or_(gaps, compute.fill_null(compute.equal(column, ""), True))
    empty = np.flatnonzero(gaps.to_numpy())
    if empty.size:
        raise ValueError(
            f"Column {name!r} has no value in row(s) {listing(empty)}. Fill in or drop these rows."
        )
