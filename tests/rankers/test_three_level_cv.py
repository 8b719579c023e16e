from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import ParameterGrid

from likeminds import (
    Annotations,
    RankerCV,
    Statistics,
    ThreeLevelRanker,
    ThreeLevelRankerCV,
    load,
    load_electricity,
    make_schools,
    save,
    split_within_users,
)
from likeminds.baselines import ConsensusOnly
from likeminds.data.splits import folds_within_users

DATA = Path(__file__).parents[2] / "data" / "files"

GRID = {"alpha_group": [0.3, 3.0, 30.0], "n_groups": [0, 1, 2], "group_shrinkage": [0.0, 0.1]}


@pytest.fixture(scope="module")
def schools():
    return make_schools(40, 20, 80, 8, 3, contested=0.5, random_state=1).annotations


@pytest.fixture(scope="module")
def tuned(schools):
    return ThreeLevelRankerCV(GRID, n_folds=4).fit(schools)


@pytest.mark.seconds
def test_fitted_like_the_ranker_with_the_best_parameters(schools, tuned):
    ranker = ThreeLevelRanker(**tuned.best_params_).fit(schools)
    np.testing.assert_allclose(tuned.coef_, ranker.coef_, atol=1e-5)
    np.testing.assert_allclose(tuned.consensus_, ranker.consensus_, atol=1e-5)
    np.testing.assert_array_equal(tuned.users_, ranker.users_)
    assert tuned.objective_ == pytest.approx(ranker.objective_, rel=1e-6)
    assert tuned.score(schools) == pytest.approx(ranker.score(schools), abs=1e-3)
    assert set(tuned.best_params_) == set(GRID)


def test_penalties_that_leave_no_personal_level_share_a_fit(schools):
    alphas, steps = [30.0, 10.0, 0.02, 0.01], []
    ranker = ThreeLevelRanker(callback=lambda *step: steps.append(step) and None)
    grid = {"alpha_personal": alphas, "n_groups": [0]}  # convex: a start does not matter
    together = RankerCV(ranker, grid, n_folds=2, halving=False).fit(schools)
    n_steps = len(steps)
    scores = together.cv_results_["mean_test_score"]
    order = [c["alpha_personal"] for c in together.cv_results_["params"]]
    by_alpha = dict(zip(order, scores, strict=True))
    assert by_alpha[30.0] == by_alpha[10.0] != by_alpha[0.02] != by_alpha[0.01]
    for alpha in alphas:
        alone = RankerCV(ranker, grid | {"alpha_personal": [alpha]}, n_folds=2).fit(schools)
        assert alone.best_score_ == pytest.approx(by_alpha[alpha], abs=2e-3)
    few = RankerCV(ranker, grid | {"alpha_personal": [30.0, 0.02, 0.01]}, n_folds=2, halving=False)
    steps.clear()
    few.fit(schools)
    assert len(steps) == n_steps


def test_results_are_those_of_fitting_every_complement(schools):
    grid = {"alpha_group": [1.0], "n_groups": [1], "group_shrinkage": [0.1]}
    tuned = ThreeLevelRankerCV(grid, n_folds=3, halving=False).fit(schools)
    folds = folds_within_users(schools, 3, 0)
    by_hand = []
    for k in range(3):
        ranker = ThreeLevelRanker(0.001, 1.0, n_groups=1, group_shrinkage=0.1)
        by_hand.append(ranker.fit(schools[folds != k]).score(schools[folds == k]))
    measured = [tuned.cv_results_[f"split{k}_test_score"][0] for k in range(3)]
    np.testing.assert_allclose(measured, by_hand, atol=0.01)
    assert tuned.best_score_ == pytest.approx(np.mean(by_hand), abs=0.01)


def test_merged_folds_are_the_statistics_of_the_complement(schools):
    folds = folds_within_users(schools, 3, 0)
    parts = [Statistics.from_annotations(schools[folds == k]) for k in range(3)]
    merged = parts[0].merge(parts[2])
    direct = Statistics.from_annotations(schools[folds != 1])
    np.testing.assert_allclose(merged.class_weight, direct.class_weight)
    np.testing.assert_allclose(merged.dense.scatter, direct.dense.scatter, atol=1e-9)


def test_halving_drops_candidates_early(tuned):
    results = tuned.cv_results_
    n_candidates = len(list(ParameterGrid(GRID)))
    assert len(results["params"]) == n_candidates == len(results["mean_test_score"])
    assert sorted(set(results["n_folds"])) == [1, 4]
    assert np.sum(results["n_folds"] == 4) == 5
    dropped = results["n_folds"] == 1
    assert np.isnan(results["split1_test_score"][dropped]).all()
    assert results["n_folds"][tuned.best_index_] == 4
    assert results["rank_test_score"][tuned.best_index_] == 1
    assert np.isfinite(results["standard_error"]).all()


@pytest.mark.seconds
def test_without_halving_everybody_sees_every_fold(schools):
    tuned = ThreeLevelRankerCV(GRID, n_folds=2, halving=False).fit(schools)
    assert (tuned.cv_results_["n_folds"] == 2).all()
    best = np.argmax(tuned.cv_results_["mean_test_score"])
    assert tuned.best_index_ == best


@pytest.mark.slow
def test_several_workers_reach_the_same(schools, tuned):
    parallel = ThreeLevelRankerCV(GRID, n_folds=4, n_jobs=2).fit(schools)
    for name in ("split0_test_score", "split3_test_score", "mean_test_score"):
        np.testing.assert_allclose(parallel.cv_results_[name], tuned.cv_results_[name])
    assert parallel.best_params_ == tuned.best_params_


@pytest.mark.slow
def test_one_standard_error_prefers_the_simple(schools):
    options = {"n_folds": 3, "halving": False}
    best = ThreeLevelRankerCV(GRID, **options).fit(schools)
    simple = ThreeLevelRankerCV(GRID, **options, one_standard_error=True).fit(schools)
    error = best.cv_results_["standard_error"][best.best_index_]
    assert simple.best_score_ >= best.best_score_ - error
    assert simple.best_params_["n_groups"] <= best.best_params_["n_groups"]


@pytest.mark.slow
def test_default_grid_falls_back_to_fewer_levels():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((400, 12))
    labels = rows @ rng.standard_normal(12) + rng.standard_normal(400) > 0
    alike = Annotations(users=np.repeat(np.arange(80), 5), items=None, labels=labels, features=rows)
    alike = alike.with_enough_labels(1)
    tuned = ThreeLevelRankerCV(n_folds=3).fit(alike)
    spread = np.linalg.norm(tuned.coef_ - tuned.consensus_, axis=1).mean()
    assert spread < 0.3 * np.linalg.norm(tuned.consensus_)


@pytest.mark.slow
def test_tuned_on_the_bundled_data():
    train, test = split_within_users(load_electricity(), 0.3, 0)
    tuned = ThreeLevelRankerCV().fit(train)
    assert tuned.score(test) > ThreeLevelRanker().fit(train).score(test)
    assert tuned.score(test) > 0.84


@pytest.mark.seconds
def test_groups_of_arrays_stay_together():
    train, _ = split_within_users(load_electricity(), 0.8, 0)
    grid = {"alpha_group": [0.3, 3.0]}
    arrays = ThreeLevelRankerCV(grid, n_folds=2).fit(
        train.X, train.labels, users=train.users, choice_sets=train.choice_set_codes
    )
    rows = Annotations(train.users, None, train.labels, train.X, choice_sets=train.choice_set_codes)
    annotations = ThreeLevelRankerCV(grid, n_folds=2).fit(rows)
    np.testing.assert_allclose(
        arrays.cv_results_["mean_test_score"], annotations.cv_results_["mean_test_score"]
    )


def test_saved_and_loaded(tmp_path, schools, tuned):
    again = load(save(tuned, tmp_path / "tuned.likeminds"))
    np.testing.assert_array_equal(again.coef_, tuned.coef_)
    assert again.best_params_ == tuned.best_params_
    assert again.score(schools) == tuned.score(schools)


def test_inadmissible_candidates_are_left_out(schools):
    grid = {"alpha_group": [0.1], "group_shrinkage": [0.0, 1.0], "n_groups": [1, 99]}
    tuned = ThreeLevelRankerCV(grid, n_folds=2).fit(schools)
    assert len(tuned.cv_results_["params"]) == 1
    with pytest.raises(ValueError):
        ThreeLevelRankerCV({"n_groups": [99]}, n_folds=2).fit(schools)


@pytest.mark.parametrize("bad", [{"n_folds": 1}, {"param_grid": 3}, {"n_jobs": "two"}])
def test_bad_parameters_are_refused(schools, bad):
    with pytest.raises(ValueError):
        ThreeLevelRankerCV(**bad).fit(schools)


def test_too_few_labels_are_refused():
    two = Annotations(users=[0, 0], items=None, labels=[0, 1], features=np.eye(2))
    with pytest.raises(ValueError):
        ThreeLevelRankerCV().fit(two)
    apart = Annotations(
        users=[0] * 4, items=None, labels=[0, 0, 1, 1], features=np.eye(4), choice_sets=[1, 1, 2, 2]
    )
    with pytest.raises(ValueError):
        ThreeLevelRankerCV(n_folds=2).fit(apart)


def test_any_loss_can_be_tuned(schools):
    grid = {"alpha_group": [0.3, 3.0], "n_groups": [1]}
    ranker = ThreeLevelRankerCV(grid, n_folds=2, loss="least_squares").fit(schools)
    same = ThreeLevelRanker(**ranker.best_params_, loss="least_squares").fit(schools)
    np.testing.assert_allclose(ranker.coef_, same.coef_, atol=1e-10)
    other = ThreeLevelRankerCV(grid, n_folds=2).fit(schools)
    assert np.abs(other.coef_ - ranker.coef_).max() > 1e-3


@pytest.mark.slow
def test_a_preset_of_the_one_search(schools):
    options = {"n_folds": 3, "one_standard_error": True}
    ranker = ThreeLevelRanker(loss="least_squares", standardize=False, tol=1e-3)
    search = RankerCV(ranker, **options).fit(schools)
    preset = ThreeLevelRankerCV(loss="least_squares", standardize=False, tol=1e-3, **options)
    preset.fit(schools)
    assert isinstance(preset, RankerCV)
    assert preset.best_params_ == search.best_params_
    assert preset.best_score_ == search.best_score_
    assert preset.cv_results_["params"] == search.cv_results_["params"]
    for name in ("mean_test_score", "standard_error", "split2_test_score"):
        np.testing.assert_array_equal(preset.cv_results_[name], search.cv_results_[name])
    for name in ("coef_", "group_", "personal_", "objective_trace_"):
        np.testing.assert_array_equal(getattr(preset, name), getattr(search, name))
        assert getattr(preset, name) is getattr(preset.best_estimator_, name)
    assert preset.best_estimator_.get_params() == search.best_estimator_.get_params()
    said = schools.of_users(schools.user_ids[:3])
    np.testing.assert_array_equal(search.newcomer(said).coef, preset.newcomer(said).coef)
    assert not hasattr(RankerCV(ConsensusOnly()), "newcomer")
    # What the ranker inside was given holds where the grid is silent.
    alone = RankerCV(ThreeLevelRanker(n_groups=0), {"alpha_group": [0.3, 3.0]}, n_folds=2)
    same = ThreeLevelRankerCV({"alpha_group": [0.3, 3.0], "n_groups": [0]}, n_folds=2)
    np.testing.assert_array_equal(alone.fit(schools).coef_, same.fit(schools).coef_)


@pytest.mark.seconds
def test_a_grid_of_losses_and_units_has_a_decomposition_for_each(schools):
    grid = {"loss": ["auc", "least_squares"], "standardize": [True, False], "alpha_group": [1.0]}
    both = RankerCV(ThreeLevelRanker(), grid, n_folds=2, halving=False).fit(schools)
    for candidate, score in zip(
        both.cv_results_["params"], both.cv_results_["mean_test_score"], strict=True
    ):
        alone = {"loss": candidate["loss"], "standardize": candidate["standardize"]}
        one = ThreeLevelRankerCV({"alpha_group": [1.0]}, n_folds=2, **alone).fit(schools)
        assert one.best_score_ == pytest.approx(score, abs=1e-2)
