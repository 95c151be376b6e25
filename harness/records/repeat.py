"""Which outcomes can be shown without cumatrix, and the command that does so: for terminal, page and ``cumatrix repro`` itself."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

from harness.records.record import Record

_SHOWN = ("built", "rejected", "crashed", "timed_out")
_ON_DEVICE = ("load", "launch", "verify")


def not_repeatable(record: Record) -> str:
    """Why there is nothing to show of a record, as the rest of a sentence about its cell; empty where there is."""
    status = record["status"]
    if status not in _SHOWN:
        told = "no compiler was asked" if status == "unsupported" else "no compiler answered"
        return f"is {status.replace('_', ' ')}: {told}, so there is nothing to show ({record['reason']})"
    if status != "built" and record["stage"] in _ON_DEVICE:
        return f"failed at {record['stage']}, on a real device: repro shows what compilers say, up to link"
    return ""


def repro_command(record: Record, results: Iterable[str] = ()) -> str:
    """``cumatrix repro 'CELL' --out DIR``, with files of records where they are named; empty where there is nothing to show."""
    if not_repeatable(record):
        return ""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", record["case"].rpartition("/")[2]).strip("-.") or "cell"
    files = [word for file in results for word in ("--results", file)]
    return shlex.join(["cumatrix", "repro", record["cell"], *files, "--out", f"repro-{name}"])
