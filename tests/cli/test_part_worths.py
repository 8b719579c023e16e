"""``likeminds explain --table``: part-worths, and what people would pay."""

import json

import pytest
from typer.testing import CliRunner

from crowds import make_choices
from likeminds import Annotations, HierarchicalRanker, ThreeLevelRanker, save
from likeminds.cli import app


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "140"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    crowd, _ = make_choices([-1.0, 0.8], [[0.3, 0.0], [0.0, 0.5]], n_users=40, n_sets=6)
    place = tmp_path_factory.mktemp("model")
    ranker = HierarchicalRanker(covariance="full").fit(crowd)
    save(ranker, place / "kept.likeminds", with_data=True)
    save(ranker, place / "bare.likeminds")
    save(ThreeLevelRanker().fit(crowd), place / "other.likeminds", with_data=True)
    return place


def test_table_in_words_and_for_programs(folder):
    ask = ("explain", folder / "kept.likeminds", "--table", "--price", "price")
    shown = run(*ask).stdout
    for words in ("Part-worths", "Correlations between people", "Willingness to pay", "size"):
        assert words in shown
    (facts,) = json.loads(run(*ask, "--json").stdout)["explained"]
    assert [row["feature"] for row in facts["rows"]] == ["price", "size"]
    assert facts["rows"][0]["mean"] < 0 < facts["rows"][1]["mean"]
    assert facts["wtp"]["rows"][0]["from"] < facts["wtp"]["rows"][0]["to"]
    assert facts["log_likelihood"] < 0


def test_small_numbers_keep_their_digits(tmp_path):
    crowd, _ = make_choices([-1.0, 0.8], [[0.3, 0.0], [0.0, 0.5]], n_users=40, n_sets=6)
    dollars = Annotations(
        crowd.user_codes,
        None,
        crowd.labels,
        crowd.X * [1e5, 1.0],
        choice_sets=crowd.choice_set_codes,
        feature_names=["price", "size"],
    )
    ranker = HierarchicalRanker(covariance="full").fit(dollars)
    save(ranker, tmp_path / "m.likeminds", with_data=True)
    shown = run("explain", tmp_path / "m.likeminds", "--table").stdout
    price, *_ = (line.split() for line in shown.splitlines() if line.split()[:1] == ["price"])
    assert all(float(number) != 0.0 for number in price[1:8])


def test_what_is_missing_is_said(folder):
    asked = {
        "bare": (("--table",), "with --keep-data"),
        "other": (("--table",), "has no table of part-worths"),
        "kept": (("--table", "--user", "p001"), "Give one of"),
    }
    for name, (options, message) in asked.items():
        done = run("explain", folder / f"{name}.likeminds", *options)
        assert done.exit_code == 2
        assert message in " ".join(done.output.split())
    done = run("explain", folder / "kept.likeminds", "--price", "price")
    assert "belongs to --table" in done.output
