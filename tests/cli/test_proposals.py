"""What a command proposes to try next works; what it says to do can be done."""

import re
import shlex

import pyarrow as pa
import pytest
from pyarrow import csv

import likeminds
from commands import run

FIT = ("fit", "--annotations", "labels.csv", "--folds", "2", "--jobs", "1")
OURS = ("HierarchicalRanker", "ThreeLevelRanker")
# Sums of components like RMTL, whose report is written for all of them.
ALIKE = ("CMTL", "COMT", "JFL", "LassoMTL", "RAMU", "RMTFL")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("proposals")
    crowd = likeminds.make_schools(6, 12, 12, 4, 2, contested=0.5, random_state=0).annotations
    said = {"person": crowd.users, "item": crowd.items, "label": crowd.labels}
    csv.write_csv(
        pa.table({name: pa.array(v.tolist()) for name, v in said.items()}), folder / "labels.csv"
    )
    columns = {"item": pa.array(crowd.item_ids.tolist())}
    columns |= dict(zip(crowd.feature_names, crowd.features.T, strict=True))
    csv.write_csv(pa.table(columns), folder / "the items.csv")
    wide = {name: pa.array(v.tolist()) for name, v in said.items()}
    wide |= dict(zip(crowd.feature_names, crowd.X.T, strict=True))
    csv.write_csv(pa.table(wide), folder / "wide.csv")
    return folder


def proposed(text):
    """Return the commands after "Next:", as words."""
    lines = text.partition("\nNext: ")[2].splitlines()
    return [shlex.split(re.split(r"    +", line.strip())[0])[1:] for line in lines if line.strip()]


def assert_works(folder, words):
    more = ["--no-diagnostics"] if words[0] == "report" else []  # which take five fits
    done = run(folder, *words, *more)
    assert done.code == 0, (words, done.err)
    return words[0]


@pytest.mark.parametrize(
    "ranker",
    [
        pytest.param(name, marks=pytest.mark.seconds if name in OURS else pytest.mark.slow)
        for name in likeminds.default_rankers()
    ],
)
def test_every_ranker_proposes_what_works(folder, ranker):
    model = f"{ranker} of all.likeminds"
    done = run(folder, *FIT, "--features", "the items.csv", "--ranker", ranker, "--out", model)
    assert done.code == 0, done.err
    commands = proposed(done.out)
    verbs = {words[0] for words in commands}
    assert {"rank", "report"} <= verbs
    for words in commands:
        if words[0] != "report" or ranker not in ALIKE:
            assert_works(folder, words)
    explained = run(folder, "explain", model)
    assert ("explain" in verbs) == (explained.code == 0)


@pytest.mark.seconds
@pytest.mark.parametrize("more", [["--no-data"], ["--ranker", "RMTL"]])
def test_items_that_are_nowhere_else_are_not_proposed(folder, more):
    words = ["fit", "--annotations", "wide.csv", "--out", "wide.likeminds", "--folds", "2", *more]
    done = run(folder, *words)
    assert done.code == 0, done.err
    assert "rank" not in [assert_works(folder, words) for words in proposed(done.out)]


def test_folds_are_an_option_where_they_are_named(folder):
    words = [*FIT, "--features", "the items.csv", "--ranker", "RMTL", "--out", "few.likeminds"]
    done = run(folder, *words, "--folds", "99")
    assert done.code == 2
    assert "Lower --folds" in done.err
    for verb in (words, ["compare", *FIT[1:], "--features", "the items.csv"]):
        done = run(folder, *verb, "--folds", "1")
        assert done.code == 2
        assert "--folds" in done.err
        assert "a bug of likeminds" not in done.err
