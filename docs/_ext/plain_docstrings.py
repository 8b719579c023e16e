"""Docstrings are written to be read as they are: what is indented there is a formula, a bar a bar.

reStructuredText would take the first for a quotation, the second for a substitution, and an
underscore at the end of a word for a link.
"""

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_LITERAL = re.compile(r"(``.*?``|`.*?`)")
_NAME = re.compile(r"^[\w, *]+ : ")
_MARKS = re.compile(r"\||(?<=\w)_(?!\w)")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _escaped(line: str) -> str:
    """Return a line of running text that means what it says; numpydoc reads names of parameters."""
    if line.lstrip().startswith((">>>", "...")):
        return line
    name = _NAME.match(line)
    start = name.end() if name else 0
    parts = _LITERAL.split(line[start:])
    plain = (part if part.startswith("`") else _MARKS.sub(r"\\\g<0>", part) for part in parts)
    return line[:start] + "".join(plain)


def as_markup(lines: list[str]) -> list[str]:
    """Return a docstring in which indented paragraphs are literal blocks."""
    result: list[str] = []
    paragraph, literal = 0, None  # the indents of the last paragraph, and of a block's surroundings
    for number, line in enumerate(lines):
        if not line.strip():
            result.append(line)
            continue
        indent = _indent(line)
        if literal is not None and indent <= literal:
            literal = None
        after_gap = number > 0 and not lines[number - 1].strip()
        if literal is None and after_gap and indent > paragraph:
            literal = paragraph
            result += [" " * paragraph + "::", ""]
        result.append(line if literal is not None else _escaped(line))
        if literal is None:
            paragraph = indent
    return result


def _process(  # the arguments of Sphinx
    _app: "Sphinx", _what: str, _name: str, _obj: Any, _options: Any, lines: list[str]
) -> None:
    lines[:] = as_markup(lines)


def setup(app: "Sphinx") -> dict[str, bool]:
    """Let every docstring pass through here before numpydoc reads it."""
    app.connect("autodoc-process-docstring", _process, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
