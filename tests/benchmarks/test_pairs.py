"""The benchmark of comparisons: its rival, its split, and its page."""

import json

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import softmax

from benchmarks import low_rank_reward, pairs
from likeminds import Annotations, score_choices


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("jokes")
    rng = np.random.default_rng(0)
    user, item = np.divmod(np.arange(30 * 12), 12)
    worth = rng.normal(size=(2, 12))
    grade = 2.0 * worth[user % 2, item] + rng.normal(size=len(user))
    np.savez(folder / "jokes.npz", user=user, item=item, grade=grade)
    return folder


def test_slopes_of_the_low_rank_reward_are_those_of_its_loss():
    rng = np.random.default_rng(1)
    V, w = rng.normal(size=(5, 3)), rng.normal(size=(4, 3))
    won, lost, who = rng.integers(5, size=9), rng.integers(5, size=9), rng.integers(4, size=9)

    triples = list(zip(won, lost, who, strict=True))

    def naive(flat):
        mixing = softmax(flat.reshape(4, 3), axis=1)
        reward = V @ mixing.T
        return sum(np.logaddexp(0, reward[b, i] - reward[a, i]) for a, b, i in triples)

    value, by_pair, _ = low_rank_reward._loss(V, w, won, lost, who)
    np.testing.assert_allclose(value, naive(w.ravel()))
    slope = np.zeros_like(w)
    np.add.at(slope, who, by_pair)
    np.testing.assert_allclose(slope.ravel(), approx_fprime(w.ravel(), naive, 1e-7), atol=1e-5)


def test_a_low_rank_reward_tells_two_camps_apart():
    rng = np.random.default_rng(2)
    users = np.repeat(np.arange(20), 30)
    first = rng.integers(8, size=600)
    second = (first + rng.integers(1, 8, size=600)) % 8
    swap = (first < second) == (users % 2 == 0)
    said = Annotations.from_comparisons(
        users, np.where(swap, first, second), np.where(swap, second, first)
    )
    model = low_rank_reward.LowRankReward().fit(said)
    assert score_choices(said, model.predict(said, None)[0]).accuracy.mean > 0.9
    new = said.of_users([0, 1])
    told = new._with(user_ids=np.array([100, 101]))
    found = score_choices(told, model.predict(told, told)[0])
    assert found.accuracy.mean > 0.9


def test_people_and_pairs_are_kept_apart(folder):
    said = pairs.read_pairs(folder / "jokes.npz", seed=0)
    parts = pairs.split(said, seed=0)
    assert not set(parts.train.user_ids) & set(parts.unseen.user_ids)
    assert set(parts.seen.user_ids) <= set(parts.train.user_ids)
    n_rows = [len(part) for part in (parts.train, parts.seen, parts.told, parts.unseen)]
    assert sum(n_rows) == len(said)
    five = parts.shots(5)
    assert set(np.bincount(five.user_codes)) == {10}
    assert parts.shots(0) is None


@pytest.mark.slow
def test_the_page_gets_its_tables(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(low_rank_reward, "RANKS", (2,))
    page = tmp_path / "how-to" / "comparisons.md"
    page.parent.mkdir()
    page.write_text(f"Before\n{pairs.BEGIN}\nearlier\n{pairs.END}\nAfter\n")
    pairs.main(["--data", str(folder), "--seeds", "1", "--out", str(tmp_path)])
    text = page.read_text()
    assert text.startswith("Before\n")
    assert text.endswith("After\n")
    assert "earlier" not in text
    assert "30 people; 1 draw, with seeds 1." in text
    assert "| pooled Bradley-Terry |" in text
    rows = json.loads((tmp_path / "pairs.json").read_text())["rows"]
    assert {row["people"] for row in rows} == {
        *("seen", "new, 0 pairs", "new, 5 pairs", "new, 10 pairs")
    }
