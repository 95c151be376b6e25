"""Waiting for a page by what it does, never by the clock."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from playwright.sync_api import Page


class Visit(Protocol):
    """Opens a page of the report."""

    def __call__(
        self,
        address: str = "matrix.html",
        *,
        script: bool = True,
        folder: Path = ...,
        may_say: str = ...,
        **options: Any,  # of a browser's context
    ) -> Page: ...


def settled(page: Page) -> Page:
    """Wait until the page has drawn what it was asked for, and means to do nothing more by itself."""
    # Scrolling and resizing are answered in the next frame, and what that starts in the one after it.
    frames = "async () => { for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame); }"
    page.evaluate(frames)
    # Not a predicate that is async: its promise would be taken for a yes.
    page.wait_for_function("() => timers.pending === 0")
    page.evaluate(frames)
    return page
