"""The answers that a service takes and gives back: stars, votes, and names of items."""

import pytest
from fastapi.testclient import TestClient

from likeminds import LatentClassRanker, save
from likeminds.service.app import make_app
from likeminds.service.refit_job import refresh_file
from likeminds.service.settings import Settings
from likeminds.storage.models import load
from service.crowds_served import TITLES, model_of

pytestmark = pytest.mark.seconds


def test_a_latent_class_model_is_served(said, tmp_path):
    model = save(LatentClassRanker(2).fit(said), tmp_path / "m.likeminds", with_data=True)
    settings = Settings(str(model), str(tmp_path), f"sqlite:///{tmp_path / 'service.db'}", rate=0.0)
    with TestClient(make_app(settings, watching=False), base_url="http://127.0.0.1") as client:
        client.post("/v1/newcomers", json={"user": "zoe"})
        before = client.get("/v1/users/zoe/ranking").json()["items"]
        liked = [one["item"] for one in before[-3:]]
        assert tell(client, "zoe", **dict.fromkeys(liked, 1)).status_code == 200
        after = client.get("/v1/users/zoe/ranking").json()["items"]
        assert [one["score"] for one in after] != [one["score"] for one in before]
        assert client.get("/v1/users/person-03/profile").status_code == 200


@pytest.fixture(scope="module")
def stars(tmp_path_factory):
    yield from _served("stars with titles and features", tmp_path_factory.mktemp("stars"))


@pytest.fixture(scope="module")
def votes(tmp_path_factory):
    yield from _served("votes with texts", tmp_path_factory.mktemp("votes"))


def _served(kind, folder):
    settings = Settings(
        str(model_of(kind, folder)), str(folder), f"sqlite:///{folder / 'service.db'}", rate=0.0
    )
    with TestClient(make_app(settings, watching=False), base_url="http://127.0.0.1") as client:
        yield client, settings


def tell(client, user, **said):
    rows = [{"item": item, "label": label} for item, label in said.items()]
    return client.post(f"/v1/users/{user}/labels", json={"labels": rows})


def test_a_model_of_stars_takes_stars_and_gives_expected_stars(stars):
    client, _ = stars
    wording = client.get("/v1/model").json()["wording"][""]
    assert [one["label"] for one in wording["answers"]] == [n / 2 for n in range(1, 11)]
    client.post("/v1/newcomers", json={"user": "zoe"})
    path = "/v1/users/zoe/ranking"

    def expected():
        items = client.get(path, params={"limit": 16}).json()["items"]
        return {one["item"]: one["expected"] for one in items}

    before = expected()
    for item, star in (("film-1", 5), ("film-3", 4.5), ("film-0", "0.5"), ("film-2", 1.0)):
        assert tell(client, "zoe", **{item: star}).status_code == 200
    told = client.get("/v1/users/zoe/labels").json()["labels"]
    assert [one["label"] for one in told] == [5.0, 4.5, 0.5, 1.0]
    assert told[0]["text"] == TITLES["film-1"]
    after = expected()
    assert all(0.5 <= star <= 5 for star in after.values())
    assert after["film-5"] > before["film-5"]
    assert after["film-4"] < before["film-4"]


@pytest.mark.parametrize("label", [7, -1, "splendid", [3]])
def test_an_answer_that_is_not_on_the_scale_is_refused(stars, label):
    client, _ = stars
    client.post("/v1/newcomers", json={"user": "yves"})
    refused = tell(client, "yves", **{"film-1": label})
    assert refused.status_code == 422
    assert client.get("/v1/users/yves/labels").json()["labels"] == []


def test_stars_are_folded_into_the_model_with_the_titles(stars):
    client, settings = stars
    client.post("/v1/newcomers", json={"user": "ida"})
    tell(client, "ida", **{"film-1": 5, "film-0": 0.5, "film-3": 4})
    assert "labels" in refresh_file(settings)
    grown = load(settings.refreshed)
    assert sorted(grown.training_annotations_.of_user("ida").grades.tolist()) == [0.5, 4.0, 5.0]
    assert grown.item_names["film-1"] == TITLES["film-1"]
    assert grown.cached_schools_ is not None


def test_titles_are_everywhere_in_the_api(stars):
    client, _ = stars
    title = TITLES["film-1"]
    one = client.post("/v1/score", json={"items": ["film-1"]}).json()["scores"][0]
    assert one["text"] == title
    assert client.post("/v1/explain", json={"item": "film-1"}).json()["text"] == title
    assert client.get("/v1/item", params={"item": "film-1"}).json()["text"] == title
    assert client.get("/v1/items", params={"q": "fargo"}).json()["items"][0]["text"] == title
    facts = client.get("/v1/users/user-3/facts").json()
    assert set(facts["texts"].values()) <= set(TITLES.values())
    assert facts["texts"]


def test_votes_are_words_and_their_chances_are_told(votes):
    client, _ = votes
    wording = client.get("/v1/model").json()["wording"][""]
    assert [one["text"] for one in wording["answers"]] == ["Disagree", "Agree"]
    assert (wording["skip"], wording["noun"]) == ("Pass", "statement")
    client.post("/v1/newcomers", json={"user": "zoe"})
    tell(client, "zoe", s1="agree", s3=True, s0="Disagree", s2=False)
    told = client.get("/v1/users/zoe/labels").json()["labels"]
    assert [one["label"] for one in told] == [True, True, False, False]
    assert tell(client, "zoe", s1="Pass", s3=1, s2="skip").json()["labels"] == 2
    told = client.get("/v1/users/zoe/labels").json()["labels"]
    assert {one["item"]: one["label"] for one in told} == {"s3": True, "s0": False}
    ranked = client.get("/v1/users/zoe/ranking", params={"limit": 16}).json()["items"]
    assert all(0 < one["expected"] < 1 for one in ranked)
    assert ranked[0]["expected"] > ranked[-1]["expected"]


def test_without_schools_none_is_named(stars):
    client, _ = stars
    client.post("/v1/newcomers", json={"user": "una"})
    found = client.get("/v1/users/una/profile").json()
    several = len(client.get("/v1/schools").json()["schools"]) > 1
    assert (found["school"] is not None) == several == (found["school_name"] is not None)
