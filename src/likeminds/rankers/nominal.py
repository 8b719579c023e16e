"""Nominal labels: one ranker per class, and class probabilities."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.validation import check_is_fitted

from likeminds._util.array_types import Float, IdArray, Index
from likeminds._util.checks import listing
from likeminds._util.result_tables import Frames, ResultTable
from likeminds._util.text_format import counted
from likeminds.data.annotations import Annotations
from likeminds.data.choice_constructors import class_sets
from likeminds.data.identifiers import as_id_array, lookup
from likeminds.data.label_parsing import LabelReading, as_plain, same_words
from likeminds.mixed_model.likelihoods import label_probability
from likeminds.rankers.item_table import Ids, ItemRows
from likeminds.rankers.multi_attribute import (
    AttributeModel,
    AttributeNewcomers,
    ByAttribute,
    Callback,
)

# With more users than this, soft labels are predicted for a sample of this size.
_MOST_USERS = 1_000
# Probabilities computed at a time.
_AT_ONCE = 1 << 18
# The least probability of a class before normalisation.
_LEAST = 1e-12


@dataclass(frozen=True, eq=False)
class ClassShares(ResultTable):
    """Soft labels of several classes: the predicted share of users for each class of an item.

    Attributes
    ----------
    items : array of shape (n_items,)
        The items.
    classes : array of shape (n_classes,)
        The classes.
    n_votes : array of shape (n_items,)
        The number of users who labelled each item.
    shares : array of shape (n_items, n_classes)
        The shares, which sum to 1. Users who labelled an item count by their label, other users by
        predicted probabilities.
    """

    items: IdArray
    classes: IdArray
    n_votes: Index
    shares: Float
    frames: Frames = "pyarrow"

    def to_arrow(self) -> pa.Table:
        """Return a table of pyarrow with a row per item: votes, and the share of each class."""
        columns: dict[str, Any] = {"item": self.items.tolist(), "votes": self.n_votes}
        shares = zip(self.classes.tolist(), self.shares.T, strict=True)
        return pa.table(columns | {f"share_{name}": share for name, share in shares})

    def _headline(self) -> str:
        return f"Shares of {len(self.classes)} classes for {counted(len(self.items), 'item')}"


class NominalRanker(AttributeModel):
    """A ranker of nominal labels, such as toxic, spam and fine, emotions, or topics.

    Each class has a ranker, fitted to whether a label is this class (one against the rest). It has
    a bias of each annotator towards the class, item effects and weights of features. The
    probability of a class is that of its ranker, divided by the sum over classes. So predictions
    reflect how annotators confuse classes, and how schools differ.

    The classes are the attributes of this model for `rank`, `match`, `newcomer`, `update`, reports
    and the service. ``rankers_`` has the ranker of each class, for `find_schools`, `diagnose` and
    `explain`.

    Parameters
    ----------
    ranker : ranker, optional
        The ranker of each class, with `predict_proba`; by default a `HierarchicalRanker`.
    n_jobs : int, optional
        The number of classes to fit in parallel (joblib).

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes, in the order of the columns of `predict_proba`.
    attributes_, rankers_, users_, feature_names_, fingerprints_
        As in `AttributeModel`, by the names of the classes.

    Examples
    --------
    >>> from likeminds import Annotations, NominalRanker
    >>> said = Annotations(
    ...     users=["ann", "bob", "cid"] * 4,
    ...     items=["a"] * 3 + ["b"] * 3 + ["c"] * 3 + ["d"] * 3,
    ...     labels=["spam"] * 3 + ["fine"] * 3 + ["toxic", "toxic", "fine"] * 2,
    ...     nominal=True,
    ... )
    >>> said
    Annotations: 12 labels of 3 classes by 3 people on 4 items, 0 features
    >>> model = NominalRanker().fit(said)
    >>> model.classes_.tolist(), model.predict_proba(said).shape
    (['fine', 'spam', 'toxic'], (12, 3))
    >>> model.soft_labels(said).table().column_names
    ['item', 'votes', 'share_fine', 'share_spam', 'share_toxic']
    """

    classes_: IdArray

    def fit(self, X: ByAttribute, y: None = None, *, callback: Callback | None = None) -> Self:
        """Fit one ranker to each class.

        Parameters
        ----------
        X : Annotations
            Labels read with ``nominal=``, or a mapping from class to yes-no labels.
        y, callback
            As in `AttributeModel.fit`.
        """
        if self.ranker is not None and not HasMethods("predict_proba").is_satisfied_by(self.ranker):
            raise TypeError(
                f"NominalRanker needs probabilities of labels, but {self.ranker!r} has no "
                "predict_proba. Leave out ranker=, or pass a HierarchicalRanker."
            )
        if isinstance(X, Annotations):
            classes = _class_codes(X)[0]
            empty = np.bincount(label_codes(X), minlength=len(classes)) == 0
            if empty.any():
                raise ValueError(
                    f"There are no labels of {listing([repr(one) for one in classes[empty]])}. "
                    "Leave these classes out of nominal=."
                )
        super().fit(X, y, callback=callback)
        self.classes_ = classes if isinstance(X, Annotations) else as_id_array(list(X), "classes")
        return self

    def update(self, X: ByAttribute, *, callback: Callback | None = None) -> Self:
        """Add labels of the same classes, by known or new users; see `AttributeModel.update`."""
        if self._fitted_names() and isinstance(X, Annotations):
            self._check_classes(X)
        return super().update(X, callback=callback)

    def newcomer(self, X: ByAttribute) -> "NominalNewcomers":
        """Return the posteriors of new users, by class, given their labels, without a refit."""
        if isinstance(X, Annotations):
            self._check_classes(X)
        return NominalNewcomers(self, super().newcomer(X).posterior)

    def predict_proba(self, X: ItemRows, users: Ids = None, items: Ids = None) -> Float:
        """Return the probability of each class.

        Parameters
        ----------
        X : array of shape (n_rows, n_features), or Annotations
            The items. Labels read with ``nominal=`` have a row per label.
        users, items : arrays of shape (n_rows,), optional
            As in `HierarchicalRanker.decision_function`. Without ``users``, the consensus is used.

        Returns
        -------
        array of shape (n_rows, n_classes)
            In the order of ``classes_``; rows sum to 1.
        """
        check_is_fitted(self)
        rows = _one_row_per_label(X)
        each = self._of_each("predict_proba", self.attributes_, rows, users, items)
        return _normalised([chances[:, 1] for chances in each])

    def predict(self, X: ItemRows, users: Ids = None, items: Ids = None) -> NDArray[Any]:
        """Predict the class of each row, with the highest `predict_proba`."""
        return np.asarray(self.classes_[self.predict_proba(X, users, items).argmax(axis=1)])

    def score(self, X: ByAttribute, y: None = None) -> float:
        """Return the accuracy of `predict`: the share of correct labels.

        `scores` has the AUC of each class.
        """
        del y
        if not isinstance(X, Annotations):
            raise TypeError("score needs Annotations, read with nominal=.")
        self._check_classes(X)
        return float((self.predict_proba(X).argmax(axis=1) == label_codes(X)).mean())

    def soft_labels(self, annotations: Annotations | None = None) -> ClassShares:
        """Predict the share of users for each class of each item.

        Users who labelled an item count by their label (or the mean of several), other users by
        predicted probabilities. With more than 1,000 users, probabilities are averaged over a
        sample.

        Parameters
        ----------
        annotations : Annotations, optional
            The labels, read with ``nominal=``, and the items; by default the training data.
        """
        check_is_fitted(self)
        if annotations is None:
            annotations = self._training_labels()
        self._check_classes(annotations)
        if not annotations.has_items:
            raise ValueError("Soft labels need the item of each label. Pass items= to Annotations.")
        ids, features = annotations.distinct_items()
        n_users, n_classes = len(self.users_), len(self.classes_)
        voted, votes = self._votes(annotations, ids)
        chosen = np.arange(n_users)
        if n_users > _MOST_USERS:
            chosen = np.sort(np.random.default_rng(0).permutation(n_users)[:_MOST_USERS])
        total = np.zeros((len(ids), n_classes))
        step = max(1, _AT_ONCE // len(chosen))
        for start in range(0, len(ids), step):
            some = np.arange(start, min(start + step, len(ids)))
            item, user = np.repeat(some, len(chosen)), np.tile(chosen, len(some))
            chances = self.predict_proba(features[item], self.users_[user], ids[item])
            chances[voted[user, item]] = 0.0
            total[some] = chances.reshape(len(some), len(chosen), n_classes).sum(axis=1)
        n_votes = voted.sum(axis=0)
        # If all sampled users have labelled an item, use their labels for other users.
        mean = np.where(total.any(axis=1, keepdims=True), total, votes)
        mean = mean / np.maximum(mean.sum(axis=1, keepdims=True), _LEAST)
        shares = (votes + (n_users - n_votes)[:, None] * mean) / n_users
        return ClassShares(ids, self.classes_, n_votes, shares, annotations.frames)

    def _votes(self, annotations: Annotations, ids: IdArray) -> tuple[NDArray[np.bool_], Float]:
        """Return a mask of users and labelled items, and the sum of votes by item and class."""
        rows = _one_row_per_label(annotations)
        users = lookup(rows.user_ids, self.users_, "users")[rows.user_codes]
        items = lookup(rows.item_ids, ids, "items")[rows.item_codes]
        known = users >= 0
        users, items, codes = users[known], items[known], label_codes(annotations)[known]
        number = np.zeros((len(self.users_), len(ids)), dtype=np.int32)
        np.add.at(number, (users, items), 1)
        votes = np.zeros((len(ids), len(self.classes_)))
        np.add.at(votes, (items, codes), 1.0 / number[users, items])
        return number > 0, votes

    def _training_labels(self) -> Annotations:
        """Return the training data, joined from the rankers of all classes."""
        kept = [ranker.annotations_ for ranker in self.rankers_.values()]
        parts = [part for part in kept if part is not None]
        same = [np.array_equal(part.item_codes, parts[0].item_codes) for part in parts]
        if len(parts) < len(self.classes_) or not all(same):
            raise ValueError(
                "This model lacks its labels, or its classes were fitted to different labels. Pass "
                "annotations, read with nominal=."
            )
        codes = np.column_stack([part.labels for part in parts]).argmax(axis=1)
        reading = self.label_reading_
        first = parts[0]._with(grades=codes.astype(np.float64), reading=reading, verb=None)
        return Annotations._of(**class_sets(first))

    def _check_classes(self, annotations: Annotations) -> None:
        """Raise ValueError for labels with classes other than the model's."""
        classes = _class_codes(annotations)[0]
        if not same_words(classes.tolist(), self.classes_.tolist()):
            raise ValueError(
                f"The classes of these labels are {listing(classes)}, but those of the model are "
                f"{listing(self.classes_)}. Read the labels with nominal=list(model.classes_)."
            )

    @property
    def label_reading_(self) -> LabelReading:  # type: ignore[override]
        """The reading of labels as one of the classes."""
        return LabelReading(classes=tuple(as_plain(one) for one in self.classes_.tolist()))


@dataclass(frozen=True, eq=False)
class NominalNewcomers(AttributeNewcomers):
    """Posteriors of new users, by class; see `AttributeNewcomers`."""

    def predict_proba(self, X: ItemRows, users: Ids = None) -> Float:
        """Return the probability of each class for each row's user (default: the only user).

        As in `NominalRanker.predict_proba`.
        """
        rows = _one_row_per_label(X)
        owners = None if users is None else as_id_array(users, "users")
        chances = []
        for name in self.attributes_:
            posterior = self.posterior[name]
            score, variance = posterior.linear_predictor(*posterior._targets(rows, owners))
            chances.append(label_probability(score, np.sqrt(variance)))
        return _normalised(chances)


def label_codes(annotations: Annotations) -> Index:
    """Return the position of each label's class, in the order of labels."""
    _, codes, sets = _class_codes(annotations)
    chosen = np.flatnonzero(annotations.labels)
    return codes[chosen[np.argsort(sets[chosen], kind="stable")]]


def row_chances(annotations: Annotations, chances: Float) -> Float:
    """Return the probability of each row's class, given all labels' (n_labels, n_classes)."""
    _, codes, sets = _class_codes(annotations)
    return np.asarray(chances[np.unique(sets, return_inverse=True)[1], codes])


def _class_codes(annotations: Annotations) -> tuple[IdArray, Index, Index]:
    """Return classes, and the class and label of each row; raise if rows are missing."""
    classes, codes = annotations.attribute_ids, annotations.attribute_codes
    sets = annotations.choice_set_codes
    if not annotations.is_nominal or classes is None or codes is None or sets is None:
        raise TypeError(
            "These labels are not nominal. Read classes with nominal=True, and use "
            "HierarchicalRanker for yes-no labels and grades."
        )
    if len(annotations) != len(classes) * len(np.unique(sets)):
        raise ValueError(
            f"Each label needs a row for each of the {len(classes)} classes, but some rows are "
            "missing. Select whole labels, as split_within_users and of_users do."
        )
    return classes, codes, sets


def _one_row_per_label(X: ItemRows) -> Any:
    """Return the first row of each nominal label, in order; return other inputs unchanged."""
    if not isinstance(X, Annotations) or not X.is_nominal:
        return X
    first = np.unique(_class_codes(X)[2], return_index=True)[1]
    return X[first]._with(
        attribute_ids=None, attribute_codes=None, choice_set_codes=None, reading=None
    )


def _normalised(chances: list[Float]) -> Float:
    """Return probabilities of classes that sum to 1."""
    each = np.maximum(np.column_stack(chances), _LEAST)
    return np.asarray(each / each.sum(axis=1, keepdims=True))
