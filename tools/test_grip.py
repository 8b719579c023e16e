"""Count what the tests hold on to: internal names and the wording of errors, by folder.

python -m tools.test_grip [--names]

A test may import public names (docs/api.rst), the seams that CONTRIBUTING.md names, and the
module it is named after: ``tests/mixed_model/test_laplace.py`` that of
``likeminds.mixed_model.laplace``. Every
other name of the package is internal.

internal
    Different internal names imported in the folder.
other folders
    Those among them that do not belong to the folder which the tests mirror.
match=
    Errors and warnings tested by their wording.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SEAMS = {f"likeminds.{name}" for name in ("cli", "losses", "components", "solvers")} | {
    "likeminds.mixed_model.losses",
    "likeminds.mixed_model.likelihoods",
}


def main(with_names: bool) -> None:
    """Print a table with a row for each folder of tests, and the sum."""
    tests = ROOT / "tests"
    folders: dict[str, tuple[set[str], int]] = {}
    for path in sorted(tests.rglob("*.py")):
        folder = path.relative_to(tests).parts[0] if path.parent != tests else "."
        names, matches = folders.get(folder, (set(), 0))
        text = path.read_text()
        names |= set(internal_names(text, path.relative_to(tests)))
        folders[folder] = names, matches + len(re.findall(r"\bmatch=", text))
    print(f"{'folder':16}{'internal':>10}{'other folders':>15}{'match=':>8}")
    for folder, (names, matches) in folders.items():
        _print_row(folder, names, _of_others(folder, names), matches)
        if with_names:
            print(*(f"    {name}" for name in sorted(names)), sep="\n")
    everything = set().union(*(names for names, _ in folders.values()))
    others = set().union(*(_of_others(folder, names) for folder, (names, _) in folders.items()))
    _print_row("all", everything, others, sum(matches for _, matches in folders.values()))


def internal_names(text: str, path: Path) -> Iterator[str]:
    """Yield the internal names that the text of a test imports; the path is that below tests."""
    own = ".".join(("likeminds", *path.parent.parts, path.stem.removeprefix("test_")))
    for node in ast.walk(ast.parse(text)):
        found = []
        if isinstance(node, ast.Import):
            found = [(name.name, "") for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            found = [(node.module or "", name.name) for name in node.names]
        for module, name in found:
            whole = f"{module}.{name}".rstrip(".")
            if module.split(".")[0] != "likeminds" or f"{whole}.".startswith(f"{own}."):
                continue
            if whole not in _public() and module not in SEAMS and whole not in SEAMS:
                yield whole


def _public() -> set[str]:
    """Return every name that docs/api.rst lists, and the modules that hold them."""
    names, module = {"likeminds.__version__"}, "likeminds"
    for line in (ROOT / "docs" / "api.rst").read_text().splitlines():
        if found := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = found[1]
            names.add(module)
        elif found := re.match(r"   (\w+)$", line):
            names.add(f"{module}.{found[1]}")
    return names


def _of_others(folder: str, names: set[str]) -> set[str]:
    return {name for name in names if name.split(".")[1] != folder}


def _print_row(folder: str, names: set[str], others: set[str], matches: int) -> None:
    print(f"{folder:16}{len(names):>10}{len(others):>15}{matches:>8}")


if __name__ == "__main__":
    main("--names" in sys.argv[1:])
