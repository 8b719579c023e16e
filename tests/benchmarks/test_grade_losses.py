"""The benchmark of the loss of grades, on a tiny crowd."""

import pytest
from benchmarks.grade_losses import as_table, measure
from benchmarks.grades import simulated

from likeminds.rankers.loss_selection import CANDIDATES


@pytest.mark.seconds
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_both_choices_are_losses_and_the_lowest_log_loss_is_no_higher():
    found = measure(next(simulated()).graded, 0)
    assert {found["chosen"], found["thorough"]} <= set(CANDIDATES)
    assert found["lowest"] <= found["log loss"] + 1e-9
    table = as_table({"rows": {"tiny": {"users": 20, "runs": [found]}}})
    assert table.splitlines()[-1].startswith("| tiny | 20 | ")
