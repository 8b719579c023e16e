"""The best items for a person: rank."""

import numpy as np
import pytest

from likeminds import (
    Annotations,
    HierarchicalRanker,
    ThreeLevelRanker,
    load_electricity,
)
from likeminds.baselines import Popularity
from likeminds.schools import Explanation


@pytest.fixture(scope="module")
def crowd():
    rng = np.random.default_rng(0)
    features = {f"i{j}": rng.normal(size=2) for j in range(12)}
    rows = [(f"p{i}", f"i{j}") for i in range(8) for j in rng.permutation(12)[:8]]
    users, items = zip(*rows, strict=True)
    labels = [features[item][int(person[1]) % 2] > 0 for person, item in rows]
    return Annotations(users, items, labels, features)


@pytest.fixture(scope="module")
def ranker(crowd):
    return HierarchicalRanker(n_groups=1).fit(crowd)


@pytest.mark.parametrize("make", [HierarchicalRanker, ThreeLevelRanker, Popularity])
def test_in_the_order_of_the_scores(crowd, make):
    fitted = make().fit(crowd)
    ids, features = crowd.distinct_items()
    scores = fitted.decision_function(features, ["p3"] * len(ids), items=ids)
    ranking = fitted.rank("p3", crowd)
    assert ranking.items.tolist() == ids[np.argsort(-scores, kind="stable")].tolist()
    assert np.all(np.diff(ranking.scores) <= 0)
    assert [item for item, _ in ranking] == ranking.items.tolist()


def test_the_best_few_are_the_first_of_all(ranker):
    whole = ranker.rank("p1")
    assert len(whole) == 12
    few = ranker.rank("p1", k=3)
    assert few.items.tolist() == whole.items[:3].tolist()
    assert few.scores.tolist() == whole.scores[:3].tolist()
    assert ranker.rank("p1", k=99).items.tolist() == whole.items.tolist()


def test_equal_scores_stay_in_their_order(ranker):
    same = {name: [1.0, 1.0] for name in "dcba"}
    assert ranker.rank("p1", same, k=3).items.tolist() == ["d", "c", "b"]


def test_what_was_judged_is_left_out(ranker, crowd):
    judged = set(crowd.of_user("p1").items)
    fresh = ranker.rank("p1", unseen=True)
    assert set(fresh.items) == set(crowd.item_ids) - judged
    only = {item: [0.0, 1.0] for item in judged}
    assert len(ranker.rank("p1", only, unseen=True)) == 0


def test_for_everyone(ranker):
    ranking = ranker.rank()
    assert ranking.user is None
    assert repr(ranking).startswith("Ranking for everyone: i")


def test_what_one_person_praised_does_not_come_before_what_all_like():
    rng = np.random.default_rng(1)
    liked = {"loved": 0.95, "fair": 0.6, "poor": 0.2, "bad": 0.1}
    rows = [(i, name, rng.random() < share) for i in range(60) for name, share in liked.items()]
    rows += [(i, f"rare {i}", i < 10) for i in range(30)]
    users, items, labels = zip(*rows, strict=True)
    ranker = HierarchicalRanker(n_item_factors=0).fit(Annotations(users, items, labels))
    ranking = ranker.rank()
    assert ranking.items[0] == "loved"
    place = {item: rank for rank, item in enumerate(ranking.items.tolist())}
    assert place["fair"] < min(rank for item, rank in place.items() if "rare" in item)
    ids, features = ranker.training_annotations_.distinct_items()
    expected = ranker.decision_function(features, items=ids)
    error = dict(zip(ranker.items_.tolist(), ranker.item_effect_error_, strict=True))
    sure = {item: s - 1.645 * error[item] for item, s in zip(ids.tolist(), expected, strict=True)}
    assert dict(ranking) == pytest.approx(sure)
    # By what is expected alone, something that one person praised comes before "fair".
    score = dict(zip(ids.tolist(), expected, strict=True))
    assert max(score[f"rare {i}"] for i in range(10)) > score["fair"]
    explained = Explanation.of_ranker(ranker)
    best = [one["item"] for one in explained.population()["best"]]
    assert best == ranking.items[: len(best)].tolist()
    assert explained.user(0)["best_by_consensus"] == best


def test_new_items_need_features_or_a_lenient_ranker():
    positions, items = np.repeat(np.arange(12), 8), np.tile(np.arange(8), 12)
    labels = (items + positions % 3) > 4
    ranker = HierarchicalRanker(n_item_factors=0).fit(Annotations(positions, items, labels))
    rows, users = np.empty((2, 0)), [0, 0]
    ranker.set_params(unknown="consensus")
    assert np.isfinite(ranker.decision_function(rows, users, items=[7, 99])).all()
    assert ranker.rank(0, {7: [], 99: []}).items.tolist() == [7, 99]


def test_bad_input(ranker):
    with pytest.raises(KeyError):
        ranker.rank("bob")
    with pytest.raises(ValueError):
        ranker.rank("p1", k=0)
    with pytest.raises(TypeError):
        ranker.rank("p1", [[1.0, 2.0]])
    with pytest.raises(ValueError):
        ranker.rank(unseen=True)
    without = ThreeLevelRanker().fit(load_electricity().X[:40], [0, 1] * 20)
    with pytest.raises(ValueError):
        without.rank()


def test_notebooks_show_what_was_learned(ranker):
    shown = ranker._repr_html_()
    assert shown.startswith("<div><strong>HierarchicalRanker of 8 people</strong>")
    assert ranker._repr_mimebundle_()["text/html"].startswith("<div><strong>")
    assert not HierarchicalRanker()._repr_html_().startswith("<div><strong>Hier")
    assert "<td>i" in ranker.rank("p1", k=2)._repr_html_()
