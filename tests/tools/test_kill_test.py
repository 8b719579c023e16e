"""A few kills and one pair of updates; `python -m tools.kill_test` does hundreds."""

import random

import pytest
from tools.kill_test import SIGNALS, kills, make_folder, pairs

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_folder(tmp_path_factory.mktemp("kills") / "crowd", n_users=12)


def test_nothing_is_lost_or_left_behind_by_a_kill(folder):
    found = kills(folder, len(SIGNALS), random.Random(0))
    assert found["wrong"] == []
    assert found["kills"] + found["too late"] >= len(SIGNALS)
    assert not any("broken" in what for what in found["found"])


def test_no_label_is_lost_when_updates_meet(folder):
    found = pairs(folder, 1)
    assert found["exit codes"] == {"0": 2}
    assert found["labels"] == found["labels expected"]
    assert found["people lost"] == []
