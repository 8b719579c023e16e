"""Schools of people who judge items that are known by nothing but their ids."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import adjusted_rand_score

from likeminds import Annotations, HierarchicalRanker, find_schools, write_report
from likeminds.plots import heatmap, user_card
from likeminds.schools import Explanation
from likeminds.schools.population import Items
from likeminds.schools.school_soft_labels import YesLogOdds

pytestmark = pytest.mark.seconds

N_PEOPLE, N_ITEMS = 80, 40


@pytest.fixture(scope="module")
def crowd():
    """Two schools: all like s0 to s9, nobody n0 to n9, the rest sets them apart."""
    rng = np.random.default_rng(0)
    side = np.repeat([1.0, -1.0], [50, 30])
    ids = [f"{kind}{n}" for kind in "snab" for n in range(10)]
    shared, apart = np.repeat([2.0, -2.0, 0.0, 0.0], 10), np.repeat([0.0, 0.0, 2.0, -2.0], 10)
    log_odds = shared + side[:, None] * apart
    seen = rng.random(log_odds.shape) < 0.6
    users, items = np.nonzero(seen)
    labels = rng.random(len(users)) < expit(log_odds[users, items])
    said = Annotations(users, np.array(ids, dtype=object)[items], labels, verb="like")
    return said, side, HierarchicalRanker(n_item_factors=1).fit(said)


def test_schools_and_items_are_those_of_the_construction(crowd):
    _, side, ranker = crowd
    found = find_schools(ranker)
    assert len(found) == 2
    assert adjusted_rand_score(side, found.labels) > 0.8
    assert {one.item[0] for one in found.agreed} == {"s"}
    assert {one.item[0] for one in found.divisive} <= {"a", "b"}
    likes, dislikes = found[1].name.split(", dislikes ")
    assert likes.startswith("likes a")
    assert dislikes.startswith("b")


def test_an_axis_says_each_item_once(crowd):
    _, _, ranker = crowd
    first = find_schools(ranker).axes[0]
    low, high = (set(end.removeprefix("likes ").split(" and ")) for end in (first.low, first.high))
    assert low
    assert high
    assert not low & high
    assert "dislikes" not in first.low + first.high


def test_unlabelled_items_are_those_a_person_would_like(crowd):
    said, _, ranker = crowd
    explained = Explanation.of_ranker(ranker)
    titles = set()
    for person in range(10):
        facts = explained.user(person)
        seen = set(said.of_user(person).items.tolist())
        assert facts["labelled"] == [item for item in facts["best"] if item in seen]
        assert facts["expected"] is None
        titles.add(len(facts["labelled"]))
    assert len(titles) > 1
    without = Explanation(ranker, explained.items, labels=said[said.users != 0])
    assert without.user(0)["labelled"] == []


def test_log_odds_are_scores_and_intercepts(crowd):
    said, _, ranker = crowd
    items = Items.of_annotations(said, np.random.default_rng(0)).with_learned(ranker)
    liking = YesLogOdds.of_ranker(ranker, items, said)
    log_odds = liking.weights @ liking.rows.T + liking.intercept[:, None] + liking.offset
    of_labels = ranker.decision_function(said) + ranker.intercept_[said.user_codes]
    places = items.positions_of(said)
    np.testing.assert_allclose(log_odds[said.user_codes, places], of_labels, atol=1e-9)


def test_everything_that_is_told_works(crowd, tmp_path):
    said, _, ranker = crowd
    explained = Explanation.of_ranker(ranker)
    assert explained.population()["best"][0]["item"].startswith("s")
    assert explained.item("a3")["schools"][0]["beats"] > 0.5
    assert explained.user(0)["best"]
    page = write_report(ranker, tmp_path / "page.html", said, diagnostics=False).read_text()
    assert "Items that every school likes" in page


@pytest.mark.slow
def test_a_learned_feature_is_named_after_the_items_with_most_and_least_of_it(crowd):
    _, _, ranker = crowd
    explained = Explanation.of_ranker(ranker)
    factor = ranker.item_factors_[:, 0]
    ends = [str(ranker.items_[place]) for place in (factor.argmax(), factor.argmin())]
    assert {name[0] for name in ends} == {"a", "b"}
    words = f"{ends[0]} rather than {ends[1]}"
    assert explained.feature_words == (words, "popularity")
    assert find_schools(ranker).feature_words == explained.feature_words
    facts = explained.user(0)
    assert facts["features"][0]["words"] == words
    assert facts["differs"].startswith(("likes a", "likes b", "dislikes "))
    assert "learned" not in facts["differs"]
    figure = user_card(ranker, 0)
    ticks = [label.get_text() for axes in figure.axes for label in axes.get_yticklabels()]
    assert words in ticks
    columns = [
        label.get_text()
        for axes in heatmap(ranker, explained.schools).axes
        for label in axes.get_yticklabels()
    ]
    assert words in columns
