"""Places that cannot be written to, signals, closed streams: how commands end."""

from pathlib import Path

import pytest

from commands import run

LABELS = ("--annotations", "none.csv", "--features", "none.csv")

needs_proc = pytest.mark.skipif(
    not Path("/proc/self").exists(), reason="root writes everywhere else"
)


@needs_proc
@pytest.mark.parametrize(
    "words",
    [
        ("demo", "--out", "/proc/m"),
        ("data", "electricity", "--out", "/proc/power"),
        ("data", "sketch-shoes", "--out", "/proc/shoes"),
        ("simulate", "--out", "/proc/crowd"),
        ("fit", *LABELS, "--out", "/proc/m"),
        ("update", "--model", "none", *LABELS, "--out", "/proc/m"),
        ("evaluate", "--model", "none", *LABELS, "--out", "/proc/aucs.csv"),
        ("compare", *LABELS, "--out", "/proc/found.md"),
        ("compare", *LABELS, "--out", "/proc/found.csv"),
        ("compare", *LABELS, "--plot", "/proc/found.png"),
        ("compare", *LABELS, "--folder", "/proc/found"),
        ("rank", "--model", "none", "--out", "/proc/best.csv"),
        ("newcomer", "--model", "none", "--out", "/proc/best.csv"),
        ("report", "--model", "none", "--out", "/proc/page.html"),
        ("reproduce", "fig3", "--scale", "tiny", "--out", "/proc/reproduced"),
    ],
)
def test_what_cannot_be_written_is_said_before_anything_is_read(tmp_path, words):
    done = run(tmp_path, *words)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("Error: Nothing can be written to the folder /proc (")
    assert done.err.count("\n") == 1


def test_pictures_nobody_can_draw_are_refused_before_anything_is_read(tmp_path):
    done = run(tmp_path, "compare", *LABELS, "--plot", "found.docx")
    assert done.code == 2
    assert done.err.startswith(
        "Error: found.docx is no picture that can be drawn: end its name in ."
    )
    assert " .png" in done.err
