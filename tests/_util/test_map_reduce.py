import multiprocessing
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from likeminds._util import map_reduce
from likeminds._util.map_reduce import (
    SumTuple,
    ThreadExecutor,
    in_order,
    in_threads,
    of_rows,
    one_blas_thread,
    scratch,
)


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
        monkeypatch.setattr(map_reduce, "n_cores", lambda n=n_cores: n)
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


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_scratch_of_no_size_is_there_in_a_new_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append(scratch((2, 0)).shape))
    thread.start()
    thread.join()
    assert found == [(2, 0)]


def test_results_come_in_order_from_threads_that_are_made_once(monkeypatch):
    monkeypatch.setattr(map_reduce, "n_cores", lambda: 3)
    map_reduce._pool.cache_clear()
    names = [set(in_threads(lambda _: threading.current_thread().name, range(50)))]
    names.append(set(in_threads(lambda _: threading.current_thread().name, range(50))))
    assert list(in_threads(lambda number: number**2, range(100))) == [n**2 for n in range(100)]
    assert names[0] | names[1] <= {f"likeminds_{number}" for number in range(3)}
    map_reduce._pool.cache_clear()


def test_work_that_asks_for_threads_does_not_wait_for_itself(monkeypatch):
    monkeypatch.setattr(map_reduce, "n_cores", lambda: 2)
    nested = in_threads(lambda n: sum(in_threads(lambda m: n * m, range(5))), range(20))
    assert list(nested) == [10 * n for n in range(20)]


def test_an_error_ends_the_work_and_the_threads_go_on(monkeypatch):
    monkeypatch.setattr(map_reduce, "n_cores", lambda: 2)

    def work(number):
        if number == 3:
            raise ValueError("three")
        return number

    with pytest.raises(ValueError):
        list(in_threads(work, range(100)))
    assert list(in_threads(str, range(3))) == ["0", "1", "2"]


def test_the_limit_of_blas_is_restored_when_the_last_one_leaves():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        first, second = one_blas_thread(), one_blas_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert blas_threads() == {1}
        second.__exit__(None, None, None)
        assert blas_threads() == before


def _sum_in_child(queue):
    queue.put(sum(in_threads(lambda n: float(np.ones(n).sum()), range(40))))


def test_a_forked_process_makes_threads_of_its_own(monkeypatch):
    monkeypatch.setattr(map_reduce, "n_cores", lambda: 2)
    assert sum(in_threads(float, range(40))) == 780.0
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_sum_in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=60) == 780.0
    child.join(60)
    assert child.exitcode == 0
