"""Count what a reader walks through: loose modules, layers, and the way of four calls.

python -m tools.walk [CHECKOUT ...]

Each checkout is a folder with ``src/likeminds`` and ``pyproject.toml`` (by default this one), so
that one script measures the state before a change and after it. What is counted:

loose modules
    Files of Python directly in ``src/likeminds``, without ``__init__`` and ``_version``.
layers
    Those of the first contract of import-linter in ``pyproject.toml``.
lines
    Lines in ``src/likeminds/**/*.py``, and how many of them hold code: neither empty, nor a
    comment, nor a docstring.
modules, folder changes
    Of `HierarchicalRanker().fit`, `ThreeLevelRanker().fit`, ``likeminds fit`` and ``likeminds
    report``. Modules are those of likeminds in which a function was called; put in the order of
    their first calls, the folder changes each time a module lies in another folder than the one
    before it. The folder is the first name below likeminds (``rankers`` for
    ``likeminds.rankers.tuning.search``). Loose modules count as one folder, and in the row
    after that as a folder each: nothing says there where one idea ends and the next begins. The
    call is made twice and the second one counts, so that nothing is imported during it; what
    runs while a module is imported never counts.
"""

import ast
import inspect
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import tomllib
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[1]


def main(checkouts: Sequence[Path]) -> None:
    """Print a table with a column for each checkout."""
    columns = [_measure(path.resolve()) for path in checkouts]
    width = max(len(name) for name, _ in columns[0])
    print(" " * width, *(f"{path.resolve().name:>12}" for path in checkouts))
    for row in zip(*columns, strict=True):
        print(f"{row[0][0]:{width}}", *(f"{number:>12,}" for _, number in row))


def _measure(checkout: Path) -> list[tuple[str, int]]:
    """Return every count with its name."""
    package = checkout / "src" / "likeminds"
    settings = tomllib.loads((checkout / "pyproject.toml").read_text())
    loose = {path.stem for path in package.glob("*.py")} - {"__init__", "_version"}
    texts = [path.read_text() for path in package.rglob("*.py")]
    counts = [
        ("loose modules", len(loose)),
        ("layers", len(settings["tool"]["importlinter"]["contracts"][0]["layers"])),
        ("files", len(texts)),
        ("lines", sum(len(text.splitlines()) for text in texts)),
        ("lines of code", sum(map(count_code, texts))),
    ]
    for call, modules in _walks(checkout).items():
        counts += [
            (f"{call}: modules", len(modules)),
            ("  folder changes", count_changes(modules, loose)),
            ("  each loose module a folder", count_changes(modules, set())),
        ]
    return counts


def count_code(text: str) -> int:
    """Return how many lines are neither empty, nor comments, nor in docstrings."""
    lines = text.splitlines()
    code = {i for i, line in enumerate(lines, 1) if line.strip() and line.strip()[0] != "#"}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and ast.get_docstring(node) is not None:
                code -= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return len(code)


def count_changes(modules: Iterable[str], loose: set[str]) -> int:
    """Return how often the folder changes along modules, which are named below likeminds."""
    tops = [module.partition(".")[0] for module in modules]
    folders = ["" if top in loose else top for top in tops]
    return sum(one != other for one, other in pairwise(folders))


def _walks(checkout: Path) -> dict[str, list[str]]:
    """Return the modules of each call, followed in a process of the checkout's own."""
    environment = os.environ | {"PYTHONPATH": str(checkout / "src")}
    done = subprocess.run(
        [sys.executable, __file__, "--follow"],
        env=environment,
        cwd=checkout,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    walks: dict[str, list[str]] = json.loads(done.stdout)
    return walks


def _follow_all() -> dict[str, list[str]]:
    """Return the modules of each call, in the order of their first functions."""
    import likeminds  # noqa: PLC0415 - that of the checkout

    crowd = likeminds.make_schools(24, 16, 60, 12, random_state=0).annotations
    with tempfile.TemporaryDirectory() as folder:
        data, model, page = (str(Path(folder) / name) for name in ("data", "model", "page.html"))
        _run("simulate", "--people", "24", "--out", data)
        tables = [str(next(Path(data).glob(f"{name}.*"))) for name in ("annotations", "features")]
        fit = ["fit", "--annotations", tables[0], "--features", tables[1], "--out", model]
        return {
            "HierarchicalRanker().fit": _follow(lambda: likeminds.HierarchicalRanker().fit(crowd)),
            "ThreeLevelRanker().fit": _follow(lambda: likeminds.ThreeLevelRanker().fit(crowd)),
            "likeminds fit": _follow(lambda: _run(*fit)),
            "likeminds report": _follow(lambda: _run("report", "--model", model, "--out", page)),
        }


def _run(*words: str) -> None:
    """Run a command of likeminds in this process, and keep what it prints to ourselves."""
    from likeminds.cli import main as likeminds  # noqa: PLC0415 - that of the checkout

    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as said:
        try:
            likeminds(words)
        except SystemExit as ended:
            if ended.code:
                raise RuntimeError(f"{words} failed: {said.getvalue()}") from ended


def _follow(call: Callable[[], Any]) -> list[str]:
    """Return the modules of likeminds in which the second of two calls enters functions."""
    entered: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        # Bodies of modules and classes are code, too, but no functions.
        if event == "call" and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            name = re.match(r"likeminds\.(?!_version$)(.+)", frame.f_globals.get("__name__", ""))
            if name:
                entered.setdefault(name[1])

    call()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(entered)


if __name__ == "__main__":
    if sys.argv[1:] == ["--follow"]:
        print(json.dumps(_follow_all()))
    else:
        main([Path(name) for name in sys.argv[1:]] or [ROOT])
