"""Logs of compilers -> `harness.model.Diagnostic`."""

from harness.diagnostics.lines import Line, read_line, read_lines
from harness.diagnostics.parse import parse_log
from harness.protocol.text import clean, no_command, one_line

__all__ = ["Line", "clean", "no_command", "one_line", "parse_log", "read_line", "read_lines"]
