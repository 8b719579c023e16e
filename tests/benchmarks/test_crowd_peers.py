"""Peers on crowds who judge the same items."""

from types import SimpleNamespace

import numpy as np
import pytest
from benchmarks.accuracy_check import Verdict
from benchmarks.crowd_peers import OURS, Result, TunedFactorisation, calibration_error, page

from likeminds import make_schools


def test_calibration_error_is_the_mean_gap_over_ten_bins():
    labels = np.array([True, False, True, True])
    chance = np.array([0.21, 0.29, 0.95, 1.0])
    ranker = SimpleNamespace(predict_proba=lambda _: np.column_stack([1 - chance, chance]))
    expected = (abs(0.21 + 0.29 - 1) + abs(0.95 + 1.0 - 2)) / 4
    assert calibration_error(ranker, SimpleNamespace(labels=labels)) == pytest.approx(expected)


@pytest.mark.seconds
def test_tuned_factorisation_predicts_better_than_the_share_of_positives():
    crowd = make_schools(40, 30, 60, 6, 2, random_state=0).annotations
    peer = TunedFactorisation().fit(crowd)
    given = peer.predict_proba(crowd)[np.arange(len(crowd)), crowd.labels.astype(int)]
    share = crowd.labels.mean()
    assert -np.log(given).mean() < -share * np.log(share) - (1 - share) * np.log(1 - share)


def test_page_names_peers_that_are_ahead():
    gains = [
        Verdict("un", "AUC", 9, 0.9, 0.8, -0.1, -0.2, -0.05, -0.3),
        Verdict("un", "log loss", 9, 0.4, 0.3, 0.1, 0.05, 0.2, 0.0),
    ]
    peers = [Result(OURS, {}, {"AUC": 0.8}, 1.0, []), Result("myFM", {}, {"AUC": 0.9}, 2.0, gains)]
    text = page({"un": peers}, [60, 61])
    assert "--seed 60 --splits 2" in text
    assert "| un | myFM | AUC 0.9000 | 2.0 | AUC -0.1000 [-0.2000, -0.0500] worse; " in text
    assert text.rstrip().endswith("is behind on: un: myFM (AUC -0.1000).")
