"""Comparisons on the command line: fit, evaluate, newcomer, update and rank."""

import csv

import numpy as np
import pytest

from commands import run, told
from likeminds import Annotations, HierarchicalRanker, load

ITEMS = [f"i{k}" for k in range(6)]


def write_pairs(path, users, seed, n_pairs=12):
    rng = np.random.default_rng(seed)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["user", "winner", "loser"])
        for user in users:
            taste = np.linspace(1.5, -1.5, 6) * (1 if int(user[1:]) % 3 else -1)
            for _ in range(n_pairs):
                a, b = rng.choice(6, 2, replace=False)
                if taste[a] - taste[b] + rng.logistic() < 0:
                    a, b = b, a
                writer.writerow([user, ITEMS[a], ITEMS[b]])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    write_pairs(folder / "pairs.csv", [f"u{k}" for k in range(30)], seed=0)
    write_pairs(folder / "test.csv", [f"u{k}" for k in range(20, 50)], seed=1)
    write_pairs(folder / "more.csv", ["u3", "u77"], seed=2)
    done = run(
        folder, *["fit", "--comparisons", "pairs.csv", "--holdout", "0.3", "--out", "m.likeminds"]
    )
    assert done.code == 0, done.err
    assert "Accuracy, held-out comparisons: 0." in done.out
    return folder


def test_the_model_is_that_of_python(folder):
    said = Annotations.from_preferences(folder / "pairs.csv")
    model = load(folder / "m.likeminds")
    assert model.loss_ == "choice"
    assert model.feature_names_.tolist() == []
    expected = HierarchicalRanker().fit(said)
    assert set(model.items_) == set(ITEMS)
    np.testing.assert_allclose(model.item_effect_, expected.item_effect_, atol=1e-8)
    np.testing.assert_allclose(model.factor_weights_, expected.factor_weights_, atol=1e-8)


def test_comparisons_may_stay_on_disk(folder):
    words = ["fit", "--comparisons", "pairs.csv", "--memory", "1GB", "--out", "disk.likeminds"]
    done = run(folder, *words)
    assert done.code == 0, done.err
    there, here = load(folder / "disk.likeminds"), load(folder / "m.likeminds")
    np.testing.assert_allclose(there.item_effect_, here.item_effect_, atol=1e-6)
    done = run(folder, *words, "--annotations", "pairs.csv")
    assert done.code
    assert "--comparisons" in done.err


def test_ties_have_a_learned_probability_or_are_half_wins(tmp_path):
    write_pairs(tmp_path / "pairs.csv", [f"u{k}" for k in range(12)], seed=3)
    rows = (tmp_path / "pairs.csv").read_text().splitlines()
    tied = [f"{row},{int(k % 4 == 0)}" for k, row in enumerate(rows[1:])]
    (tmp_path / "pairs.csv").write_text("\n".join([f"{rows[0]},tie", *tied]))
    for model in ("davidson", "half"):
        words = ["fit", "--comparisons", "pairs.csv", "--ties", model, "--out", "m.likeminds"]
        assert run(tmp_path, *words).code == 0
        said = Annotations.from_preferences(tmp_path / "pairs.csv", tie_model=model)
        expected, found = HierarchicalRanker().fit(said), load(tmp_path / "m.likeminds")
        assert found.prior_.likelihood == expected.prior_.likelihood
        np.testing.assert_allclose(found.item_effect_, expected.item_effect_, atol=1e-8)
        assert (model == "davidson") == (getattr(found.prior_.likelihood, "tie_share", 0.0) == 0.25)


def test_items_without_features_are_told_apart(folder):
    done = told(folder, "explain", "m.likeminds", "--items", "agreed")["explained"][0]
    assert {one["item"] for one in done["items"]} == set(ITEMS)
    assert "Items that everyone chooses most" in run(folder, "rank", "m.likeminds").out
    assert run(folder, "report", "m.likeminds", "--out", "m.html", "--no-diagnostics").code == 0
    page = (folder / "m.html").read_text()
    assert "choices among 2" in page
    assert ">labels<" not in page


def test_evaluate_with_shots(folder):
    words = "evaluate m.likeminds --comparisons test.csv --shots 0 5 10"
    rows = told(folder, *words.split())["scores"]
    assert [(row["users"], row["shots"]) for row in rows] == [
        *[("seen", 0), ("unseen", 0), ("unseen", 5), ("unseen", 10)]
    ]
    assert rows[3]["accuracy"] > rows[1]["accuracy"]
    assert all(0 < row["log_loss"] < 1 for row in rows)
    words = "evaluate m.likeminds --comparisons test.csv --out people.csv"
    assert run(folder, *words.split()).code == 0
    users = list(csv.DictReader((folder / "people.csv").read_text().splitlines()))
    assert {row["users"] for row in users} == {"seen", "unseen"}
    assert len(users) == 30


def test_newcomers_compare(folder):
    (folder / "zoe.csv").write_text("winner,loser\ni5,i0\ni4,i1\ni5,i1\ni4,i0\n")
    words = ["newcomer", "m.likeminds", "--comparisons", "zoe.csv", "--top", "2"]
    rows = told(folder, *words, "--labelled")["rankings"]
    assert rows[0]["item"] in {"i4", "i5"}
    (folder / "unknown.csv").write_text("winner,loser\ni5,i99\n")
    done = run(folder, *["newcomer", "m.likeminds", "--comparisons", "unknown.csv"])
    assert done.code == 2
    assert "i99" in done.err


def test_update_and_rank(folder):
    words = "update m.likeminds --comparisons more.csv --out grown.likeminds"
    done = run(folder, *words.split())
    assert done.code == 0, done.err
    assert "1 new person" in done.out
    rows = told(folder, *["rank", "grown.likeminds", "--user", "u77", "--top", "3"])["rankings"]
    assert len(rows) == 3


def test_labels_beside_comparisons(folder):
    lines = [f"v{k},i{j},{int(j < 3)}" for k in range(8) for j in range(6)]
    (folder / "votes.csv").write_text("\n".join(["user,item,label", *lines]) + "\n")
    words = [
        "fit",
        "--annotations",
        "votes.csv",
        "--comparisons",
        "pairs.csv",
        "--out",
        "both.likeminds",
    ]
    done = run(folder, *words)
    assert done.code == 0, done.err
    both = load(folder / "both.likeminds")
    assert both.loss_ == "mixed"
    assert len(both.users_) == 38


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("user,winner,loser\na,x,x\n", "same item (x) as winner and loser"),
        ("user,winner,loser\n", "There are no comparisons"),
        ("user,winner,loser\na,x,\n", "'loser' has no value in row(s) 0"),
        ("user,winner\na,x\n", "No column is called loser"),
        ("user,winner,loser,attribute\na,x,y,p\na,y,x,q\n", "several attributes"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, text, message):
    (tmp_path / "pairs.csv").write_text(text)
    done = run(tmp_path, *["fit", "--comparisons", "pairs.csv", "--out", "m.likeminds"])
    assert done.code == 2
    assert message in " ".join(done.err.split())


def test_cycles_are_fine_and_nothing_is_said_of_effects(tmp_path):
    (tmp_path / "pairs.csv").write_text("user,winner,loser\na,x,y\na,y,z\na,z,x\n")
    done = run(tmp_path, *["fit", "--comparisons", "pairs.csv", "--out", "m.likeminds"])
    assert done.code == 0, done.err
    assert "item effects" not in done.out + done.err


def test_nothing_said_is_said(tmp_path):
    done = run(tmp_path, *["fit", "--out", "m.likeminds"])
    assert done.code == 2
    assert "give --annotations, --comparisons, or --from." in " ".join(done.err.split())
