"""The benchmark of items' spread, at a size that says little about it."""

import pytest
from benchmarks.item_spread import LABELS_PER_ITEM, SPREAD, main, measure


@pytest.mark.slow
def test_with_many_labels_the_spread_is_found_and_every_row_is_printed(capsys):
    found = measure(100, seed=0, n_items=80)
    assert abs(found.spread - SPREAD) < 0.3
    assert found.covered > 0.8
    main(["--draws", "1", "--items", "60"])
    told = capsys.readouterr().out
    assert all(f"\n| {labels} | " in told for labels in LABELS_PER_ITEM)
