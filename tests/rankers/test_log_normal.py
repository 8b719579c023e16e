"""Log-normal weights: from the fit to tables, shares, newcomers and files."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from crowds import make_choices
from likeminds import Annotations, HierarchicalRanker, load, save

LOGS = {"signs": {"price": -1}, "distributions": {"price": "lognormal"}}


@pytest.fixture(scope="module")
def crowd():
    return make_choices([-1.0, 0.8, 0.4], np.diag([0.3, 0.6, 0.2]), n_users=20, n_sets=4)[0]


def make_log_choices(n_users=80, n_sets=8, seed=0, set_size=3):
    """Choices of people whose weight of price is minus a log-normal number."""
    rng = np.random.default_rng(seed)
    price = -np.exp(0.2 + 0.7 * rng.standard_normal(n_users))
    size = 1.0 + 0.5 * rng.standard_normal(n_users)
    weights = np.column_stack([price, size])
    X = rng.standard_normal((n_users, n_sets, set_size, 2)) * [1.0, 5.0]
    utility = np.einsum("isjd,id->isj", X, weights / [1.0, 5.0]) + rng.gumbel(size=X.shape[:3])
    chosen = utility.argmax(axis=2)[:, :, None] == np.arange(set_size)
    users = np.repeat(np.arange(n_users), n_sets * set_size)
    groups = np.repeat(np.arange(n_users * n_sets), set_size)
    said = Annotations(
        users,
        None,
        chosen.ravel(),
        X.reshape(-1, 2),
        choice_sets=groups,
        feature_names=["price", "x"],
    )
    return said, weights


@pytest.fixture(scope="module")
def log_ranker():
    crowd, weights = make_log_choices()
    return HierarchicalRanker(covariance="full", draws=100, **LOGS).fit(crowd), crowd, weights


def test_log_normal_weights_are_learned(log_ranker):
    ranker, crowd, weights = log_ranker
    assert (ranker.coef_[:, 0] < 0).all()
    logs = np.log(-np.column_stack([ranker.coef_[:, 0], weights[:, 0]]))
    assert np.corrcoef(logs.T)[0, 1] > 0.6  # eight choices say that much of a person
    worth = ranker.summary(draws=100).estimates
    assert abs(worth.part_worths.centre[0] - 0.2) < 3 * worth.centre_error[0]
    assert abs(worth.part_worths.spread[0] - 0.7) < 3 * worth.spread_error[0]
    assert 0.05 < worth.centre_error[0] < 0.3
    censored = HierarchicalRanker(covariance="full", signs={"price": -1}, draws=100).fit(crowd)
    assert ranker.log_likelihood(draws=300).value > censored.log_likelihood(draws=300).value


def test_the_likelihood_of_log_normal_weights_is_that_of_draws_from_the_prior(log_ranker):
    ranker, crowd, _ = log_ranker
    prior, scale = ranker.prior_.simulated, ranker.prior_.design.scale
    drawn = np.random.default_rng(1).standard_normal((20_000, 2)) @ prior.root.T + prior.mean
    drawn[:, 0] = -np.exp(drawn[:, 0])
    found = ranker.log_likelihood(draws=1000)
    for place in range(0, crowd.n_users, 9):
        own = crowd.of_user(crowd.user_ids[place])
        scores = (drawn / scale) @ own.X.T.astype(float)
        chance = np.ones(len(drawn))
        for group in np.unique(own.choice_set_codes):
            inside = own.choice_set_codes == group
            odds = np.exp(scores[:, inside] - scores[:, inside].max(axis=1, keepdims=True))
            chance *= odds[:, own.labels[inside]][:, 0] / odds.sum(axis=1)
        error = chance.std() / chance.mean() / np.sqrt(len(chance))
        assert abs(found.by_user[place] - np.log(chance.mean())) < 0.03 + 4 * error


def test_the_table_has_moments_of_log_normal_weights(log_ranker):
    ranker, _, _ = log_ranker
    table = ranker.summary(draws=100)
    row, worth = table.rows[0], table.estimates.part_worths
    variance = worth.covariance[0, 0]
    mean = -np.exp(worth.centre[0] + variance / 2)
    assert row["mean"] == pytest.approx(mean)
    assert row["sd"] == pytest.approx(-mean * np.sqrt(np.expm1(variance)))
    assert row["like more"] == 0
    # By the delta method: the mean's error, from those of the logarithm and its deviation.
    assert row["error"] / -row["mean"] < 1.1 * (
        table.estimates.centre_error[0] + worth.spread[0] * table.estimates.spread_error[0]
    )
    assert 0 < row["error"] < -row["mean"]
    assert "price is log-normal: the logarithm of its size has mean" in str(table)
    drawn = worth.drawn(200_000, np.random.default_rng(0))
    assert drawn[:, 0].max() < 0
    np.testing.assert_allclose(drawn.mean(axis=0), worth.mean, rtol=0.02)
    np.testing.assert_allclose(np.corrcoef(drawn.T), worth.correlation, atol=0.02)
    paid = ranker.wtp("price", draws=100)
    assert paid.rows[0]["from"] < paid.rows[0]["at the mean"] < paid.rows[0]["to"]
    assert len(paid.notes) == 1  # nobody is left out


def test_shares_and_elasticities_of_log_normal_weights(log_ranker):
    ranker, _, _ = log_ranker
    market = {"cheap": [0.5, 0.0], "dear": [2.0, 1.0]}
    shares = ranker.shares(market)
    assert sum(row["share"] for row in shares.rows) == pytest.approx(1)
    # Everybody's own posterior, drawn by hand: a log-normal weight never changes its sign.
    dearer = ranker.shares({"cheap": [0.5, 0.0], "dear": [2.2, 1.0]})
    assert dearer.rows[1]["share"] < shares.rows[1]["share"]
    moved = ranker.elasticities(market, "price")
    expected = (dearer.rows[1]["share"] / shares.rows[1]["share"] - 1) / 0.1
    assert moved.rows[1]["dear"] == pytest.approx(expected, rel=0.15)
    everybody = ranker.prior_.marginal
    assert everybody.mean[0] == pytest.approx(ranker.consensus_[0] * ranker.scale_[0])


def test_newcomers_updates_and_files_keep_log_normal_weights(log_ranker, tmp_path):
    ranker, crowd, _ = log_ranker
    assert clone(ranker).get_params()["distributions"] == {"price": "lognormal"}
    own = crowd.of_user(crowd.user_ids[3])
    new = ranker.newcomer(own)
    # The same choices, the same prior: the same person.
    np.testing.assert_allclose(new.coef[0], ranker.coef_[3], rtol=1e-6)
    np.testing.assert_allclose(
        new.standard_error(own.X), ranker.standard_error(own.X, own.users), rtol=1e-4
    )
    stranger = ranker.newcomer()
    np.testing.assert_allclose(stranger.coef[0], ranker.consensus_)
    hardly = ranker.newcomer(own[:3])
    assert (hardly.standard_error(own.X) < stranger.standard_error(own.X) + 1e-9).all()
    again = load(save(ranker, tmp_path / "model", with_data=True))
    np.testing.assert_array_equal(again.coef_, ranker.coef_)
    np.testing.assert_allclose(again.newcomer(own).coef, new.coef)
    assert again.log_likelihood(draws=50).value == ranker.log_likelihood(draws=50).value
    assert again.shares([[0.5, 0.0], [2.0, 1.0]]).rows == ranker.shares([[0.5, 0], [2, 1]]).rows
    named = {"choice_sets": own.choice_set_codes, "feature_names": list(crowd.feature_names)}
    again.update(Annotations([99] * 24, None, own.labels, own.X, **named))
    assert again.coef_[-1, 0] < 0
    assert again.prior_.log_normal is not None


def test_log_normal_beside_censored_and_fixed_weights():
    crowd, _ = make_choices([-0.6, 0.3, 1.0], 0.5 * np.eye(3), n_users=40, n_sets=6)
    ranker = HierarchicalRanker(
        covariance="diagonal",
        fixed=["speed"],
        signs={"price": -1, "size": 1},
        distributions={"price": "lognormal", "size": "censored"},
        draws=60,
    ).fit(crowd)
    assert (ranker.coef_[:, 0] < 0).all()
    assert (ranker.coef_[:, 1] >= 0).all()
    assert np.ptp(ranker.coef_[:, 2]) < 1e-12
    table = ranker.summary(draws=60)
    assert table.rows[0]["like more"] == 0
    assert table.rows[2]["sd"] is None
    labels = ranker.newcomer(crowd.X[:4], crowd.labels[:4], [0] * 4)
    assert labels.coef[0, 0] < 0


def test_log_normal_weights_do_not_move_with_covariates(crowd):
    users = {person: {"age": k % 7} for k, person in enumerate(crowd.user_ids)}
    with pytest.raises(ValueError):
        HierarchicalRanker(**LOGS, draws=20).fit(crowd.with_user_features(users))


def test_what_is_interrupted_has_the_signs(crowd):
    ranker = HierarchicalRanker(**LOGS, draws=20, callback=lambda *_: True)
    with pytest.warns(ConvergenceWarning):
        ranker.fit(crowd)
    assert (ranker.coef_[:, 0] < 0).all()
