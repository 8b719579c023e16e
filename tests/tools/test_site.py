"""The documentation site: all public names have their place, docstrings are read as meant."""

import importlib.util
import re
from pathlib import Path

import pytest
from tools.badges import badges

from tools import films

ROOT = Path(__file__).parents[2]
DOORS = ("baselines", "components", "datasets", "features", "laplacian", "losses", "metrics")
DOORS += ("plots", "schools", "theory")


def listed():
    """Return the names in the reference, with their modules."""
    module, names = "", set()
    for line in (ROOT / "docs" / "api.rst").read_text().splitlines():
        if found := re.match(r"\.\. currentmodule:: ([\w.]+)", line):
            module = found[1]
        elif found := re.fullmatch(r"   (\w+)", line):
            names.add(f"{module}.{found[1]}")
    return names


@pytest.fixture(scope="module")
def as_markup():
    place = ROOT / "docs" / "_ext" / "plain_docstrings.py"
    spec = importlib.util.spec_from_file_location("plain_docstrings", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.as_markup


@pytest.mark.parametrize("door", ["", *DOORS])
def test_every_public_name_is_in_the_reference(door):
    module = importlib.import_module(f"likeminds.{door}".rstrip("."))
    public = {name for name in module.__all__ if not name.startswith("_")}
    known = {name.rsplit(".", 1)[1] for name in listed()}
    assert public - known == set(), "give them a line in docs/api.rst"


def test_every_name_in_the_reference_exists():
    for name in listed():
        module, last = name.rsplit(".", 1)
        assert hasattr(importlib.import_module(module), last), name


def test_every_page_is_reached():
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"}
    trees = "".join(path.read_text() for path in (ROOT / "docs").glob("*.md"))
    reached = {line.strip() for line in trees.splitlines()}
    assert pages - reached == set()


def test_what_is_indented_is_a_literal_block(as_markup):
    lines = ["Minimises", "", "    |x|^2 + y_", "", "where ``|x|`` is |x| of coef_."]
    assert as_markup(lines) == [
        "Minimises",
        "",
        "::",
        "",
        "    |x|^2 + y_",
        "",
        r"where ``|x|`` is \|x\| of coef\_.",
    ]


def test_names_and_examples_stay(as_markup):
    lines = ["coef_ : array of shape (n_, 2)", "    Weights.", "", ">>> x = coef_ | 1"]
    assert as_markup(lines) == [
        r"coef_ : array of shape (n\_, 2)",
        "    Weights.",
        "",
        ">>> x = coef_ | 1",
    ]


def test_badges_say_what_the_project_says():
    drawn = {path.stem: path.read_text() for path in (ROOT / "docs" / "badges").glob("*.svg")}
    assert drawn == badges(), "python -m tools.badges"
    assert set(re.findall(r"docs/badges/(\w+)\.svg", (ROOT / "README.md").read_text())) == set(
        drawn
    )


def test_films_are_written_as_they_are_published(tmp_path):
    films.write(tmp_path, n_users=3, n_films=5, n_ratings=4)
    ratings = (tmp_path / "ratings.csv").read_text().splitlines()
    assert ratings[0] == "userId,movieId,rating,timestamp"
    assert len(ratings) == 1 + 3 * 4
    assert {row.split(",")[2] for row in ratings[1:]} <= set("12345")
