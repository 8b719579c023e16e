"""Splits within each user, which keep choice sets whole and stratify by label."""

import numpy as np
from numpy.random import Generator

from likeminds._util.array_types import Index
from likeminds._util.per_user_arrays import hashes_of, lots_of, order_by
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import encode_pairs


def split_within_users(
    annotations: Annotations,
    test_size: float = 0.3,
    random_state: int | Generator | None = None,
    *,
    stratify: bool = True,
) -> tuple[Annotations, Annotations]:
    """Hold out a share of each user's labels.

    Rows of one choice set stay together. Without choice sets, a user's positive and negative labels
    are divided separately, so both sides have both if possible. To evaluate probabilities, use
    ``stratify=False``. A stratified split repeats each user's share of positive labels in the test
    part. This favours models that shrink the share too little.

    Parameters
    ----------
    annotations : Annotations
        The labels to split.
    test_size : float
        The share of each user's choice sets (or labels) to hold out, between 0 and 1.
    random_state : int or Generator, optional
        Makes the split reproducible.
    stratify : bool, default=True
        Whether to divide positive and negative labels separately.

    Returns
    -------
    train, test : Annotations

    Examples
    --------
    >>> from likeminds import load_electricity
    >>> train, test = split_within_users(load_electricity(), test_size=0.3, random_state=0)
    >>> len(train), len(test)
    (11516, 5716)
    """
    if not 0 < test_size < 1:
        raise ValueError(f"test_size must lie between 0 and 1, but is {test_size}.")
    units = _units(annotations) if stratify else _units_of_users(annotations)
    place, total = _drawn_places(*units, np.random.default_rng(random_state))
    held_out = place < np.floor(test_size * total + 0.5)
    if not held_out.any() or held_out.all():
        raise ValueError(
            f"test_size={test_size} leaves one side of the split empty, as users have few labels. "
            "Choose a share closer to 0.5."
        )
    return annotations[~held_out], annotations[held_out]


def folds_within_users(annotations: Annotations, n_folds: int = 5, random_state: int = 0) -> Index:
    """Return the fold of each row, from 0; units are divided as in `split_within_users`.

    Folds are drawn by hashes of the ids of users and items, so they do not depend on the order of
    rows: one process and the workers of a cluster draw the same folds.
    """
    if n_folds < 2:
        raise ValueError(f"n_folds must be at least 2, but is {n_folds}.")
    users = hashes_of(annotations.user_ids, random_state)
    items = annotations.item_codes.astype(np.uint64)
    if annotations.has_items:
        items = hashes_of(annotations.item_ids)[annotations.item_codes]
    outcomes = items * np.uint64(2) + annotations.labels.astype(np.uint64)
    lots = lots_of(users[annotations.user_codes], outcomes)
    unit, stratum = _units(annotations)
    if annotations.choice_set_codes is not None:  # a choice set is identified by its items
        total = np.zeros(int(unit.max()) + 1, dtype=np.uint64)
        np.add.at(total, unit, lots)
        lots = total
    order = np.lexsort((lots, stratum))
    ends = np.cumsum(np.bincount(stratum))
    place = np.empty(len(stratum), dtype=np.intp)
    place[order] = np.arange(len(stratum)) - np.concatenate([[0], ends])[stratum[order]]
    # The fold of a user's first unit is random, so remainders spread over all folds.
    first = (lots_of(users, np.zeros_like(users)) % np.uint64(n_folds)).astype(np.intp)
    return np.asarray((place[unit] + first[annotations.user_codes]) % n_folds)


def order_within_users(annotations: Annotations, rng: Generator) -> Index:
    """Return each row's place in a random order of its user's choice sets (or rows), from 0."""
    return _drawn_places(*_units_of_users(annotations), rng)[0]


def _units(annotations: Annotations) -> tuple[Index, Index]:
    """Return the unit of each row, and the stratum of each unit.

    A unit is a choice set, a tie, or a row without a choice set. A stratum is a user, or a user's
    labels of one kind without choice sets.
    """
    unit, user = _units_of_users(annotations)
    if annotations.choice_set_codes is not None:
        return unit, user
    return unit, encode_pairs(user, annotations.labels.astype(np.intp))


def _units_of_users(annotations: Annotations) -> tuple[Index, Index]:
    """Return the unit of each row, and the user of each unit."""
    unit = _choices(annotations)
    if unit is None:
        return np.arange(len(annotations)), annotations.user_codes
    user = np.zeros(int(unit.max()) + 1, dtype=np.intp)
    user[unit] = annotations.user_codes
    return unit, user


def _choices(annotations: Annotations) -> Index | None:
    """Return the choice of each row: its choice set, or all ties of a user and two items.

    A tie is two choice sets, which are held out together.
    """
    sets, tied = annotations.choice_set_codes, annotations.tied
    if sets is None or tied is None or not annotations.has_items:
        return sets
    halves = np.flatnonzero(tied & (np.bincount(sets)[sets] == 2))
    if not halves.size:
        return sets
    rows = halves[np.argsort(sets[halves], kind="stable")].reshape(-1, 2)
    low, high = np.sort(annotations.item_codes[rows], axis=1).T
    pair = encode_pairs(annotations.user_codes[rows[:, 0]], encode_pairs(low, high))
    _, first, code = np.unique(pair, return_index=True, return_inverse=True)
    merged = sets.copy()
    merged[rows] = sets[rows[first[code], 0]][:, None]
    return np.unique(merged, return_inverse=True)[1]


def _drawn_places(unit: Index, stratum: Index, rng: Generator) -> tuple[Index, Index]:
    """Permute the units of each stratum; return each row's place, and its stratum's size."""
    lots = rng.permutation(len(stratum))
    order, offsets = order_by(stratum[lots], int(stratum.max()) + 1)
    place = np.empty(len(stratum), dtype=np.intp)
    place[lots[order]] = np.arange(len(stratum)) - offsets[stratum[lots[order]]]
    return place[unit], np.diff(offsets)[stratum[unit]]
