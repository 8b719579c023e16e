"""Choice experiments on the command line, from files as mlogit and xlogit users have them."""

import json

import numpy as np
import pandas as pd
import pytest

from commands import run


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    sets = np.repeat(np.arange(120), 3)
    price = rng.normal(size=len(sets)).round(3)
    av = (rng.random(len(sets)) < 0.9).astype(int)
    utility = np.where(av, rng.gumbel(size=len(sets)) - price, -np.inf).reshape(-1, 3)
    chosen = (np.arange(3) == utility.argmax(axis=1)[:, None]).ravel().astype(int)
    columns = {"id": sets // 6, "chid": sets, "alt": np.tile([1, 2, 3], 120), "chosen": chosen}
    pd.DataFrame(columns | {"price": price, "av": av}).to_csv(tmp_path / "long.csv", index=False)
    return tmp_path


def test_alternatives_and_availability_are_read_and_announced(folder):
    done = run(folder, "fit", "--annotations", "long.csv", "--out", "m.likeminds")
    assert done.code == 0, done.err
    assert "choices among" in done.out
    assert "by 20 people, 3 features" in done.out
    assert "relative to 1" in done.err
    assert "not available" in done.err
    ask = ("explain", "m.likeminds", "--table", "--json")
    (facts,) = json.loads(run(folder, *ask).out)["explained"]
    assert [row["feature"] for row in facts["rows"]] == ["price", "alt: 2", "alt: 3"]
    again = run(folder, "evaluate", "m.likeminds", "--annotations", "long.csv")
    assert again.code == 0, again.err
    assert "choices" in run(folder, "card", "m.likeminds").out


def test_other_bases_and_no_constants(folder):
    fit = ("fit", "--annotations", "long.csv", "--out", "m.likeminds")
    assert "relative to 3" in run(folder, *fit, "--base", "3").err
    assert "1 feature" in run(folder, *fit, "--no-constants").out
    assert run(folder, *fit, "--base", "9").code == 2


def test_one_row_per_choice_gives_the_same_model(folder):
    long = pd.read_csv(folder / "long.csv", dtype={"alt": str})
    wide = long.pivot(index="chid", columns="alt", values=["price", "av"])
    wide.columns = [f"{name}{alternative}" for name, alternative in wide.columns]
    chosen = long[long["chosen"] == 1].set_index("chid")
    wide = wide.assign(id=chosen["id"], choice=chosen["alt"], age=30)
    wide.to_csv(folder / "wide.csv", index=False)
    codes = {"1": "x", "2": "y", "3": "z"}
    wide.assign(choice=chosen["alt"].map(codes)).to_csv(folder / "coded.csv", index=False)
    likelihoods = []
    for file, more in (("long", ()), ("wide", ()), ("coded", ("--alternatives", "x=1,y=2,z=3"))):
        tables = ("--annotations", f"{file}.csv", *more)
        done = run(folder, "fit", *tables, "--out", "m.likeminds")
        assert done.code == 0, done.err
        assert ("age" in done.err) == (file != "long")
        assert run(folder, "evaluate", "m.likeminds", *tables).code == 0
        if file == "wide":
            wide.iloc[:1].to_csv(folder / "new.csv", index=False)
            new = run(folder, "newcomer", "m.likeminds", "--annotations", "new.csv", "--top", "2")
            assert "Items that 0 would choose most" in new.out, new.err
        ask = ("explain", "m.likeminds", "--table", "--json")
        (facts,) = json.loads(run(folder, *ask).out)["explained"]
        likelihoods.append(facts["log_likelihood"])
    assert likelihoods == pytest.approx([likelihoods[0]] * 3, rel=1e-9)


def test_columns_are_dropped(folder):
    long = pd.read_csv(folder / "long.csv").assign(noise=lambda table: table["price"].shift(9))
    long.to_csv(folder / "long.csv", index=False)
    fit = ("fit", "--annotations", "long.csv", "--out", "m.likeminds")
    assert run(folder, *fit).code == 2
    assert "3 features" in run(folder, *fit, "--drop", "noise").out
    assert run(folder, *fit, "--drop", "nose").code == 2
