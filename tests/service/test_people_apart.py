"""Models whose people are in files of their own are served: read when somebody is asked about."""

import os
from contextlib import contextmanager
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient

from likeminds import save
from likeminds.service.app import make_app
from likeminds.storage.models import ModelFileError
from likeminds.storage.user_files import UserFiles

pytestmark = pytest.mark.seconds

PEOPLE = [f"person-{n:02d}" for n in range(24)]


@contextmanager
def served(settings, ranker, folder):
    save(ranker, folder, users_per_file=5, with_data=True)
    app = make_app(replace(settings, model=str(folder)), watching=False)
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        yield client


def ask(client, path, **asked):
    found = client.post(path, json=asked) if asked else client.get(path)
    assert found.status_code == 200, found.text
    return {name: value for name, value in found.json().items() if name != "generation"}


def test_answers_are_those_of_the_model_in_one_file(settings, ranker, reader, tmp_path):
    with served(settings, ranker, tmp_path / "apart") as apart:
        for person in ("person-03", "person-23", None):
            asked = {"user": person, "limit": 5, "intervals": "scores"}
            assert ask(apart, "/v1/rank", **asked) == ask(reader, "/v1/rank", **asked)
            asked = {"user": person, "item": "shoe-07"}
            found, expected = (ask(one, "/v1/explain", **asked) for one in (apart, reader))
            assert found["score"] == pytest.approx(expected["score"])
            assert found["levels"] == pytest.approx(expected["levels"])
        for path in ("schools", "users?q=person-1&limit=3&offset=2", "map"):
            assert ask(apart, f"/v1/{path}") == ask(reader, f"/v1/{path}")
        for path in ("facts", "profile", "next"):
            where = f"/v1/users/person-03/{path}"
            assert ask(apart, where) == ask(reader, where)
        gone = apart.post("/v1/rank", json={"user": "person-3"})
        assert gone.status_code == 404
        assert "person-03" in gone.text


def test_a_sample_tells_about_the_crowd_and_all_are_ranked_for(
    settings, ranker, tmp_path, monkeypatch
):
    monkeypatch.setattr("likeminds.rankers.capabilities.MOST_AT_ONCE", 15)
    with served(settings, ranker, tmp_path / "apart") as client:
        assert len(ask(client, "/v1/map")["points"]) == 15
        answers = {name: client.get(f"/v1/users/{name}/facts") for name in PEOPLE}
        told = [name for name, one in answers.items() if one.status_code == 200]
        assert len(told) == 15
        others = [one for name, one in answers.items() if name not in told]
        assert all(one.status_code == 409 and "without this one" in one.text for one in others)
        for name in PEOPLE:
            assert ask(client, "/v1/rank", user=name, limit=3)["total"] == 40
            assert ask(client, f"/v1/users/{name}/profile")["school"] >= 1


def test_only_files_of_those_asked_about_are_opened(settings, ranker, tmp_path, monkeypatch):
    monkeypatch.setattr("likeminds.rankers.capabilities.MOST_AT_ONCE", 1)
    opened, open_ = [], UserFiles._open
    monkeypatch.setattr(UserFiles, "_open", lambda *a: (opened.append(a[1]), open_(*a))[1])
    with served(settings, ranker, tmp_path / "apart") as client:
        before = set(opened)
        assert len(before) < 5
        ask(client, "/v1/rank", user="person-12", limit=3)
        assert set(opened) - before <= {2}


def test_damage_is_said(settings, ranker, tmp_path):
    folder = tmp_path / "apart"
    save(ranker, folder, users_per_file=5, with_data=True)
    victim = next(folder.glob("people-*"))
    victim.write_bytes(victim.read_bytes()[:-1])
    with pytest.raises(ModelFileError):
        make_app(replace(settings, model=str(folder)), watching=False)


@pytest.mark.parametrize("damage", ["truncated", "overwritten"])
def test_files_of_people_changed_in_place_are_refused(settings, ranker, tmp_path, damage):
    with served(settings, ranker, tmp_path / "apart") as client:
        expected = ask(client, "/v1/rank", user=None, limit=5)
        ask(client, "/v1/rank", user="person-03", limit=5)
        for victim in (tmp_path / "apart").glob("people-*"):
            content = victim.read_bytes()
            kept = content[:100] if damage == "truncated" else bytes(len(content))
            victim.write_bytes(kept)
            os.utime(victim, ns=(0, 0))  # clocks of file systems may be coarse
        refused = client.post("/v1/rank", json={"user": "person-03", "limit": 5})
        assert refused.status_code == 503
        assert "Save the model again" in refused.json()["detail"]
        assert ask(client, "/v1/rank", user=None, limit=5) == expected
