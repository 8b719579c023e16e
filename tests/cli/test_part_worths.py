"""``likeminds explain --table``: part-worths, and what people would pay."""

import json

import pytest
from typer.testing import CliRunner

from crowds import make_choices
from likeminds import Annotations, HierarchicalRanker, ThreeLevelRanker, load, save
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
    assert "needs --table" in done.output


def test_new_users_have_choices_with_features_in_their_rows(tmp_path):
    lines = ["id,chid,alt,chosen,price,feat"]
    for k in range(60):
        cheap = (k // 3) % 2
        price = (2, 5) if k % 2 else (5, 2)
        for alt in (0, 1):
            chosen = int((price[alt] == 2) == bool(cheap))
            lines.append(f"u{k // 3},c{k},{'ab'[alt]},{chosen},{price[alt]},{(k + alt) % 4 // 2}")
    (tmp_path / "all.csv").write_text("\n".join(lines))
    model = tmp_path / "m.likeminds"
    assert run("fit", "--annotations", tmp_path / "all.csv", "--out", model).exit_code == 0
    # Two new users; feat does not vary among their alternatives.
    rows = ["ann,n0,a,1,2,0", "ann,n0,b,0,5,0", "bob,n1,a,0,2,1", "bob,n1,b,1,5,1"]
    (tmp_path / "new.csv").write_text("\n".join([lines[0], *rows]))
    done = run("newcomer", model, "--annotations", tmp_path / "new.csv", "--top", "40", "--json")
    ranked = json.loads(done.stdout)["rankings"]
    best = {row["user"]: row["item"] for row in ranked if row["rank"] == 1}
    price = load(model).annotations_.X[:, 0]
    assert price[int(best["ann"])] == 2.0
    assert price[int(best["bob"])] == 5.0
    with pytest.raises(ValueError, match="feature_names_"):
        load(model).newcomer(Annotations.from_csv(tmp_path / "new.csv"))
