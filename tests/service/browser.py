"""A headless Chromium for the tests of the page, where there is one."""

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

# Where Debian puts them; `.ci/chromium` installs both.
_NAMES = ("chromium", "chromium-browser", "google-chrome")
WIDE, PHONE = (1200, 900), (390, 844)
_PATIENCE = 60.0
_SLIPS = ("undefined", "null", "NaN", "[object")


@contextmanager
def chromium() -> Iterator[Any]:
    """Start a browser; skip, with the reason, where that is not possible, except in CI."""
    program = next(filter(None, map(shutil.which, _NAMES)), None)
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        reason = "there is no chromium with chromedriver (.ci/chromium installs them)"
        if os.environ.get("LIKEMINDS_NEEDS_CHROMIUM"):
            pytest.fail(reason)
        pytest.skip(reason)
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = program
    for option in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(option)
    options.add_argument("--hide-scrollbars")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield browser
    finally:
        browser.quit()


class Visitor:
    """Somebody at the page: looks, clicks and types, and waits for what should come."""

    def __init__(self, browser: Any, address: str) -> None:
        self.browser, self.address = browser, address

    def open(self, part: str = "teach", size: tuple[int, int] = WIDE) -> None:
        """Open a part of the page."""
        self.browser.set_window_size(*size)
        self.browser.get("about:blank")
        self.browser.get(f"{self.address}/#{part}")
        self.until_ready(part)

    def run(self, script: str, *given: Any) -> Any:
        """Return what a script returns."""
        return self.browser.execute_script(script, *given)

    def until(self, script: str, *given: Any) -> Any:
        """Wait until a script returns something true."""
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            found = self.run(f"return {script}", *given)
            if found:
                return found
            time.sleep(0.05)
        pytest.fail(f"waited in vain for {script}: {self.run('return document.body.innerText')}")
        return None

    def until_ready(self, part: str) -> None:
        """Wait until a part of the page is there."""
        self.until(
            "(main => main.dataset.ready === arguments[0] && !main.hasAttribute('aria-busy'))"
            "(document.getElementById('main'))",
            part,
        )

    def text(self, selector: str) -> str:
        """Return the text of an element."""
        return str(self.run("return document.querySelector(arguments[0])?.textContent", selector))

    def texts(self, selector: str) -> list[str]:
        """Return the texts of all such elements."""
        script = "return [...document.querySelectorAll(arguments[0])].map(one => one.textContent)"
        return list(self.run(script, selector))

    def click(self, selector: str) -> None:
        """Click an element, as a mouse does."""
        from selenium.webdriver.common.by import By

        self.browser.find_element(By.CSS_SELECTOR, selector).click()

    def press(self, *keys: str) -> None:
        """Press keys, wherever the focus is."""
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.browser).send_keys(*keys).perform()

    def answers(self) -> int:
        """Return how many answers the page says there are."""
        return int(self.text("#count").split()[0])

    def answer(self, how: str, *, by_key: bool = True) -> None:
        """Give an answer, and wait until it counts."""
        before = self.answers()
        if by_key:
            self.press(how[0])
        else:
            self.click(f"[data-action={how}]")
        change = -1 if how == "undo" else 1
        self.until(
            "document.querySelector('#count').textContent.startsWith(arguments[0])",
            f"{before + change} answer",
        )

    def give(self, which: int) -> None:
        """Give one of the answers that are offered, from worst to best or the other way round."""
        before = self.answers()
        answers = "main .grades button, main .slider button, [data-action=no], [data-action=yes]"
        script = "[...document.querySelectorAll(arguments[0])].at(arguments[1]).click()"
        self.run(script, answers, which)
        self.until("!document.querySelector('.card[aria-busy]')")
        self.until(
            "+document.querySelector('#count').textContent.split(' ')[0] > arguments[0]", before
        )

    def mistakes(self) -> list[str]:
        """Return words that a program let slip into what is seen, and what overflows the screen."""
        seen = str(self.run("return document.body.innerText"))
        said = self.run("return document.getElementById('said')?.textContent || ''")
        found = [word for word in _SLIPS if word in f"{seen} {said}"]
        found += ["a double full stop"] * bool(re.search(r"[^.]\.\.([^.]|$)", f"{seen}\n{said}"))
        stray = (
            "return [...document.querySelectorAll('main, main div, main section')]"
            ".filter(one => one.children.length).flatMap(one => [...one.childNodes])"
            ".filter(one => one.nodeType === 3 && one.data.trim()).map(one => one.data)"
        )
        found += [f"stray text {text!r}" for text in self.run(stray)]
        wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        return found + ["wider than the screen"] * bool(self.run(f"return {wide}"))

    def violations(self) -> list[tuple[str, list[str]]]:
        """Return what axe finds wrong."""
        from axe_core_python.selenium import Axe

        found = Axe().run(self.browser, options={"resultTypes": ["violations"]})
        return [(one["id"], [node["html"] for node in one["nodes"]]) for one in found["violations"]]

    def complaints(self) -> list[str]:
        """Return what the browser's console has to complain about."""
        return [str(one["message"]) for one in self.browser.get_log("browser")]
