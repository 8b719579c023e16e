"""Arrays that a caller passes to a ranker, checked: labels, columns, names of features."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from os import PathLike, fspath
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from likeminds._util.array_types import Bool, FloatArray, IdArray
from likeminds._util.checks import listing
from likeminds.data.annotations import Annotations
from likeminds.data.column_roles import usual_columns
from likeminds.data.grades import read_answers
from likeminds.data.identifiers import encode
from likeminds.data.label_parsing import LabelReading


class RemoteAnnotations(ABC):
    """A crowd whose rows are not in this process: it teaches rankers itself."""

    @abstractmethod
    def teach(self, ranker: Any) -> None:
        """Fit a ranker, whose parameters were checked, to this crowd."""

    @abstractmethod
    def score(self, ranker: Any) -> float:
        """Return the mean over these people of the AUC of their rows, by a fitted ranker."""

    @abstractmethod
    def newcomers(self, ranker: Any) -> Any:
        """Return the posteriors of these people, as of ones whom a fitted ranker does not know."""


def check_labels(y: ArrayLike) -> NDArray[Any]:
    """Check labels as scikit-learn does; say in which rows the bad ones are."""
    labels = column_or_1d(y, warn=True)
    if labels.dtype.kind == "f":
        bad = np.flatnonzero(~np.isfinite(labels))
        if bad.size:
            what = (
                "NaN"
                if np.isnan(labels[bad]).any()
                else f"infinity or a value too large for {labels.dtype!r}"
            )
            raise ValueError(f"Input y contains {what}. It is in row(s) {listing(bad)}.")
    return np.asarray(labels)


def are_grades(y: ArrayLike) -> bool:
    """Say whether labels are grades: more than two numbers."""
    labels = check_labels(y)
    return labels.dtype.kind in "iuf" and read_answers(labels).grades is not None


def two_classes(labels: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct labels; refuse more than two."""
    if labels.dtype.kind in "biu":  # no sort, as scikit-learn's checks take several
        _, classes = encode(labels, "y")
        if len(classes) <= 2:
            return classes
    check_classification_targets(labels)
    classes = np.unique(labels)
    if len(classes) > 2:
        raise ValueError(
            "Only binary classification is supported: a ranker needs labels of two classes, "
            f"but y has {len(classes)}: {listing(classes)}. If they are grades, say with users= "
            "who gave them, or pass Annotations."
        )
    return np.asarray(classes)


def are_positive(labels: NDArray[Any], classes: NDArray[Any]) -> Bool:
    """Return which labels are the larger of two classes; refuse others."""
    positive = np.asarray(labels == classes[-1])
    if (positive | (labels == classes[0])).all():
        return positive
    strange = np.setdiff1d(labels, classes)
    if len(strange):
        raise ValueError(
            f"y has labels not seen in training: {listing(strange)}; seen were {listing(classes)}."
        )
    return positive


def warn_of_nobody(owners: object, *, fitting: bool) -> None:
    """Say that all rows are taken for one person's where nobody says whose they are."""
    if fitting and owners is None:
        warnings.warn(
            "Nobody says who gave the labels, so that all of them are taken for one person's: pass "
            "users=, or name a column of X with user_column=. In a pipeline or a search, enable "
            "scikit-learn's metadata routing and call set_fit_request(users=True).",
            UserWarning,
            stacklevel=5,
        )


def refuse_unread(X: object) -> None:
    """Refuse what has to be read first: the name of a file, or a frame on a cluster."""
    if isinstance(X, str | PathLike):
        raise TypeError(
            f"{fspath(X)} is the name of something that has to be read first: "
            "Annotations.from_source(file), AnnotationFolder(folder) where labels do not fit in "
            "memory, or likeminds.cluster.Shards.from_folder(folder, client, features)."
        )
    if hasattr(X, "__dask_graph__"):
        raise TypeError(
            "Rows on a Dask cluster are brought together by person first: fit to "
            "likeminds.cluster.Shards.from_frame(frame, client, features)."
        )


def how_to_fit(X: object) -> str:
    """Say how to pass a table of labels, or a matrix of users by items, which X is not."""
    columns = [str(name) for name in getattr(X, "columns", ())]
    if usual_columns("user", columns) or usual_columns("label", columns):
        return (
            " A table with users, items and labels is read by Annotations.from_frame(frame): fit "
            "to what it returns."
        )
    return (
        " X has the features of one item per row. Ids of items are not features, and a matrix of "
        "users by items has to be one row per label: pass Annotations(users=, items=, labels=)."
    )


def refuse_extras(**arguments: object) -> None:
    """Refuse labels, people or weights beside annotations, which carry their own."""
    given = [name for name, value in arguments.items() if value is not None]
    if given:
        raise ValueError(
            f"Annotations carry their own labels, people and weights: leave out {listing(given)}."
        )


def outcomes(
    y: ArrayLike | None,
    length: int,
    classes: NDArray[Any],
    grading: LabelReading | None = None,
) -> Bool | FloatArray:
    """Return which labels are positive; or the grades, where labels were read as such."""
    if y is None:
        raise ValueError("score needs the labels y.")
    labels = check_labels(y)
    if len(labels) != length:
        raise ValueError(f"y has {len(labels)} entries, but X has {length} rows.")
    if grading is not None:
        return np.asarray(read_answers(labels, known=grading).grades)
    return are_positive(labels, classes)


def refuse_no_features(annotations: Annotations, ranker: str) -> None:
    """Refuse annotations without features."""
    if not annotations.n_features:
        raise ValueError(
            f"{ranker} ranks items by their features, but these annotations have none: pass "
            "features= with them, or fit a HierarchicalRanker, which learns what items are like "
            "from the people who judge them."
        )


def refuse_attributes(annotations: Annotations) -> None:
    """Refuse annotations about several attributes."""
    if annotations.attribute_ids is not None and len(annotations.attribute_ids) > 1:
        raise ValueError(
            f"A ranker learns one attribute at a time, but there are "
            f"{len(annotations.attribute_ids)}: {listing(annotations.attribute_ids)}. "
            "Choose one with annotations.of_attribute(...)."
        )


def refuse_unknown_users(owners: Iterable[Hashable], strange: Bool) -> None:
    """Refuse people who were not seen in training."""
    if strange.any():
        names = np.unique(np.asarray(list(owners), dtype=object)[strange].astype(str))
        raise ValueError(
            f"Unknown user(s): {listing(names)}. newcomer(...) takes new users; with "
            'unknown="consensus", the ranker gives them the scores of the consensus.'
        )


def item_ids_of(X: Any, items: Iterable[Hashable] | None, n_rows: int) -> IdArray | None:
    """Return the id of each row's item, as annotations or the caller have it; None without."""
    if isinstance(X, Annotations):
        if items is not None:
            raise ValueError("Annotations carry their own items: leave out items.")
        return X.items if X.has_items else None
    if items is None:
        return None
    codes, ids = encode(items, "items")
    if len(codes) != n_rows:
        raise ValueError(f"items has {len(codes)} entries, but X has {n_rows} rows.")
    return ids[codes]


def default_names(n_features: int) -> NDArray[Any]:
    """Return the names of features that have none."""
    return np.array([f"x{i}" for i in range(n_features)], dtype=object)


def column_position(user_column: int | str, names: NDArray[Any]) -> int:
    """Return the position of the column that holds the people."""
    if isinstance(user_column, str):
        found = np.flatnonzero(names == user_column)
        if not found.size:
            raise ValueError(
                f"user_column={user_column!r} is not a column of X; there are {listing(names)}."
            )
        return int(found[0])
    if not -len(names) <= user_column < len(names):
        raise ValueError(f"user_column={user_column} is outside X's {len(names)} columns.")
    return user_column % len(names)


def as_numbers(rows: NDArray[Any]) -> FloatArray:
    """Return the rows as floating-point numbers, or say which value is none."""
    try:
        return np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"X must be numbers beside the user_column: {error}.") from error
