"""A ranker of some of its people: what was learned about the others is left out."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeminds._util.array_types import Index
from likeminds._util.lazy_rows import LazyIds
from likeminds.rankers.capabilities import PendingReaders

# What is known of each person, beside who they are: arrays with a row for each.
_OF_PEOPLE = (
    *("coef_", "group_", "personal_", "raw_group_", "raw_personal_"),
    *("intercept_", "information_", "factor_weights_", "points_"),
)
# People of files who are looked at where all would be too many.
MOST_AT_ONCE = 20_000
# What is about all people together, and not true of some.
_OF_ALL = ("annotations_", "statistics_", "kept_schools_", "fingerprint_", "solution_")


def arrays_of_users(ranker: Any) -> dict[str, NDArray[Any]]:
    """Return the fitted arrays that have a row for each person, beside ``users_``."""
    there = ranker._fitted_names()
    found = {name: getattr(ranker, name) for name in _OF_PEOPLE if name in there}
    n_users = len(ranker.users_)
    return {name: rows for name, rows in found.items() if np.shape(rows)[:1] == (n_users,)}


def some_of(ranker: Any, places: slice | Index, *, labels: bool = False) -> Any:
    """Return an ordinary ranker of some of a ranker's people; nobody else's part is read.

    Parameters
    ----------
    ranker : Ranker
        A fitted one.
    places : slice or array of int
        Where they are among its people.
    labels : bool, default=False
        Keep their labels, where the ranker has kept everybody's.

    Examples
    --------
    >>> from likeminds import ThreeLevelRanker, load_electricity
    >>> ranker = ThreeLevelRanker().fit(load_electricity())
    >>> two = some_of(ranker, slice(3, 5))
    >>> two.users_.tolist(), two.coef_.shape
    (['household-004', 'household-005'], (2, 6))
    """
    ranker = ranker._best_model
    some = object.__new__(type(ranker))
    some.__dict__ = {name: value for name, value in vars(ranker).items() if name != "_positions"}
    unread = vars(ranker).get("_unread")
    if unread is not None:  # what one of the two reads, the other has still to read
        some._unread = PendingReaders({k: v for k, v in unread.readers.items() if k not in _OF_ALL})
    for name in _OF_ALL:
        some.__dict__.pop(name, None)
    for name, rows in arrays_of_users(ranker).items():
        setattr(some, name, rows[places])
    some.users_ = ranker.users_[places]
    grading = ranker._learned("grading_")
    if grading is not None:
        shifts = None if grading.shifts is None else grading.shifts[places]
        some.grading_ = replace(grading, use=grading.use[places], shifts=shifts)
    said = ranker._learned("annotations_") if labels else None
    if said is not None:
        some.annotations_ = said.of_users(some.users_.tolist())
    return some


def within_reach(ranker: Any) -> Any:
    """Return a ranker with its people in memory: of very many in files, a sample.

    It is what is known about crowds as wholes (schools, maps) that is told from 20,000 people,
    drawn as if by chance, where these do not tell less than all.
    """
    users = ranker._best_model.users_
    if not isinstance(users, LazyIds):
        return ranker
    return some_of(ranker, users.sample(min(MOST_AT_ONCE, len(users))), labels=True)
