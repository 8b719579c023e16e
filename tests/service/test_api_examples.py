"""Every operation of the description has examples, and they work: on a model of two attributes."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient

from likeminds import Annotations, AttributeModel, HierarchicalRanker, NominalRanker, load, save
from likeminds.service.app import make_app
from likeminds.service.refit_job import refresh_file
from service.conftest import make_settings


@pytest.fixture(scope="module")
def several(said, tmp_path_factory):
    """The demo in small: two attributes, items with the names of its items."""
    names = [f"shoe-{n:05d}" for n in range(len(said.item_ids))]
    crowds = {
        name: Annotations(
            users=said.users,
            items=[names[code] for code in said.item_codes],
            labels=labels,
            features=said.features,
            item_ids=names,
            feature_names=said.feature_names,
            features_per="item",
        )
        for name, labels in {"comfortable": said.labels, "open": ~said.labels}.items()
    }
    folder = tmp_path_factory.mktemp("several")
    model = AttributeModel(HierarchicalRanker(n_groups=1)).fit(crowds)
    path = save(model, folder / "several.likeminds", with_data=True)
    return make_settings(path, tmp_path_factory.mktemp("several-service"))


@pytest.fixture(scope="module")
def client(several):
    app = make_app(several, watching=False)
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as found:
        yield found


@pytest.mark.seconds
def test_every_example_of_the_description_works(client):
    described = client.get("/v1/openapi.json").json()
    client.post("/v1/newcomers", json={"user": "zoe"})
    tried = 0
    for path, operations in described["paths"].items():
        body = operations.get("post", {}).get("requestBody")
        if body is None:
            continue
        name = body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        for example in described["components"]["schemas"][name]["examples"]:
            done = client.post(path.replace("{user}", "zoe"), json=example)
            assert done.status_code in {200, 201}, (path, done.text)
            tried += 1
    assert tried >= 8


def test_requests_of_the_page_work(client, said):
    text = (Path(__file__).parents[2] / "docs" / "rest.md").read_text()
    pattern = re.compile(r"\$ curl -s localhost:8000(\S+).*?-d '(.*?)'$", re.DOTALL | re.MULTILINE)
    rank, newcomers, labels = pattern.findall(text)
    body = json.loads(rank[1]) | {"user": str(said.users[0])}
    assert len(client.post(rank[0], json=body).json()["items"]) == body["limit"]
    made = client.post(newcomers[0], json=json.loads(newcomers[1])).json()
    shown = re.search(r"^{.*}$", text, re.MULTILINE)
    assert {key: value.replace("...", "") for key, value in json.loads(shown[0]).items()} == {
        "user": made["user"][:2],
        "token": made["token"][:4],
    }
    body = json.loads(labels[1].replace("shoe-00079", "shoe-00001"))
    token = {"Authorization": f"Bearer {made['token']}"}
    stored = client.post(labels[0].replace("n-...", made["user"]), json=body, headers=token)
    assert stored.status_code == 200


def test_where_there_are_several_attributes_one_has_to_be_named(client):
    asked = client.post("/v1/rank", json={})
    assert asked.status_code == 422
    assert "comfortable, open" in asked.json()["detail"]
    wrong = client.post("/v1/rank", json={"attribute": "opne"})
    assert wrong.status_code == 404
    assert wrong.json()["closest"] == ["open"]
    assert client.get("/v1/model").json()["attributes"] == ["comfortable", "open"]


def test_the_page_is_told_how_to_ask(client):
    wording = client.get("/v1/model").json()["wording"]["comfortable"]
    assert wording["question"] == "Do you find this comfortable?"
    assert wording["many"] == "find comfortable"
    assert wording["most"] == "find most comfortable"
    answers = [{"label": False, "text": "No"}, {"label": True, "text": "Yes"}]
    assert wording["answers"] == answers


def test_attributes_are_ranked_and_taught_apart(client):
    ranked = {
        name: client.post("/v1/rank", json={"attribute": name, "limit": 40}).json()["items"]
        for name in ("comfortable", "open")
    }
    comfortable, open_ = ([one["item"] for one in items] for items in ranked.values())
    assert comfortable != open_
    user = client.post("/v1/newcomers", json={}).json()["user"]
    rows = [{"attribute": "open", "item": "shoe-00003", "label": True}]
    client.post(f"/v1/users/{user}/labels", json={"labels": rows})
    for name, count in (("open", 1), ("comfortable", 0)):
        found = client.get(f"/v1/users/{user}/profile", params={"attribute": name}).json()
        assert found["labels"] == count


@pytest.mark.slow
def test_a_model_of_several_attributes_is_refreshed(client, several):
    client.post("/v1/newcomers", json={"user": "ann"})
    rows = [{"attribute": "open", "item": "shoe-00003", "label": True}]
    client.post("/v1/users/ann/labels", json={"labels": rows})
    refresh_file(several)
    holder = client.app.state.service
    assert holder.swap_model()
    assert "ann" in holder.current.users
    client.delete("/v1/users/person-03/data")
    refresh_file(several)
    assert holder.swap_model()
    assert "person-03" not in holder.current.users
    assert "ann" in holder.current.users


@pytest.mark.seconds
def test_classes_without_an_order_are_served_as_attributes(said, tmp_path):
    labels = np.where(said.labels, "fine", np.where(said.item_codes % 2, "spam", "toxic"))
    items = {"features": said.features, "item_ids": said.item_ids, "features_per": "item"}
    crowd = Annotations(said.users, said.items, labels, **items, nominal=True)
    path = save(NominalRanker().fit(crowd), tmp_path / "classes.likeminds", with_data=True)
    settings = make_settings(path, tmp_path)
    with TestClient(make_app(settings, watching=False), base_url="http://127.0.0.1") as client:
        ranked = client.post("/v1/rank", json={"attribute": "spam"})
        assert ranked.status_code == 200, ranked.text
        client.post("/v1/newcomers", json={"user": "zoe"})
        rows = [{"attribute": "spam", "item": "shoe-03", "label": True}]
        assert client.post("/v1/users/zoe/labels", json={"labels": rows}).status_code == 200
    refresh_file(settings)
    again = load(settings.refreshed)
    assert isinstance(again, NominalRanker)
    assert again.classes_.tolist() == ["fine", "spam", "toxic"]
    assert "zoe" in again.rankers_["spam"].users_.tolist()
