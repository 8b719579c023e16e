"""Labels folded into the model, models swapped, databases lost."""

import os
import time
from pathlib import Path

import numpy as np
import pytest

from likeminds import HierarchicalRanker, load, load_electricity, save
from likeminds.service import refit_job
from likeminds.service.app_state import AppState
from likeminds.service.refit_job import Refresher, fold_in, refresh_file
from likeminds.service.store import Label, hashed
from likeminds.storage import safetensors
from likeminds.storage.models import ModelFileError, main_file

pytestmark = pytest.mark.seconds


def label(user, item, value):
    return Label(user, "", item, value, 0.0)


@pytest.fixture
def served(settings):
    holder = AppState(settings)
    yield holder.current
    holder.close()


def fold(served, labels, forgotten=()):
    model = load(served.path)
    gone = frozenset(hashed(name) for name in forgotten)
    return fold_in(model, labels, gone, served.catalogue)


def test_stored_labels_are_learned_as_if_they_had_been_there(served, said, ranker):
    more = [label("zoe", "shoe-01", True), label("zoe", "shoe-02", False)]
    grown = fold(served, more)
    assert "zoe" in grown.users_
    assert grown.n_labels_ == ranker.n_labels_ + 2
    row = grown.annotations_.of_user("zoe")
    assert dict(zip(row.items.tolist(), row.labels.tolist(), strict=True)) == {
        "shoe-01": True,
        "shoe-02": False,
    }


def test_the_last_word_replaces_what_the_model_has(served, said):
    mine = said.of_user("person-03")
    first, second = str(mine.items[0]), str(mine.items[1])
    changed = [
        label("person-03", first, not bool(mine.labels[0])),
        label("person-03", second, None),
    ]
    grown = fold(served, changed).annotations_.of_user("person-03")
    now = dict(zip(grown.items.tolist(), grown.labels.tolist(), strict=True))
    assert now[first] is not bool(mine.labels[0])
    assert second not in now
    assert len(now) == len(mine) - 1


def test_nobody_who_was_deleted_is_in_the_next_model(served):
    grown = fold(served, [label("zoe", "shoe-01", True)], ["person-07"])
    assert "person-07" not in grown.users_
    assert "person-07" not in grown.annotations_.user_ids
    assert "zoe" in grown.users_


def test_a_refresh_is_swapped_in_and_deletion_reaches_it(serve, settings):
    client = serve()
    holder = client.app.state.service
    user = client.post("/v1/newcomers", json={"user": "zoe"}).json()["user"]
    rows = [{"item": f"shoe-{n:02d}", "label": n % 2 == 0} for n in range(8)]
    client.post(f"/v1/users/{user}/labels", json={"labels": rows})
    before = client.post("/v1/rank", json={"user": user, "limit": 40}).json()
    assert refresh_file(settings) == "8 labels"
    assert refresh_file(settings) == "nothing new"
    assert holder.swap_model()
    assert not holder.swap_model()
    after = client.post("/v1/rank", json={"user": user, "limit": 40}).json()
    assert after["generation"] != before["generation"]
    assert user in holder.current.users
    scores = [{one["item"]: one["score"] for one in said["items"]} for said in (before, after)]
    both = np.array([[one[item] for item in sorted(one)] for one in scores])
    assert np.corrcoef(both)[0, 1] > 0.9
    client.delete(f"/v1/users/{user}/data")
    assert refresh_file(settings) != "nothing new"
    assert b"zoe" not in settings.refreshed.read_bytes()
    assert Path(settings.model).read_bytes() != settings.refreshed.read_bytes()


@pytest.mark.parametrize("moment", ["fold_in", "save"])
def test_a_model_replaced_during_a_refresh_is_served(settings, said, monkeypatch, moment):
    other = HierarchicalRanker(n_groups=0, item_effects=False).fit(said)
    holder = AppState(settings)
    holder.store.add_user("zoe", "no token")
    holder.store.put_labels("zoe", [("", "shoe-01", True)])
    work, replaced = getattr(refit_job, moment), []

    def late(*given, **options):
        if not replaced:  # another program writes a model while this one is worked on
            replaced.append(save(other, settings.model, with_data=True))
        return work(*given, **options)

    monkeypatch.setattr(refit_job, moment, late)
    assert refresh_file(settings) == "1 labels"
    assert replaced
    holder.swap_model()
    assert holder.current.model.n_groups == 0
    refresh_file(settings)
    holder.swap_model()
    assert holder.current.model.n_groups == 0
    assert "zoe" in holder.current.users
    assert len(list(Path(settings.state).glob("refreshed*"))) == 1
    holder.close()


def test_a_label_taken_back_after_a_refresh_counts_no_longer(serve, settings):
    client = serve()
    client.post("/v1/newcomers", json={"user": "zoe"})
    path = "/v1/users/zoe/labels"
    client.post(path, json={"labels": [{"item": "shoe-01", "label": True}]})
    refresh_file(settings)
    client.app.state.service.swap_model()
    client.post(path, json={"labels": [{"item": "shoe-01", "label": None}]})
    view = client.get("/v1/users/zoe/view").json()
    assert view["profile"]["level_shares"]["consensus"] == pytest.approx(1.0)
    assert client.get(path).json()["labels"] == []


def test_a_refresh_runs_in_another_process_and_says_how_it_went(serve, settings):
    client = serve()
    client.post("/v1/newcomers", json={"user": "zoe"})
    rows = {"labels": [{"item": "shoe-01", "label": True}]}
    client.post("/v1/users/zoe/labels", json=rows)
    refresher = Refresher(client.app.state.service)
    refresher.refresh()
    assert refresher.last == "done: 1 labels"
    assert "zoe" in client.get("/v1/users", params={"q": "zoe"}).json()["users"]


def test_a_damaged_model_is_refused_and_the_old_one_stays(serve, settings):
    client = serve()
    holder = client.app.state.service
    before = client.post("/v1/rank", json={"user": "person-01"}).json()
    content = bytearray(Path(settings.model).read_bytes())
    content[-100] ^= 1
    broken = Path(settings.model).with_suffix(".broken")
    broken.write_bytes(content)
    later = time.time_ns() + 10**9
    os.utime(broken, ns=(later, later))
    broken.replace(settings.model)
    assert not holder.swap_model()
    assert client.post("/v1/rank", json={"user": "person-01"}).json() == before
    assert "likeminds_swaps_refused_total" in client.get("/metrics").text
    assert client.get("/ready").status_code == 200


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("content", [b"", b"0" * (1 << 20)], ids=["truncated", "overwritten"])
def test_a_mapped_model_changed_in_place_is_served_on(  # noqa: PLR0917
    serve, settings, ranker, monkeypatch, content, apart
):
    monkeypatch.setattr(safetensors, "READ_AT_ONCE", 0)
    if apart:
        Path(settings.model).unlink()
        save(ranker, settings.model, users_per_file=100, with_data=True)
    client = serve()
    before = client.post("/v1/rank", json={"user": "person-01"}).json()
    model = main_file(Path(settings.model))
    if Path("/proc/self/maps").exists():
        assert str(model) not in Path("/proc/self/maps").read_text()
    model.write_bytes(content)
    for _ in range(2):
        assert client.post("/v1/rank", json={"user": "person-01"}).json() == before
        assert client.post("/v1/explain", json={"user": "person-02", "item": "shoe-01"}).json()
        assert not client.app.state.service.swap_model()
    assert "likeminds_swaps_refused_total" in client.get("/metrics").text


@pytest.mark.parametrize("damage", ["flip", "cut", "newer", "none"])
def test_a_model_that_cannot_be_served_is_refused_at_the_start(settings, damage):
    path = Path(settings.model)
    content = path.read_bytes()
    if damage == "flip":
        path.write_bytes(content[:-100] + bytes([content[-100] ^ 1]) + content[-99:])
    elif damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "newer":
        path.write_bytes(content.replace(b'\\"format\\": 3', b'\\"format\\": 9'))
    else:
        path.unlink()
    error = FileNotFoundError if damage == "none" else ModelFileError
    with pytest.raises(error):
        AppState(settings)


def test_without_the_database_reads_go_on_and_writes_say_why(serve, settings, monkeypatch):
    client = serve()
    client.post("/v1/newcomers", json={"user": "zoe"})
    holder = client.app.state.service
    before = client.post("/v1/rank", json={"user": "person-01"}).json()
    holder.store.close()
    away = Path(settings.state)
    away.rename(away.with_name("away"))
    holder.refresh_lookups()
    assert client.post("/v1/rank", json={"user": "person-01"}).json() == before
    assert client.get("/v1/schools").status_code == 200
    rows = {"labels": [{"item": "shoe-01", "label": True}]}
    for done in (
        client.post("/v1/users/zoe/labels", json=rows),
        client.post("/v1/users/person-01/labels", json=rows),
        client.post("/v1/newcomers", json={}),
    ):
        assert done.status_code == 503
        assert "nothing was stored" in done.json()["detail"]
    assert client.get("/ready").status_code == 503
    assert client.get("/health").status_code == 200
    away.with_name("away").rename(away)
    holder.refresh_lookups()
    assert client.post("/v1/users/zoe/labels", json=rows).status_code == 200
    assert client.get("/ready").status_code == 200


def test_a_full_disk_is_said_and_nothing_is_half_stored(serve, settings):
    client = serve()
    client.post("/v1/newcomers", json={"user": "zoe"})
    store = client.app.state.service.store
    store.close()
    original = type(store.database)._connect

    def small(self):
        connection = original(self)
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection

    type(store.database)._connect = small
    try:
        rows = [{"item": f"shoe-{n:02d}", "label": True} for n in range(40)]
        path = "/v1/users/zoe/labels"
        codes = [
            client.post(f"/v1/users/{who}/labels", json={"labels": rows}).status_code
            for who in ["zoe", *(f"person-{n:02d}" for n in range(24))]
        ]
        assert 503 in codes
        assert client.get("/v1/schools").status_code == 200
        assert len(client.get(path).json()["labels"]) in {0, 40}
    finally:
        type(store.database)._connect = original


@pytest.mark.slow
def test_workers_swap_together_once_all_have_read_the_model(settings):
    first, second = AppState(settings), AppState(settings)
    before = first.current.generation
    later = time.time_ns() + 10**9
    os.utime(settings.model, ns=(later, later))
    assert not first.swap_model()
    assert not first.swap_model()
    assert first.current.generation == before
    assert second.swap_model()
    assert first.swap_model()
    assert first.current.generation == second.current.generation != before
    second.close()
    os.utime(settings.model, ns=(later + 10**9, later + 10**9))
    assert first.swap_model()  # nobody else is there
    first.close()


def test_a_worker_that_was_killed_is_not_waited_for(settings):
    import subprocess
    import sys

    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    holder = AppState(settings)
    left = Path(settings.state) / "workers" / f"{gone.pid}-abcd"
    left.write_text("an earlier generation")
    later = time.time_ns() + 10**9
    os.utime(settings.model, ns=(later, later))
    assert holder.swap_model()
    assert not left.exists()
    holder.close()


@pytest.mark.slow
def test_labels_of_newcomers_are_folded_into_a_model_of_choices(serve, settings):
    households = load_electricity()
    some = households.of_users(households.user_ids[:30])
    save(HierarchicalRanker(n_groups=1).fit(some), settings.model, with_data=True)
    client = serve()
    holder = client.app.state.service
    client.post("/v1/newcomers", json={"user": "zoe"})
    names = holder.current.catalogue.names
    path = "/v1/users/zoe/labels"
    rows = [{"item": names[n], "label": n % 2 == 0} for n in range(8)]
    assert client.post(path, json={"labels": rows}).status_code == 200
    known = f"/v1/users/{some.user_ids[3]}/labels"
    refused = client.post(known, json={"labels": rows})
    assert refused.status_code == 409
    assert "choices" in refused.json()["detail"]
    before = scores_of(client, names[:200])
    assert refresh_file(settings) == "8 labels"
    assert holder.swap_model()
    assert "zoe" in holder.current.users
    assert np.corrcoef(before, scores_of(client, names[:200]))[0, 1] > 0.9
    # What she says next goes to what the model has of her; households still cannot.
    assert (
        client.post(path, json={"labels": [{"item": names[8], "label": True}]}).status_code == 200
    )
    assert client.get("/v1/users/zoe/view").json()["profile"]["labels"] == 9
    assert client.post(known, json={"labels": rows}).status_code == 409
    client.delete(f"/v1/users/{some.user_ids[3]}/data")
    assert refresh_file(settings) == "9 labels"
    grown = load(settings.refreshed)
    assert len(grown.annotations_.of_user("zoe")) == 9
    assert some.user_ids[3] not in grown.users_


def scores_of(client, items):
    asked = {"user": "zoe", "items": list(items)}
    answer = client.post("/v1/score", json=asked)
    assert answer.status_code == 200, answer.text
    return [one["score"] for one in answer.json()["scores"]]
