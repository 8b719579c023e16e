"""The benchmark of weights on what all see in items."""

import pytest
from benchmarks.crowd_followers import main


@pytest.mark.slow
def test_it_prints_a_table(capsys):
    main(["--quick"])
    head, rule, row = capsys.readouterr().out.strip().splitlines()
    assert head.count("|") == rule.count("|") == row.count("|") == 5
    assert row.startswith("| camps | ")
