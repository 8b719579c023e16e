"""The documentation site: all public names have their place, docstrings are read as meant."""

import importlib.util
import inspect
import re
from pathlib import Path

import pytest
from tools.badges import badges

import likeminds
from likeminds import Export, HierarchicalRanker
from likeminds._util.result_tables import ResultTable
from tools import films

ROOT = Path(__file__).parents[2]
DOORS = ("baselines", "components", "datasets", "features", "laplacian", "losses", "metrics")
DOORS += ("paper", "plots", "schools", "theory")
# Returned by methods that other modules call.
INTERNAL = {"PredictionRows", "Ranker", "SumTuple"}


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


def returned(thing):
    """Yield the classes that a function, or the methods of a class, say they return."""
    functions = [thing] if inspect.isfunction(thing) else vars(thing).values()
    for function in filter(inspect.isfunction, functions):
        kind = function.__annotations__.get("return")
        if inspect.isclass(kind) and not function.__name__.startswith("_"):
            yield kind


def test_classes_that_users_get_are_in_the_reference():
    public = [getattr(likeminds, name) for name in likeminds.__all__]
    things = [thing for thing in public if inspect.isfunction(thing) or inspect.isclass(thing)]
    found = {kind for thing in (*things, *HierarchicalRanker.__mro__) for kind in returned(thing)}
    found |= set(ResultTable.__subclasses__()) | {Export}
    ours = {kind.__name__ for kind in found if kind.__module__.startswith("likeminds.")}
    known = {name.rsplit(".", 1)[1] for name in listed()}
    assert {"Posterior", "Ranking", "Summary"} <= ours
    assert ours - known - INTERNAL == set(), "give them a line in docs/api.rst"


def test_sources_name_no_files_of_pages():
    sources = (ROOT / "src").rglob("*.py")
    found = [str(path) for path in sources if re.search(r"docs/[\w/-]+\.md", path.read_text())]
    assert found == [], "an installed package has no pages: name their subject"


SEARCHED = """
inter-annotator agreement, Krippendorff's alpha, collaborative filtering, cold start, matrix
factorisation, conjoint, part-worths, willingness to pay, mixed logit, mixed-effects model,
multilevel, random effects, empirical Bayes, credible interval, active learning, hyperparameters,
soft labels, perspectivism, learning with disagreement, Bradley-Terry, reward model, preference
data, item response theory, bridging, privacy, citation, troubleshooting, glossary
"""


def test_terms_that_people_search_for_are_in_the_glossary():
    text = (ROOT / "docs" / "glossary.md").read_text().lower()
    terms = " ".join(SEARCHED.lower().split()).split(", ")
    assert [term for term in terms if term not in text] == []


def test_every_name_in_the_reference_exists():
    for name in listed():
        module, last = name.rsplit(".", 1)
        assert hasattr(importlib.import_module(module), last), name


def test_every_page_is_reached():
    docs = ROOT / "docs"
    folders = [docs, docs / "how-to", docs / "coming-from", docs / "development"]
    pages = [page for folder in folders for page in folder.glob("*.md")]
    reached = {
        (page.parent / f"{found[1]}.md").resolve()
        for page in pages
        for line in page.read_text().splitlines()
        if (found := re.fullmatch(r"(?:[\w ]+ <)?([\w./-]+)>?", line))
    }
    assert "/notebooks" in (ROOT / "examples" / "README.rst").read_text()
    assert set(pages) - reached == {docs / "index.md", docs / "notebooks.md"}


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
