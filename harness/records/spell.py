"""Wording of status and stage, in one place."""

from __future__ import annotations

from harness.records.record import Other, Record


def at_stage(status: str, stage: str | None) -> str:
    """``rejected at assemble``, or the status alone where there is no stage."""
    return f"{status} at {stage}" if stage else str(status)


def failed_at(record: Record | Other) -> str:
    """Status, and the stage that failed: ``timed_out at compile``; how far something got that was built is left out."""
    return at_stage(record["status"], record["stage"] if record["status"] != "built" else None)
