"""Count what a reader meets: size, names, types, and the modules that four calls pass through.

python -m tools.walk [CHECKOUT ...]

Each checkout is a folder with ``src/likeminds`` and ``pyproject.toml``, by default this one. So one
script measures the state before a change and after it.

lines of code
    Lines that are neither empty, nor a comment, nor part of a docstring.
modules over 400 lines, under 40 lines
    ``__init__`` is left out of the short ones.
names used twice
    Modules, and classes, that share their name with another one; ``__init__`` is left out.
Any parameters
    Parameters typed ``Any``, alone or in a union.
constants of the mixed model
    Module-level names bound to a number, or to a tuple of numbers.
own classes above HierarchicalRanker
    Classes of likeminds in its MRO, without itself.
modules, folder changes
    Modules of likeminds in which a call enters a function, in the order of first calls; and how
    often the folder below likeminds changes along them. The call is made twice and the second one
    counts, so imports do not count.
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
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
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
    texts = {path.relative_to(package): path.read_text() for path in package.rglob("*.py")}
    counts = [("layers", len(settings["tool"]["importlinter"]["contracts"][0]["layers"]))]
    counts += count_structure(texts).items()
    walks = _walks(checkout)
    counts.append(("own classes above HierarchicalRanker", len(walks.pop("mro")) - 1))
    for call, modules in walks.items():
        counts += [(f"{call}: modules", len(modules)), ("  folder changes", count_changes(modules))]
    return counts


def count_structure(texts: Mapping[Path, str]) -> dict[str, int]:
    """Return counts over the modules of a package, given by path."""
    sizes = {path: len(text.splitlines()) for path, text in texts.items()}
    named = [path for path in texts if path.name != "__init__.py"]
    trees = {path: ast.parse(text) for path, text in texts.items()}
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    classes = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
    modules = Counter(path.name for path in named)
    functions = [n for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    parameters = [a for f in functions for a in (*f.args.posonlyargs, *f.args.args)]
    parameters += [a for f in functions for a in f.args.kwonlyargs]
    mixed = [tree for path, tree in trees.items() if path.parts[0] == "mixed_model"]
    return {
        "modules": len(texts),
        "lines": sum(sizes.values()),
        "lines of code": sum(map(count_code, texts.values())),
        "modules over 400 lines": sum(size > 400 for size in sizes.values()),
        "modules under 40 lines": sum(sizes[path] < 40 for path in named),
        "module names used twice": sum(number > 1 for number in modules.values()),
        "class names used twice": sum(number > 1 for number in classes.values()),
        "Any parameters": sum(_is_any(a.annotation) for a in parameters),
        "calls of hasattr": sum(
            isinstance(n, ast.Call) and getattr(n.func, "id", "") == "hasattr" for n in nodes
        ),
        "constants of the mixed model": sum(
            len(_targets(node))
            for tree in mixed
            for node in tree.body
            if isinstance(node, ast.Assign) and _is_number(node.value)
        ),
    }


def _is_any(node: ast.expr | None) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_any(node.left) or _is_any(node.right)
    return getattr(node, "id", "") == "Any"


def _targets(node: ast.Assign) -> list[ast.expr]:
    target = node.targets[0]
    return target.elts if isinstance(target, ast.Tuple) else [target]


def _is_number(node: ast.expr) -> bool:
    """Tell whether an expression consists of numbers and operators (or calls on them)."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and not isinstance(node.value, bool)
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    if isinstance(node, ast.BinOp):
        return _is_number(node.left) and _is_number(node.right)
    if isinstance(node, ast.Tuple):
        return bool(node.elts) and all(map(_is_number, node.elts))
    if isinstance(node, ast.Call):
        return bool(node.args) and all(map(_is_number, node.args))
    return False


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


def count_changes(modules: Iterable[str]) -> int:
    """Return how often the folder changes along modules, which are named below likeminds."""
    folders = [module.partition(".")[0] for module in modules]
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
        _run("simulate", "--n-users", "24", "--out", data)
        tables = [str(next(Path(data).glob(f"{name}.*"))) for name in ("annotations", "features")]
        fit = ["fit", "--annotations", tables[0], "--features", tables[1], "--out", model]
        above = likeminds.HierarchicalRanker.__mro__
        return {
            "mro": [kind.__name__ for kind in above if kind.__module__.startswith("likeminds.")],
            "HierarchicalRanker().fit": _follow(lambda: likeminds.HierarchicalRanker().fit(crowd)),
            "ThreeLevelRanker().fit": _follow(lambda: likeminds.ThreeLevelRanker().fit(crowd)),
            "likeminds fit": _follow(lambda: _run(*fit)),
            "likeminds report": _follow(lambda: _run("report", model, "--out", page)),
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
