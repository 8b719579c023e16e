"""The benchmark of ties, on tiny crowds."""

import numpy as np
import pytest

from benchmarks import ties


@pytest.mark.parametrize("is_threshold", [False, True])
def test_ties_follow_the_parameter_and_winners_the_scores(is_threshold):
    few, many = (ties.Crowd(nu, is_threshold).draw(0)[3].mean() for nu in (0.2, 2.0))
    assert few < 0.2 < many
    user, won, lost, _ = ties.Crowd(0.5, is_threshold).draw(0)
    assert len(user) == ties.N_USERS * (ties.N_PAIRS + ties.N_HELD_OUT)
    assert (won != lost).all()


@pytest.mark.seconds
def test_the_models_differ_in_ties_only(monkeypatch):
    monkeypatch.setattr(ties, "N_USERS", 30)
    found = ties.measured(2, {"many": ties.Crowd(1.5)})
    row = found["rows"]["many"]
    assert row["predicted ties"] == pytest.approx(row["ties"], abs=0.1)
    assert row["loss gain"][0] == pytest.approx(row["half loss"] - row["davidson loss"])
    assert np.isfinite(row["tie loss gain"]).all()
    assert ties.as_table(found).splitlines()[-1].startswith("| many | ")
