"""Progress counts once, and expects the work to come by the share that is done."""

import pytest

from likeminds._util.console import in_words, program, progress_bar, report_progress


class Clock:
    """A clock that the test sets."""

    now = 0.0

    def __call__(self):
        return self.now


def test_lines_have_the_time_left_by_the_share_of_the_work(capsys):
    clock = Clock()
    with report_progress(True, "fits", 4, clock) as tell:
        clock.now = 10.0
        tell(1, "quick", 0.1)
        clock.now = 100.0
        tell(4, "slow")
    first, last = capsys.readouterr().err.splitlines()
    assert first == "1 of 4 fits (quick), about 90 s left"
    assert last == "4 of 4 fits (slow), 100 s"


def test_steps_without_an_end_come_once_in_a_second(capsys):
    clock = Clock()
    with report_progress(True, "step", None, clock) as tell:
        for number in range(40):
            clock.now = number / 10
            tell(number, "objective 1")
    assert len(capsys.readouterr().err.splitlines()) == 4


def test_nothing_is_written_unless_asked(capsys):
    with report_progress(False, "fits", 2) as tell:
        tell(1, "one")
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("n_done", [10, 50, 90])
def test_a_bar_expects_the_pace_since_the_start(n_done):
    clock = Clock()
    bar = progress_bar(False, clock)
    task = bar.add_task("fits", total=100)
    for number in range(n_done):  # each second one is a hundred times slower
        clock.now += 100.0 if number % 2 else 1.0
        bar.update(task, advance=1)
    truth = 50 * 101 - clock.now
    assert truth / 2 < bar.tasks[0].fields["lasts"] - clock.now < 2 * truth


def test_a_next_phase_has_its_own_clock_and_end():
    clock = Clock()
    bar = progress_bar(False, clock)
    task = bar.add_task("reading", total=None)
    clock.now = 1000.0
    bar.update(task, completed=8, total=8)
    bar.update(task, description="grouping", completed=0, total=8)
    clock.now += 1.0
    bar.update(task, completed=2, total=8)
    assert bar.tasks[0].fields["lasts"] == 4.0
    bar.update(task, description="learning", completed=0, total=None)
    for number in range(1, 20):
        bar.update(task, completed=number, total=None)
    assert (bar.tasks[0].completed, bar.tasks[0].total) == (19, None)


def test_a_pipe_gets_a_line_every_ten_seconds(capsys):
    clock = Clock()
    with progress_bar(True, clock) as bar:
        task = bar.add_task("learning", total=None)
        for second in range(1, 26):
            clock.now = float(second)
            bar.update(task, description="learning, step", completed=second)
    assert capsys.readouterr().err.splitlines() == [
        "learning, step 10, 10 s",
        "learning, step 20, 20 s",
    ]


def test_durations_are_rounded_to_their_unit():
    assert [in_words(s) for s in (3.4, 119, 180, 36_000)] == ["3 s", "119 s", "3 min", "10.0 h"]


def test_the_program_is_called_by_its_name():
    assert program() == "likeminds"
