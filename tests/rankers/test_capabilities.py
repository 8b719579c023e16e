"""A model has a type: a ranker and a model of several attributes answer the same questions."""

from inspect import getmembers

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from likeminds import (
    Annotations,
    AttributeModel,
    HierarchicalRanker,
    RankerCV,
    ThreeLevelRanker,
    load,
    make_schools,
    save,
)
from likeminds.baselines import JFL, RMTL, ConsensusOnly, PooledLogistic
from likeminds.rankers.capabilities import NAMELESS, Capability, ReadableModel


@pytest.fixture(scope="module")
def crowd():
    return make_schools(12, 20, 40, 4, 2, contested=0.5, random_state=0).annotations


def models(crowd):
    """Return a model of each kind, with the names of its attributes."""
    pair = {"open": crowd, "pointy": crowd[:200]}
    return [
        (HierarchicalRanker(n_groups=1).fit(crowd), [NAMELESS]),
        (RankerCV(ConsensusOnly(), {"alpha": [1.0]}, n_folds=2).fit(crowd), [NAMELESS]),
        (AttributeModel(HierarchicalRanker(n_groups=1)).fit(pair), ["open", "pointy"]),
    ]


@pytest.mark.seconds
def test_every_model_answers_the_same_questions(crowd, tmp_path):
    for fitted, attributes in models(crowd):
        save(fitted, tmp_path / "m.likeminds", with_data=True)
        for model in (fitted, load(tmp_path / "m.likeminds")):
            assert isinstance(model, ReadableModel)
            assert list(model.rankers_) == attributes
            assert model.has_attributes == (attributes != [NAMELESS])
            assert sorted(model.users_.tolist()) == sorted(crowd.user_ids.tolist())
            assert model.feature_names_.tolist() == list(crowd.feature_names)
            for name in attributes:
                users = model._ranker_of(name).users_
                np.testing.assert_array_equal(users, model.rankers_[name].users_)
            with pytest.raises(KeyError):
                model._ranker_of("wide")


@pytest.mark.seconds
def test_what_was_kept(crowd, tmp_path):
    (alone, _), (searched, _), (several, _) = models(crowd)
    assert len(alone.training_annotations_) == len(crowd)
    assert searched.training_annotations_ is None  # it learns from statistics
    assert several.training_annotations_.n_items == crowd.n_items
    assert load(save(alone, tmp_path / "bare.likeminds")).training_annotations_ is None


@pytest.mark.seconds
def test_fingerprints_are_known_by_attribute(crowd, tmp_path):
    (alone, _), _, (several, _) = models(crowd)
    assert alone.fingerprint_of() is None
    read = load(save(alone, tmp_path / "m.likeminds"))
    assert read.fingerprint_of() == several.fingerprint_of("open") == read.fingerprint_
    assert several.fingerprint_of("pointy") != several.fingerprint_of("open")


def test_what_not_every_model_learns_is_none(crowd):
    ranker = ThreeLevelRanker().fit(crowd)
    assert ranker.pictures_ is None
    assert ranker.item_ids_ is None
    with pytest.raises(AttributeError):
        _ = ranker.no_such_thing_
    assert ranker._best_model is ranker
    searched = RankerCV(ConsensusOnly(), {"alpha": [1.0]}, n_folds=2).fit(crowd)
    assert searched._best_model is searched.best_estimator_


def test_abilities_are_asked_by_name(crowd):
    can = {
        HierarchicalRanker(): set(Capability) - {Capability.LEVELS},
        ThreeLevelRanker(): {Capability.UPDATES, Capability.NEWCOMERS},
        ConsensusOnly(): {Capability.UPDATES},
        PooledLogistic(): set(),
        AttributeModel(): {Capability.UPDATES, Capability.NEWCOMERS},
        RankerCV(ConsensusOnly()): {Capability.UPDATES},
        RankerCV(PooledLogistic()): set(),
    }
    for model, abilities in can.items():
        assert {ability for ability in Capability if ability.of(model)} == abilities, model
    with pytest.raises(TypeError):
        Capability.UPDATES.require(PooledLogistic())
    Capability.UPDATES.require(ConsensusOnly())
    for model, able in ((ThreeLevelRanker(), True), (RMTL(), True), (JFL(), False)):
        assert Capability.LEVELS.of(model.fit(crowd)) is able, model


def test_the_levels_of_components_are_the_weights():
    crowd = make_schools(12, 20, 40, 4, 2, contested=0.5, random_state=1).annotations
    ranker = RMTL().fit(crowd)
    np.testing.assert_allclose(ranker.consensus_ + ranker.group_ + ranker.personal_, ranker.coef_)
    np.testing.assert_allclose(ranker.group_.mean(axis=0), 0, atol=1e-12)


def test_many_distinct_numbers_are_announced_as_grades():
    values = np.linspace(-1.0, 1.0, 60)
    with pytest.warns(UserWarning, match="threshold="):
        Annotations(np.repeat(["ann", "bob"], 30), list(range(30)) * 2, values)
    assert Annotations(["ann"] * 60, range(60), values, grades=True).grades is not None


METHODS = {
    HierarchicalRanker: [
        *("decision_function", "standard_error", "predict", "predict_proba", "predict_grades"),
        *("rank_interval", "next_items", "new_items", "user_posterior", "rank", "rank_all"),
        *("probability_above", "probability_preferred", "probability_tied", "explain"),
        *("similar_users", "newcomer"),
        *("similar_items", "log_likelihood", "summary", "wtp", "shares", "elasticities", "score"),
    ],
    ThreeLevelRanker: ["decision_function", "rank", "rank_all", "explain", "newcomer", "score"],
    AttributeModel: ["decision_function", "match", "rank", "newcomer", "scores", "score"],
    ConsensusOnly: ["decision_function", "rank", "explain", "similar_users", "score"],
}

# These fit, or need no fit; the others are for other modules of the package.
WITHOUT_FIT = {"fit", "update", "partial_fit", "name_items", "get_params", "get_metadata_routing"}
INTERNAL = {
    *("consensus_scores", "fingerprint_of", "item_posteriors", "item_posteriors_of"),
    *("item_scores", "scorable_ids", "training_items"),
}


def test_every_public_method_is_listed():
    methods = {name for name, _ in getmembers(HierarchicalRanker, callable)}
    public = {name for name in methods if not name.startswith(("_", "set_"))}
    assert public - WITHOUT_FIT - INTERNAL == set(METHODS[HierarchicalRanker])


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, names in METHODS.items() for name in names]
)
def test_every_method_of_an_unfitted_model_raises_not_fitted_error(kind, name):
    model, crowd = kind(), make_schools(3, 4, 5, 2, 1, random_state=0).annotations
    given = {
        "match": ("ann", crowd.X),
        "new_items": (crowd,),
        "wtp": (0,),
        "shares": (crowd.X,),
        "elasticities": (crowd.X, 0),
        "rank_interval": (0, crowd.X),
        "summary": (crowd,),
        "probability_above": (crowd.X, crowd.X),
        "probability_preferred": (crowd.X, crowd.X),
        "probability_tied": (crowd.X, crowd.X),
        "explain": (0, 1),
        "similar_users": (0,),
        "similar_items": (0,),
        "rank_all": (),
        "user_posterior": (0,),
        "next_items": (0, crowd.X),
        "log_likelihood": (crowd,),
        "rank": ("ann", crowd.X) if kind is AttributeModel else ("ann",),
        **dict.fromkeys(["newcomer", "scores", "score"], (crowd,)),
    }
    if kind is AttributeModel and name in {"newcomer", "scores", "score"}:
        given[name] = ({"open": crowd},)
    ask = getattr(model, name)
    with pytest.raises(NotFittedError):
        list(ask(*given.get(name, (crowd,))))  # `rank_all` is a generator
