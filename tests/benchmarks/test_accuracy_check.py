"""The check of accuracy: what it saves, and its verdicts."""

import json

import numpy as np
import pytest
from benchmarks.accuracy_check import compare, main, show


def saved(gain, n_users=30, measure="AUC"):
    """Return scores of users that lie apart from chance by a gain, which differs by user."""
    values = 0.7 + gain * np.linspace(0.9, 1.1, n_users)
    scores = {measure: {str(user): float(value) for user, value in enumerate(values)}}
    return {"electricity": {"10": {"seconds": 1.0, "scores": scores}}}


@pytest.mark.parametrize(
    ("gain", "word"), [(0.01, "better"), (-0.01, "worse"), (0.0, "level"), (1e-5, "level")]
)
def test_verdicts_follow_the_interval_and_the_margin(gain, word):
    [found] = compare(saved(0.0), saved(gain))
    assert found.gain == pytest.approx(gain)
    assert found.low <= found.gain <= found.high
    assert found.word == word
    [loss] = compare(saved(0.0, measure="log loss"), saved(gain, measure="log loss"))
    assert loss.word == {"better": "worse", "worse": "better"}.get(word, word)


def test_differences_are_paired_by_user_and_split():
    before, after = saved(0.0, 3), saved(0.1, 5)
    after["electricity"]["11"] = after["electricity"]["10"]
    [found] = compare(before, after)
    assert found.n_users == 3
    assert not list(compare({"yogurt, choices": {}}, after))
    assert show(after, before) == 1


@pytest.mark.seconds
def test_electricity_before_and_after(tmp_path, capsys):
    path = tmp_path / "before.json"
    options = ["--only", "electricity", "electricity, three levels", "verbagg"]
    options += ["--splits", "1", "--users", "30"]
    assert main([*options, "--save", str(path)]) == 0
    kept = json.loads(path.read_text())
    assert "verbagg: left out" in capsys.readouterr().out
    [split] = kept["electricity"].values()
    assert set(split["scores"]) == {"AUC", "accuracy", "log loss"}
    assert len(split["scores"]["AUC"]) == 30
    assert np.mean(list(split["scores"]["AUC"].values())) > 0.75
    assert main([*options, "--against", str(path)]) == 0
    assert "0 better, 4 level, 0 worse" in capsys.readouterr().out
    for user in split["scores"]["AUC"]:
        split["scores"]["AUC"][user] += 0.05
    path.write_text(json.dumps(kept))
    assert main([*options[:2], *options[4:], "--against", str(path)]) == 1
    assert "1 worse" in capsys.readouterr().out
