"""How sure the hierarchical ranker is: posteriors, newcomers, calibration, what to ask next."""

import numpy as np
import pytest
from scipy.special import expit

from likeminds import HierarchicalRanker, make_schools, split_within_users

pytestmark = pytest.mark.filterwarnings("ignore:.*one class only:UserWarning")


@pytest.fixture(scope="module")
def schools():
    return make_schools(80, 30, 120, 6, 2, personal_strength=0.6, random_state=0)


@pytest.fixture(scope="module")
def fitted(schools):
    return HierarchicalRanker(item_effects=False, unknown="consensus").fit(schools.annotations)


@pytest.fixture(scope="module")
def items():
    return np.random.default_rng(5).standard_normal((25, 6))


@pytest.mark.parametrize("loss", ["logistic", "auc"])
def test_newcomers_with_the_same_labels_are_believed_the_same(schools, items, loss):
    said = schools.annotations
    ranker = HierarchicalRanker(loss=loss, item_effects=False).fit(said)
    together = ranker.newcomer(said)
    np.testing.assert_array_equal(together.users, ranker.users_)
    np.testing.assert_allclose(together.coef, ranker.coef_, atol=1e-4)
    alone = said.of_user(7)
    one = ranker.newcomer(alone.X, alone.labels)
    np.testing.assert_allclose(one.coef[0], ranker.coef_[7], atol=1e-4)
    np.testing.assert_allclose(
        one.decision_function(items), ranker.decision_function(items, [7] * 25), atol=1e-3
    )
    np.testing.assert_allclose(
        one.standard_error(items), ranker.standard_error(items, [7] * 25), rtol=1e-3
    )
    if loss == "logistic":
        np.testing.assert_allclose(together.intercept, ranker.intercept_, atol=1e-4)


def test_standard_errors_are_those_of_the_definition(schools, fitted, items):
    posterior, said = fitted._posterior(), schools.annotations
    alone = said.of_user(11)
    rows = posterior.design.rows(alone.X)
    chance = 1 / (1 + np.exp(-rows @ posterior.points[11]))
    curvature = (rows * (chance * (1 - chance))[:, None]).T @ rows
    covariance = np.linalg.inv(curvature + np.linalg.inv(posterior.prior.covariance))
    np.testing.assert_allclose(posterior.covariance(11), covariance, rtol=1e-3, atol=1e-4)
    seen = posterior.design.differences(items - posterior.design.origin)
    expected = np.sqrt(np.einsum("np,pq,nq->n", seen, covariance, seen))
    np.testing.assert_allclose(fitted.standard_error(items, [11] * 25), expected, rtol=1e-3)


def test_fewer_directions_are_never_surer(schools, fitted, items):
    rough = HierarchicalRanker(covariance_rank=1, item_effects=False).fit(schools.annotations)
    nothing = HierarchicalRanker(covariance_rank=0, item_effects=False).fit(schools.annotations)
    exact = fitted.standard_error(items, [3] * 25)
    one = rough.standard_error(items, [3] * 25)
    none = nothing.standard_error(items, [3] * 25)
    assert rough.information_.shape == (80, 1, 7)
    assert (exact <= one + 1e-6).all()
    assert (one <= none + 1e-6).all()
    assert exact.sum() < 0.9 * none.sum()


def test_labels_make_sure(schools, fitted, items):
    said = schools.annotations.of_user(2)
    errors = [
        fitted.newcomer(said.X[:n], said.labels[:n]).standard_error(items).mean()
        for n in (1, 5, 15, 30)
    ]
    assert (np.diff(errors) < 0).all()


def test_probability_above_is_a_probability(fitted, items):
    chance = fitted.probability_above(items[:12], items[12:24], [4] * 12)
    back = fitted.probability_above(items[12:24], items[:12], [4] * 12)
    np.testing.assert_allclose(chance + back, 1.0)
    scores = fitted.decision_function(items[:24], [4] * 24)
    np.testing.assert_array_equal(chance > 0.5, scores[:12] > scores[12:])
    np.testing.assert_array_equal(fitted.probability_above(items[:1], items[:1], [4]), [0.5])


def test_probability_preferred_is_less_sure_than_that_of_scores(fitted, items):
    a, b, who = items[:12], items[12:24], [4] * 12
    chance = fitted.probability_preferred(a, b, who)
    np.testing.assert_allclose(chance + fitted.probability_preferred(b, a, who), 1.0)
    above = fitted.probability_above(a, b, who)
    np.testing.assert_array_equal(chance > 0.5, above > 0.5)
    belief = fitted.newcomer(items[:6], [0, 1] * 3)
    apart = belief.deviation(
        belief.prediction_rows(a), np.zeros(12, dtype=int), less=belief.prediction_rows(b)
    )
    expected = expit(belief.decision_function(a - b) / np.sqrt(1 + np.pi / 8 * apart**2))
    np.testing.assert_allclose(belief.probability_preferred(a, b), expected)


@pytest.mark.slow
def test_probability_preferred_is_calibrated():
    said, right = [], []
    for seed in (0, 1):
        made = make_schools(
            120, 40, 400, 8, 2, contested=0.5, label_noise=0.15, random_state=seed
        ).annotations
        train, test = split_within_users(made, 0.4, seed)
        ranker = HierarchicalRanker().fit(train)
        for person, theirs in test.by_user():
            yes, no = theirs.X[theirs.labels], theirs.X[~theirs.labels]
            n = min(len(yes), len(no))
            chance = ranker.probability_preferred(yes[:n], no[:n], [person] * n)
            said.append(np.maximum(chance, 1 - chance))
            right.append(chance > 0.5)
    assert np.mean(np.concatenate(right)) == pytest.approx(np.mean(np.concatenate(said)), abs=0.03)


def test_scores_of_a_regression_are_no_log_odds(schools, items):
    ranker = HierarchicalRanker(loss="auc").fit(schools.annotations)
    with pytest.raises(TypeError):
        ranker.probability_preferred(items[:1], items[1:2], [4])


def test_rank_intervals_contain_the_rank_and_widen_with_the_level(fitted, items):
    rank = (-fitted.decision_function(items, [4] * 25)).argsort().argsort() + 1
    low, high = fitted.rank_interval(4, items)
    wide_low, wide_high = fitted.rank_interval(4, items, level=0.99)
    assert (low <= rank).all()
    assert (rank <= high).all()
    assert (wide_low <= low).all()
    assert (wide_high >= high).all()
    assert low.min() == 1
    assert high.max() == 25
    named = fitted.rank_interval(4, dict(enumerate(items)))
    np.testing.assert_array_equal(named, (low, high))
    stranger_low, stranger_high = fitted.rank_interval("somebody new", items)
    assert (stranger_high - stranger_low).mean() > (high - low).mean()


@pytest.mark.parametrize(
    "crowd",
    [
        {"n_users": 120, "n_labels": 40, "n_features": 20, "n_schools": 3},
        {"n_users": 100, "n_labels": 60, "n_features": 10, "n_schools": 2},
        {"n_users": 200, "n_labels": 40, "n_features": 12, "personal_strength": 0.8},
    ],
)
@pytest.mark.slow
def test_nine_of_ten_ranks_lie_in_their_intervals(crowd):
    inside, right, sure = [], [], []
    for seed in (0, 1):
        made = make_schools(n_items=300, random_state=seed, **crowd)
        ranker = HierarchicalRanker(item_effects=False).fit(made.annotations)
        items = np.random.default_rng(seed).standard_normal((30, crowd["n_features"]))
        truth = made.coef @ items.T
        for person in range(0, crowd["n_users"], 2):
            low, high = ranker.rank_interval(person, items)
            rank = (-truth[person]).argsort().argsort() + 1
            inside.append(((low <= rank) & (rank <= high)).mean())
            above = ranker.probability_above(items[:15], items[15:], [person] * 15)
            sure.append(np.maximum(above, 1 - above))
            right.append((above > 0.5) == (truth[person, :15] > truth[person, 15:]))
    assert 0.85 <= np.mean(inside) <= 0.95
    assert np.mean(right) == pytest.approx(np.mean(sure), abs=0.05)


def test_what_to_ask_next_beats_chance(fitted):
    rng = np.random.default_rng(0)
    pool = rng.standard_normal((60, 6))
    truth = fitted.coef_[9]

    def unsure_after(chosen):
        labels = pool[chosen] @ truth > 0
        return fitted.newcomer(pool[chosen], labels).standard_error(pool).mean()

    asked = fitted.next_items("somebody new", pool, n=6)
    assert len(set(asked.tolist())) == 6
    at_random = [unsure_after(rng.choice(60, 6, replace=False)) for _ in range(30)]
    assert unsure_after(asked) < np.quantile(at_random, 0.2)


def test_what_to_ask_next_after_some_labels(fitted, items):
    belief = fitted.newcomer(items[:4], [True, False, False, True])
    first = belief.next_items(items)
    np.testing.assert_array_equal(first, belief.next_items(items, n=3)[:1])
    known = fitted.next_items(5, items, n=25)
    assert sorted(known.tolist()) == list(range(25))
    for n in (0, 26):
        with pytest.raises(ValueError):
            belief.next_items(items, n=n)


def test_next_items_of_the_auc_loss(schools, items):
    ranker = HierarchicalRanker(1, "auc", unknown="consensus").fit(schools.annotations)
    assert len(ranker.next_items(0, items, n=2)) == 2
    # Far from the mean tells most where all labels tell alike.
    far = np.linalg.norm((items - ranker.prior_.design.origin) / ranker.scale_, axis=1)
    assert far[ranker.next_items("somebody new", items)[0]] > np.median(far)


def test_beliefs_refuse_what_they_do_not_know(fitted, items):
    several = fitted.newcomer(items[:4], [True, False, False, True], users=["a", "a", "b", "b"])
    assert several.coef.shape == (2, 6)
    assert several.decision_function(items[:2], ["b", "a"]).shape == (2,)
    with pytest.raises(ValueError):
        several.standard_error(items)
    with pytest.raises(ValueError):
        several.standard_error(items[:1], ["c"])
    with pytest.raises(ValueError):
        several.standard_error(items[:2], ["a"])
    with pytest.raises(ValueError):
        several.standard_error(items[:1, :5], ["a"])
    with pytest.raises(ValueError):
        several.probability_above(items[:1], items[:2], ["a"])
    with pytest.raises(ValueError):
        fitted.probability_above(items[:1], items[:2])
    with pytest.raises(ValueError):
        several.rank_interval(items, user="a", level=1.0)
