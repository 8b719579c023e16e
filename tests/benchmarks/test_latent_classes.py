"""The results of latent classes, with few starts and one split."""

import json

import pytest
from benchmarks.latent_classes import main


@pytest.mark.seconds
def test_results_are_written(tmp_path):
    with pytest.warns(UserWarning, match="BIC still falls"):
        main(tmp_path / "found.json", range(1), 3, 2)
    found = json.loads((tmp_path / "found.json").read_text())
    two = found["criteria"]["2"]
    assert round(two["log_likelihood"], 1) == -4526.8
    assert (two["parameters"], found["classes by BIC"]) == (13, 2)
    assert found["held out"]["prior"]["log_loss"] < found["held out"]["2"]["log_loss"]
