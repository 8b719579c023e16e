"""What came of an input: refused in a sentence, accepted, or wrong."""

import io
import re
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from likeminds.cli import main

# What would speak to a terminal.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
_SHOWN = 200


class Ended(NamedTuple):
    """How a command ended; without a code, in an uncaught exception."""

    code: int | None
    out: str
    err: str


class _Input:
    """Standard input, as text and as bytes."""

    def __init__(self, text: str) -> None:
        self.buffer = io.BytesIO(text.encode("utf-8", "surrogatepass"))


def run(folder: Path, words: Sequence[str], stdin: str = "") -> Ended:
    """Run the program in this process."""
    out, err, before = io.StringIO(), io.StringIO(), sys.stdin
    sys.stdin = _Input(stdin)  # type: ignore[assignment]
    try:
        with chdir(folder), redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings():
            main(words)
        code: int | None = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0
    except Exception as error:
        code = None
        err.write(f"{type(error).__name__}: {error}")
    finally:
        sys.stdin = before
    return Ended(code, out.getvalue(), err.getvalue())


def fault(ended: Ended) -> str:
    """Return what is wrong with how a command ended, or nothing."""
    said = ended.out + ended.err
    if ended.code is None:
        return "an uncaught exception"
    if "Traceback" in said or "a bug of likeminds" in said:
        return "a traceback, or a bug of likeminds"
    if _UNSEEN.search(said):
        return "control characters"
    if ended.code and not re.search(r"Error: \S.*\w", ended.err):
        return f"exit code {ended.code} without a reason"
    if ended.code not in {0, 1, 2}:
        return f"exit code {ended.code}"
    return ""


@dataclass
class Tally:
    """How many inputs of each kind came to what, and what was wrong."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, kind: str, verdict: str, told: object = "") -> None:
        """Count one input."""
        self.counts[kind, verdict] += 1
        if verdict == "wrong":
            self.wrong.append(f"{kind}: {told!s:.{4 * _SHOWN}}")

    def add_command(self, kind: str, words: Sequence[str], ended: Ended, more: str = "") -> None:
        """Count a command; ``more`` is what is wrong besides, if anything."""
        why = fault(ended) or more
        verdict = "wrong" if why else "refused" if ended.code else "accepted"
        self.add(kind, verdict, f"{why}: {list(words)!r}: {ended.err.strip()[-_SHOWN:]}")

    @property
    def tried(self) -> int:
        """How many inputs there were."""
        return sum(self.counts.values())

    def __str__(self) -> str:
        kinds = sorted({kind for kind, _ in self.counts})
        lines = [f"{'':16}{'tried':>8}{'refused':>9}{'accepted':>10}{'wrong':>7}"]
        for kind in [*kinds, "all"]:
            found = [
                sum(n for (k, v), n in self.counts.items() if v == verdict and kind in {k, "all"})
                for verdict in ("refused", "accepted", "wrong")
            ]
            lines.append(f"{kind:16}{sum(found):8}{found[0]:9}{found[1]:10}{found[2]:7}")
        return "\n".join(lines)
