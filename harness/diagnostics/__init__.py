"""Logs of compilers -> `harness.model.Diagnostic`."""

from harness.diagnostics.lines import LogLine, read_line, read_lines
from harness.diagnostics.parse import parse_log
from harness.diagnostics.telling import place_of, telling_part, tells_most
from harness.protocol.text import clean, no_command, one_line

__all__ = [
    "LogLine",
    "clean",
    "no_command",
    "one_line",
    "parse_log",
    "place_of",
    "read_line",
    "read_lines",
    "telling_part",
    "tells_most",
]
