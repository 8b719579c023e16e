"""``likeminds explain --items``: what every school likes, and what divides people."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from likeminds import Annotations, HierarchicalRanker, ThreeLevelRanker, save
from likeminds.cli import app
from likeminds.report import write_report


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "140"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model of two schools: all like a*, nobody likes b*, half of them c*, the others d*."""
    rng = np.random.default_rng(0)
    items = [f"{kind}{n}" for kind in "abcd" for n in range(6)]
    side = {"a": [1, 1], "b": [0, 0], "c": [1, 0], "d": [0, 1]}
    features = {i: [*np.eye(4)["abcd".index(i[0])], rng.normal(0, 0.1)] for i in items}
    said = [
        (person, item, side[item[0]][person % 2] if rng.random() > 0.08 else rng.integers(2))
        for person in range(40)
        for item in rng.permutation(items)[:16].tolist()
    ]
    users, about, labels = zip(*said, strict=True)
    annotations = Annotations(users, about, labels, features, verb="agree with")
    place = tmp_path_factory.mktemp("model")
    ranker = HierarchicalRanker(n_groups=1).fit(annotations)
    save(ranker, place / "kept.likeminds", with_data=True)
    save(ThreeLevelRanker().fit(annotations), place / "bare.likeminds")
    (place / "texts.csv").write_text(
        "item,text\n" + "".join(f"{i},We should do more about {i} <now>\n" for i in items)
    )
    return place, ranker


@pytest.mark.seconds
def test_agreed_and_divisive_items(folder):
    ask = ("explain", folder[0] / "kept.likeminds", "--items")
    first = {}
    for which in ("agreed", "divisive"):
        told = json.loads(run(*ask, which, "--json").stdout)["explained"][0]
        assert len(told["items"]) == 24
        assert told["liked_by_all"] == 6
        first[which] = {one["item"][0] for one in told["items"][:6]}
        assert len(told["items"][0]["by_school"]) == len(told["schools"]) == 2
    assert first["agreed"] == {"a"}
    assert first["divisive"] <= {"c", "d"}
    shown = run(*ask, "agreed").stdout
    assert "Items that every school agrees with" in shown
    assert "More than half in every school would agree with 6 of 24 items." in shown
    assert run(*ask, "both").exit_code == 2
    assert "Give one of" in run(*ask, "agreed", "--user", 3).output


@pytest.mark.seconds
def test_texts_are_told_instead_of_ids(folder):
    ask = ("explain", folder[0] / "kept.likeminds", "--texts", folder[0] / "texts.csv")
    told = json.loads(run(*ask, "--json").stdout)["explained"][0]
    assert told["schools"][0]["name"].startswith('agrees with "We should do more about')
    assert told["agreed"][0]["text"].startswith("We should do more about a")
    assert '"We should do more about a' in run(*ask, "--items", "agreed").stdout
    wrong = run(*ask[:3], "--texts", folder[0] / "none.csv")
    assert wrong.exit_code == 2


def test_a_table_of_texts_has_one_column_of_them(folder, tmp_path):
    (tmp_path / "two.csv").write_text("item,remark,note\na0,hello,there\n")
    ask = ("explain", folder[0] / "kept.likeminds", "--texts", tmp_path / "two.csv")
    assert "needs one column of texts in addition to item" in run(*ask).output


def test_a_model_that_cannot_know_says_so(folder):
    told = run("explain", folder[0] / "bare.likeminds", "--items", "agreed")
    assert told.exit_code == 2
    assert "Predicted shares of yes need items" in told.output


@pytest.mark.slow
def test_the_report_tells_what_all_like(folder, tmp_path):
    texts = {f"a{n}": f"All like <number> {n}" for n in range(6)}
    page = write_report(folder[1], tmp_path / "page.html", diagnostics=False, texts=texts)
    written = page.read_text()
    assert "Items that every school agrees with" in written
    assert "All like &lt;number&gt;" in written
    assert "It is more than half for 6 of 24 items" in written
    assert "Share that would agree with it" in written
