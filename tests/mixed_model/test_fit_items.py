"""Items with a character of their own: truth, objective, and formulas against naive definitions."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import adjusted_rand_score

import likeminds
from crowds import make_votes
from learned_model import (
    OFF_ZERO,
    ItemPosteriors,
    first_model,
    responses_with_items,
)
from likeminds import Annotations, HierarchicalRanker, find_schools, load_electricity
from likeminds.mixed_model.fit_items import (
    integrated,
    learn_crossed,
    log_likelihoods,
    points_of,
)
from likeminds.mixed_model.item_effects.em_steps import ItemMarginalLikelihood
from likeminds.mixed_model.likelihoods import LogisticLikelihood
from likeminds.mixed_model.ordinal import CumulativeLogit, GradeCounts


@pytest.mark.parametrize(("n_factors", "n_groups"), [(0, None), (2, 1)])
@pytest.mark.seconds
def test_objective_never_rises(n_factors, n_groups):
    said, _ = make_votes(factor=1.0)
    responses, coordinates = responses_with_items(said, 0.25)
    options = {
        "likelihood": LogisticLikelihood(),
        "tol": 1e-6,
        "max_iter": 30,
        "n_factors": n_factors,
    }
    found = learn_crossed(responses, coordinates.n_weights, coordinates.size, n_groups, **options)
    assert len(found.trace) > 2
    assert (np.diff(found.trace) <= 0).all()
    again = learn_crossed(responses, coordinates.n_weights, coordinates.size, n_groups, **options)
    np.testing.assert_array_equal(found.items.effects, again.items.effects)


def test_effects_are_found_and_shrink_to_nothing_where_there_are_none():
    said, _ = make_votes(n_users=150, effect=1.5)
    with_effects = HierarchicalRanker(n_item_factors=0).fit(said)
    assert 1.0 < with_effects.prior_.items.variance < 4.0
    said, _ = make_votes(n_users=150, effect=0.0)
    without = HierarchicalRanker(n_item_factors=0).fit(said)
    plain = HierarchicalRanker(item_effects=False).fit(said)
    assert np.abs(without.item_effect_).max() < 0.2
    scores = without.decision_function(said), plain.decision_function(said)
    assert np.corrcoef(*scores)[0, 1] > 0.99


@pytest.mark.slow
def test_factors_are_found_beside_more_features_than_labels_can_weigh():
    # 25 features tell nothing of 40 items: the whole of Omega, 26 x 26, has only noise to learn.
    rng = np.random.default_rng(4)
    n_users, n_items = 60, 40
    X = rng.normal(size=(n_items, 25))
    scores = rng.normal(size=n_items)
    scores = scores + 1.5 * np.outer(rng.normal(size=n_users), rng.normal(size=n_items))
    person, item = np.nonzero(rng.random((n_users, n_items)) < 0.75)
    labels = rng.random(len(person)) < expit(scores[person, item])
    said = Annotations(person, item, labels, X, item_ids=np.arange(n_items))
    ranker = HierarchicalRanker().fit(said)
    assert ranker.n_item_factors_ == 1
    found = ranker.decision_function(said)
    bare = HierarchicalRanker().fit(Annotations(person, item, labels))
    without = bare.decision_function(Annotations(person, item, labels))
    truth = scores[person, item]
    # Features are no hindrance: those who know nothing of them do no better.
    assert np.corrcoef(truth, found)[0, 1] > np.corrcoef(truth, without)[0, 1] - 0.01


def test_where_no_factor_is_found_the_fit_is_that_without():
    rng = np.random.default_rng(1)
    person, item = np.nonzero(rng.random((40, 25)) < 0.7)
    liked = rng.normal(0, 1, 25)[item] + rng.normal(0, 1, 40)[person]
    said = Annotations(person, item, rng.random(len(item)) < 1 / (1 + np.exp(-liked)))
    found, none = (HierarchicalRanker(n_item_factors=n).fit(said) for n in ("auto", 0))
    assert found.n_item_factors_ == 0
    np.testing.assert_array_equal(found.item_effect_, none.item_effect_)
    np.testing.assert_array_equal(found.intercept_, none.intercept_)


def test_labels_that_cancel_have_no_factors():
    person, item, label = (part.ravel() for part in np.indices((6, 8, 2)))
    ranker = HierarchicalRanker().fit(Annotations(person, item, label))
    assert ranker.n_item_factors_ == 0
    assert np.ptp(ranker.item_effect_) < 1e-6


def test_a_factor_is_found_without_features():
    said, scores = make_votes(n_users=120, n_items=40, per_person=20, factor=2.0)
    bare = Annotations(said.users, said.items, said.labels)
    ranker = HierarchicalRanker().fit(bare)
    assert ranker.n_item_factors_ >= 1
    assert ranker.coef_.shape == (120, 0)
    none = HierarchicalRanker(n_item_factors=0).fit(bare)
    everything = Annotations(
        np.repeat(np.arange(120), 40), np.tile(np.arange(40), 120), scores.ravel() > 0
    )
    assert ranker.score(everything) > none.score(everything) + 0.03


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.seconds
def test_two_camps_are_one_factor_and_two_schools(seed):
    """Also where a fifth of the votes is missing: neither a second factor nor a third school."""
    rng = np.random.default_rng(seed)
    side = np.repeat([-1.0, 1.0], 40)
    chance = expit(rng.normal(size=40) + side[:, None] * rng.choice([-1.5, 0.0, 1.5], 40))
    user, item = np.nonzero(rng.random(chance.shape) < 0.8)
    said = Annotations(user, item, rng.random(len(user)) < chance[user, item])
    ranker = HierarchicalRanker().fit(said)
    assert ranker.n_item_factors_ == 1
    found = find_schools(ranker, said)
    assert len(found) == 2
    assert adjusted_rand_score(side, found.labels) > 0.9


def make_batches(schools, seed=0):
    """240 people in six batches of 50 items, whose effects are twice what features say."""
    rng = np.random.default_rng(seed)
    n_users, n_batches, n_items, d = 240, 6, 50, 4
    X = rng.normal(size=(n_batches * n_items, d))
    theta = rng.normal(size=d)
    theta /= np.linalg.norm(theta)
    b = 2.0 * rng.normal(size=len(X))
    other = rng.normal(size=d)
    other -= (other @ theta) * theta
    other *= 2.0 / np.linalg.norm(other)
    side = np.where(rng.random(n_users) < 0.5, 1.0, -1.0)
    W = theta + schools * side[:, None] * other
    item = (np.arange(n_users) % n_batches)[:, None] * n_items + np.arange(n_items)
    eta = np.einsum("pd,pnd->pn", W, X[item]) + b[item]
    labels = rng.random(eta.shape) < expit(eta)
    user = np.repeat(np.arange(n_users), n_items)
    said = Annotations(user, item.ravel(), labels.ravel(), X, item_ids=np.arange(len(X)))
    return said, side


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.seconds
def test_a_crowd_in_batches_that_agrees_has_no_schools(seed):
    said, _ = make_batches(schools=0.0, seed=seed)
    ranker = HierarchicalRanker().fit(said)
    deviation = np.linalg.norm(ranker.group_ + ranker.personal_, axis=1).mean()
    assert (ranker.n_groups_, ranker.n_item_factors_) == (0, 0)
    assert deviation < 0.1 * np.linalg.norm(ranker.consensus_)
    found = find_schools(ranker, said)
    assert (len(found), found.axes) == (0, ())


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.seconds
def test_schools_in_batches_are_found(seed):
    said, side = make_batches(schools=1.0, seed=seed)
    ranker = HierarchicalRanker().fit(said)
    assert ranker.n_groups_ >= 1
    along = (ranker.coef_ - ranker.consensus_) @ ranker.directions_[0]
    assert abs(np.corrcoef(along, side)[0, 1]) > 0.9
    found = find_schools(ranker, said)
    assert len(found) == 2
    assert adjusted_rand_score(side, found.labels) > 0.95


def test_without_shared_items_nothing_changes():
    households = load_electricity().of_users([f"household-{n:03d}" for n in range(1, 40)])
    ranker = HierarchicalRanker(loss="logistic").fit(households)
    plain = HierarchicalRanker(loss="logistic", item_effects=False).fit(households)
    assert not ranker.item_effects_
    np.testing.assert_array_equal(ranker.coef_, plain.coef_)
    assert not hasattr(ranker, "items_")


def test_it_is_said_when_no_item_is_shared():
    households = load_electricity().of_users([f"household-{n:03d}" for n in range(1, 20)])
    with pytest.warns(UserWarning, match="item effects"):
        HierarchicalRanker(loss="logistic", item_effects=True).fit(households)
    with pytest.raises(ValueError):
        HierarchicalRanker(loss="auc", item_effects=True).fit(households)


@pytest.mark.parametrize("graded", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_by_itself_it_is_said_once_and_is_no_warning(graded, caplog):
    rng = np.random.default_rng(0)
    X, users = rng.normal(size=(240, 2)), np.repeat(np.arange(24), 10)
    grades = np.clip(np.round(2 * X[:, 0] + rng.normal(size=240)), -2, 2) + 3
    lone = Annotations(users, np.arange(240), grades if graded else grades > 3, features=X)
    shared = Annotations(users, np.arange(240) % 10, grades > 3)
    with caplog.at_level("INFO", logger="likeminds"):
        assert HierarchicalRanker().fit(shared).item_effects_
        assert not HierarchicalRanker(item_effects=False).fit(lone).item_effects_
        assert not caplog.records
        # Of grades, several losses are tried before the fit that counts.
        assert not HierarchicalRanker().fit(lone).item_effects_
    assert [record.levelname for record in caplog.records] == ["INFO"]
    assert "item effects are off" in caplog.text


def test_annotations_without_features_are_refused_where_they_say_nothing():
    alone = Annotations(["a", "a", "b", "b"], ["p", "q", "r", "s"], [1, 0, 1, 0])
    with pytest.raises(ValueError):
        HierarchicalRanker().fit(alone)
    with pytest.raises(ValueError):
        Annotations(["a", "b"], None, [1, 0])


@pytest.mark.parametrize("effect", [0.3, 1.0])
@pytest.mark.slow
def test_intervals_of_ranks_cover_what_they_say(effect):
    covered = []
    for seed in range(4):
        said, scores = make_votes(seed, n_users=80, n_items=30, per_person=15, effect=effect)
        ranker = HierarchicalRanker().fit(said)
        everything = Annotations(
            np.zeros(30, dtype=int), np.arange(30), np.arange(30) % 2, said.features
        )
        for person in range(0, 80, 4):
            low, high = ranker.rank_interval(person, everything)
            rank = np.argsort(np.argsort(-scores[person])) + 1
            covered.append(((low <= rank) & (rank <= high)).mean())
    assert 0.85 < np.mean(covered) < 0.95


def test_newcomers_know_the_items():
    said, scores = make_votes(n_users=100, n_items=40, per_person=20, effect=1.5, factor=1.5)
    known = said.of_users(range(80))
    ranker = HierarchicalRanker().fit(known)
    stranger = said.of_user(90)
    new = ranker.newcomer(stranger)
    everything = Annotations([90] * 40, np.arange(40), np.arange(40) % 2, said.features)
    with_items = new.decision_function(everything)
    assert (
        np.corrcoef(with_items, scores[90])[0, 1]
        > np.corrcoef(new.decision_function(said.features), scores[90])[0, 1]
    )
    assert (new.standard_error(everything) < new.standard_error(said.features)).mean() > 0.9
    assert len(new.next_items(everything, n=3)) == 3
    chance = new.probability_above(everything[:5], everything[5:10])
    assert ((chance > 0.5) == (with_items[:5] > with_items[5:10])).all()
    same = new.probability_above(everything[:5], everything[:5])
    np.testing.assert_allclose(same, 0.5)


def test_rows_that_are_items_of_their_own_are_never_shared():
    rng = np.random.default_rng(0)
    X, y, users = rng.normal(size=(60, 2)), np.arange(60) % 2, np.repeat([0, 1, 2], 20)
    ranker = HierarchicalRanker(loss="logistic").fit(X, y, users)
    assert not ranker.update(X, y, users).item_effects_
    named = Annotations(users, np.arange(60) % 20, y, X, features_per="row")
    joined = named.concat(Annotations(users, None, y, X))
    assert joined.n_items == 80


def test_rows_of_features_are_no_items_that_were_seen():
    said, _ = make_votes()
    ranker = HierarchicalRanker(n_item_factors=0).fit(said)
    plain = np.einsum("nd,nd->n", said.X, ranker.coef_[said.user_codes])
    np.testing.assert_allclose(ranker.decision_function(said.X, said.users), plain)
    np.testing.assert_allclose(
        ranker.decision_function(said), plain + ranker.item_effect_[said.item_codes]
    )
    new = ranker.newcomer(said.X[:5], said.labels[:5])
    assert new.coef.shape == (1, 2)
    unseen = ranker.standard_error(said.X, said.users)
    assert (unseen > ranker.standard_error(said)).all()


def test_items_are_saved_with_the_model(tmp_path):
    said, _ = make_votes(factor=2.0)
    bare = Annotations(said.users, [f"film {n}" for n in said.items], said.labels)
    ranker = HierarchicalRanker(n_item_factors=2).fit(bare)
    again = likeminds.load(likeminds.save(ranker, tmp_path / "m", with_data=True))
    assert again.n_item_factors_ == 2
    np.testing.assert_array_equal(again.items_, ranker.items_)
    np.testing.assert_array_equal(again.decision_function(bare), ranker.decision_function(bare))
    np.testing.assert_allclose(again.standard_error(bare), ranker.standard_error(bare))
    more = Annotations(["new", "new", 0, 1], ["film 0", "film x"] * 2, [1, 0, 1, 0])
    updated = again.update(more)
    assert "film x" in updated.items_.tolist()
    assert len(updated.users_) == 61


def test_new_items_are_folded_in_without_a_refit():
    said, scores = make_votes(n_users=150, n_items=40, per_person=20, effect=1.5, factor=1.5)
    ranker = HierarchicalRanker(n_item_factors=1).fit(said[said.item_codes < 35])
    late = said[said.item_codes >= 35]
    wiser = ranker.new_items(late)
    asked = Annotations(
        np.repeat(np.arange(150), 5),
        np.tile(np.arange(35, 40), 150),
        [0, 1] * 375,
        said.features,
        item_ids=np.arange(40),
    )
    truth = scores[:, 35:].ravel()
    gained = [np.corrcoef(r.decision_function(asked), truth)[0, 1] for r in (ranker, wiser)]
    assert gained[1] > gained[0] + 0.05
    assert wiser.standard_error(asked).mean() < 0.9 * ranker.standard_error(asked).mean()
    together = HierarchicalRanker(n_item_factors=1).fit(said)
    np.testing.assert_allclose(wiser.item_effect_[-5:], together.item_effect_[35:], atol=0.5)
    with pytest.raises(ValueError):
        wiser.new_items(late)


@pytest.mark.seconds
def test_the_order_of_rows_and_of_items_does_not_matter():
    said, _ = make_votes(factor=1.5, per_person=16)
    ranker = HierarchicalRanker().fit(said)
    rng = np.random.default_rng(0)
    shuffled = HierarchicalRanker().fit(said[rng.permutation(len(said))])
    np.testing.assert_array_equal(shuffled.objective_trace_, ranker.objective_trace_)
    np.testing.assert_array_equal(shuffled.coef_, ranker.coef_)
    # The table of items in another order, with one more that nobody judged: nothing but rounding.
    turned = rng.permutation(said.n_items)
    table = np.vstack([said.features[turned], [[9.0, 9.0]]])
    again = Annotations(said.users, said.items, said.labels, table, item_ids=[*turned, 99])
    other = HierarchicalRanker().fit(again)
    assert other.n_item_factors_ == ranker.n_item_factors_
    assert other.objective_ == pytest.approx(ranker.objective_, rel=1e-5)
    places = [other.items_.tolist().index(item) for item in ranker.items_.tolist()]
    np.testing.assert_allclose(other.item_effect_[places], ranker.item_effect_, atol=5e-3)
    first, second = said[: len(said) // 2], said[len(said) // 2 :]
    updated = HierarchicalRanker().fit(second).update(first)
    assert updated.objective_ == pytest.approx(ranker.objective_, rel=1e-9)


def test_what_to_ask_next_counts_what_is_not_known_of_people_and_of_items():
    """The item whose label lowers the variance of all scores most, by the joint covariance."""
    said, _ = make_votes(n_users=50, n_items=25, per_person=12, factor=1.0)
    ranker = HierarchicalRanker(n_item_factors=1).fit(said[said.item_codes < 20])
    pool = Annotations([0] * 25, np.arange(25), np.arange(25) % 2, said.features)
    posterior = ranker._posterior()
    seen = posterior.prediction_rows(pool.X, pool.items)
    for person in (0, 7, 31):
        rows = seen.rows.copy()
        rows[:, posterior.design.n_weights : posterior.design.size] = 1.0
        of_user = posterior.covariance(person)
        own = posterior._of_items(seen, np.full(25, person))
        # Scores are rows'w + own; a label of one is an observation of its score.
        joint = rows @ of_user @ rows.T + np.diag(own)
        p = expit(rows @ posterior.points[person] + seen.effects)
        centred = np.eye(25) - 1 / 25
        gains = [
            h
            * np.square(centred @ (seen.rows @ of_user @ rows[j] + own[j] * np.eye(25)[j])).sum()
            / (1 + h * joint[j, j])
            for j, h in enumerate(p * (1 - p))
        ]
        assert ranker.next_items(person, pool)[0] == int(np.argmax(gains))
    # Items that nobody has judged are less known, by the variance of all effects.
    assert own[20:].min() > own[:20].max()


def test_factors_that_vanish_leave_no_intercept_behind_in_choices():
    pairs = [(user, i, j) for user in "abcde" for i in range(4) for j in range(i + 1, 4)]
    users, winners, losers = zip(*pairs, strict=True)
    ranker = HierarchicalRanker().fit(Annotations.from_comparisons(users, winners, losers))
    assert ranker.items_[np.argsort(-ranker.item_effect_)].tolist() == [0, 1, 2, 3]


GRID = np.linspace(-12.0, 12.0, 1201)


def make_sparse_votes(seed=0, *, n_users=200, n_items=300, per_item=3, spread=1.5):
    """Return labels with log-odds a_i + b_j, and the true b_j."""
    rng = np.random.default_rng(seed)
    place = rng.choice(n_users * n_items, per_item * n_items, replace=False)
    person, item = np.divmod(place, n_items)
    a, b = rng.normal(size=n_users), spread * rng.normal(size=n_items)
    return Annotations(person, item, rng.random(len(item)) < expit(a[person] + b[item])), b


def on_a_grid(log_likely, variance):
    """Return means and variances of b_j, and minus the log-likelihood of tau^2, by many points."""
    logs = log_likely - 0.5 * GRID**2 / variance
    top = logs.max(axis=1, keepdims=True)
    weight = np.exp(logs - top)
    total = weight.sum(axis=1)
    mean = weight @ GRID / total
    cost = 0.5 * (len(logs) - OFF_ZERO) * np.log(variance) - float(
        (np.log(total) + top[:, 0]).sum()
    )
    return mean, weight @ GRID**2 / total - mean**2, cost


def test_moments_and_tau_are_those_of_many_points():
    rng = np.random.default_rng(1)
    n_yes, others = rng.integers(0, 4, size=80), rng.normal(size=(80, 3))
    said = np.arange(3) < n_yes[:, None]

    def log_likely(b):
        eta = b[:, :, None] + others[:, None, :]
        return (said[:, None, :] * eta - np.logaddexp(0.0, eta)).sum(axis=2)

    everywhere = log_likely(np.tile(GRID, (80, 1)))
    mean, doubt, _ = on_a_grid(everywhere, 1.0)
    items = replace(ItemPosteriors.unknown(np.arange(81), 1.0), effects=np.append(mean, 0.0))
    items = replace(items, effect_variance=np.append(doubt, 1.0))
    labelled = np.arange(81) < 80
    found = items
    for _ in range(3):  # points are chosen anew, as tau grows
        likely = np.vstack([log_likely(points_of(found)[:80]), np.zeros(9)])
        found, centre = integrated(found, likely, labelled, (0.1, 10.0))
        found.effects[:80] += centre
    mean, doubt, cost = on_a_grid(everywhere, found.variance)
    np.testing.assert_allclose(found.effects[:80], mean, atol=5e-3)
    np.testing.assert_allclose(found.effect_variance[:80], doubt, rtol=1e-2)
    assert found.effects[80] == 0.0
    assert found.effect_variance[80] == found.variance
    for change in (0.97, 1.03):
        assert on_a_grid(everywhere, found.variance * change)[2] > cost


def test_unanimous_labels_do_not_let_tau_grow_for_ever():
    items = ItemPosteriors.unknown(np.arange(4), 1.0)
    likely = -10.0 * np.logaddexp(0.0, -points_of(items) * np.array([[1], [1], [-1], [-1]]))
    found, _ = integrated(items, likely, np.ones(4, dtype=bool), (0.25, 4.0))
    assert found.variance == 4.0


def test_one_label_tells_little_however_small_tau_is():
    said, doubt = np.tile([1.0, -1.0], 20), np.full(40, 1.0 / (0.25 + 1.0 / 4e-4))
    items = ItemPosteriors.unknown(np.arange(40), 4e-4)
    items = replace(items, effects=0.5 * said * doubt, effect_variance=doubt)  # by Laplace's method
    likely = -np.logaddexp(0.0, -points_of(items) * said[:, None])
    found, _ = integrated(items, likely, np.ones(40, dtype=bool), (1e-4, 1e-4))
    np.testing.assert_allclose(1.0 / found.effect_variance - 1e4, 0.25, rtol=0.02)


@pytest.mark.parametrize("graded", [False, True])
def test_people_are_integrated_out_without_the_label_itself(graded):
    said, b = make_sparse_votes(2, n_users=12, n_items=6, per_item=8)
    if graded:
        said = said._with(grades=said.labels + (np.arange(len(said)) % 2.0))
    responses, coordinates = responses_with_items(
        said, 0.8, effects=0.5 * b[said.item_ids], effect_variance=np.full(6, 0.4)
    )
    items = responses.items
    likelihood = (
        CumulativeLogit.given(GradeCounts.of(said.grades, said.user_codes))
        if graded
        else LogisticLikelihood()
    )
    model = first_model(coordinates.size, coordinates.n_weights, likelihood)
    objective = ItemMarginalLikelihood(responses, 0, model, model.prior.residual, mode_tol=1e-12)
    naive, variance = np.zeros((6, 9)), model.prior.covariance[0, 0]
    said_of = (said.grades if graded else said.labels).astype(float)
    step = 1e-4

    def losses(eta, rows, doubt=0.0):
        return likelihood.each(eta, said_of[rows], said.user_codes[rows], doubt)

    for person in range(said.n_users):
        mine = np.flatnonzero(said.user_codes == person)
        offset, a = items.effects[said.item_codes[mine]], 0.0
        for _ in range(30):
            less, here, more = (losses(a + offset + by, mine) for by in (-step, 0.0, step))
            pull, h = (less - more) / (2 * step), (less - 2 * here + more) / step**2
            a += (pull.sum() - a / variance) / (h.sum() + 1.0 / variance)
        for row, own_pull, own_h in zip(mine, pull, h, strict=True):
            doubt = 1.0 / (h.sum() - own_h + 1.0 / variance)  # of a_i, without this label
            at = a - doubt * own_pull + points_of(items)[said.item_codes[row]]
            naive[said.item_codes[row]] -= losses(at, np.full(9, row), doubt)
    np.testing.assert_allclose(log_likelihoods(objective, model), naive, rtol=1e-4)


@pytest.mark.parametrize(("per_item", "seeds"), [(3, (0, 1, 2)), (6, (0, 1))])
@pytest.mark.seconds
def test_intervals_of_effects_cover_what_they_say(per_item, seeds):
    covered = []
    for seed in seeds:
        said, b = make_sparse_votes(seed, n_items=400, per_item=per_item)
        ranker = HierarchicalRanker(n_item_factors=0).fit(said)
        away = b[ranker.items_.astype(int)] - ranker.item_effect_
        covered.append((np.abs(away - away.mean()) < 1.6449 * ranker.item_effect_error_).mean())
    assert 0.83 < np.mean(covered) < 0.95
