"""The browser of the tests: Debian's chromium-headless-shell, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Dialog, Page, sync_playwright

AXE = Path(__file__).with_name("vendor") / "axe.min.js"
PLACES = ("/usr/lib/chromium/chromium-headless-shell", "chromium-headless-shell", "chromium", "google-chrome")
SERIOUS = ("serious", "critical")


def find_browser() -> str | None:
    """The program, where there is one; `PENSTOCK_TEST_BROWSER` names another."""
    given = os.environ.get("PENSTOCK_TEST_BROWSER")
    return next((found for place in (given, *PLACES) if place and (found := shutil.which(place))), None)


@contextmanager
def opened_browser() -> Iterator[Browser]:
    program = find_browser()
    if program is None:
        pytest.skip("no browser: apt-get install chromium-headless-shell, or PENSTOCK_TEST_BROWSER=/path/to/chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()


class Watched:
    """A page, and all that went wrong on it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.wrong: list[str] = []
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("dialog", self._refused)
        page.on("console", lambda said: self.wrong.append(said.text) if said.type == "error" else None)
        page.on(
            "request",
            lambda asked: None if asked.url.startswith(("http://127.", "data:")) else self.wrong.append(asked.url),
        )
        page.set_default_timeout(300_000)

    def _refused(self, dialog: Dialog) -> None:
        self.wrong.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def go(self, url: str) -> Page:
        """Opens a page of the console, from nothing: the next one may differ in what is behind the `#` alone."""
        self.page.goto("about:blank")
        self.page.goto(url)
        self.page.wait_for_selector("main h1")
        return self.page

    def findings(self) -> list[str]:
        """What axe finds that is serious."""
        self.page.evaluate(AXE.read_text())
        found: dict[str, Any] = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [
            f"{rule['id']}: {node['html'][:160]} {node.get('failureSummary', '')[:200]}"
            for rule in found["violations"]
            if rule["impact"] in SERIOUS
            for node in rule["nodes"]
        ]
