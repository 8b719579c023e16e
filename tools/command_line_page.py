"""Run the commands of the pages' console blocks, and write down what they print.

python -m tools.command_line_page [PAGE ...]

Blocks of ``console`` are run, in order, in a folder of their page. Blocks of ``sh`` and ``text``
are not: they install, start services, differ by machine, or name files of the reader. The
screenshot of docs/command-line.md needs chromium; without it, it is left as it is.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tools.quoted_numbers import pages
from tools.screenshots import take

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGE = DOCS / "command-line.md"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_WIDTH = 88


def main(names: list[Path]) -> None:
    """Write the pages anew, each in a folder of its own."""
    for page in names:
        with tempfile.TemporaryDirectory() as folder:
            page.write_text(answered(page.read_text(), Path(folder)))
            if page == PAGE:
                take(Path(folder) / "shoes.html", DOCS / "command-line-report.png", 1000, 2100)


def answered(text: str, folder: Path) -> str:
    """Return a page with what its commands print in a folder."""
    return BLOCK.sub(lambda block: _block(block[1], folder), text)


def _block(block: str, folder: Path) -> str:
    lines = ["```console"]
    for command in _commands(block.splitlines()):
        lines += [f"$ {command}", *_run(command, folder)]
    return "\n".join([*lines, "```"])


def _commands(lines: list[str]) -> Iterator[str]:
    """Yield the commands of a block, each with the lines that its shell reads on."""
    for first, line in enumerate(lines):
        if line.startswith("$ "):
            last = first + 1
            while lines[last - 1].endswith("\\") or not _is_whole("\n".join(lines[first:last])[2:]):
                last += 1
            yield "\n".join(lines[first:last])[2:]


def _is_whole(command: str) -> bool:
    read = subprocess.run(["bash", "-n", "-c", command], capture_output=True, check=False)
    return read.returncode == 0


def _run(command: str, folder: Path) -> list[str]:
    print(f"$ {command}", file=sys.stderr)
    beside = Path(sys.executable).parent
    environment = os.environ | {
        "PATH": f"{beside}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
        "COLUMNS": str(_WIDTH),
    }
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    # Empty lines around tables say nothing on a page.
    return [line for line in lines if line]


if __name__ == "__main__":
    given = [Path(page).resolve() for page in sys.argv[1:]]
    main(given or [page for page in pages() if BLOCK.search(page.read_text())])
