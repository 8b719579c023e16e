"""Queries about several attributes at once: how well items match them."""

from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from likeminds._util.array_types import Float, Index
from likeminds._util.checks import as_matrix, listing
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import as_id_array


class AttributeQueries:
    """Rankings by several attributes at once."""

    attributes_: list[str]

    def decision_function(
        self,
        X: ArrayLike | Annotations,
        users: Iterable[Hashable] | None = None,
        attribute: str | None = None,
    ) -> Float:
        """Score each row for its person."""
        raise NotImplementedError

    def match(
        self,
        user: Hashable | None,
        items: ArrayLike,
        *,
        like: Sequence[str] = (),
        not_like: Sequence[str] = (),
    ) -> Float:
        """Say how well items match a wish, such as comfortable and open, but not pointy.

        Scores of different attributes cannot be added; places in their rankings can. An item's
        match is the mean, over the attributes wished for, of the share of the items that rank
        below it (ties count half), and of those above it for what is not wished for.

        Parameters
        ----------
        user : id or None
            For whom items are scored; None is the consensus, or the only new user.
        items : array of shape (n_items, n_features)
            The items, which are ranked against each other.
        like, not_like : lists of attributes
            What is wished for, and what is not; without both, all attributes are.

        Returns
        -------
        array of shape (n_items,)
            From 0 to 1.
        """
        wanted, unwanted = _names(like, "like"), _names(not_like, "not_like")
        if not wanted and not unwanted:
            wanted = self.attributes_
        both = sorted(set(wanted) & set(unwanted))
        if both:
            raise ValueError(f"The wish contradicts itself: {listing(both)} is liked and not.")
        rows = as_matrix(items, "items")
        users = None if user is None else as_id_array([user], "user").repeat(len(rows))
        shares = [_share_below(self.decision_function(rows, users, name)) for name in wanted]
        shares += [1.0 - _share_below(self.decision_function(rows, users, n)) for n in unwanted]
        return np.asarray(np.mean(shares, axis=0))

    def rank(
        self,
        user: Hashable | None,
        items: ArrayLike,
        *,
        like: Sequence[str] = (),
        not_like: Sequence[str] = (),
        k: int | None = None,
    ) -> Index:
        """Return the items that match a wish best, by their positions, the best first.

        Parameters
        ----------
        user, items, like, not_like
            As in `match`.
        k : int, optional
            How many; by default all.
        """
        if k is not None and k < 1:
            raise ValueError(f"k must be at least 1, but is {k}.")
        match = self.match(user, items, like=like, not_like=not_like)
        return np.argsort(-match, kind="stable")[:k]


def _names(given: Sequence[str], argument: str) -> list[str]:
    if isinstance(given, str):
        raise TypeError(f"{argument} must be a list of attributes: [{given!r}].")
    return [str(name) for name in given]


def _share_below(scores: Float) -> Float:
    """Return for each item the share of all that score lower, ties counting half."""
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - 0.5 * counts
    return np.asarray(middle[place] / len(scores))
