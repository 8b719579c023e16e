"""Places that cannot be written to, signals, closed streams: how commands end."""

import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from rich.progress import Progress

from commands import run
from likeminds.cli import fit
from likeminds.cli._output import Output
from likeminds.cli.main import run_to_the_end

pytestmark = pytest.mark.seconds

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
        ("update", "none", *LABELS, "--out", "/proc/m"),
        ("evaluate", "none", *LABELS, "--out", "/proc/aucs.csv"),
        ("compare", *LABELS, "--out", "/proc/found.md"),
        ("compare", *LABELS, "--out", "/proc/found.csv"),
        ("compare", *LABELS, "--plot", "/proc/found.png"),
        ("compare", *LABELS, "--folder", "/proc/found"),
        ("rank", "none", "--out", "/proc/best.csv"),
        ("newcomer", "none", "--out", "/proc/best.csv"),
        ("report", "none", "--out", "/proc/page.html"),
        ("reproduce", "fig3", "--scale", "tiny", "--out", "/proc/reproduced"),
    ],
)
def test_what_cannot_be_written_is_said_before_anything_is_read(tmp_path, words):
    done = run(tmp_path, *words)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("Error: Cannot write to the folder /proc (")
    assert done.err.count("\n") == 1


def test_pictures_nobody_can_draw_are_refused_before_anything_is_read(tmp_path):
    done = run(tmp_path, "compare", *LABELS, "--plot", "found.docx")
    assert done.code == 2
    assert done.err.startswith("Error: Cannot draw a plot to found.docx: end its name in .")
    assert " .png" in done.err


# Signals.


class _Bell(Progress):
    """A bar that gets a signal as soon as it is told of a step."""

    def __init__(self, number):
        super().__init__(disable=True)
        self.number = number

    def update(self, *_, **__):
        signal.raise_signal(self.number)


FIT = ("fit", "--annotations", "annotations.csv", "--features", "features.csv")
UPDATE = ("update", "m.likeminds", *FIT[1:])


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="needs the signals of Unix")
@pytest.mark.parametrize("words", [UPDATE, (*FIT, "--out", "m.likeminds")], ids=lambda w: w[0])
@pytest.mark.parametrize(
    ("name", "told"),
    [("SIGINT", "Interrupted"), ("SIGTERM", "Terminated"), ("SIGHUP", "Hung up")],
)
def test_a_signal_ends_a_fit_and_keeps_the_model(  # noqa: PLR0917
    copy, monkeypatch, request, words, name, told
):
    before = (copy / "m.likeminds").read_bytes()
    number = signal.Signals[name]
    monkeypatch.setattr(Output, "bar", lambda output: _Bell(number))
    # Who runs the tests may ignore signals (nohup does), and what is ignored stays so.
    handler = signal.default_int_handler if name == "SIGINT" else signal.SIG_DFL
    inherited = signal.signal(number, handler)
    request.addfinalizer(lambda: signal.signal(number, inherited))
    done = run(copy, *words)
    assert done.code == 128 + number
    assert done.err == f"Error: {told}.\n"
    assert (copy / "m.likeminds").read_bytes() == before
    assert {path.name for path in copy.iterdir()} == {
        *("annotations.csv", "features.csv", "truth.csv", "m.likeminds")
    }
    assert signal.getsignal(number) is handler


def test_a_signal_while_an_object_goes_is_not_lost():
    script = """
import signal, sys, time
from likeminds.cli.main import run_to_the_end
signal.signal(signal.SIGINT, signal.default_int_handler)

class Going:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

def work():
    Going()
    time.sleep(60)
    return 0

sys.exit(run_to_the_end(work))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=50, check=False
    )
    assert (done.returncode, done.stderr) == (128 + signal.SIGINT, "Error: Interrupted.\n")


class _Ringing:
    """A lock that gets a signal in one of its methods, while it is held."""

    def __init__(self, moment):
        self.moment, self.lock, self.rings = moment, threading.Lock(), 1

    def acquire(self, *more):
        return self.lock.acquire(*more)

    def release(self):
        self.lock.release()

    def _release_save(self):
        self.release()
        self._ring("wait")

    def _acquire_restore(self, _):
        self.acquire()

    def _is_owned(self):
        return True

    def __enter__(self):
        self.acquire()
        self._ring("enter")

    def __exit__(self, *_):
        self._ring("exit")
        self.release()

    def _ring(self, moment):
        if moment == self.moment and self.rings:
            self.rings = 0
            signal.raise_signal(signal.SIGTERM)


@pytest.mark.parametrize("moment", ["enter", "wait", "exit"])
def test_a_signal_while_a_lock_changes_hands_leaves_it_free(moment, request):
    inherited = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    request.addfinalizer(lambda: signal.signal(signal.SIGTERM, inherited))
    ringing = _Ringing(moment)
    condition = threading.Condition(ringing)

    def work():
        with condition:
            if moment != "exit":
                condition.wait(30)
        time.sleep(30)
        return 0

    assert run_to_the_end(work) == 128 + signal.SIGTERM
    assert not ringing.lock.locked()


def test_what_somebody_wants_ignored_is_ignored(copy, monkeypatch):
    if not hasattr(signal, "SIGHUP"):
        pytest.skip("needs the signals of Unix")
    before = (copy / "m.likeminds").read_bytes()
    handler = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        monkeypatch.setattr(Output, "bar", lambda output: _Bell(signal.SIGHUP))
        assert run(copy, *UPDATE).code == 0
    finally:
        signal.signal(signal.SIGHUP, handler)
    assert (copy / "m.likeminds").read_bytes() != before


def test_the_network_is_not_used(copy, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert run(copy, *UPDATE).code == 0
    for verb in ("rank", "explain"):
        assert run(copy, verb, "m.likeminds").code == 0


# Two at a time.


def program(*words):
    code = "from likeminds.cli import main; main()"
    return [sys.executable, "-c", code, *words]


def _heed_interrupts():
    """Undo what a shell does to programs in the background: they ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.slow
def test_who_comes_second_waits(copy):
    fcntl = pytest.importorskip("fcntl")
    with (copy / "m.likeminds").open("r+b") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        second = subprocess.Popen(
            program(*UPDATE),
            cwd=copy,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=_heed_interrupts,  # noqa: PLW1509 - no threads here
        )
        told = second.stderr.readline()
        assert told == "Note: waiting for another update of m.likeminds.\n"
        assert second.poll() is None
        second.send_signal(signal.SIGINT)
        assert second.wait(timeout=120) == 130
        second.stderr.close()


def test_what_was_replaced_meanwhile_is_kept(copy, monkeypatch):
    """By somebody who knows of no lock."""
    model = copy / "m.likeminds"

    def learned_and_replaced(talk, known, said):
        (copy / "other").write_bytes(b"another model")
        (copy / "other").replace(model)
        return known.update(said)

    monkeypatch.setattr(fit, "_learn_more", learned_and_replaced)
    done = run(copy, *UPDATE)
    assert done.code == 1
    assert done.err.startswith("Error: m.likeminds was changed by another program since it was")
    assert model.read_bytes() == b"another model"


# Streams.


def ended(folder, line):
    """Run a line of a shell in which ``likeminds`` is this version."""
    call = f'likeminds() {{ {shlex.join(program())} "$@"; }}; {line}'
    return subprocess.run(
        ["bash", "-c", call], cwd=folder, capture_output=True, text=True, check=False
    )


RANK = "likeminds rank m.likeminds"
needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="needs a shell")


@pytest.mark.slow
@needs_bash
@pytest.mark.parametrize("command", [f"{RANK} --out -", f"{RANK} --json", "likeminds --help"])
def test_closed_standard_output_is_one_sentence(crowd, command):
    done = ended(crowd, f"{command} >&-")
    assert done.returncode == 1
    assert done.stderr == "Error: Standard output is closed, so the result cannot be written.\n"


@pytest.mark.slow
@needs_bash
@pytest.mark.parametrize("command", [RANK, f"{RANK} --each-user --out -", "likeminds fit --help"])
def test_who_has_read_enough_is_no_error(crowd, command):
    # The pipe is closed before anything is written to it.
    line = f"{{ sleep 0.1; {command}; echo $? >&2; }} | :"
    done = ended(crowd, line)
    assert done.stderr == f"{128 + signal.SIGPIPE}\n"


@pytest.mark.slow
@needs_bash
def test_closed_standard_error_is_no_failure(crowd):
    done = ended(crowd, "likeminds rank none 2>&-")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")
    done = ended(crowd, f"{RANK} --out - <&- 2>&-")
    assert done.returncode == 0
    assert done.stdout.startswith("user,rank,item,score,")


@pytest.mark.slow
@needs_bash
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_behind_standard_output_is_one_sentence(crowd):
    for command in (RANK, "likeminds --version"):
        done = ended(crowd, f"{command} > /dev/full")
        assert done.returncode == 1
        assert done.stderr.startswith("Error: ")
        assert "No space left on device" in done.stderr
        assert done.stderr.count("\n") == 1
