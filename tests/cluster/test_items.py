"""Effects of items on a cluster are what they are in one process."""

import numpy as np
import pytest

from likeminds import Annotations, HierarchicalRanker, make_schools
from sharded import QUIET, same, spread, table_of

pytestmark = [*QUIET, pytest.mark.seconds]


@pytest.fixture(scope="module")
def votes():
    """Votes without features: people differ along one direction that has to be learned."""
    rng = np.random.default_rng(0)
    shown = rng.random((60, 25)) < 0.8
    users, items = np.nonzero(shown)
    tastes, tempers = 1.5 * rng.normal(size=60), rng.normal(size=25)
    scores = tastes[users] * tempers[items] + 0.5 * rng.normal(size=25)[items]
    said = scores + rng.logistic(size=len(scores)) > 0
    return Annotations(users=[f"p{n}" for n in users], items=items, labels=said)


@pytest.fixture(scope="module")
def judged():
    return make_schools(40, 12, 30, 3, n_schools=2, contested=0.6, random_state=0).annotations


@pytest.mark.parametrize("n_shards", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_effects_of_items_are_the_same(client, judged, n_shards, monkeypatch):
    monkeypatch.setattr("likeminds.cluster.executor._ADDED_AT_ONCE", 2)
    given = {"n_groups": 1, "n_item_factors": 0}
    here = HierarchicalRanker(**given).fit(judged)
    order = np.random.default_rng(n_shards).permutation(len(judged))
    parts = [table_of(judged).take(rows) for rows in np.array_split(order, 3)]
    there = HierarchicalRanker(**given).fit(spread(judged, client, parts, n_shards=n_shards))
    same(there, here)
    assert here.item_effects_
    assert there.items_.tolist() == here.items_.tolist()
    np.testing.assert_allclose(there.item_effect_, here.item_effect_, atol=1e-6)
    np.testing.assert_allclose(there.item_effect_error_, here.item_effect_error_, atol=1e-6)
    assert there.score(judged) == pytest.approx(here.score(judged), abs=1e-9)


@pytest.mark.slow
def test_features_of_items_are_looked_for_as_in_one_process(client, votes):
    here = HierarchicalRanker().fit(votes)
    shards = spread(votes, client, n_shards=3)
    there = HierarchicalRanker().fit(shards)
    assert here.n_item_factors_ > 0
    assert there.n_item_factors_ == here.n_item_factors_
    np.testing.assert_allclose(there.item_effect_, here.item_effect_, atol=1e-6)
    np.testing.assert_allclose(there.item_factors_, here.item_factors_, atol=1e-6)
    np.testing.assert_allclose(there.factor_weights_, here.factor_weights_, atol=1e-6)


@pytest.mark.slow
def test_the_form_of_omega_is_chosen_as_in_one_process(client, judged):
    here = HierarchicalRanker(n_item_factors=0).fit(judged)
    there = HierarchicalRanker(n_item_factors=0).fit(spread(judged, client, n_shards=2))
    assert (there.covariance_, there.n_groups_) == (here.covariance_, here.n_groups_)
    same(there, here)
