"""Run every command of docs/command-line.md, or of other pages, and write down what it printed.

python -m tools.command_line_page [PAGE ...]

The screenshot needs chromium; without it, it is left as it is.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.screenshots import take

from likeminds.cli.main import broken

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGE = DOCS / "command-line.md"
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_WIDTH = 100


def main(pages: list[Path]) -> None:
    """Write the pages anew, each in a folder of its own."""
    for page in pages:
        with tempfile.TemporaryDirectory() as folder:
            _rewrite(page, Path(folder))
            if page == PAGE:
                take(Path(folder) / "shoes.html", DOCS / "command-line-report.png", 1000, 2100)


def _rewrite(page: Path, folder: Path) -> None:
    page.write_text(_BLOCK.sub(lambda block: _answered(block.group(1), folder), page.read_text()))


def _answered(block: str, folder: Path) -> str:
    """Return a block of commands, each with what it prints."""
    joined = re.sub(r" \\\n *", " ", block)
    commands = [line[2:] for line in joined.splitlines() if line.startswith("$ ")]
    lines = ["```console"]
    for command in commands:
        lines += [broken(f"$ {command}", 90), *_run(command, folder)]
    return "\n".join([*lines, "```"])


def _run(command: str, folder: Path) -> list[str]:
    print(f"$ {command}", file=sys.stderr)
    beside = Path(sys.executable).parent
    environment = os.environ | {
        "PATH": f"{beside}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "COLUMNS": str(_WIDTH),
    }
    done = subprocess.run(
        command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    # Empty lines around tables say nothing on a page.
    return [line for line in lines if line]


if __name__ == "__main__":
    main([Path(page) for page in sys.argv[1:]] or [PAGE])
