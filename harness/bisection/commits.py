"""Outcomes of a checkout's commits, in files that steps of ``git bisect run`` share, and that an interrupted bisect continues from."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.bisection.git import OTHER, SAME, UNTESTABLE, plain_environment
from harness.bisection.seen import Lane, Seen, seen_of
from harness.diagnostics import one_line
from harness.records import Record, RecordError
from harness.records.atomic import replace_files
from harness.records.store import read_file

_TAIL = 4096


@dataclass(frozen=True)
class CommitLog:
    """A folder with the records of each commit.

    Parameters
    ----------
    folder : Path
        The folder.
    """

    folder: Path

    def keep(self, commit: str, records: Sequence[Record], reason: str = "") -> None:
        """Keep what a commit showed, or why it could not be tested."""
        lines = "".join(json.dumps(record, allow_nan=False) + "\n" for record in records)
        replace_files(
            {self._path(commit): lines.encode(), self._path(commit, ".why"): reason.encode("utf-8", "replace")}
        )

    def seen(self, commit: str) -> dict[Lane, Seen] | None:
        """The outcome of a commit; empty if it could not be tested, None if it was not tried."""
        path = self._path(commit)
        try:
            records = read_file(path, []) if path.is_file() else None
        except RecordError:
            return None  # of another version of cumatrix
        if records is None:
            return None
        found = {Lane.of(record, ""): seen_of(record) for record in records}
        return {lane: seen for lane, seen in found.items() if seen}

    def reason(self, commit: str) -> str:
        """The reason why a commit could not be tested."""
        try:
            return self._path(commit, ".why").read_text("utf-8")
        except OSError:
            return ""

    def forget_untestable(self) -> None:
        """Let what could not be tested be tried again: the machine may have been the reason."""
        for path in self.folder.glob("*.why"):
            if path.stat().st_size:
                with contextlib.suppress(OSError):
                    path.with_suffix(".jsonl").unlink()
                    path.unlink()

    def _path(self, commit: str, suffix: str = ".jsonl") -> Path:
        return self.folder / f"{commit}{suffix}"


def compare(old: Mapping[Lane, Seen], now: Mapping[Lane, Seen]) -> int:
    """The answer to ``git bisect run`` for a commit: it differs from the older end as soon as one cell does."""
    common = [lane for lane in old if lane in now]
    if any(old[lane].key != now[lane].key for lane in common):
        return OTHER
    return SAME if len(common) == len(old) else UNTESTABLE


def build(command: str, folder: Path, seconds: float) -> str:
    """Run the project's own command; why it failed, or nothing.

    Parameters
    ----------
    command : str
        For the shell.
    folder : Path
        Where it runs.
    seconds : float
        How long it may take.
    """
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            ["sh", "-c", command], cwd=folder, env=plain_environment(), stdin=subprocess.DEVNULL, stdout=log,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            return f"the build has not ended within {seconds:g} s"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if not code:
            return ""
        log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL))
        lines = [line for line in log.read().decode("utf-8", "replace").splitlines() if line.strip()]
    return f"the build ended with {code}: {one_line(lines[-1] if lines else 'it said nothing', 200)}"
