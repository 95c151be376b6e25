"""Waiting for events of a page, never for a time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from playwright.sync_api import Page


class Visit(Protocol):
    """Function that opens a page of the report."""

    def __call__(
        self,
        address: str = "matrix.html",
        *,
        script: bool = True,
        folder: Path = ...,
        may_say: str = ...,
        **options: Any,  # context of a browser
    ) -> Page: ...


def settled(page: Page) -> Page:
    """Wait until the page has drawn its content and has nothing scheduled."""
    # Handlers of scrolling and resizing run in the next frame, and their results appear in the frame after it.
    frames = "async () => { for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame); }"
    page.evaluate(frames)
    # The predicate must not be async: a promise counts as true.
    page.wait_for_function("() => timers.pending === 0")
    page.evaluate(frames)
    return page
