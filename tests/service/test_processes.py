"""Real processes: killed in the middle of writes, and several workers on one model."""

import json
import os
import signal
import threading
import time
import urllib.error
import urllib.request
from contextlib import suppress
from dataclasses import replace
from http.client import HTTPException
from importlib.util import find_spec

import pytest

from likeminds.service.startup import PRELOADED
from likeminds.service.store import open_store
from service.running_service import free_port, running, start, stop

pytestmark = pytest.mark.slow


def test_workers_preload_a_module_that_exists():
    assert find_spec(PRELOADED) is not None


def ask(address, path, body=None, headers=None):
    """Return the status and the answer; no connection is kept, so that any worker may answer."""
    data = None if body is None else json.dumps(body).encode()
    given = {"Content-Type": "application/json", "Connection": "close"} | (headers or {})
    request = urllib.request.Request(address + path, data, given)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_nothing_that_was_acknowledged_is_lost_when_the_process_is_killed(settings, kind):
    if kind == "sqlite":
        count_after_a_kill(settings)
        return
    from postgres import NoServerError, server

    try:
        with server() as address:
            count_after_a_kill(replace(settings, database=address))
    except NoServerError as error:
        pytest.skip(str(error))


def count_after_a_kill(settings):
    """Write from three sides, kill without warning, and count."""
    port = free_port()
    process = start(settings, port)
    address = f"http://127.0.0.1:{port}"
    acknowledged = {f"w-{n}": [] for n in range(3)}
    enough = threading.Event()

    def write(user):
        ask(address, "/v1/newcomers", {"user": user})
        for turn in range(10_000):
            item, label = f"shoe-{turn % 40:02d}", turn // 40 % 2 == 0
            key = {"Idempotency-Key": f"{user}-{turn:06d}"}
            rows = {"labels": [{"item": item, "label": label}]}
            try:
                status, _ = ask(address, f"/v1/users/{user}/labels", rows, key)
            except (OSError, HTTPException):  # the kill may cut an answer in the middle
                return
            if status == 200:
                acknowledged[user].append((item, label))
            if sum(map(len, acknowledged.values())) > 120:
                enough.set()

    writers = [threading.Thread(target=write, args=(user,)) for user in acknowledged]
    for writer in writers:
        writer.start()
    assert enough.wait(120)
    stop(process, signal.SIGKILL)
    for writer in writers:
        writer.join(60)
    store = open_store(settings.database)
    try:
        for user, told in acknowledged.items():
            assert told
            kept = {one.item: one.label for one in store.labels_of(user)}
            last = dict(told)
            # One more write may have been stored and not have been acknowledged.
            wrong = [item for item, label in last.items() if kept.get(item) != label]
            assert len(wrong) <= 1
            assert len(kept) in {len(last), len(last) + 1}
            if wrong:
                turn = len(told)
                assert wrong == [f"shoe-{turn % 40:02d}"]
    finally:
        store.close()
    again = start(settings, port)
    try:
        user, told = next(iter(acknowledged.items()))
        status, found = ask(address, f"/v1/users/{user}/labels")
        assert status == 200
        assert {one["item"] for one in found["labels"]} >= {item for item, _ in told}
    finally:
        stop(again)


def test_two_workers_agree_within_a_second_of_a_swap(settings, ranker, said):
    from likeminds import HierarchicalRanker, save

    other = HierarchicalRanker(n_groups=0).fit(said)
    with running(settings, workers=2) as address:
        workers = set()
        end = time.monotonic() + 60
        while len(workers) < 2 and time.monotonic() < end:
            workers.add(worker_of(address))
        assert len(workers) == 2, "both workers should have answered"
        before = ask(address, "/v1/model")[1]["generation"]
        whole = {before: ranking(address)}
        save(other, settings.model, with_data=True)
        swapped = time.monotonic()
        in_turn, torn = 0, []
        while time.monotonic() < swapped + 20:
            answer = ranked(address)
            generation, found = answer["generation"], answer["items"]
            if generation in whole and whole[generation] != found:
                torn.append(generation)
            whole.setdefault(generation, found)
            in_turn = in_turn + 1 if generation != before else 0
            if in_turn >= 20 and time.monotonic() > swapped + 3:
                break
        assert torn == []
        assert len(whole) == 2
        late = {ranked(address)["generation"] for _ in range(20)}
        assert len(late) == 1
        assert before not in late


def ranked(address):
    return ask(address, "/v1/rank", {"user": "person-01", "limit": 5})[1]


def ranking(address):
    return ranked(address)["items"]


def worker_of(address):
    with urllib.request.urlopen(
        urllib.request.Request(f"{address}/metrics", headers={"Connection": "close"}), timeout=30
    ) as answer:
        text = answer.read().decode()
    return text.partition('worker="')[2].partition('"')[0]


def test_a_service_that_is_asked_to_end_ends(settings):
    port = free_port()
    process = start(settings, port)
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(30) is not None


def test_a_worker_that_ends_is_replaced_and_all_end_together(settings):
    port = free_port()
    process = start(settings, port, workers=2)
    address = f"http://127.0.0.1:{port}"
    try:
        first = workers_of(address, 2)
        os.kill(int(min(first)), signal.SIGKILL)
        assert len(workers_of(address, 2, without=first) - first) == 1
        last = workers_of(address, 2)
        os.kill(process.pid, signal.SIGKILL)  # nobody is left who would end them
        process.wait(30)
        assert all(ends(int(worker)) for worker in last)
    finally:
        stop(process, signal.SIGKILL)


def workers_of(address, n_workers, without=frozenset()):
    """Return the workers that answer, once there are so many; one is new, if others are given."""
    found, end = set(), time.monotonic() + 60
    while time.monotonic() < end:
        with suppress(OSError):
            found.add(worker_of(address))
        if len(found) >= n_workers and (not without or found - without):
            break
    return found


def ends(worker, seconds=30.0):
    """Say whether a process ends in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            os.kill(worker, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False
