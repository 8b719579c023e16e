"""Several attributes: fitted together, asked together, grown together."""

import numpy as np
import pyarrow
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from likeminds import (
    Annotations,
    AttributeModel,
    HierarchicalRanker,
    RankerCV,
    ThreeLevelRanker,
    baselines,
    fingerprint,
    load,
    make_schools,
    save,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*one class only:UserWarning"),
    pytest.mark.seconds,
]


@pytest.fixture(scope="module")
def crowds():
    """Three attributes of the same items, labelled by different people."""
    items = np.random.default_rng(0).standard_normal((40, 6))
    found = {}
    for seed, name in enumerate(["comfortable", "open", "pointy"]):
        made = make_schools(25, 15, 40, 6, 2, contested=0.5, random_state=seed)
        said = made.annotations
        labels = np.einsum("nd,nd->n", items[said.item_codes], made.coef[said.user_codes]) > 0.3
        users = [f"{'abc'[seed]}{user}" if user > 9 else f"all{user}" for user in said.users]
        found[name] = Annotations(users, said.item_codes, labels, items, item_ids=np.arange(40))
    return found


@pytest.fixture(scope="module")
def items(crowds):
    return crowds["open"].features


@pytest.fixture(scope="module")
def model(crowds):
    return AttributeModel(ThreeLevelRanker(tol=1e-3)).fit(crowds)


def test_it_is_one_ranker_per_attribute(model, crowds, items):
    assert model.attributes_ == list(crowds) == list(model.rankers_)
    assert len(model.users_) == 10 + 3 * 15
    assert model.n_features_in_ == 6
    users = ["all3"] * 39 + ["a12"]
    together = model.decision_function(items, users)
    assert together.shape == (40, 3)
    for column, (name, said) in enumerate(crowds.items()):
        alone = ThreeLevelRanker(tol=1e-3, unknown="consensus").fit(said)
        np.testing.assert_allclose(model.rankers_[name].coef_, alone.coef_)
        np.testing.assert_allclose(together[:, column], alone.decision_function(items, users))
        np.testing.assert_allclose(model.decision_function(items, users, name), together[:, column])
        assert model.fingerprints_[name] == fingerprint(said)
    # Who never labelled an attribute gets its consensus.
    assert together[39, 1] == pytest.approx(items[39] @ model.rankers_["open"].consensus_)


def test_nothing_to_choose_is_the_hierarchical_ranker(crowds):
    model = AttributeModel().fit({"open": crowds["open"]})
    assert isinstance(model.rankers_["open"], HierarchicalRanker)


def test_a_table_with_a_column_of_attributes(model, crowds):
    columns = {"user": [], "label": [], "attribute": [], "item": []}
    features = {f"x{j}": [] for j in range(6)}
    for name, said in crowds.items():
        columns["user"] += said.users.tolist()
        columns["item"] += said.items.tolist()
        columns["label"] += said.labels.tolist()
        columns["attribute"] += [name] * len(said)
        for j in range(6):
            features[f"x{j}"] += said.X[:, j].tolist()
    said = Annotations.from_frame(pyarrow.table(columns | features))
    again = AttributeModel(ThreeLevelRanker(tol=1e-3)).fit(said)
    assert again.attributes_ == sorted(crowds)
    for name in crowds:
        np.testing.assert_allclose(
            again.rankers_[name].coef_, model.rankers_[name].coef_, atol=1e-3
        )
        assert again.fingerprints_[name] == model.fingerprints_[name]


@pytest.mark.slow
def test_several_at_the_same_time(model, crowds):
    together = AttributeModel(ThreeLevelRanker(tol=1e-3), n_jobs=2).fit(crowds)
    assert together.attributes_ == model.attributes_
    for name in crowds:
        np.testing.assert_allclose(together.rankers_[name].coef_, model.rankers_[name].coef_)


def test_progress(crowds):
    told = []
    AttributeModel(baselines.ConsensusOnly()).fit(crowds, callback=lambda *step: told.append(step))
    assert told == [("comfortable", 1, 3), ("open", 2, 3), ("pointy", 3, 3)]


def test_scikit_learn_manners(model, crowds):
    assert clone(model).get_params()["ranker__tol"] == 1e-3
    fresh = clone(model).set_params(ranker__tol=0.5)
    assert fresh.ranker.tol == 0.5
    assert model.ranker.tol == 1e-3
    assert not hasattr(model.ranker, "coef_")  # what was given is not fitted
    with pytest.raises(NotFittedError):
        AttributeModel().decision_function(crowds["open"])
    with pytest.raises(NotFittedError):
        AttributeModel().newcomer(crowds)


def test_scores(model, crowds):
    scores = model.scores(crowds)
    assert list(scores) == list(crowds)
    assert scores["open"] == model.rankers_["open"].score(crowds["open"])
    assert model.score(crowds) == pytest.approx(np.mean(list(scores.values())))
    assert list(model.scores({"pointy": crowds["pointy"]})) == ["pointy"]


def test_wishes(model, items):
    n = len(items)
    places = {
        name: (model.decision_function(items, ["all1"] * n, name).argsort().argsort() + 0.5) / n
        for name in model.attributes_
    }
    wish = {"like": ["comfortable", "open"], "not_like": ["pointy"]}
    expected = (places["comfortable"] + places["open"] + 1 - places["pointy"]) / 3
    np.testing.assert_allclose(model.match("all1", items, **wish), expected)
    best = model.rank("all1", items, **wish, k=7)
    np.testing.assert_array_equal(best, np.argsort(-expected, kind="stable")[:7])
    assert sorted(model.rank("all1", items, **wish).tolist()) == list(range(n))
    # Liking one attribute is its ranking, not liking it the reverse.
    scores = model.decision_function(items, attribute="open")
    np.testing.assert_array_equal(model.rank(None, items, like=["open"]), np.argsort(-scores))
    np.testing.assert_array_equal(model.rank(None, items, not_like=["open"]), np.argsort(scores))
    everything = model.match(None, items, like=model.attributes_)
    np.testing.assert_allclose(model.match(None, items), everything)


def test_equal_items_match_alike(model, items):
    match = model.match("all1", np.vstack([items[:3], items[:3]]))
    np.testing.assert_allclose(match[:3], match[3:])
    np.testing.assert_allclose(model.match("all1", items[:1]), [0.5])


def test_wishes_that_make_no_sense(model, items):
    with pytest.raises(ValueError):
        model.rank(None, items, like=["open"], not_like=["open"])
    with pytest.raises(TypeError):
        model.rank(None, items, like="open")
    with pytest.raises(KeyError):
        model.rank(None, items, like=["shiny"])
    with pytest.raises(ValueError):
        model.rank(None, items, k=0)


def test_newcomers(model, crowds, items):
    first = crowds["open"].of_user("all2")[:8]
    named = Annotations(["zoe"] * 8, None, first.labels, first.X)
    new = model.newcomer({"open": named})
    expected = model.rankers_["open"].newcomer(named)
    np.testing.assert_allclose(
        new.decision_function(items, attribute="open"), expected.decision_function(items)
    )
    # Of what she did not label, she gets the consensus.
    np.testing.assert_allclose(
        new.decision_function(items, attribute="pointy"),
        items @ model.rankers_["pointy"].consensus_,
    )
    assert new.decision_function(items, ["zoe"] * 40).shape == (40, 3)
    wish = new.rank("zoe", items, like=["open"], not_like=["pointy"], k=3)
    np.testing.assert_array_equal(
        wish, new.rank(None, items, like=["open"], not_like=["pointy"], k=3)
    )
    assert len(wish) == 3


def test_several_newcomers_by_several_attributes(model, crowds, items):
    said = {"open": crowds["open"][:60], "pointy": crowds["pointy"][:75]}
    new = model.newcomer(said)
    positions = {name: one.users.tolist() for name, one in new.posterior.items()}
    (other,) = set(positions["pointy"]) - set(positions["open"])
    users = np.array(["all0", "all0", other], dtype=object)
    scores = new.decision_function(items[:3], users)
    assert scores[2, 1] == pytest.approx(items[2] @ model.rankers_["open"].consensus_)
    assert scores[0, 1] == pytest.approx(
        new.posterior["open"].decision_function(items[:1], ["all0"])[0]
    )
    with pytest.raises(ValueError):
        new.decision_function(items)
    plain = AttributeModel(baselines.ConsensusOnly()).fit(crowds)
    with pytest.raises(TypeError):
        plain.newcomer(said)


@pytest.mark.seconds
def test_more_labels(crowds, tmp_path):
    firsts = {name: said[:250] for name, said in crowds.items() if name != "pointy"}
    more = {name: said[250:] for name, said in crowds.items()}
    more["pointy"] = crowds["pointy"]
    model = AttributeModel(ThreeLevelRanker(tol=1e-6)).fit(firsts)
    path = save(model, tmp_path / "m", with_data=True)
    whole = AttributeModel(ThreeLevelRanker(tol=1e-6)).fit(crowds)
    for grown in (load(path).update(more), model.update(more)):
        assert grown.attributes_ == ["comfortable", "open", "pointy"]
        assert grown.fingerprints_ == whole.fingerprints_
        assert sorted(grown.users_.tolist()) == sorted(whole.users_.tolist())
        for name in crowds:
            np.testing.assert_allclose(
                grown.rankers_[name].coef_, whole.rankers_[name].coef_, atol=1e-2
            )
            assert grown.rankers_[name].n_labels_ == len(crowds[name])
    assert AttributeModel().update({"open": crowds["open"]}).attributes_ == ["open"]


def test_more_labels_where_none_can_be_taken(crowds):
    first = {"open": crowds["open"]}
    single = AttributeModel(baselines.PooledLogistic()).fit(first)
    with pytest.raises(TypeError):
        single.update(first)
    search = AttributeModel(RankerCV(baselines.ConsensusOnly(), n_folds=2)).fit(first)
    assert search.update(first).rankers_["open"].n_labels_ == 2 * len(crowds["open"])


def test_bad_input(crowds, model):
    with pytest.raises(TypeError):
        AttributeModel().fit(np.eye(3))
    with pytest.raises(TypeError):
        AttributeModel().fit({})
    with pytest.raises(TypeError):
        AttributeModel().fit({"open": [1]})
    with pytest.raises(ValueError):
        AttributeModel().fit(crowds["open"])
    other = Annotations(["a", "a"], None, [0, 1], np.eye(2))
    with pytest.raises(ValueError):
        AttributeModel().fit({"open": crowds["open"], "odd": other})
    with pytest.raises(ValueError):
        model.update({"open": other})
    with pytest.raises(KeyError):
        model.scores({"odd": other})
    one_class = Annotations(["a", "a"], None, [1, 1], np.eye(2))
    with pytest.raises(ValueError):
        AttributeModel().fit({"odd": one_class})


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_warnings_say_which_attribute(crowds, n_jobs):
    with pytest.warns(UserWarning, match="open"):
        AttributeModel(ThreeLevelRanker(max_iter=1, tol=0.0), n_jobs=n_jobs).fit(
            {"open": crowds["open"]}
        )


def test_an_interrupt_is_no_fitted_attribute():
    def interrupt(step, objective, residual):
        raise KeyboardInterrupt

    crowd = make_schools(12, 12, 25, 4, 2, contested=0.5, random_state=0).annotations
    for ranker in (HierarchicalRanker(1, callback=interrupt), ThreeLevelRanker(callback=interrupt)):
        model = AttributeModel(ranker)
        with pytest.raises(KeyboardInterrupt):
            model.fit({"open": crowd, "pointy": crowd})
