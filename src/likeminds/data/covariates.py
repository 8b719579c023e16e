"""Covariates of users: a table by user, and its encoding as numbers."""

import warnings
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeminds._util.array_types import Float, IdArray, Index
from likeminds._util.checks import listing, read_only, refuse_not_finite
from likeminds.data.column_roles import split_keys, with_index
from likeminds.data.identifiers import (
    as_distinct,
    as_objects,
    coerce_ids,
    is_missing,
    join_ids,
    lookup,
)

# A category of fewer users is not used.
_FEWEST = 3


@dataclass(frozen=True, eq=False)
class Covariates:
    """Covariates of users: one row per user.

    Attributes
    ----------
    ids : array of shape (n_users,)
        The ids of the users.
    names : tuple of str
        The names of the columns.
    columns : tuple of arrays of shape (n_users,)
        Numbers, NaN if missing; or categories as texts, None if missing.

    Examples
    --------
    >>> people = Covariates.read({"zoe": {"age": 30, "country": "CH"}, "ann": {"age": 41}})
    >>> people
    Covariates of 2 people: age (numbers), country (categories)
    >>> people.of(["ann", "bob"]).columns[0]
    array([41., nan])
    """

    ids: IdArray
    names: tuple[str, ...]
    columns: tuple[NDArray[Any], ...]

    @classmethod
    def read(cls, user_features: object, user: str | None = None) -> "Covariates":
        """Read a mapping from user to a mapping by name, a data frame, or a file.

        In frames and files, the users are in the column called ``user``, or else in one with a
        usual name. This may be the index of pandas. Columns of numbers (and true/false) are
        numbers, texts are categories; None, NaN and the empty text are missing. To read numeric
        codes as categories, write them as texts.
        """
        if isinstance(user_features, Covariates):
            return user_features
        if isinstance(user_features, Mapping):
            return cls._of_mapping(user_features)
        if not isinstance(user_features, str | PathLike):
            user_features = with_index(user_features)
        ids, table = split_keys(user_features, "user", user)
        return cls._check(ids, table.columns, [column.to_list() for column in table.iter_columns()])

    @classmethod
    def _of_mapping(cls, users: Mapping[Hashable, Any]) -> "Covariates":
        wrong = [repr(who) for who, known in users.items() if not isinstance(known, Mapping)]
        if wrong:
            raise ValueError(
                "user_features must map each user to a mapping by name, as in "
                f'{{"zoe": {{"age": 30}}}}; correct the values of {listing(wrong)}.'
            )
        names = list(dict.fromkeys(str(name) for known in users.values() for name in known))
        rows = [{str(name): value for name, value in known.items()} for known in users.values()]
        return cls._check(list(users), names, [[row.get(n) for row in rows] for n in names])

    @classmethod
    def _check(
        cls, ids: Iterable[Hashable], names: Sequence[str], columns: Sequence[Sequence[Any]]
    ) -> "Covariates":
        distinct = as_distinct(ids, "The users in the table of covariates").copy()
        if not names:
            raise ValueError("The table of covariates has ids only. Add columns of covariates.")
        typed = tuple(_typed(name, column) for name, column in zip(names, columns, strict=True))
        return cls(read_only(distinct), tuple(names), tuple(map(read_only, typed)))

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        known = (f"{name} ({_kind(c)})" for name, c in zip(self.names, self.columns, strict=True))
        return f"Covariates of {len(self):,} people: {', '.join(known)}"

    def of(self, users: Iterable[Hashable]) -> "Covariates":
        """Return the rows of some users; unknown users have missing values."""
        ids = list(users)
        places = lookup(ids, self.ids, "users") if ids else np.empty(0, dtype=np.intp)
        columns = tuple(np.append(c, _missing(1, c))[places] for c in self.columns)
        return Covariates(as_distinct(ids, "users"), self.names, columns)

    def written_as(self, known: IdArray) -> "Covariates":
        """Convert ids to the type of the known ones: see `coerce_ids`."""
        return replace(self, ids=coerce_ids(self.ids, known, "users"))

    def join(self, other: "Covariates") -> "Covariates":
        """Add users; raise ValueError if covariates of a user differ."""
        _refuse_other(other, dict(zip(self.names, map(_kind, self.columns), strict=True)))
        other = other.written_as(self.ids)
        places = lookup(other.ids, self.ids, "users")
        new = places < 0
        theirs = dict(zip(other.names, other.columns, strict=True))
        joined = []
        for name, ours in zip(self.names, self.columns, strict=True):
            more = theirs.get(name, ours[:0])
            if not len(more) or _kind(more) != _kind(ours):  # missing values only
                more = _missing(len(other), ours)
            given, before = more[~new], ours[places[~new]]
            differ = ~_gaps(given) & ~_gaps(before) & (given != before)
            if differ.any():
                raise ValueError(
                    f"user_features: {name!r} differs from the known values of "
                    f"{listing(other.ids[~new][differ])}. Give each user one row."
                )
            column = ours.copy()
            column[places[~new]] = np.where(_gaps(given), before, given)
            joined.append(read_only(np.concatenate([column, more[new]])))
        return Covariates(join_ids(self.ids, other.ids[new]), self.names, tuple(joined))


def _refuse_other(
    users: Covariates, kinds: Mapping[str, str], silent: Collection[str] = ()
) -> None:
    """Raise ValueError for unknown covariates, and for numbers in place of categories."""
    unknown = [name for name in users.names if name not in kinds]
    if unknown:
        raise ValueError(
            f"user_features: unknown covariate(s) {listing(unknown)}; "
            f"known are {listing(list(kinds))}."
        )
    for name, column in zip(users.names, users.columns, strict=True):
        if name not in silent and _kind(column) != kinds[name] and not _gaps(column).all():
            raise ValueError(
                f"user_features: {name!r} has {_kind(column)}, but had {kinds[name]} before."
            )


@dataclass(frozen=True)
class CovariateEncoder:
    """Encoder of covariates as standardised columns z, fitted to training users.

    Numbers are centred and given unit variance. Categories are one-hot, centred, and divided by one
    number, so their variances add up to one. Missing values, new categories and those of fewer than
    three users are zero, the mean. Constant covariates have no columns.
    """

    names: tuple[str, ...]
    categories: tuple[tuple[str, ...] | None, ...]
    centres: tuple[tuple[float, ...], ...]
    scales: tuple[float, ...]

    @classmethod
    def of(cls, users: Covariates) -> "CovariateEncoder":
        """Fit the encoder; warn about constant covariates."""
        categories, centres, scales = [], [], []
        for column in users.columns:
            kinds = None
            if column.dtype.kind == "O":
                times = Counter(value for value in column.tolist() if value is not None)
                kinds = tuple(sorted(kind for kind, n in times.items() if n >= _FEWEST))
            numbers = _numbers(column, kinds)
            given = numbers[~np.isnan(numbers).any(axis=1)]
            centre = given.mean(axis=0) if len(given) else np.zeros(numbers.shape[1])
            variance = given.var(axis=0) if len(given) else np.zeros(numbers.shape[1])
            scale = float(np.sqrt(variance.sum()))
            # The variance of equal numbers may be a rounding error.
            if scale <= 1e-9 * float(np.abs(centre).max(initial=1e-300)):
                kinds, centre, scale = (None if kinds is None else ()), np.zeros(0), 0.0
            categories.append(kinds)
            centres.append(tuple(centre.tolist()))
            scales.append(scale)
        encoder = cls(users.names, tuple(categories), tuple(centres), tuple(scales))
        if encoder.silent:
            warnings.warn(
                f"Covariates that are constant, or whose categories have fewer than {_FEWEST} "
                f"users, are not used: {listing(encoder.silent)}.",
                UserWarning,
                stacklevel=6,
            )
        return encoder

    @property
    def columns(self) -> tuple[tuple[str, str | None], ...]:
        """The covariate and the category (None for numbers) of each column of z."""
        found: list[tuple[str, str | None]] = []
        for name, kinds, centre in zip(self.names, self.categories, self.centres, strict=True):
            found += [
                (name, kind) for kind in (kinds if kinds is not None else [None] * len(centre))
            ]
        return tuple(found)

    @property
    def blocks(self) -> Index:
        """The position of the covariate that each column of z belongs to."""
        return np.array([self.names.index(name) for name, _ in self.columns], dtype=np.intp)

    def __call__(self, users: Covariates) -> Float:
        """Return z of each user, shape (n_users, n_columns)."""
        kinds = ("numbers" if known is None else "categories" for known in self.categories)
        _refuse_other(users, dict(zip(self.names, kinds, strict=True)), self.silent)
        columns = dict(zip(users.names, users.columns, strict=True))
        parts = [np.zeros((len(users), 0))]
        for place, name in enumerate(self.names):
            centre = np.array(self.centres[place])
            part = np.zeros((len(users), len(centre)))
            if name in columns and len(centre):
                numbers = _numbers(columns[name], self.categories[place])
                part = np.nan_to_num((numbers - centre) / self.scales[place], nan=0.0)
            parts.append(part)
        return np.concatenate(parts, axis=1)

    @property
    def silent(self) -> list[str]:
        """Covariates without columns, which may be of any kind."""
        return [name for name, scale in zip(self.names, self.scales, strict=True) if not scale]

    def of_users(self, covariates: Covariates | None, users: IdArray) -> Float:
        """Return z of users, by their ids; zeros for unknown users."""
        if covariates is None:
            return np.zeros((len(users), len(self.columns)))
        return self(covariates.of(users.tolist()))


def _numbers(column: NDArray[Any], kinds: tuple[str, ...] | None) -> Float:
    """Return a covariate as columns of numbers, NaN in rows without a value."""
    if kinds is None:
        numbers = np.full(len(column), np.nan) if column.dtype.kind == "O" else column
        return np.asarray(numbers, dtype=np.float64)[:, None]
    place = {kind: code for code, kind in enumerate(kinds)}
    codes = np.array([place.get(value, -1) for value in column.tolist()], dtype=np.intp)
    one_hot = np.full((len(column), len(kinds)), np.nan)
    one_hot[codes >= 0] = np.eye(len(kinds))[codes[codes >= 0]]
    return one_hot


def _typed(name: str, values: Sequence[Any]) -> NDArray[Any]:
    """Return a column as numbers with NaN, or as texts with None."""
    clean = [None if is_missing(value) or value == "" else value for value in values]
    known = [value for value in clean if value is not None]
    if all(isinstance(value, int | float | np.number | np.bool_) for value in known):
        numbers = np.array([np.nan if v is None else float(v) for v in clean], dtype=np.float64)
        refuse_not_finite(np.nan_to_num(numbers, nan=0.0, posinf=np.inf, neginf=-np.inf), name)
        return numbers
    mixed = [value for value in known if not isinstance(value, str)]
    if mixed and len({isinstance(value, str) for value in known}) > 1:
        raise ValueError(
            f"user_features: {name!r} has both numbers and texts, such as {mixed[0]!r}. "
            "Write all of them as texts, or all as numbers."
        )
    return as_objects([None if value is None else str(value) for value in clean])


def _kind(column: NDArray[Any]) -> str:
    return "categories" if column.dtype.kind == "O" else "numbers"


def _gaps(column: NDArray[Any]) -> NDArray[np.bool_]:
    if column.dtype.kind == "O":
        return np.array([value is None for value in column.tolist()], dtype=np.bool_)
    return np.asarray(np.isnan(column))


def _missing(n: int, like: NDArray[Any]) -> NDArray[Any]:
    """Return missing values of the kind of a column."""
    return np.full(n, None if like.dtype.kind == "O" else np.nan, dtype=like.dtype)
