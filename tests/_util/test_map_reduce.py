import numpy as np

from likeminds._util import threads
from likeminds._util.map_reduce import SumTuple, ThreadExecutor, in_order, of_rows


def tell(block, state, own):
    kept = np.zeros(len(block)) if own is None else own
    kept = kept + state * block
    return SumTuple(float(kept.sum()), np.outer(block, block)[:2, :2]), kept


def blocks(n=30):
    rng = np.random.default_rng(0)
    return [rng.normal(size=rng.integers(2, 6)) for _ in range(n)]


def look(block, state, own):
    return own


def test_sums_are_the_same_with_any_number_of_threads(monkeypatch):
    users = blocks()
    (value, matrix), own = ThreadExecutor(users, many_threads=False).map_reduce(tell, 0.1)
    total = 0.0
    for part in users:
        total += float((0.1 * part).sum())
    assert value == total
    for n_cores in (2, 5):
        monkeypatch.setattr(threads, "n_cores", lambda n=n_cores: n)
        (again, other), its = ThreadExecutor(users).map_reduce(tell, 0.1)
        assert again == value
        np.testing.assert_array_equal(other, matrix)
        for mine, theirs in zip(own, its, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_blocks_keep_what_is_theirs_until_it_is_asked_for():
    users = ThreadExecutor(blocks())
    _, first = users.map_reduce(tell, 1.0)
    _, second = users.map_reduce(tell, 1.0, first)
    asked = [users.map(look, None, own) for own in (first, second)]
    kept = zip(users.blocks, *asked, strict=True)
    for block, once, twice in kept:
        np.testing.assert_array_equal(once, block)
        np.testing.assert_array_equal(twice, 2.0 * block)


def test_rows_are_put_in_the_order_of_users():
    parts = [(np.array([2, 0]), np.array([0.2, 0.0])), (np.array([1]), np.array([0.1]))]
    assert in_order(parts, 3).tolist() == [0.0, 0.1, 0.2]
    assert of_rows(lambda some: np.arange(5.0)[some] ** 2, 5, at_once=2).tolist() == [
        0,
        1,
        4,
        9,
        16,
    ]


def test_tuples_of_sums_are_added_part_by_part():
    total = SumTuple(1.0, 2)
    total += SumTuple(0.5, 1)
    assert list(total) == [1.5, 3]
