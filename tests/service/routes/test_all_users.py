"""The crowd and its items."""

import pytest
from fastapi.testclient import TestClient

from likeminds import find_schools
from likeminds.service.app import make_app
from likeminds.service.settings import Settings
from service.conftest import show
from service.crowds_served import model_of

pytestmark = pytest.mark.seconds


def test_the_model_says_what_it_is(reader, said):
    found = reader.get("/v1/model").json()
    assert found["users"] == 24
    assert found["items"] == 40
    assert found["features"] == ["sturdy", "heel", "shine", "price"]
    assert found["access"] == "open"


def test_items_are_listed_and_found(reader):
    found = reader.get("/v1/items", params={"q": "shoe-1", "limit": 3}).json()
    assert found["total"] == 10
    assert [one["item"] for one in found["items"]] == ["shoe-10", "shoe-11", "shoe-12"]
    assert reader.get("/v1/items", params={"limit": 1}).json()["items"][0]["picture"] is True


def test_schools_are_those_that_are_found(reader, ranker, said):
    expected = find_schools(ranker, said)
    found = reader.get("/v1/schools").json()
    assert [one["size"] for one in found["schools"]] == [one.size for one in expected.schools]
    assert [one["item"] for one in found["divisive"]] == [one.item for one in expected.divisive]
    one = reader.get("/v1/school", params={"number": 1}).json()
    assert one["members"] == expected.members(1).tolist()
    assert reader.get("/v1/school", params={"number": 99}).status_code == 404


def test_agreed_and_divisive_items_come_in_order_and_in_pages(reader, ranker, said):
    expected = find_schools(ranker, said)
    for which, judged in (("agreed", expected.agreed), ("divisive", expected.divisive)):
        found = reader.get(f"/v1/{which}", params={"limit": 4}).json()["items"]
        assert [one["item"] for one in found] == [one.item for one in judged[:4]]
        rest = reader.get(f"/v1/{which}", params={"limit": 2, "offset": 2}).json()["items"]
        assert rest == found[2:]


def test_the_map_names_nobody(reader):
    found = reader.get("/v1/map").json()
    assert len(found["points"]) == len(found["schools"]) == 24
    assert "person-" not in str(found["points"]) + str(found["names"])


def test_an_item_is_seen_by_all_and_by_schools(reader):
    found = reader.get("/v1/item", params={"item": "shoe-05"}).json()
    assert found["item"] == "shoe-05"
    assert 0 <= found["consensus"] <= 1
    assert reader.get("/v1/item", params={"item": "shoe-5"}).status_code == 404


def test_pictures_come_from_their_folder_only(serve, settings, tmp_path):
    from pathlib import Path

    client = serve()
    found = client.get("/v1/picture", params={"item": "shoe-00"})
    assert found.status_code == 200
    assert found.headers["content-type"] == "image/png"
    outside = tmp_path / "secret.png"
    outside.write_bytes(found.content)
    (Path(settings.pictures) / "shoe-01.png").symlink_to(outside)
    (Path(settings.pictures) / "shoe-02.png").write_text("<svg onload='alert(1)'/>")
    for item in ("shoe-01", "shoe-02", "shoe-03", "../secret", "../secret.png", "/etc/passwd"):
        assert client.get("/v1/picture", params={"item": item}).status_code == 404, item


@pytest.mark.parametrize("name", ["../secret", "..", ".", "/etc/passwd", "a\0b", ""])
def test_no_name_leads_out_of_the_folder(reader, name):
    catalogue = reader.app.state.service.current.catalogue
    assert catalogue.picture_of(name) is None


def test_people_are_listed_for_those_who_may_read(serve, keys):
    client = serve()
    found = client.get("/v1/users", params={"q": "-2"}, headers=show(keys["read"])).json()
    assert found["users"] == ["person-20", "person-21", "person-22", "person-23"]
    assert client.get("/v1/users").status_code == 401


def test_the_page_is_there_and_the_api_is_described(reader):
    assert "likeminds" in reader.get("/").text
    paths = reader.get("/v1/openapi.json").json()["paths"]
    assert "/v1/users/{user}/labels" in paths


def client_of(kind, folder):
    """Return a client of a service of a kind of model."""
    settings = Settings(
        str(model_of(kind, folder)), str(folder), f"sqlite:///{folder / 'service.db'}"
    )
    return TestClient(make_app(settings, watching=False), base_url="http://127.0.0.1")


def test_an_item_of_a_crowd_without_schools(tmp_path):
    with client_of("likes of people who do not differ", tmp_path) as client:
        assert client.get("/v1/schools").json()["schools"] == []
        found = client.get("/v1/item", params={"item": "3"})
        assert found.status_code == 200
        assert found.json()["schools"] == []
        assert client.get("/v1/school", params={"number": 1}).status_code == 404
        assert client.post("/v1/compare", json={}).json()["profiles"][0]["school"] is None


def test_people_who_rank_alike_are_not_told_apart(tmp_path):
    with client_of("likes of people who do not differ", tmp_path) as client:
        divisive = client.get("/v1/divisive").json()
        assert (divisive["total"], divisive["items"]) == (0, [])
        assert client.get("/v1/agreed").json()["items"]
        found = client.post("/v1/compare", json={}).json()
        assert [found[name] for name in ("a_prefers", "b_prefers", "features")] == [[], [], []]
        assert found["both_like"]
        assert client.get("/v1/map").json()["thresholds_differ"] is False


@pytest.mark.parametrize(
    ("kind", "question", "most", "yes"),
    [
        ("likes with pictures", "How do you rate this?", "rate highest", "Yes"),
        ("stars with bare ids", "How do you rate this?", "rate highest", "above 2.5"),
        ("choices with features", "Would you choose this?", "choose most", "would choose it"),
    ],
)
def test_without_a_verb_words_are_neutral(tmp_path, kind, question, most, yes):
    with client_of(kind, tmp_path) as client:
        (said,) = client.get("/v1/model").json()["wording"].values()
        assert (said["question"], said["most"], said["yes"]) == (question, most, yes)


def test_visitors_do_not_learn_who_is_strictest(serve, keys):
    client = serve(visitors=True)
    assert "strictest" in client.get("/v1/schools", headers=show(keys["read"])).json()["severity"]
    seen = client.get("/v1/schools").json()
    assert seen["users"] == 24
    assert "person-" not in str(seen["severity"])
