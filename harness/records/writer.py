"""Writing records: line by line while a run goes on, into a file that keeps what earlier runs found."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from harness.held import stands_at, take_alone
from harness.records.answers import choose
from harness.records.atomic import named_errors, plain_file
from harness.records.beside import Beside
from harness.records.errors import RecordError
from harness.records.inputs import Inputs
from harness.records.jsontext import line_of
from harness.records.lock import busy
from harness.records.plan import Plan, plan_path
from harness.records.programs import identity
from harness.records.record import Record
from harness.records.remarks import Remarks, amended
from harness.records.store import read_file


class RecordWriter:
    """Appends records to a file, which other processes of the same run may append to as well.

    Records of earlier runs stay. When the last process of the run closes the file, it removes those that this
    run has answered again. The plan of the run is written before its first record.

    Parameters
    ----------
    path : Path
        The ``.jsonl`` file.
    plan : Mapping
        What the run set out to do (`harness.records.plan.make_plan`).
    fresh : bool
        Whether to forget what earlier runs left in the file.
    """

    # While a run goes on each of its processes has a shared lock (flock) on the file; who begins a run, or ends one, has to
    # have it alone. The kernel gives a lock back however a process ends. Lines are kept apart by a lock of the other kind (lockf).

    def __init__(self, path: Path, plan: Mapping[str, Any], *, fresh: bool = False) -> None:
        self.path = Path(path)
        self.plan = plan
        self.fresh = fresh
        self.remarks: Remarks = {}
        """Remarks that need a record's neighbors, added as the file is closed."""
        self.inputs = Inputs()
        """Inputs of this process's records, written as the file is closed."""
        self.kept = 0
        """Records of other runs in the file, known once it is closed."""
        self._file = -1
        self._beside = Beside(self.path)
        self._own: set[tuple[str, str]] | None = None
        """Cells whose only record this process has written; None if the file has others."""
        self._size = 0

    def __enter__(self) -> Self:
        """Open the file.

        Raises
        ------
        RecordError
            When another run is writing to it, or when it is no file of records.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        plain_file(self.path)
        while self._file < 0:
            file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
            try:
                self._take(file)
                if stands_at(file, self.path):  # else a run that ended has just put another file in its place
                    self._file, file = file, -1
            finally:
                if file >= 0:
                    os.close(file)
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            there = stands_at(self._file, self.path)
            if there and self.inputs:
                with self._line():
                    self._beside.keep_inputs(self._beside.inputs() | self.inputs)
            if there and take_alone(self._file):
                self._end()
        finally:
            os.close(self._file)
            self._file = -1

    def append(self, record: Record) -> None:
        """Add one line with one write, so that a run that is killed keeps all it had."""
        line = line_of(record)
        with self._line(), named_errors(self.path):
            end = self._mend_end()
            if os.write(self._file, line) != len(line):
                os.ftruncate(self._file, end)
                raise OSError(f"{self.path}: the disk took only a part of a record, which was removed again")
        self._size += len(line)
        if self._own is not None:
            known = len(self._own)
            self._own.add(identity(record))
            self._own = self._own if len(self._own) > known else None

    def _take(self, file: int) -> None:
        """Join the run's other processes, or begin the run if no process is writing."""
        alone = take_alone(file)
        if not alone:
            fcntl.flock(file, fcntl.LOCK_SH)
            alone = not self._is_ours() and take_alone(file)
        if alone and not self._is_ours() and stands_at(file, self.path):
            self._begin(file)
        fcntl.flock(file, fcntl.LOCK_SH)
        if not self._is_ours() and stands_at(file, self.path):
            raise busy(self.path)

    def _is_ours(self) -> bool:
        """Return whether the run that wrote the file last is this one."""
        try:
            return self._beside.is_of(self.plan["run"])
        except (OSError, RecordError):
            return False

    def _begin(self, file: int) -> None:
        if self.fresh:
            os.ftruncate(file, 0)
        earlier: list[Plan] = []
        if os.fstat(file).st_size:
            try:
                read_file(self.path, [])
                earlier = self._beside.plans() if plan_path(self.path).is_file() else []
            except RecordError as error:
                raise RecordError(f"{error}; remove {self.path} to begin anew, or name another file") from None
            self._end_line(file)
        else:
            self._beside.keep_inputs(Inputs())  # those that are there are of records that are no more
            self._own = set()
        now = set(map(identity, self.plan["cells"]))
        # Cells planned again are no longer owed by an earlier run.
        earlier = [{**plan, "cells": [cell for cell in plan["cells"] if identity(cell) not in now]} for plan in earlier]
        self._beside.keep_plans([*earlier, dict(self.plan)])

    def _end_line(self, file: int) -> None:
        """Give a whole last line its end, which editors leave out; half a line is removed before the next one is written."""
        last = self.path.read_bytes().rpartition(b"\n")[2]
        with contextlib.suppress(ValueError, RecursionError):
            json.loads(last)
            os.write(file, b"\n")

    def _end(self) -> None:
        """Remove superseded records, and plans without any cell left."""
        if (
            self._mend_end() == self._size
            and self._own is not None
            and not self.remarks
            and len(self._beside.plans()) == 1
        ):
            return
        lines = self.path.read_bytes().split(b"\n")[:-1]
        found: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for number, line in enumerate(lines):
            record = json.loads(line)
            short = {"line": number, "run": record["run"], **{key: record[key] for key in ("status", "fingerprint")}}
            found.setdefault(identity(record), []).append(short)
        # Where the newest one has no answer and an earlier one has, both are kept.
        left = {
            item["line"]: (item["run"], item["fingerprint"])
            for several in found.values()
            for item in several
            if item in (choose(several), several[-1]) or item["run"] == self.plan["run"]
        }
        runs = {self.plan["run"], *(run for run, _ in left.values())}
        self.kept = sum(run != self.plan["run"] for run, _ in left.values())
        if known := self._beside.inputs():
            wanted_here = known.of({fingerprint for _, fingerprint in left.values()})
            if len(wanted_here.answers) < len(known.answers):
                self._beside.keep_inputs(wanted_here)
        plans = self._beside.plans()
        wanted = [plan for plan in plans if plan["run"] in runs or plan["cells"]]
        if len(left) < len(lines) or len(wanted) < len(plans) or self.remarks:
            content = b"".join(amended(lines[number], self.remarks) + b"\n" for number in sorted(left))
            self._beside.keep_plans(wanted, content)

    @contextlib.contextmanager
    def _line(self) -> Iterator[None]:
        fcntl.lockf(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN)

    def _mend_end(self) -> int:
        """Remove the half line of a writer that was killed: this process holds the lock, so no writer will finish it."""
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
