"""Who is let in, what is limited, what is never shown."""

import json
import logging
import sqlite3

import pytest

from likeminds.service.metrics import JsonLines
from likeminds.service.startup import require_keys
from likeminds.service.store import add_key, open_store
from service.conftest import show

pytestmark = pytest.mark.seconds

CROWD = ["/v1/model", "/v1/items", "/v1/schools", "/v1/agreed", "/v1/divisive", "/v1/map"]


def test_with_keys_nobody_else_is_let_in(serve, keys):
    client = serve()
    for path in [*CROWD, "/metrics", "/v1/users"]:
        assert client.get(path).status_code == 401, path
        assert client.get(path, headers=show("lmk_guess")).status_code == 401, path
        assert client.get(path, headers=show("guess")).status_code == 401, path
        assert client.get(path, headers=show("lmp_guess")).status_code == 401, path
        assert client.get(path, headers=show(keys["read"])).status_code == 200, path
    assert client.get("/health").status_code == 200
    assert client.get("/v1/model").headers["www-authenticate"] == "Bearer"


def test_roles_may_do_what_they_are_for(serve, keys):
    client = serve()
    refresh = "/v1/admin/refresh"
    for role, status in (("read", 403), ("write", 403), ("admin", 200)):
        assert client.get(refresh, headers=show(keys[role])).status_code == status
    for role, status in (("read", 403), ("write", 201), ("admin", 201)):
        made = client.post("/v1/newcomers", json={}, headers=show(keys[role]))
        assert made.status_code == status
    for role, status in (("write", 403), ("admin", 200)):
        path = "/v1/users/person-01/data"
        assert client.get(path, headers=show(keys[role])).status_code == status


def test_a_revoked_key_opens_nothing(serve, keys, settings):
    client = serve()
    holder = client.app.state.service
    holder.store.drop_key(next(k.key_id for k in holder.store.api_keys() if k.role == "read"))
    holder.refresh_lookups()
    assert client.get("/v1/model", headers=show(keys["read"])).status_code == 401


def test_when_the_last_key_is_revoked_only_this_machine_is_answered(serve, settings):
    add_key(settings.database, "x", "read")
    client = serve(local=False)
    holder = client.app.state.service
    holder.store.drop_key(holder.store.api_keys()[0].key_id)
    holder.refresh_lookups()
    assert client.get("/v1/model").status_code == 401


def test_keys_and_tokens_are_hashes_in_the_database(serve, keys, settings):
    client = serve()
    token = client.post("/v1/newcomers", json={}, headers=show(keys["write"])).json()["token"]
    database = sqlite3.connect(settings.database.removeprefix("sqlite:///"))
    dump = "\n".join(database.iterdump())
    database.close()
    for secret in (token, *keys.values()):
        assert secret not in dump
        assert secret[4:] not in dump


def test_visitors_teach_their_own_taste_and_see_nobody(serve):
    client = serve(visitors=True, local=False)
    for path in CROWD:
        assert client.get(path).status_code == 200
    assert client.get("/v1/users").status_code == 403
    assert client.post("/v1/rank", json={"user": "person-01"}).status_code == 403
    assert "liked_by" not in client.get("/v1/item", params={"item": "shoe-01"}).json()
    assert isinstance(client.get("/v1/schools").json()["outliers"], int)
    assert "members" not in client.get("/v1/school", params={"number": 1}).json()
    made = client.post("/v1/newcomers", json={}).json()
    path = f"/v1/users/{made['user']}/view"
    assert client.get(path).status_code == 403
    assert client.get(path, headers=show(made["token"])).status_code == 200
    assert client.post("/v1/newcomers", json={"user": "ann"}).status_code == 403


def test_an_open_service_answers_to_its_own_name_only(client):
    assert client.get("/v1/model", headers={"Host": "evil.example"}).status_code == 403
    for host in ("localhost:8000", "127.0.0.1", "[::1]:8000"):
        assert client.get("/v1/model", headers={"Host": host}).status_code == 200


def test_pages_of_other_sites_cannot_write(client, serve):
    foreign = {"Origin": "https://evil.example"}
    assert client.post("/v1/newcomers", json={}, headers=foreign).status_code == 403
    own = {"Origin": "http://127.0.0.1"}
    assert client.post("/v1/newcomers", json={}, headers=own).status_code == 201
    assert "access-control-allow-origin" not in client.get("/v1/model", headers=foreign).headers
    friendly = serve(origins=("https://shop.example",))
    asked = {"Origin": "https://shop.example"}
    found = friendly.get("/v1/model", headers=asked)
    assert found.headers["access-control-allow-origin"] == "https://shop.example"


def test_a_form_cannot_write(client):
    done = client.post("/v1/newcomers", content=b"{}", headers={"Content-Type": "text/plain"})
    assert done.status_code == 422


def test_every_answer_has_the_headers_that_keep_pages_safe(client):
    for path in ("/", "/v1/model", "/v1/nothing", "/v1/item?item=x"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "server" not in headers


def test_large_bodies_are_refused_whether_or_not_they_say_so(serve):
    client = serve(most_bytes=1000)
    big = json.dumps({"items": ["x" * 2000]}).encode()
    kind = {"Content-Type": "application/json"}
    assert client.post("/v1/score", content=big, headers=kind).status_code == 413

    def pieces():
        yield big[:900]
        yield big[900:]

    assert client.post("/v1/score", content=pieces(), headers=kind).status_code == 413


def test_who_asks_too_often_has_to_wait(serve):
    client = serve(rate=0.001, burst=3.0)
    found = [client.get("/v1/model") for _ in range(5)]
    assert [one.status_code for one in found] == [200, 200, 200, 429, 429]
    assert int(found[-1].headers["retry-after"]) >= 1
    assert client.get("/health").status_code == 200


def test_made_up_keys_do_not_get_a_limit_of_their_own(serve):
    client = serve(rate=0.001, burst=3.0)
    found = [client.get("/v1/model", headers=show(f"lmk_{n}")).status_code for n in range(5)]
    assert found[-1] == 429


def test_what_takes_too_long_is_answered_in_time(serve, monkeypatch):
    import threading

    wait = threading.Event()
    client = serve(seconds=0.2)
    monkeypatch.setattr(
        "likeminds.service.queries.RankingQueries.rank", lambda *_: wait.wait(20) and None
    )
    said = client.post("/v1/rank", json={})
    wait.set()
    assert said.status_code == 504
    assert "0.2 seconds" in said.json()["detail"]


def test_a_mistake_of_ours_is_a_problem_without_a_trace(serve, monkeypatch, caplog):
    client = serve()

    def fail(*_):
        raise RuntimeError("person-01 said something")

    monkeypatch.setattr("likeminds.service.queries.RankingQueries.rank", fail)
    said = client.post("/v1/rank", json={})
    assert said.status_code == 500
    assert said.headers["content-type"] == "application/problem+json"
    assert "person-01" not in said.text


def test_logs_say_what_happened_and_not_to_whom(serve, keys, caplog):
    lines = []

    class Kept(logging.Handler):
        def emit(self, record):
            lines.append(JsonLines().format(record))

    logger = logging.getLogger("likeminds.service")
    handler = Kept()
    logger.addHandler(handler)
    caplog.set_level(logging.INFO, "likeminds.service")
    try:
        client = serve()
        made = client.post("/v1/newcomers", json={"user": "zoe"}, headers=show(keys["write"]))
        path = "/v1/users/zoe/labels"
        rows = {"labels": [{"item": "shoe-01", "label": True}]}
        client.post(path, json=rows, headers=show(made.json()["token"]))
        client.get(
            "/v1/item?item=shoe-01", headers=show(keys["read"]) | {"X-Request-ID": "abc-12345"}
        )
    finally:
        logger.removeHandler(handler)
    text = "\n".join(lines)
    found = [json.loads(line) for line in lines if '"request"' in line]
    assert [one["route"] for one in found] == [
        "/v1/newcomers",
        "/v1/users/{user}/labels",
        "/v1/item",
    ]
    assert found[-1]["id"] == "abc-12345"
    for secret in ("zoe", "shoe-01", made.json()["token"], *keys.values()):
        assert secret not in text


def test_metrics_are_those_that_prometheus_reads(client):
    client.get("/v1/model")
    client.get("/v1/model")
    text = client.get("/metrics").text
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(
        len(line.rsplit(" ", 1)) == 2 and float(line.rsplit(" ", 1)[1]) >= 0 for line in lines
    )
    counted = [line for line in lines if line.startswith("likeminds_requests_total")]
    assert any('route="/v1/model"' in line and line.endswith(" 2.0") for line in counted)
    assert any(line.startswith("likeminds_resident_bytes") for line in lines)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.1", "example.org"])
def test_without_keys_other_machines_are_not_served(settings, host):
    with pytest.raises(ValueError, match="likeminds keys"):
        require_keys(host, settings.database, visitors=False)
    require_keys(host, settings.database, visitors=True)
    require_keys("127.0.0.1", settings.database, visitors=False)
    add_key(settings.database, "gateway", "read")
    require_keys(host, settings.database, visitors=False)
    assert len(open_store(settings.database).api_keys()) == 1
