"""The type that everything works on: construction, slices, joins."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likeminds import Annotations

TABLE = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]])


def small(**changes) -> Annotations:
    arguments = {
        "users": ["zoe", "ann", "zoe", "bob", "ann"],
        "items": ["c", "a", "a", "b", "c"],
        "labels": [1, 0, 0, 1, 1],
        "features": TABLE,
        "item_ids": ["a", "b", "c", "d"],
    }
    return Annotations(**arguments | changes)


def same(first: Annotations, second: Annotations) -> bool:
    names = ("users", "items", "labels", "X", "attributes", "weights", "choice_set_codes")
    pairs = [(getattr(first, name), getattr(second, name)) for name in names]
    return first.feature_names == second.feature_names and all(
        np.array_equal(a, b) if a is not None and b is not None else a is b for a, b in pairs
    )


def test_columns_are_kept_and_ids_sorted():
    said = small()
    assert said.user_ids.tolist() == ["ann", "bob", "zoe"]
    assert said.users.tolist() == ["zoe", "ann", "zoe", "bob", "ann"]
    assert said.items.tolist() == ["c", "a", "a", "b", "c"]
    assert said.labels.tolist() == [True, False, False, True, True]
    assert said.item_ids.tolist() == ["a", "b", "c", "d"]  # d is kept, though nobody saw it
    np.testing.assert_array_equal(said.X, TABLE[[2, 0, 0, 1, 2]])
    assert (len(said), said.n_users, said.n_items, said.n_features) == (5, 3, 4, 2)
    assert (said.n_attributes, said.attributes, said.feature_names) == (1, None, ("x0", "x1"))


@pytest.mark.parametrize(
    "users",
    [[("a", 1), ("b", 2), ("a", 1)], [7, -3, 7], ["x", 1, "x"], [("a",), "b", ("a",)], [1.5, 0, 2]],
)
def test_ids_of_any_kind_come_back(users):
    said = Annotations(users, None, [0, 1, 1], np.ones((3, 1)))
    assert said.users.tolist() == users
    assert said.of_user(users[0]).users.tolist() == [u for u in users if u == users[0]]


def test_repr():
    rows = Annotations(["a"], None, [1], [[1.0]])
    assert repr(rows) == "Annotations: 1 label (100% positive) by 1 person on 1 item, 1 feature"
    assert repr(small()) == (
        "Annotations: 5 labels (60% positive) by 3 people on 3 of 4 items, 2 features"
    )
    assert repr(small(attributes=list("pqpqp"))).endswith("2 features, 2 attributes")
    many = Annotations(np.arange(1234), None, np.ones(1234, bool), np.ones((1234, 1)))
    assert "1,234 labels (100% positive) by 1,234 people on 1,234 items" in repr(many)


# Features ----------------------------------------------------------------------------


def test_shared_and_per_row_features_are_the_same_rows():
    shared = small()
    per_row = small(features=shared.X, item_ids=None)
    mapping = small(features=dict(zip("abcd", TABLE, strict=True)), item_ids=None)
    numbers = small(items=[2, 0, 0, 1, 2], item_ids=None)
    for said in (per_row, mapping, numbers):
        np.testing.assert_array_equal(said.X, shared.X)
    assert [said.features_per for said in (shared, per_row, mapping, numbers)] == [
        *("item", "row", "item", "item")
    ]
    assert numbers.item_ids.tolist() == [0, 1, 2, 3]
    assert per_row.item_ids.tolist() == ["a", "b", "c"]


def test_features_are_not_copied_and_stay_writeable_for_their_owner():
    for table in (TABLE.copy(), TABLE.astype(np.float32)):
        said = small(features=table)
        assert np.shares_memory(said.features, table)
        assert said.features.dtype == table.dtype
        table[0, 0] = 0.0
    rows = Annotations(["a", "b"], None, [0, 1], TABLE[:2])
    assert rows.X is rows.features
    assert small(features=TABLE.astype(int)).features.dtype == np.float64


# Groups, attributes, weights ---------------------------------------------------------


def test_a_group_is_of_one_person():
    said = small(choice_sets=["g", "g", "g", "g", "h"])
    zoe, ann, zoe_again, bob, ann_other = said.choice_set_codes
    assert zoe == zoe_again
    assert len({zoe, ann, bob, ann_other}) == 4
    assert sorted(set(said.choice_set_codes.tolist())) == [0, 1, 2, 3]
    assert sorted(set(said.take([0, 2, 3]).choice_set_codes.tolist())) == [0, 1]


def test_attributes_split_and_leave_their_column():
    said = small(attributes=["soft", "warm", "soft", "soft", "warm"], weights=[1, 2, 3, 4, 5])
    parts = said.by_attribute()
    assert list(parts) == ["soft", "warm"]
    assert parts["warm"].users.tolist() == ["ann", "ann"]
    assert parts["warm"].weights.tolist() == [2, 5]
    assert parts["warm"].attributes is None
    assert same(parts["soft"], said.of_attribute("soft"))
    assert said.take([1]).attribute_ids.tolist() == ["warm"]
    with pytest.raises(KeyError):
        said.of_attribute("loud")
    for verb in (lambda: small().of_attribute("soft"), lambda: small().by_attribute()):
        with pytest.raises(ValueError):
            verb()


def test_median_is_of_the_person_and_the_attribute():
    ratings = [1, 2, 3, 10, 20, 30]
    users, attributes = ["a"] * 6, ["p", "p", "p", "q", "q", "q"]
    said = Annotations(users, None, ratings, np.ones((6, 1)), attributes, threshold="median")
    assert said.labels.tolist() == [False, False, True] * 2
    apart = Annotations(users, None, ratings, np.ones((6, 1)), threshold="median")
    assert apart.labels.tolist() == [False, False, False, True, True, True]


# Nothing changes ---------------------------------------------------------------------


def test_nothing_can_be_changed():
    said = small(weights=np.ones(5), choice_sets=[1] * 5, attributes=[1] * 5)
    with pytest.raises(AttributeError):
        said.labels = np.zeros(5, bool)
    with pytest.raises(AttributeError):
        said.extra = 1
    for part in (said, said[1:], pickle.loads(pickle.dumps(said)), copy.deepcopy(said)):
        for name, value in vars(part).items():
            if isinstance(value, np.ndarray):
                assert not value.flags.writeable, name
    with pytest.raises(ValueError, match="read-only"):
        said.features[0, 0] = 1


def test_what_was_passed_in_may_change_afterwards():
    weights, item_ids = np.ones(5), np.arange(4)
    said = small(items=[0, 1, 2, 3, 3], item_ids=item_ids, weights=weights)
    weights[:], item_ids[:] = 7, 9
    assert said.weights.tolist() == [1] * 5
    assert said.items.tolist() == [0, 1, 2, 3, 3]


@pytest.mark.parametrize("twin", [lambda a: pickle.loads(pickle.dumps(a)), copy.deepcopy])
def test_copies_are_the_same(twin):
    said = small(weights=np.arange(5), choice_sets=[1, 1, 2, 2, 1], attributes=list("ppqqp"))
    said.user_index()
    assert same(said, twin(said))
    assert same(said.of_user("ann"), twin(said).of_user("ann"))


# Slices ------------------------------------------------------------------------------


def test_slices_share_the_table():
    said = small()
    for part in (said[1:3], said.of_user("ann"), said.take([True, False, True, True, False])):
        assert part.features is said.features
        assert np.shares_memory(part.features, TABLE)
        assert part.item_ids is said.item_ids


def test_take_drops_people_that_are_gone():
    part = small().take(np.array([3, 0, 3]))
    assert part.users.tolist() == ["bob", "zoe", "bob"]
    assert part.user_ids.tolist() == ["bob", "zoe"]
    assert part.items.tolist() == ["b", "c", "b"]
    assert small()[[-1]].users.tolist() == ["ann"]
    assert small()[::2].users.tolist() == ["zoe", "zoe", "ann"]


def test_people():
    said = small()
    assert said.of_user("ann").items.tolist() == ["a", "c"]
    assert said.of_users(["zoe", "ann", "zoe"]).users.tolist() == ["zoe", "ann", "zoe", "ann"]
    users = dict(said.by_user())
    assert list(users) == ["ann", "bob", "zoe"]
    assert same(users["zoe"], said.of_user("zoe"))
    with pytest.raises(KeyError):
        said.of_user("eve")
    with pytest.raises(KeyError):
        said.of_users(["ann", "eve", 3])


def test_person_index_is_computed_once():
    said = small()
    order, offsets = said.user_index()
    assert order.tolist() == [1, 4, 3, 0, 2]
    assert offsets.tolist() == [0, 2, 3, 5]
    assert said.user_index()[0] is order
    assert not order.flags.writeable


def test_label_counts():
    assert small().label_counts().tolist() == [[1, 1], [0, 1], [1, 1]]
    assert small(labels=[0] * 5).label_counts().tolist() == [[2, 0], [1, 0], [2, 0]]


def test_with_enough_labels_refuses_to_drop_everybody():
    assert small().with_enough_labels(1).user_ids.tolist() == ["ann", "zoe"]
    with pytest.raises(ValueError):
        small().with_enough_labels()


crowds = st.integers(1, 40).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 5), min_size=n, max_size=n),
        st.lists(st.booleans(), min_size=n, max_size=n),
        st.lists(st.sampled_from("pqr"), min_size=n, max_size=n),
        st.lists(st.booleans(), min_size=n, max_size=n).filter(any),
    )
)


@given(crowds, st.booleans())
@settings(deadline=None)
def test_take_is_what_numpy_masks_give(crowd, per_row):
    users, labels, attributes, mask = map(np.array, crowd)
    items = np.arange(len(users)) % 3
    table = np.arange(8.0).reshape(4, 2)
    features = table[items] if per_row else table
    said = Annotations(
        users,
        items,
        labels,
        features,
        attributes,
        weights=users + 1,
        choice_sets=items,
        features_per="row" if per_row else "item",
    )
    part = said.take(mask)
    assert part.users.tolist() == users[mask].tolist()
    assert part.labels.tolist() == labels[mask].tolist()
    assert part.items.tolist() == items[mask].tolist()
    assert part.attributes.tolist() == attributes[mask].tolist()
    assert part.weights.tolist() == (users[mask] + 1).tolist()
    np.testing.assert_array_equal(part.X, table[items[mask]])
    assert part.user_ids.tolist() == sorted(set(users[mask].tolist()))
    pairs = list(zip(users[mask].tolist(), items[mask].tolist(), strict=True))
    numbers = {pair: number for number, pair in enumerate(sorted(set(pairs)))}
    assert part.choice_set_codes.tolist() == [numbers[pair] for pair in pairs]


@given(crowds, st.integers(0, 4), st.booleans())
@settings(deadline=None)
def test_with_enough_labels_is_what_a_loop_gives(crowd, k, by_attribute):
    users, labels, attributes, _ = map(np.array, crowd)
    keep = []
    for row, user in enumerate(users):
        block = (users == user) & ((attributes == attributes[row]) | (not by_attribute))
        keep.append(labels[block].sum() >= k and (~labels[block]).sum() >= k)
    said = Annotations(
        users, None, labels, np.ones((len(users), 1)), attributes if by_attribute else None
    )
    if not any(keep):
        with pytest.raises(ValueError):
            said.with_enough_labels(k)
    else:
        assert same(said.with_enough_labels(k), said.take(keep))


# Joins -------------------------------------------------------------------------------


def test_concat_of_slices_shares_the_table():
    said = small()
    joined = said[:2].concat(said[2:])
    assert same(joined, said)
    assert joined.features is said.features


def test_concat_unites_items():
    other = Annotations([1, "ann"], ["e", "b"], [0, 0], {"e": [9.0, 9.0], "b": [2.0, 3.0]})
    joined = small().concat(other)
    assert joined.items.tolist() == ["c", "a", "a", "b", "c", "e", "b"]
    assert joined.item_ids.tolist() == ["a", "b", "c", "d", "e"]
    assert joined.users.tolist() == ["zoe", "ann", "zoe", "bob", "ann", 1, "ann"]
    np.testing.assert_array_equal(joined.X[5:], [[9.0, 9.0], [2.0, 3.0]])
    assert joined.features_per == "item"
    twin = pickle.loads(pickle.dumps(small()))
    assert small().concat(twin).n_items == 4


def test_concat_stacks_features_per_row():
    rows = small(features=TABLE[[0, 1, 2, 3, 0]], item_ids=None)
    for first, second in ((rows, rows[3:].concat(rows)), (rows, small()), (small(), rows)):
        joined = first.concat(second)
        np.testing.assert_array_equal(joined.X, np.vstack([first.X, second.X]))
        assert joined.items.tolist() == [*first.items, *second.items]
    twin = copy.deepcopy(rows)
    joined = rows.concat(twin)
    np.testing.assert_array_equal(joined.take([0, 5, 9]).X, TABLE[[0, 0, 0]])
    assert joined.features_per == "row"


def test_concat_joins_the_groups_of_one_person():
    whole = small(choice_sets=["a", "b", "a", "a", "b"])
    joined = whole[:2].concat(whole[2:])
    np.testing.assert_array_equal(joined.choice_set_codes, whole.choice_set_codes)
    assert joined.choice_set_ids.tolist() == whole.choice_set_ids.tolist()
    more = whole[[0]].concat(small(choice_sets=["b", "b", "c", "b", "b"]))
    assert more.choice_set_codes[0] not in more.choice_set_codes[1:]


def test_concat_keeps_groups_without_names_apart():
    # Files of old do not hold what groups are called.
    grouped = small(choice_sets=[1, 1, 1, 1, 1])._with(choice_set_ids=None)
    joined = grouped.concat(grouped)
    assert not set(joined.choice_set_codes[:5]) & set(joined.choice_set_codes[5:])


def test_concat_fills_weights():
    weighed = small(weights=np.arange(5)).concat(small())
    assert weighed.weights.tolist() == [0, 1, 2, 3, 4, 1, 1, 1, 1, 1]
    both = small(attributes=list("ppqqp")).concat(small(attributes=list("rrrrp")))
    assert "".join(both.attributes) == "ppqqprrrrp"


def test_concat_of_rows_without_items_stacks_them():
    one = Annotations(["ann", "bob"], None, [0, 1], [[1.0], [2.0]])
    two = Annotations(["bob", "zoe"], None, [1, 0], [[3.0], [4.0]])
    joined = one.concat(two)
    assert joined.X[:, 0].tolist() == [1.0, 2.0, 3.0, 4.0]
    assert joined.users.tolist() == ["ann", "bob", "bob", "zoe"]
    assert joined.n_items == 4
    assert not joined.has_items
    assert one.has_items is False


def test_rows_without_items_share_none_with_those_that_have():
    named = Annotations(["ann", "bob"], [3, 3], [0, 1], [[1.0], [2.0]], features_per="row")
    nameless = Annotations(["bob", "zoe"], None, [1, 0], [[3.0], [4.0]])
    for joined in (named.concat(nameless), nameless.concat(named)):
        assert joined.has_items
        assert joined.n_items == 3
        assert joined.items[joined.X[:, 0] < 3].tolist() == [3, 3]
    assert named.concat(nameless).items.tolist() == [3, 3, 4, 5]
