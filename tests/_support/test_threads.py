import threading

from likeminds._support.threads import scratch


def test_scratch_of_no_size_is_there_in_a_new_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append(scratch((2, 0)).shape))
    thread.start()
    thread.join()
    assert found == [(2, 0)]
