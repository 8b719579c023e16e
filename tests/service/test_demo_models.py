"""Demos that need no picture: made once, served as they are."""

import pytest
from fastapi.testclient import TestClient

from commands import run
from likeminds import find_schools, load
from likeminds.service.app import make_app
from likeminds.service.demo_models import make_demo
from likeminds.service.settings import Settings


@pytest.mark.slow
def test_statements_without_features_are_asked_ranked_and_explained(tmp_path):
    told = []
    demo = make_demo("statements", tmp_path, told.append)
    assert make_demo("statements", tmp_path, told.append) == demo
    assert len(told) == 1
    database = f"sqlite:///{demo.state / 'service.db'}"
    settings = Settings(str(demo.model), str(demo.state), database, rate=0.0)
    app = make_app(settings, watching=False)
    with TestClient(app, base_url="http://127.0.0.1") as client:
        client.post("/v1/newcomers", json={"user": "zoe"})
        for _ in range(8):  # against all that is for cars
            asked = client.get("/v1/users/zoe/next").json()["items"][0]
            assert asked["text"].endswith(".")
            answer = "car" not in asked["text"].lower() and "lane" not in asked["text"]
            rows = {"labels": [{"item": asked["item"], "label": answer}]}
            client.post("/v1/users/zoe/labels", json=rows)
        view = client.get("/v1/users/zoe/view").json()
        assert view["profile"]["labels"] == 8
        assert len(client.get("/v1/schools").json()["schools"]) >= 2
        best = view["ranking"]["items"][0]["item"]
        why = client.post("/v1/explain", json={"user": "zoe", "item": best}).json()
        assert why["score"] == pytest.approx(sum(why["levels"].values()))
        assert client.post("/v1/compare", json={"a": "zoe", "b": "resident-007"}).status_code == 200


def test_a_demo_that_is_not_there_is_refused_with_those_that_are(tmp_path):
    with pytest.raises(ValueError, match="shoes, electricity, statements"):
        make_demo("films", tmp_path, print)


@pytest.mark.slow
def test_the_tour_and_the_served_demo_agree_on_schools(tmp_path):
    done = run(tmp_path, "demo", "--out", "tour.likeminds")
    served = load(make_demo("electricity", tmp_path, lambda _: None).model)
    told, shown = find_schools(load(tmp_path / "tour.likeminds")), find_schools(served)
    assert (len(told), told.axes[0].low) == (len(shown), shown.axes[0].low)
    assert str(told).splitlines()[0] in done.out
