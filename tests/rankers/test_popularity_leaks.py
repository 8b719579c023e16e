"""A column computed from the labels is found; what was known beforehand is not suspected."""

import warnings

import numpy as np
import pytest

from likeminds import Annotations, HierarchicalRanker, load_electricity
from likeminds.rankers.popularity_leaks import popularity_columns


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
