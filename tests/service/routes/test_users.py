"""Newcomers, their labels, and how they are forgotten."""

import numpy as np
import pytest

from service.conftest import show

pytestmark = pytest.mark.seconds


def new(client, **headers):
    found = client.post("/v1/newcomers", json={}, headers=headers)
    assert found.status_code == 201
    return found.json()


def tell(client, user, labels, **headers):
    rows = [{"item": item, "label": label} for item, label in labels.items()]
    return client.post(f"/v1/users/{user}/labels", json={"labels": rows}, headers=headers)


def test_a_newcomer_is_ranked_as_the_ranker_would(client, ranker, said):
    user = new(client)["user"]
    told = {"shoe-01": True, "shoe-02": False, "shoe-30": True}
    assert tell(client, user, told).json() == {"user": user, "stored": 3, "labels": 3}
    from likeminds import Annotations

    places = [1, 2, 30]
    mine = Annotations(
        users=["me"] * 3,
        items=said.item_ids[places],
        labels=list(told.values()),
        features=said.features[places],
        features_per="row",
    )
    belief = ranker.newcomer(mine)
    every = Annotations(
        users=["me"] * 40,
        items=said.item_ids,
        labels=np.zeros(40, dtype=bool),
        features=said.features,
        features_per="row",
    )
    scores = belief.decision_function(every)
    found = client.get(f"/v1/users/{user}/ranking", params={"limit": 5}).json()["items"]
    order = np.argsort(-scores)[:5]
    assert [one["item"] for one in found] == said.item_ids[order].tolist()
    assert found[0]["score"] == pytest.approx(scores[order[0]])
    assert found[0]["interval"][0] < found[0]["score"]


def test_what_is_asked_next_was_not_asked_before(client):
    user = new(client)["user"]
    asked = []
    for turn in range(4):
        one = client.get(f"/v1/users/{user}/next").json()["items"][0]["item"]
        assert one not in asked
        asked.append(one)
        tell(client, user, {one: turn % 2 == 0})
    many = client.get(f"/v1/users/{user}/next", params={"limit": 50}).json()["items"]
    assert len(many) == 36


def test_a_label_taken_back_is_as_if_it_had_not_been_given(client):
    one, other = new(client)["user"], new(client)["user"]
    tell(client, one, {"shoe-01": True, "shoe-02": False})
    tell(client, one, {"shoe-02": None})
    tell(client, other, {"shoe-01": True})
    views = [client.get(f"/v1/users/{who}/view").json() for who in (one, other)]
    assert views[0]["ranking"]["items"] == views[1]["ranking"]["items"]
    assert views[0]["profile"]["labels"] == 1
    left = client.get(f"/v1/users/{one}/labels").json()["labels"]
    assert [label["item"] for label in left] == ["shoe-01"]


def test_the_parts_of_a_view_are_those_that_can_be_asked_for(client):
    user = new(client)["user"]
    tell(client, user, {"shoe-01": True, "shoe-02": False})
    view = client.get(f"/v1/users/{user}/view").json()
    assert view["profile"] == client.get(f"/v1/users/{user}/profile").json()
    assert view["ranking"] == client.get(f"/v1/users/{user}/ranking").json()
    assert view["ask"] == client.get(f"/v1/users/{user}/next").json()
    assert sum(view["profile"]["level_shares"].values()) == pytest.approx(1.0)
    assert sum(view["profile"]["membership"]) == pytest.approx(1.0)


def test_more_labels_of_somebody_known_join_those_of_the_model(client, ranker, said):
    before = client.post("/v1/rank", json={"user": "person-03", "limit": 40}).json()["items"]
    mine = said.of_user("person-03")
    known = {str(item): bool(label) for item, label in zip(mine.items, mine.labels, strict=True)}
    item, label = next(iter(known.items()))
    tell(client, "person-03", {item: label})  # nothing new: the model stays as it is
    same = client.post("/v1/rank", json={"user": "person-03", "limit": 40}).json()["items"]
    assert same == before
    unseen = next(name for name in said.item_ids if name not in known)
    tell(client, "person-03", {unseen: True})
    after = client.post("/v1/rank", json={"user": "person-03", "limit": 40}).json()["items"]
    score = {one["item"]: one["score"] for one in before}
    more = {one["item"]: one["score"] for one in after}
    assert more[unseen] > score[unseen]


def test_ids_may_have_slashes_and_every_script(client):
    for name in ("a/b", "x/labels", "Zoë 🦊", "100%", "n?x=1#y"):
        from urllib.parse import quote

        path = quote(name, safe="")
        assert client.post("/v1/newcomers", json={"user": name}).status_code == 201
        rows = {"labels": [{"item": "shoe-01", "label": True}]}
        assert client.post(f"/v1/users/{path}/labels", json=rows).status_code == 200
        assert client.get(f"/v1/users/{path}/labels").json()["user"] == name


def test_the_same_write_with_the_same_key_is_done_once(client):
    user = new(client)["user"]
    key = {"Idempotency-Key": "write-0001"}
    first = tell(client, user, {"shoe-01": True}, **key)
    tell(client, user, {"shoe-01": False})
    again = tell(client, user, {"shoe-01": True}, **key)
    assert again.json() == first.json()
    assert again.headers["idempotent-replay"] == "true"
    left = client.get(f"/v1/users/{user}/labels").json()["labels"]
    assert [one["label"] for one in left] == [False]
    assert tell(client, user, {"shoe-02": True}, **key).status_code == 409


def test_a_newcomer_is_created_once_per_key_and_gets_another_token(client):
    key = {"Idempotency-Key": "create-0001"}
    first, second = new(client, **key), new(client, **key)
    assert first["user"] == second["user"]
    assert first["token"] != second["token"]
    path = f"/v1/users/{first['user']}/labels"
    assert client.get(path, headers=show(first["token"])).status_code == 403
    assert client.get(path, headers=show(second["token"])).status_code == 200


def test_an_id_is_taken_once(client):
    assert client.post("/v1/newcomers", json={"user": "zoe"}).status_code == 201
    assert client.post("/v1/newcomers", json={"user": "zoe"}).status_code == 409
    assert client.post("/v1/newcomers", json={"user": "person-03"}).status_code == 409


def test_a_token_opens_one_persons_data_and_nothing_else(serve, keys):
    client = serve()
    write = show(keys["write"])
    ann = client.post("/v1/newcomers", json={}, headers=write).json()
    bob = client.post("/v1/newcomers", json={}, headers=write).json()
    mine, others = show(ann["token"]), show(bob["token"])
    rows = {"labels": [{"item": "shoe-01", "label": True}]}
    for suffix in ("labels", "data", "ranking", "next", "profile", "view"):
        path = f"/v1/users/{ann['user']}/{suffix}"
        assert client.get(path, headers=mine).status_code == 200, suffix
        assert client.get(path, headers=others).status_code == 403, suffix
        assert client.get(path).status_code == 401, suffix
    path = f"/v1/users/{ann['user']}/labels"
    assert client.post(path, json=rows, headers=others).status_code == 403
    assert client.post(path, json=rows, headers=mine).status_code == 200
    assert client.post(path, json=rows, headers=write).status_code == 200
    assert client.post(path, json=rows, headers=show(keys["read"])).status_code == 403
    assert client.get(path, headers=show(keys["read"])).status_code == 403
    assert client.get("/v1/users/person-01/ranking", headers=mine).status_code == 403
    assert client.post("/v1/rank", json={"user": bob["user"]}, headers=mine).status_code == 403
    assert client.post("/v1/newcomers", json={}, headers=mine).status_code == 403
    data = f"/v1/users/{bob['user']}/data"
    assert client.delete(data, headers=mine).status_code == 403
    assert client.delete(data, headers=write).status_code == 403
    assert client.delete(data, headers=others).status_code == 200


def test_export_has_all_and_deletion_leaves_nothing(client, settings):
    import sqlite3

    user = new(client)["user"]
    tell(client, user, {"shoe-01": True, "shoe-02": False}, **{"Idempotency-Key": "write-0009"})
    found = client.get(f"/v1/users/{user}/data").json()
    assert {one["item"]: one["label"] for one in found["labels"]} == {
        "shoe-01": True,
        "shoe-02": False,
    }
    gone = client.delete(f"/v1/users/{user}/data").json()
    assert gone["labels"] == 2
    assert client.get(f"/v1/users/{user}/data").status_code == 404
    assert client.get(f"/v1/users/{user}/ranking").status_code == 404
    database = sqlite3.connect(settings.database.removeprefix("sqlite:///"))
    assert user not in "\n".join(database.iterdump())
    database.close()


def test_the_model_says_nothing_about_somebody_who_was_deleted(client):
    gone = client.delete("/v1/users/person-07/data")
    assert "next refit" in gone.json()["model"]
    assert client.post("/v1/rank", json={"user": "person-07"}).status_code == 404
    assert "person-07" not in client.get("/v1/users", params={"limit": 100}).json()["users"]
    assert client.get("/v1/users/person-07/facts").status_code == 404
