"""Double each constant of the mixed model, and name what notices: python -m tools.constants.

The golden fits (`tools.golden`) of this process run again for each one. The table goes to
docs/development/constants.md: the constant, its value, the reason that its comment gives, and the
fits that move if it is twice as large.
"""

import ast
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools.golden.crowds import CROWDS, Quantities, quantities
from tools.golden.frozen import moves

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "development" / "constants.md"
_HEAD = """# Constants of the mixed model

`python -m tools.constants` wrote this page. It doubles each constant in turn, and names the golden
fits that move. Constants that none notices concern speed, large data or rare inputs.

| constant | value | reason | golden fits that move |
|---|---|---|---|
"""


@dataclass(frozen=True)
class Constant:
    """A number with a name at the top of a module."""

    path: Path
    name: str
    value: str
    reason: str


def constants(folder: Path) -> Iterator[Constant]:
    """Yield the constants of the modules of a folder."""
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text()
        lines = text.splitlines()
        for node in ast.parse(text).body:
            if not isinstance(node, ast.Assign):
                continue
            target, value = node.targets[0], node.value
            single = not isinstance(target, ast.Tuple)
            names = [target] if single else target.elts
            values = [value] if single or not isinstance(value, ast.Tuple) else value.elts
            reason = _comment_above(lines, node.lineno - 1)
            for name, each in zip(names, values, strict=False):
                if _is_number(each):
                    yield Constant(path, ast.unparse(name), ast.unparse(each), reason)


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and not isinstance(node.value, bool)
    if isinstance(node, ast.BinOp):
        return _is_number(node.left) and _is_number(node.right)
    return isinstance(node, ast.UnaryOp) and _is_number(node.operand)


def _comment_above(lines: list[str], at: int) -> str:
    found: list[str] = []
    trailing = re.search(r"  # (.*)", lines[at])
    # Constants that follow each other share a comment.
    while at and re.match(r"\w+ = ", lines[at - 1]):
        at -= 1
    while at and lines[at - 1].startswith("#"):
        at -= 1
        found.insert(0, lines[at][1:].strip())
    return " ".join([*found, *([trailing[1]] if trailing else [])])


def noticed(constant: Constant, before: Mapping[str, Quantities]) -> list[str]:
    """Return the golden fits that differ with twice the value."""
    found = []
    with doubled(constant):
        for crowd, known in before.items():
            try:
                differs = bool(moves(known, quantities(crowd), 0.0))
            except (ArithmeticError, LookupError, TypeError, ValueError):
                differs = True
            found += [crowd] if differs else []
    return found


@contextmanager
def doubled(constant: Constant) -> Iterator[None]:
    """Double a constant wherever it was imported."""
    value = eval(constant.value)
    modules = [module for name, module in sys.modules.items() if name.startswith("likeminds.")]
    users = [module for module in modules if vars(module).get(constant.name) == value]
    for module in users:
        setattr(module, constant.name, 2 * value)
    try:
        yield
    finally:
        for module in users:
            setattr(module, constant.name, value)


def main() -> None:
    """Write the page."""
    rows = []
    before = {crowd: quantities(crowd) for crowd in CROWDS if crowd != "two_dask_workers"}
    for one in constants(ROOT / "src" / "likeminds" / "mixed_model"):
        found = noticed(one, before)
        shown = ", ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
        module = one.path.relative_to(ROOT / "src" / "likeminds").with_suffix("")
        rows.append(
            f"| `{'.'.join(module.parts)}.{one.name}` | {one.value} | {one.reason} | {shown} |"
        )
        print(rows[-1], flush=True)
    PAGE.write_text(_HEAD + "\n".join(rows) + "\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
