"""Popularity baselines: rank items by other users' labels, alone or with features.

Beyond features, the popularity of item j among users other than i is

    c_ij = log((k + m q) / (n - k + m (1 - q))) - log(q / (1 - q)),

where other users gave n labels, k of them positive. q is their usual share of positive labels, and
m shrinks items with few labels to zero. The design has a column with the residual,

    o_ij = c_ij - n / (n + m) z_j'g_i,

where g_i are the coefficients of a ridge regression, over items, of popularities without user i on
features z. So users' labels do not affect their own rows. The column is zero for unlabelled items.
"""

import warnings
from collections.abc import Hashable, Iterable
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from likeminds._util.array_types import Float, FloatArray, IdArray, Index
from likeminds._util.checks import listing
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import compact, lookup
from likeminds.losses import LOSSES, Loss, as_loss
from likeminds.losses.statistics import Statistics
from likeminds.mixed_model.gaussian_prior import ItemPosteriors
from likeminds.mixed_model.item_effects.item_responses import NOT_SHARED, are_shared
from likeminds.rankers.baselines.regressions import grid
from likeminds.rankers.ranker import Ranker
from likeminds.rankers.training_checks import refuse_too_wide, warn_of_one_class


# Parameters are the fields of a dataclass: see `IterativeRanker`.
@dataclass(eq=False, repr=False, kw_only=True)
class Popularity(Ranker):
    """Score items by the share of positive labels from other users.

    Users' own labels do not count in their scores, so training rows are scored like new rows. Items
    are identified by their ids or, in plain arrays, by their features. Items without labels by
    other users get the share of positive labels over all items.

    Parameters
    ----------
    unknown : {"error", "consensus"}, default="error"
        Unknown users and items raise an error, or get the share of positive labels over all users
        and items.
    user_column, verbose
        As in `ThreeLevelRanker`.

    Attributes
    ----------
    item_ids_ : array of shape (n_items,)
        The labelled items, if rows had item ids.
    items_ : array of shape (n_items, n_features)
        The features of distinct items, if rows had no ids.
    item_counts_ : array of shape (n_items, 2)
        The number (or the weight) of labels of each item, and of its positive labels.
    own_pairs_ : array of shape (n_pairs,)
        The labelled pairs, coded as user position times number of items, plus item position.
    own_counts_ : array of shape (n_pairs, 2)
        The numbers of labels, and of positive labels, of each pair.
    overall_share_ : float
        The share of positive labels over all items.
    users_, classes_
        As in `ThreeLevelRanker`.

    Examples
    --------
    >>> from likeminds import Annotations
    >>> crowd = Annotations(
    ...     users=["ann", "bob", "zoe", "ann"],
    ...     items=["cat", "cat", "cat", "dog"],
    ...     labels=[1, 1, 0, 0],
    ...     features={"cat": [1.0], "dog": [2.0]},
    ... )
    >>> Popularity().fit(crowd).decision_function(crowd)
    array([0.5, 0.5, 1. , 0.5])
    """

    unknown: str = "error"
    user_column: int | str | None = None
    verbose: bool = False

    _grid = ()  # without parameters to tune
    _needs_no_features = True

    @property
    def scores_by_weights(self) -> bool:
        """False: scores are shares of other users' labels."""
        return False

    def scorable_ids(self) -> IdArray | None:
        """Return the ids of the training items, if rows had ids."""
        return self.item_ids_

    def _item_ids(
        self, X: Any, items: Iterable[Hashable] | None, rows: FloatArray
    ) -> IdArray | None:
        """Return the id of each row's item; raise ValueError for unknown items."""
        if self.scorable_ids() is not None:
            return super()._item_ids(X, items, rows)
        new = np.flatnonzero(self._places_of_rows(rows) < 0)
        if self.unknown == "error" and len(new):
            raise ValueError(
                f"No training item has the features of row(s) {listing(new)}. Leave them out, or "
                'set unknown="consensus" to score their items as average.'
            )
        return None

    def _places_of_rows(self, rows: FloatArray) -> Index:
        """Return the positions of items by their features; -1 for unknown items."""
        position = {row: item for item, row in enumerate(_as_keys(self.items_))}
        return np.array([position.get(row, -1) for row in _as_keys(rows)], dtype=np.intp)

    def _scores(self, rows: FloatArray, users: Index, items: IdArray | None) -> Float:
        """Return the share of positive labels of each row's item from other users."""
        by_id = self.scorable_ids() is not None
        item = places_of_items(self, items) if by_id else self._places_of_rows(rows)
        counts = np.where((item >= 0)[:, None], self.item_counts_[item], 0.0)
        counts -= self._own(users, item)
        total, positive = counts.T
        # A small remainder after subtracting weights is a rounding error.
        others = total > 1e-9 * self.item_counts_[item, 0]
        return np.where(others, positive / np.where(others, total, 1.0), self.overall_share_)

    def _own(self, users: Index, item: Index) -> Float:
        """Return the numbers of users' own labels, and own positive labels, of items."""
        pair = np.where((users >= 0) & (item >= 0), users * len(self.item_counts_) + item, -1)
        place = np.searchsorted(self.own_pairs_, pair)
        place[place == len(self.own_pairs_)] = 0
        known = self.own_pairs_[place] == pair
        return np.where(known[:, None], self.own_counts_[place], 0.0)

    def _fit_annotations(self, annotations: Annotations) -> None:
        counts = label_counts(annotations)
        for name in ("items_", "item_ids_"):  # remove results of an earlier fit
            self.__dict__.pop(name, None)
        items, of_row = _items(annotations)
        known_by, n_items = "ids" if annotations.has_items else "features", len(items)
        setattr(self, "item_ids_" if annotations.has_items else "items_", items)
        pairs = annotations.user_codes * n_items + of_row
        self.own_pairs_, own = np.unique(pairs, return_inverse=True)
        if annotations.n_users > 1 and len(self.own_pairs_) == n_items:
            raise ValueError(
                f"None of the {n_items} items was labelled by two users (items are identified by "
                f"their {known_by}). Popularity needs items that several users labelled."
            )
        self.item_counts_ = sums_by(of_row, counts, n_items)
        self.own_counts_ = sums_by(own, counts, len(self.own_pairs_))
        self.overall_share_ = float(counts[:, 1].sum() / counts[:, 0].sum())
        self.users_ = annotations.user_ids


def labelled_items(annotations: Annotations, ranker: str) -> tuple[IdArray, Index]:
    """Return the ids of labelled items, and each row's position among them."""
    if not annotations.has_items:
        raise ValueError(
            f"{ranker} identifies items by their ids, which these rows lack. Pass Annotations with "
            "items=."
        )
    item, used = compact(annotations.item_codes, annotations.n_items)
    return annotations.item_ids[used], item


def places_of_items(ranker: Ranker, items: IdArray | None) -> Index:
    """Return each row's position among the ranker's ``item_ids_``; -1 for new items."""
    if items is None or ranker.item_ids_ is None:
        raise ValueError(
            f"{type(ranker).__name__} identifies items by their ids, which these rows lack. Pass "
            "Annotations with items=, or items= with the features."
        )
    return lookup(items, ranker.item_ids_, "items")


def features_of_items(annotations: Annotations, item: Index, n_items: int) -> Float:
    """Return the features of each labelled item, or their mean over its rows."""
    if annotations.features_per == "item":
        used = np.unique(annotations.item_codes)
        return np.asarray(annotations.features[used], dtype=np.float64)
    total = np.zeros((n_items, annotations.n_features))
    np.add.at(total, item, annotations.X)
    return np.asarray(total / np.bincount(item, minlength=n_items)[:, None])


def label_counts(annotations: Annotations) -> Float:
    """Return each row's weight, and its weight times label."""
    weight = np.ones(len(annotations)) if annotations.weights is None else annotations.weights
    return np.column_stack([weight, weight * annotations.labels])


def sums_by(codes: Index, values: Float, n_codes: int) -> Float:
    """Return the sums of rows of ``values`` that have the same code, shape (n_codes, k)."""
    return np.column_stack([np.bincount(codes, column, n_codes) for column in values.T])


def has_shared_items(annotations: Annotations) -> bool:
    """Return whether two users labelled the same item (by its id, or else its features)."""
    items, of_row = _items(annotations)
    return len(np.unique(annotations.user_codes * len(items) + of_row)) > len(items)


def _items(annotations: Annotations) -> tuple[IdArray, Index]:
    """Return the labelled items, by id or else features, and each row's position among them."""
    if annotations.has_items:
        return labelled_items(annotations, "Popularity")
    place, used = compact(annotations.feature_rows, len(annotations.features))
    table = np.asarray(annotations.features[used], dtype=np.float64)
    items, code = np.unique(table, axis=0, return_inverse=True)
    return items, code.ravel()[place]


def _as_keys(rows: FloatArray) -> list[bytes]:
    # Adding zero turns -0.0 into 0.0, because equal numbers must have equal bytes.
    return [row.tobytes() for row in np.asarray(rows, dtype=np.float64) + 0.0]


# The number of pseudo-labels that shrink the log-odds of items to zero: m above.
_SHRINKAGE = 2.0
# The smallest expected share of positive, or of negative, labels.
_RARE = 1e-9
# The ridge of the regression on features of unit variance. It is small, because new items lack the
# effects of features that the column absorbs.
_RIDGE = 1e-3


@dataclass(eq=False, repr=False)
class PopularityWithFeatures(Ranker):
    """One ranking for all users, by features and by other users' labels of the item.

    Labelled items are ranked by features and by the residual of other users' labels given features.
    New items are ranked by features alone.

    Parameters
    ----------
    alpha : float, default=0.01
        Ridge on the weights of features, per user.
    alpha_item : float, default=0.001
        Ridge on the weight of other users' labels, per user.
    loss, standardize, unknown, user_column, verbose
        As in `ThreeLevelRanker`.

    Attributes
    ----------
    item_weight_ : float
        The weight of other users' labels.
    known_items_ : Items
        The effect of other users' labels on the score of each item, by id.
    coef_, consensus_, users_, scale_, classes_
        As in `ThreeLevelRanker`; each row of ``coef_`` is the consensus.

    Examples
    --------
    >>> from likeminds import make_schools
    >>> crowd = make_schools(40, 30, 60, 6, 2, random_state=0).annotations
    >>> PopularityWithFeatures().fit(crowd).item_weight_ > 0
    True
    """

    alpha: float = 0.01
    _: KW_ONLY
    alpha_item: float = 0.001
    loss: str | Loss = "auc"
    standardize: bool = True
    unknown: str = "error"
    user_column: int | str | None = None
    verbose: bool = False

    _grid = grid(alpha=(1.0, 0.1, 0.01, 0.001), alpha_item=(3.0, 1.0, 0.3, 0.001))
    _needs_no_features = True
    takes_updates = True
    _nothing_to_add_to = (
        "This ranker was loaded without its training data, and more labels change the scores of "
        "all items. Save it with save(..., with_data=True), or fit all labels at once."
    )
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "alpha_item": [Interval(Real, 0, None, closed="left")],
        "loss": [StrOptions(set(LOSSES)), Loss],
    }

    def _fit_annotations(self, annotations: Annotations) -> None:
        ids, item = labelled_items(annotations, type(self).__name__)
        if not are_shared(annotations):
            warnings.warn(NOT_SHARED, UserWarning, stacklevel=5)
        popularity, column = popularities(annotations, item, len(ids))
        kind = as_loss(self.loss)
        design = annotations._with(
            features=np.column_stack([annotations.X, column]),
            feature_rows=np.arange(len(annotations)),
            feature_names=(*annotations.feature_names, "popularity"),
            features_per="row",
        )
        statistics = Statistics.from_annotations(design, graded=kind.takes_grades)
        warn_of_one_class(statistics.user_ids, statistics.has_pairs)
        refuse_too_wide(type(self).__name__, annotations.n_features)
        n_users, width = statistics.n_users, statistics.n_features
        scale = statistics.feature_scale() if self.standardize else np.ones(width)
        loss = kind.of(statistics, scale)
        matrix, slope = loss.total_matrix(), loss.linear.sum(axis=0)
        # Estimate the weight of the column alone. With features that identify items, other users'
        # labels would predict a user's own label with the wrong sign.
        curvature = float(matrix[-1, -1]) + 2.0 * self.alpha_item * n_users
        weight = float(slope[-1]) / curvature if curvature > 0 else 0.0
        ridge = 2.0 * self.alpha * n_users * np.eye(width - 1)
        theta = np.linalg.solve(matrix[:-1, :-1] + ridge, slope[:-1] - weight * matrix[:-1, -1])
        self.users_, self.annotations_, self.scale_ = annotations.user_ids, annotations, scale[:-1]
        self.item_weight_ = weight / float(scale[-1])
        self.known_items_ = replace(
            ItemPosteriors.unknown(ids, 0.0), effects=self.item_weight_ * popularity
        )
        self.consensus_ = theta / self.scale_
        self.coef_ = np.repeat(self.consensus_[None], n_users, axis=0)
        self.group_, self.personal_ = np.zeros_like(self.coef_), np.zeros_like(self.coef_)


def popularities(annotations: Annotations, item: Index, n_items: int) -> tuple[Float, Float]:
    """Return the popularity of each item, and that of each row's item among other users."""
    counts = _label_counts(annotations)
    totals = sums_by(item, counts, n_items)
    whole, trust = _log_odds(totals, totals[:, 0])
    rows, fit = _regression(features_of_items(annotations, item, n_items), trust)
    pairs, of_row = np.unique(annotations.user_codes * n_items + item, return_inverse=True)
    user, labelled = np.divmod(pairs, n_items)
    others = totals[labelled] - sums_by(of_row, counts, len(pairs))
    without, theirs = _log_odds(others, totals[labelled, 0])
    # Leaving out a user changes the popularities of this user's items, and so the fit.
    change = fit.T[labelled] * (without - whole[labelled])[:, None]
    weights = fit @ whole + sums_by(user, change, annotations.n_users)
    residual = without - theirs * np.einsum("nd,nd->n", rows[labelled], weights[user])
    return whole - trust * (rows @ (fit @ whole)), residual[of_row]


def _label_counts(annotations: Annotations) -> Float:
    """Return each row's weight alone, times its label, and times its user's share of positives."""
    counts = label_counts(annotations)
    by_user = sums_by(annotations.user_codes, counts, annotations.n_users)
    share = (1.0 + by_user[:, 1]) / (2.0 + by_user[:, 0])
    return np.column_stack([counts, counts[:, 0] * share[annotations.user_codes]])


def _log_odds(counts: Float, weight: Float) -> tuple[Float, Float]:
    """Return c and n / (n + m), given n, k, expected k, and the weight of the item's labels."""
    total, positive, expected = np.maximum(counts, 0.0).T
    # A small remainder after subtracting weights is a rounding error.
    some = total > 1e-9 * weight
    usual = np.where(some, expected, 0.5) / np.where(some, total, 1.0)
    usual = np.clip(usual, _RARE, 1.0 - _RARE)
    positive = np.minimum(positive, total)
    above = (positive + _SHRINKAGE * usual) / (total - positive + _SHRINKAGE * (1.0 - usual))
    odds = np.where(some, np.log(above) - np.log(usual / (1.0 - usual)), 0.0)
    return odds, np.where(some, total / (total + _SHRINKAGE), 0.0)


def _regression(features: Float, trust: Float) -> tuple[Float, Float]:
    """Return rows z, (n_items, d + 1), and the matrix from popularities to coefficients."""
    total = trust.sum()
    origin = trust @ features / total
    spread = np.sqrt(trust @ (features - origin) ** 2 / total)
    centred = (features - origin) / np.where(spread > 1e-12 * (1.0 + abs(origin)), spread, 1.0)
    matrix = centred.T @ (trust[:, None] * centred) / total + _RIDGE * np.eye(len(origin))
    slopes = np.linalg.solve(matrix, centred.T / total)
    # Features are centred, so the intercept separates.
    ones = np.ones(len(centred))
    return np.column_stack([ones, centred]), np.vstack([ones / total, slopes])
