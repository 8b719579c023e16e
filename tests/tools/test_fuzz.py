"""Hostile inputs are refused in a sentence or taken as they are, and what is not is noticed."""

import pytest
from tools.fuzz.__main__ import fuzz
from tools.fuzz.kinds import KINDS
from tools.fuzz.verdicts import Ended, Tally, fault

ENTRIES = ("command lines", "model files", "tables")
AREAS = ("folders", "connectors", "pictures", "reports", "raw HTTP", "Dask")


def test_every_area_is_in_the_harness():
    assert set(KINDS) == {*ENTRIES, *AREAS}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # as in the program, where warnings are notes
@pytest.mark.parametrize(
    ("kinds", "both"),
    [(ENTRIES, ("command lines", "tables")), (AREAS, ("folders", "connectors"))],
    ids=["entries", "areas"],
)
def test_seconds_of_hostile_inputs(kinds, both):  # `make fuzz` takes minutes
    tally = fuzz(seconds=12, first_seed=0, kinds=kinds)
    assert tally.wrong == [], str(tally)
    assert {kind for kind, _ in tally.counts} == set(kinds)
    for kind in both:
        assert tally.counts[kind, "refused"], str(tally)
        assert tally.counts[kind, "accepted"], str(tally)


@pytest.mark.parametrize(
    "ended",
    [
        Ended(None, "", "IndexError: 3"),
        Ended(1, "", "Error: IndexError: x (a bug of likeminds; --debug shows where)"),
        Ended(2, "", "Traceback (most recent call last):\nError: There is no x."),
        Ended(1, "", ""),
        Ended(2, "", "Error: "),
        Ended(0, "ann\x1b[2J", ""),
        Ended(139, "", "Error: There is no x."),
    ],
)
def test_what_is_wrong_is_noticed(ended):
    tally = Tally()
    tally.add_command("command lines", ["rank"], ended)
    assert tally.counts["command lines", "wrong"] == 1


def test_what_is_right_is_counted():
    assert not fault(Ended(2, "", "Error: There is no model x."))
    tally = Tally()
    tally.add_command("tables", ["fit"], Ended(2, "", "Error: There is no model x."))
    tally.add_command("tables", ["fit"], Ended(0, "done", ""))
    tally.add_command("tables", ["fit"], Ended(0, "done", ""), "people became others")
    assert [tally.counts["tables", v] for v in ("refused", "accepted", "wrong")] == [1, 1, 1]
    assert str(tally).splitlines()[-1].split() == ["all", "3", "1", "1", "1"]
    assert "people became others" in tally.wrong[0]
