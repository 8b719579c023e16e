"""Models of every kind: the paper's, of choices, with items from a table."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient

from likeminds import HierarchicalRanker, ThreeLevelRanker, load_electricity, save
from likeminds.baselines import Popularity
from likeminds.service.app import make_app
from likeminds.service.app_state import AppState
from likeminds.service.catalogue import write_catalogue
from likeminds.service.refit_job import Refresher

pytestmark = pytest.mark.seconds


@pytest.fixture
def three_levels(settings, said):
    ranker = ThreeLevelRanker().fit(said)
    save(ranker, settings.model, with_data=True)
    write_catalogue(settings.items, said.item_ids, said.features, {"shoe-03": "A clog"})
    with TestClient(make_app(settings, watching=False), base_url="http://127.0.0.1") as client:
        yield client, ranker


def test_the_papers_ranker_is_served_with_items_from_a_table(three_levels, said):
    client, ranker = three_levels
    found = client.post("/v1/rank", json={"user": "person-03", "limit": 40}).json()["items"]
    scores = ranker.decision_function(said.features, ["person-03"] * 40)
    assert [one["item"] for one in found] == said.item_ids[np.argsort(-scores)].tolist()
    assert next(one["text"] for one in found if one["item"] == "shoe-03") == "A clog"
    asked = {"user": "person-03", "limit": 3, "intervals": "ranks"}
    first = client.post("/v1/rank", json=asked).json()["items"][0]
    assert (first["interval"], first["ranks"]) == (None, None)
    assert client.get("/v1/schools").status_code == 200


def test_what_the_papers_ranker_cannot_do_is_said(three_levels):
    client, _ = three_levels
    assert client.get("/v1/users/person-03/next").status_code == 409
    rows = {"labels": [{"item": "shoe-01", "label": True}]}
    refused = client.post("/v1/users/person-03/labels", json=rows)
    assert refused.status_code == 409
    assert "saved without labels" in refused.json()["detail"]


def test_newcomers_to_the_papers_ranker(three_levels):
    client, _ = three_levels
    client.post("/v1/newcomers", json={"user": "zoe"})
    rows = [{"item": f"shoe-{n:02d}", "label": n % 2 == 0} for n in range(6)]
    assert client.post("/v1/users/zoe/labels", json={"labels": rows}).status_code == 200
    view = client.get("/v1/users/zoe/view", params={"intervals": "ranks"}).json()
    assert view["ranking"]["items"][0]["ranks"][0] >= 1
    assert view["ask"]["items"]


@pytest.mark.slow
def test_a_refresh_that_is_not_possible_says_why_and_changes_nothing(three_levels, settings):
    client, _ = three_levels
    holder = client.app.state.service
    before = holder.current
    client.delete("/v1/users/person-03/data")
    refresher = Refresher(holder)
    refresher.refresh()
    assert "statistics instead of labels" in refresher.last
    assert holder.current is before
    assert not settings.refreshed.exists()


def test_choices_take_newcomers_and_no_more_of_known_people(settings):
    said = load_electricity().of_users([f"household-{n:03d}" for n in range(1, 40)])
    save(HierarchicalRanker(n_groups=1).fit(said), settings.model, with_data=True)
    with TestClient(make_app(settings, watching=False), base_url="http://127.0.0.1") as client:
        items = client.get("/v1/items", params={"limit": 2}).json()["items"]
        rows = {"labels": [{"item": items[0]["item"], "label": True}]}
        client.post("/v1/newcomers", json={"user": "zoe"})
        assert client.post("/v1/users/zoe/labels", json=rows).status_code == 200
        assert client.get("/v1/users/zoe/view").status_code == 200
        known = client.post("/v1/users/household-007/labels", json=rows)
        assert known.status_code == 409
        assert "choices" in known.json()["detail"]
        assert client.get("/v1/users/household-007/facts").status_code == 200


def test_a_model_without_items_or_levels_is_refused_at_the_start(settings, said):
    save(ThreeLevelRanker().fit(said), settings.model)
    with pytest.raises(ValueError, match="pass the items"):
        AppState(settings)
    save(Popularity().fit(said), settings.model)
    write_catalogue(settings.items, said.item_ids, said.features, {})
    with pytest.raises(TypeError):
        AppState(settings)


def test_the_newer_file_of_the_two_is_served(settings, model_file):
    settings.refreshed.write_bytes(Path(model_file).read_bytes())
    holder = AppState(settings)
    assert holder.current.path == settings.refreshed
    holder.close()
    Path(settings.model).touch()
    again = AppState(replace(settings))
    assert again.current.path == Path(settings.model)
    again.close()
