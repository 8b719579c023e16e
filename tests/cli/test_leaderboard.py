"""``likeminds leaderboard`` of votes in an arena's file."""

import json

import numpy as np
import pandas as pd
import pytest

from commands import run, told
from likeminds import leaderboard, load


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with votes, with and without answers, and their models."""
    place, rng = tmp_path_factory.mktemp("arena"), np.random.default_rng(0)
    votes = []
    for _ in range(400):
        judge = int(rng.integers(12))
        a, b = rng.choice(4, 2, replace=False)
        ahead = (a - b) * (1 if judge % 2 else -1)
        winner = "tie" if rng.random() < 0.1 else "model_a" if ahead > 0 else "model_b"
        votes.append(
            {
                "model_a": f"m{a}",
                "model_b": f"m{b}",
                "winner": winner,
                "judge": f"j{judge}",
                "response_a": "word " * int(rng.integers(1, 50)),
                "response_b": "**word** " * int(rng.integers(1, 50)),
            }
        )
    (place / "styled.jsonl").write_text("\n".join(map(json.dumps, votes)))
    pd.DataFrame(votes).drop(columns=["response_a", "response_b"]).to_csv(
        place / "votes.csv", index=False
    )
    for name, source in (("plain", "votes.csv"), ("styled", "styled.jsonl")):
        done = run(place, "fit", "--from", "arena", source, "--out", f"{name}.likeminds")
        assert done.code == 0, done.err
    return place


def test_leaderboards_of_everyone_schools_and_a_user(folder):
    asked = ("leaderboard", "plain.likeminds", "--schools", "2", "--user", "j1")
    found = told(folder, *asked)["leaderboards"]
    assert [one["by"] for one in found] == ["everyone", "school 1", "school 2", "j1"]
    expected = leaderboard(load(folder / "plain.likeminds"), "j1")
    assert [row["item"] for row in found[-1]["items"]] == expected.items.tolist()
    assert found[-1]["ask_next"] == [list(pair) for pair in expected.ask_next]
    best = {one["items"][0]["item"] for one in found[1:3]}
    assert best == {"m0", "m3"}
    done = run(folder, *asked, "--out", "board.csv")
    assert done.code == 0, done.err
    assert "Ask next: m" in done.out
    assert len(pd.read_csv(folder / "board.csv")) == 16
    assert run(folder, "leaderboard", "plain.likeminds", "--user", "zoe").code == 2


def test_style_is_a_feature_of_each_answer(folder):
    model = load(folder / "styled.likeminds")
    assert list(model.feature_names_) == ["length", "headers", "lists", "bold"]
    assert model.item_effects_
    done = run(folder, "leaderboard", "styled.likeminds")
    assert done.code == 0, done.err


def test_columns_of_style_are_features_of_each_answer(folder):
    rng = np.random.default_rng(1)
    judge, a = rng.integers(10, size=600), rng.integers(4, size=600)
    b = (a + rng.integers(1, 4, size=600)) % 4
    table = pd.DataFrame({"model_a": a, "model_b": b, "judge": judge, "score_a": 1, "score_b": 0})
    table[["length_a", "length_b"]] = rng.integers(1, 2000, size=(600, 2))
    table[["bold_a", "bold_b"]] = rng.integers(9, size=(600, 2))
    longer = np.log1p(table["length_a"]) - np.log1p(table["length_b"])
    # The length alone decides.
    table["winner"] = np.where(rng.logistic(size=600) < 2 * longer, "model_a", "model_b")
    table = table.astype({"model_a": str, "model_b": str})
    table.loc[5, "bold_a"] = np.nan
    table.to_csv(folder / "counted.csv", index=False)
    done = run(folder, "fit", "--from", "arena", "counted.csv", "--out", "counted.likeminds")
    assert done.code == 0, done.err
    assert "lacks the features of style" in done.out + done.err
    model = load(folder / "counted.likeminds")
    assert list(model.feature_names_) == ["length", "bold"]
    length, bold = model.consensus_
    assert length > 1 > 5 * abs(bold)
    (board,) = told(folder, "leaderboard", "counted.likeminds")["leaderboards"]
    assert all(row["low"] < 0 < row["high"] for row in board["items"])
