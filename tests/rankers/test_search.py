import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import ParameterGrid

from crowds import make_crowd
from interrupted import Interrupted
from likeminds import (
    Annotations,
    RankerCV,
    ThreeLevelRanker,
    load,
    make_schools,
    save,
    split_within_users,
)
from likeminds.baselines import (
    RMTL,
    ConsensusOnly,
    LogisticPerUser,
    OnePerUser,
    PooledLogistic,
    Popularity,
    RidgeToConsensus,
)
from likeminds.data.splits import folds_within_users

# A ranker that learns from statistics, one that has a warm start, and one that needs rows.
SEARCHES = {
    "statistics": (RidgeToConsensus(), {"alpha": [10.0, 1.0, 0.1]}),
    "warm start": (RMTL(), {"alpha_low_rank": [0.3, 0.1, 0.03]}),
    "rows": (LogisticPerUser(), {"C": [0.01, 0.1, 1.0]}),
}


@pytest.fixture(scope="module")
def schools():
    return make_schools(30, 30, 80, 8, 3, contested=0.5, random_state=1).annotations


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=pytest.mark.slow) if kind == "rows" else kind for kind in SEARCHES],
)
@pytest.mark.seconds
def test_scores_are_those_of_fitting_every_complement(schools, kind):
    ranker, grid = SEARCHES[kind]
    search = RankerCV(ranker, grid, n_folds=3, halving=False).fit(schools)
    folds = folds_within_users(schools, 3, 0)
    for c, candidate in enumerate(ParameterGrid(grid)):
        for k in range(3):
            by_hand = type(ranker)(**(ranker.get_params() | candidate)).fit(schools[folds != k])
            measured = search.cv_results_[f"split{k}_test_score"][c]
            assert measured == pytest.approx(by_hand.score(schools[folds == k]), abs=2e-3)


@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.seconds
def test_fitted_like_the_ranker_with_the_best_parameters(schools, kind):
    ranker, grid = SEARCHES[kind]
    search = RankerCV(ranker, grid, n_folds=3).fit(schools)
    best = type(ranker)(**(ranker.get_params() | search.best_params_)).fit(schools)
    np.testing.assert_allclose(search.coef_, best.coef_, atol=1e-4)
    np.testing.assert_allclose(
        search.decision_function(schools), best.decision_function(schools), atol=1e-3
    )
    assert search.best_estimator_.get_params() == best.get_params()
    assert search.score(schools) == pytest.approx(best.score(schools), abs=1e-3)


@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.seconds
def test_several_workers_reach_the_same(schools, kind):
    one, two = (RankerCV(*SEARCHES[kind], n_folds=2, n_jobs=n).fit(schools) for n in (1, 2))
    for name in ("split0_test_score", "split1_test_score", "mean_test_score"):
        np.testing.assert_allclose(one.cv_results_[name], two.cv_results_[name])
    assert one.best_params_ == two.best_params_


@pytest.mark.parametrize(
    "ranker",
    [ConsensusOnly(), OnePerUser(), RidgeToConsensus(), PooledLogistic(), LogisticPerUser()],
)
@pytest.mark.slow
def test_default_grids_go_from_strong_to_weak_and_help(schools, ranker):
    train, test = split_within_users(schools, 0.3, 0)
    search = RankerCV(ranker, n_folds=2).fit(train)
    name = "C" if "C" in search.best_params_ else "alpha"
    strength = [c[name] for c in search.cv_results_["params"]]
    assert strength == sorted(strength, reverse=name == "alpha")
    worst = type(ranker)(**{name: strength[0]}).fit(train).score(test)
    assert search.score(test) > worst - 0.01


def test_the_first_within_one_standard_error_is_taken(schools):
    ranker, grid = OnePerUser(), {"alpha": [10.0, 1.0, 0.1, 0.01]}
    search = RankerCV(ranker, grid, n_folds=3, halving=False, one_standard_error=True).fit(schools)
    means, errors = (search.cv_results_[n] for n in ("mean_test_score", "standard_error"))
    best = means.argmax()
    assert search.best_index_ == np.flatnonzero(means >= means[best] - errors[best])[0]


def test_nothing_to_tune_is_simply_fitted(schools):
    search = RankerCV(Popularity()).fit(schools)
    expected = Popularity().fit(schools).decision_function(schools)
    np.testing.assert_array_equal(search.decision_function(schools), expected)
    assert search.best_params_ == {}
    assert np.isnan(search.best_score_)
    few = Annotations(users=["a", "b"], items=None, labels=[0, 1], features=[[1.0], [1.0]])
    with pytest.raises(ValueError):
        RankerCV(PooledLogistic()).fit(few)
    assert RankerCV(Popularity()).fit(few).decision_function(few).tolist() == [1.0, 0.0]


def test_races_are_silent_and_the_last_fit_is_not(schools):
    coarse = ThreeLevelRanker(max_iter=1, tol=1e-9)
    with pytest.warns(ConvergenceWarning) as said:
        RankerCV(coarse, {"alpha_group": [3.0, 0.3]}, n_folds=3).fit(schools)
    assert len(said) == 1
    crowd = make_crowd(np.random.default_rng(0))
    with pytest.warns(UserWarning, match="one class") as said:
        RankerCV(OnePerUser(), n_folds=2).fit(crowd)
    assert len(said) == 1


def test_an_interrupted_race_chooses_nothing(schools):
    with pytest.raises(KeyboardInterrupt):
        RankerCV(Interrupted(), {"alpha_group": [3.0, 0.3]}, n_folds=2).fit(schools)


def test_strangers_and_the_user_column_are_as_the_ranker_has_them(schools):
    table = np.column_stack([schools.user_codes, schools.X])
    ranker = ConsensusOnly(user_column=0, unknown="error")
    search = RankerCV(ranker, {"alpha": [0.1, 0.01]}, n_folds=2).fit(table, schools.labels)
    assert search.coef_.shape == (30, 8)
    rows = Annotations(schools.users, None, schools.labels, schools.X)
    plain = RankerCV(ConsensusOnly(), {"alpha": [0.1, 0.01]}, n_folds=2).fit(rows)
    assert search.score(table, schools.labels) == pytest.approx(plain.score(schools))
    table[0, 0] = 99
    with pytest.raises(ValueError):
        search.decision_function(table)


def test_a_search_is_saved_with_its_best_ranker(tmp_path, schools):
    search = RankerCV(ConsensusOnly(), n_folds=2).fit(schools.X, schools.labels, schools.users)
    again = load(save(search, tmp_path / "m"))
    assert again.best_params_ == search.best_params_
    assert again.score(schools) == search.score(schools)
    np.testing.assert_array_equal(again.best_estimator_.coef_, search.coef_)


def test_more_labels_without_a_new_search(schools):
    search = RankerCV(ConsensusOnly(), n_folds=2).fit(schools[:600])
    chosen = search.best_params_
    assert search.update(schools[600:]) is search
    assert search.best_params_ == chosen
    assert search.n_labels_ == 900
    whole = ConsensusOnly(**chosen).fit(schools)
    np.testing.assert_allclose(search.coef_, whole.coef_)
    single = RankerCV(PooledLogistic(), {"C": [1.0]}, n_folds=2).fit(schools[:600])
    with pytest.raises(TypeError):
        single.update(schools[600:])


def test_dir_of_an_unfitted_search_lists_its_methods():
    names = dir(RankerCV(OnePerUser()))
    assert "fit" in names
    assert "item_effects_" not in names
