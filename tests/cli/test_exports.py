"""Exports of labelling tools, from the file to a model in one command."""

import json

import numpy as np
import pytest

from commands import run, told


@pytest.fixture
def conversation(tmp_path):
    rng = np.random.default_rng(0)
    rows = ["timestamp,datetime,comment-id,voter-id,vote"]
    for voter in range(14):
        votes = rng.choice([1, 1, -1, 0], size=8) if voter % 2 else rng.choice([1, -1], size=8)
        rows += [f"{voter},x,{comment},{voter},{vote}" for comment, vote in enumerate(votes)]
    (tmp_path / "votes.csv").write_text("\n".join(rows) + "\n")
    return tmp_path, "\n".join(rows).count(",0\n")


def test_a_conversation_of_polis(conversation):
    folder, passes = conversation
    done = run(folder, "fit", "--from", "polis", ".", "--out", "m.likeminds")
    assert done.code == 0, done.err
    assert f"{passes} records left out, since it is a pass: vote" in done.out
    assert "by 14 people on 8 items" in done.out
    ask = ("rank", "m.likeminds", "--user", "3", "--top", "2")
    assert len(told(folder, *ask)["rankings"]) == 2
    again = told(folder, "evaluate", "m.likeminds", "--from", "polis", "votes.csv")
    assert 0.5 < again["scores"][0]["auc"] <= 1.0


@pytest.mark.seconds
def test_statements_are_shown_and_their_words_learned_from(conversation):
    folder, _ = conversation
    said = [f"{comment},more {word}" for comment, word in enumerate("abcdefgh")]
    table = "\n".join(["comment-id,comment-body", *said])
    (folder / "comments.csv").write_text(table)
    ask = ("fit", "--from", "polis", ".", "--out", "m.likeminds")
    assert "0 features" in run(folder, *ask).out
    ranked = told(folder, "rank", "m.likeminds")["rankings"]
    assert {row["name"] for row in ranked} == {f"more {word}" for word in "abcdefgh"}
    assert "8 items, 0 features" not in run(folder, *ask, "--texts", ".").out
    (folder / "comments.csv").unlink()
    done = run(folder, *ask, "--texts", ".")
    assert done.code == 2
    assert "has no texts, only labels" in done.err


def test_a_column_taken_for_the_label_is_named(tmp_path):
    rows = [f"p{i},i{j},{int((i + j) % 3 == 0)}" for i in range(4) for j in range(6)]
    for name, announced in (("offensive", True), ("label", False)):
        (tmp_path / "a.csv").write_text("\n".join([f"person,item,{name}", *rows]))
        ask = ("fit", "-a", "a.csv", "--out", "m.likeminds")
        done = run(tmp_path, *ask)
        assert done.code == 0, done.err
        assert (f"Using column {name!r} as the label" in done.out) is announced
        assert "Using column" not in run(tmp_path, *ask, "--quiet").out


def test_chosen_and_rejected_answers(tmp_path):
    answers = ["kind", "short", "long", "rude"]
    records = [
        {"prompt": "hi", "chosen": answers[i], "rejected": answers[j], "user_id": f"u{person}"}
        for person in range(5)
        for i in range(4)
        for j in range(i + 1, 4)
    ]
    text = "\n".join(json.dumps(record) for record in records)
    (tmp_path / "pairs.jsonl").write_text(text)
    done = run(tmp_path, "fit", "--from", "preferences", "pairs.jsonl", "--out", "m.likeminds")
    assert done.code == 0, done.err
    ranked = told(tmp_path, "rank", "m.likeminds")["rankings"]
    assert [row["item"] for row in ranked] == ["answer 1", "answer 2", "answer 3", "answer 4"]


def test_an_unknown_tool_and_nothing_at_all(tmp_path):
    done = run(tmp_path, "fit", "--from", "excel", "x.json", "--out", "m.likeminds")
    assert done.code == 2
    assert "'excel' are not known" in done.err
    done = run(tmp_path, "fit", "--out", "m.likeminds")
    assert done.code == 2
    assert "give --annotations, --comparisons, or --from" in done.err


def test_a_conjoint_of_sawtooth(tmp_path):
    rng = np.random.default_rng(0)
    rows = ["sys_RespNum,Task,Concept,Brand,Weight,Response"]
    for who in range(12):
        for task in range(6):
            brand, weight = rng.integers(1, 4, 3), rng.choice([1.5, 2.5, 4.0], 3)
            utility = 2.0 * (brand == 2) - weight + rng.gumbel(size=3)
            rows += [
                f"{who},{task},{k},{brand[k]},{weight[k]},{int(k == utility.argmax())}"
                for k in range(3)
            ]
    (tmp_path / "cbc.csv").write_text("\n".join(rows))
    done = run(tmp_path, "fit", "--from", "sawtooth", "cbc.csv", "--out", "m.likeminds")
    assert done.code == 0, done.err
    assert "72 choices among 3 by 12 people, 3 features" in done.out
    weights = told(tmp_path, "explain", "m.likeminds", "--user", "3")
    named = str(weights)
    assert "Brand: 2" in named
    assert "Weight" in named
    again = told(tmp_path, "evaluate", "m.likeminds", "--from", "sawtooth", "cbc.csv")
    assert again["scores"][0]["accuracy"] > 0.5


def test_best_and_worst_items_of_a_survey(tmp_path):
    rng = np.random.default_rng(0)
    rows = ["id,set,Item 1,Item 2,Item 3,Best,Worst"]
    for who in range(12):
        for task in range(8):
            shown = rng.choice([*"abcdef"], 3, replace=False)
            order = sorted(shown, key=lambda item: rng.gumbel() + 2 * ord(item))
            rows.append(",".join([str(who), str(task), *shown, order[-1], order[0]]))
    (tmp_path / "maxdiff.csv").write_text("\n".join(rows))
    done = run(tmp_path, "fit", "--from", "sawtooth", "maxdiff.csv", "--out", "m.likeminds")
    assert done.code == 0, done.err
    assert "192 choices among 2 to 3 by 12 people on 6 items" in done.out
    ranked = told(tmp_path, "rank", "m.likeminds")["rankings"]
    assert [row["item"] for row in ranked] == [*"fedcba"]
