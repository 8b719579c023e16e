"""The ranker with a learned prior: what it finds, and its manners."""

from copy import copy
from unittest.mock import Mock

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from crowds import make_crowd
from likeminds import (
    Annotations,
    HierarchicalRanker,
    load,
    make_schools,
    make_sketch_shoes,
    save,
    split_within_users,
)
from likeminds.baselines import ConsensusOnly
from likeminds.rankers import hierarchical_fit

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*one class only:UserWarning"),
    pytest.mark.seconds,
]


LOSSES = ("logistic", "choice", "auc")


@pytest.fixture(scope="module")
def schools():
    return make_schools(60, 24, 100, 8, 2, personal_strength=0.3, random_state=0)


@pytest.fixture(scope="module")
def fitted(schools):
    return HierarchicalRanker(item_effects=False).fit(schools.annotations)


@pytest.mark.parametrize("loss", LOSSES)
def test_finds_the_schools(schools, loss):
    train, test = split_within_users(schools.annotations, 0.3, 0)
    ranker = HierarchicalRanker(loss=loss).fit(train)
    assert ranker.n_groups_ == 1  # two schools that are opposites
    assert ranker.score(test) > ConsensusOnly().fit(train).score(test) + 0.1
    truth = schools.group[schools.school == 0][0]
    cosine = ranker.directions_[0] @ truth / np.linalg.norm(ranker.directions_[0])
    assert abs(cosine) / np.linalg.norm(truth) > 0.85
    assert ranker.explained_["group"] > 0.7
    assert ranker.criterion_.argmin() == 1


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.slow
def test_finds_the_schools_with_five_labels_each(seed):
    crowd = make_schools(300, 55, 1000, 20, random_state=seed).annotations
    train, test = split_within_users(crowd, 50 / 55, seed)
    ranker = HierarchicalRanker().fit(train)
    assert ranker.n_groups_ == 2  # three schools
    assert ranker.score(test) > HierarchicalRanker(n_groups=0).fit(train).score(test) + 0.1


def test_levels_add_up(schools, fitted):
    total = fitted.consensus_ + fitted.group_ + fitted.personal_
    np.testing.assert_allclose(total, fitted.coef_, atol=1e-12)
    np.testing.assert_allclose(fitted.explained_["group"] + fitted.explained_["personal"], 1.0)
    assert np.linalg.matrix_rank(fitted.group_, tol=1e-8) == fitted.n_groups_ == 1
    assert fitted.converged_
    assert fitted.objective_ == fitted.objective_trace_[-1]
    assert len(fitted.objective_trace_) == fitted.n_iter_ + 1
    # Scores plus intercepts are log-odds: they match the share of positive labels.
    said = schools.annotations
    odds = fitted.decision_function(said) + fitted.intercept_[said.user_codes]
    assert (1 / (1 + np.exp(-odds))).mean() == pytest.approx(said.labels.mean(), abs=0.03)


@pytest.mark.seconds
def test_same_result_whatever_threads_and_order(schools, fitted):
    shuffled = schools.annotations[np.random.default_rng(0).permutation(60 * 24)]
    with threadpool_limits(1):
        again = HierarchicalRanker(item_effects=False).fit(shuffled)
        with_items = HierarchicalRanker().fit(shuffled)
    np.testing.assert_allclose(again.coef_, fitted.coef_, atol=1e-4)
    twice = HierarchicalRanker(item_effects=False).fit(schools.annotations)
    np.testing.assert_array_equal(twice.coef_, fitted.coef_)
    in_order = HierarchicalRanker().fit(schools.annotations)
    np.testing.assert_allclose(with_items.item_effect_, in_order.item_effect_, atol=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.seconds
def test_weights_count_like_repeated_rows(schools, loss):
    said = schools.annotations
    times = np.random.default_rng(1).integers(1, 4, len(said))
    weighted = HierarchicalRanker(1, loss, tol=1e-10).fit(
        said.X, said.labels, users=said.users, sample_weight=times
    )
    copied = HierarchicalRanker(1, loss, tol=1e-10, item_effects=False).fit(
        said[np.repeat(np.arange(len(said)), times)]
    )
    np.testing.assert_allclose(weighted.coef_, copied.coef_, rtol=1e-2, atol=5e-3)


def test_units_of_features_do_not_matter(schools, fitted):
    said = schools.annotations
    units = np.geomspace(0.01, 100, 8)
    scaled = HierarchicalRanker().fit(said.X * units + 5, said.labels, users=said.users)
    np.testing.assert_allclose(scaled.coef_ * units, fitted.coef_, atol=1e-3)


def test_one_class_people_teach_the_logistic_loss():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = X[:, 0] > 0
    users = np.where(y, 2 * np.arange(400) % 40, 1 + 2 * np.arange(400) % 40)  # all one class
    ranker = HierarchicalRanker(0).fit(X, y, users=users)
    assert ranker.consensus_[0] > 3 * abs(ranker.consensus_[1])


@pytest.mark.filterwarnings("default")
def test_one_class_people_get_the_consensus_of_the_auc_loss():
    crowd = make_crowd(np.random.default_rng(0))
    with pytest.warns(UserWarning, match="person-10"):
        ranker = HierarchicalRanker(1, "auc").fit(crowd)
    np.testing.assert_allclose(ranker.coef_[10], ranker.consensus_, atol=1e-12)


def test_one_label_each_is_enough_to_learn_a_consensus():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X @ [1.0, -1.0, 0.0] + rng.normal(size=300) > 0
    ranker = HierarchicalRanker().fit(X, y, users=np.arange(300))
    assert ranker.score(X, y) > 0.8  # people named nowhere: the consensus
    assert ranker.coef_.shape == (300, 3)


def test_strangers_get_the_consensus_and_the_prior_s_uncertainty(schools, fitted):
    items = schools.annotations.features[:5]
    lenient = copy(fitted).set_params(unknown="consensus")
    scores = lenient.decision_function(items, ["stranger"] * 5)
    np.testing.assert_allclose(scores, items @ fitted.consensus_)
    unsure = lenient.standard_error(items, ["stranger"] * 5)
    assert (unsure > fitted.standard_error(items, [0] * 5)).all()


@pytest.mark.parametrize(
    "ask",
    ["decision_function", "standard_error", "predict_proba", "rank_interval", "next_items", "rank"],
)
def test_unknown_users_are_an_error_unless_the_consensus_is_asked_for(schools, fitted, ask):
    items = schools.annotations.features[:5]
    of_one = ask in {"rank_interval", "next_items"}
    arguments = (
        ("stranger",) if ask == "rank" else (items, "stranger" if of_one else ["stranger"] * 5)
    )
    with pytest.raises((ValueError, KeyError), match="stranger"):
        getattr(fitted, ask)(*arguments)


@pytest.mark.seconds
def test_more_labels_are_learned_as_if_at_once(schools):
    said = schools.annotations
    parts = HierarchicalRanker(1).partial_fit(said[:700]).partial_fit(said[700:])
    whole = HierarchicalRanker(1).fit(said)
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-6)
    assert HierarchicalRanker(1).fit(said[:700]).update(said[700:]).n_groups_ == 1


def test_save_and_load_keep_all_that_is_believed(schools, fitted, tmp_path):
    again = load(save(fitted, tmp_path / "model"))
    items = schools.annotations.features[:7]
    np.testing.assert_array_equal(again.coef_, fitted.coef_)
    np.testing.assert_array_equal(
        again.standard_error(items, [3] * 7), fitted.standard_error(items, [3] * 7)
    )
    labels = [True, False, True, False, True, False, True]
    np.testing.assert_array_equal(
        again.newcomer(items, labels).coef, fitted.newcomer(items, labels).coef
    )


@pytest.mark.seconds
def test_callback_can_stop_and_says_so(schools):
    seen = []

    def stop(step, objective, residual):
        seen.append((step, objective, residual))
        return True

    with pytest.warns(ConvergenceWarning, match="Interrupted"):
        ranker = HierarchicalRanker(1, tol=0.0, callback=stop).fit(schools.annotations)
    assert len(seen) == ranker.n_iter_ == 1
    assert seen[0][1] == pytest.approx(ranker.objective_)
    with pytest.warns(ConvergenceWarning, match="Stopped"):
        HierarchicalRanker(1, tol=0.0, max_iter=1).fit(schools.annotations)


def test_interrupt_keeps_the_best_so_far(schools):
    def interrupt(step, objective, residual):
        raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning):
        ranker = HierarchicalRanker(1, tol=0.0, callback=interrupt).fit(schools.annotations)
    assert ranker.score(schools.annotations) > 0.8


@pytest.mark.seconds
def test_large_crowds_start_on_a_sample(monkeypatch, schools, fitted):
    monkeypatch.setattr("likeminds.mixed_model.fit_prior.SAMPLE", 25)
    ranker = HierarchicalRanker(tol=1e-7).fit(schools.annotations)
    assert ranker.n_groups_ == fitted.n_groups_
    monkeypatch.undo()
    exact = HierarchicalRanker(1, covariance=ranker.covariance_, tol=1e-7).fit(schools.annotations)
    assert ranker.objective_ == pytest.approx(exact.objective_, rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_blocks_need_not_be_kept(monkeypatch, schools, loss):
    said = schools.annotations
    kept = HierarchicalRanker(1, loss).fit(said.X, said.labels, users=said.users)
    monkeypatch.setattr("likeminds.mixed_model.responses._KEPT_BYTES", 0)
    made_anew = HierarchicalRanker(1, loss).fit(said.X, said.labels, users=said.users)
    np.testing.assert_allclose(made_anew.coef_, kept.coef_, atol=1e-10)


def test_the_form_of_omega_is_the_one_asked_for(schools):
    full, diagonal, low_rank = (
        HierarchicalRanker(covariance=form, item_effects=False).fit(schools.annotations)
        for form in ("full", "diagonal", "low_rank")
    )
    for form, ranker in (("full", full), ("diagonal", diagonal), ("low_rank", low_rank)):
        assert ranker.covariance_ == form
        assert len(ranker.directions_) == ranker.n_groups_
    omega = diagonal.prior_.prior.covariance
    np.testing.assert_array_equal(omega, np.diag(omega.diagonal()))
    assert low_rank.prior_.prior.rank == low_rank.n_groups_
    assert full.prior_.prior.rank == len(omega) - 1
    two = HierarchicalRanker(2, covariance="full", item_effects=False).fit(schools.annotations)
    found, wanted = two.prior_.prior.covariance, full.prior_.prior.covariance
    np.testing.assert_allclose(found, wanted, rtol=1e-3)  # as exact as the fits are
    assert len(two.directions_) == 2


def test_bad_input_is_refused_in_a_sentence(schools):
    said = schools.annotations
    with pytest.raises(ValueError):
        HierarchicalRanker(9).fit(said)
    with pytest.raises(ValueError):
        HierarchicalRanker("many").fit(said)
    with pytest.raises(ValueError):
        HierarchicalRanker(loss="hinge").fit(said)
    with pytest.raises(ValueError):
        HierarchicalRanker().fit(said[np.flatnonzero(said.labels)])


@pytest.mark.seconds
def test_users_weigh_many_features_where_that_ranks_held_out_labels_better():
    shoes = make_sketch_shoes(300, 30, 50, attributes="comfortable", n_components=80)
    train, test = split_within_users(shoes.annotations, 0.3, random_state=0)
    assert len(train) < 80 * 81 / 2
    ranker = HierarchicalRanker().fit(train)
    assert np.abs(ranker.coef_ - ranker.consensus_).max() > 0
    assert ranker.score(test) > ConsensusOnly().fit(train).score(test) + 0.05


@pytest.mark.parametrize("as_grades", [False, True])
def test_users_do_not_weigh_many_features_that_tell_of_items_alone(as_grades, monkeypatch):
    """Features that predict item effects do not count as weights that users differ by."""
    choose = Mock(wraps=hierarchical_fit.choose_grade_loss)
    monkeypatch.setattr(hierarchical_fit, "choose_grade_loss", choose)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 80))
    users, items = np.repeat(np.arange(40), 30), np.tile(np.arange(150), 8)
    scores = (X @ rng.normal(0, 0.15, 80))[items] + rng.normal(0, 1, 40)[users]
    noisy = scores + rng.logistic(size=len(users))
    labels = np.clip(np.round(noisy + 3), 1, 5) if as_grades else noisy > 0
    said = Annotations(users, items, labels, X)
    ranker = HierarchicalRanker().fit(said)
    assert np.abs(ranker.coef_ - ranker.consensus_).max() < 0.01
    assert choose.call_count == as_grades  # trials of weights do not choose again


def test_final_steps_are_listed(schools):
    said = schools.annotations
    assert HierarchicalRanker(1, "auc").fit(said.X, said.labels, said.users).final_steps_ == []
    plain = HierarchicalRanker(1).fit(said.X, said.labels, users=said.users)
    assert plain.final_steps_ == ["calibrate_variance"]
    shared = HierarchicalRanker(1, n_item_factors=0).fit(said)
    assert shared.final_steps_ == ["regress_items_on_features", "calibrate_variance"]
