"""What can be wrong with a file of records."""

from __future__ import annotations


class RecordError(ValueError):
    """A file of records or a plan that cannot be used; the message is one plain sentence."""

    exit_code = 2
