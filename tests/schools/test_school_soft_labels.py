"""Which share of a crowd, and of its schools, says yes; what all like, and what divides them."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from likeminds import Annotations, HierarchicalRanker, ThreeLevelRanker, find_schools
from likeminds.metrics.severity import calibrate
from likeminds.schools import Explanation, school_soft_labels
from likeminds.schools.population import Items
from likeminds.schools.school_soft_labels import BOUND, VoteMatrices, YesLogOdds, shares_of_groups

pytestmark = pytest.mark.seconds

N_ITEMS = 40
SHARED = np.arange(10)  # liked by all, by construction
SCORNED = np.arange(10, 20)  # by nobody


def make_opposed(n_users=60, n_labels=24, seed=0):
    """Return two schools that like and scorn the same items, and differ on all others."""
    rng = np.random.default_rng(seed)
    features = np.zeros((N_ITEMS, 3))
    features[SHARED, 0], features[SCORNED, 0] = 1.0, -1.0
    features[20:30, 1], features[30:, 1] = 1.0, -1.0
    features += rng.normal(0, 0.1, features.shape)
    side = np.repeat([1.0, -1.0], [2 * n_users // 3, n_users - 2 * n_users // 3])
    weights = np.stack([np.full(n_users, 3.0), 3.0 * side, np.zeros(n_users)], axis=1)
    users = np.repeat(np.arange(n_users), n_labels)
    items = np.concatenate([rng.permutation(N_ITEMS)[:n_labels] for _ in range(n_users)])
    chance = expit(np.einsum("nd,nd->n", features[items], weights[users]))
    said = Annotations(users, items, rng.random(len(users)) < chance, features, verb="like")
    return said, side, expit(weights @ features.T)


@pytest.fixture(scope="module")
def opposed():
    return make_opposed()


@pytest.fixture(scope="module")
def ranker(opposed):
    return HierarchicalRanker().fit(opposed[0])


@pytest.fixture(scope="module")
def found(ranker):
    return find_schools(ranker)


@pytest.mark.parametrize("kind", [HierarchicalRanker, ThreeLevelRanker])
def test_agreed_items_are_those_liked_by_construction(opposed, kind):
    found = find_schools(kind().fit(opposed[0]), opposed[0], n_schools=2)
    assert len(found.agreed) == 8
    assert {one.item for one in found.agreed} <= set(SHARED.tolist())
    assert {one.item for one in found.divisive} <= set(range(20, N_ITEMS))
    soft = found.soft_labels
    assert (soft.at_least[SHARED] > 0.5).all()
    assert (soft.at_least[np.setdiff1d(np.arange(N_ITEMS), SHARED)] < 0.5).all()


def test_shares_are_those_of_the_truth(opposed, found):
    _, side, chance = opposed
    soft = found.soft_labels
    for position in range(2):
        truth = chance[found.labels == position].mean(axis=0)
        assert np.abs(soft.by_school[position] - truth).mean() < 0.06
        inside = np.abs(soft.by_school[position] - truth) < 3 * soft.error_by_school[position]
        assert inside.mean() > 0.85
    assert np.ptp(side[found.labels == 0]) == 0


def test_shares_are_votes_and_predictions(opposed, ranker, found):
    said, _, _ = opposed
    liking = YesLogOdds.of_ranker(
        ranker, Items.of_annotations(said, np.random.default_rng(0)), said
    )
    whole = np.empty((60, N_ITEMS))
    doubt, slope = np.zeros((2, 60, N_ITEMS))
    labels = dict(zip(zip(said.user_codes, said.item_codes, strict=True), said.labels, strict=True))
    for i in range(60):
        rows = said.features
        own = ranker.prior_.items.of(said.item_ids)
        eta = rows @ ranker.coef_[i] + ranker.intercept_[i]
        eta += own.effects + own.factors @ ranker.factor_weights_[i]
        points = np.hstack([ranker.prior_.design.rows(rows), own.factors])
        variance = np.einsum("np,pq,nq->n", points, ranker._posterior().covariance(i), points)
        size = ranker.prior_.design.size
        weighed = ranker.prior_.prior.covariance[size:, size:]
        variance += own.effect_variance + np.trace(
            own.factor_covariance @ weighed, axis1=1, axis2=2
        )
        k = 1 / np.sqrt(1 + np.pi / 8 * variance)
        for j in range(N_ITEMS):
            p = expit(k[j] * eta[j])
            vote = labels.get((i, j))
            whole[i, j] = p if vote is None else vote
            if vote is None:
                doubt[i, j], slope[i, j] = p * (1 - p), k[j] * p * (1 - p)
    soft = found.soft_labels
    np.testing.assert_allclose(soft.share, whole.mean(axis=0), atol=1e-5)
    variance = doubt.sum(axis=0) / 60**2 + slope.mean(axis=0) ** 2 * liking.shared
    np.testing.assert_allclose(soft.error, np.sqrt(variance), atol=1e-5)
    for position in range(2):
        mine = found.labels == position
        np.testing.assert_allclose(soft.by_school[position], whole[mine].mean(axis=0), atol=1e-5)
    place = found.coordinates[:, 0]
    low, high = np.quantile(place, [0.25, 0.75])
    for end, mine in enumerate((place <= low, place >= high)):
        np.testing.assert_allclose(soft.at_ends[0, end], whole[mine].mean(axis=0), atol=1e-5)
    np.testing.assert_array_equal(soft.n_votes, np.bincount(said.item_codes, minlength=N_ITEMS))
    lower = np.clip(soft.by_school - BOUND * soft.error_by_school, 0, 1).min(axis=0)
    np.testing.assert_allclose(soft.at_least, lower)


def test_where_all_have_voted_the_share_is_theirs():
    said, _, _ = make_opposed(n_labels=N_ITEMS)
    soft = find_schools(HierarchicalRanker(n_groups=1).fit(said)).soft_labels
    yes = np.bincount(said.item_codes, weights=said.labels) / 60
    np.testing.assert_allclose(soft.share, yes)
    assert not soft.error.any()


def test_without_schools_there_are_no_shares_of_schools(ranker):
    found = find_schools(ranker, n_schools=1)
    assert found.soft_labels.by_school.shape == (0, N_ITEMS)
    assert found.to_dict()["agreed"][0]["by_school"] == []
    assert found.soft_labels.table().column_names[-1] == "at_least"


def test_what_one_school_agrees_with_holds_at_both_ends_of_what_divides_it(ranker):
    found = find_schools(ranker, n_schools=1)
    soft = found.soft_labels
    assert found.everywhere == "at both ends of what divides people"
    assert soft.at_ends.shape == (len(found.axes), 2, N_ITEMS)
    at_ends = (soft.at_ends - BOUND * soft.error_at_ends).reshape(-1, N_ITEMS)
    bounds = np.vstack([soft.share - BOUND * soft.error, at_ends])
    np.testing.assert_allclose(soft.at_least, np.clip(bounds.min(axis=0), 0, 1))
    # Two thirds are of one mind, and more than half like it: that is not what all agree with.
    one_sided = (soft.share > 0.5) & ~np.isin(np.arange(N_ITEMS), SHARED)
    assert one_sided.any()
    assert (soft.at_least[one_sided] < 0.5).all()


def test_where_nothing_divides_people_at_least_is_their_share(ranker):
    soft = find_schools(ranker, n_schools=1).soft_labels
    alike = replace(soft, at_ends=soft.at_ends[:0], error_at_ends=soft.error_at_ends[:0])
    np.testing.assert_allclose(alike.at_least, np.clip(soft.share - BOUND * soft.error, 0, 1))


def test_several_labels_about_one_item_are_one_vote():
    said = Annotations(
        ["a", "a", "b", "c"], [0, 0, 0, 1], [1, 0, 1, 0], np.eye(2), weights=[3.0, 1.0, 1.0, 0.0]
    )
    items = Items.of_annotations(said, np.random.default_rng(0))
    votes = VoteMatrices.of_annotations(said, np.array(["b", "a", "x"], dtype=object), items)
    np.testing.assert_array_equal(votes.voted.toarray(), [[1, 0], [1, 0], [0, 0]])
    np.testing.assert_allclose(votes.yes.toarray(), [[1, 0], [0.75, 0], [0, 0]])


def test_a_sample_of_people_speaks_for_all(opposed, ranker, found, monkeypatch):
    said, _, _ = opposed
    monkeypatch.setattr(school_soft_labels, "_MOST_USERS", 30)
    items = Items.of_annotations(said, np.random.default_rng(0))
    liking = YesLogOdds.of_ranker(ranker, items, said)
    votes = VoteMatrices.of_annotations(said, ranker.users_, items)
    groups = (found.labels == np.arange(2)[:, None]) | (np.arange(2) == 1)[:, None]
    share, error = shares_of_groups(liking, votes, groups, np.random.default_rng(1))
    whole = found.soft_labels
    assert np.abs(share - [whole.by_school[0], whole.share]).max() < 0.15
    assert error[1].sum() > 1.1 * whole.error.sum()  # people differ most among all
    assert (np.abs(share[1] - whole.share) < 3 * error[1]).mean() > 0.9


def test_calibration_is_the_best_there_is():
    rng = np.random.default_rng(0)
    scores, users = rng.normal(3.0, 2.0, 300), rng.integers(4, size=300)
    labels = rng.random(300) < expit(0.7 * scores - 2 + users)
    weight = rng.uniform(0.5, 2.0, 300)
    factor, numbers = calibrate(scores, labels, users, 5, weight)
    assert numbers[4] == pytest.approx(numbers[:4].mean())  # said nothing: the crowd's
    pull = weight * (labels - expit(factor * scores + numbers[users]))
    assert pull @ scores == pytest.approx(0, abs=1e-4)
    own = np.bincount(users, weights=pull, minlength=5)
    np.testing.assert_allclose(own, numbers - numbers.mean(), atol=1e-4)


def test_without_labels_scores_are_no_probabilities(opposed):
    said, _, _ = opposed
    bare = ThreeLevelRanker().fit(said)
    items = Items.of_annotations(said, np.random.default_rng(0))
    assert bare.training_annotations_ is None
    found = find_schools(bare, items)
    assert found.soft_labels is None
    assert found.agreed == ()
    assert found.divisive
    assert "likes" in found[1].name  # places say it, too


class TestNames:
    def test_a_school_is_named_after_the_items_that_set_it_apart(self, found):
        for school in found.schools:
            words = school.name.replace(" and ", " ").replace(",", "").split()
            assert words[0] == "likes"
            assert "dislikes" in words
            liked = {int(word) for word in words[: words.index("dislikes")] if word.isdigit()}
            rejected = {int(word) for word in words[words.index("dislikes") :] if word.isdigit()}
            expected = set(range(20, 30)), set(range(30, 40))
            assert liked
            assert rejected
            mine = expected if school.number == 1 else expected[::-1]
            assert (liked <= mine[0]) & (rejected <= mine[1])

    def test_texts_are_shown_shortened(self, ranker):
        texts = {n: f"Statement number {n} {'and so on ' * 10}" for n in range(N_ITEMS)}
        found = find_schools(ranker, texts=texts)
        assert found[1].name.startswith('likes "Statement number 2')
        assert found.axes[0].high.count("...") >= 2
        assert len(found[1].name) < 260
        assert found.agreed[0].text == texts[found.agreed[0].item]
        assert found.to_dict()["agreed"][0]["text"] == found.agreed[0].text

    def test_names_that_mean_something_stay(self, opposed):
        said, _, _ = opposed
        named = Annotations(
            said.users, said.items, said.labels, said.features, feature_names=["age", "size", "hue"]
        )
        found = find_schools(HierarchicalRanker().fit(named))
        assert "high size" in found[1].name
        assert "likes" not in found[1].name


def test_everything_is_plain(ranker, found):
    told = json.loads(json.dumps(Explanation.of_ranker(ranker).population()))
    first = told["agreed"][0]
    assert first["at_least"] <= min(first["by_school"])
    assert told["divisive"][0].keys() >= {"spread", "share", "by_school", "votes"}
    table = found.soft_labels.table()
    assert table.num_rows == N_ITEMS
    assert table.column_names[:5] == ["item", "votes", "share", "error", "at_least"]


@pytest.mark.parametrize("loss", ["gaussian", "cumulative"])
def test_shares_of_grades_are_those_above_the_cut(opposed, loss):
    said, _, chance = opposed
    rng = np.random.default_rng(0)
    liked = np.log(chance / (1 - chance))[said.user_codes, said.item_codes]
    grades = np.clip(np.round(3 + liked + rng.logistic(size=len(said))), 1, 5)
    graded = Annotations(said.users, said.items, grades, said.features)
    ranker = HierarchicalRanker(n_groups=1, loss=loss, n_item_factors=0).fit(graded)
    items = Items.of_annotations(graded, rng)
    yes, _ = YesLogOdds.of_ranker(ranker, items, graded).of_users(np.arange(60))
    predicted = yes[graded.user_codes, graded.item_codes]
    assert predicted.mean() == pytest.approx(graded.labels.mean(), abs=0.03)
    assert np.abs(predicted - graded.labels).mean() < 0.3
