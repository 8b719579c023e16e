"""Votes on statements, without any features: every command of the command line."""

import numpy as np
import pytest

from commands import run, told


@pytest.fixture(scope="module")
def votes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("votes")
    rng = np.random.default_rng(0)
    liked = rng.normal(0, 1.5, 20)
    chance = 1 / (1 + np.exp(-liked))
    lines = ["person,item,label"]
    for i in range(30):
        lines += [f"p{i},s{j},{int(rng.random() < chance[j])}" for j in rng.permutation(20)[:14]]
    (folder / "votes.csv").write_text("\n".join(lines) + "\n")
    (folder / "new.csv").write_text("item,label\ns1,1\ns2,0\ns3,1\n")
    (folder / "more.csv").write_text("person,item,label\nzoe,s1,1\nzoe,s2,0\nzoe,snew,1\n")
    assert run(folder, "fit", "-a", "votes.csv", "--out", "v.likeminds").code == 0
    return folder, int(liked.argmax()), liked


def test_votes_in_words_of_participants_on_comments(votes, tmp_path):
    words = (
        (votes[0] / "votes.csv")
        .read_text()
        .replace("person,item,label", "Participant,comment,vote")
    )
    words = words.replace(",1\n", ",Agree\n").replace(",0\n", ",disagree\n")
    (tmp_path / "votes.csv").write_text(words)
    done = run(tmp_path, "fit", "-a", "votes.csv", "--out", "v.likeminds")
    assert done.code == 0, done.err
    assert "positive: 'Agree'" in done.out + done.err
    assert "20 items" in done.out + done.err


def test_rank_knows_what_all_see_in_an_item(votes):
    folder, _, liked = votes
    rows = told(folder, "rank", "v.likeminds", "--top", "20")["rankings"]
    ranked = liked[[int(row["item"][1:]) for row in rows]]
    assert np.corrcoef(ranked, -np.arange(20))[0, 1] > 0.8


def test_the_consensus_is_evaluated_with_it(votes):
    folder, *_ = votes
    (total,) = told(folder, "evaluate", "v.likeminds", "-a", "votes.csv")["scores"]
    assert total["consensus_auc"] > 0.7
    assert total["auc"] > 0.7


def test_newcomers_are_ranked_and_asked(votes):
    folder, *_ = votes
    ask = ("newcomer", "v.likeminds", "--annotations", "new.csv", "--ask", "2")
    found = told(folder, *ask, "--top", "3")
    assert len({row["score"] for row in found["rankings"]}) == 3
    assert not {"s1", "s2", "s3"} & {row["item"] for row in found["ask"]}


def test_update_takes_new_people_and_new_items(votes):
    folder, *_ = votes
    done = run(folder, "update", "v.likeminds", "-a", "more.csv", "--out", "w.likeminds")
    assert done.code == 0
    heard = " ".join((done.out + done.err).split())
    assert "new people," in heard or "new person," in heard
    assert "new item" in heard
    rows = told(folder, "rank", "w.likeminds", "--user", "zoe")["rankings"]
    assert len(rows) > 5


def test_it_is_said_once_that_no_item_is_shared(tmp_path, votes):
    rng = np.random.default_rng(1)
    said = ["person,item,label,size"]
    for i in range(60):
        size = rng.normal()
        said.append(f"p{i % 10},own{i},{int(rng.random() < 1 / (1 + np.exp(-2 * size)))},{size}")
    (tmp_path / "own.csv").write_text("\n".join(said) + "\n")
    found = run(tmp_path, "fit", "-a", "own.csv", "--out", "own.likeminds")
    assert found.code == 0
    heard = " ".join((found.out + found.err).split())
    assert heard.count("No item was labelled by two users") == 1
    folder, *_ = votes
    found = run(folder, "fit", "-a", "votes.csv", "--out", "again.likeminds")
    assert "No item was judged" not in found.out + found.err
