"""What choice modellers ask of a ranker: specifications, tables, willingness to pay, shares."""

import numpy as np
import pytest

from crowds import make_choices
from likeminds import Annotations, HierarchicalRanker, load, save

pytestmark = pytest.mark.seconds

MEAN = np.array([-1.0, 0.8, 0.4])
COVARIANCE = np.diag([0.3, 0.6, 0.2])


@pytest.fixture(scope="module")
def crowd():
    return make_choices(MEAN, COVARIANCE, n_users=80, n_sets=10)[0]


@pytest.fixture(scope="module")
def ranker(crowd):
    return HierarchicalRanker(covariance="diagonal", draws=100).fit(crowd)


@pytest.fixture(scope="module")
def table(ranker):
    return ranker.summary(draws=100)


def test_draws_take_the_prior_to_the_maximum(crowd, ranker):
    penalised = HierarchicalRanker(covariance="diagonal").fit(crowd)
    before, after = penalised.log_likelihood(draws=1000), ranker.log_likelihood(draws=1000)
    assert after.value > before.value - 2 * after.error
    assert ranker.converged_
    assert ranker.objective_ == pytest.approx(-after.value, abs=3.0)
    assert np.count_nonzero(np.triu(ranker.prior_.prior.covariance.round(9), 1)) == 0


def test_summary_covers_the_truth(table):
    estimates = table.estimates
    apart = np.abs(estimates.part_worths.mean - MEAN) / estimates.mean_error
    assert (apart < 4).all()
    deviation = np.sqrt(COVARIANCE.diagonal())
    apart = np.abs(estimates.part_worths.deviation - deviation) / estimates.deviation_error
    assert (apart < 4).all()
    assert (estimates.mean_error < 0.25).all()


def test_summary_is_a_table_in_every_form(table):
    assert [row["feature"] for row in table.rows] == ["price", "size", "speed"]
    assert list(table.to_pandas()["feature"]) == ["price", "size", "speed"]
    plain = table.to_dict()
    assert plain["users"] == 80
    assert plain["log_likelihood"] < 0
    assert "maximum simulated likelihood" in str(table)
    assert "<table>" in table._repr_html_()


def test_means_have_errors_that_differ_by_units(crowd, table):
    scaled = Annotations(
        crowd.users,
        None,
        crowd.labels,
        crowd.X * np.array([100.0, 1.0, 1.0]),
        choice_sets=crowd.choice_set_codes,
        feature_names=list(crowd.feature_names),
    )
    other = HierarchicalRanker(covariance="diagonal", draws=100).fit(scaled).summary(draws=100)
    assert other.rows[0]["mean"] == pytest.approx(table.rows[0]["mean"] / 100, rel=1e-3)
    assert other.rows[0]["error"] == pytest.approx(table.rows[0]["error"] / 100, rel=1e-2)


def test_correlations_are_part_of_a_full_table(crowd):
    ranker = HierarchicalRanker(covariance="full").fit(crowd)
    table = ranker.summary(draws=50)
    found = np.array([[row[name] for name in crowd.feature_names] for row in table.correlations])
    np.testing.assert_allclose(found.diagonal(), 1.0)
    covariance = ranker.prior_.prior.covariance
    assert found[0, 1] == pytest.approx(
        covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
    )
    assert len(table.correlation_errors) == 3


def test_fixed_weights_are_the_same_for_everybody(crowd, tmp_path):
    ranker = HierarchicalRanker(fixed=["size"], draws=60).fit(crowd)
    assert len(np.unique(ranker.coef_[:, 1])) == 1
    assert np.ptp(ranker.coef_[:, 0]) > 0
    assert ranker.consensus_[1] == pytest.approx(0.8, abs=0.3)
    newcomer = ranker.newcomer(crowd.X[:9], crowd.labels[:9])
    assert newcomer.coef[0, 1] == pytest.approx(ranker.consensus_[1])
    table = ranker.summary(draws=60)
    assert table.rows[1]["sd"] is None
    assert table.rows[1]["error"] > 0
    again = load(save(ranker, tmp_path / "model"))
    np.testing.assert_array_equal(again.coef_, ranker.coef_)
    with pytest.raises(ValueError):
        again.summary()
    assert again.summary(crowd, draws=60).rows == table.rows


def test_a_fixed_weight_has_the_likelihood_of_an_earlier_maximum(crowd):
    # Fixing what hardly varies costs next to nothing; fixing what varies costs a lot.
    whole = HierarchicalRanker(covariance="diagonal", draws=60).fit(crowd).log_likelihood(draws=300)
    fixed = HierarchicalRanker(covariance="diagonal", fixed=["size"], draws=60).fit(crowd)
    assert fixed.log_likelihood(draws=300).value < whole.value - 5


def test_known_signs_hold_for_everybody(tmp_path):
    crowd, weights = make_choices([-0.5, 1.0], np.diag([0.7, 0.3]), n_users=60, n_sets=5, seed=1)
    free = HierarchicalRanker().fit(crowd)
    assert (free.coef_[:, 0] > 0).any()
    ranker = HierarchicalRanker(signs={"price": -1}, draws=60).fit(crowd)
    assert (ranker.coef_[:, 0] <= 0).all()
    assert (weights[:, 0] > 0).any()
    own = crowd.of_user(crowd.user_ids[int(free.coef_[:, 0].argmax())])
    newcomer = ranker.newcomer(own.X, own.labels, groups_of(own))
    assert newcomer.coef[0, 0] <= 0
    table = ranker.summary(draws=60)
    assert table.rows[0]["like more"] == 0
    assert table.rows[0]["mean"] < 0
    again = load(save(ranker, tmp_path / "model"))
    newcomer = again.newcomer(own.X, own.labels, groups_of(own))
    assert newcomer.coef[0, 0] <= 0


def groups_of(own):
    return own.users


def test_a_bounded_mode_is_the_best_within_the_bounds():
    crowd, _ = make_choices([-0.3, 1.0], np.diag([0.7, 0.3]), n_users=20, n_sets=5, seed=1)
    ranker = HierarchicalRanker(signs={0: -1}, draws=40).fit(crowd)
    prior, coordinates = ranker.prior_.prior, ranker.prior_.design
    person = int(np.abs(ranker.coef_[:, 0]).argmin())
    own = crowd.of_user(crowd.user_ids[person])
    precision = np.linalg.inv(prior.covariance)

    def cost(weights):
        away = weights * coordinates.scale - prior.mean
        total = 0.5 * away @ precision @ away
        for group in np.unique(own.choice_set_codes):
            rows = own.choice_set_codes == group
            scores = own.X[rows] @ weights
            total += np.log(np.exp(scores).sum()) - scores[own.labels[rows]][0]
        return total

    best = ranker.coef_[person]
    rng = np.random.default_rng(0)
    for other in best + 0.05 * rng.standard_normal((200, 2)):
        if other[0] <= 0:
            assert cost(other) >= cost(best) - 1e-6


def test_willingness_to_pay_is_a_ratio_with_an_interval(ranker, table):
    paid = ranker.wtp("price", draws=100)
    worth = table.estimates.part_worths
    assert [row["feature"] for row in paid.rows] == ["size", "speed"]
    row = paid.rows[0]
    assert row["at the mean"] == pytest.approx(-worth.mean[1] / worth.mean[0])
    assert row["from"] < row["at the mean"] < row["to"]
    assert row["users from"] < row["median user"] < row["users to"]
    assert row["from"] < 0.8 < row["to"]


def test_willingness_to_pay_is_refused_without_a_price():
    crowd, _ = make_choices([0.0, 1.0], np.diag([0.3, 0.3]), n_users=40, n_sets=6)
    ranker = HierarchicalRanker().fit(crowd)
    with pytest.raises(ValueError):
        ranker.wtp("price", draws=40)
    with pytest.raises(ValueError):
        ranker.wtp("size", draws=40)
    with pytest.raises(ValueError):
        ranker.wtp("cost")
    with pytest.raises(ValueError):
        ranker.wtp("size", level=95, draws=40)


ITEMS = {"small": [1.0, 0.0, 0.0], "large": [2.0, 1.5, 0.0], "fast": [2.0, 0.5, 1.0]}


def test_shares_are_the_mean_of_peoples_chances(ranker):
    table = ranker.shares(ITEMS)
    found = np.array([row["share"] for row in table.rows])
    posterior, X = ranker._posterior(), np.array(list(ITEMS.values()))
    rng = np.random.default_rng(1)
    expected = []
    for person in range(len(ranker.users_)):
        points = rng.multivariate_normal(
            posterior.points[person], posterior.covariance(person), 300
        )
        chances = np.exp(posterior.design.weights(points) @ X.T)
        expected.append((chances / chances.sum(axis=1, keepdims=True)).mean(axis=0))
    np.testing.assert_allclose(found, np.mean(expected, axis=0), atol=0.02)
    assert found.sum() == pytest.approx(1.0)


def test_what_is_not_available_has_no_share(ranker):
    found = [row["share"] for row in ranker.shares(ITEMS, available=[True, False, True]).rows]
    assert found[1] == 0
    assert sum(found) == pytest.approx(1.0)
    only = np.ones((80, 3), dtype=bool)
    only[:40, 1:] = False
    by = np.repeat(["first", "second"], 40)
    rows = ranker.shares(ITEMS, available=only, by=by).rows
    assert rows[0]["first"] == pytest.approx(1.0)
    assert rows[1]["second"] > 0


def test_elasticities_are_derivatives_of_shares(ranker):
    table = ranker.elasticities(ITEMS, "price", by=dict.fromkeys(ranker.users_[:30], "some"))
    X = np.array(list(ITEMS.values()))
    share = np.array([row["share"] for row in ranker.shares(X).rows])
    more = X.copy()
    more[1, 0] *= 1 + 1e-5
    moved = np.array([row["share"] for row in ranker.shares(more).rows])
    expected = (moved / share - 1) / 1e-5
    found = [row["large"] for row in table.rows if row["among"] == "all users"]
    np.testing.assert_allclose(found, expected, rtol=1e-3)
    assert len(table.rows) == 6


def test_features_that_follow_from_others_cannot_be_fixed():
    rng = np.random.default_rng(0)
    brand = np.eye(3)[rng.integers(0, 3, 300)]
    users, groups = np.repeat(np.arange(10), 30), np.repeat(np.arange(100), 3)
    labels = np.arange(300) % 3 == 0
    crowd = Annotations(users, None, labels, brand, choice_sets=groups)
    with pytest.raises(ValueError):
        HierarchicalRanker(fixed=[0]).fit(crowd)


def test_items_that_people_share_have_no_likelihood_by_person():
    rng = np.random.default_rng(0)
    users, items = np.repeat(np.arange(12), 10), np.tile(np.arange(10), 12)
    X = rng.standard_normal((10, 2))
    labels = rng.random(120) < 0.5
    crowd = Annotations(users, items, labels, X)
    ranker = HierarchicalRanker(n_item_factors=0).fit(crowd)
    with pytest.raises(ValueError):
        ranker.log_likelihood(draws=10)
    with pytest.raises(ValueError):
        HierarchicalRanker(item_effects=True, draws=10).fit(crowd)
    assert not HierarchicalRanker(draws=60).fit(crowd).item_effects_


def test_errors_say_what_they_take_for_granted(crowd):
    few = crowd.of_users(crowd.user_ids[:8])
    table = HierarchicalRanker(covariance="full").fit(few).summary(draws=60)
    assert table.estimates.given
    assert any("conditional" in note for note in table.notes)
    assert table.correlation_errors == []
    assert all(row["error"] > 0 for row in table.rows)


@pytest.mark.slow
def test_grades_have_no_shares(crowd):
    grades = np.where(crowd.labels, 3, np.arange(len(crowd)) % 2 + 1)
    ranker = HierarchicalRanker(item_effects=False)
    ranker.fit(Annotations(crowd.users, None, grades, crowd.X))
    with pytest.raises(ValueError):
        ranker.shares(ITEMS)
    with pytest.raises(ValueError):
        ranker.summary()


def test_shares_need_probabilities_and_items_that_fit(crowd, ranker):
    with pytest.raises(ValueError):
        HierarchicalRanker(loss="auc").fit(crowd).shares(ITEMS)
    with pytest.raises(ValueError):
        ranker.shares([[1.0, 2.0]])
    with pytest.raises(ValueError):
        ranker.shares(ITEMS, available=[False, False, False])
    with pytest.raises(ValueError):
        ranker.shares(ITEMS, available=[True])
    with pytest.raises(ValueError):
        ranker.shares(ITEMS, by=["a", "b"])
