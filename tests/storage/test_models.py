import copy
import json
import pickle
from functools import cache

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file
from sklearn.base import clone

import likeminds.storage.models
from crowds import make_crowd
from likeminds import (
    Annotations,
    AttributeModel,
    HierarchicalRanker,
    RankerCV,
    ThreeLevelRanker,
    ThreeLevelRankerCV,
    baselines,
    fingerprint,
    load,
    make_schools,
    read_card,
    save,
)
from likeminds.solvers import PaperSolver
from likeminds.storage import safetensors
from likeminds.storage.models import ModelFileError

pytestmark = pytest.mark.filterwarnings("ignore:.*one class only:UserWarning")


@pytest.fixture(scope="module")
def shared():
    """People who label the same items, so that every ranker has something to learn."""
    return make_schools(12, 12, 25, 4, 2, contested=0.5, random_state=0).annotations


def test_round_trip(path, ranker):
    again = load(path)
    crowd = make_crowd(np.random.default_rng(1))
    assert again.get_params() == ranker.get_params()
    np.testing.assert_array_equal(again.users_, ranker.users_)
    for name in ("coef_", "consensus_", "group_", "personal_", "raw_group_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(ranker, name))
    assert again.converged_ is ranker.converged_
    assert again.objective_ == ranker.objective_
    assert again.feature_names_.tolist() == ranker.feature_names_.tolist()
    np.testing.assert_array_equal(again.decision_function(crowd), ranker.decision_function(crowd))


EVERY = [
    ThreeLevelRanker(tol=1e-2),
    ThreeLevelRankerCV({"alpha_group": [1.0, 3.0]}, n_folds=2),
    HierarchicalRanker(n_groups=1),
    HierarchicalRanker(1, "auc"),
    RankerCV(baselines.RidgeToConsensus(), {"alpha": [0.1, 1.0]}, n_folds=2),
    AttributeModel(ThreeLevelRanker(tol=1e-2)),
    *(getattr(baselines, name)() for name in baselines.__all__),
    baselines.RAMU(threshold=np.inf),
]


LARGE = [False, pytest.param(True, marks=pytest.mark.slow)]


@pytest.fixture(scope="module")
def fitted_once(shared):
    """Fit each ranker for the first test that asks for it."""

    @cache
    def fit(fresh):
        several = isinstance(fresh, AttributeModel)
        return clone(fresh).fit({"open": shared, "pointy": shared[:100]} if several else shared)

    return fit


@pytest.mark.filterwarnings("ignore:Stopped after:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("fresh", EVERY, ids=repr)
@pytest.mark.parametrize("large", LARGE)
@pytest.mark.seconds
def test_every_model_comes_back(  # noqa: PLR0917
    tmp_path, shared, fitted_once, fresh, large, request
):
    if large:
        request.getfixturevalue("mapped")
    fitted = fitted_once(fresh)
    again = load(save(fitted, tmp_path / "m"))
    assert repr(again) == repr(fitted)
    np.testing.assert_array_equal(again.decision_function(shared), fitted.decision_function(shared))
    lost = set(fitted._fitted_names()) - set(again._fitted_names())
    assert lost <= {"statistics_", "annotations_", "solution_", "components_"}
    # And from there to another file, and to other processes.
    once_more = load(save(again, tmp_path / "n"))
    assert (tmp_path / "m").read_bytes() == (tmp_path / "n").read_bytes()
    for copied in (pickle.loads(pickle.dumps(once_more)), copy.deepcopy(load(tmp_path / "n"))):
        np.testing.assert_array_equal(
            copied.decision_function(shared), fitted.decision_function(shared)
        )


def test_tuning_results_are_kept(tmp_path, shared):
    fitted = ThreeLevelRankerCV({"alpha_group": [1.0, 3.0]}, n_folds=2).fit(shared)
    again = load(save(fitted, tmp_path / "m"))
    assert again.cv_results_["params"] == fitted.cv_results_["params"]
    np.testing.assert_array_equal(
        again.cv_results_["mean_test_score"], fitted.cv_results_["mean_test_score"]
    )


@pytest.mark.parametrize(
    "ids",
    [
        [1, 1, 2, 2],
        [(1, "a"), (1, "a"), "b", "b"],
        [0.5, 0.5, 1.5, 1.5],
        ["é"] * 2 + ["x"] * 2,
        np.array(["2026-01-01", "2026-01-01", "2026-01-02", "2026-01-02"], dtype="M8[D]"),
    ],
)
def test_ids_come_back_as_they_were(tmp_path, ids):
    said = Annotations(users=ids, items=None, labels=[0, 1, 0, 1], features=np.eye(4))
    fitted = ThreeLevelRanker(tol=1e-2).fit(said)
    again = load(save(fitted, tmp_path / "m"))
    assert again.users_.tolist() == fitted.users_.tolist()
    assert [type(i) for i in again.users_.tolist()] == [type(i) for i in fitted.users_.tolist()]
    np.testing.assert_array_equal(again.decision_function(said), fitted.decision_function(said))


def test_refuses_what_cannot_be_saved(tmp_path, ranker):
    with pytest.raises(TypeError):
        save(PaperSolver(), tmp_path / "m")
    said = Annotations(users=[0, 0], items=None, labels=[0, 1], features=np.eye(2))
    custom = ThreeLevelRanker(solver=PaperSolver(), tol=1e-2).fit(said)
    with pytest.raises(TypeError):
        save(custom, tmp_path / "m")
    odd = Annotations(users=[frozenset("a")] * 2, items=None, labels=[0, 1], features=np.eye(2))
    with pytest.raises(TypeError):
        save(ThreeLevelRanker(tol=1e-2).fit(odd), tmp_path / "m")
    with pytest.raises(TypeError):
        save(ranker, tmp_path / "m", scores={"auc": object()})
    with pytest.raises(FileNotFoundError):
        save(ranker, tmp_path / "no" / "such" / "folder" / "m")
    with pytest.raises(IsADirectoryError):
        save(ranker, tmp_path)
    assert list(tmp_path.iterdir()) == []


# What the card says.


def test_card(tmp_path, shared):
    fitted = HierarchicalRanker(n_groups=1).fit(shared)
    scores = {"auc": np.float64(0.75), "by person": [0.5, float("nan")]}
    card = read_card(save(fitted, tmp_path / "m", scores=scores))
    assert card["format"] == likeminds.storage.models.FORMAT == 3
    assert card["ranker"] == "HierarchicalRanker"
    assert card["parameters"]["n_groups"] == 1
    assert card["features"] == ["x0", "x1", "x2", "x3"]
    assert (card["users"], card["labels"]) == (12, len(shared))
    assert card["preprocessing"] == {"standardize": True, "scale": fitted.scale_.tolist()}
    assert card["fingerprint"] == fingerprint(shared)
    assert card["scores"] == {"auc": 0.75, "by person": [0.5, "nan"]}
    assert card["attributes"] is None
    assert card["takes_updates"] is False
    assert read_card(save(fitted, tmp_path / "m", with_data=True))["takes_updates"] is True


def test_card_of_a_ranker_that_keeps_no_labels(tmp_path, shared):
    fitted = ThreeLevelRanker(tol=1e-2).fit(shared)
    assert read_card(save(fitted, tmp_path / "m"))["fingerprint"] is None
    told = read_card(save(fitted, tmp_path / "m", data=shared))
    assert told["fingerprint"] == fingerprint(shared)
    assert fitted.fingerprint_ is None
    save(fitted, tmp_path / "m", data=shared, with_data=True)
    again = load(tmp_path / "m").update(shared[:5])
    card = read_card(save(again, tmp_path / "m"))
    assert card["labels"] == len(shared) + 5
    assert card["fingerprint"] == fingerprint(shared.concat(shared[:5]))
    assert read_card(save(again.fit(shared), tmp_path / "m"))["fingerprint"] is None


def test_card_of_several_attributes(tmp_path, shared):
    model = AttributeModel(RankerCV(baselines.ConsensusOnly(), n_folds=2))
    model.fit({"open": shared, "pointy": shared.of_users([0, 1, 2])})
    card = read_card(save(model, tmp_path / "m"))
    assert card["ranker"] == "AttributeModel"
    assert card["parameters"]["ranker"]["class"] == "RankerCV"
    assert list(card["attributes"]) == ["open", "pointy"]
    assert card["attributes"]["pointy"]["users"] == 3
    assert card["attributes"]["pointy"]["preprocessing"]["standardize"] is True
    assert card["attributes"]["open"]["fingerprint"] == fingerprint(shared)
    assert card["users"] == 12


def test_the_card_is_read_without_the_arrays(path, monkeypatch):
    def fail(*arguments):
        raise AssertionError

    monkeypatch.setattr(safetensors.ArrayFile, "array", fail)
    assert read_card(path)["users"] == 12
    # A file that has lost its arrays is refused all the same.
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(ModelFileError):
        read_card(path)


def test_any_reader_of_safetensors_can_open_it(path, ranker):
    arrays = load_file(path)
    np.testing.assert_array_equal(arrays["coef_"], ranker.coef_)
    with safe_open(path, framework="numpy") as file:
        assert json.loads(file.metadata()["likeminds"])["users"] == 12


# Lazily.


def test_nothing_is_read_before_it_is_asked_for(path, mapped):
    again = load(path)
    assert "coef_" not in vars(again)
    assert "users_" not in vars(again)
    assert again.coef_ is again.coef_
    assert "coef_" in vars(again)
    assert "users_" not in vars(again)
    with pytest.raises(ValueError, match="read-only"):
        again.coef_[0, 0] = 1.0
    assert not hasattr(again, "no_such_thing_")
    with pytest.raises(AttributeError):
        again.nothing_  # noqa: B018


def test_a_fit_forgets_the_file(path, mapped):
    other = make_crowd(np.random.default_rng(5), n_features=3)
    again = load(path).fit(other)
    assert again.coef_.shape == (12, 3)
    fresh = ThreeLevelRanker(0.1, 1.0, 0.5, tol=1e-2).fit(other)
    np.testing.assert_allclose(again.coef_, fresh.coef_)
    assert again.raw_group_.shape == (12, 3)


def test_several_attributes_are_read_one_by_one(tmp_path, shared, mapped):
    model = AttributeModel(ThreeLevelRanker(tol=1e-2)).fit({"open": shared, "pointy": shared})
    path = save(model, tmp_path / "m")
    content = bytearray(path.read_bytes())
    content[content.rfind(model.rankers_["pointy"].coef_.tobytes())] ^= 1
    path.write_bytes(content)
    again = load(path)
    expected = model.decision_function(shared, attribute="open")
    np.testing.assert_array_equal(again.decision_function(shared, attribute="open"), expected)
    with pytest.raises(ModelFileError):
        again.decision_function(shared, attribute="pointy")


def test_what_two_share_is_written_once(tmp_path, shared):
    search = RankerCV(baselines.ConsensusOnly(), n_folds=2).fit(shared)
    assert search.coef_ is search.best_estimator_.coef_
    names = load_file(save(search, tmp_path / "m"))
    assert sum(name.endswith("coef_") for name in names) == 1


def test_an_array_that_what_cannot_be_stored_shares_is_written(tmp_path, shared):
    ranker = baselines.ConsensusOnly().fit(shared)
    ranker.also_ = [ranker.coef_, object()]
    again = load(save(ranker, tmp_path / "m"))
    np.testing.assert_array_equal(again.coef_, ranker.coef_)
    assert not hasattr(again, "also_")


def test_arrays_that_are_no_blocks_are_written_right(tmp_path, shared):
    fitted = ThreeLevelRanker(tol=1e-2).fit(shared)
    fitted.coef_ = np.asfortranarray(fitted.coef_)
    fitted.group_ = np.repeat(fitted.group_, 2, axis=0)[::2]
    fitted.empty_ = np.zeros((0, 3))
    again = load(save(fitted, tmp_path / "m"))
    np.testing.assert_array_equal(again.coef_, fitted.coef_)
    np.testing.assert_array_equal(again.group_, fitted.group_)
    assert again.empty_.shape == (0, 3)


def test_arrays_are_written_in_pieces(tmp_path, shared, monkeypatch):
    fitted = ThreeLevelRanker(tol=1e-2).fit(shared)
    whole = save(fitted, tmp_path / "m").read_bytes()
    monkeypatch.setattr(safetensors, "_PIECE", 100)
    assert save(fitted, tmp_path / "m").read_bytes() == whole


# More labels.


@pytest.mark.seconds
@pytest.mark.parametrize("fresh", [ThreeLevelRanker(), HierarchicalRanker(n_groups=1)])
@pytest.mark.parametrize("large", LARGE)
def test_more_labels_after_loading(tmp_path, shared, fresh, large, request):
    if large:
        request.getfixturevalue("mapped")
    first, more = shared[:100], shared[100:]
    here = clone(fresh).fit(first)
    there = load(save(here, tmp_path / "m", with_data=True))
    here.update(more)
    there.update(more)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-12)
    assert there.users_.tolist() == shared.user_ids.tolist()
    assert there.n_labels_ == len(shared)
    # New people, and a second time.
    stranger = Annotations(["new"] * 4, None, [0, 1, 0, 1], shared.X[:4])
    known = Annotations(shared.users.astype(str), None, shared.labels, shared.X)
    grown = load(save(clone(fresh).fit(known), tmp_path / "m", with_data=True)).update(stranger)
    twice = load(save(grown, tmp_path / "m", with_data=True)).update(stranger)
    assert twice.users_[-1] == "new"
    assert twice.n_labels_ == len(shared) + 8


def test_more_labels_for_tuned_rankers(tmp_path, shared):
    fitted = ThreeLevelRankerCV({"alpha_group": [1.0, 3.0]}, n_folds=2).fit(shared[:100])
    again = load(save(fitted, tmp_path / "m", with_data=True)).update(shared[100:])
    assert again.best_params_ == fitted.best_params_
    best = ThreeLevelRanker(**fitted.best_params_).fit(shared)
    np.testing.assert_allclose(again.coef_, best.coef_, atol=1e-6)


@pytest.mark.parametrize("fresh", [ThreeLevelRanker(), HierarchicalRanker(n_groups=1)])
def test_without_the_data_there_is_nothing_to_add_to(tmp_path, shared, fresh):
    again = load(save(clone(fresh).fit(shared), tmp_path / "m"))
    with pytest.raises(ValueError):
        again.update(shared)
    names = load_file(tmp_path / "m")
    assert not any("statistics_" in name or "annotations_" in name for name in names)


@pytest.mark.parametrize("fresh", [ThreeLevelRanker(), HierarchicalRanker(n_groups=1)])
def test_newcomers_to_a_loaded_model(tmp_path, shared, fresh):
    fitted = clone(fresh).fit(shared)
    again = load(save(fitted, tmp_path / "m"))
    np.testing.assert_array_equal(again.newcomer(shared).coef, fitted.newcomer(shared).coef)


def test_newcomers_need_nobody_elses_weights(tmp_path, shared, mapped):
    again = load(save(HierarchicalRanker(n_groups=1).fit(shared), tmp_path / "m"))
    again.newcomer(shared.X[:4], shared.labels[:4])
    assert not {"coef_", "users_", "information_"} & set(vars(again))
