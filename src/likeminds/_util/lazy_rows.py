"""Arrays whose rows are read at first use: users of a model in many files."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import DTypeLike, NDArray

from likeminds._util.array_types import Index

# Rows that an iteration reads at a time.
_ROWS_AT_ONCE = 1 << 14


class LazyRows(NDArrayOperatorsMixin, ABC):
    """An array whose rows are in files: an index reads some rows, NumPy's functions read all."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @abstractmethod
    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Return the rows from ``start`` to ``stop``."""

    @abstractmethod
    def pick(self, places: Index) -> NDArray[Any]:
        """Return the rows at the given positions, none of which is negative."""

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, tuple):
            first, rest = index[:1], index[1:]
            if first and isinstance(first[0], slice):
                return self[first[0]][(slice(None), *rest)]
            return (
                np.asarray(self)[index] if not first or np.ndim(first[0]) else self[first[0]][rest]
            )
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1:
                return self.read(start, max(start, stop))
            return self.pick(np.arange(start, stop, step))
        places = np.asarray(index)
        if places.dtype == np.bool_:
            places = np.flatnonzero(places)
        elif not places.size:
            places = places.astype(np.intp)
        if places.dtype.kind not in "iu":
            raise IndexError(f"Rows are selected by their positions, not by {index!r}.")
        if places.size and not (-len(self) <= places.min() and places.max() < len(self)):
            raise IndexError(f"Position {index!r} is out of range: there are {len(self)} rows.")
        flat = np.where(places < 0, places + len(self), places).astype(np.intp).ravel()
        found = self.pick(flat)
        return found[0] if not places.ndim else found.reshape(places.shape + self.shape[1:])

    def __iter__(self) -> Iterator[Any]:
        for start in range(0, len(self), _ROWS_AT_ONCE):
            yield from self.read(start, min(start + _ROWS_AT_ONCE, len(self)))

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        found = self.read(0, len(self))
        return found if dtype is None else found.astype(dtype, copy=False)

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: object, **named: object
    ) -> Any:
        if "out" in named:
            return NotImplemented
        plain = [np.asarray(one) if isinstance(one, LazyRows) else one for one in inputs]
        return getattr(ufunc, method)(*plain, **named)

    def __reduce__(self) -> Any:
        # Other processes may not have the files.
        return np.asarray, (np.asarray(self),)

    def tolist(self) -> list[Any]:
        """Return all rows as Python objects."""
        found: list[Any] = np.asarray(self).tolist()
        return found


class LazyIds(LazyRows):
    """Distinct ids in files, and their positions."""

    def __iter__(self) -> Iterator[Any]:
        for start in range(0, len(self), _ROWS_AT_ONCE):
            yield from self.read(start, min(start + _ROWS_AT_ONCE, len(self))).tolist()

    @property
    @abstractmethod
    def places(self) -> Mapping[Hashable, int]:
        """The position of each id; a lookup does not read the other ids."""

    @abstractmethod
    def sample(self, n: int) -> Index:
        """Return n positions that depend only on the ids: a reproducible random sample."""

    @abstractmethod
    def types(self) -> set[type]:
        """Return the Python types of the ids."""
