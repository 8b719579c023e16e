import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import make_scorer, roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import naive
from crowds import make_crowd
from likeminds import Annotations, ThreeLevelRanker, make_schools
from likeminds.metrics import auc_by_user
from likeminds.solvers import PaperSolver

pytestmark = pytest.mark.filterwarnings("ignore:.*one class only:UserWarning")

QUICK = {"alpha_consensus": 0.1, "alpha_group": 1.0, "n_groups": 2, "tol": 1e-6}


@pytest.fixture(scope="module")
def schools():
    made = make_schools(30, 20, 60, 6, 2, personal_strength=0.1, random_state=0)
    return made.annotations


@pytest.fixture(scope="module")
def fitted(schools):
    return ThreeLevelRanker(**QUICK).fit(schools)


def test_levels_add_up_in_both_forms(schools, fitted):
    np.testing.assert_allclose(
        fitted.consensus_ + fitted.group_ + fitted.personal_, fitted.coef_, atol=1e-14
    )
    np.testing.assert_allclose(
        fitted.raw_consensus_ + fitted.raw_group_ + fitted.raw_personal_, fitted.coef_, atol=1e-12
    )
    np.testing.assert_allclose(fitted.group_.mean(axis=0), 0.0, atol=1e-12)
    assert fitted.coef_.shape == (30, 6)
    np.testing.assert_array_equal(fitted.users_, schools.user_ids)


@pytest.mark.parametrize("loss", naive.LOSSES)
@pytest.mark.parametrize("solver", ["fast", "accelerated"])
def test_objective_is_the_papers_at_the_raw_minimiser(schools, loss, solver):
    ranker = ThreeLevelRanker(
        0.02, 0.3, 0.1, n_groups=1, loss=loss, solver=solver, standardize=False, tol=1e-3
    ).fit(schools)
    expected = naive.objective(
        schools,
        ranker.raw_consensus_,
        ranker.raw_group_,
        ranker.raw_personal_,
        lambdas=(30 * 0.02, 0.3, 0.1, 0.0),
        n_groups=1,
        loss=loss,
    )
    assert ranker.objective_ == pytest.approx(expected, rel=1e-9)
    assert ranker.objective_trace_[-1] == ranker.objective_
    assert len(ranker.objective_trace_) == ranker.n_iter_ + 1


def test_standardize_is_a_scaler_undone_in_the_coefficients(schools):
    scaled = StandardScaler().fit(schools.X)
    inside = ThreeLevelRanker(**QUICK).fit(schools.X, schools.labels, users=schools.users)
    outside = ThreeLevelRanker(**QUICK, standardize=False).fit(
        scaled.transform(schools.X), schools.labels, users=schools.users
    )
    np.testing.assert_allclose(inside.coef_ * scaled.scale_, outside.coef_, atol=1e-8)
    np.testing.assert_allclose(inside.scale_, scaled.scale_)
    assert inside.objective_ == pytest.approx(outside.objective_)


def test_annotations_and_arrays_give_the_same(schools, fitted):
    ranker = ThreeLevelRanker(**QUICK).fit(schools.X, schools.labels, users=schools.users)
    np.testing.assert_allclose(ranker.coef_, fitted.coef_, atol=1e-9)
    np.testing.assert_allclose(
        ranker.decision_function(schools.X, users=schools.users),
        fitted.decision_function(schools),
        atol=1e-8,
    )
    assert ranker.score(schools.X, schools.labels, users=schools.users) == pytest.approx(
        fitted.score(schools)
    )


def test_scores_are_weights_times_features(schools, fitted):
    scores = fitted.decision_function(schools)
    for i in (0, 17, 599):
        assert scores[i] == pytest.approx(schools.X[i] @ fitted.coef_[schools.user_codes[i]])
    assert fitted.score(schools) == auc_by_user(schools.labels, scores, schools.users).mean


def test_learns_more_than_the_consensus(schools, fitted):
    consensus = fitted.decision_function(schools.X)  # nobody in particular
    np.testing.assert_allclose(consensus, schools.X @ fitted.consensus_)
    assert fitted.score(schools) > 0.05 + auc_by_user(schools.labels, consensus, schools.users).mean


def test_order_of_rows_and_threads_do_not_matter(schools, fitted):
    shuffled = schools[np.random.default_rng(0).permutation(len(schools))]
    with threadpool_limits(1):
        ranker = ThreeLevelRanker(**QUICK).fit(shuffled)
    np.testing.assert_allclose(ranker.coef_, fitted.coef_, atol=1e-8)


def test_weights_count_like_repeated_rows(schools):
    times = np.random.default_rng(1).integers(0, 4, len(schools))
    repeated = np.repeat(np.arange(len(schools)), times)
    weighted = ThreeLevelRanker(**QUICK).fit(
        schools.X, schools.labels, users=schools.users, sample_weight=times
    )
    copied = ThreeLevelRanker(**QUICK).fit(schools[repeated])
    np.testing.assert_allclose(weighted.coef_, copied.coef_, atol=1e-8)


def test_string_ids_and_their_order_are_kept(schools):
    names = np.array([f"who-{code:03d}" for code in schools.user_codes])
    ranker = ThreeLevelRanker(**QUICK).fit(schools.X, schools.labels, users=names)
    assert ranker.users_.tolist() == sorted(set(names.tolist()))
    one = ranker.decision_function(schools.X[:3], users=["who-002"] * 3)
    np.testing.assert_allclose(one, schools.X[:3] @ ranker.coef_[2])


def test_unknown_people_get_the_consensus_or_an_error(schools, fitted):
    rows = schools.X[:4]
    lenient = clone(fitted).set_params(unknown="consensus").fit(schools)
    scores = lenient.decision_function(rows, users=[0, "stranger", 1, -7])
    np.testing.assert_allclose(scores[[1, 3]], rows[[1, 3]] @ fitted.consensus_)
    np.testing.assert_allclose(scores[2], rows[2] @ fitted.coef_[1])
    with pytest.raises(ValueError):
        fitted.decision_function(rows, users=[0, "stranger", 1, -7])


@pytest.mark.filterwarnings("default")
def test_one_class_people_are_named_and_get_the_consensus():
    crowd = make_crowd(np.random.default_rng(0))
    with pytest.warns(UserWarning, match="person-10") as caught:
        ranker = ThreeLevelRanker(**QUICK).fit(crowd)
    assert [w.category for w in caught] == [UserWarning]
    where = ranker.users_.tolist().index("person-10")
    np.testing.assert_array_equal(ranker.coef_[where], ranker.consensus_)
    assert not ranker.group_[where].any()


def test_without_users_all_rows_are_one_persons(schools):
    ranker = ThreeLevelRanker().fit(schools.X, schools.labels)
    assert len(ranker.users_) == 1
    np.testing.assert_allclose(ranker.decision_function(schools.X), schools.X @ ranker.coef_[0])
    assert ranker.score(schools.X, schools.labels) == pytest.approx(
        roc_auc_score(schools.labels, ranker.decision_function(schools.X))
    )


def test_any_two_labels_will_do_the_larger_is_positive(schools, fitted):
    named = ThreeLevelRanker(**QUICK).fit(
        schools.X, np.where(schools.labels, "yes", "no"), users=schools.users
    )
    assert named.classes_.tolist() == ["no", "yes"]
    np.testing.assert_allclose(named.coef_, fitted.coef_, atol=1e-9)
    assert named.score(
        schools.X, np.where(schools.labels, "yes", "no"), users=schools.users
    ) == pytest.approx(fitted.score(schools))


def test_warm_start_continues(schools):
    ranker = ThreeLevelRanker(**QUICK, warm_start=True).fit(schools)
    first, objective = ranker.n_iter_, ranker.objective_
    ranker.fit(schools)
    assert ranker.n_iter_ < first
    assert ranker.objective_ == pytest.approx(objective)
    some = ranker.fit(schools.of_users([3, 4, 5, 29]))
    assert some.users_.tolist() == [3, 4, 5, 29]


def test_default_n_groups_adapts_to_small_data(schools):
    assert ThreeLevelRanker().fit(schools).n_groups_ >= 1
    assert ThreeLevelRanker().fit(schools.of_users([0])).n_groups_ <= 1


def test_stopping_early_warns(schools):
    with pytest.warns(ConvergenceWarning, match="residual"):
        ranker = ThreeLevelRanker(max_iter=1, tol=1e-12).fit(schools)
    assert not ranker.converged_


def test_a_solver_object_will_do(schools):
    ranker = ThreeLevelRanker(**QUICK | {"tol": 1e-2}, solver=PaperSolver(rho=5.0, factor=3.0))
    ranker.fit(schools)
    assert ranker.solution_.history.step_constant[0] >= 5.0


# In scikit-learn's company


def test_in_a_pipeline(schools):
    pipe = make_pipeline(StandardScaler(), PCA(3), ThreeLevelRanker(n_groups=1, tol=1e-3))
    pipe.fit(schools.X, schools.labels, threelevelranker__users=schools.users)
    assert pipe[-1].coef_.shape == (30, 3)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_in_a_grid_search_with_metadata_routing(schools, routing):
    ranker = (
        ThreeLevelRanker(n_groups=1, tol=1e-3, unknown="consensus")
        .set_fit_request(users=True)
        .set_score_request(users=True)
    )
    pipe = make_pipeline(StandardScaler(), ranker)
    search = GridSearchCV(pipe, {"threelevelranker__alpha_group": [0.3, 3.0]}, cv=3)
    search.fit(schools.X, schools.labels, users=schools.users)
    assert search.best_score_ > 0.6
    assert len(search.best_estimator_[-1].users_) == 30


def test_person_as_a_column(schools, fitted):
    X = np.column_stack([schools.X[:, :2], schools.users, schools.X[:, 2:]])
    ranker = ThreeLevelRanker(**QUICK, user_column=2).fit(X, schools.labels)
    np.testing.assert_allclose(ranker.coef_, fitted.coef_, atol=1e-9)
    assert ranker.n_features_in_ == 7
    assert ranker.score(X, schools.labels) == pytest.approx(fitted.score(schools))
    scorer = make_scorer(roc_auc_score, response_method="decision_function")
    scores = cross_val_score(
        ThreeLevelRanker(n_groups=1, tol=1e-3, user_column=2, unknown="consensus"),
        X,
        schools.labels,
        scoring=scorer,
    )
    assert (scores > 0.55).all()


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_person_as_a_named_column_of_a_frame(schools, fitted, frame):
    columns = {f"feature {j}": schools.X[:, j] for j in range(6)}
    columns = {"who": [f"p{code:02d}" for code in schools.user_codes]} | columns
    X = frame(columns)
    ranker = ThreeLevelRanker(**QUICK, user_column="who").fit(X, schools.labels)
    np.testing.assert_allclose(ranker.coef_, fitted.coef_, atol=1e-9)
    assert ranker.feature_names_in_.tolist() == list(columns)
    assert ranker.feature_names_.tolist() == list(columns)[1:]
    assert ranker.users_[0] == "p00"
    assert ranker.score(X, schools.labels) == pytest.approx(fitted.score(schools))


def test_scoring_checks_its_input(schools, fitted):
    with pytest.raises(NotFittedError):
        ThreeLevelRanker().decision_function(schools.X)
    with pytest.raises(ValueError):
        fitted.decision_function(schools.X[:, :3])
    with pytest.raises(ValueError):
        fitted.decision_function(schools.X[:2], users=[0])
    with pytest.raises(ValueError):
        fitted.score(schools.X[:2], [0, 7], users=[0, 0])
    with pytest.raises(ValueError):
        fitted.score(schools.X[:2], [0], users=[0, 0])
    with pytest.raises(ValueError):
        fitted.score(schools.X[:2])
    narrow = Annotations(users=[0], items=None, labels=[1], features=[[1.0]])
    with pytest.raises(ValueError):
        fitted.decision_function(narrow)


# More labels, progress, interrupts


def test_partial_fit_is_like_fitting_everything_at_once(schools):
    first = np.arange(len(schools)) % 3 > 0
    first[schools.user_codes >= 27] = False  # three people come later
    ranker = ThreeLevelRanker(**QUICK).partial_fit(schools[first])
    assert len(ranker.users_) == 27
    ranker.update(schools[~first])
    whole = ThreeLevelRanker(**QUICK).fit(schools)
    np.testing.assert_array_equal(ranker.users_, whole.users_)
    np.testing.assert_allclose(ranker.scale_, whole.scale_)
    assert ranker.objective_ == pytest.approx(whole.objective_, rel=1e-6)
    np.testing.assert_allclose(ranker.coef_, whole.coef_, atol=1e-3)


def test_partial_fit_with_arrays_and_one_class(schools):
    ranker = ThreeLevelRanker(**QUICK).partial_fit(
        schools.X, schools.labels.astype(int), users=schools.users
    )
    ranker.partial_fit(schools.X[:2], [1, 1], users=[0, 0])
    assert ranker.statistics_.class_weight.sum() == len(schools) + 2
    with pytest.raises(ValueError):
        ranker.partial_fit(schools.X[:2], [1, 5], users=[0, 0])
    with pytest.raises(ValueError):
        ranker.partial_fit(schools.X[:2, :3], [1, 0], users=[0, 0])


def test_fit_starts_afresh_where_partial_fit_goes_on(schools):
    ranker = ThreeLevelRanker(**QUICK).fit(schools)
    ranker.fit(schools)
    assert ranker.statistics_.class_weight.sum() == len(schools)
    ranker.partial_fit(schools)
    assert ranker.statistics_.class_weight.sum() == 2 * len(schools)


@pytest.mark.parametrize("solver", ["fast", "paper"])
def test_callback_sees_every_step_and_can_stop(schools, solver):
    seen = []

    def watch(step, objective, residual):
        seen.append((step, objective, residual))
        return step >= 3

    with pytest.warns(ConvergenceWarning):
        ranker = ThreeLevelRanker(solver=solver, tol=1e-12, callback=watch).fit(schools)
    assert [step for step, _, _ in seen] == [1, 2, 3]
    assert not ranker.converged_
    assert ranker.score(schools) > 0.5


@pytest.mark.parametrize("solver", ["fast", "paper"])
@pytest.mark.parametrize("when", [1, 4])
def test_an_interrupt_keeps_the_best_so_far(schools, solver, when):
    def interrupt(step, objective, residual):
        if step >= when:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning):
        ranker = ThreeLevelRanker(solver=solver, tol=1e-12, callback=interrupt).fit(schools)
    assert np.isfinite(ranker.coef_).all()
    assert ranker.solution_.interrupted


def test_scikit_learns_callbacks_are_told(schools):
    callback = pytest.importorskip("sklearn.callback", reason="scikit-learn has none before 1.9")

    class Count:
        steps = 0

        def setup(self, estimator, context):
            self.ended = False

        def teardown(self, estimator, context):
            self.ended = True

        def on_fit_task_begin(self, estimator, context):
            self.steps += context.task_name.startswith("step")

        def on_fit_task_end(self, estimator, context):
            return False

    count = Count()
    assert isinstance(count, callback.FitCallback)
    ranker = ThreeLevelRanker(**QUICK).set_callbacks(count).fit(schools)
    assert ranker.converged_
    assert count.steps >= ranker.n_iter_
    assert count.ended


def test_people_are_found_after_they_have_changed():
    rng = np.random.default_rng(0)
    rows, labels = rng.standard_normal((8, 2)), np.tile([True, False], 4)
    ranker = ThreeLevelRanker().fit(rows, labels, users=list("aaaabbbb"))
    before = ranker.decision_function(rows[:1], ["b"])
    ranker.fit(rows, labels, users=list("bbbbaaaa"))
    np.testing.assert_allclose(
        ranker.decision_function(rows[:1], ["b"]), rows[:1] @ ranker.coef_[1]
    )
    assert ranker.decision_function(rows[:1], ["b"]) != before
    ranker.update(Annotations(["A"] * 2, None, [True, False], rows[:2]))
    np.testing.assert_allclose(
        ranker.decision_function(rows[:1], ["A"]), rows[:1] @ ranker.coef_[0]
    )
    assert "_positions" not in ranker.__getstate__()


def test_features_that_need_a_matrix_too_large_are_refused_with_what_to_do():
    rng = np.random.default_rng(0)
    wide = rng.standard_normal((4, 20_000))
    with pytest.raises(ValueError):
        ThreeLevelRanker().fit(wide, [0, 1, 0, 1], users=[0, 0, 1, 1])
