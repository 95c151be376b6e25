"""Errors of files of records."""

from __future__ import annotations

from harness.errors import UsageError


class RecordError(UsageError):
    """A file of records or a plan that cannot be used; the message is one plain sentence."""
