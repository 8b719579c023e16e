"""Which crowds are learned from without matrices of features by features."""

import numpy as np
import pytest

from likeminds import Annotations, HierarchicalRanker
from likeminds.rankers.wide_switch import WIDE, choose_way, directions_of


def labels_of(n_items, n_features):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_items, n_features))
    return Annotations(np.arange(n_items) % 7, None, X[:, 0] > 0, X, features_per="row")


def test_the_way_is_chosen_by_features_and_items():
    many = WIDE + 1
    assert choose_way("auto", directions_of(labels_of(many, many)), {}, shared=False)
    assert not choose_way("auto", directions_of(labels_of(many, WIDE)), {}, shared=False)
    assert not choose_way("auto", directions_of(labels_of(WIDE, many)), {}, shared=False)
    assert not choose_way("auto", directions_of(labels_of(many, many)), {}, shared=True)
    assert not choose_way(False, directions_of(labels_of(many, many)), {}, shared=False)


def test_what_needs_matrices_says_so():
    said = labels_of(WIDE + 1, WIDE + 1)
    with pytest.raises(ValueError):
        HierarchicalRanker(wide=True, covariance="full").fit(said)
    with pytest.warns(UserWarning, match="GiB"):
        assert not choose_way("auto", directions_of(said), {'loss="auc"': True}, shared=False)
