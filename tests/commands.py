"""Run commands as a shell would: in a folder, with what they print kept apart."""

import io
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from likeminds.cli import main


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


class _Input:
    def __init__(self, text: str) -> None:
        self.buffer = io.BytesIO(text.encode())


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run(folder: Path, *words: str, stdin: str = "", terminal: bool = False) -> Done:
    """Run likeminds in this process; what it prints goes to a pipe, or to a terminal."""
    stream = _Terminal if terminal else io.StringIO
    out, err = stream(), stream()
    before = sys.stdin
    sys.stdin = _Input(stdin)
    try:
        with chdir(folder), redirect_stdout(out), redirect_stderr(err):
            try:
                main(words)
                code = 0
            except SystemExit as ended:
                code = int(ended.code or 0)
    finally:
        sys.stdin = before
    return Done(code, out.getvalue(), err.getvalue())


def run_line(folder: Path, line: str) -> Done:
    """Run one line of a shell: likeminds here, all else in a shell."""
    words = shlex.split(line)
    if words[0] == "likeminds" and not {"|", ">"} & set(words):
        return run(folder, *words[1:])
    if "likeminds" in words:
        return _piped(folder, line)
    done = subprocess.run(line, shell=True, cwd=folder, capture_output=True, text=True, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


def _piped(folder: Path, line: str) -> Done:
    """Run what feeds likeminds in a shell, and likeminds here."""
    first, _, last = line.partition(" | ")
    fed = run_line(folder, first.strip())
    words = shlex.split(last)
    assert words[0] == "likeminds", line
    return run(folder, *words[1:], stdin=fed.out)


def commands_in(text: str) -> list[str]:
    """Return the lines that start with a dollar sign, continued lines put together."""
    joined = re.sub(r" \\ *\n *", " ", text)
    return [line.strip()[2:] for line in joined.splitlines() if line.strip().startswith("$ ")]


def shown(lines: Sequence[str]) -> str:
    """Return some lines as one text."""
    return "\n".join(lines)


def told(folder, *words, stdin=""):
    """Return what a command tells a program."""
    done = run(folder, *words, "--json", stdin=stdin)
    assert done.code == 0, done.err
    return json.loads(done.out)
