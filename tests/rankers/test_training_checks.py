"""Columns computed from the labels, too many features, and the switch to the space of rows."""

import warnings

import numpy as np
import pytest

from likeminds import Annotations, HierarchicalRanker, load_electricity
from likeminds.mixed_model.losses import PRIOR_LOSSES
from likeminds.rankers.hierarchical_fit import WIDE, choose_width
from likeminds.rankers.training_checks import (
    popularity_columns,
    refuse_too_wide,
)
from likeminds.rankers.training_data import TrainingData


def crowd(seed=0, n_users=60, n_items=150, shown=0.1, quality=1.0):
    rng = np.random.default_rng(seed)
    liked = rng.normal(0, quality, n_items)
    person, item = np.nonzero(rng.random((n_users, n_items)) < shown)
    labels = rng.logistic(size=len(item)) < liked[item]
    return rng, liked, person, item, labels


def share_of(item, labels, n_items, pull=0.0):
    count = np.bincount(item, minlength=n_items)
    return (np.bincount(item, labels, n_items) + 0.5 * pull) / np.maximum(count + pull, 1)


@pytest.mark.parametrize("pull", [0.0, 2.0])
@pytest.mark.parametrize("shown", [0.05, 0.2])
def test_the_share_of_positive_labels_is_found(shown, pull):
    rng, _, person, item, labels = crowd(shown=shown)
    share = share_of(item, labels, 150, pull)
    X = np.column_stack([rng.normal(size=150), share, -share])
    said = Annotations(person, item, labels, X, feature_names=["size", "liked", "hated"],
                       features_per="item")  # fmt: skip
    assert popularity_columns(said) == ["liked", "hated"]
    by_row = Annotations(person, item, labels, X[item], features_per="row")
    assert popularity_columns(by_row) == ["x1", "x2"]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("shown", [0.05, 0.2, 0.6])
def test_the_true_quality_of_items_is_no_leak(seed, shown):
    rng, liked, person, item, labels = crowd(seed, shown=shown, quality=2.0)
    # Shares of another crowd that judged the same items are honest, too.
    others = rng.binomial(40, 1 / (1 + np.exp(-liked))) / 40
    X = np.column_stack([liked, 1 / (1 + np.exp(-liked)), others, rng.normal(size=150)])
    said = Annotations(person, item, labels, X, features_per="item")
    assert popularity_columns(said) == []


def test_what_leaves_out_the_own_label_is_no_leak():
    _, _, person, item, labels = crowd()
    count, total = np.bincount(item, minlength=150), np.bincount(item, labels, 150)
    others = (total[item] - labels + 0.5) / count[item]
    said = Annotations(person, item, labels, others[:, None], features_per="row")
    assert popularity_columns(said) == []


def test_fit_warns_of_it_and_of_nothing_else():
    rng, _, person, item, labels = crowd()
    leaking = np.column_stack([share_of(item, labels, 150), rng.normal(size=150)])
    said = Annotations(person, item, labels, leaking, features_per="item")
    ranker = HierarchicalRanker(n_groups=0, n_item_factors=0)
    with pytest.warns(UserWarning, match="x0"):
        ranker.fit(said)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ranker.fit(Annotations(person, item, labels, leaking[:, 1:], features_per="item"))
    assert popularity_columns(load_electricity()) == []


def labels_of(n_items, n_features):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_items, n_features))
    return Annotations(np.arange(n_items) % 7, None, X[:, 0] > 0, X, features_per="row")


def width(asked, said, *, has_items=False, **given):
    ranker = HierarchicalRanker(wide=asked, **given)
    ranker.feature_names_ = np.array(said.feature_names, dtype=object)
    data = TrainingData.of(said)
    return choose_width(ranker, PRIOR_LOSSES["logistic"], data, has_items=has_items)


def test_the_width_follows_from_features_items_and_model():
    many = labels_of(WIDE + 1, WIDE + 1)
    assert width("auto", many) == (True, None)
    assert width("auto", labels_of(WIDE + 1, WIDE)) == (False, None)
    assert width("auto", labels_of(WIDE, WIDE + 1)) == (False, None)
    assert width("auto", many, has_items=True) == (False, None)
    assert width(False, many) == (False, None)
    assert width("auto", many, covariance="full") == (False, WIDE)
    assert width(True, many, has_items=True) == (False, WIDE)
    assert width("auto", many, draws=10) == (False, None)


def test_wide_without_features_is_ignored():
    said = Annotations([0, 0, 1, 1], ["a", "b", "a", "b"], [1, 0, 1, 0])
    assert not HierarchicalRanker(wide=True).fit(said).wide_


@pytest.mark.parametrize("given", [{"covariance": "full"}, {"loss": "auc"}, {"standardize": False}])
def test_models_with_matrices_keep_leading_directions(given, monkeypatch):
    monkeypatch.setattr("likeminds.rankers.hierarchical_fit.WIDE", 12)
    said = labels_of(60, 30)
    ranker = HierarchicalRanker(**{"wide": True, "covariance": "diagonal"} | given).fit(said)
    assert not ranker.wide_
    assert ranker.prior_.design.n_weights == 12
    assert ranker.coef_.shape == (7, 30)
    assert np.isfinite(ranker.decision_function(said)).all()


def test_the_papers_ranker_says_what_wide_features_take():
    with pytest.warns(UserWarning, match="GiB"):
        refuse_too_wide("ThreeLevelRanker", 2000)
    with pytest.raises(ValueError):
        refuse_too_wide("ThreeLevelRanker", 20_000)
