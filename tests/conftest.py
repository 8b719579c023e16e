"""Shared by all tests: hypothesis without deadlines, and what lies in data/files."""

import sys
from pathlib import Path

import numpy as np
import pytest
from coverage import Coverage
from hypothesis import settings

from crowds import make_crowd

settings.register_profile("likeminds", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("likeminds")

HERE = Path(__file__).parent
FILES = HERE / "data" / "files"
# Short tests reach less of their code.
MEASURED = ("cli", "cluster", "plots", "report", "service")


def pytest_collection_modifyitems(items):
    """Begin with files that take long: at the end, all processes have short tests to share.

    Wholly slow files come first, then those with some long tests. Files stay whole, since each
    sets up its fixtures once.
    """
    marks = [(item.path, {mark.name for mark in item.iter_markers()}) for item in items]
    long = {path for path, names in marks if names & {"seconds", "slow"}}
    mixed = {path for path, names in marks if "slow" not in names}
    items.sort(key=lambda item: (item.path in mixed) + (item.path not in long))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Measure coverage in short tests, and in long ones of some folders: tracing costs time."""
    measuring = Coverage.current()
    measured = any(item.path.is_relative_to(HERE / folder) for folder in MEASURED)
    if measuring is None or measured or not item.get_closest_marker("seconds"):
        return (yield)
    measuring.stop()
    try:
        return (yield)
    finally:
        measuring.start()


@pytest.fixture(scope="session")
def reference():
    """Solutions of other people's programs for one small problem."""
    with np.load(FILES / "reference.npz") as archive:
        return {name: archive[name] for name in archive.files}


@pytest.fixture
def crowd():
    """Twelve people with few or many labels, weights, and one with a single class."""
    return make_crowd(np.random.default_rng(7))


@pytest.fixture
def no_matplotlib(monkeypatch):
    """As if matplotlib were not installed."""
    for module in [name for name in sys.modules if name.startswith("matplotlib.")]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
