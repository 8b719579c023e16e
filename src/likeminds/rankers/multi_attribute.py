"""Models of several attributes of the same items, with one ranker for each."""

import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from likeminds._util.array_types import Float, IdArray, Index
from likeminds._util.checks import as_matrix, listing
from likeminds.data.annotations import Annotations
from likeminds.data.column_roles import default_verb
from likeminds.data.fingerprints import fingerprint, joint_fingerprint
from likeminds.data.identifiers import as_id_array, coerce_ids, encode, lookup
from likeminds.mixed_model.posterior import Posterior
from likeminds.rankers.candidates import was_interrupted
from likeminds.rankers.capabilities import Capability, ReadableModel, with_consensus
from likeminds.rankers.hierarchical import HierarchicalRanker
from likeminds.rankers.item_table import Ids, ItemRows
from likeminds.rankers.ranker import Ranker
from likeminds.rankers.validation import item_ids_of, refuse_unknown_users

# Called after each attribute with its name, the number done, and the total.
Callback = Callable[[str, int, int], None]
ByAttribute = Annotations | Mapping[str, Annotations]


def match(
    self: "AttributeModel | AttributeNewcomers",
    user: Hashable | None,
    items: ArrayLike,
    *,
    like: Sequence[str] = (),
    not_like: Sequence[str] = (),
) -> Float:
    """Score items by several attributes, such as comfortable and open, but not pointy.

    Scores of different attributes are not comparable, but ranks are. An item's match is the mean,
    over attributes, of the share of items that rank below it (for ``not_like``, above it). Ties
    count half.

    Parameters
    ----------
    user : id or None
        The user. None means the consensus, or the only new user.
    items : array of shape (n_items, n_features)
        The items to compare with each other.
    like, not_like : lists of attributes
        Attributes that count for and against an item; by default, all count for it.

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
        raise ValueError(f"{listing(both)} cannot be both in like and in not_like.")
    rows = as_matrix(items, "items")
    users = None if user is None else as_id_array([user], "user").repeat(len(rows))
    shares = [_share_below(self.decision_function(rows, users, name)) for name in wanted]
    shares += [1.0 - _share_below(self.decision_function(rows, users, n)) for n in unwanted]
    return np.asarray(np.mean(shares, axis=0))


def rank(
    self: "AttributeModel | AttributeNewcomers",
    user: Hashable | None,
    items: ArrayLike,
    *,
    like: Sequence[str] = (),
    not_like: Sequence[str] = (),
    k: int | None = None,
) -> Index:
    """Return the positions of the items with the best `match`, the best first.

    Parameters
    ----------
    user, items, like, not_like
        As in `match`.
    k : int, optional
        The number of items; by default all.
    """
    if k is not None and k < 1:
        raise ValueError(f"k must be at least 1, but is {k}.")
    match = self.match(user, items, like=like, not_like=not_like)
    return np.argsort(-match, kind="stable")[:k]


class AttributeModel(ReadableModel, BaseEstimator):  # type: ignore[misc]
    """One ranker per attribute, with the same features; users may differ by attribute.

    Parameters
    ----------
    ranker : ranker, optional
        The ranker of each attribute; by default a `HierarchicalRanker`.
    n_jobs : int, optional
        The number of attributes to fit in parallel (joblib).

    Attributes
    ----------
    attributes_ : list of str
        The attributes.
    rankers_ : dict
        The fitted rankers, by attribute.
    users_ : array
        All users with labels.
    feature_names_ : array of str
        The features.
    fingerprints_ : dict of str
        The fingerprint of each attribute's training data (`likeminds.data.fingerprints`).

    Examples
    --------
    >>> from likeminds import AttributeModel, make_schools
    >>> crowds = {
    ...     name: make_schools(20, 20, 50, 6, 2, random_state=seed).annotations
    ...     for seed, name in enumerate(["comfortable", "pointy"])
    ... }
    >>> model = AttributeModel().fit(crowds)
    >>> shoes = crowds["pointy"].features
    >>> model.decision_function(shoes, users=[3] * 50).shape
    (50, 2)
    >>> model.rank(3, shoes, like=["comfortable"], not_like=["pointy"], k=5).shape
    (5,)
    """

    _stored_names = ReadableModel._stored_names | {"users_": "people_"}

    attributes_: list[str]
    fingerprints_: dict[str, str]
    takes_updates = takes_newcomers = True
    match = match
    rank = rank

    def __init__(self, ranker: Ranker | None = None, *, n_jobs: int | None = None) -> None:
        self.ranker = ranker
        self.n_jobs = n_jobs

    def fit(self, X: ByAttribute, y: None = None, *, callback: Callback | None = None) -> Self:
        """Fit one ranker to each attribute.

        Parameters
        ----------
        X : mapping from attribute to Annotations, or Annotations with attributes
            The labels (`Annotations.from_frame` reads a column of attributes).
        y : None
            Ignored; Annotations include labels.
        callback : callable, optional
            Called as ``callback(attribute, done, total)`` after each attribute.

        Returns
        -------
        self
        """
        del y
        self._read_all()
        parts = _by_attribute(X)
        self.feature_names_ = _common_features(parts)
        self.n_features_in_ = len(self.feature_names_)
        self.attributes_ = list(parts)
        self.rankers_, self.fingerprints_ = {}, {}
        self._learn(parts, callback)
        return self

    def update(self, X: ByAttribute, *, callback: Callback | None = None) -> Self:
        """Add labels, of known or new attributes and users.

        Parameters
        ----------
        X, callback
            As in `fit`.

        Returns
        -------
        self
        """
        if not self._fitted_names():
            return self.fit(X, callback=callback)
        parts = _by_attribute(X)
        if _common_features(parts).tolist() != self.feature_names_.tolist():
            raise ValueError(f"X must have the model's features: {listing(self.feature_names_)}.")
        for name in parts:
            if name in self.rankers_:
                Capability.UPDATES.require(self.rankers_[name])
        self._learn(parts, callback)
        self.attributes_ = list(self.rankers_)
        return self

    def decision_function(
        self, X: ItemRows, users: Ids = None, attribute: str | None = None
    ) -> Float:
        """Score each row for its user, by one attribute or by all.

        Parameters
        ----------
        X, users
            As in `ThreeLevelRanker.decision_function`. Users with labels of other attributes only
            get the consensus.
        attribute : str, optional
            The attribute; by default all.

        Returns
        -------
        array of shape (n_rows,), or (n_rows, n_attributes) without ``attribute``
        """
        names = self.rankers_ if attribute is None else [attribute]
        scores = self._of_each("decision_function", names, X, users)
        return np.column_stack(scores) if attribute is None else np.asarray(scores[0])

    def _of_each(
        self, method: str, names: Iterable[str], X: ItemRows, users: Ids, items: Ids = None
    ) -> list[Any]:
        """Call a method of each ranker; users without labels of its attribute get the consensus."""
        check_is_fitted(self)
        owners = None if users is None else as_id_array(users, "users")
        asked = X.user_ids if isinstance(X, Annotations) else owners
        if asked is not None:
            distinct = encode(asked, "users")[1]
            known = coerce_ids(distinct, self.users_, "users")
            refuse_unknown_users(distinct, lookup(known, self.users_, "users") < 0)
        items = None if items is None else as_id_array(items, "items")
        ids = item_ids_of(X, items, 0 if items is None else len(items))
        rankers = [self._ranker_of(name) for name in names]
        for ranker in rankers:
            ranker._best_model._refuse_new_items(ids)
        return [getattr(with_consensus(one), method)(X, owners, items) for one in rankers]

    def scores(self, X: ByAttribute) -> dict[str, float]:
        """Return the mean AUC over users, by attribute."""
        check_is_fitted(self)
        parts = _by_attribute(X).items()
        return {name: float(self._ranker_of(name).score(part)) for name, part in parts}

    def score(self, X: ByAttribute, y: None = None) -> float:
        """Return the mean of `scores` over the attributes."""
        del y
        return float(np.mean(list(self.scores(X).values())))

    def newcomer(self, X: ByAttribute) -> "AttributeNewcomers":
        """Return the posteriors of new users, by attribute, given their labels, without a refit.

        Parameters
        ----------
        X : mapping from attribute to Annotations, or Annotations with attributes
            The new users' labels. For attributes without labels, users get the consensus.
        """
        check_is_fitted(self)
        found = {}
        for name, part in _by_attribute(X).items():
            Capability.NEWCOMERS.require(self._ranker_of(name))
            found[name] = self._ranker_of(name).newcomer(part)
        return AttributeNewcomers(self, found)

    def _learn(self, parts: dict[str, Annotations], callback: Callback | None) -> None:
        new = HierarchicalRanker() if self.ranker is None else self.ranker
        tasks = [(self.rankers_.get(name), clone(new), name, parts[name]) for name in parts]
        work = Parallel(n_jobs=self.n_jobs, return_as="generator_unordered")
        found, caught = {}, []
        for name, ranker, some in work(delayed(_learn_one)(*task) for task in tasks):
            found[name] = ranker
            caught += some
            if callback is not None:
                callback(name, len(found), len(tasks))
        for name, part in parts.items():
            before, mark = self.fingerprints_.get(name), fingerprint(part)
            self.rankers_[name] = found[name]
            self.fingerprints_[name] = mark if before is None else joint_fingerprint(before, mark)
        users = [user for ranker in self.rankers_.values() for user in ranker.users_.tolist()]
        self.users_ = encode(users, "users")[1]
        for category, message in caught:
            warnings.warn(message, category, stacklevel=3)


@dataclass(frozen=True, eq=False)
class AttributeNewcomers:
    """Posteriors of new users, by attribute.

    Attributes
    ----------
    model : AttributeModel
        The model, with the prior of each attribute.
    posterior : dict of Posterior
        The posteriors, by labelled attribute.
    """

    model: AttributeModel
    posterior: dict[str, Posterior]
    match = match
    rank = rank

    @property
    def attributes_(self) -> list[str]:
        """The attributes of the model."""
        return self.model.attributes_

    def decision_function(
        self, X: ItemRows, users: Ids = None, attribute: str | None = None
    ) -> Float:
        """Score each row for its user (default: the only user), by one attribute or by all."""
        rows = X.X if isinstance(X, Annotations) else as_matrix(X, "X")
        given = X.users if isinstance(X, Annotations) else users
        known = [user for posterior in self.posterior.values() for user in posterior.users.tolist()]
        new = encode(known, "users")[1]
        if given is None and len(new) > 1:
            raise ValueError(f"There are {len(new)} users. Pass users= to choose.")
        owners = new.repeat(len(rows)) if given is None else as_id_array(given, "users")
        refuse_unknown_users(owners, lookup(owners, new, "users") < 0)
        if attribute is None:
            by_name = [self.decision_function(rows, owners, name) for name in self.attributes_]
            return np.column_stack(by_name)
        scores = np.asarray(rows @ self.model._ranker_of(attribute).consensus_)
        belief = self.posterior.get(str(attribute))
        if belief is not None:
            labelled = lookup(owners, belief.users, "users") >= 0
            if labelled.any():
                scores[labelled] = belief.decision_function(rows[labelled], owners[labelled])
        return scores


def _learn_one(
    known: Ranker | None, new: Ranker, name: str, part: Annotations
) -> tuple[str, Ranker, list[tuple[type[Warning], str]]]:
    """Fit one attribute, or update its ranker; also return warnings (from other processes)."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            ranker = new.fit(part) if known is None else known.update(part)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
    if was_interrupted(ranker):
        raise KeyboardInterrupt
    return name, ranker, [(one.category, f"{name}: {one.message}") for one in caught]


def _by_attribute(given: ByAttribute) -> dict[str, Annotations]:
    if isinstance(given, Annotations):
        return {str(name): part for name, part in given.by_attribute().items()}
    if not isinstance(given, Mapping) or not given:
        raise TypeError(
            "Pass a mapping from attribute to Annotations, or Annotations with attributes, "
            f"not {given!r}."
        )
    for name, part in given.items():
        if not isinstance(part, Annotations):
            raise TypeError(f"{name} must be Annotations, but is a {type(part).__name__}.")
    return {
        # By default, the verb is "find" with the name of the attribute.
        name: part if part.verb else part.with_verb(default_verb(name) or f"find {name}")
        for name, part in ((str(name), part) for name, part in given.items())
    }


def _common_features(parts: Mapping[str, Annotations]) -> IdArray:
    first, *others = parts
    for name in others:
        if parts[name].feature_names != parts[first].feature_names:
            raise ValueError(
                f"All attributes must have the same features, but {name!r} and {first!r} have "
                "different features."
            )
    return np.array(parts[first].feature_names, dtype=object)


def _names(given: Sequence[str], argument: str) -> list[str]:
    if isinstance(given, str):
        raise TypeError(f"{argument} must be a list of attributes, such as [{given!r}].")
    return [str(name) for name in given]


def _share_below(scores: Float) -> Float:
    """Return the share of items that score lower than each item; ties count half."""
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - 0.5 * counts)[place] / len(scores))
