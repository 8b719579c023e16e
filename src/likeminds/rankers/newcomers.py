"""Posteriors of new users and new items, given their labels, without a refit."""

from collections.abc import Hashable, Mapping
from copy import copy
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from likeminds._util.array_types import Bool, Float, FloatArray, IdArray
from likeminds._util.checks import listing
from likeminds._util.result_tables import Table
from likeminds._util.text_format import counted
from likeminds.data.annotations import Annotations, LabelSource
from likeminds.data.covariates import Covariates
from likeminds.data.identifiers import encode, lookup
from likeminds.mixed_model.new_posteriors import new_item_posteriors
from likeminds.mixed_model.posterior import Posterior
from likeminds.mixed_model.user_posteriors import Answered, FittedPrior
from likeminds.rankers.item_table import (
    Ids,
    ItemRows,
    ItemsToRank,
    ItemTableView,
    frames_of,
    gives_grades,
)
from likeminds.rankers.ranking import Ranking, among_labels_of, best_of, repeated
from likeminds.rankers.training_checks import as_annotations, refuse_extras
from likeminds.rankers.validation import check_width, is_graded, joint_reading, user_positions

Prior = TypeVar("Prior", bound="PriorRanker")

Labels = ArrayLike | Annotations | Mapping[Hashable, Any]

if TYPE_CHECKING:
    from likeminds.rankers.prior_ranker import PriorRanker
    from likeminds.rankers.ranker import Ranker

# The most items and users to print.
_PRINTED, _MOST_PRINTED = 5, 10


class Newcomers(Protocol):
    """The prior of new users, and their posteriors without a refit."""

    @property
    def fitted_prior(self) -> FittedPrior:
        """The prior of users without labels."""
        ...

    def fold_in(self, annotations: Annotations) -> tuple[Float, NDArray[np.float32]]:
        """Return the mode and matrix K of each user; see `Posterior`."""
        ...

    def answered(self, annotations: Annotations, posterior: Posterior) -> Answered | None:
        """Return the residuals of labelled items, if labels have a likelihood."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class NewUsers(Posterior):
    """Posteriors of new users, with rankings; see `newcomer`.

    Attributes
    ----------
    ranker : Ranker
        The ranker, with the prior.
    annotations : Annotations or None
        The new users' labels, or None without labels.

    Examples
    --------
    >>> from likeminds import Annotations, HierarchicalRanker
    >>> films, people = ["Heat", "Alien", "Big", "Up"], [f"user {n}" for n in range(12)]
    >>> stars = [[5, 4, 1, 2] if n % 2 else [2, 1, 4, 5] for n in range(12)]
    >>> action = {"Heat": [1.0], "Alien": [1.0], "Big": [0.0], "Up": [0.0]}
    >>> crowd = Annotations(np.repeat(people, 4), films * 12, np.ravel(stars), action)
    >>> new = HierarchicalRanker(loss="cumulative").fit(crowd).newcomer({"Heat": 5, "Big": 1})
    >>> new.rank()
    Ranking for 0: Alien, Up
    """

    ranker: Any = None
    annotations: Annotations | None = None

    def rank(
        self,
        user: Hashable | None = None,
        items: ItemsToRank | None = None,
        *,
        k: int | None = None,
        labelled: bool = False,
    ) -> Ranking:
        """Rank items for a new user, without the user's labelled items.

        Parameters
        ----------
        user : id, optional
            The user; needed if there are several.
        items : mapping from item to features, or Annotations, optional
            The items; by default the training items, if the model was saved with them.
        k : int, optional
            The number of best items to return; all by default.
        labelled : bool
            Whether to include labelled items. They are ranked by the mean utility given the label,
            and have their grade as the expected grade.

        Returns
        -------
        Ranking
        """
        shown = ItemTableView.of(self.ranker, items)
        owner = self._only_user() if user is None else user
        has_label = self._labelled_by(owner, shown.ids)
        kept = slice(None) if labelled else ~has_label
        ids, features, has_label = shown.ids[kept], shown.features[kept], has_label[kept]
        frames, names = frames_of(self.ranker), shown.names
        if not len(ids):
            return Ranking(owner, ids, np.empty(0), frames, names=names)
        asked = to_score(owner, ids, features)
        scores = self.decision_function(asked, asked.users)
        best = best_of(scores, len(ids) if k is None else k)
        expected = None
        if gives_grades(self.ranker):
            expected = self._expected(asked[best], has_label[best])
        return Ranking(owner, ids[best], scores[best], frames, expected, names)

    def _expected(self, asked: Annotations, has_label: Bool) -> NDArray[Any]:
        """Return expected grades, or grades of labelled items."""
        expected = self.predict_grades(asked, asked.users).typical.copy()
        if self.annotations is not None and has_label.any():
            mine = self.annotations.of_user(asked.users[0])
            assert mine.grades is not None
            given = dict(zip(mine.items.tolist(), mine.grades.tolist(), strict=True))
            words = self.ranker._best_model.label_reading_.grades
            for row in np.flatnonzero(has_label).tolist():
                grade = given[asked.items[row]]
                expected[row] = words[int(grade)] if expected.dtype == object else grade
        return expected

    def _only_user(self) -> Any:
        if len(self.users) > 1:
            raise ValueError(f"There are {len(self.users)} new users. Pass user= to choose one.")
        return self.users[:1].tolist()[0]

    def _labelled_by(self, user: Hashable, ids: IdArray) -> Bool:
        if self.annotations is None or not self.annotations.has_items:
            return np.zeros(len(ids), dtype=np.bool_)
        return among_labels_of(self.annotations, user, ids)

    def _rows_printed(self) -> list[dict[str, Any]]:
        """Return the best items of one user, or a row for each of several users."""
        can_rank = self.ranker is not None and self.ranker.training_annotations_ is not None
        if len(self.users) == 1:
            return self.rank(k=_PRINTED).rows() if can_rank else []
        rows = []
        for user in self.users[:_MOST_PRINTED].tolist():
            labels = self.annotations
            counts = {} if labels is None else {"labels": len(labels.of_user(user))}
            best = {"best items": repr(self.rank(user, k=3)).partition(": ")[2]} if can_rank else {}
            rows.append({"user": user} | counts | best)
        return rows

    def _table(self) -> Table:
        n_labels = 0 if self.annotations is None else len(self.annotations)
        title = f"{counted(len(self.users), 'new user')}, {counted(n_labels, 'label')}"
        return Table(title, self._rows_printed())

    def __repr__(self) -> str:
        return str(self._table())

    def _repr_html_(self) -> str:
        return self._table()._repr_html_()


def to_score(owner: Hashable, items: IdArray, features: FloatArray) -> Annotations:
    """Return items as annotations of one user; their labels are placeholders."""
    return Annotations(
        users=repeated(owner, len(items)),
        items=items,
        labels=np.zeros(len(items), dtype=np.bool_),
        features=features,
        features_per="row",
    )


def newcomer(  # the method of every ranker that has ``_newcomers``
    self: "Ranker",
    X: "Labels | LabelSource[Ranker, Posterior] | None" = None,
    y: ArrayLike | None = None,
    users: Ids = None,
    sample_weight: ArrayLike | None = None,
    *,
    user_features: Any = None,
) -> Posterior:
    """Return the posteriors of new users, given their labels, without a refit (cold start).

    ``newcomer({item: answer})`` takes one user's answers by item id or name, on the scale of the
    training labels.

    Without labels, the posterior is the prior, with the consensus as mean. Labels of one class are
    informative with the logistic loss. With the AUC loss they have no pairs, so the posterior is
    the prior.

    Parameters
    ----------
    X, y, users, sample_weight
        As in `fit`: the labels of one user, or of several with ``users``; or a mapping from item to
        answer of one user. Without X or rows, users have no labels. If the training labels are
        grades, yes and no count as the median grade above and below the threshold.
    user_features : Covariates, mapping by user, data frame or path, optional
        Covariates of these users, as in `Annotations`, for rankers fitted with covariates. The
        prior mean depends on them. Without X and ``users``, the table defines the users.

    Returns
    -------
    NewUsers
        Weights, scores, standard errors, rankings, and the most informative items to label.

    Examples
    --------
    >>> from likeminds import HierarchicalRanker, load_electricity
    >>> households = load_electricity()
    >>> ranker = HierarchicalRanker(n_groups=1).fit(households)
    >>> new = ranker.newcomer(households.X[:4], households.labels[:4])
    >>> new.next_items(households.X[4:40], n=2).shape
    (2,)
    >>> bool(np.allclose(ranker.newcomer().coef, ranker.consensus_))
    True
    """
    check_is_fitted(self)
    if isinstance(X, LabelSource):
        refuse_extras(y=y, users=users, sample_weight=sample_weight, user_features=user_features)
        return X.newcomers(self)
    if isinstance(X, Mapping):
        refuse_extras(y=y, sample_weight=sample_weight)
        return newcomer(self, _by_item(self, X, users) if X else None, user_features=user_features)
    newcomers: Newcomers = self._newcomers()
    fitted_prior = newcomers.fitted_prior
    covariates = _covariates(user_features, fitted_prior)
    if X is None or (not isinstance(X, Annotations) and not len(np.asarray(X))):
        ids, points, information = _new_users(users, covariates, fitted_prior)
        annotations = None
    else:
        if is_graded(self):
            X, y = _as_grades(self, X, y)
        annotations = as_annotations(self, X, y, users, sample_weight, reset=False)
        self._best_model._item_ids(annotations, None, annotations.X)
        if covariates is not None:
            annotations = annotations.with_user_features(covariates)
        ids = annotations.user_ids
        points, information = newcomers.fold_in(annotations)
    posterior = Posterior.given(
        fitted_prior, ids, points, information, unknown=self._best_model.unknown
    )
    style = self.response_style
    answered = None if annotations is None else newcomers.answered(annotations, posterior)
    if style is not None:
        posterior = posterior.with_response_style(style, annotations)
    values = {one.name: getattr(posterior, one.name) for one in fields(Posterior)}
    return NewUsers(**values | {"answered": answered}, ranker=self, annotations=annotations)


def new_items(self: "Prior", annotations: Annotations) -> "Prior":
    """Return a ranker with the posteriors of new items, given their labels, without a refit.

    Users' weights and the prior of items do not change (cold start of items).

    Parameters
    ----------
    annotations : Annotations
        Labels of new items, by training users (other users get the prior). Choice sets may contain
        known and new items.

    Returns
    -------
    a copy of the ranker
    """
    check_is_fitted(self)
    check_width(self, annotations)
    items = self._items()
    if not annotations.has_items:
        raise ValueError("new_items needs the item of each label. Pass items= to Annotations.")
    named = annotations.item_ids[np.unique(annotations.item_codes)]
    known = lookup(named, items.ids, "items") >= 0
    if known.any() if annotations.choice_set_codes is None else known.all():
        raise ValueError(
            f"new_items takes labels of new items, but {listing(named[known])} are already "
            "known. Use update for these."
        )
    posterior, users = self._posterior_of(user_positions(self, annotations.users))
    joint_reading(self, annotations)
    ranker = copy(self)
    found = new_item_posteriors(posterior, annotations, users)
    ranker.prior_ = replace(self.prior_, items=items.joined(found))
    return ranker


def _by_item(ranker: "Ranker", answers: Mapping[Hashable, Any], users: Ids) -> Annotations:
    """Return one user's answers as annotations, by item id or name."""
    owners = [0] if users is None else list(users)
    if len(owners) != 1:
        raise ValueError(
            f"A mapping has the answers of one user, but users has {len(owners)}. Pass Annotations."
        )
    shown = ItemTableView.of(ranker, None)
    places = shown.places_of(list(answers))
    labels = list(answers.values())
    plain = all(isinstance(label, bool | np.bool_) for label in labels)
    return Annotations(
        users=repeated(owners[0], len(labels)),
        items=shown.ids[places],
        labels=labels,
        features=shown.features[places],
        features_per="row",
        feature_names=[str(name) for name in ranker.feature_names_],
        reading=None if plain else ranker.label_reading_,
    )


def _as_grades(
    ranker: "Ranker", X: ItemRows, y: ArrayLike | None
) -> tuple[ArrayLike | Annotations, ArrayLike | None]:
    """Return yes and no as typical grades, and grades unchanged."""
    reading = ranker.label_reading_
    assert reading is not None
    cut, words = float(reading.threshold or 0.0), reading.grades
    grading = ranker.grading_
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


def _covariates(user_features: Any, fitted_prior: FittedPrior) -> Covariates | None:
    if user_features is None:
        return None
    if fitted_prior.covariate_effects is None:
        raise ValueError(
            "This ranker was fitted without covariates of users. Leave out user_features=, or fit "
            "a HierarchicalRanker to annotations with user_features=."
        )
    return Covariates.read(user_features)


def _new_users(
    users: Ids, covariates: Covariates | None, fitted_prior: FittedPrior
) -> tuple[IdArray, Float, NDArray[np.float32]]:
    if users is None:
        users = [0] if covariates is None else covariates.ids
    positions = encode(users, "users")[1]
    if covariates is not None:
        covariates = covariates.written_as(positions)
    shifts = fitted_prior.shifts(covariates, positions)
    points = fitted_prior.prior.shifted(shifts).means(np.arange(len(positions)))
    reduction = fitted_prior.variance_reduction(shifts, len(positions))
    return positions, points, reduction.astype(np.float32)
