"""Grades, and covariates of people, on a cluster as in one process."""

import numpy as np
import pytest

from likeminds import Annotations, HierarchicalRanker, ThreeLevelRanker, make_schools
from sharded import QUIET, same, spread, table_of

pytestmark = QUIET


@pytest.fixture(scope="module")
def judged():
    return make_schools(30, 10, 15, 3, n_schools=2, contested=0.6, random_state=0).annotations


@pytest.fixture(scope="module")
def graded(judged):
    rng = np.random.default_rng(0)
    stars = np.round(3 + judged.X[:, 0] + rng.normal(size=len(judged)))
    return Annotations(
        judged.users,
        judged.items,
        np.clip(stars, 1, 5),
        judged.features,
        item_ids=judged.item_ids,
        features_per="item",
    )


def scattered(said, seed=0):
    order = np.random.default_rng(seed).permutation(len(said))
    return [table_of(said).take(rows) for rows in np.array_split(order, 3)]


@pytest.mark.parametrize("loss", ["cumulative", "gaussian", "logistic", "median"])
@pytest.mark.slow
def test_every_loss_of_grades_is_the_same(client, graded, loss):
    given = {"loss": loss, "n_groups": 1, "item_effects": False, "tol": 1e-3}
    here = HierarchicalRanker(**given).fit(graded)
    shards = spread(graded, client, scattered(graded), n_shards=3)
    there = HierarchicalRanker(**given).fit(shards)
    same(there, here)
    assert there.label_reading_ == here.label_reading_
    expected = [one.predict_grades(graded).expected for one in (there, here)]
    np.testing.assert_allclose(*expected, atol=1e-6)


@pytest.mark.slow
def test_the_loss_of_grades_is_chosen_by_the_same_people(client, graded):
    given = {"n_groups": 0, "item_effects": False, "tol": 1e-3}
    here = HierarchicalRanker(**given).fit(graded)
    shards = spread(graded, client, scattered(graded), n_shards=2)
    there = HierarchicalRanker(**given).fit(shards)
    assert there.loss_ == here.loss_
    assert there.grade_scores_ == pytest.approx(here.grade_scores_, abs=1e-9)
    same(there, here)


@pytest.mark.slow
def test_grades_of_items_with_effects_are_the_same(client, graded):
    given = {"loss": "cumulative", "n_groups": 1, "n_item_factors": 1, "tol": 1e-3}
    here = HierarchicalRanker(**given).fit(graded)
    shards = spread(graded, client, n_shards=2)
    there = HierarchicalRanker(**given).fit(shards)
    same(there, here)
    np.testing.assert_allclose(there.item_effect_, here.item_effect_, atol=1e-6)


def test_words_are_grades_where_their_order_is_given(client, graded):
    words = ("awful", "bad", "fair", "good", "great")
    said = table_of(graded).set_column(
        2, "label", [[words[int(star) - 1] for star in graded.grades]]
    )
    shards = spread(graded, client, [said[:100], said[100:]], n_shards=2, grades=words)
    there = ThreeLevelRanker(loss="auc").fit(shards)
    here = ThreeLevelRanker(loss="auc").fit(graded)
    same(there, here)
    for told, call in (
        (
            r"words without an order.*is in Partition 0",
            lambda: spread(graded, client, [said[:100], said[100:]]),
        ),
        (
            "needs grades",
            lambda: HierarchicalRanker(loss="cumulative").fit(
                spread(graded, client, n_shards=2, threshold=3.0)
            ),
        ),
    ):
        with pytest.raises(ValueError, match=told):
            call()


@pytest.fixture(scope="module")
def users(judged):
    kinds = {
        who: {"age": float(n % 7), "town": "AB"[n % 2]} for n, who in enumerate(judged.user_ids)
    }
    kinds.pop(judged.user_ids[3])  # of one, nothing is known
    return kinds


@pytest.mark.slow
@pytest.mark.parametrize("item_effects", [False, True])
def test_covariates_of_people_are_the_same(client, judged, users, item_effects):
    given = {"n_groups": 1, "item_effects": item_effects, "n_item_factors": 0, "tol": 1e-3}
    here = HierarchicalRanker(**given).fit(judged.with_user_features(users))
    shards = spread(judged, client, scattered(judged), n_shards=3, user_features=users)
    there = HierarchicalRanker(**given).fit(shards)
    same(there, here)
    np.testing.assert_allclose(
        there.prior_.covariate_effects.slopes, here.prior_.covariate_effects.slopes, atol=1e-6
    )
    np.testing.assert_allclose(there.standard_error(judged), here.standard_error(judged), atol=1e-5)
