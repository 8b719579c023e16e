"""Fingerprints: the same for the same labels in any order, another for anything else."""

import numpy as np
import pytest

from crowds import make_crowd
from likeminds import Annotations, fingerprint
from likeminds.data.fingerprints import joint_fingerprint


@pytest.fixture
def crowd():
    return make_crowd(np.random.default_rng(3))


def changed(crowd, **changes):
    parts = {
        "users": crowd.users,
        "items": None,
        "labels": crowd.labels.copy(),
        "features": crowd.X.copy(),
        "weights": crowd.weights.copy(),
        "feature_names": crowd.feature_names,
    }
    return Annotations(**(parts | changes))


def test_order_and_names_of_items_do_not_matter(crowd):
    order = np.random.default_rng(0).permutation(len(crowd))
    assert fingerprint(crowd[order]) == fingerprint(crowd)
    named = changed(crowd, items=[f"item {i}" for i in range(len(crowd))], features_per="row")
    assert fingerprint(named) == fingerprint(crowd)
    assert len(fingerprint(crowd)) == 32


def test_features_per_item_or_per_row_are_the_same():
    items = np.array([0, 1, 0, 1])
    table = np.array([[1.0, 2.0], [3.0, -0.0]])
    by_item = Annotations(["a", "a", "b", "b"], items, [0, 1, 1, 0], table)
    by_row = Annotations(["a", "a", "b", "b"], None, [0, 1, 1, 0], table[items] + 0.0)
    single = Annotations(["a", "a", "b", "b"], items, [0, 1, 1, 0], table.astype(np.float32))
    ones = Annotations(["a", "a", "b", "b"], items, [0, 1, 1, 0], table, weights=np.ones(4))
    assert len({fingerprint(said) for said in (by_item, by_row, single, ones)}) == 1


def test_everything_else_matters(crowd):
    labels, features, weights = crowd.labels.copy(), crowd.X.copy(), crowd.weights.copy()
    labels[4] = ~labels[4]
    features[5, 1] = np.nextafter(features[5, 1], 9.0)
    weights[6] *= 2
    users = crowd.users.copy()
    users[7] = "somebody"
    swapped = crowd.X[:, [1, 0, 2, 3, 4]]
    exchanged = crowd.labels.copy()
    one, other = np.flatnonzero(exchanged)[0], np.flatnonzero(~exchanged)[0]
    exchanged[[one, other]] = exchanged[[other, one]]
    names = ["a", "b", "c", "d", "e"]
    others = [
        changed(crowd, labels=labels),
        changed(crowd, labels=exchanged),
        changed(crowd, features=features),
        changed(crowd, features=swapped),
        changed(crowd, weights=weights),
        changed(crowd, users=users),
        changed(crowd, feature_names=names),
        changed(crowd, feature_names=names[::-1]),
        crowd[1:],
        crowd.concat(crowd[:1]),
        crowd,
    ]
    assert len({fingerprint(said) for said in others}) == len(others)
    assert fingerprint(changed(crowd)) == fingerprint(crowd)


def test_ids_of_another_kind_are_other_people():
    texts = Annotations(["1", "2"], None, [0, 1], np.eye(2))
    numbers = Annotations([1, 2], None, [0, 1], np.eye(2))
    wider = Annotations(np.array([1, 2], dtype=np.int16), None, [0, 1], np.eye(2))
    assert fingerprint(texts) != fingerprint(numbers) == fingerprint(wider)


def test_the_fingerprint_of_both(crowd):
    first, second = fingerprint(crowd[:50]), fingerprint(crowd[50:])
    assert joint_fingerprint(first, second) == fingerprint(crowd)
    assert joint_fingerprint(second, first) == fingerprint(crowd)
