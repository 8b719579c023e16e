"""Choice experiments in long tables: alternatives, availability, constants, positions."""

import logging
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from likeminds._util.array_types import Bool, Float, FloatArray, IdArray, Index
from likeminds._util.checks import listing
from likeminds.data.column_roles import POSITIONS, Frame, read_values
from likeminds.data.identifiers import as_id_array, encode, encode_pairs
from likeminds.data.label_parsing import read_labels

logger = logging.getLogger(__name__)

# With more alternatives than this, no constants are added.
MOST_ALTERNATIVES = 50
# A smaller share of a column's variance within choice sets is a rounding error.
_IDLE = 1e-9
# With more columns, dependence is not checked: a check takes their square in memory.
_MOST_COLUMNS = 500


def available_rows(table: Frame, column: str, label: str, positive: Hashable | None) -> Frame:
    """Drop alternatives that were not available; raise ValueError if one of them was chosen."""
    available = as_available(read_values(table, column), column)
    if available.all():
        return table
    try:
        chosen, _ = read_labels(read_values(table, label), positive=positive)
    except ValueError:  # grades, or labels that are refused with their own error
        chosen = np.zeros(len(available), dtype=np.bool_)
    refuse_chosen(np.flatnonzero(chosen & ~available))
    logger.info(
        "%s: %s rows of alternatives that were not available are left out.",
        column,
        f"{int((~available).sum()):,}",
    )
    return table.filter(available.tolist())


def as_available(values: ArrayLike, column: str) -> Bool:
    """Return a column of zeros and ones (or true and false) as booleans."""
    array = np.asarray(values)
    if array.dtype.kind not in "biuf" or not np.isin(array, [0, 1]).all():
        invalid = [value for value in np.unique(array).tolist() if value not in (0, 1)]
        raise ValueError(
            f"Availability {column!r} must be 1 (available) or 0, but has {listing(invalid)}."
        )
    return array.astype(np.bool_)


def refuse_chosen(rows: Index) -> None:
    """Raise ValueError for rows whose chosen alternative was not available."""
    if rows.size:
        raise ValueError(
            f"In row(s) {listing(rows)}, counted from 0, the chosen alternative was not available. "
            "Drop or correct them."
        )


def add_constants(
    arguments: dict[str, Any],
    column: str,
    alternatives: IdArray,
    *,
    base: Hashable | None,
    listed: bool,
) -> dict[str, Any]:
    """Add a dummy of each alternative but the base to the arguments of Annotations.

    Dummies that follow from other features within choice sets are not added. Features that are
    the same for all alternatives of every choice set are left out, unless they are ``listed``.
    """
    codes, distinct = encode(alternatives, column)
    names, features = list(arguments["feature_names"]), arguments["features"]
    sets = encode_pairs(*(encode(arguments[k], k)[0] for k in ("users", "choice_sets")))
    if not listed and features.shape[1]:
        differs = np.asarray(within_sets(features, sets).any(axis=0))
        same = [name for name, varies in zip(names, differs, strict=True) if not varies]
        if same:
            logger.info(
                "%s: the same for all alternatives of every choice set, so not a feature.",
                listing(same),
            )
        names = [name for name in names if name not in same]
        features = features[:, differs]
    if len(distinct) > MOST_ALTERNATIVES:
        logger.info("%s: %s alternatives, so no constants.", column, f"{len(distinct):,}")
        dummies, dummy_names = np.zeros((len(codes), 0)), []
    else:
        names_of_all = [str(one) for one in distinct.tolist()]
        if base is not None and str(base) not in names_of_all:
            raise ValueError(
                f"base={base!r} is not an alternative: column {column!r} has {listing(distinct)}."
            )
        first = 0 if base is None else names_of_all.index(str(base))
        codes_with_dummy = [k for k in range(len(distinct)) if k != first]
        dummies = (codes[:, None] == codes_with_dummy).astype(features.dtype)
        dummy_names = [f"{column}: {one}" for one in distinct[codes_with_dummy].tolist()]
        moved = within_sets(np.hstack([features, dummies]), sets)
        n_free = len(sets) - len(np.unique(sets))  # degrees of freedom besides the means of sets
        new = independent(moved, features.shape[1], n_free)
        dummies, dummy_names = dummies[:, new], [dummy_names[k] for k in np.flatnonzero(new)]
        added = (
            f"alternative-specific constants relative to {distinct[first]}: {listing(dummy_names)}"
        )
        none = "no constants, as other features imply them"
        logger.info("%s: %s.", column, added if dummy_names else none)
    return arguments | {
        "features": np.hstack([features, dummies]),
        "feature_names": [*names, *dummy_names],
    }


def constants_among(column: str, alternatives: IdArray, names: Sequence[str]) -> dict[str, Float]:
    """Return the constants among names of features, each as a column of zeros and ones."""
    start = f"{column}: "
    texts = np.array([str(one) for one in alternatives.tolist()])
    return {
        name: (texts == name.removeprefix(start)).astype(np.float64)
        for name in names
        if name.startswith(start)
    }


def within_sets(features: FloatArray, sets: Index) -> Float:
    """Return features less their means in each choice set; zero if that is rounding."""
    sizes = np.bincount(sets)
    out = np.empty(features.shape, dtype=np.float64)
    for k, column in enumerate(features.T):
        mean = np.bincount(sets, column) / sizes
        moved = column - mean[sets]
        least = 1e-12 * float(np.abs(column).max(initial=0.0))
        out[:, k] = np.where(np.abs(moved) <= least, 0.0, moved)
    return out


def independent(columns: Float, n_before: int, n_free: int) -> Bool:
    """Return which columns after the first ``n_before`` are not combinations of those before."""
    if min(n_free, _MOST_COLUMNS) < columns.shape[1]:  # few rows make columns dependent
        return np.ones(columns.shape[1] - n_before, dtype=np.bool_)
    gram = _scaled(columns.T @ columns)
    basis, is_new = list(range(n_before)), []
    for k in range(n_before, len(gram)):
        cross = gram[basis, k]
        inverse = np.linalg.pinv(gram[np.ix_(basis, basis)], rcond=_IDLE, hermitian=True)
        is_new.append(bool(gram[k, k] - cross @ inverse @ cross > _IDLE))
        basis += [k] * is_new[-1]
    return np.array(is_new, dtype=np.bool_)


def null_space(gram: Float) -> Float:
    """Return orthonormal directions without variance, in units of standard deviations."""
    values, vectors = np.linalg.eigh(_scaled(gram))
    return np.asarray(vectors[:, values <= _IDLE * max(values[-1], 1e-300)])


def _scaled(gram: Float) -> Float:
    unit = np.sqrt(np.where(gram.diagonal() > 0, gram.diagonal(), 1.0))
    return np.asarray(gram / np.outer(unit, unit))


def position_columns(options: Mapping[str, Any], items: IdArray, choices: Index) -> dict[str, Any]:
    """Return whether each row's item was shown first, and last, as an argument of annotations.

    ``choices`` are the positions of rows in the lists of items shown first, and last.
    """
    positions = {}
    for name in POSITIONS:
        if options.get(name) is None:
            continue
        ids = as_id_array(options[name], name)
        if len(ids) != choices.max() + 1:
            raise ValueError(
                f"{name} has {len(ids)} items for {choices.max() + 1} choices. Pass one for each."
            )
        positions[name] = items == ids[choices]
        missing = np.flatnonzero(np.bincount(choices, positions[name]) == 0)
        if missing.size:
            raise ValueError(
                f"{name} has {ids[missing[0]]} for choice {missing[0]} (counted from 0), but this "
                "item was not shown there. Correct it, or drop the choice."
            )
    return {"positions": positions} if positions else {}
