"""The benchmark of shared items' speed, at a size that says nothing about it."""

import pytest
from benchmarks.shared_speed import SIZES, main, make_crowd


@pytest.mark.slow
def test_every_crowd_and_method_has_a_row(capsys):
    main(["--tiny", "--only", "films", "passes", "--methods", "HierarchicalRanker"])
    told = capsys.readouterr().out
    assert "| films | 40, 30, " in told
    assert "| HierarchicalRanker | " in told
    assert "times as long" in told


def test_crowds_are_as_large_as_they_say():
    said = make_crowd(20, 30, 400, 3)
    assert (said.n_users, said.n_items, said.n_features) == (20, 30, 3)
    assert len(said) == 400
    assert SIZES["million"][2] == 1_000_000
