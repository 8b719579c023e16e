"""One folder with tables and a model, for all commands."""

import shutil

import pytest

from commands import run


@pytest.fixture(scope="session")
def crowd(tmp_path_factory):
    """Forty people, 24 items each of 60, in two schools; and a model of them."""
    folder = tmp_path_factory.mktemp("crowd")
    words = ("--n-users", "40", "--n-labels", "24", "--n-items", "60", "--n-features", "4")
    done = run(folder, "simulate", "--out", ".", *words, "--schools", "2")
    assert done.code == 0, done.err
    tables = ("--annotations", "annotations.csv", "--features", "features.csv")
    done = run(folder, "fit", *tables, "--out", "m.likeminds", "--quiet")
    assert done.code == 0, done.err
    return folder


@pytest.fixture
def copy(crowd, tmp_path):
    """A copy of the crowd's folder, to be written to."""
    shutil.copytree(crowd, tmp_path, dirs_exist_ok=True)
    return tmp_path
