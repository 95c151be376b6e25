"""Files of records: strict reading, and writing record by record."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from harness.diagnostics import one_line
from harness.process_locks import lock_exclusively, stands_at
from harness.records.failures import Remarks, amended
from harness.records.files import Sidecars, busy, named_errors, plain_file
from harness.records.merge import choose, identity
from harness.records.plan import Inputs, Plan, plan_path, read_inputs, read_plans
from harness.records.record import Record, RecordError, line_of, read_json
from harness.records.schema import check_record, check_schema

_CELL = re.compile(rb'"cell": ?("(?:[^"\\]|\\.)+")')


@dataclass(frozen=True, kw_only=True)
class Results:
    """The content of some files of records.

    Parameters
    ----------
    records : tuple of dict
        The records in the order of files and lines.
    plans : tuple of dict
        The plans next to the files.
    warnings : tuple of str
        Warnings for the user: incomplete lines, missing plans.
    incomplete : tuple of str
        The warnings about incomplete lines.
    inputs : Inputs
        The input manifest of the records, if it exists and was requested.
    """

    records: tuple[Record, ...]
    plans: tuple[Plan, ...]
    warnings: tuple[str, ...]
    incomplete: tuple[str, ...] = ()
    inputs: Inputs = field(default_factory=Inputs)


def read_records(paths: Iterable[Path], *, inputs: bool = False) -> Results:
    """Read files of records, and folders of them recursively.

    Parameters
    ----------
    paths : iterable of Path
        ``.jsonl`` files or folders. A file that is named twice is read once.
    inputs : bool
        Whether to read the input manifests as well.

    Raises
    ------
    RecordError
        If a file is damaged. The message names file, line and key. Only an incomplete last line is skipped with a
        warning, because a killed run or a full disk leaves such a line.
    """
    records: list[Record] = []
    plans: list[Plan] = []
    warnings: list[str] = []
    incomplete: list[str] = []
    files = list(_files(paths))
    for path in files:
        found: list[str] = []
        records += read_file(path, found)
        incomplete += found
        warnings += found
        plan_file = plan_path(path)
        if plan_file.is_file():
            plans += read_plans(plan_file)
        else:
            warnings.append(f"{path}: no {plan_file.name} next to it, so planned cells without a record are unknown")
    return Results(
        records=tuple(records), plans=tuple(plans), warnings=tuple(warnings), incomplete=tuple(incomplete),
        inputs=read_inputs(files) if inputs else Inputs(),
    )  # fmt: skip


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    seen: set[Path] = set()
    for path in map(Path, paths):
        if not path.exists():
            raise RecordError(f"{path}: no such file or folder")
        if not path.is_dir() and not path.is_file():
            raise RecordError(
                f"{path}: is a pipe or a device, not a file of records: write the records to a file first"
            )
        for file in sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]:
            if file.is_file() and file.resolve() not in seen:
                seen.add(file.resolve())
                yield file


_PARQUET = b"PAR1"  # the first bytes of a Parquet file


def read_file(path: Path, warnings: list[str]) -> list[Record]:
    """Read one file, and append a warning to `warnings` if a line is skipped."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error.strerror}") from None
    if data.startswith(_PARQUET):
        raise RecordError(f"{path}: is Parquet; this command reads .jsonl, and `cumatrix report` reads both")
    # splitlines() splits at other characters that a log may contain.
    *lines, rest = data.split(b"\n")
    records = [_read_line(line, f"{path}: line {number}") for number, line in enumerate(lines, 1)]
    if rest:
        where = f"{path}: line {len(lines) + 1}"
        if _is_incomplete(rest):
            others = "all before it are used" if records else "the file has no other"
            warnings.append(
                f"{where}: cut off: the line is incomplete, probably because the run was interrupted or the disk was full; "
                f"{_cut(rest)} is left out, {others}; run the same command again to complete the file"
            )
        else:
            records.append(_read_line(rest, where))
    return records


def _is_incomplete(line: bytes) -> bool:
    """Return whether an unfinished last line is the start of a record, or null bytes that some file systems leave."""
    begin = line.strip(b"\0 ")
    if begin and not begin.startswith(b"{"):
        return False
    try:
        json.loads(line.decode())
    except (ValueError, RecursionError):
        return True
    return False


def _cut(line: bytes) -> str:
    """Describe a truncated record: ``the record of wmma/fragments nvrtc cuda12.4 sm_80``, if the line contains that much."""
    found = _CELL.search(line)
    try:
        return f"the record of {one_line(json.loads(found[1]), 200)}" if found else "its record"
    except ValueError:
        return "its record"


def _read_line(line: bytes, where: str) -> Record:
    try:
        value = read_json(line)
        if not isinstance(value, dict):
            raise RecordError("must be a table")
        check_schema(value)
        return check_record(value)
    except RecordError as error:
        raise RecordError(f"{where}: {error}") from None
    except UnicodeDecodeError as error:
        raise RecordError(f"{where}: not UTF-8: {error}") from None
    except ValueError as error:
        raise RecordError(f"{where}: not JSON: {error}") from None


_TOGETHER = 64
"""The number of lines in one write."""


class RecordWriter:
    """Appends records to a file that other processes of the same run may append to as well.

    Records of earlier runs stay. When the last process of the run closes the file, the process removes the records that
    this run has answered again. The plan of the run is written before its first record.

    Parameters
    ----------
    path : Path
        The ``.jsonl`` file.
    plan : Mapping
        The plan of the run (`harness.records.plan.make_plan`).
    fresh : bool
        Whether to remove the records of earlier runs.
    """

    # During a run each of its processes has a shared lock (flock) on the file. The start and the end of a run require
    # an exclusive lock. The kernel releases a lock however a process ends. Another kind of lock (lockf) separates
    # lines.

    def __init__(self, path: Path, plan: Mapping[str, Any], *, fresh: bool = False) -> None:
        self.path = Path(path)
        self.plan = plan
        self.fresh = fresh
        self.remarks: Remarks = {}
        """Remarks that require a record's neighbors, added when the file is closed."""
        self.inputs = Inputs()
        """Inputs of this process's records, written when the file is closed."""
        self.kept = 0
        """The number of other runs' records in the file, known once it is closed."""
        self._file = -1
        self._sidecars = Sidecars(self.path)
        self._own: set[tuple[str, str]] | None = None
        """Cells whose only record is from this process; None if the file has others."""
        self._size = 0
        self._waiting: list[bytes] = []

    def __enter__(self) -> Self:
        """Open the file.

        Raises
        ------
        RecordError
            If another run is writing to the file, or if it is not a file of records.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        plain_file(self.path)
        while self._file < 0:
            file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
            try:
                self._take(file)
                if stands_at(file, self.path):  # else a run that ended has just replaced the file
                    self._file, file = file, -1
            finally:
                if file >= 0:
                    os.close(file)
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            if self._waiting:
                self._write()
            there = stands_at(self._file, self.path)
            if there and self.inputs:
                with self._line():
                    self._sidecars.keep_inputs(self._sidecars.inputs() | self.inputs)
            if there and lock_exclusively(self._file):
                self._end()
        finally:
            os.close(self._file)
            self._file = -1

    def append(self, record: Record, *, together: bool = False) -> None:
        """Add a record as one line with one write, so a killed run keeps all its records.

        With `together`, several lines share a write. Use it if the cache has the outcome anyway.
        """
        line = line_of(record)
        self._waiting.append(line)
        if not together or len(self._waiting) == _TOGETHER:
            self._write()
        self._size += len(line)
        if self._own is not None:
            known = len(self._own)
            self._own.add(identity(record))
            self._own = self._own if len(self._own) > known else None

    def _write(self) -> None:
        lines, self._waiting = b"".join(self._waiting), []
        with self._line(), named_errors(self.path):
            end = self._repair_end()
            if os.write(self._file, lines) != len(lines):
                os.ftruncate(self._file, end)
                raise OSError(f"{self.path}: the disk took only a part of a record, which was removed again")

    def _take(self, file: int) -> None:
        """Join the run's other processes, or begin the run if no process is writing."""
        alone = lock_exclusively(file)
        if not alone:
            fcntl.flock(file, fcntl.LOCK_SH)
            alone = not self._is_ours() and lock_exclusively(file)
        if alone and not self._is_ours() and stands_at(file, self.path):
            self._begin(file)
        fcntl.flock(file, fcntl.LOCK_SH)
        if not self._is_ours() and stands_at(file, self.path):
            raise busy(self.path)

    def _is_ours(self) -> bool:
        """Return whether this run wrote the file last."""
        try:
            return self._sidecars.is_of(self.plan["run"])
        except (OSError, RecordError):
            return False

    def _begin(self, file: int) -> None:
        if self.fresh:
            os.ftruncate(file, 0)
        earlier: list[Plan] = []
        if os.fstat(file).st_size:
            try:
                read_file(self.path, [])
                earlier = self._sidecars.plans() if plan_path(self.path).is_file() else []
            except RecordError as error:
                raise RecordError(f"{error}; remove {self.path} to start again, or name another file") from None
            self._end_line(file)
        else:
            self._sidecars.keep_inputs(Inputs())  # the existing inputs belong to records that are gone
            self._own = set()
        cells = set(map(identity, self.plan["cells"]))
        # An earlier run no longer owes the cells of this plan.
        earlier = [
            {**plan, "cells": [cell for cell in plan["cells"] if identity(cell) not in cells]} for plan in earlier
        ]
        self._sidecars.keep_plans([*earlier, dict(self.plan)])

    def _end_line(self, file: int) -> None:
        """End a complete last line, because editors omit the newline.

        A partial line is removed before the next write.
        """
        last = self.path.read_bytes().rpartition(b"\n")[2]
        with contextlib.suppress(ValueError, RecursionError):
            json.loads(last)
            os.write(file, b"\n")

    def _end(self) -> None:
        """Remove superseded records, and plans without remaining cells."""
        if (
            self._repair_end() == self._size
            and self._own is not None
            and not self.remarks
            and len(self._sidecars.plans()) == 1
        ):
            return
        lines = self.path.read_bytes().split(b"\n")[:-1]
        found: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for number, line in enumerate(lines):
            record = json.loads(line)
            short = {"line": number, "run": record["run"], **{key: record[key] for key in ("status", "fingerprint")}}
            found.setdefault(identity(record), []).append(short)
        # If the newest record has no answer and an earlier one has, both are kept.
        left = {
            item["line"]: (item["run"], item["fingerprint"])
            for several in found.values()
            for item in several
            if item in (choose(several), several[-1]) or item["run"] == self.plan["run"]
        }
        runs = {self.plan["run"], *(run for run, _ in left.values())}
        self.kept = sum(run != self.plan["run"] for run, _ in left.values())
        if known := self._sidecars.inputs():
            wanted_here = known.of({fingerprint for _, fingerprint in left.values()})
            if len(wanted_here.answers) < len(known.answers):
                self._sidecars.keep_inputs(wanted_here)
        plans = self._sidecars.plans()
        wanted = [plan for plan in plans if plan["run"] in runs or plan["cells"]]
        if len(left) < len(lines) or len(wanted) < len(plans) or self.remarks:
            content = b"".join(amended(lines[number], self.remarks) + b"\n" for number in sorted(left))
            self._sidecars.keep_plans(wanted, content)

    @contextlib.contextmanager
    def _line(self) -> Iterator[None]:
        fcntl.lockf(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN)

    def _repair_end(self) -> int:
        """Remove the partial line of a killed writer: this process has the lock, so no writer will finish the line."""
        end = os.fstat(self._file).st_size
        if not end or os.pread(self._file, 1, end - 1) == b"\n":
            return end
        tail = b""
        start = end
        while start and b"\n" not in tail:
            start = max(0, start - 65536)
            tail = os.pread(self._file, end - start, start)
        end -= len(tail.rpartition(b"\n")[2])
        os.ftruncate(self._file, end)
        return end
