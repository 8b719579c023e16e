"""Ranking, scoring, explaining: what the API says is what the model says."""

import numpy as np
import pytest


def test_the_ranking_of_a_person_is_that_of_the_model(reader, ranker, said):
    person, items = "person-03", said.item_ids
    scores = ranker.decision_function(said.features, [person] * len(items), items=items)
    found = reader.post("/v1/rank", json={"user": person, "limit": 5}).json()
    order = np.argsort(-scores)[:5]
    assert [one["item"] for one in found["items"]] == items[order].tolist()
    assert [one["score"] for one in found["items"]] == pytest.approx(scores[order].tolist())
    assert [one["rank"] for one in found["items"]] == [1, 2, 3, 4, 5]
    assert found["total"] == len(items)


def test_nobody_is_the_consensus_what_is_surely_liked_first(reader, ranker, said):
    scores = ranker.decision_function(said.features, items=said.item_ids)
    found = reader.post("/v1/rank", json={"limit": 40}).json()["items"]
    order = [one["item"] for one in found]
    assert order == list(ranker.rank().items)
    expected = dict(zip(said.item_ids.tolist(), scores.tolist(), strict=True))
    assert [one["score"] for one in found] == pytest.approx([expected[item] for item in order])
    assert order != sorted(order, key=lambda item: -expected[item])


def test_pages_go_on_where_the_last_one_ended(reader):
    whole = reader.post("/v1/rank", json={"user": "person-01", "limit": 12}).json()["items"]
    second = reader.post("/v1/rank", json={"user": "person-01", "limit": 6, "offset": 6}).json()
    assert second["items"] == whole[6:]
    beyond = reader.post("/v1/rank", json={"limit": 5, "offset": 1000}).json()
    assert beyond["items"] == []


def test_filters_leave_out_what_is_not_wanted(reader, said, ranker):
    only = ["shoe-03", "shoe-05", "shoe-08"]
    asked = {"user": "person-01", "only": only, "exclude": ["shoe-05"]}
    found = reader.post("/v1/rank", json=asked).json()
    assert {one["item"] for one in found["items"]} == {"shoe-03", "shoe-08"}
    heel = said.features[:, 1]
    asked = {"features": [{"feature": "heel", "least": 0.0, "most": 1.0}], "limit": 100}
    found = reader.post("/v1/rank", json=asked).json()
    expected = set(said.item_ids[(heel >= 0) & (heel <= 1)])
    assert {one["item"] for one in found["items"]} == expected
    asked = {"user": "person-01", "exclude_labelled": True, "limit": 100}
    found = reader.post("/v1/rank", json=asked).json()
    judged = set(said.of_user("person-01").items)
    assert {one["item"] for one in found["items"]} == set(said.item_ids) - judged


def test_intervals_of_scores_and_ranks_hold_what_they_are_about(reader, ranker, said):
    asked = {"user": "person-02", "limit": 6, "intervals": "ranks"}
    found = reader.post("/v1/rank", json=asked).json()["items"]
    low, high = ranker.rank_interval("person-02", said_rows(said, "person-02"))
    where = {item: place for place, item in enumerate(said.item_ids)}
    for one in found:
        assert one["interval"][0] < one["score"] < one["interval"][1]
        assert one["ranks"][0] <= one["rank"] <= one["ranks"][1]
        # 400 draws instead of 2,000: near, not equal.
        place = where[one["item"]]
        assert abs(one["ranks"][0] - low[place]) <= 4
        assert abs(one["ranks"][1] - high[place]) <= 5


def said_rows(said, person):
    """Return every item as a row of a person."""
    from likeminds import Annotations

    n = len(said.item_ids)
    return Annotations(
        users=[person] * n,
        items=said.item_ids,
        labels=np.zeros(n, dtype=bool),
        features=said.features,
        features_per="row",
    )


def test_scores_are_those_of_the_model_with_their_errors(reader, ranker, said):
    items = ["shoe-07", "shoe-01"]
    found = reader.post("/v1/score", json={"user": "person-05", "items": items}).json()["scores"]
    rows = said_rows(said, "person-05")
    scores, errors = ranker.decision_function(rows), ranker.standard_error(rows)
    assert [one["score"] for one in found] == pytest.approx([scores[7], scores[1]])
    assert [one["error"] for one in found] == pytest.approx([errors[7], errors[1]])


def test_batches_are_the_single_answers_in_their_order(reader):
    asked = [{"user": "person-01", "limit": 2}, {"limit": 3}]
    batch = reader.post("/v1/rank/batch", json={"requests": asked}).json()["rankings"]
    assert batch == [reader.post("/v1/rank", json=one).json() for one in asked]
    asked = [{"user": "person-01", "items": ["shoe-01"]}, {"items": ["shoe-02"]}]
    batch = reader.post("/v1/score/batch", json={"requests": asked}).json()["answers"]
    assert batch == [reader.post("/v1/score", json=one).json() for one in asked]


@pytest.mark.parametrize("person", [None, "person-04"])
def test_an_explanation_adds_up(reader, person):
    asked = {"user": person, "item": "shoe-09"}
    found = reader.post("/v1/explain", json=asked).json()
    assert sum(found["levels"].values()) == pytest.approx(found["score"])
    scores = reader.post(
        "/v1/score", json={"user": person, "items": [f"shoe-{i:02d}" for i in range(40)]}
    ).json()["scores"]
    mean = np.mean([one["score"] for one in scores])
    assert found["score"] == pytest.approx(scores[9]["score"] - mean)
    assert found["score"] + found["average_item"] == pytest.approx(scores[9]["score"])
    assert {one["feature"] for one in found["features"]} >= {"sturdy", "heel", "shine", "price"}
    if person is None:
        assert found["levels"]["group"] == found["levels"]["personal"] == 0.0


def test_two_people_are_compared_in_both_directions(reader):
    asked = {"a": "person-01", "b": "person-20"}
    there = reader.post("/v1/compare", json=asked).json()
    back = reader.post("/v1/compare", json={"a": "person-20", "b": "person-01"}).json()
    assert there["likeness"] == pytest.approx(back["likeness"])
    assert [one["item"] for one in there["a_prefers"]] == [one["item"] for one in back["b_prefers"]]
    same = reader.post("/v1/compare", json={"a": "person-01", "b": "person-01"}).json()
    assert same["likeness"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("address", "asked", "status", "part"),
    [
        ("/v1/rank", {"user": "person-1"}, 404, "person-"),
        ("/v1/score", {"items": ["shoe-1"]}, 404, "shoe-"),
        ("/v1/rank", {"attribute": "opne"}, 404, "attribute 'opne'"),
        ("/v1/rank", {"features": [{"feature": "heal"}]}, 404, "heel"),
        ("/v1/rank", {"limit": 0}, 422, "limit"),
        ("/v1/rank", {"limit": "3"}, 422, "limit"),
        ("/v1/rank", {"topp": 3}, 422, "topp"),
        ("/v1/rank", {"user": "a\u0000b"}, 422, "control"),
        ("/v1/score", {"items": ["x"] * 1001}, 413, "1,000"),
    ],
)
def test_what_is_wrong_is_said_as_a_problem(reader, address, asked, status, part):
    said = reader.post(address, json=asked)
    assert said.status_code == status
    assert said.headers["content-type"] == "application/problem+json"
    problem = said.json()
    assert problem["status"] == status
    assert part in problem["detail"]
    assert problem["request_id"] == said.headers["x-request-id"]


def test_an_unknown_name_comes_with_those_that_are_closest(reader):
    problem = reader.post("/v1/rank", json={"user": "person-1"}).json()
    assert 0 < len(problem["closest"]) <= 3
    assert all(name.startswith("person-") for name in problem["closest"])
