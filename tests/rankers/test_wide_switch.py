"""Which crowds are learned from without matrices of features by features."""

import numpy as np
import pytest

from likeminds import Annotations, HierarchicalRanker
from likeminds.rankers.training_data import TrainingData
from likeminds.rankers.wide_switch import WIDE, choose_width


def labels_of(n_items, n_features):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_items, n_features))
    return Annotations(np.arange(n_items) % 7, None, X[:, 0] > 0, X, features_per="row")


def width(asked, said, *, each_feature=False, matrices=False, shared=False):
    size = TrainingData.of(said).n_directions
    return choose_width(asked, size, each_feature=each_feature, matrices=matrices, shared=shared)


def test_the_width_follows_from_features_items_and_model():
    many = labels_of(WIDE + 1, WIDE + 1)
    assert width("auto", many) == (True, None)
    assert width("auto", labels_of(WIDE + 1, WIDE)) == (False, None)
    assert width("auto", labels_of(WIDE, WIDE + 1)) == (False, None)
    assert width("auto", many, shared=True) == (False, None)
    assert width(False, many) == (False, None)
    assert width("auto", many, matrices=True) == (False, WIDE)
    assert width(True, many, shared=True) == (False, WIDE)
    assert width("auto", many, each_feature=True) == (False, None)


def test_wide_without_features_is_ignored():
    said = Annotations([0, 0, 1, 1], ["a", "b", "a", "b"], [1, 0, 1, 0])
    assert not HierarchicalRanker(wide=True).fit(said).wide_


@pytest.mark.parametrize("given", [{"covariance": "full"}, {"loss": "auc"}, {"standardize": False}])
def test_models_with_matrices_keep_leading_directions(given, monkeypatch):
    monkeypatch.setattr("likeminds.rankers.wide_switch.WIDE", 12)
    said = labels_of(60, 30)
    ranker = HierarchicalRanker(**{"wide": True, "covariance": "diagonal"} | given).fit(said)
    assert not ranker.wide_
    assert ranker.crowd_.coordinates.n_weights == 12
    assert ranker.coef_.shape == (7, 30)
    assert np.isfinite(ranker.decision_function(said)).all()


def test_signs_are_about_single_features():
    with pytest.raises(ValueError, match="single features"):
        HierarchicalRanker(wide=True, signs={0: 1}).fit(labels_of(20, 30))
