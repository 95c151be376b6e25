"""Waiting for a page by what it does, never by the clock."""

from __future__ import annotations

from typing import Any


def settled(page: Any) -> Any:
    """Wait until the page has drawn what it was asked for, and means to do nothing more by itself."""
    page.wait_for_function(
        """async () => {
            // Scrolling and resizing are answered in the next frame, and what that starts in the one after it.
            for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame);
            return timers.pending === 0;
        }"""
    )
    return page
