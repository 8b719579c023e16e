"""One ranking for all users, by features and by popularity beyond features.

The popularity of item j among users other than i is

    c_ij = log((k + m q) / (n - k + m (1 - q))) - log(q / (1 - q)),

where others gave n labels, k of them positive, q is their usual share of positive labels, and m
shrinks items with few labels to zero. The column of the design is its residual,

    o_ij = c_ij - n / (n + m) z_j'g_i,

with g_i the ridge regression, over items, of the popularities without user i on the features z:
a user's labels do not affect their own rows. The column is zero for unlabelled items.
"""

import warnings
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from likeminds._util.array_types import Float, Index
from likeminds.data.annotations import Annotations
from likeminds.losses import LOSSES, Loss, as_loss
from likeminds.losses.statistics import Statistics
from likeminds.mixed_model.item_effects.item_responses import NOT_SHARED, are_shared
from likeminds.mixed_model.item_posteriors import ItemPosteriors
from likeminds.rankers.baselines.popularity import features_of_items, labelled_items, sums_by
from likeminds.rankers.baselines.ridge import grid
from likeminds.rankers.ranker import Ranker
from likeminds.rankers.training_checks import refuse_too_wide, warn_of_one_class

# Pseudo-labels that shrink the log-odds of each item to zero: m above.
_SHRINKAGE = 2.0
# The smallest share of labels that is expected to be positive, or to be negative.
_RARE = 1e-9
# Ridge of the regression on features of unit variance. It is small: the effect of features that
# the column absorbs is missing for new items.
_RIDGE = 1e-3


@dataclass(eq=False, repr=False)
class PopularityWithFeatures(Ranker):
    """One ranking for all users, by features and by others' labels of the same item.

    Labelled items are ranked by features and by the labels of others, beyond the prediction from
    features. New items are ranked by features alone.

    Parameters
    ----------
    alpha : float, default=0.01
        Ridge on the weights of features, per user.
    alpha_item : float, default=0.001
        Ridge on the weight of others' labels, per user.
    loss, standardize, unknown, user_column, verbose
        As in `ThreeLevelRanker`.

    Attributes
    ----------
    item_weight_ : float
        The weight of others' labels.
    known_items_ : Items
        The effect on the score of each item, by id.
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

    _needs_no_features = True
    takes_updates = True
    _learned_from: ClassVar[str] = "annotations_"
    _nothing_to_add_to = (
        "This ranker was read from a file without its training data, and more labels change the "
        "scores of all items. Save it with save(..., with_data=True), or fit all labels at once."
    )
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "alpha_item": [Interval(Real, 0, None, closed="left")],
        "loss": [StrOptions(set(LOSSES)), Loss],
        "standardize": ["boolean"],
        "unknown": [StrOptions({"consensus", "error"})],
        "user_column": [Integral, str, None],
        "verbose": ["boolean"],
    }

    def _fit_more(self, more: Annotations) -> None:
        assert self.annotations_ is not None
        self._fit_annotations(self.annotations_.concat(more))

    def _fit_annotations(self, annotations: Annotations) -> None:
        ids, item = labelled_items(annotations, type(self).__name__)
        if not are_shared(annotations):
            warnings.warn(NOT_SHARED, UserWarning, stacklevel=5)
        popularity, column = popularities(annotations, item, len(ids))
        kind = as_loss(self.loss)
        statistics = Statistics.from_annotations(
            _with_column(annotations, column), graded=kind.takes_grades
        )
        warn_of_one_class(statistics.user_ids, statistics.has_pairs)
        refuse_too_wide(type(self).__name__, annotations.n_features)
        n_users, width = statistics.n_users, statistics.n_features
        scale = statistics.feature_scale() if self.standardize else np.ones(width)
        loss = kind.of(statistics, scale)
        matrix, slope = loss.total_matrix(), loss.linear.sum(axis=0)
        # The weight of the column is estimated alone: given features that identify items, others'
        # labels would predict one's own label with the wrong sign.
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

    def _default_grid(self, statistics: Statistics) -> list[dict[str, Any]]:  # noqa: ARG002
        return grid(alpha=(1.0, 0.1, 0.01, 0.001), alpha_item=(3.0, 1.0, 0.3, 0.001))


def popularities(annotations: Annotations, item: Index, n_items: int) -> tuple[Float, Float]:
    """Return the popularity of each item, and that of each row's item among other users."""
    totals = sums_by(item, _label_counts(annotations), n_items)
    popularity = _Popularities(totals, features_of_items(annotations, item, n_items))
    return popularity.of_items(), popularity.among_others(annotations, item)


def _with_column(annotations: Annotations, column: Float) -> Annotations:
    return annotations._with(
        features=np.column_stack([annotations.X, column]),
        feature_rows=np.arange(len(annotations)),
        feature_names=(*annotations.feature_names, "popularity"),
        features_per="row",
    )


@dataclass(frozen=True)
class _Popularities:
    """Popularities of items: the sums of `_label_counts` by item, and features of items."""

    totals: Float
    features: Float

    @cached_property
    def _whole(self) -> tuple[Float, Float]:
        return _log_odds(self.totals, self.totals[:, 0])

    @cached_property
    def _regression(self) -> tuple[Float, Float]:
        return _regression(self.features, self._whole[1])

    def of_items(self) -> Float:
        """Return the popularity of each item, beyond its features."""
        (whole, trust), (rows, fit) = self._whole, self._regression
        return np.asarray(whole - trust * (rows @ (fit @ whole)))

    def among_others(self, annotations: Annotations, item: Index) -> Float:
        """Return the popularity of each row's item among the other users."""
        totals, (whole, _), (rows, fit) = self.totals, self._whole, self._regression
        n_items = len(totals)
        pairs, of_row = np.unique(annotations.user_codes * n_items + item, return_inverse=True)
        user, labelled = np.divmod(pairs, n_items)
        others = totals[labelled] - sums_by(of_row, _label_counts(annotations), len(pairs))
        without, theirs = _log_odds(others, totals[labelled, 0])
        # Without a user, the popularities of the items they labelled differ, and so does the fit.
        change = fit.T[labelled] * (without - whole[labelled])[:, None]
        weights = fit @ whole + sums_by(user, change, annotations.n_users)
        residual = without - theirs * np.einsum("nd,nd->n", rows[labelled], weights[user])
        return np.asarray(residual[of_row])


def _label_counts(annotations: Annotations) -> Float:
    """Return each row's weight, times its label, and times its user's share of positive labels."""
    weight = np.ones(len(annotations))
    if annotations.weights is not None:
        weight[:] = annotations.weights
    counts = np.column_stack([weight, weight * annotations.labels])
    by_user = sums_by(annotations.user_codes, counts, annotations.n_users)
    share = (1.0 + by_user[:, 1]) / (2.0 + by_user[:, 0])
    return np.column_stack([counts, weight * share[annotations.user_codes]])


def _log_odds(counts: Float, weight: Float) -> tuple[Float, Float]:
    """Return c and n / (n + m), given n, k and the expected k; zeros where there are no labels.

    ``weight`` is that of all labels of the item.
    """
    total, positive, expected = np.maximum(counts, 0.0).T
    # After the subtraction of weights, a small remainder is rounding.
    some = total > 1e-9 * weight
    usual = np.where(some, expected, 0.5) / np.where(some, total, 1.0)
    usual = np.clip(usual, _RARE, 1.0 - _RARE)
    positive = np.minimum(positive, total)
    above = (positive + _SHRINKAGE * usual) / (total - positive + _SHRINKAGE * (1.0 - usual))
    odds = np.where(some, np.log(above) - np.log(usual / (1.0 - usual)), 0.0)
    return odds, np.where(some, total / (total + _SHRINKAGE), 0.0)


def _regression(features: Float, trust: Float) -> tuple[Float, Float]:
    """Return rows z, (n_items, d + 1), and the matrix that maps popularities to coefficients."""
    total = trust.sum()
    origin = trust @ features / total
    spread = np.sqrt(trust @ (features - origin) ** 2 / total)
    centred = (features - origin) / np.where(spread > 1e-12 * (1.0 + abs(origin)), spread, 1.0)
    matrix = centred.T @ (trust[:, None] * centred) / total + _RIDGE * np.eye(len(origin))
    slopes = np.linalg.solve(matrix, centred.T / total)
    # Features are centred, so the intercept separates.
    ones = np.ones(len(centred))
    return np.column_stack([ones, centred]), np.vstack([ones / total, slopes])
