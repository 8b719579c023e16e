import multiprocessing
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from likeminds._util import threads
from likeminds._util.threads import in_threads, one_blas_thread, scratch


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_scratch_of_no_size_is_there_in_a_new_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append(scratch((2, 0)).shape))
    thread.start()
    thread.join()
    assert found == [(2, 0)]


def test_results_come_in_order_from_threads_that_are_made_once(monkeypatch):
    monkeypatch.setattr(threads, "n_cores", lambda: 3)
    threads._pool.cache_clear()
    names = [set(in_threads(lambda _: threading.current_thread().name, range(50)))]
    names.append(set(in_threads(lambda _: threading.current_thread().name, range(50))))
    assert list(in_threads(lambda number: number**2, range(100))) == [n**2 for n in range(100)]
    assert names[0] | names[1] <= {f"likeminds_{number}" for number in range(3)}
    threads._pool.cache_clear()


def test_work_that_asks_for_threads_does_not_wait_for_itself(monkeypatch):
    monkeypatch.setattr(threads, "n_cores", lambda: 2)
    nested = in_threads(lambda n: sum(in_threads(lambda m: n * m, range(5))), range(20))
    assert list(nested) == [10 * n for n in range(20)]


def test_an_error_ends_the_work_and_the_threads_go_on(monkeypatch):
    monkeypatch.setattr(threads, "n_cores", lambda: 2)

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
    monkeypatch.setattr(threads, "n_cores", lambda: 2)
    assert sum(in_threads(float, range(40))) == 780.0
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_sum_in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=60) == 780.0
    child.join(60)
    assert child.exitcode == 0
