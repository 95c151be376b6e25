"""What can keep a report from being made."""

from __future__ import annotations


class ReportError(Exception):
    """A report cannot be written where it was asked for; the message is one plain sentence."""

    exit_code = 2


class NothingToReport(ReportError):
    """There is not one record and not one planned cell."""

    exit_code = 3
