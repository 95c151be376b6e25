"""Logs of compilers -> `harness.model.Diagnostic`."""

from harness.diagnostics.parse import parse_log
from harness.diagnostics.text import clean, one_line

__all__ = ["clean", "one_line", "parse_log"]
