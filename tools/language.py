"""Count patterns that our writing avoids, in docstrings, comments, messages and pages.

python -m tools.language [--list] [PATH ...]

By default it reads the README, the CHANGELOG, ``docs`` and ``src``. In Python files, docstrings,
comments and strings of several words count; in pages, prose outside of code blocks. ``--list``
prints each place.
"""

import argparse
import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
DEFAULT = ("README.md", "CHANGELOG.md", "docs", "src/likeminds")
LONGEST = 25  # words of a sentence
PATTERNS = {
    "somebody, everybody, nobody, whoever": r"(?i)\b(?:some|every|no)body\b|\bwhoever\b",
    '"Of X," or "Where X," in front': r"(?:^|[.:] )(?:Of|Where|Among) [^,.:]{3,60}, (?=[a-z])",
    '"is no" for "is not a"': r"(?<!here )\b(?:is|are|was|were) no (?!longer|more|less)[a-z]+",
    '"so that"': r"\bso that\b",
    "private terms": r"\b(?:strangers?|rivals?|voices|apportion\w*|foretell\w*)\b",
    "personification": r"\b(?:the (?:page|file|table|model|report) (?:tells|knows|wants|asks))\b",
    '"What ..." as a subject': r"(?:^|\. )What (?!is|are|does|do|to)[a-z ]{3,40} (?:is|are|comes) ",
    "dashes": "\N{EM DASH}",
}


def main(paths: Sequence[Path], *, show: bool) -> Counter[str]:
    """Print and return how often each pattern occurs, and how many sentences are too long."""
    counts: Counter[str] = Counter()
    for path in _files(paths):
        for line, text in _prose(path):
            for name, found in _breaks(text):
                counts[name] += 1
                if show:
                    print(f"{path.resolve().relative_to(ROOT)}:{line}: {name}: {found}")
    for name in (*PATTERNS, _TOO_LONG):
        print(f"{counts[name]:6,}  {name}")
    return counts


_TOO_LONG = f"sentences of more than {LONGEST} words"
_JINJA = re.compile(r"\{%.*?%\}|\{#.*?#\}|\{\{.*?\}\}")  # in templates, a value counts as a word


def _breaks(text: str) -> Iterator[tuple[str, str]]:
    """Yield the patterns in a paragraph, each with the words that match."""
    text = _JINJA.sub(lambda code: "x" if code[0].startswith("{{") else "", text)
    for name, pattern in PATTERNS.items():
        for match in re.finditer(pattern, text):
            yield name, match[0].strip()
    for sentence in re.split(r"(?<=[.!?:;])\s+", text):
        if len(re.findall(r"[A-Za-z][\w'-]*", re.sub(r"`[^`]*`", "x", sentence))) > LONGEST:
            yield _TOO_LONG, sentence


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        found = sorted(path.rglob("*")) if path.is_dir() else [path]
        yield from (file for file in found if file.suffix in {".py", ".md"})


def _prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the paragraphs of a file with their first lines."""
    text = path.read_text()
    if path.suffix == ".md":
        # Code keeps its lines, so the numbers stay.
        text = re.sub(r"```.*?```", lambda code: "\n" * code[0].count("\n"), text, flags=re.DOTALL)
        text = re.sub(r"<!--.*?-->", "", text)  # sources of quoted numbers
        yield from _paragraphs(text, 1)
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# ")
        elif token.type == tokenize.STRING and token.string.count(" ") > 2:
            yield from _paragraphs(_content(token.string), token.start[0])


def _content(string: str) -> str:
    """Return the text of a string literal; that of an f-string as it is written."""
    try:
        return str(ast.literal_eval(string))
    except ValueError:
        return string


def _paragraphs(text: str, first: int) -> Iterator[tuple[int, str]]:
    """Yield paragraphs; lines of tables, lists, headings and doctests stand for themselves."""
    lines: list[str] = []
    start = first
    for number, line in enumerate([*text.splitlines(), ""], first):
        alone = re.match(r"\s*(?:[-*|#>]|\d+\.|\.\. )", line)
        if not line.strip() or alone:
            if lines:
                yield start, " ".join(lines)
            lines = []
            if alone and not line.lstrip().startswith((">>>", "|")):
                yield number, line.strip("-*#> ")
            continue
        if not lines:
            start = number
        lines.append(line.strip())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="print each place")
    parser.add_argument("paths", nargs="*", type=Path)
    asked = parser.parse_args()
    main(asked.paths or [ROOT / name for name in DEFAULT], show=asked.list)
