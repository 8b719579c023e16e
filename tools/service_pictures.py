"""The demo's story in pictures: `python -m tools.service_pictures` writes docs/serving-*.png.

It starts the demo on a free port of this machine, answers as a user of its crowd would, and takes
pictures of the page in a headless Chromium, through its driver (.ci/chromium installs both).
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

DOCS = Path(__file__).parents[1] / "docs"
# The likes of a user who calls sturdy shoes comfortable.
_LIKES = ("boot", "sneaker", "high-top", "oxford")


def main() -> None:
    """Take the pictures."""
    with _demo() as address, _browser() as browser:
        browser.set_window_size(1200, 900)
        browser.get(f"{address}/#teach")
        _until(browser, "document.querySelector('#count')")
        _shoot(browser, "serving-start.png", 1200)
        for _ in range(12):
            _answer(browser)
        _shoot(browser, "serving-teach.png", 1200)
        for part in ("compare", "schools", "items"):
            _open(browser, part)
            _shoot(browser, f"serving-{part}.png", 1200)
        browser.set_window_size(390, 844)
        _open(browser, "teach")
        _shoot(browser, "serving-phone.png", 390, 1500)


@contextmanager
def _demo() -> Iterator[str]:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        given = ["serve", "--demo", "--state", folder, "--port", str(port), "--rate", "0"]
        script = "from likeminds.cli import main; main()"
        process = subprocess.Popen([sys.executable, "-c", script, *given], start_new_session=True)
        try:
            address = f"http://127.0.0.1:{port}"
            _wait_for(f"{address}/ready", process)
            yield address
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.wait()


def _wait_for(address: str, process: Any) -> None:
    while process.poll() is None:
        with suppress(OSError), urllib.request.urlopen(address, timeout=5) as answer:
            json.loads(answer.read())
            return
        time.sleep(0.2)
    raise RuntimeError(f"the demo ended with code {process.returncode}")


@contextmanager
def _browser() -> Iterator[Any]:
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        raise SystemExit("There is no chromium with chromedriver: .ci/chromium installs them.")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for option in (
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
    ):
        options.add_argument(option)
    browser = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield browser
    finally:
        browser.quit()


def _until(browser: Any, script: str, *given: Any) -> Any:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        found = browser.execute_script(f"return {script}", *given)
        if found:
            return found
        time.sleep(0.05)
    raise TimeoutError(script)


def _open(browser: Any, part: str) -> None:
    browser.execute_script("location.hash = arguments[0]", part)
    _until(
        browser,
        "document.getElementById('main').dataset.ready === arguments[0]"
        " && !document.getElementById('main').hasAttribute('aria-busy')",
        part,
    )
    time.sleep(0.5)  # pictures of items are on their way


def _answer(browser: Any) -> None:
    shown = browser.execute_script(
        "return [document.querySelector('figcaption').textContent, "
        "document.querySelector('#count').textContent]"
    )
    likes = any(kind in shown[0].lower() for kind in _LIKES) and "heel" not in shown[0].lower()
    browser.execute_script(
        "document.querySelector(`[data-action=${arguments[0]}]`).click()", "yes" if likes else "no"
    )
    _until(browser, "document.querySelector('#count').textContent !== arguments[0]", shown[1])


def _shoot(browser: Any, name: str, width: int, most: int = 1800) -> None:
    height = browser.execute_script("return document.documentElement.scrollHeight")
    browser.set_window_size(width, min(height + 90, most))
    time.sleep(0.5)
    browser.save_screenshot(str(DOCS / name))
    print(DOCS / name)


if __name__ == "__main__":
    main()
