"""Errors that prevent a report."""

from __future__ import annotations

from harness.errors import UsageError


class ReportError(UsageError):
    """A report cannot be written to its destination; the message is one plain sentence."""


class NothingToReport(ReportError):
    """There is not one record and not one planned cell."""

    exit_code = 3
