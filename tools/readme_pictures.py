"""Make the picture of the README, and show how its first screen looks.

python -m tools.readme_pictures [SCREEN]

Runs the commands of the README on the bundled households and takes the top of the report as
docs/readme-report.png; with SCREEN, a PNG file, the README is rendered and its first screen is
written there. Needs chromium.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from markdown_it import MarkdownIt
from tools.screenshots import take

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "readme-report.png"
_DATA = "data electricity --out power"
_FIT = "fit --annotations power/annotations.csv --features power/features.csv --out power.likeminds"
_REPORT = "report power.likeminds --out power.html"
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 880px; margin: 24px auto; color: #1f2328; }
h1, h2 { border-bottom: 1px solid #d1d9e0; padding-bottom: .3em; }
img { max-width: 100%; } code { background: #f0f2f4; padding: .2em .4em; border-radius: 6px; }
pre { background: #f6f8fa; padding: 16px; overflow: auto; border-radius: 6px; font-size: 85%; }
pre code { background: none; padding: 0; }
"""


def take_report() -> None:
    """Write the top of the report on the households."""
    program = Path(sys.executable).parent / "likeminds"
    with tempfile.TemporaryDirectory() as folder:
        for command in (_DATA, _FIT, _REPORT):
            subprocess.run([program, *command.split()], cwd=folder, check=True)
        take(Path(folder) / "power.html", PICTURE, 1000, 1180)


def take_screen(target: Path) -> None:
    """Write how the README begins on a screen."""
    body = MarkdownIt("gfm-like", {"linkify": False}).render((ROOT / "README.md").read_text())
    page = f"<base href='{ROOT.as_uri()}/'><meta charset='utf-8'><style>{_STYLE}</style>{body}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "readme.html"
        path.write_text(page)
        take(path, target.resolve(), 1280, 1000)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        take_screen(Path(sys.argv[1]))
    else:
        take_report()
