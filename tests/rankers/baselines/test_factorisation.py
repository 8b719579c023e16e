import numpy as np
import pytest
from sklearn.base import clone

from likeminds import Annotations, RankerCV, load, save, split_within_users
from likeminds.baselines import Factorisation


def crowd_on_shared_items(seed=0, n_users=60, n_items=30, noise=False, weights=False):
    """People and items in a plane; features know the item's bias only."""
    rng = np.random.default_rng(seed)
    places, bias = rng.standard_normal((n_items, 2)), rng.standard_normal(n_items)
    scores = 2.0 * rng.standard_normal((n_users, 2)) @ places.T + bias
    person, item = np.divmod(np.arange(n_users * n_items), n_items)
    kept = rng.random(len(person)) < 0.7
    chance = 0.4 if noise else 1.0 / (1.0 + np.exp(-scores[person, item]))
    labels = (rng.random(len(person)) < chance)[kept]
    features = np.column_stack([bias, rng.standard_normal((n_items, 2))])
    return Annotations(
        users=[f"p{i:02d}" for i in person[kept]],
        items=[f"i{j:02d}" for j in item[kept]],
        labels=labels,
        features={f"i{j:02d}": features[j] for j in range(n_items)},
        weights=rng.integers(1, 4, kept.sum()) if weights else None,
    )


def objective(ranker, crowd):
    """The definition, label by label."""
    person = dict(zip(ranker.users_, ranker.user_factors_, strict=True))
    item = dict(zip(ranker.item_ids_, ranker.item_factors_, strict=True))
    weights = np.ones(len(crowd)) if crowd.weights is None else crowd.weights
    total = 0.0
    for who, what, label, weight in zip(
        crowd.users, crowd.items, crowd.labels, weights, strict=True
    ):
        p, q = person[who], item[what]
        odds = ranker.intercept_ + p[-1] + q[-1] + p[:-1] @ q[:-1]
        total += weight * np.log1p(np.exp(-odds if label else odds))
    penalty = np.append(np.full(ranker.user_factors_.shape[1] - 1, ranker.alpha), 0.0)
    penalty[-1] = ranker.alpha_bias
    known = dict(zip(crowd.item_ids, crowd.features, strict=True))
    table = np.array([known[what] for what in ranker.item_ids_])
    expected = ((table - ranker.origin_) / ranker.scale_) @ ranker.feature_factors_
    for part in (ranker.user_factors_, ranker.item_factors_ - expected, ranker.feature_factors_):
        total += 0.5 * (part**2 @ penalty).sum()
    return total


@pytest.mark.parametrize("item_features", [True, False])
def test_objective_is_the_definition_and_never_rises(item_features):
    crowd = crowd_on_shared_items(weights=True)
    ranker = Factorisation(2, 1.0, item_features=item_features).fit(crowd)
    trace = ranker.objective_trace_
    assert trace[-1] == pytest.approx(objective(ranker, crowd))
    assert len(trace) > 3
    assert (np.diff(trace) <= 1e-9 * trace[0]).all()


def test_the_slope_is_zero_where_it_ends():
    crowd = crowd_on_shared_items(n_users=15, n_items=8)
    ranker = Factorisation(1, 1.0, tol=1e-12, max_iter=5000).fit(crowd)
    for name in ("user_factors_", "item_factors_", "feature_factors_"):
        array = getattr(ranker, name)
        for place in np.ndindex(*array.shape):
            at = array[place]
            sides = []
            for step in (1e-5, -1e-5):
                array[place] = at + step
                sides.append(objective(ranker, crowd))
            array[place] = at
            assert abs(sides[0] - sides[1]) / 2e-5 < 2e-3


def test_factors_find_what_biases_cannot():
    train, test = split_within_users(crowd_on_shared_items(1), 0.3, 0)
    biases = Factorisation(0).fit(train).score(test)
    assert Factorisation(2, 1.0).fit(train).score(test) > biases + 0.05


def test_noise_is_not_learned():
    reached = []
    for seed in range(8):
        train, test = split_within_users(crowd_on_shared_items(seed, noise=True), 0.3, 0)
        reached.append(Factorisation(2).fit(train).score(test))
    assert abs(np.mean(reached) - 0.5) < 3.0 * np.std(reached) / np.sqrt(8) + 0.005


def test_new_items_are_what_their_features_say_and_strangers_get_the_biases():
    crowd = crowd_on_shared_items(3)
    hidden = np.isin(crowd.items, ["i03", "i07", "i11", "i15", "i19", "i23"])
    ranker = Factorisation(1, unknown="consensus").fit(crowd[~hidden])
    assert ranker.score(crowd[hidden]) > 0.55
    alike = Factorisation(1, item_features=False, unknown="consensus").fit(crowd[~hidden])
    assert alike.score(crowd[hidden]) == 0.5
    features = crowd.features[:2]
    scores = ranker.decision_function(features, ["stranger"] * 2, items=["i00", "i01"])
    np.testing.assert_allclose(scores, ranker.intercept_ + ranker.item_factors_[:2, -1])


def test_weights_are_repetitions_and_the_order_of_rows_does_not_matter():
    crowd = crowd_on_shared_items(4, n_users=20, weights=True)
    times = crowd.weights.astype(int)
    repeated = crowd.take(np.repeat(np.arange(len(crowd)), times)[::-1])._with(weights=None)
    one, other = (Factorisation(1, tol=1e-10).fit(said) for said in (crowd, repeated))
    expected = one.decision_function(crowd)
    np.testing.assert_allclose(other.decision_function(crowd), expected, atol=1e-4)


def test_rows_must_say_which_item_they_are_about():
    crowd = crowd_on_shared_items(n_users=10)
    with pytest.raises(ValueError):
        Factorisation().fit(crowd.X, crowd.labels, crowd.users)
    ranker = Factorisation().fit(crowd)
    with pytest.raises(ValueError):
        ranker.decision_function(crowd.X, crowd.users)
    with pytest.raises(ValueError):
        ranker.decision_function(crowd.X, crowd.users, items=["i00"])
    scores = ranker.decision_function(crowd.X, crowd.users, items=crowd.items)
    np.testing.assert_array_equal(scores, ranker.decision_function(crowd))


def test_features_of_rows_count_by_their_mean():
    crowd = crowd_on_shared_items(n_users=10)
    by_row = Annotations(crowd.users, crowd.items, crowd.labels, crowd.X, features_per="row")
    one, other = (Factorisation(1).fit(said).decision_function(crowd) for said in (crowd, by_row))
    np.testing.assert_allclose(one, other, atol=1e-8)


def test_more_factors_than_people_or_items_are_no_more():
    crowd = crowd_on_shared_items(n_users=4)
    assert Factorisation(50).fit(crowd).user_factors_.shape == (4, 4)


def test_tuned_saved_and_loaded(tmp_path):
    crowd = crowd_on_shared_items(5, n_users=25)
    grid = {"n_factors": [0, 2], "alpha": [4.0, 1.0]}
    search = RankerCV(clone(Factorisation()), grid, n_folds=3).fit(crowd)
    again = load(save(search, tmp_path / "m"))
    np.testing.assert_array_equal(again.decision_function(crowd), search.decision_function(crowd))
    scores = again.decision_function(crowd.X, crowd.users, items=crowd.items)
    np.testing.assert_array_equal(scores, search.decision_function(crowd))
