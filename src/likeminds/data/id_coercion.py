"""Coercion of ids to the type of known ones: 7 in one table is "7" in another."""

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from likeminds._util.array_types import IdArray
from likeminds._util.checks import listing
from likeminds._util.lazy_rows import LazyIds
from likeminds.data.identifiers import as_id_array, as_objects, positions

_NUMBER = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?\s*")
_WHOLE = re.compile(r"-?[1-9]\d*|0")


def coerce_ids(ids: Iterable[Hashable], known: IdArray, name: str) -> IdArray:
    """Write distinct ids as the known ones are written.

    If some are numbers and others texts, a text is the number that is written so, and new
    ids get the type of the known ones. An id that may be a known one, but is written in another
    way (007), raises ValueError.
    """
    array = as_id_array(ids, name)
    kinds = _kinds(array), _kinds(known)
    if not array.size or not len(known) or (kinds[0] == kinds[1] and len(kinds[0]) == 1):
        return array
    exact = positions(known)
    values = array.tolist()
    if all(value in exact for value in values):
        return array
    # Ids of both kinds are meant as they are.
    candidates = _Candidates(known, kinds[1] if len(kinds[0]) == 1 else set(), values)
    found = [value if value in exact else candidates.meant_by(value, name) for value in values]
    times = Counter(found)
    twice = [value for value, meant in zip(values, found, strict=True) if times[meant] > 1]
    if twice:
        raise ValueError(
            f"{name}: {_written(twice)} here are one and the same among those that are known. "
            "Write ids as they were written before."
        )
    numbers = np.array(found) if _types(found) <= {int} else None
    if numbers is not None and numbers.dtype.kind == "i":
        return numbers
    return as_objects(found)


class _Candidates:
    """Known ids that may be meant, by how they are written and by the number they are."""

    def __init__(self, known: IdArray, kinds: set[str], asked: Sequence[Any]) -> None:
        self.kinds = kinds
        self.whole = kinds == {"number"} and _types_of(known) <= {int}
        self.by_form: dict[str, list[Any]] = defaultdict(list)
        self.by_number: dict[Any, list[Any]] = defaultdict(list)
        forms = {form for value in asked for form in _forms(value)}
        numbers = {_number(value) for value in asked} - {None}
        for value in known if isinstance(known, LazyIds) else known.tolist():
            for form in _forms(value):
                if form in forms:
                    self.by_form[form].append(value)
            number = _number(value) if numbers else None
            if number in numbers:
                self.by_number[number].append(value)

    def meant_by(self, value: Hashable, name: str) -> Any:
        number = _number(value)
        alike = [] if number is None else self.by_number.get(number, [])
        for form in _forms(value):
            hits = self.by_form.get(form, [])
            if len(hits) == 1 and len(alike) <= 1:
                return hits[0]
            alike = alike or hits
        if alike:
            raise ValueError(
                f"{name}: {value!r} here may be {_written(alike)}, which is known, or a "
                "new one: the same number, written in another way. Write ids as they were written "
                "before."
            )
        if self.kinds == {"text"} and _kind(value) == "number":
            return _forms(value)[-1]
        if self.whole and isinstance(value, str) and _WHOLE.fullmatch(value):
            return int(value)
        return value


def _kinds(ids: IdArray) -> set[str]:
    if ids.dtype.kind in "iuf":
        return {"number"}
    return {_KINDS.get(kind, "other") for kind in _types_of(ids)}


_KINDS = {str: "text", int: "number", float: "number", Decimal: "number"}


def _kind(value: Hashable) -> str:
    return _KINDS.get(type(value), "other")


def _types(values: Sequence[Any]) -> set[type]:
    return set(map(type, values))


def _types_of(ids: IdArray) -> set[type]:
    return ids.types() if isinstance(ids, LazyIds) else _types(ids.tolist())


def _forms(value: Hashable) -> list[str]:
    """Return how an id is written, the usual way last."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, float) and value.is_integer():
        return [repr(value), str(int(value))]
    return [str(value)] if _kind(value) == "number" else []


def _number(value: Hashable) -> Any:
    """Return the number that an id is, or is written as; None where it is none."""
    if isinstance(value, str):
        return Decimal(value.strip()) if _NUMBER.fullmatch(value) else None
    return value if _kind(value) == "number" else None


def _written(values: Sequence[Any]) -> str:
    return listing([repr(value) for value in values])
