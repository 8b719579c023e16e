"""Probabilities of choices, given what is known of people."""

import numpy as np
import pytest
from scipy.special import softmax

from likeminds import Annotations, HierarchicalRanker, load_electricity
from likeminds.mixed_model.choice_probabilities import calibrate_choices, chances_of_sets
from likeminds.mixed_model.likelihoods import VARIANCE_SCALES


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
    expected = ranker.user_posterior(users[0]).probability_preferred(homes.X[:6], homes.X[6:12])
    np.testing.assert_allclose(chances[said.labels], expected)
    np.testing.assert_allclose(chances[said.labels] + chances[~said.labels], 1.0)


def test_of_pairs_of_known_users_and_items_they_have_the_learned_scale():
    rng = np.random.default_rng(0)
    users = [f"u{i:02}" for i in np.repeat(np.arange(20), 15)]
    items = np.array([rng.choice(8, 2, replace=False) for _ in users])
    ahead = rng.normal(size=8)[items] @ [1.0, -1.0] > rng.logistic(size=len(users))
    winners, losers = np.where(ahead[:, None], items, items[:, ::-1]).T
    said = Annotations.from_comparisons(users, winners, losers)
    ranker = HierarchicalRanker(n_item_factors=0).fit(said)
    ranker.variance_scale_ = 0.4
    won, lost = said[said.labels], said[~said.labels]
    found = ranker.probability_preferred(won, lost, won.users)
    np.testing.assert_allclose(found, ranker.predict_proba(said)[said.labels, 1])
    whole = ranker._posterior().probability_preferred(won, lost, won.users)
    assert np.abs(found - whole).max() > 0.002


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


def test_scale_maximises_the_likelihood_of_held_out_choices(ranker):
    homes = load_electricity().of_users(ranker.users_[8:14])
    likely = np.zeros(len(VARIANCE_SCALES))
    number = 0
    held_out = {}
    for user in homes.user_ids:
        for one in np.unique(homes.choice_set_codes[homes.users == user]):
            held_out.setdefault((user, number % 5), []).append(one)
            number += 1
    for (user, _), sets in held_out.items():
        out = np.isin(homes.choice_set_codes, sets)
        posterior = ranker.newcomer(homes[~out & (homes.users == user)])
        covariance = posterior.covariance(0)
        for one in sets:
            test = homes[homes.choice_set_codes == one]
            rows = posterior.prediction_rows(test.X).rows
            apart = rows[None] - rows[:, None]
            variance = np.einsum("abp,pq,abq->ab", apart, covariance, apart)
            for k, scale in enumerate(VARIANCE_SCALES):
                damped = apart @ posterior.points[0] / np.sqrt(1 + np.pi / 8 * scale * variance)
                chances = 1.0 / np.exp(damped).sum(axis=1)
                likely[k] += np.log(chances[test.labels][0] / chances.sum())
    best = VARIANCE_SCALES[np.argmax(likely)]
    shuffled = homes[np.random.default_rng(0).permutation(len(homes))]
    assert calibrate_choices(ranker.newcomer, shuffled) == pytest.approx(best)
    assert 0.0 < best < 1.0


def test_scale_is_one_if_users_have_one_choice_each(ranker):
    homes = load_electricity().of_users(ranker.users_[:12])
    _, first = np.unique(homes.user_codes, return_index=True)
    once = homes[np.isin(homes.choice_set_codes, homes.choice_set_codes[first])]
    assert calibrate_choices(ranker.newcomer, once) == 1.0
