"""Peers on crowds who judge the same items."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from benchmarks.accuracy_check import TRIALS, Verdict
from benchmarks.choice_models import SPECIFICATIONS
from benchmarks.crowd_peers import (
    BEGIN,
    END,
    OURS,
    calibration_error,
    calibration_error_by_chance,
    peers_of,
    summary,
    table,
    write,
)
from benchmarks.peer_models import SimulatedMixedLogit, TunedFactorisation

from likeminds import load_electricity, make_schools, split_within_users


def test_calibration_error_is_the_mean_gap_over_ten_bins():
    labels = np.array([True, False, True, True])
    chance = np.array([0.21, 0.29, 0.95, 1.0])
    ranker = SimpleNamespace(predict_proba=lambda _: np.column_stack([1 - chance, chance]))
    expected = (abs(0.21 + 0.29 - 1) + abs(0.95 + 1.0 - 2)) / 4
    assert calibration_error(ranker, SimpleNamespace(labels=labels)) == pytest.approx(expected)


def test_calibration_error_by_chance_is_that_of_labels_drawn_from_the_probabilities():
    ranker = SimpleNamespace(predict_proba=lambda _: np.full((4, 2), 0.5))
    labels = SimpleNamespace(choice_set_codes=None)
    assert calibration_error_by_chance(ranker, labels) == pytest.approx(0.75 / 4, abs=0.05)
    pairs = SimpleNamespace(choice_set_codes=np.array([0, 1, 0, 1]))  # one of two is chosen
    assert calibration_error_by_chance(ranker, pairs) == 0


@pytest.mark.seconds
def test_tuned_factorisation_predicts_better_than_the_share_of_positives():
    crowd = make_schools(40, 30, 60, 6, 2, random_state=0).annotations
    peer = TunedFactorisation().fit(crowd)
    given = peer.predict_proba(crowd)[np.arange(len(crowd)), crowd.labels.astype(int)]
    share = crowd.labels.mean()
    assert -np.log(given).mean() < -share * np.log(share) - (1 - share) * np.log(1 - share)


def test_peers_depend_on_the_kind_of_answer():
    labels = make_schools(10, 5, 20, 6, 2, random_state=0).annotations
    assert list(peers_of(TRIALS["un"], labels))[-2:] == ["myFM", "GPBoost"]
    assert list(peers_of(TRIALS["electricity"], load_electricity())) == ["xlogit"]


def test_mixed_logit_reweights_draws_by_the_training_choices_of_a_user(monkeypatch):
    crowd = load_electricity()
    crowd = crowd.of_users(crowd.user_ids[:2])
    train, test = split_within_users(crowd, 0.3, random_state=0)
    names = list(crowd.feature_names)
    said = SimpleNamespace(
        aic=0.0,
        coeff_names=[*names, *(f"sd.{name}" for name in names)],
        coeff_=np.array([-0.5, -0.1, 1.0, 0.8, -4.0, -4.0] + [0.2] * 6),
    )
    monkeypatch.setattr(SimulatedMixedLogit, "_estimate", lambda *_: said)
    peer = SimulatedMixedLogit(SPECIFICATIONS[0]).fit(train)
    chance = peer.predict_proba(test)[:, 1]
    user, code = test.users[0], test.choice_set_codes[0]

    def shares(part, which):
        utility = np.exp(part.X[which] @ peer._weights)
        return utility / utility.sum(axis=0)

    likelihood = np.ones(peer._weights.shape[1])
    for one in np.unique(train.choice_set_codes[train.users == user]):
        which = train.choice_set_codes == one
        likelihood *= shares(train, which)[train.labels[which]][0]
    asked = test.choice_set_codes == code
    expected = shares(test, asked) @ likelihood / likelihood.sum()
    np.testing.assert_allclose(chance[asked], expected)


def results(word: str) -> dict:
    gain = -0.1 if word == "worse" else 0.1
    gains = [Verdict("un", "AUC", 9, 0.9, 0.8, gain, gain - 0.05, gain + 0.05, -0.3)]
    assert gains[0].word == word
    return {
        OURS: {"means": {"AUC": 0.8}, "seconds": 1.0, "gains": {}},
        "myFM": {"means": {"AUC": 0.9}, "seconds": 2.0, "gains": summary(gains)},
    }


def test_table_names_peers_that_are_ahead():
    text = table({"un": results("worse"), "oasis": results("better")}, [60, 61])
    assert "--seed 60 --splits 2" in text
    assert "| un | myFM | AUC 0.9000 | 2.0 | AUC -0.1000 [-0.1500, -0.0500] worse |" in text
    assert text.rstrip().endswith("is behind on: un: myFM (AUC -0.1000).")


def test_page_keeps_trials_of_the_same_seeds(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before {BEGIN}\nold\n{END} after")
    write(page, {"oasis": results("better")}, [60])
    write(page, {"un": results("worse")}, [60])
    kept = json.loads((tmp_path / "page.json").read_text())
    assert list(kept["trials"]) == ["oasis", "un"]
    text = page.read_text()
    assert text.startswith("before")
    assert text.endswith("after")
    assert "old" not in text
    assert "| oasis | myFM |" in text
    write(page, {"un": results("worse")}, [70])
    assert list(json.loads((tmp_path / "page.json").read_text())["trials"]) == ["un"]
