"""Pictures of HTML pages, by chromium; without it, they are left as they are."""

import shutil
import subprocess
import sys
from pathlib import Path


def take(page: Path, target: Path, width: int, height: int) -> None:
    """Write the top of a page as a PNG file."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        print(f"no chromium: {target.name} is left as it is", file=sys.stderr)
        return
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    options += [f"--window-size={width},{height}", f"--screenshot={target}"]
    subprocess.run([browser, *options, page.as_uri()], check=True, capture_output=True)
    print(target)
