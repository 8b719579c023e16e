"""Covariates of people on the command line."""

import json

import numpy as np
import pyarrow as pa
import pytest

from commands import run
from likeminds.data.sources import write_table

ITEMS, PEOPLE = 30, 24
FIT = ("fit", "--annotations", "labels.csv", "--features", "features.csv", "--out", "m.likeminds")
WITH = ("--user-features", "people.csv")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with labels of people whose town says which feature they like."""
    path = tmp_path_factory.mktemp("people")
    rng = np.random.default_rng(0)
    features = rng.normal(size=(ITEMS, 2))
    items, who = np.tile(np.arange(ITEMS), PEOPLE), np.repeat(np.arange(PEOPLE), ITEMS)
    liked = features[items, who % 2] + 0.5 * rng.normal(size=len(who)) > 0
    labels = {"person": [f"p{i}" for i in who], "item": items, "label": liked.astype(int)}
    write_table(pa.table(labels), path / "labels.csv")
    columns = {"item": np.arange(ITEMS), "x0": features[:, 0], "x1": features[:, 1]}
    write_table(pa.table(columns), path / "features.csv")
    towns = {
        "person": [f"p{i}" for i in range(PEOPLE)],
        "town": ["AB"[i % 2] for i in range(PEOPLE)],
    }
    write_table(pa.table(towns), path / "people.csv")
    done = run(path, *FIT, *WITH)
    assert done.code == 0, done.err
    return path


def best_of(folder, *words):
    done = run(folder, "newcomer", "m.likeminds", "--top", "3", "--json", *words)
    assert done.code == 0, done.err
    return {
        row["user"]: row["item"] for row in json.loads(done.out)["rankings"] if row["rank"] == 1
    }


@pytest.mark.seconds
def test_strangers_get_what_goes_with_their_covariates(folder):
    (folder / "new.csv").write_text("person,town\nana,A\nbea,B\ncyn,C\n")
    (folder / "said.csv").write_text("person,item,label\nbea,0,1\ndot,0,1\n")
    found = best_of(folder, "--user-features", "new.csv")
    assert set(found) == {"ana", "bea", "cyn"}
    assert found["ana"] != found["bea"]
    assert set(best_of(folder)) == {"newcomer"}
    assert found["cyn"] == best_of(folder)["newcomer"]
    some = best_of(folder, "--user-features", "new.csv", "--annotations", "said.csv")
    assert set(some) == {"ana", "bea", "cyn", "dot"}


def test_explain_says_what_covariates_go_with(folder):
    done = run(folder, "explain", "m.likeminds")
    assert done.code == 0, done.err
    told = " ".join(done.out.split())
    assert "of the differences go with town (A: " in told
    facts = json.loads(run(folder, "explain", "m.likeminds", "--json").out)
    assert facts["explained"][0]["users_by"][0]["share"] > 0.5


@pytest.mark.seconds
def test_more_people_come_with_theirs(folder):
    lines = (folder / "labels.csv").read_text().splitlines()
    new = [line.replace("p0", "zoe").replace('"zoe"', "zoe") for line in lines if "p0" in line]
    (folder / "more.csv").write_text("\n".join([lines[0], *new]) + "\n")
    (folder / "more_people.csv").write_text("person,town\nzoe,A\n")
    update = ("update", "m.likeminds", "--annotations", "more.csv", "--out")
    done = run(folder, *update, "grown.likeminds", "--user-features", "more_people.csv")
    assert done.code == 0, done.err
    assert "1 new person" in done.out
    (folder / "wrong.csv").write_text("person,height\nzoe,3\n")
    done = run(folder, *update, "no.likeminds", "--user-features", "wrong.csv")
    assert done.code == 2
    assert "unknown covariate(s) height" in done.err


def test_only_one_table_comes_from_standard_input(folder):
    done = run(folder, "newcomer", "m.likeminds", "--annotations", "-", "--user-features", "-")
    assert done.code == 2
    assert "Only one table" in done.err


def test_people_who_rank_alike_may_have_covariates(folder, tmp_path):
    rng = np.random.default_rng(1)
    liked = rng.normal(size=12)
    users, items = np.repeat(np.arange(PEOPLE), 12), np.tile(np.arange(12), PEOPLE)
    said = (rng.logistic(size=len(items)) < liked[items]).astype(int)
    table = {"person": [f"p{i}" for i in users], "item": items, "label": said}
    write_table(pa.table(table), tmp_path / "labels.csv")
    head, *people = (folder / "people.csv").read_text().splitlines()
    lines = [f"{head},planet", *(f"{line},Earth" for line in people)]
    (tmp_path / "people.csv").write_text("\n".join(lines))
    fit = run(
        tmp_path, "fit", "-a", "labels.csv", "--user-features", "people.csv", "--out", "m.likeminds"
    )
    assert fit.code == 0, fit.err
    assert fit.err.count("planet") == 1
    told = run(tmp_path, "explain", "m.likeminds")
    assert " not explain differences between people's rankings." in told.out
    assert "town" in told.out
    assert "planet" not in told.out
