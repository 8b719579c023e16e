"""Probabilities of choices, given what is known of people."""

import numpy as np
import pytest
from scipy.special import softmax

from likeminds import Annotations, HierarchicalRanker, load_electricity
from likeminds.mixed_model.choice_probabilities import chances_of_sets


@pytest.fixture(scope="module")
def ranker():
    homes = load_electricity()
    return HierarchicalRanker(n_groups=1, tol=1e-3).fit(homes.of_users(homes.user_ids[:60]))


def test_of_pairs_they_are_the_chance_of_being_preferred(ranker):
    homes = load_electricity().of_user("household-001")
    said = Annotations.from_comparisons(
        ["household-001"] * 6, range(6), range(6, 12), features=homes.X[:12]
    )
    positions = np.zeros(len(said), dtype=int)
    chances = chances_of_sets(ranker._posterior(), said, ranker.decision_function(said), positions)
    users = ["household-001"] * 6
    expected = ranker.probability_preferred(homes.X[:6], homes.X[6:12], users)
    np.testing.assert_allclose(chances[said.labels], expected)
    np.testing.assert_allclose(chances[said.labels] + chances[~said.labels], 1.0)


def test_of_sets_they_are_near_the_mean_over_the_posterior(ranker):
    homes = load_electricity().of_users(ranker.users_[:2])
    posterior = ranker._posterior()
    users = homes.user_codes
    chances = chances_of_sets(posterior, homes, ranker.decision_function(homes), users)
    rows = posterior.prediction_rows(homes.X).rows
    rng = np.random.default_rng(0)
    for group in range(homes.choice_set_codes.max() + 1):
        mine = homes.choice_set_codes == group
        person = users[mine][0]
        draws = rng.multivariate_normal(
            posterior.points[person], posterior.covariance(person), 4000
        )
        expected = softmax(rows[mine] @ draws.T, axis=0).mean(axis=1)
        np.testing.assert_allclose(chances[mine], expected, atol=0.06)
        np.testing.assert_allclose(chances[mine].sum(), 1.0)


def test_regressions_have_none(ranker):
    homes = load_electricity()[:80]
    simple = HierarchicalRanker(n_groups=1, loss="auc").fit(load_electricity()[:800])
    assert chances_of_sets(simple._posterior(), homes, homes.X[:, 0], homes.user_codes) is None
