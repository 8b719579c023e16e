"""Latent classes against naive definitions, simulated truth and numerical derivatives."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning

from likeminds import (
    Annotations,
    LatentClassRanker,
    load,
    load_electricity,
    save,
    score_choices,
)
from likeminds.baselines import PooledLogistic

TRUTH = np.array([[2.0, -1.0, 0.0], [-1.0, 0.5, 1.5]])
SHARES = np.array([0.65, 0.35])
# A ridge that is negligible beside these labels, and none of the seconds of many starts.
QUICK = {"n_starts": 4, "alpha": 1e-4}


def simulated(kind, n_users=60, n_each=16, seed=0):
    """Users of two classes: choices among three, or yes and no with intercepts 0.5 and -0.5."""
    rng = np.random.default_rng(seed)
    klass = (rng.random(n_users) > SHARES[0]).astype(int)
    size = 3 if kind == "choice" else 1
    X = rng.normal(size=(n_users, n_each, size, 3))
    users = np.repeat([f"u{i:03}" for i in range(n_users)], n_each * size)
    utility = np.einsum("ijsd,id->ijs", X, TRUTH[klass])
    if kind == "choice":
        best = (utility + rng.gumbel(size=utility.shape)).argmax(axis=2)
        labels = np.arange(3) == best[:, :, None]
        sets = np.repeat(np.arange(n_users * n_each), 3)
    else:
        odds = utility + np.array([0.5, -0.5])[klass][:, None, None]
        labels, sets = rng.random(odds.shape) < 1 / (1 + np.exp(-odds)), None
    rows = {"features": X.reshape(-1, 3), "features_per": "row", "choice_sets": sets}
    items = np.arange(labels.size)
    return Annotations(users=users, items=items, labels=labels.ravel(), **rows), klass


def naive_log_likelihood(annotations, shares, coef, intercept, *, by_user=False):
    """Sum over users of log sum_k share_k prod of the probabilities of their labels."""
    total = []
    for user in annotations.user_ids:
        rows = annotations.users == user
        X, y = annotations.X[rows], annotations.labels[rows]
        of_classes = []
        for share, b, a in zip(shares, coef, intercept, strict=True):
            chance = share
            if annotations.choice_set_codes is None:
                p = 1 / (1 + np.exp(-(X @ b + a)))
                chance *= np.prod(np.where(y, p, 1 - p))
            else:
                sets = annotations.choice_set_codes[rows]
                for one in np.unique(sets):
                    terms = np.exp(X[sets == one] @ b)
                    chance *= terms[y[sets == one]][0] / terms.sum()
            of_classes.append(chance)
        total.append(of_classes)
    total = np.array(total)
    return total / total.sum(axis=1, keepdims=True) if by_user else np.log(total.sum(axis=1)).sum()


@pytest.fixture(scope="module", params=["choice", "logistic"])
def fitted(request):
    annotations, klass = simulated(request.param)
    return LatentClassRanker(2, **QUICK).fit(annotations), annotations, klass


def test_recovers_simulated_classes(fitted):
    ranker, _, klass = fitted
    assert ranker.converged_
    assert (ranker.membership_.argmax(axis=1) == klass).mean() > 0.95
    errors = ranker.class_coef_errors_
    assert (np.abs(ranker.class_coef_ - TRUTH) < 3.5 * errors).all()
    assert (np.abs(ranker.class_shares_ - SHARES) < 3 * ranker.class_share_errors_).all()
    assert 0.8 < ranker.entropy_ <= 1.0
    if ranker.loss_ == "logistic":
        assert ranker.class_intercept_ == pytest.approx([0.5, -0.5], abs=0.4)


def test_log_likelihood_and_membership_are_those_of_the_definition(fitted):
    ranker, annotations, _ = fitted
    at = ranker.class_shares_, ranker.class_coef_, ranker.class_intercept_
    assert ranker.log_likelihood_ == pytest.approx(naive_log_likelihood(annotations, *at))
    assert ranker.log_likelihood(annotations) == pytest.approx(ranker.log_likelihood_)
    naive = naive_log_likelihood(annotations, *at, by_user=True)
    np.testing.assert_allclose(ranker.membership_, naive, atol=1e-9)
    np.testing.assert_allclose(ranker.memberships(annotations), naive, atol=1e-9)
    n_free = 2 * (3 + (ranker.loss_ == "logistic")) + 1
    assert ranker.bic_ == pytest.approx(n_free * np.log(60) - 2 * ranker.log_likelihood_)
    certain = ranker.membership_ * np.log(np.maximum(ranker.membership_, 1e-300))
    assert ranker.entropy_ == pytest.approx(1 + certain.sum() / (60 * np.log(2)))


def test_em_never_lowers_the_objective(fitted):
    ranker = fitted[0]
    assert ranker.n_iter_ > 3
    assert (np.diff(ranker.objective_trace_) > -1e-9).all()


def vectorised_log_likelihood(annotations, shares, coef, intercept):
    """The same where the rows of users, and of their sets of three, follow each other."""
    eta = annotations.X @ np.transpose(coef) + intercept
    y, n_users = annotations.labels, annotations.n_users
    if annotations.choice_set_codes is None:
        logs = np.where(y[:, None], eta, 0.0) - np.log1p(np.exp(eta))
    else:
        sets = eta.reshape(-1, 3, len(shares))
        logs = eta[y] - np.log(np.exp(sets).sum(axis=1))
    by_user = logs.reshape(n_users, -1, len(shares)).sum(axis=1)
    return np.log(np.exp(by_user) @ shares).sum()


def test_standard_errors_are_those_of_the_numerical_hessian(fitted):
    ranker, annotations, _ = fitted
    logistic = ranker.loss_ == "logistic"

    def value(flat):
        share = 1 / (1 + np.exp(-flat[0]))
        coef = flat[1:7].reshape(2, 3)
        intercept = flat[7:] if logistic else np.zeros(2)
        return vectorised_log_likelihood(annotations, [share, 1 - share], coef, intercept)

    odds = np.log(ranker.class_shares_[0] / ranker.class_shares_[1])
    at = np.concatenate([[odds], ranker.class_coef_.ravel(), ranker.class_intercept_ * logistic])
    at = at if logistic else at[:7]
    assert value(at) == pytest.approx(ranker.log_likelihood_)
    h, eye = 1e-3, np.eye(len(at))
    hessian = np.array(
        [
            [
                (value(at + h * (a + b)) - value(at + h * (a - b)))
                - (value(at - h * (a - b)) - value(at - h * (a + b)))
                for b in eye
            ]
            for a in eye
        ]
    ) / (4 * h**2)
    covariance = np.linalg.inv(-hessian)
    np.testing.assert_allclose(
        ranker.class_coef_errors_.ravel(), np.sqrt(np.diag(covariance))[1:7], rtol=2e-3
    )
    slope = np.prod(ranker.class_shares_)
    expected = slope * np.sqrt(covariance[0, 0])
    np.testing.assert_allclose(ranker.class_share_errors_, [expected] * 2, rtol=2e-3)
    paid = ranker.wtp(str(ranker.feature_names_[0])).rows
    assert ranker.wtp(0).rows == paid
    assert paid[0]["willingness to pay"] == pytest.approx(-TRUTH[0, 1] / TRUTH[0, 0], abs=0.3)
    # The delta method by hand, for the second feature of the first class.
    b, c = ranker.class_coef_[0], covariance[1:4, 1:4]
    slopes = np.array([b[1] / b[0] ** 2, -1 / b[0], 0.0])
    assert paid[0]["error"] == pytest.approx(np.sqrt(slopes @ c @ slopes), rel=5e-3)


def test_one_class_is_a_pooled_logit(fitted):
    _, annotations, _ = fitted
    ranker = LatentClassRanker(1, alpha=1e-6).fit(annotations)
    assert ranker.entropy_ == 1.0
    assert ranker.class_shares_ == [1.0]
    if ranker.loss_ == "logistic":
        pooled = PooledLogistic(C=1e6).fit(annotations)
        np.testing.assert_allclose(ranker.consensus_, pooled.consensus_, atol=1e-3)
    np.testing.assert_allclose(ranker.coef_, np.tile(ranker.class_coef_, (60, 1)))


def test_bic_chooses_the_number_of_classes_and_seeds_decide_nothing(fitted):
    ranker, annotations, _ = fitted
    found = LatentClassRanker(**QUICK).fit(annotations)
    assert [row["classes"] for row in found.selection_] == [1, 2, 3]
    assert found.n_classes_ == 2
    assert "still falls" not in str(found.summary())
    with pytest.warns(UserWarning, match="max_classes"):
        stopped = LatentClassRanker(max_classes=2, **QUICK).fit(annotations)
    assert "still falls" in str(stopped.summary())
    assert found.bic_ == min(row["bic"] for row in found.selection_)
    again = LatentClassRanker(2, **QUICK).fit(annotations)
    np.testing.assert_array_equal(again.class_coef_, ranker.class_coef_)
    other = LatentClassRanker(2, random_state=5, **QUICK).fit(annotations)
    np.testing.assert_allclose(other.class_coef_, ranker.class_coef_, atol=1e-3)


def test_scores_and_probabilities_are_means_over_classes(fitted):
    ranker, annotations, _ = fitted
    member = ranker.membership_[annotations.user_codes]
    scores = (member * (annotations.X @ ranker.class_coef_.T)).sum(axis=1)
    np.testing.assert_allclose(ranker.decision_function(annotations), scores)
    chances = ranker.predict_proba(annotations)
    eta = annotations.X @ ranker.class_coef_.T + ranker.class_intercept_
    expected = 1 / (1 + np.exp(-eta))
    if annotations.choice_set_codes is not None:
        terms = np.exp(eta).reshape(-1, 3, 2)
        expected = (terms / terms.sum(axis=1, keepdims=True)).reshape(-1, 2)
    np.testing.assert_allclose(chances[:, 1], (member * expected).sum(axis=1))
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    if annotations.choice_set_codes is None:
        np.testing.assert_array_equal(ranker.predict(annotations), chances[:, 1] > 0.5)
    else:
        with pytest.raises(TypeError, match="choices"):
            ranker.predict(annotations)


def test_newcomers_by_their_memberships(fitted):
    ranker, annotations, _ = fitted
    nobody = ranker.newcomer()
    np.testing.assert_allclose(nobody.coef[0], ranker.consensus_)
    few = annotations.of_user("u003")[:12]
    new = ranker.newcomer(few)
    member = ranker.memberships(few)
    np.testing.assert_allclose(new.coef, member @ ranker.class_coef_)
    assert (new.standard_error(few) <= nobody.standard_error(few) + 1e-6).all()
    single = ranker.newcomer(few.X[:3], np.array([True, False, False]))
    assert np.isfinite(single.decision_function(few.X)).all()


def test_saved_loaded_updated_and_explained(fitted, tmp_path):
    ranker, annotations, _ = fitted
    again = load(save(ranker, tmp_path / "m.likeminds", with_data=True))
    np.testing.assert_array_equal(
        again.predict_proba(annotations), ranker.predict_proba(annotations)
    )
    few = annotations.of_user("u001")
    np.testing.assert_allclose(again.newcomer(few).coef, ranker.newcomer(few).coef)
    assert again.selection_ == ranker.selection_
    explained = again.explain("u001", few.items[0])
    own = ranker.decision_function(few) - ranker.prior_.design.origin @ ranker.coef_[1]
    assert explained.score == pytest.approx(own[0])
    first = annotations.of_users([f"u{i:03}" for i in range(40)])
    rest = annotations.of_users([f"u{i:03}" for i in range(40, 60)])
    updated = LatentClassRanker(2, **QUICK).fit(first).update(rest)
    np.testing.assert_allclose(updated.class_coef_, ranker.class_coef_, atol=1e-6)
    bare = load(save(ranker, tmp_path / "bare.likeminds"))
    with pytest.raises(ValueError, match="with_data"):
        bare.update(rest)


def test_summary_has_each_class_and_feature(fitted):
    ranker = fitted[0]
    table = ranker.summary()
    assert len(table.rows) == 6
    assert table.rows[4]["coefficient"] == pytest.approx(ranker.class_coef_[1, 1])
    assert table.rows[4]["error"] == pytest.approx(ranker.class_coef_errors_[1, 1])
    assert table.rows[4]["p"] == pytest.approx(2 * norm.sf(abs(table.rows[4]["z"])))
    assert f"AIC {ranker.aic_:.1f}" in table.title
    assert "class 1 " in str(table)


def test_few_users_have_one_class():
    assert LatentClassRanker().fit(simulated("choice", 4, 6)[0]).n_classes_ == 1


def test_classes_without_a_maximum_warn():
    annotations, _ = simulated("logistic", 6, 3)
    with pytest.warns(ConvergenceWarning, match="fewer classes"):
        LatentClassRanker(6, alpha=1e-12, n_starts=2, max_iter=5).fit(annotations)


@pytest.mark.seconds
def test_electricity():
    homes = load_electricity()
    # The conditional logit of mlogit on these data has a log-likelihood of -4958.6.
    assert LatentClassRanker(1).fit(homes).log_likelihood_ == pytest.approx(-4958.65, abs=0.05)
    ranker = LatentClassRanker(3).fit(homes)
    assert ranker.log_likelihood_ == pytest.approx(-4298.03, abs=0.05)
    found = score_choices(homes, ranker.decision_function(homes), ranker.predict_proba(homes)[:, 1])
    assert np.mean(found.log_loss.values) < 0.95
