"""People not seen in training: their posteriors, given their labels."""

from collections.abc import Hashable, Iterable
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from likeminds._support.arrays import Float, IdArray
from likeminds.data.annotations import Annotations
from likeminds.data.covariates import Covariates
from likeminds.data.identifiers import encode
from likeminds.prior.beliefs import Beliefs
from likeminds.prior.crowd import Crowd
from likeminds.prior.grading import CumulativeLogit
from likeminds.prior.ways import Ways
from likeminds.rankers.inputs import Elsewhere, refuse_extras


class Newcomers(Protocol):
    """The prior of newcomers, and how to find their posteriors without a refit."""

    @property
    def crowd(self) -> Crowd:
        """The prior of people without labels."""
        ...

    def fold_in(self, said: Annotations) -> tuple[Float, NDArray[np.float32]]:
        """Return everybody's mode and matrix K; see `Beliefs`."""
        ...


def newcomer(  # the method of every ranker that has ``_newcomers``
    self: Any,
    X: ArrayLike | Annotations | Elsewhere | None = None,
    y: ArrayLike | None = None,
    users: Iterable[Hashable] | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    people: Any = None,
) -> Beliefs:
    """Return the posteriors of people not seen in training, given their labels, without a refit.

    Any number of labels will do. Without any, the posterior is the prior: the consensus, with
    the covariance of the crowd. Labels of one class are informative with the logistic loss;
    the AUC loss has no pair to learn from, and leaves the consensus.

    Parameters
    ----------
    X, y, users, sample_weight
        As in `fit`: the labels of one person, or of several with ``users``. Without X (or
        with no rows), nobody has labels. Where the crowd gave grades, newcomers may say yes or
        no: that counts as a grade in the middle of those above, or below, where grades divide.
    people : Covariates, mapping by person, data frame or path, optional
        Covariates of these people, as in `Annotations`, where the ranker has learned from such:
        they start from what goes with theirs instead of the consensus. Without X and ``users``,
        the people are those of this table.

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
    if isinstance(X, Elsewhere):
        refuse_extras(y=y, users=users, sample_weight=sample_weight, people=people)
        found: Beliefs = X.newcomers(self)
        return found
    newcomers: Newcomers = self._newcomers()
    crowd = newcomers.crowd
    covariates = _covariates(people, crowd)
    if X is None or (not isinstance(X, Annotations) and not len(np.asarray(X))):
        who, points, known = _strangers(users, covariates, crowd)
        said = None
    else:
        if self._graded:
            X, y = _as_grades(self, X, y)
        said = self._as_annotations(X, y, users, sample_weight, reset=False)
        if covariates is not None:
            said = said.with_people(covariates)
        who = said.user_ids
        points, known = newcomers.fold_in(said)
    beliefs, ways = Beliefs.given(crowd, who, points, known), ways_of(self)
    return beliefs if ways is None else beliefs.with_ways(ways, said)


def ways_of(ranker: Any) -> Ways | None:
    """Return how the people of a ranker turn scores into grades, where they gave grades."""
    grading: CumulativeLogit | None = ranker.learned("grading_")
    return None if grading is None else Ways(grading, ranker.label_reading_)


def _as_grades(
    ranker: Any, X: ArrayLike | Annotations, y: ArrayLike | None
) -> tuple[ArrayLike | Annotations, ArrayLike | None]:
    """Return labels of yes or no as typical grades; grades as they are."""
    cut, words = ranker.label_reading_.threshold, ranker.label_reading_.grades
    grading = ranker.learned("grading_")
    levels = np.array([cut, cut + 1.0]) if grading is None else grading.scale.levels
    low, high = levels[levels <= cut], levels[levels > cut]
    typical = np.array([low[len(low) // 2], high[len(high) // 2]])
    if isinstance(X, Annotations):
        if X.grades is None:
            grades = typical[X.labels.astype(np.intp)]
            X = X._with(grades=grades, reading=ranker.label_reading_)
    elif y is not None and np.asarray(y).dtype == np.bool_:
        grades = typical[np.asarray(y).astype(np.intp)]
        y = np.array(words, dtype=object)[grades.astype(np.intp)] if words else grades
    return X, y


def _covariates(people: Any, crowd: Crowd) -> Covariates | None:
    if people is None:
        return None
    if crowd.traits is None:
        raise ValueError(
            "This ranker has not learned from covariates of people: leave out people=, or fit a "
            "HierarchicalRanker to annotations that have them."
        )
    return Covariates.read(people)


def _strangers(
    users: Iterable[Hashable] | None, covariates: Covariates | None, crowd: Crowd
) -> tuple[IdArray, Float, NDArray[np.float32]]:
    if users is None:
        users = [0] if covariates is None else covariates.ids
    people = encode(users, "users")[1]
    if covariates is not None:
        covariates = covariates.written_as(people)
    shifts = crowd.shifts(covariates, people)
    points = crowd.prior.shifted(shifts).means(np.arange(len(people)))
    return people, points, crowd.told(shifts, len(people)).astype(np.float32)
