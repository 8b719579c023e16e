"""The tables of latent classes, with few starts and one split."""

import pytest
from benchmarks.latent_classes import main


@pytest.mark.seconds
def test_tables_are_printed(capsys):
    main(range(2, 3), range(1), 3)
    printed = capsys.readouterr().out
    assert "| 2 | -4526.8 | 13 | 9130.2 | 0.84 |" in printed
    assert "| learned prior | 0." in printed
