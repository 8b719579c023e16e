"""Why an item has its score: parts that add up to it, and how sure it is."""

import numpy as np
import pytest

from likeminds import Annotations, HierarchicalRanker, ThreeLevelRanker, load, make_schools, save
from likeminds.baselines import Popularity


@pytest.fixture(scope="module")
def crowd():
    return make_schools(30, 20, 40, 6, n_schools=2, random_state=3).annotations


@pytest.fixture(scope="module")
def ranker(crowd):
    return HierarchicalRanker().fit(crowd)


@pytest.mark.parametrize("make", [HierarchicalRanker, ThreeLevelRanker])
def test_parts_add_up_to_how_far_the_score_is_from_the_mean_score(crowd, make):
    fitted = make().fit(crowd)
    ids, features = crowd.distinct_items()
    user = fitted.users_[4]
    scores = fitted.decision_function(features, [user] * len(ids), items=ids)
    why = fitted.explain(user, ids[7], crowd)
    assert why.score == pytest.approx(scores[7] - scores.mean())
    assert sum(why.levels.values()) == pytest.approx(why.score)
    by_feature = sum(one["total"] for one in why.features)
    assert by_feature + why.levels["item"] == pytest.approx(why.score)
    for level in ("consensus", "group", "personal"):
        assert sum(one[level] for one in why.features) == pytest.approx(why.levels[level])
    sizes = [abs(one["total"]) for one in why.features]
    assert sizes == sorted(sizes, reverse=True)


def test_it_is_as_sure_as_the_score_is(ranker, crowd):
    assert ranker.item_effects_
    ids, features = crowd.distinct_items()
    user = ranker.users_[2]
    why = ranker.explain(user, ids[3])
    error = ranker.standard_error(features[[3]], [user], ids[[3]])[0]
    assert why.error == pytest.approx(error)
    assert why.interval == pytest.approx([why.score - 1.645 * error, why.score + 1.645 * error])
    assert why.probability == ranker.predict_proba(features[[3]], [user], ids[[3]])[0, 1]
    assert ThreeLevelRanker().fit(crowd).explain(user, ids[3], crowd).interval is None


def test_for_all_people_nothing_is_the_groups_or_personal(ranker):
    why = ranker.explain(None, 5)
    assert why.levels["group"] == why.levels["personal"] == 0.0
    assert str(why).startswith("All people on 5: ")


def test_as_a_table_a_text_and_a_page(ranker, crowd):
    why = ranker.explain(0, 5)
    table = why.table()
    assert table.num_rows == len(why.features) + 1  # the item itself
    assert sum(table["total"].to_pylist()) == pytest.approx(why.score)
    assert "chance of a yes" in repr(why)
    assert "by feature" in str(why)
    assert "<table>" in why._repr_html_()
    assert why.to_dict()["levels"] == why.levels


def test_ids_are_read_as_they_are_meant_and_others_suggested(crowd):
    named = Annotations(
        users=[f"person {i}" for i in crowd.users],
        items=[f"Film, The ({i})" for i in crowd.items],
        labels=crowd.labels,
        features=crowd.X,
        features_per="row",
    )
    ranker = HierarchicalRanker(n_groups=1, n_item_factors=0).fit(named)
    with pytest.raises(KeyError):
        ranker.explain("person 1", "Film (12)")
    with pytest.raises(KeyError):
        ranker.explain("Person1", "Film, The (12)")


def test_items_that_were_never_seen_and_models_without_data(ranker, tmp_path):
    new = {"round": np.ones(6), "flat": np.zeros(6)}
    why = ranker.explain(1, "round", new)
    assert why.levels["item"] == 0.0
    assert why.features[0]["average"] == 0.5
    again = load(save(ranker, tmp_path / "model"))
    assert again.explain(1, "round", new).to_dict() == why.to_dict()
    with pytest.raises(ValueError):
        again.explain(1, 5)


def test_rankers_without_levels_say_so(crowd):
    with pytest.raises(TypeError):
        Popularity().fit(crowd).explain(0, 1, crowd)
