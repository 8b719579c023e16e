"""Check training data of rankers, record their facts, and warn.

The checks find features computed from labels, labels of one class, and too many features.

The share s_j of positive labels of an item is its true share plus chance. Features known beforehand
can only follow the true share, so their squared correlation with s_j is at most the reliability r
of s_j. r is estimated from two halves of the labels. A column that also follows chance was computed
from these labels, so each label helps to predict itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from likeminds._util.array_types import Bool, Float, IdArray, Index
from likeminds._util.checks import listing
from likeminds._util.text_format import counted
from likeminds.data.annotations import Annotations
from likeminds.data.fingerprints import fingerprint, joint_fingerprint
from likeminds.data.label_parsing import LabelReading
from likeminds.rankers.validation import check_width, find_users, joint_reading, to_annotations

if TYPE_CHECKING:
    from likeminds.rankers.ranker import Ranker

# The fewest items with at least two labels for a test, and the most used.
_FEWEST, _MOST = 50, 20_000
# If chance has a smaller part in the shares than this, there is no warning.
_LEAST_CHANCE = 0.1
# The share of chance that a column must follow for a warning.
_FOLLOWED = 0.5


def as_annotations(
    ranker: Ranker,
    X: ArrayLike | Annotations,
    y: ArrayLike | None = None,
    users: Iterable[Hashable] | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    choice_sets: Iterable[Hashable] | None = None,
    reset: bool = True,
) -> Annotations:
    """Check the caller's input; ``reset`` records, or compare with them."""
    if isinstance(X, Annotations):
        refuse_extras(y=y, users=users, sample_weight=sample_weight, choice_sets=choice_sets)
        return _take_annotations(ranker, X, reset=reset)
    if reset:
        _forget_training(ranker)
    annotations = to_annotations(
        ranker, X, y, users, sample_weight, choice_sets=choice_sets, reset=reset
    )
    if reset:
        ranker.n_labels_, ranker.n_choices_ = len(annotations), annotations.n_choices
    return annotations


def _forget_training(ranker: Ranker) -> None:
    """Delete attributes of an earlier fit, or of a file, that a new fit does not set."""
    if "_unread" in ranker.__dict__:
        ranker._read_all()
    for stale in ("fingerprint_", "cached_schools_"):
        ranker.__dict__.pop(stale, None)


def record_training(
    ranker: Ranker,
    feature_names: Sequence[str],
    reading: LabelReading | None,
    verb: str | None = None,
    *,
    n_labels: int,
    n_choices: int = 0,
) -> None:
    """Set the attributes that describe a ranker's training data, before the fit."""
    _forget_training(ranker)
    if not ranker._needs_no_features and not feature_names:
        raise ValueError(
            f"{type(ranker).__name__} ranks items by features, but these annotations have none. "
            "Pass features= to Annotations, or fit a HierarchicalRanker, which learns item effects "
            "and factors from labels."
        )
    ranker.fitted_on_annotations_ = True
    ranker.verb_ = verb or ("choose" if n_choices else None)
    ranker.label_reading_, ranker.n_features_in_ = reading, len(feature_names)
    ranker.feature_names_in_ = np.array(feature_names, dtype=object)
    ranker.feature_names_ = ranker.feature_names_in_
    ranker.classes_ = np.array([False, True])
    ranker.n_labels_, ranker.n_choices_ = n_labels, n_choices


def _take_annotations(ranker: Ranker, annotations: Annotations, *, reset: bool) -> Annotations:
    attributes = annotations.attribute_ids
    if attributes is not None and len(attributes) > 1:
        raise ValueError(
            f"A ranker learns one attribute, but there are {len(attributes)}: "
            f"{listing(attributes)}. Choose one with annotations.of_attribute(...), or fit an "
            "AttributeModel (for nominal labels, a NominalRanker)."
        )
    if not reset:
        check_width(ranker, annotations)
        joint_reading(ranker, annotations)
        return annotations.written_as(ranker.users_)
    record_training(
        ranker,
        annotations.feature_names,
        annotations.reading,
        annotations.verb,
        n_labels=len(annotations),
        n_choices=annotations.n_choices,
    )
    warn_of_popularity(annotations)
    return annotations


def record_update(ranker: Ranker, more: Annotations) -> None:
    """Update the records of the training data (older files lack some)."""
    if ranker.n_labels_ is not None:
        ranker.n_labels_ += len(more)
    if ranker.n_choices_ is not None:
        ranker.n_choices_ += more.n_choices
    ranker.label_reading_ = joint_reading(ranker, more)
    if ranker.fingerprint_ is not None:
        ranker.fingerprint_ = joint_fingerprint(ranker.fingerprint_, fingerprint(more))


def refuse_second_medians(ranker: Ranker, more: Annotations) -> None:
    """Raise ValueError for median-split ratings of known users, whose medians would change."""
    reading = ranker.label_reading_
    if reading is None or reading.threshold != "median":
        return
    known = more.user_ids[find_users(ranker, more.user_ids) >= 0]
    if known.size:
        raise ValueError(
            "Labels were read as ratings above the user's median, which changes with more "
            f"ratings, so ratings of {listing(known)} cannot be added. Fit all ratings at once."
        )


def refuse_extras(**arguments: object) -> None:
    """Raise ValueError if labels, users or weights are passed together with annotations."""
    given = [name for name, value in arguments.items() if value is not None]
    if given:
        raise ValueError(
            f"Annotations include labels, users and weights. Leave out {listing(given)}."
        )


def warn_of_popularity(annotations: Annotations, stacklevel: int = 4) -> None:
    """Warn of features that equal, or nearly equal, items' shares of positive labels."""
    found = popularity_columns(annotations)
    if found:
        warnings.warn(
            f"{listing(found)} seems to be computed from these labels, because it follows items' "
            "shares of positive labels too closely. Each label then helps to predict itself, and "
            "held-out scores are too high. Leave it out; HierarchicalRanker learns item effects.",
            UserWarning,
            stacklevel=stacklevel,
        )


def popularity_columns(annotations: Annotations) -> list[str]:
    """Return the names of features that follow shares of positive labels, including chance.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> item = rng.integers(100, size=600)
    >>> yes = rng.random(600) < 0.5
    >>> share = np.bincount(item, yes, 100) / np.maximum(np.bincount(item, minlength=100), 1)
    >>> X = np.column_stack([share, rng.normal(size=100)])
    >>> annotations = Annotations(rng.integers(30, size=600), item, yes, X, features_per="item")
    >>> popularity_columns(annotations)
    ['x0']
    """
    if not annotations.has_items or not annotations.n_features:
        return []
    rng = np.random.default_rng(0)
    count = np.bincount(annotations.item_codes, minlength=annotations.n_items)
    items = np.flatnonzero(count >= 2)
    if len(items) > _MOST:
        items = np.sort(rng.choice(items, _MOST, replace=False))
    if len(items) < _FEWEST:
        return []
    share = (
        np.bincount(annotations.item_codes, annotations.labels, annotations.n_items)[items]
        / count[items]
    )
    reliable = _reliability(annotations, items, rng)
    if reliable > 1.0 - _LEAST_CHANCE or not share.std():
        return []
    features, constant = _features(annotations, items)
    explained = _correlations(features, share) ** 2
    suspect = constant & (explained > reliable + _FOLLOWED * (1.0 - reliable))
    return [annotations.feature_names[j] for j in np.flatnonzero(suspect).tolist()]


def _reliability(annotations: Annotations, items: Index, rng: np.random.Generator) -> float:
    """Return the split-half reliability of shares (Spearman and Brown)."""
    order = rng.permutation(len(annotations))
    codes, labels = annotations.item_codes[order], annotations.labels[order]
    by_item = np.argsort(codes, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=annotations.n_items))])
    place = np.arange(len(codes)) - starts[codes[by_item]]
    shares = []
    for half in (0, 1):
        mine = by_item[place % 2 == half]
        total = np.bincount(codes[mine], minlength=annotations.n_items)[items]
        shares.append(np.bincount(codes[mine], labels[mine], annotations.n_items)[items] / total)
    if not shares[0].std() or not shares[1].std():
        return 0.0
    halves = max(float(np.corrcoef(shares[0], shares[1])[0, 1]), 0.0)
    return 2.0 * halves / (1.0 + halves)


def _features(annotations: Annotations, items: Index) -> tuple[Float, Bool]:
    """Return the features of items, and whether each is the same in all rows of an item.

    Leave-one-out shares differ between the rows of an item.
    """
    if annotations.features_per == "item":
        features = np.asarray(annotations.features[items], dtype=np.float64)
        return features, np.ones(annotations.n_features, dtype=np.bool_)
    _, first = np.unique(annotations.item_codes, return_index=True)
    row_of = np.zeros(annotations.n_items, dtype=np.intp)
    row_of[annotations.item_codes[first]] = annotations.feature_rows[first]
    same = (
        annotations.features[annotations.feature_rows]
        == annotations.features[row_of[annotations.item_codes]]
    )
    features = np.asarray(annotations.features[row_of[items]], dtype=np.float64)
    return features, np.asarray(same.all(axis=0))


def _correlations(features: Float, share: Float) -> Float:
    centred = features - features.mean(axis=0)
    deviation = share - share.mean()
    size = np.sqrt((centred**2).sum(axis=0) * (deviation @ deviation))
    return np.asarray(deviation @ centred / np.where(size > 0, size, np.inf))


# The most bytes of a matrix of features x features; solvers have several.
_MATRIX_BYTES = 1 << 31
# More features give a warning; and the approximate number of matrices of solvers.
_MANY, _MATRICES = 1024, 8


def refuse_too_wide(ranker: str, n_features: int) -> None:
    """Warn of large matrices of features x features; raise if they do not fit in memory."""
    needed = 8 * n_features**2
    how = (
        "Reduce the features first (likeminds.features.Reduce), or use HierarchicalRanker, which "
        "works in the space of the labels."
    )
    if needed > _MATRIX_BYTES:
        raise ValueError(
            f"{ranker} needs matrices of features x features, and with {n_features} features one "
            f"takes {needed / (1 << 30):.0f} GiB. {how}"
        )
    if n_features > _MANY:
        warnings.warn(
            f"{ranker} needs matrices of features x features. With {n_features:,} features, they "
            f"take about {_MATRICES * needed / (1 << 30):.1f} GiB, and steps are slow. {how}",
            UserWarning,
            stacklevel=6,
        )


def warn_of_one_class(user_ids: IdArray, has_pairs: Bool) -> None:
    """Warn of users with labels of one class; raise if no user has both classes."""
    if not has_pairs.any():
        raise ValueError(
            "The labels of each user are of one class, so there are no pairs to rank. Pass at "
            "least one user with a positive and a negative label."
        )
    if not has_pairs.all():
        users = user_ids[~has_pairs]
        warnings.warn(
            f"The labels of {counted(len(users), 'user')} are of one class only, so these users "
            f"get the consensus: {listing(users)}.",
            UserWarning,
            stacklevel=5,
        )
