"""Newcomers: any number of labels, without a refit, about as good as one."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from tools.next_items_picture import learning_curves

from crowds import make_crowd
from likeminds import (
    Annotations,
    HierarchicalRanker,
    Statistics,
    ThreeLevelRanker,
    ThreeLevelRankerCV,
    load_electricity,
    make_schools,
    split_within_users,
)
from likeminds.losses import LOSSES
from likeminds.metrics import mean_auc

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*one class only:UserWarning"),
    pytest.mark.seconds,
]


@pytest.fixture(scope="module")
def schools():
    return make_schools(80, 30, 120, 8, 2, random_state=0).annotations


@pytest.fixture(scope="module", params=["three levels", "tuned", "logistic", "auc"])
def fitted(request, schools):
    fresh = {
        "three levels": ThreeLevelRanker(),
        "tuned": ThreeLevelRankerCV({"alpha_group": [1.0, 3.0]}, n_folds=2),
        "logistic": HierarchicalRanker(2, "logistic", item_effects=False),
        "auc": HierarchicalRanker(2, "auc"),
    }
    return fresh[request.param].fit(schools)


def held_out(crowd, n_new, n_labels, seed=0):
    """Divide a crowd into those who are there, a few labels of the others, and their rest."""
    rng = np.random.default_rng(seed)
    users = rng.permutation(crowd.user_ids)
    there, new = crowd.of_users(users[n_new:]), crowd.of_users(users[:n_new])
    order, offsets = new.user_index()
    first = np.zeros(len(new), dtype=bool)
    for person in range(new.n_users):
        mine = rng.permutation(order[offsets[person] : offsets[person + 1]])
        first[mine[:n_labels]] = True
    return there, new[first], new[~first]


CROWDS = {
    "schools": lambda: make_schools(200, 50, 600, 20, 3, random_state=0).annotations,
    "households": load_electricity,
}


@pytest.mark.parametrize("crowd", CROWDS)
@pytest.mark.parametrize(
    "ranker",
    [
        ThreeLevelRanker(),
        HierarchicalRanker(),
        HierarchicalRanker(2, "logistic", item_effects=False),
    ],
    ids=repr,
)
@pytest.mark.slow
def test_about_as_good_as_a_refit(crowd, ranker):
    everybody = CROWDS[crowd]()
    n_new = everybody.n_users // 5
    ranker.fit(held_out(everybody, n_new, 5)[0])
    for n_labels in (5, 25):
        there, few, rest = held_out(everybody, n_new, n_labels)
        scores = ranker.newcomer(few).decision_function(rest.X, rest.users)
        folded = mean_auc(rest.labels, scores, rest.users)
        consensus = mean_auc(rest.labels, ranker.consensus_scores(rest), rest.users)
        assert folded > consensus + 0.02
        refitted = clone(ranker).fit(there.concat(few))
        assert folded > refitted.score(rest) - 0.01


@pytest.mark.seconds
def test_choices_are_about_as_good_as_a_refit():
    households = load_electricity()
    there = households.of_users(households.user_ids[60:])
    new = households.of_users(households.user_ids[:60])
    few, rest = split_within_users(new, 0.7, 0)  # whole choice sets
    ranker = HierarchicalRanker().fit(there)
    assert ranker.loss_ == "choice"
    scores = ranker.newcomer(few).decision_function(rest.X, rest.users)
    folded = mean_auc(rest.labels, scores, rest.users)
    consensus = mean_auc(rest.labels, ranker.consensus_scores(rest), rest.users)
    refitted = HierarchicalRanker().fit(there.concat(few)).score(rest)
    assert folded > refitted - 0.01
    assert folded > consensus + 0.02


@pytest.mark.parametrize("crowd", CROWDS)
def test_two_labels_do_no_harm(crowd):
    everybody = CROWDS[crowd]()
    there, few, rest = held_out(everybody, everybody.n_users // 4, 2)
    ranker = ThreeLevelRanker().fit(there)
    scores = ranker.newcomer(few).decision_function(rest.X, rest.users)
    assert (
        mean_auc(rest.labels, scores, rest.users)
        > mean_auc(rest.labels, ranker.consensus_scores(rest), rest.users) - 0.005
    )


def test_many_labels_outweigh_the_crowd():
    rng = np.random.default_rng(3)
    ranker = ThreeLevelRanker().fit(make_schools(60, 30, 120, 8, 2, random_state=0).annotations)
    rows, truth = rng.standard_normal((4000, 8)), rng.standard_normal(8)
    found = ranker.newcomer(rows, rows @ truth > 0).coef[0]
    assert np.corrcoef(found, truth)[0, 1] > 0.99
    assert np.corrcoef(ranker.consensus_, truth)[0, 1] < 0.9


def test_without_labels_people_are_what_the_crowd_is_like(fitted, schools):
    items = schools.features[:9]
    for new in (
        fitted.newcomer(),
        fitted.newcomer(np.empty((0, 8)), []),
        fitted.newcomer(users=["zoe"]),
    ):
        np.testing.assert_allclose(new.coef[0], fitted.consensus_)
        np.testing.assert_allclose(new.decision_function(items), items @ fitted.consensus_)
        assert (new.standard_error(items) > 0).all()
        proposed = new.next_items(items, n=3).tolist()
        assert len(set(proposed)) == 3
        assert new.next_items(dict(enumerate(items)), n=3).tolist() == proposed
    assert fitted.newcomer(users=["zoe", "ann"]).users.tolist() == ["ann", "zoe"]


def test_one_class_is_something_to_the_logistic_loss_only(fitted, schools):
    rows = schools.features[:6]
    for labels in ([True] * 6, [False] * 6):
        new = fitted.newcomer(rows, labels)
        learned = np.abs(new.coef[0] - fitted.consensus_).max()
        if getattr(fitted, "loss", "") == "logistic":
            assert learned > 1e-3
            liked = new.decision_function(rows).mean() > (rows @ fitted.consensus_).mean()
            assert liked == labels[0]
        else:
            np.testing.assert_allclose(new.coef[0], fitted.consensus_)


def test_one_label_will_do(fitted, schools):
    assert fitted.newcomer(schools.features[:1], [True]).coef.shape == (1, 8)


def test_people_come_in_any_number_and_order(fitted, schools):
    few = schools[::2]
    together = fitted.newcomer(few)
    shuffled = fitted.newcomer(few[np.random.default_rng(0).permutation(len(few))])
    np.testing.assert_allclose(shuffled.coef, together.coef, atol=1e-9)
    for person in (0, 17, 79):
        alone = few.of_user(person)
        np.testing.assert_allclose(
            fitted.newcomer(alone.X, alone.labels).coef[0], together.coef[person], atol=1e-9
        )
    weighted = fitted.newcomer(few.X, few.labels, few.users, np.full(len(few), 3.0))
    thrice = fitted.newcomer(few.concat(few).concat(few))
    np.testing.assert_allclose(weighted.coef, thrice.coef, atol=1e-6)


def test_labels_make_sure(fitted, schools):
    said, items = schools.of_user(4), schools.features[60:90]
    errors = [
        fitted.newcomer(said.X[:n], said.labels[:n]).standard_error(items).mean()
        for n in (6, 12, 30)
    ]
    assert errors[0] < fitted.newcomer().standard_error(items).mean()
    assert (np.diff(errors) < 0).all()


def test_refuses_bad_labels(fitted, schools):
    with pytest.raises(ValueError):
        fitted.newcomer(schools.features[:2], [0, 7])
    with pytest.raises(ValueError):
        fitted.newcomer(schools.features[:2, :5], [0, 1])
    with pytest.raises(NotFittedError):
        ThreeLevelRanker().newcomer(schools)


# The paper's ranker, against the definition of what it minimises.


def objective(ranker, said, threshold=None):
    """Return what a newcomer's weights cost, in units of scale_, as a function of (c, V)."""
    statistics = Statistics.from_annotations(said, "dense")
    loss = LOSSES[ranker.loss].of(statistics, ranker.scale_)
    negative, positive = statistics.class_weight[0]
    counts = {
        "auc": negative * positive / (negative + positive),
        "least_squares": negative + positive,
        "least_squares_raw": 1.0,
    }
    prior = ranker.prior_.prior
    strength = ranker.prior_.likelihood.precision * counts[ranker.loss]
    residual = prior.residual[0]
    loadings, mean = residual * prior.loadings, ranker.consensus_ * ranker.scale_
    threshold = ranker.huber_threshold_ if threshold is None else threshold

    def cost(unknown):
        c, V = np.split(unknown, [loadings.shape[1]])
        length = np.sqrt(V @ V + 1e-300)
        huber = length**2 / 2 if length <= threshold else threshold * (length - threshold / 2)
        weights = mean + loadings @ c + V
        return strength * loss.value(weights[None]) + c @ c / 2 + huber / residual**2

    def weights(unknown):
        c, V = np.split(unknown, [loadings.shape[1]])
        return (mean + loadings @ c + V) / ranker.scale_

    return cost, weights, loadings.shape[1] + len(mean)


@pytest.mark.parametrize("loss", ["auc", "least_squares", "least_squares_raw"])
@pytest.mark.parametrize("n_groups", [0, 2])
@pytest.mark.parametrize("threshold", [None, 0.01])
@pytest.mark.seconds
def test_newcomers_are_at_the_minimum(schools, loss, n_groups, threshold):
    alpha = 100.0 if loss == "least_squares_raw" else 1.0
    ranker = ThreeLevelRanker(0.1, alpha, n_groups=n_groups, loss=loss).fit(schools)
    if threshold is not None:
        ranker.huber_threshold_ = threshold  # nearly all users are beyond it
    for person, n_labels in ((3, 12), (8, 30)):
        said = schools.of_user(person)[:n_labels]
        cost, weights, size = objective(ranker, said)
        best = minimize(cost, np.full(size, 1e-3), method="BFGS", options={"gtol": 1e-8})
        found = ranker.newcomer(said.X, said.labels).coef[0]
        scale = np.abs(weights(best.x)).max()
        np.testing.assert_allclose(found, weights(best.x), atol=2e-4 * scale)


def test_the_huber_threshold_leaves_large_deviations(schools):
    ranker = ThreeLevelRanker().fit(schools)
    said = schools.of_user(5)
    reversed_labels = ~said.labels
    free = ranker.newcomer(said.X, reversed_labels).coef[0]
    ranker.huber_threshold_ = np.inf
    held = ranker.newcomer(said.X, reversed_labels).coef[0]
    ranker.huber_threshold_ = 0.05
    freer = ranker.newcomer(said.X, reversed_labels).coef[0]
    away = [np.linalg.norm((w - ranker.consensus_) * ranker.scale_) for w in (held, free, freer)]
    assert away[0] <= away[1] < away[2]


def test_how_people_differ_is_learned(schools):
    ranker = ThreeLevelRanker(n_groups=2).fit(schools)
    deviation = (ranker.coef_ - ranker.consensus_) * ranker.scale_
    prior = ranker.prior_.prior
    assert np.trace(prior.covariance) == pytest.approx(deviation.var(axis=0).sum(), rel=0.1)
    assert ranker.huber_threshold_ >= np.sqrt(8) * prior.residual[0]
    # Noisier labels, less precision.
    rng = np.random.default_rng(0)
    flipped = np.where(rng.random(len(schools)) < 0.25, ~schools.labels, schools.labels)
    noisy = Annotations(schools.users, None, flipped, schools.X)
    less = ThreeLevelRanker(n_groups=2).fit(noisy).prior_.likelihood.precision
    assert less < ranker.prior_.likelihood.precision


@pytest.mark.seconds
def test_the_precision_is_that_of_the_definition():
    crowd = make_crowd(np.random.default_rng(7))  # some as matrices, some as factors, weights
    ranker = ThreeLevelRanker(tol=1e-6).fit(crowd)
    squares = observations = 0.0
    for person, said in crowd.by_user():
        if said.labels.all():
            continue
        statistics = Statistics.from_annotations(said)
        weights = (ranker.coef_ * ranker.scale_)[crowd.user_ids.tolist().index(person)]
        negative, positive = statistics.class_weight[0]
        pairs = negative * positive / (negative + positive)
        loss = LOSSES["auc"].of(statistics, ranker.scale_).value(weights[None])
        squares, observations = squares + pairs * 2 * loss, observations + 2 * pairs
    assert ranker.prior_.likelihood.precision == pytest.approx(observations / squares, rel=1e-6)


@pytest.mark.parametrize("n_users", [1, 2])
def test_tiny_crowds_take_newcomers(n_users):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((10 * n_users, 3))
    labels = np.tile([True, False], 5 * n_users)
    ranker = ThreeLevelRanker().fit(rows, labels, users=np.repeat(np.arange(n_users), 10))
    assert np.isfinite(ranker.newcomer(rows[:5], labels[:5]).coef).all()
    assert np.isfinite(ranker.newcomer(rows[:5], labels[:5]).standard_error(rows)).all()


def test_as_many_groups_as_features(schools):
    ranker = ThreeLevelRanker(n_groups=8).fit(schools)
    new = ranker.newcomer(schools[::3])
    assert np.isfinite(new.coef).all()


def test_items_asked_for_tell_more_than_items_at_random(schools):
    ranker = ThreeLevelRanker().fit(schools)
    rng = np.random.default_rng(0)
    items, truth = rng.standard_normal((60, 8)), ranker.coef_[9]
    labels = items @ truth > 0

    def unsure_after(chosen):
        return ranker.newcomer(items[chosen], labels[chosen]).standard_error(items).mean()

    asked = ranker.newcomer().next_items(items, n=6)
    at_random = [unsure_after(rng.choice(60, 6, replace=False)) for _ in range(30)]
    assert unsure_after(asked) < np.quantile(at_random, 0.2)


@pytest.mark.slow
def test_newcomers_learn_faster_from_the_items_asked_for():
    # The curves of docs/next-items.png, smaller.
    curves = learning_curves(7, n_there=60, n_new=10, sizes=(0, 4, 8))
    at_random, asked = curves["random items"], curves["items chosen by next_items"]
    assert asked[0] == at_random[0]  # nothing asked, nothing learned
    assert (asked[1:] > at_random[1:] + 0.01).all()


@pytest.fixture(scope="module")
def stars():
    """Two kinds of people who rate the same 20 items, some of which all like better."""
    rng = np.random.default_rng(0)
    quality, kind = rng.normal(0, 1.0, 20), np.repeat([1.0, -1.0], 10)
    users = np.repeat(np.arange(40), 20)
    taste = np.repeat(rng.choice([1.0, -1.0], 40), 20)
    items = np.tile([f"item {j}" for j in range(20)], 40)
    raw = 3 + np.tile(quality, 40) + taste * np.tile(kind, 40) + rng.normal(0, 0.5, 800)
    crowd = Annotations(users, items, np.clip(np.round(raw), 1, 5))
    best = f"item {quality.argmax()}"
    return HierarchicalRanker(loss="cumulative").fit(crowd), best


def test_answers_are_given_by_item(stars):
    ranker, best = stars
    new = ranker.newcomer({best: 1, "item 3": 5}, users=["zoe"])
    said = Annotations(["zoe"] * 2, [best, "item 3"], [1, 5], reading=ranker.label_reading_)
    np.testing.assert_array_equal(new.coef, ranker.newcomer(said).coef)
    assert "item 3" not in repr(new)
    with pytest.raises(KeyError):
        ranker.newcomer({"item 5x": 1})


def test_labelled_items_are_left_out_unless_asked_for(stars):
    ranker, best = stars
    new = ranker.newcomer({best: 1, "item 3": 5})
    assert len(new.rank()) == 18
    assert not {best, "item 3"} & set(new.rank().items)
    everything = new.rank(labelled=True)
    places = dict(zip(everything.items.tolist(), everything.scores.tolist(), strict=True))
    given = dict(zip(everything.items.tolist(), everything.expected.tolist(), strict=True))
    assert (given[best], given["item 3"]) == (1.0, 5.0)
    # What all like best, and this user does not, is not near the top.
    assert places[best] < np.median(everything.scores)
    assert ((new.rank().expected > 1) & (new.rank().expected < 5)).all()


def test_a_label_of_an_item_adds_its_residual_to_that_item_alone(stars):
    ranker, best = stars
    new = ranker.newcomer({best: 1, "item 3": 5})
    asked = ranker.annotations_.of_user(0)
    bare = type(new)(**{**vars(new), "answered": None})
    added = new.decision_function(asked) - bare.decision_function(asked)
    assert set(asked.items[added != 0]) == {best, "item 3"}
    assert added[asked.items == best][0] < 0 < added[asked.items == "item 3"][0]


def test_rankings_of_several_new_users_name_the_user(stars):
    ranker, best = stars
    said = Annotations(["ann", "zoe"], [best, best], [1, 5], reading=ranker.label_reading_)
    new = ranker.newcomer(said)
    assert "zoe" in repr(new)
    assert len(new.rank("zoe", k=3)) == 3


def test_explanations_give_the_expected_grade(stars):
    ranker, best = stars
    why = ranker.explain(0, best)
    assert 1.0 < why.expected < 5.0
    assert "expected grade" in repr(why)
    assert ranker.rank(0, k=3).table().column_names == ["rank", "item", "score", "expected"]
