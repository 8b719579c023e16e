"""People who were not there when the ranker was fitted: what their labels say about them."""

from collections.abc import Hashable, Iterable
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from likeminds._support.arrays import Float, IdArray
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import encode
from likeminds.prior.beliefs import Beliefs
from likeminds.prior.crowd import Crowd
from likeminds.prior.prior import Prior


class Newcomers(Protocol):
    """What a ranker has to take newcomers with, without a refit."""

    @property
    def crowd(self) -> Crowd:
        """What people are like before they say anything."""
        ...

    def fold_in(self, said: Annotations) -> tuple[Float, NDArray[np.float32]]:
        """Return everybody's mode and matrix K; see `Beliefs`."""
        ...


def newcomer(  # the method of every ranker that has ``_newcomers``
    self: Any,
    X: ArrayLike | Annotations | None = None,
    y: ArrayLike | None = None,
    users: Iterable[Hashable] | None = None,
    sample_weight: ArrayLike | None = None,
) -> Beliefs:
    """Return what labels say about people, given the crowd; nothing is learned anew.

    Any number of labels will do. Without any, people are what the crowd is like: the
    consensus, and as uncertain as the crowd is diverse. Labels of one class say something
    to the logistic loss; the AUC loss has no pair to learn from, and leaves the consensus.

    Parameters
    ----------
    X, y, users, sample_weight
        As in `fit`: the labels of one person, or of several with ``users``. Without X (or
        with no rows), nobody has labels.

    Returns
    -------
    Beliefs
        Weights, scores, standard errors, and which items to ask about next.

    Examples
    --------
    >>> from likeminds import HierarchicalRanker, load_electricity
    >>> households = load_electricity()
    >>> ranker = HierarchicalRanker(n_groups=1).fit(households)
    >>> new = ranker.newcomer(households.X[:4], households.labels[:4])
    >>> new.next_items(households.X[4:40], n=2).shape
    (2,)
    >>> stranger = ranker.newcomer()
    >>> bool(np.allclose(stranger.coef, ranker.consensus_))
    True
    """
    check_is_fitted(self)
    newcomers: Newcomers = self._newcomers()
    crowd = newcomers.crowd
    if X is None or (not isinstance(X, Annotations) and not len(np.asarray(X))):
        people, points, known = _strangers(users, crowd.prior)
    else:
        said: Annotations = self._as_annotations(X, y, users, sample_weight, reset=False)
        people = said.user_ids
        points, known = newcomers.fold_in(said)
    return Beliefs.given(crowd, people, points, known)


def _strangers(
    users: Iterable[Hashable] | None, prior: Prior
) -> tuple[IdArray, Float, NDArray[np.float32]]:
    people = encode([0] if users is None else users, "users")[1]
    points = np.repeat(prior.mean[None], len(people), axis=0)
    return people, points, np.zeros((len(people), 0, len(prior.mean)), dtype=np.float32)
