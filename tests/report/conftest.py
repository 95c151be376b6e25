"""A report of every kind of cell, and a browser to read it with."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .browsing import Visit, settled
from .site_builders import build_site

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page

BROWSERS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Return the Chromium of the machine; skip the tests without one, except if CI requires it."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        if os.environ.get("CI"):
            pytest.fail("CI has no Chromium: apt-get install chromium")
        pytest.skip("no Chromium on the PATH: apt-get install chromium")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        # In a container, root cannot use the sandbox, and /dev/shm has 64 MB.
        chromium = playwright.chromium.launch(
            executable_path=found, args=["--no-sandbox", "--disable-dev-shm-usage"], timeout=300_000
        )
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a report with every kind of cell; return its folder."""
    return build_site(tmp_path_factory.mktemp("site"))


@pytest.fixture
def visit(browser: Browser, site: Path) -> Iterator[Visit]:
    """Return a function that opens a page of the report from disk. An error, a violation of its policy, or a request elsewhere fails the test."""
    problems: list[str] = []
    contexts: list[BrowserContext] = []

    def told(said: ConsoleMessage, may_say: str) -> bool:
        return said.type == "error" and may_say not in said.text

    def dismissed(dialog: Dialog) -> None:
        problems.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def open_page(
        address: str = "matrix.html", *, script: bool = True, folder: Path = site, may_say: str = "\0", **options: Any
    ) -> Page:
        context = browser.new_context(
            java_script_enabled=script, **{"viewport": {"width": 1400, "height": 900}, **options}
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(300_000)  # for events that never happen; it measures nothing
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda said: problems.append(said.text) if told(said, may_say) else None)
        page.on("dialog", dismissed)
        page.on("request", lambda asked: None if asked.url.startswith("file:") else problems.append(asked.url))
        page.goto(f"{folder.as_uri()}/{address}")
        if script and address.startswith(("matrix.html", "index.html")):
            page.wait_for_selector("html[data-ready]")
            settled(page)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not problems
