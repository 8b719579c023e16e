"""Items that a new user has labelled: what the label says of that very item."""

from dataclasses import dataclass

import numpy as np

from likeminds._util.array_types import Float, IdArray, Index
from likeminds.data.identifiers import encode, lookup


@dataclass(frozen=True)
class Answered:
    """The residuals of labelled items: E[eta + noise | label] - eta.

    A score eta is the mean utility of an item to a user. A label tells more of the labelled item:
    its noise is this user's own taste for it, which other items do not share. The mean utility,
    given the label, is what the item is worth to this user.

    Attributes
    ----------
    people : array of shape (n,)
        The place of the user of each label.
    items : array of shape (n,)
        The item of each label.
    residuals : array of shape (n,)
        The residual of each label.
    """

    people: Index
    items: IdArray
    residuals: Float

    def at(self, people: Index, items: IdArray) -> Float:
        """Return the mean residual of each pair of user and item, zero without a label."""
        item, known = encode(self.items, "items")
        asked = lookup(items, known, "items")
        n = len(known)
        labelled, code = np.unique(self.people * n + item, return_inverse=True)
        mean = np.bincount(code, self.residuals) / np.bincount(code)
        pairs = people * n + asked
        place = np.minimum(np.searchsorted(labelled, pairs), len(labelled) - 1)
        return np.where((asked >= 0) & (labelled[place] == pairs), mean[place], 0.0)
