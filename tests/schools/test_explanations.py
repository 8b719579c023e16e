"""One explanation: the same facts, words and order for everybody who says them."""

import json

import numpy as np
import pytest

from likeminds import (
    HierarchicalRanker,
    ThreeLevelRanker,
    find_schools,
    load,
    load_electricity,
    make_schools,
    save,
)
from likeminds.report.facts import ReportFacts, agreed
from likeminds.schools import Explanation
from likeminds.schools.explanations import likeness

pytestmark = pytest.mark.seconds


@pytest.fixture(scope="module")
def crowd():
    return make_schools(40, 40, 80, 6, 2, contested=0.5, random_state=0).annotations


@pytest.fixture(scope="module")
def explained(crowd):
    return Explanation.of_ranker(ThreeLevelRanker(n_groups=1).fit(crowd), crowd)


class TestLikeness:
    def test_it_is_the_correlation_of_scores(self, crowd, explained):
        ranker = explained.ranker
        shared = crowd.features @ ranker.consensus_
        naive = [np.corrcoef(crowd.features @ own, shared)[0, 1] for own in ranker.coef_]
        np.testing.assert_allclose(explained.likeness, naive)
        assert explained.user(ranker.users_[3])["likeness"] == pytest.approx(naive[3])

    def test_weights_that_tell_nothing_apart(self):
        spread = np.diag([1.0, 1.0, 0.0])
        weights = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 5.0]])
        assert likeness(weights, np.array([2.0, 0, 0]), spread).tolist() == [1, 0, 0]
        assert likeness(weights, np.zeros(3), spread).tolist() == [0, 1, 1]


class TestWishes:
    def test_all_who_tell_them_have_one_order(self):
        households = HierarchicalRanker(n_groups=1).fit(load_electricity())
        explained = Explanation.of_ranker(households)
        wishes = [one["wish"] for one in explained.consensus]
        assert sorted(wishes) != wishes
        told = agreed(ReportFacts(explained, households.annotations_, None, None)).split(", ")
        assert told == wishes[: len(told)]
        assert [one["wish"] for one in explained.population()["consensus"]] == wishes

    def test_the_strongest_carries_most_of_the_variance(self, crowd, explained):
        scores = crowd.features * explained.ranker.consensus_
        whole = scores.sum(axis=1)
        alone = [np.cov(part, whole)[0, 1] for part in scores.T]
        strongest = explained.consensus[0]["wish"].split()[-1]
        assert strongest == f"x{int(np.argmax(alone))}"


class TestFacts:
    def test_a_school_is_told_in_the_words_of_the_schools(self, explained):
        whole = explained.schools.to_dict()
        assert [school["size"] for school in whole["schools"]] == [20, 20]
        told = explained.school(1)
        assert told.pop("members") == explained.schools.members(1).tolist()
        assert told.pop("words").keys() == told["features"].keys()
        assert told.pop("verb") == whole["verb"] == "rate high"
        assert told == whole["schools"][0]
        person = explained.schools.members(1)[0]
        assert explained.user(person)["school"] == told
        assert explained.population().items() >= whole.items()

    def test_an_item_beats_as_many_for_a_school_as_the_school_says(self, explained):
        best = explained.schools[1].to_dict()["typical"][0]
        (first, _) = explained.item(best["item"])["schools"]
        assert first["number"] == 1
        assert first["beats"] == pytest.approx(best["beats"])

    def test_all_of_it_is_plain(self, explained):
        person, item = explained.levels.users.tolist()[0], explained.items.ids.tolist()[0]
        told = [explained.population(), explained.user(person), explained.item(item)]
        assert json.loads(json.dumps(told))[1]["user"] == person

    def test_who_is_not_there_has_no_facts(self, explained):
        with pytest.raises(KeyError):
            explained.user("nobody")
        with pytest.raises(KeyError):
            explained.item("nothing")

    def test_without_items_there_are_words_still(self, explained):
        bare = Explanation(explained.ranker)
        assert bare.population()["items"] == 0
        assert "best" not in bare.user(3)
        assert bare.user(3)["differs"]
        with pytest.raises(KeyError):
            bare.item(1)


def test_names_that_a_model_keeps_are_those_of_its_items(tmp_path):
    crowd = make_schools(20, 12, 20, 4, n_schools=2, contested=0.5, random_state=0).annotations
    ranker = HierarchicalRanker(n_groups=1).fit(crowd)
    ranker.name_items({item: f"Film {item}" for item in crowd.item_ids.tolist()})
    read = load(save(ranker, tmp_path / "films.likeminds", with_data=True))
    assert Explanation.of_ranker(read).item(3)["text"] == "Film 3"
    assert all(one.text == f"Film {one.item}" for one in find_schools(read).divisive)
    facts = Explanation.of_ranker(read).user(3)
    best = facts["best"] + facts["best_by_consensus"]
    assert list(facts["texts"]) == list(dict.fromkeys(best))
    others = Explanation.of_ranker(read, texts={3: "Heat"})
    assert others.item(3)["text"] == "Heat"
