"""How labels in several partitions are read: by all of them together."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likeminds._util.array_types import Bool, Float
from likeminds._util.checks import listing
from likeminds.data.label_parsing import LabelReading
from likeminds.data.out_of_core.first_pass import read_counted_labels, refuse_passes

Counted = tuple[str, list[Hashable], list[int]]


@dataclass(frozen=True)
class LabelTable:
    """The distinct labels of all partitions: which are positive, and how often each is there.

    For grades, those above the one that divides all most evenly are positive; ``grades`` are those
    that occur, ascending.
    """

    values: tuple[Hashable, ...] = ()
    binary: Bool | None = None
    reading: LabelReading | None = None
    counts: tuple[int, ...] = ()
    grades: Float | None = None

    @property
    def are_grades(self) -> bool:
        """Whether labels are grades."""
        return self.reading is not None and self.reading.grades is not None

    @property
    def n_labels(self) -> int:
        """How many labels there are."""
        return sum(self.counts)

    @property
    def n_positive(self) -> int:
        """How many of them are positive."""
        assert self.binary is not None
        return int(np.array(self.counts) @ self.binary)

    def are_positive(self, grades: Float) -> Bool:
        """Say which grades count as a yes, where yes or no is asked for."""
        assert self.reading is not None
        assert isinstance(self.reading.threshold, float)
        return np.asarray(grades > self.reading.threshold)

    def arguments(self, labels: NDArray[Any]) -> dict[str, Any]:
        """Return what `Annotations` are to be told of the labels of some rows."""
        if self.are_grades:
            return {"labels": labels, "reading": self.reading}
        if self.reading is not None and self.reading.threshold == "median":
            return {"labels": labels, "threshold": "median"}
        assert self.binary is not None
        positive: list[Any] = [
            one for one, is_one in zip(self.values, self.binary, strict=True) if is_one
        ]
        if labels.dtype.kind != "O":
            return {"labels": np.isin(labels, positive)}
        return {"labels": np.array([one in positive for one in labels.tolist()], dtype=np.bool_)}


def count_labels(table: pa.Table, name: str) -> Counted:
    """Return the different labels of a partition, and how often each is there."""
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
    _refuse_other_kinds(counted)
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


def _refuse_other_kinds(counted: Sequence[Counted]) -> None:
    """Refuse texts in one partition and numbers in another."""
    kinds = {
        name: {isinstance(one, str) for one in values} for name, values, _ in counted if values
    }
    first = next(iter(kinds))
    others = [name for name, found in kinds.items() if found != kinds[first]]
    if others:
        words, numbers = (others[0], first) if True in kinds[others[0]] else (first, others[0])
        raise ValueError(
            f"Labels are texts in {words} and numbers in {numbers}: write them in the same way."
        )
