"""A small crowd, fitted once, and services around it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the service needs likeminds[serve]")

from fastapi.testclient import TestClient

from likeminds import Annotations, HierarchicalRanker, make_schools, save
from likeminds.features.images import png_bytes
from likeminds.service.app import make_app
from likeminds.service.settings import Settings
from likeminds.service.store import add_key
from service.browser import chromium

FEATURES = ["sturdy", "heel", "shine", "price"]


@pytest.fixture(scope="session")
def said():
    made = make_schools(
        24, 16, 40, len(FEATURES), n_schools=2, contested=0.6, random_state=4
    ).annotations
    return Annotations(
        users=[f"person-{one:02d}" for one in made.users],
        items=[f"shoe-{one:02d}" for one in made.item_codes],
        labels=made.labels,
        features=made.features,
        item_ids=[f"shoe-{one:02d}" for one in range(len(made.features))],
        feature_names=FEATURES,
        features_per="item",
    )


@pytest.fixture(scope="session")
def ranker(said):
    return HierarchicalRanker(n_groups=1).fit(said)


@pytest.fixture(scope="session")
def model_file(ranker, tmp_path_factory):
    return save(ranker, tmp_path_factory.mktemp("model") / "shoes.likeminds", with_data=True)


@pytest.fixture
def settings(model_file, tmp_path):
    """A service of its own: the model is copied, so that a test may change it."""
    return make_settings(model_file, tmp_path)


@pytest.fixture(scope="session")
def reader(model_file, tmp_path_factory):
    """A service for tests that only read: one for all of them."""
    app = make_app(make_settings(model_file, tmp_path_factory.mktemp("reader")), watching=False)
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        yield client


def make_settings(model_file, tmp_path):
    model = tmp_path / "shoes.likeminds"
    model.write_bytes(model_file.read_bytes())
    state, pictures = tmp_path / "state", tmp_path / "pictures"
    state.mkdir()
    pictures.mkdir()
    (pictures / "shoe-00.png").write_bytes(png_bytes(np.full((4, 4, 3), 128)))
    return Settings(
        model=str(model),
        state=str(state),
        database=f"sqlite:///{state / 'service.db'}",
        pictures=str(pictures),
        refresh_every=0.0,
        rate=0.0,
        seconds=60.0,
    )


@pytest.fixture
def serve(settings):
    """Start a service, with settings of one's own; it does not look at files by itself."""
    clients = []

    def start(**more):
        app = make_app(replace(settings, **more), watching=False)
        client = TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False)
        client.__enter__()
        clients.append(client)
        return client

    yield start
    for client in clients:
        client.__exit__(None, None, None)


@pytest.fixture
def client(serve):
    return serve()


@pytest.fixture(scope="session")
def browser():
    """One browser for all tests of the page."""
    with chromium() as found:
        yield found


@pytest.fixture
def keys(settings):
    """A key of each role; with them, the service is closed to everybody else."""
    return {role: add_key(settings.database, role, role) for role in ("read", "write", "admin")}


def show(secret):
    return {"Authorization": f"Bearer {secret}"}


def folder_of(settings) -> Path:
    return Path(settings.state)
