"""One bar counts through all parts of a reproduction, by the minutes that each part takes."""

import io
import re
from types import SimpleNamespace

import pytest
from rich.console import Console

from likeminds.paper.experiments import command
from likeminds.paper.experiments.report_page import ReportPart
from likeminds.paper.experiments.setting import SCALES


@pytest.mark.parametrize("pace", [0.6, 1.0, 1.8, 3.0])
def test_the_estimate_is_right_within_a_factor_of_two_after_a_tenth(pace):
    now = 0.0
    minutes = SCALES["quick"].minutes
    chosen, whole = list(minutes), 60 * pace * sum(minutes.values())
    remaining = command._RemainingTime(chosen, SCALES["quick"], lambda: now)
    for part in chosen:
        with remaining.during(part):
            for _ in range(20):
                now += 60 * pace * minutes[part] / 20
                estimate = now / remaining.share()
                if now >= whole / 10:
                    assert whole / 2 < estimate < 2 * whole
    assert remaining.seconds_left() == 0.0
    assert sum(remaining.seconds.values()) == pytest.approx(whole)


def test_kept_parts_do_not_set_the_pace():
    now = 0.0
    remaining = command._RemainingTime(["table1", "fig3"], SCALES["quick"], lambda: now)
    with remaining.during("table1"):
        now += 0.01
    assert remaining.seconds_left() == 60 * SCALES["quick"].minutes["fig3"]


def test_all_parts_count_on_one_bar(monkeypatch, tmp_path, capsys):
    def run(setting):
        for number in range(3):
            setting.store.finished(f"fit {number}")
        return ReportPart("fig5", "title", "found", [], {})

    monkeypatch.setattr(
        command, "import_module", lambda _: SimpleNamespace(run=run, run_figure=run)
    )
    monkeypatch.setattr(command, "judge_claims", lambda _: [])
    console = Console(file=io.StringIO())
    command.reproduce("all", "quick", tmp_path, jobs=1, console=console)
    lines = capsys.readouterr().err.splitlines()
    counts = [int(re.match(r"(\d+) of 100 %", line)[1]) for line in lines]
    assert len(counts) == 3 * len(command.PARTS)
    assert counts == sorted(counts)
    assert "(table1: fit 0)" in lines[0]
