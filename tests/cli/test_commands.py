"""Each command, on small data: what it reads, what it answers, what it refuses."""

import json
import sqlite3
from contextlib import closing

import numpy as np
import pyarrow as pa
import pytest

import likeminds
from commands import run, told
from likeminds.data.sources import read_table, write_table
from likeminds.datasets import exports

pytestmark = pytest.mark.seconds

SAID = ("--annotations", "annotations.csv")
DATA = (*SAID, "--features", "features.csv")
FIT = ("fit", *DATA, "--out", "m.likeminds", "--quiet")


@pytest.fixture(scope="module")
def shoes(tmp_path_factory):
    """Drawn shoes, three attributes, and a model taught with the pictures."""
    folder = tmp_path_factory.mktemp("shoes")
    attributes = ("--attribute", "open", "--attribute", "pointy")
    words = ("--n-pictures", "30", "--n-users", "10", *attributes)
    assert run(folder, "data", "sketch-shoes", "--out", ".", *words).code == 0
    words = ("--images", "images", "--out", "m.likeminds", "--jobs", "1", "--ranker", "three-level")
    done = run(folder, "fit", *SAID, *words)
    assert done.code == 0, done.err
    return folder


class TestData:
    def test_electricity_says_the_same_as_the_data_set(self, tmp_path):
        assert set(told(tmp_path, "data", "electricity", "--out", "p")["files"]) == {
            "annotations.csv",
            "features.csv",
        }
        said = likeminds.Annotations.from_csv(
            tmp_path / "p/annotations.csv", features=tmp_path / "p/features.csv"
        )
        bundled = likeminds.load_electricity()
        assert likeminds.fingerprint(said) == likeminds.fingerprint(bundled)
        np.testing.assert_array_equal(said.choice_set_codes, bundled.choice_set_codes)

    def test_simulated_schools_are_told_apart_by_the_truth(self, crowd):
        truth = read_table(crowd / "truth.csv").to_pydict()
        assert len(truth["user"]) == 40
        assert set(truth["school"]) == {1, 2}

    def test_shoes_are_drawn(self, shoes):
        assert len(list((shoes / "images").glob("*.png"))) == 30
        assert read_table(shoes / "annotations.csv").num_rows == 2 * 10 * 30

    def test_a_file_in_the_way_is_told(self, tmp_path):
        (tmp_path / "p").write_text("here")
        done = run(tmp_path, "data", "electricity", "--out", "p")
        assert (done.code, done.err) == (2, "Error: p is a file; name a folder for the tables.\n")


class TestFit:
    def test_the_card_has_what_was_learned_from(self, copy):
        found = told(copy, *FIT, "--holdout", "0.25")
        card = found["card"]
        assert card["ranker"] == "HierarchicalRanker"
        assert card["users"] == 40
        assert card["labels"] == 40 * 24
        assert card["features"] == ["x0", "x1", "x2", "x3"]
        assert 0.7 < card["scores"]["auc"] < 1
        assert card["scores"]["held_out"] == 0.25
        assert card["takes_updates"] is True
        assert card["fingerprint"] is not None

    def test_without_labels_nobodys_are_in_the_file(self, copy):
        assert told(copy, *FIT, "--no-data")["card"]["takes_updates"] is False
        done = run(copy, "update", "m.likeminds", *DATA)
        assert done.code == 2
        assert "Fit it with --keep-data" in done.err
        done = run(copy, "rank", "m.likeminds")
        assert done.code == 2
        assert "saved without its items" in done.err

    @pytest.mark.parametrize(
        ("name", "kind"),
        [
            pytest.param("three-level", "ThreeLevelRankerCV", marks=pytest.mark.slow),
            ("rmtl", "RankerCV"),
        ],
    )
    def test_other_rankers(self, copy, name, kind):
        assert told(copy, *FIT, "--ranker", name)["card"]["ranker"] == kind

    def test_losses(self, copy):
        found = told(copy, *FIT, "--loss", "auc")
        assert found["card"]["parameters"]["loss"] == "auc"
        done = run(copy, *FIT, "--loss", "auc", "--ranker", "Popularity")
        assert (done.code, done.err) == (
            2,
            "Error: Popularity has one loss only: leave out --loss.\n",
        )

    def test_columns_with_other_names(self, copy):
        table = read_table(copy / "annotations.csv")
        renamed = table.rename_columns(["wer", "was", "urteil"]).to_pandas()
        renamed["urteil"] = renamed["urteil"].map({1: "ja", 0: "nein"})
        write_table(pa.Table.from_pandas(renamed), copy / "de.parquet")
        names = (
            "--user-column",
            "wer",
            "--item-column",
            "was",
            "--label-column",
            "urteil",
            "--positive",
            "Ja",
        )
        data = ("--annotations", "de.parquet", "--features", "features.csv", "--out", "de")
        data += ("--ranker", "consensus")
        assert told(copy, "fit", *data, *names)["card"]["labels"] == 960
        done = run(copy, "fit", *data)
        assert done.code == 2
        assert "to name the column of the user; the columns are wer, was" in done.err

    def test_ratings_and_ids_that_are_numbers_here_and_texts_there(self, tmp_path):
        rng = np.random.default_rng(0)
        users, items = np.repeat(np.arange(6), 20), np.tile(np.arange(20), 6)
        ratings = rng.integers(1, 6, 120)
        labels = pa.table({"user": users, "image": items, "rating": ratings})
        write_table(labels, tmp_path / "labels.csv")
        features = pa.table({"image": [str(i) for i in range(20)], "x": rng.normal(size=20)})
        write_table(features, tmp_path / "features.parquet")
        data = ("--annotations", "labels.csv", "--features", "features.parquet", "--out", "m")
        assert told(tmp_path, "fit", *data, "--threshold", "median")["card"]["users"] == 6
        done = run(tmp_path, "fit", *data, "--threshold", "high")
        assert done.err == "Error: --threshold must be a number or median, not 'high'.\n"

    def test_grades_of_numbers_and_of_words(self, tmp_path):
        rng = np.random.default_rng(0)
        columns = {"user": np.repeat(np.arange(6), 20), "x": rng.normal(size=120)}
        grade = np.clip(np.round(3 + columns["x"] + rng.normal(size=120)), 1, 4).astype(int)
        data = ("--annotations", "labels.csv", "--out", "m", "--ranker", "three-level")
        write_table(pa.table(columns | {"rating": grade}), tmp_path / "labels.csv")
        card = told(tmp_path, "fit", *data)["card"]
        assert card["label_reading"]["grades"] == []
        found = told(tmp_path, "evaluate", "m", "--annotations", "labels.csv")
        assert found["scores"][0]["concordance"] > 0.6
        words = np.array(["", "bad", "poor", "fair", "good"])[grade]
        write_table(pa.table(columns | {"rating": words}), tmp_path / "labels.csv")
        assert "--grades with all of them from worst to best" in run(tmp_path, "fit", *data).err
        card = told(tmp_path, "fit", *data, "--grades", "bad,poor, fair,good")["card"]
        assert card["label_reading"]["grades"] == ["bad", "poor", "fair", "good"]
        again = told(tmp_path, "evaluate", "m", "--annotations", "labels.csv")
        assert again["scores"][0]["concordance"] == found["scores"][0]["concordance"]

    def test_numpy_files_and_one_table_for_all(self, tmp_path):
        rng = np.random.default_rng(0)
        np.save(tmp_path / "features.npy", rng.normal(size=(20, 3)))
        users, items = np.repeat(np.arange(6), 20), np.tile(np.arange(20), 6)
        labels = rng.random(120) < 0.5
        np.savez(tmp_path / "labels.npz", user=users, item=items, label=labels)
        data = ("--annotations", "labels.npz", "--features", "features.npy", "--out", "m")
        assert told(tmp_path, "fit", *data)["card"]["features"] == ["x0", "x1", "x2"]
        np.savez(tmp_path / "all.npz", user=users, label=labels, size=rng.normal(size=120))
        card = told(tmp_path, "fit", "--annotations", "all.npz", "--out", "m")["card"]
        assert card["features"] == ["size"]

    def test_a_database_and_standard_input(self, copy):
        table = read_table(copy / "annotations.csv").to_pydict()
        with closing(sqlite3.connect(copy / "crowd.db")) as connection, connection:
            connection.execute("CREATE TABLE labels (person, item, label)")
            rows = zip(*table.values(), strict=True)
            connection.executemany("INSERT INTO labels VALUES (?, ?, ?)", rows)
        marks = []
        text = (copy / "annotations.csv").read_text()
        for source in ("annotations.csv", "sqlite:///crowd.db SELECT * FROM labels", "-"):
            words = ("--annotations", source, "--features", "features.csv", "--out", "m")
            words += ("--ranker", "consensus")
            marks.append(told(copy, "fit", *words, stdin=text)["card"]["fingerprint"])
        assert len(set(marks)) == 1
        done = run(copy, "fit", "--annotations", "-", "--features", "-", "--out", "m")
        assert done.err == "Error: Only one table can come from standard input.\n"

    def test_what_cannot_be_is_refused_before_any_work(self, copy):
        done = run(copy, *FIT, "--ranker", "best")
        assert done.code == 2
        assert "There is no ranker called 'best'; choose from hierarchical, three-level" in done.err
        done = run(copy, *FIT, "--images", "images")
        assert done.err == "Error: Give --features or --images, not both.\n"
        done = run(copy, "fit", *SAID, "--features", "none.csv", "--out", "x")
        assert "There is no file none.csv" in done.err
        assert not (copy / "x").exists()


class TestEvaluate:
    def test_scores_are_the_models_own(self, crowd):
        (found,) = told(crowd, "evaluate", "m.likeminds", *DATA)["scores"]
        said = likeminds.Annotations.from_csv(
            crowd / "annotations.csv", features=crowd / "features.csv"
        )
        model = likeminds.load(crowd / "m.likeminds")
        assert found["auc"] == pytest.approx(model.score(said))
        assert found["consensus_auc"] < found["auc"]
        assert found["users"] == 40

    def test_it_notes_that_the_labels_are_known(self, crowd):
        done = run(crowd, "evaluate", "m.likeminds", *DATA)
        assert "the score is too high" in done.err
        assert "0 " in done.out

    def test_everybodys_auc_goes_to_a_file(self, copy):
        words = ("evaluate", "m.likeminds", *DATA, "--out", "auc.parquet")
        assert run(copy, *words).code == 0
        table = read_table(copy / "auc.parquet")
        assert table.column_names == ["user", "auc", "consensus_auc"]
        assert table.num_rows == 40

    def test_features_in_another_order_are_the_same(self, copy):
        table = read_table(copy / "features.csv")
        write_table(table.select(["x3", "item", "x1", "x0", "x2"]), copy / "turned.csv")
        ask = ("evaluate", "m.likeminds", *SAID, "--features")
        assert told(copy, *ask, "turned.csv") == told(copy, *ask, "features.csv")
        write_table(table.select(["item", "x1"]), copy / "few.csv")
        done = run(copy, *ask, "few.csv")
        assert "few.csv lacks features of the model: x0, x2, x3." in done.err


class TestCompare:
    def test_rankers_side_by_side(self, copy):
        words = ("--ranker", "hierarchical", "--ranker", "consensus", "--repeats", "2")
        words += ("--jobs", "1", "--out", "table.md", "--plot", "boxes.png")
        (found,) = told(copy, "compare", *DATA, *words)["comparisons"]
        names = [one["ranker"] for one in found["rankers"]]
        assert names == ["HierarchicalRanker", "ConsensusOnly"]
        assert (copy / "table.md").read_text().startswith("| ranker |")
        assert (copy / "boxes.png").read_bytes().startswith(b"\x89PNG")

    @pytest.mark.usefixtures("no_matplotlib")
    def test_a_missing_package_is_named_before_any_work(self, copy):
        done = run(copy, "compare", *DATA, "--plot", "boxes.png")
        assert done.code == 1
        assert "pip install 'matplotlib'" in done.err


class TestUpdate:
    def test_the_model_grows(self, copy):
        lines = (copy / "annotations.csv").read_text().splitlines()
        half = 1 + 20 * 24
        (copy / "first.csv").write_text("\n".join(lines[:half]))
        (copy / "rest.csv").write_text("\n".join([lines[0], *lines[half:]]))
        data = ("--features", "features.csv")
        told(copy, "fit", "--annotations", "first.csv", *data, "--out", "half")
        found = told(copy, "update", "half", "--annotations", "rest.csv", *data)
        assert found["new_users"] == 20
        whole = likeminds.load(copy / "m.likeminds")
        grown = likeminds.load(copy / "half")
        assert grown.n_labels_ == 960
        np.testing.assert_allclose(grown.coef_, whole.coef_, atol=0.05)
        assert (
            likeminds.read_card(copy / "half")["fingerprint"]
            == (likeminds.read_card(copy / "m.likeminds")["fingerprint"])
        )

    def test_known_items_need_no_features(self, copy):
        (copy / "more.csv").write_text("person,item,label\nzoe,item-0003,1\nzoe,item-0004,0\n")
        ask = ("update", "m.likeminds", "--annotations", "more.csv")
        found = told(copy, *ask, "--out", "grown")
        assert (found["added"], found["new_users"]) == (2, 1)
        (copy / "more.csv").write_text("person,item,label\nzoe,item-9999,1\n")
        assert "no features for item(s) item-9999" in run(copy, *ask).err

    def test_attributes_grow_too(self, shoes, tmp_path):
        lines = (shoes / "annotations.csv").read_text().splitlines()
        (tmp_path / "more.csv").write_text("\n".join(lines[:20]).replace("person-000", "zoe"))
        words = ("--annotations", str(tmp_path / "more.csv"), "--images", "images")
        out = ("--out", str(tmp_path / "grown"))
        found = told(shoes, "update", "m.likeminds", *words, *out)
        assert found["new_users"] == 1
        # How pictures were reduced travels with the model.
        ask = ("rank", str(tmp_path / "grown"), "--images", "images", "--user", "zoe")
        assert told(shoes, *ask, "--top", "1")["rankings"]
        plain = ("update", "m.likeminds", "--annotations", str(tmp_path / "plain.csv"))
        (tmp_path / "plain.csv").write_text("person,image,label\nzoe,shoe-00001.png,1\n")
        done = run(shoes, *plain, "--images", "images", *out)
        assert "no column of attributes" in done.err


class TestRank:
    def test_the_best_are_those_with_the_highest_scores(self, crowd):
        ask = ("rank", "m.likeminds", "--features", "features.csv", "--top", "3")
        rows = told(crowd, *ask, "--user", "person-007")["rankings"]
        table = read_table(crowd / "features.csv")
        X = np.column_stack([table[f"x{k}"].to_numpy() for k in range(4)])
        items = table["item"].to_pylist()
        model = likeminds.load(crowd / "m.likeminds")
        scores = model.decision_function(X, ["person-007"] * 60, items=items)
        best = table["item"].to_numpy()[np.argsort(-scores)[:3]].tolist()
        assert [row["item"] for row in rows] == best
        assert [row["rank"] for row in rows] == [1, 2, 3]

    def test_everyone_is_the_consensus_as_far_as_it_is_sure(self, crowd):
        rows = told(crowd, "rank", "m.likeminds", "--top", "60")["rankings"]
        table = read_table(crowd / "features.csv")
        X = np.column_stack([table[f"x{k}"].to_numpy() for k in range(4)])
        model = likeminds.load(crowd / "m.likeminds")
        sure = model.item_effect_ - 1.645 * model.item_effect_error_
        effects = dict(zip(model.items_.tolist(), sure.tolist(), strict=True))
        scores = X @ model.consensus_ + [effects[item] for item in table["item"].to_pylist()]
        assert {row["user"] for row in rows} == {"everyone"}
        assert [row["item"] for row in rows] == table["item"].to_numpy()[
            np.argsort(-scores)
        ].tolist()

    def test_each_person_is_ranked_as_if_alone(self, crowd):
        ask = ("rank", "m.likeminds", "--top", "3")
        together = told(crowd, *ask, "--each-user")["rankings"]
        alone = told(crowd, *ask, "--user", "person-007", "--user", "person-011")["rankings"]
        found = [row for row in together if row["user"] in {"person-007", "person-011"}]
        scores = [[row.pop("score") for row in rows] for rows in (found, alone)]
        assert found == alone
        np.testing.assert_allclose(*scores)

    def test_each_person_in_a_file_or_on_standard_output(self, copy):
        ask = ("rank", "m.likeminds", "--each-user", "--top", "2", "--out")
        assert run(copy, *ask, "all.csv").code == 0
        done = run(copy, *ask, "-")
        assert done.out == (copy / "all.csv").read_text()
        assert done.out.count("\n") == 81
        done = run(copy, *ask, "-", "--json")
        assert "both write to standard output" in done.err

    def test_who_is_not_there_is_told(self, crowd):
        done = run(crowd, "rank", "m.likeminds", "--user", "zoe")
        assert done.code == 2
        assert "There is no user 'zoe'; there are person-000" in done.err
        done = run(crowd, "rank", "m.likeminds", "--attribute", "open")
        assert "leave out --attribute" in done.err
        done = run(crowd, "rank", "m.likeminds", "--like", "open")
        assert "has no attributes" in done.err

    def test_attributes_one_by_one_and_as_a_wish(self, shoes):
        ask = ("rank", "m.likeminds", "--images", "images", "--top", "2")
        rows = told(shoes, *ask, "--user", "person-003")["rankings"]
        assert [row["attribute"] for row in rows] == ["open", "open", "pointy", "pointy"]
        rows = told(shoes, *ask, "--like", "open", "--not", "pointy")["rankings"]
        assert [row["attribute"] for row in rows] == ["open and not pointy"] * 2
        assert 0.5 < rows[0]["score"] <= 1
        done = run(shoes, *ask, "--like", "soft")
        assert done.err == "Error: There is no attribute 'soft'; choose from open, pointy.\n"


class TestNewcomer:
    ASK = ("newcomer", "m.likeminds", "--features", "features.csv")

    def test_labels_in_ranking_out(self, crowd):
        liked = told(crowd, *self.ASK, "--top", "60")["rankings"]
        worst = liked[-1]["item"]
        text = f"item,label\n{worst},1\n{liked[0]['item']},0\n"
        ask = (*self.ASK, "--annotations", "-", "--top", "60", "--ask", "3", "--labelled")
        found = told(crowd, *ask, stdin=text)
        before, after = (
            {row["item"]: row["score"] for row in rows} for rows in (liked, found["rankings"])
        )
        best = liked[0]["item"]
        assert after[best] - after[worst] < before[best] - before[worst]
        asked = [row["item"] for row in found["ask"]]
        assert len(set(asked)) == 3
        assert not {worst, best} & set(asked)

    def test_several_newcomers(self, copy):
        text = "person,item,label\nzoe,item-0001,1\nbob,item-0001,0\nzoe,item-0002,0\n"
        (copy / "new.csv").write_text(text)
        found = told(copy, *self.ASK, "--annotations", "new.csv", "--top", "1")
        assert [row["user"] for row in found["rankings"]] == ["bob", "zoe"]

    def test_unknown_items_are_told(self, crowd):
        done = run(crowd, *self.ASK, "--annotations", "-", stdin="item,label\nnone,1\n")
        assert done.err.startswith(
            "Error: There is no item 'none' among these 60 items: item-0000,"
        )

    def test_several_attributes_and_pictures_without_their_endings(self, shoes):
        ask = ("newcomer", "m.likeminds", "--images", "images", "--annotations", "-")
        text = "attribute,image,label\nopen,shoe-00003,1\nopen,shoe-00004.png,0\n"
        found = told(shoes, *ask, "--top", "1", "--ask", "1", stdin=text)
        assert [row["attribute"] for row in found["rankings"]] == ["open", "pointy"]
        wish = told(shoes, *ask, "--top", "1", "--like", "open", "--not", "pointy", stdin=text)
        assert wish["rankings"][0]["attribute"] == "open and not pointy"

    def test_rankers_without_newcomers_say_so(self, copy):
        told(copy, *FIT, "--ranker", "RidgeToConsensus")
        done = run(copy, *self.ASK)
        assert done.code == 2
        assert "cannot score new users without a refit. Use update" in done.err.replace("\n", " ")


class TestExplain:
    ASK = ("explain", "m.likeminds")

    def test_schools_are_those_of_the_truth(self, crowd):
        (found,) = told(crowd, *self.ASK, "--schools", "2")["explained"]
        assert [school["size"] for school in found["schools"]] == [20, 20]
        truth = read_table(crowd / "truth.csv").to_pydict()
        first = {p for p, s in zip(truth["user"], truth["school"], strict=True) if s == 1}
        (school,) = told(crowd, *self.ASK, "--schools", "2", "--school", "1")["explained"]
        assert len(first & set(school["members"])) in {0, 1, 2, 18, 19, 20}

    def test_a_person(self, crowd):
        (found,) = told(crowd, *self.ASK, "--user", "person-007")["explained"]
        assert found["user"] == "person-007"
        assert sum(found["level_shares"].values()) == pytest.approx(1)
        ranked = told(crowd, "rank", "m.likeminds", "--user", "person-007")
        assert found["best"] == [row["item"] for row in ranked["rankings"][:5]]

    def test_an_item(self, crowd):
        (found,) = told(crowd, *self.ASK, "--item", "item-0003")["explained"]
        assert found["liked_by"][0]["beats"] >= found["disliked_by"][0]["beats"]
        assert 0 <= found["consensus"] <= 1

    def test_all_in_words(self, crowd):
        for what in ((), ("--user", "person-001"), ("--school", "1"), ("--item", "item-0001")):
            done = run(crowd, *self.ASK, "--schools", "2", *what)
            assert done.code == 0
            assert len(done.out.splitlines()) > 3

    def test_without_items_it_says_what_it_cannot_know(self, copy):
        likeminds.save(likeminds.load(copy / "m.likeminds"), copy / "bare.likeminds")
        done = run(copy, "explain", "bare.likeminds")
        assert done.code == 0
        assert "correlations of features are unknown" in " ".join(done.out.split())
        assert "correlations of features are unknown" not in run(copy, *self.ASK).out

    def test_ids_are_shown_as_they_are(self, copy):
        text = (copy / "annotations.csv").read_text().replace("person-007", "[red]zoe[/red]")
        (copy / "annotations.csv").write_text(text)
        told(copy, *FIT)
        done = run(copy, *self.ASK, "--user", "[red]zoe[/red]")
        assert done.out.startswith("[red]zoe[/red]: ")

    def test_one_thing_at_a_time(self, crowd, shoes):
        done = run(crowd, *self.ASK, "--user", "person-001", "--school", "1")
        choice = "one of --user, --school, --item, --items and --table, or --user and --item"
        assert done.err == f"Error: Give {choice}.\n"
        done = run(shoes, *self.ASK, "--user", "person-001")
        assert "several attributes. Give --attribute: open, pointy." in done.err
        done = run(crowd, *self.ASK, "--schools", "2", "--school", "7")
        assert done.err == "Error: There is no school 7; choose a number from 1 to 2.\n"

    def test_rankers_without_groups_say_so(self, copy):
        told(copy, *FIT, "--ranker", "lasso")
        done = run(copy, *self.ASK)
        assert done.code == 2
        assert "group level" in done.err


class TestReport:
    @pytest.mark.slow
    def test_one_page_with_thumbnails(self, shoes, tmp_path):
        words = ("report", "m.likeminds", "--images", "images", *SAID)
        page = tmp_path / "page.html"
        found = told(shoes, *words, "--no-diagnostics", "--out", str(page))
        assert found["bytes"] == page.stat().st_size
        assert "data:image/" in page.read_text()

    @pytest.mark.slow
    def test_what_takes_labels_is_not_announced_without_them(self, crowd, tmp_path):
        bare = str(tmp_path / "bare.likeminds")
        likeminds.save(likeminds.load(crowd / "m.likeminds"), bare, with_data=False)
        done = run(crowd, "report", bare, "--out", str(tmp_path / "p.html"))
        assert done.code == 0
        assert "has no labels for diagnostics" in done.err
        assert "more fits" not in done.err

    @pytest.mark.usefixtures("no_matplotlib")
    def test_a_missing_package_is_named(self, crowd, tmp_path):
        done = run(crowd, "report", "m.likeminds", "--out", str(tmp_path / "p.html"))
        assert done.code == 1
        assert "pip install 'matplotlib'" in done.err


def test_pictures_need_a_model_that_was_taught_with_them(crowd, shoes):
    words = ("rank", str(crowd / "m.likeminds"), "--images", "images")
    done = run(shoes, *words)
    assert done.code == 2
    assert "was not fitted to pictures" in done.err
    assert likeminds.read_card(shoes / "m.likeminds")["pictures"] == "GIST and Lab colour histogram"


def test_doctor_says_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")  # nothing is cut in two
    from likeminds.cli import check

    monkeypatch.setattr(check, "_version", lambda package: None if package == "duckdb" else "1.2.3")
    done = run(tmp_path, "doctor")
    assert done.code == 0
    assert "missing: pip install 'likeminds[duckdb]'" in done.out
    assert ": passed." in done.out
    monkeypatch.setattr(check, "_LEAST_AUC", 1.0)
    done = run(tmp_path, "doctor", "--json")
    assert done.code == 1
    assert json.loads(done.out)["self_check"]["passed"] is False


def test_offers_are_called_by_what_they_are():
    assert exports._offer(7, 5, 1, 0, 0, 0) == "7ct-5y-local"
    assert exports._offer(0, 0, 0, 1, 1, 0) == "hourly-0y-known"
    assert exports._offer(0, 1, 0, 0, 0, 1) == "seasonal-1y"
