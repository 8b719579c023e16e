"""A score taken apart adds up to the score."""

import numpy as np
import pytest

from likeminds import HierarchicalRanker, ThreeLevelRanker, make_schools
from likeminds.schools.finding import items_of
from likeminds.schools.levels import Levels
from likeminds.schools.score_parts import score_parts


@pytest.fixture(scope="module")
def crowd():
    return make_schools(30, 20, 40, 6, n_schools=2, random_state=3).annotations


@pytest.mark.parametrize("kind", [HierarchicalRanker, ThreeLevelRanker])
def test_parts_add_up_to_how_far_the_score_is_from_the_mean_score(crowd, kind):
    ranker = kind().fit(crowd)
    levels, items = Levels.of_ranker(ranker), items_of(ranker, crowd)
    person, position = 4, 7
    user = ranker.users_[person]
    more = {"items": items.ids} if kind is HierarchicalRanker else {}
    X = items.features[:, : len(ranker.feature_names_)]
    scores = ranker.decision_function(X, [user] * len(items), **more)
    facts = score_parts(levels, person, items.features[position], items.centre, error=0.5)
    assert facts["score"] == pytest.approx(scores[position] - scores.mean())
    assert sum(facts["levels"].values()) == pytest.approx(facts["score"])
    by_feature = sum(one["total"] for one in facts["features"])
    assert by_feature + facts["levels"]["item"] == pytest.approx(facts["score"])
    assert facts["interval"] == pytest.approx([facts["score"] - 0.8225, facts["score"] + 0.8225])
    sizes = [abs(one["total"]) for one in facts["features"]]
    assert sizes == sorted(sizes, reverse=True)


def test_the_average_item_has_no_reason_to_be_liked(crowd):
    levels = Levels.of_ranker(ThreeLevelRanker().fit(crowd))
    centre = np.asarray(crowd.features.mean(axis=0))
    facts = score_parts(levels, 0, centre, centre)
    assert facts["score"] == 0.0
    assert facts["error"] is None
    assert facts["interval"] is None
