"""The journal of a bisection: a file that lets an interrupted one continue.

Most outcomes answer from the cache, as everywhere. This file is for those that are kept nowhere else: a crash, a compilation
without an end, a cell on a real device, one whose reads cannot be followed.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.engine.cache import ResultCache
from harness.engine.context import RunContext
from harness.engine.key import Key
from harness.model import Case, Cell
from harness.records import Record, RecordError
from harness.records.store import read_file

_DAYS = 30
_MOST_FILES = 20_000
_PRODUCTS = (".jsonl", ".json", ".log", ".html", ".parquet")


class Kept:
    """The file of one bisection.

    Parameters
    ----------
    path : Path or None
        The file; None keeps nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._records: dict[str, Record] = {}
        if path is not None:
            _mend(path)
            for record in read_file(path, []) if path.is_file() else ():
                self._records[record["cell"]] = record

    def __len__(self) -> int:
        return len(self._records)

    def answer(self, cell: Cell) -> Record | None:
        """Outcomes of a cell that the cache does not keep."""
        record = self._records.get(cell.id)
        if (
            record is None
            or record["fingerprint"]
            or record["toolchain"]["requested"]["packages"] != dict(cell.toolchain.packages)
        ):
            return None
        return record if record["status"] not in ("unavailable", "harness_error") else None

    def append(self, record: Record) -> None:
        """Keep a record, with one write; a full disk costs the next bisection time, not this one its results."""
        if self.path is None:
            return
        line = json.dumps(record, allow_nan=False, separators=(",", ":")).encode() + b"\n"
        with contextlib.suppress(OSError), open(self.path, "ab", buffering=0) as file:
            file.write(line)


def kept_for(case: Case, context: RunContext, words: Iterable[str]) -> Kept:
    """The file for a program and all that is asked of it.

    Parameters
    ----------
    case : Case
        The program.
    context : RunContext
        What it is run with; without a cache nothing is kept.
    words : iterable of str
        What else is asked: the axis that is searched.
    """
    path = place_for(case, context, words)
    return Kept(path and path.with_suffix(".jsonl"))


def place_for(case: Case, context: RunContext, words: Iterable[str], outside: Path | None = None) -> Path | None:
    """The file of a bisection's journal, None without one; files unused for a month are deleted.

    Parameters
    ----------
    case, context, words
        As for `kept_for`.
    outside : Path, optional
        A folder whose files do not count: what is searched.
    """
    stamp = _stamp(case, context, outside)
    if not isinstance(context.cache, ResultCache) or stamp is None:
        return None
    folder = context.cache.folder.parent / "bisect"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.iterdir():
            if path.stat().st_mtime < time.time() - _DAYS * 86400:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    except OSError:
        return None
    key = Key("bisect").add("words", list(words)).add("limits", asdict(context.limits)).add("program", stamp)
    key.add("python", context.environment.python).add("sanitizer", context.sanitizer)
    return folder / key.hex()[:32]


def _mend(path: Path) -> None:
    """Take away half a line, which a killed process has left, and a file that cannot be read at all."""
    try:
        data = path.read_bytes()
        if data and not data.endswith(b"\n"):
            os.truncate(path, data.rfind(b"\n") + 1)
        read_file(path, [])
    except (OSError, RecordError):
        with contextlib.suppress(OSError):
            path.unlink()


def _stamp(case: Case, context: RunContext, outside: Path | None) -> list[Any] | None:
    """The state of every file that belongs to a program: of its folder and of include directories; None where these are too many."""
    files = [path.absolute() for path in (case.path, *case.sources.values(), *case.together)]
    named = [case.path.parent / folder for rule in case.options for folder in rule.values.get("include", ())]
    folders = {folder.absolute() for folder in (*context.include, *named, *(path.parent for path in files))}
    found: list[Any] = [str(path) for path in files]
    for folder in sorted(folders):
        if outside and folder.is_relative_to(outside):
            continue
        for place, below, names in os.walk(folder):
            below[:] = [
                name for name in below if not name.startswith((".", "__pycache__")) and Path(place, name) != outside
            ]
            for name in names:
                if name.endswith(_PRODUCTS):
                    continue
                with contextlib.suppress(OSError):
                    stat = os.stat(os.path.join(place, name))
                    found.append(f"{place}/{name} {stat.st_size} {stat.st_mtime_ns}")
            if len(found) > _MOST_FILES:
                return None
    return [case.name, sorted(found)]
