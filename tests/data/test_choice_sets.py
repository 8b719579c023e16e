"""Comparisons, rankings and choices as annotations; what is wrong with them is said."""

import choix
import numpy as np
import pandas as pd
import pytest

from learned_model import Design, FittedPrior, GaussianPrior
from likeminds import (
    Annotations,
    HierarchicalRanker,
    ThreeLevelRanker,
    load,
    save,
    split_within_users,
)
from likeminds.metrics import score_choices
from likeminds.mixed_model.likelihoods import ChoiceLikelihood
from likeminds.mixed_model.losses import ChoiceLoss
from likeminds.mixed_model.new_posteriors import NewUserPosteriors

FEATURES = {"a": [0.0, 1.0], "b": [1.0, 0.5], "c": [2.0, -1.0]}


def test_features_are_there_once_per_item():
    table = np.eye(3)
    said = Annotations.from_comparisons(
        ["ann", "bob"] * 50, [0, 1] * 50, [2, 0] * 50, features=table
    )
    assert np.shares_memory(said.features, table)
    assert said.labels.sum() == 100
    np.testing.assert_array_equal(said.items[:4], [0, 2, 1, 0])
    np.testing.assert_array_equal(said.choice_set_codes[:4], [0, 0, 50, 50])


def test_items_without_features_are_known_by_their_ids():
    said = Annotations.from_comparisons(["ann", "bob"], ["x", "y"], ["y", "z"])
    assert said.feature_names == ()
    assert said.items.tolist() == ["x", "y", "y", "z"]


def test_annotations_say_what_items_are_like():
    first = Annotations.from_comparisons(["ann"], ["x"], ["z"], features={"x": [1], "z": [2]})
    second = Annotations.from_comparisons(["bob"], ["z"], ["x"], features=first)
    both = first.concat(second)
    assert both.n_users == 2
    assert len(both.features) == 2
    assert both.choice_set_codes.tolist() == [0, 0, 1, 1]


def test_two_rows_of_features_for_each_pair():
    rng = np.random.default_rng(0)
    won, lost = rng.normal(size=(2, 5, 3))
    users = ["ann"] * 5
    given = Annotations.from_comparisons(users, range(5), range(5, 10), features=(won, lost))
    np.testing.assert_array_equal(given.X[given.labels], won)
    np.testing.assert_array_equal(given.X[~given.labels], lost)
    frame = pd.DataFrame({"annotator": users, "chosen": list(won), "rejected": list(lost)})
    read = Annotations.from_preferences(frame)
    np.testing.assert_array_equal(read.X, given.X)
    assert not read.has_items
    with pytest.raises(ValueError):
        Annotations.from_preferences(frame, features=FEATURES)


def test_tables_of_pairs_are_read(tmp_path):
    frame = pd.DataFrame(
        {"user": [1, 1, 2], "winner": list("abc"), "loser": list("bca"), "tie": [0, 1, 0]}
    )
    said = Annotations.from_preferences(frame, features=FEATURES)
    assert len(said) == 8
    np.testing.assert_array_equal(said.weights, [1, 1, 0.5, 0.5, 1, 1, 0.5, 0.5])
    frame.to_csv(tmp_path / "pairs.csv", index=False)
    pd.DataFrame(FEATURES).T.rename_axis("item").to_csv(tmp_path / "items.csv")
    again = Annotations.from_preferences(
        tmp_path / "pairs.csv", features=str(tmp_path / "items.csv")
    )
    np.testing.assert_array_equal(again.X, said.X)
    assert again.user_ids.tolist() == ["1", "2"]
    with pytest.raises(ValueError):
        Annotations.from_preferences(frame.drop(columns="loser"))


def test_choices_of_the_worst_survive_selection_and_joining():
    said = Annotations.from_best_worst(
        ["ann", "bob"], [list("abc")] * 2, list("ab"), list("cc"), features=FEATURES
    )
    assert said.labels.tolist() == [True, False, False, False, True] * 2
    assert said.picks_worst.tolist() == [False, False, False, True, True] * 2
    assert said.of_user("bob").chosen.tolist() == [True, False, False, True, False]
    pairs = Annotations.from_comparisons(["cid"], ["a"], ["b"], features=FEATURES)
    both = pairs.concat(said)
    assert both.picks_worst.tolist() == [False] * 2 + said.picks_worst.tolist()


def test_sets_are_not_parted():
    rng = np.random.default_rng(0)
    said = Annotations.from_comparisons(rng.integers(5, size=60), [0] * 60, [1] * 60)
    train, test = split_within_users(said, 0.3, 0)
    assert (
        set(np.bincount(train.choice_set_codes)) == set(np.bincount(test.choice_set_codes)) == {2}
    )


def pairs(winners, losers, **options):
    users = ["ann"] * len(winners)
    return Annotations.from_comparisons(users, list(winners), list(losers), **options)


def test_columns_are_asked_for_by_the_names_of_arguments():
    table = pd.DataFrame({"user": ["ann"], "better": ["a"], "rejected": ["b"]})
    with pytest.raises(KeyError):
        Annotations.from_preferences(table, chosen="best")
    with pytest.raises(ValueError):
        Annotations.from_preferences(table)
    said = Annotations.from_preferences(table, chosen="better")
    assert said.statements() == "1 choice among 2"


def test_cycles_are_fine_and_so_is_one_person():
    said = pairs("abc" * 4, "bca" * 4)
    ranker = HierarchicalRanker().fit(said)
    np.testing.assert_allclose(ranker.decision_function(said), 0.0, atol=1e-6)


def test_differences_are_what_was_chosen_less_the_others():
    said = Annotations.from_best_worst(["ann"], [list("abc")], ["b"], ["c"], features=FEATURES)
    a, b, c = (np.array(FEATURES[name]) for name in "abc")
    apart = said.differences()
    turned = np.where(apart.labels, 1.0, -1.0)[:, None]
    np.testing.assert_array_equal(turned * apart.X, [b - a, b - c, a - c])
    with pytest.raises(ValueError):
        Annotations(["ann"] * 2, ["a", "b"], [1, 0], FEATURES).differences()


def test_grades_are_preferences_over_what_was_graded_lower():
    features = {name: [float(k)] for k, name in enumerate("abcde")}
    graded = Annotations(
        ["ann"] * 4 + ["bob"] * 2, list("abcdea"), [3, 1, 3, 2, 1, 1], features, weights=range(1, 7)
    )
    said = graded.choices()
    found = {(won[0], "".join(sorted(lost))) for won, lost in _sets_of(said)}
    assert found == {("a", "bd"), ("c", "bd"), ("d", "b")}
    assert said.user_ids.tolist() == ["ann"]
    assert said.weights[said.labels].tolist() == [4.0, 1.0, 3.0]
    assert said.features is graded.features
    assert {len(lost) for _, lost in _sets_of(graded.choices(most=1))} == {1}
    pairs = Annotations.from_comparisons(["cid"], ["a"], ["b"], features=said)
    assert len(np.unique(said.concat(pairs).choice_set_codes)) == len(_sets_of(said)) + 1
    with pytest.raises(ValueError):
        graded.concat(pairs)
    with pytest.raises(ValueError):
        graded.of_user("bob").choices()


def _sets_of(said):
    return [
        (said.items[mine & said.labels], said.items[mine & ~said.labels])
        for mine in (said.choice_set_codes == group for group in np.unique(said.choice_set_codes))
    ]


def test_rankers_made_of_statistics_learn_from_differences():
    rng = np.random.default_rng(7)
    table, first = rng.normal(size=(40, 3)), rng.integers(40, size=600)
    second = (first + rng.integers(1, 40, size=600)) % 40
    users = rng.integers(10, size=600)
    tastes = rng.normal(size=(10, 3)) + np.array([2.0, 0.0, 0.0])
    swap = np.einsum("nd,nd->n", table[first] - table[second], tastes[users]) < 0
    winners, losers = np.where(swap, second, first), np.where(swap, first, second)
    said = Annotations.from_comparisons(users, winners, losers, features=table)
    train, test = split_within_users(said, 0.3, 0)
    ranker = ThreeLevelRanker(loss="least_squares_raw").fit(train.differences())
    assert score_choices(test, ranker.decision_function(test)).accuracy.mean > 0.85


# One person, identity features: Bradley-Terry and Plackett-Luce


def weights_of(said, deviation):
    """Return one person's mode under independent normals of one standard deviation."""
    size = said.n_features
    coordinates = Design(np.zeros(size), np.ones(size), None, intercept=False)
    prior = GaussianPrior.of_covariance(np.zeros(size), deviation**2 * np.eye(size))
    crowd = FittedPrior(coordinates, prior, ChoiceLikelihood())
    points, _ = NewUserPosteriors(crowd, ChoiceLoss(), 0.5, size).fold_in(said)
    return points[0]


def test_pairs_of_one_person_are_choix_bradley_terry():
    rng = np.random.default_rng(3)
    first = rng.integers(6, size=80)
    second = (first + rng.integers(1, 6, size=80)) % 6
    said = pairs(first, second, features=np.eye(6))
    data = list(zip(first, second, strict=True))
    expected = choix.opt_pairwise(6, data, alpha=1.0 / (2.0 * 1.5**2), tol=1e-10)
    np.testing.assert_allclose(weights_of(said, 1.5), expected, atol=1e-5)


def test_rankings_of_one_person_are_choix_plackett_luce():
    rng = np.random.default_rng(4)
    orders = [rng.permutation(5)[: rng.integers(2, 6)].tolist() for _ in range(30)]
    said = Annotations.from_rankings(["ann"] * 30, orders, features=np.eye(5))
    expected = choix.opt_rankings(5, orders, alpha=1.0 / (2.0 * 0.8**2), tol=1e-10)
    np.testing.assert_allclose(weights_of(said, 0.8), expected, atol=1e-5)


def test_a_fit_to_one_person_is_the_mode_under_the_prior_it_has_learned():
    rng = np.random.default_rng(5)
    strength = np.array([2.0, 1.0, 0.0, -1.0, -2.0])
    first = rng.integers(5, size=200)
    second = (first + rng.integers(1, 5, size=200)) % 5
    swap = strength[first] - strength[second] + rng.logistic(size=200) < 0
    said = pairs(np.where(swap, second, first), np.where(swap, first, second))
    ranker = HierarchicalRanker().fit(said)
    found = ranker.item_effect_ - ranker.item_effect_.mean()
    data = [tuple(pair) for pair in said.items.reshape(-1, 2)]
    free = choix.opt_pairwise(5, data, alpha=1e-3)
    assert np.corrcoef(found, free)[0, 1] > 0.999
    assert 0.7 < found.std() / free.std() < 1.05


def test_more_comparisons_can_be_added_and_single_labels_cannot():
    rng = np.random.default_rng(6)
    users, first = rng.integers(9, size=(2, 90))
    said = Annotations.from_comparisons(users, first % 3, (first + 1) % 3)
    ranker = HierarchicalRanker().fit(said[:100])
    at_once = HierarchicalRanker().fit(said)
    grown = ranker.update(said[100:])
    np.testing.assert_allclose(grown.coef_, at_once.coef_, atol=1e-6)
    votes = without_choice_sets(said[:4])
    with pytest.raises(ValueError):
        grown.update(votes)


def without_choice_sets(said):
    return said._with(choice_set_codes=None)


def test_what_was_compared_survives_files(tmp_path):
    rng = np.random.default_rng(8)
    shown = [rng.permutation(list("abc")) for _ in range(60)]
    users = rng.integers(6, size=60)
    best, worst = [menu[0] for menu in shown], [menu[1] for menu in shown]
    said = Annotations.from_best_worst(users, shown, best, worst, features=FEATURES)
    votes = Annotations([7, 7], ["a", "b"], [True, False], FEATURES)
    ranker = HierarchicalRanker(n_groups=0).fit(said.concat(votes))
    assert ranker.loss_ == "mixed"
    back = load(save(ranker, tmp_path / "m.likeminds", with_data=True))
    np.testing.assert_array_equal(
        back.training_annotations_.picks_worst, ranker.annotations_.picks_worst
    )
    more = Annotations.from_comparisons([9, 9], ["a", "b"], ["b", "c"], features=FEATURES)
    np.testing.assert_allclose(back.update(more).coef_, ranker.update(more).coef_, atol=1e-9)
    assert 9 in back.users_


class TestPositions:
    """Items that were shown first or last get a feature, which rankings of items leave out."""

    def test_pairs_and_ties_mark_the_item_that_was_shown_first(self):
        said = Annotations.from_comparisons(
            ["ann", "bob"],
            ["tea", "milk"],
            ["milk", "tea"],
            [False, True],
            shown_first=["milk"] * 2,
        )
        assert said.feature_names == ("shown_first",)
        np.testing.assert_array_equal(said.X[:, 0], said.items == "milk")
        assert len(said) == 6
        assert said.tied.sum() == 4

    @pytest.mark.parametrize("kind", ["from_choices", "from_rankings", "from_best_worst"])
    def test_larger_sets_mark_both_ends_and_keep_features_of_items(self, kind):
        menu = ["egg", "eel", "tofu", "crab"]
        features = {item: [float(place)] for place, item in enumerate(menu)}
        answers = {
            "from_choices": {"shown": [menu], "chosen": ["eel"]},
            "from_rankings": {"rankings": [["crab", "egg", "tofu", "eel"]]},
            "from_best_worst": {"shown": [menu], "best": ["crab"], "worst": ["egg"]},
        }
        said = getattr(Annotations, kind)(
            ["ann"], **answers[kind], features=features, shown_first=["egg"], shown_last=["crab"]
        )
        assert said.feature_names == ("x0", "shown_first", "shown_last")
        place = np.array([menu.index(item) for item in said.items])
        np.testing.assert_array_equal(said.X, np.stack([place, place == 0, place == 3], axis=1))
        ids, bare = said.distinct_items()
        assert [features[item] + [0.0, 0.0] for item in ids] == bare.tolist()

    @pytest.mark.parametrize(
        ("first", "message"), [(["cola"], "cola"), (["tea", "tea"], "2 items for 1")]
    )
    def test_positions_must_be_those_of_shown_items(self, first, message):
        with pytest.raises(ValueError, match=message):
            Annotations.from_comparisons(["ann"], ["tea"], ["milk"], shown_first=first)

    def test_vectors_have_no_positions(self):
        table = pd.DataFrame({"user": ["a"], "chosen": [[1.0, 2.0]], "rejected": [[0.0, 1.0]]})
        with pytest.raises(ValueError, match="shown_first"):
            Annotations.from_preferences(table, shown_first=["a"])

    @pytest.mark.seconds
    def test_position_effects_are_learned_per_user_and_left_out_of_rankings(self):
        rng = np.random.default_rng(0)
        worth, bias = rng.normal(size=8), rng.normal(0.8, 0.8, size=30)
        users = np.repeat(np.arange(30), 40)
        pair = np.array([rng.choice(8, 2, replace=False) for _ in users])
        ahead = worth[pair] @ [1.0, -1.0] + bias[users] + rng.logistic(size=len(users)) > 0
        won, lost = np.where(ahead[:, None], pair, pair[:, ::-1]).T
        said = Annotations.from_comparisons(users, won, lost, shown_first=pair[:, 0])
        ranker = HierarchicalRanker(n_item_factors=0).fit(said)
        learned = ranker.coef_[:, 0]
        assert abs(learned.mean() - bias.mean()) < 0.3
        assert np.corrcoef(learned, bias)[0, 1] > 0.7
        assert learned.std() < bias.std()  # shrunken
        best = ranker.rank(0)
        order = ranker.items_[np.argsort(-ranker.item_effect_)]
        np.testing.assert_array_equal(best.items, order)
