"""Principal components that keep a share of the variance, of rows and of annotations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from likeminds import Annotations, ThreeLevelRanker, compare, make_schools, split_within_users
from likeminds.features import Reduce

CROWD = make_schools(12, 20, 60, 30, random_state=0).annotations


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([Reduce()])
def test_estimator(estimator, check):
    check(estimator)


@given(st.integers(2, 30), st.integers(1, 12), st.floats(0.05, 1), st.integers(0, 99))
def test_the_fewest_components_that_keep_the_share(n_rows, n_columns, share, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_columns)) * rng.exponential(size=n_columns) + 5
    reduce = Reduce(share)
    projected = reduce.fit_transform(X)
    total = ((X - X.mean(axis=0)) ** 2).sum()
    shares = np.cumsum((projected**2).sum(axis=0)) / total
    assert shares[-1] >= share - 1e-9
    assert len(shares) == 1 or shares[-2] < share + 1e-9
    np.testing.assert_allclose(np.cumsum(reduce.explained_variance_ratio_), shares)
    np.testing.assert_allclose(
        reduce.components_ @ reduce.components_.T, np.eye(len(shares)), atol=1e-9
    )
    left = ((X - reduce.inverse_transform(projected)) ** 2).sum() / total
    assert left <= 1 - share + 1e-9


def test_components_have_names():
    X = np.random.default_rng(0).standard_normal((20, 3))
    frame = Reduce(1.0).set_output(transform="pandas").fit_transform(X)
    assert list(frame.columns) == ["component_1", "component_2", "component_3"]


def test_everything_leaves_out_directions_without_variance():
    X = np.random.default_rng(0).standard_normal((20, 3))
    assert Reduce(1.0).fit(X @ np.ones((3, 7)) + 1).n_components_ == 1
    assert Reduce(1.0).fit(np.hstack([X, X])).n_components_ == 3


@pytest.mark.parametrize("share", [0, -0.1, 1.01])
def test_shares_that_are_none(share):
    with pytest.raises(ValueError):
        Reduce(share).fit(np.eye(3))


def test_equal_rows_have_nothing_to_keep():
    with pytest.raises(ValueError):
        Reduce().fit(np.full((4, 3), 0.1))


class TestAnnotations:
    def test_only_labelled_items_count_and_each_once(self):
        features = CROWD.features.copy()
        unseen = np.setdiff1d(np.arange(60), CROWD.take(np.arange(30)).item_codes)
        few = CROWD.take(np.arange(30))
        expected = Reduce(0.8).fit(features[np.unique(few.item_codes)])
        reduce = Reduce(0.8).fit(few)
        np.testing.assert_allclose(reduce.components_, expected.components_)
        np.testing.assert_allclose(reduce.mean_, expected.mean_)
        features[unseen] = 1e6  # nobody in this part saw them
        changed = few._with(features=features)
        np.testing.assert_allclose(Reduce(0.8).fit(changed).components_, expected.components_)

    def test_annotations_come_back_as_annotations(self):
        reduce = Reduce(0.8).fit(CROWD)
        reduced = reduce.transform(CROWD)
        assert isinstance(reduced, Annotations)
        assert reduced.n_features == reduce.n_components_ < 30
        assert reduced.feature_names[0] == "component_1"
        np.testing.assert_allclose(reduced.X, reduce.transform(CROWD.X))
        np.testing.assert_array_equal(reduced.labels, CROWD.labels)
        np.testing.assert_array_equal(reduced.users, CROWD.users)
        np.testing.assert_array_equal(reduced.items, CROWD.items)

    def test_in_a_pipeline_it_learns_from_training_items_only(self):
        train, test = split_within_users(CROWD, 0.3, random_state=0)
        pipeline = make_pipeline(Reduce(0.9), ThreeLevelRanker()).fit(train)
        by_hand = Reduce(0.9).fit(train)
        np.testing.assert_allclose(pipeline[0].components_, by_hand.components_)
        ranker = ThreeLevelRanker().fit(by_hand.transform(train))
        assert pipeline.score(test) == pytest.approx(ranker.score(by_hand.transform(test)))

    def test_a_comparison_takes_the_pipeline(self):
        rankers = {"reduced": make_pipeline(Reduce(0.9), ThreeLevelRanker())}
        compared = compare(CROWD, rankers, repeats=2, n_jobs=1, progress=False)
        assert "reduced" in str(compared)
