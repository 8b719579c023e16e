"""``likeminds fit --texts``: items that are texts need nothing else."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from likeminds import load
from likeminds.cli.main import app


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "140"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Comments, some of them with an insult; half of the people mind only the worse one."""
    place = tmp_path_factory.mktemp("comments")
    rng = np.random.default_rng(0)
    filler = [
        "we",
        "went",
        "to",
        "see",
        "the",
        "new",
        "house",
        "by",
        "the",
        "river",
        "with",
        "some",
        "friends",
        "yesterday",
    ]
    insults = ["", "nitwit", "scoundrel"]
    kinds = rng.integers(3, size=60)
    texts = [" ".join([*rng.permutation(filler)[:6], insults[kind]]) for kind in kinds]
    lines = ["item,comment", *(f"{n:03d},{text}" for n, text in enumerate(texts))]
    (place / "comments.csv").write_text("\n".join(lines))
    said = [
        f"p{person},{item:03d},{int((kinds[item] > person % 2) ^ (rng.random() < 0.05))}"
        for person in range(24)
        for item in rng.permutation(60)[:25]
    ]
    (place / "labels.csv").write_text("\n".join(["person,item,rude", *said]))
    return place


@pytest.mark.seconds
def test_words_are_features_and_are_shown(folder):
    model = folder / "rude.likeminds"
    told = run(
        *("fit", "--annotations", folder / "labels.csv", "--label-column", "rude", "--out", model),
        *("--texts", folder / "comments.csv", "--holdout", "0.3", "--verb", "find rude"),
    )
    assert told.exit_code == 0, told.output
    assert "items that everyone finds most rude" in told.output
    assert "Without texts: 0." in told.output
    fitted = load(model)
    assert fitted.verb.one("it") == "finds it rude"
    assert not fitted.standardize
    assert any("nitwit" in name for name in fitted.feature_names_)
    explained = json.loads(run("explain", model, "--json").stdout)["explained"][0]
    assert explained["verb"] == "find rude"
    assert any("nitwit" in one["text"] or "scoundrel" in one["text"] for one in explained["agreed"])
    assert explained["consensus"][0]["wish"].startswith("texts with")
    shown = run("explain", model).stdout
    assert "Features people find rude" in shown
    assert " 1 features" not in shown


def test_what_nobody_wrote_is_named(folder, tmp_path):
    lines = (folder / "comments.csv").read_text().splitlines()
    (tmp_path / "few.csv").write_text("\n".join(lines[:-3]))
    asked = ("fit", "--annotations", folder / "labels.csv", "--label-column", "rude", "--out")
    told = run(*asked, tmp_path / "m", "--texts", tmp_path / "few.csv")
    assert told.exit_code == 2
    assert "has no text for 0" in told.output
    told = run(*asked, tmp_path / "m", "--texts", tmp_path / "few.csv", "--images", tmp_path)
    assert "Give --texts or --images, not both" in told.output


def test_a_blank_text_has_no_words(folder, tmp_path):
    lines = (folder / "comments.csv").read_text().splitlines()
    blank = [line.partition(",")[0] + ", " if n in {3, 7} else line for n, line in enumerate(lines)]
    (tmp_path / "blank.csv").write_text("\n".join(blank))
    votes = (folder / "labels.csv").read_text().replace(",0\n", ",-1\n")
    (tmp_path / "votes.csv").write_text(votes.replace("rude", "vote"))
    fit = ("fit", "--annotations", tmp_path / "votes.csv", "--texts", tmp_path / "blank.csv")
    told = run(*fit, "--out", tmp_path / "m")
    assert told.exit_code == 0, told.output
    assert "2 items with a blank text (002, 006)" in told.output
    model = load(tmp_path / "m")
    ids, rows = model.training_items()
    assert not rows[np.isin(ids, ["002", "006"])].any()
    assert "002" not in model.item_names


def test_bad_labels_are_told_before_texts_are_processed(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("likeminds.features.text.TextFeatures.fit", None)
    said = (folder / "labels.csv").read_text().replace(",1\n", ",rude\n").replace(",0\n", ",fine\n")
    (tmp_path / "words.csv").write_text(said)
    fit = ("fit", "--annotations", tmp_path / "words.csv", "--texts", folder / "comments.csv")
    told = run(*fit, "--label-column", "rude", "--out", tmp_path / "m.likeminds")
    assert told.exit_code == 2
    assert "--positive" in told.output


def test_passes_are_noted_once(tmp_path):
    rows = [f"p{k % 12},s{k % 7},{('agree', 'disagree', 'pass')[k % 3]}" for k in range(84)]
    (tmp_path / "votes.csv").write_text("\n".join(["participant,comment,vote", *rows]))
    texts = [f"s{k},a statement about {word}" for k, word in enumerate("abcdefg")]
    (tmp_path / "said.csv").write_text("\n".join(["comment,text", *texts]))
    votes = ("--annotations", tmp_path / "votes.csv", "--texts", tmp_path / "said.csv")
    done = run("fit", *votes, "--out", tmp_path / "m.likeminds")
    assert done.exit_code == 0
    assert done.output.count("Leaving out 28 row(s)") == 1
