import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likeminds import Annotations, load_electricity, split_within_users
from likeminds.data.splits import folds_within_users


@given(st.integers(0, 99), st.floats(0.1, 0.9))
def test_whole_groups_stay_together(seed, test_size):
    rng = np.random.default_rng(seed)
    users = rng.integers(0, 4, 60)
    groups = rng.integers(0, 8, 60)
    said = Annotations(
        users=users, items=None, labels=rng.random(60) < 0.5, features=np.arange(60.0)[:, None],
        choice_sets=groups,
    )  # fmt: skip
    train, test = split_within_users(said, test_size, seed)
    rows = np.sort(np.concatenate([train.X, test.X])[:, 0])
    np.testing.assert_array_equal(rows, np.arange(60.0))
    sides = [{(users[int(i)], groups[int(i)]) for i in side.X[:, 0]} for side in (train, test)]
    assert not sides[0] & sides[1]


def test_a_third_of_twelve_choice_sets():
    households = load_electricity()
    train, test = split_within_users(households, 0.3, 0)
    assert train.n_users == test.n_users == 361
    sets = [np.unique(side.choice_set_codes[side.user_codes == 0]).size for side in (train, test)]
    assert sets == [8, 4]
    again = split_within_users(households, 0.3, 0)[1]
    np.testing.assert_array_equal(again.X, test.X)
    other = split_within_users(households, 0.3, 1)[1]
    assert not np.array_equal(other.item_codes, test.item_codes)


@given(st.integers(0, 99))
def test_without_groups_both_labels_are_divided(seed):
    rng = np.random.default_rng(seed)
    labels = np.tile(np.arange(20) < 6, 3)
    said = Annotations(
        users=np.repeat([0, 1, 2], 20), items=None, labels=labels, features=np.ones((60, 1))
    )
    train, test = split_within_users(said, 0.5, rng)
    np.testing.assert_array_equal(test.label_counts(), [[7, 3]] * 3)
    np.testing.assert_array_equal(train.label_counts(), [[7, 3]] * 3)
    folds = folds_within_users(said, 3, seed)
    for person in range(3):
        for label in (True, False):
            mine = folds[(said.user_codes == person) & (labels == label)]
            assert np.ptp(np.bincount(mine, minlength=3)) <= 1


def test_without_strata_the_held_out_labels_are_a_random_draw():
    labels = np.tile(np.arange(20) < 6, 200)
    said = Annotations(
        users=np.repeat(np.arange(200), 20), items=None, labels=labels, features=np.ones((4000, 1))
    )
    _, test = split_within_users(said, 0.5, 0, stratify=False)
    counts = test.label_counts()
    assert (counts.sum(axis=1) == 10).all()
    # The number of positives is hypergeometric: mean 3, variance 10 * .3 * .7 * 10 / 19.
    assert counts[:, 1].mean() == pytest.approx(3.0, abs=0.25)
    assert counts[:, 1].var() == pytest.approx(1.105, abs=0.35)


@pytest.mark.parametrize("size", [0.0, 1.0, -1, 2])
def test_test_size_is_a_share(size):
    with pytest.raises(ValueError):
        split_within_users(load_electricity(), size)


def test_a_split_needs_two_sides():
    said = Annotations(users=[0, 0], items=None, labels=[0, 1], features=np.eye(2))
    with pytest.raises(ValueError):
        split_within_users(said, 0.1)


def test_folds_are_at_least_two():
    with pytest.raises(ValueError):
        folds_within_users(load_electricity(), 1)


def test_folds_depend_on_ids_alone():
    households = load_electricity()
    folds = folds_within_users(households, 5, 3)
    order = np.random.default_rng(0).permutation(len(households))
    features = households.features
    written = Annotations(  # other rows first, ids of other types, items in another order
        users=households.user_codes[order].astype(str),
        items=households.item_codes[order].astype(str),
        labels=households.labels[order],
        features=dict(zip(np.arange(len(features))[::-1].astype(str), features[::-1], strict=True)),
        choice_sets=households.choice_set_codes[order],
    )
    numbers = Annotations(
        users=households.user_codes,
        items=households.item_codes,
        labels=households.labels,
        features=features,
        choice_sets=households.choice_set_codes,
    )
    np.testing.assert_array_equal(
        folds_within_users(written, 5, 3), folds_within_users(numbers, 5, 3)[order]
    )
    assert not np.array_equal(folds, folds_within_users(households, 5, 4))
    some = households.of_users(households.user_ids[100:200])
    mine = np.isin(households.users, some.user_ids)
    np.testing.assert_array_equal(folds_within_users(some, 5, 3), folds[mine])


def test_both_halves_of_a_tie_are_held_out_together():
    rng = np.random.default_rng(0)
    winners = rng.integers(5, size=200)
    losers = (winners + rng.integers(1, 5, size=200)) % 5
    said = Annotations.from_comparisons(
        np.arange(200) % 20, winners, losers, np.arange(200) % 3 == 0
    )
    parts = split_within_users(said, test_size=0.4, random_state=1)
    pairs = []
    for part in parts:
        tied = np.flatnonzero(part.tied)
        tied = tied[np.argsort(part.choice_set_codes[tied], kind="stable")].reshape(-1, 2)
        users, items = part.users[tied[:, 0]], np.sort(part.items[tied], axis=1).tolist()
        pairs.append({(user, *both) for user, both in zip(users, items, strict=True)})
    assert pairs[0]
    assert pairs[1]
    assert not pairs[0] & pairs[1]
