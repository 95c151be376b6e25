"""Bisection of a git checkout with ``git bisect run``, which restores the checkout afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.bisection.search import Lane, LaneOutcome, outcome_of
from harness.diagnostics import one_line
from harness.errors import PartUnavailable, UsageError
from harness.protocol.process_output import run_to_end
from harness.records import Record, RecordError
from harness.records.files import replace_files
from harness.records.store import read_file

SAME, OTHER, UNTESTABLE = 0, 1, 125
"""Exit codes for ``git bisect run``: like the older end, different, or untestable."""

_SECONDS = 120


@dataclass(frozen=True)
class Checkout:
    """A work tree of git.

    Parameters
    ----------
    path : Path
        Top folder.
    """

    path: Path

    @classmethod
    def at(cls, text: str, *, clean: bool = True) -> Checkout:
        """Return the checkout of a path; if `clean`, it must be ready for a bisection.

        Raises
        ------
        UsageError
            If the path is no checkout, has uncommitted changes, or is being bisected already.
        PartUnavailable
            If git is not installed.
        """
        folder = Path(text).expanduser()
        if not folder.is_dir():
            raise UsageError(f"--over git:{text}: there is no such folder")
        try:
            here = cls(folder)
            top = here.git("rev-parse", "--show-toplevel")
        except UsageError:
            raise UsageError(f"--over git:{text}: that is no checkout of git") from None
        here = cls(Path(top))
        if not clean:
            return here
        if here.git("status", "--porcelain", "--untracked-files=no"):
            raise UsageError(
                f"{top} has changes that are not committed, which checking out other commits would mix up: commit or stash them"
            )
        if (here.path / here.git("rev-parse", "--git-path", "BISECT_START")).is_file():
            raise UsageError(f"a bisect of {top} is under way: `git -C {top} bisect reset` ends it")
        return here

    def git(self, *words: str) -> str:
        """Run git and return its output.

        Raises
        ------
        UsageError
            If git fails, with its message.
        """
        try:
            done = subprocess.run(
                ["git", "-C", str(self.path), *words], capture_output=True, text=True, errors="replace",
                timeout=_SECONDS, env=plain_environment(), stdin=subprocess.DEVNULL,
            )  # fmt: skip
        except FileNotFoundError:
            raise PartUnavailable("there is no git on the PATH") from None
        except subprocess.TimeoutExpired:
            raise PartUnavailable(f"git {words[0]} has not ended within {_SECONDS} s in {self.path}") from None
        if done.returncode:
            raise UsageError(f"git {words[0]}: {one_line(done.stderr or done.stdout, 300)}")
        return done.stdout.strip()

    def commit(self, rev: str) -> str:
        """Return the full name of a commit.

        Raises
        ------
        UsageError
            If the name is unknown.
        """
        try:
            return self.git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{rev}^{{commit}}")
        except UsageError:
            raise UsageError(f"{self.path} has no commit {rev!r}") from None

    def is_ancestor(self, old: str, new: str) -> bool:
        """Return whether one commit is in the history of another."""
        return self.git("merge-base", old, new) == old

    def between(self, old: str, new: str) -> list[str]:
        """Return the commits between two, oldest first, both included."""
        return [old, *self.git("rev-list", "--reverse", "--topo-order", f"{old}..{new}").splitlines()]

    def subjects(self, commits: Sequence[str]) -> dict[str, str]:
        """Return the short name and subject of each commit."""
        output = self.git("log", "--no-walk=unsorted", "--format=%H%x09%h%x09%s", *commits)
        rows = [line.split("\t", 2) for line in output.splitlines()]
        return {sha: f"{short} ({one_line(subject, 72)})" for sha, short, subject in rows}

    @contextmanager
    def bisecting(self) -> Iterator[None]:
        """Restore the current checkout at exit."""
        self.git("bisect", "start")
        try:
            yield
        finally:
            self.git("bisect", "reset")

    def first_different(self, old: str, new: str, step: Sequence[str], *, quiet: bool = False) -> list[str]:
        """Run ``git bisect run`` and return the first commit that `step` reports as different from `old`.

        If commits next to it are untestable, the list contains every possible first commit.

        Parameters
        ----------
        old, new : str
            The ends, which `step` reports as different.
        step : sequence of str
            Command that exits with 0, 1 or 125.
        quiet : bool
            Whether to hide the command's errors.
        """
        self.git("bisect", "start", new, old)
        run_alone(["git", "-C", str(self.path), "bisect", "run", *step], quiet=quiet)
        log = self.git("bisect", "log")
        found = re.findall(r"^# (?:first|possible first) bad commit: \[([0-9a-f]+)\]", log, re.MULTILINE)
        if not found:
            raise UsageError(
                f"git bisect came to no end: {one_line(log.splitlines()[-1] if log else 'it has no log', 300)}"
            )
        return found


def run_alone(argv: Sequence[str], *, quiet: bool = False) -> None:
    """Run a command without git's variables and without its output; its errors appear unless `quiet`.

    See `harness.protocol.process_output.run_to_end`.
    """
    errors = subprocess.DEVNULL if quiet else None
    run_to_end(argv, env=plain_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)


def plain_environment() -> dict[str, str]:
    """Return the environment without git's variables for its children, and without prompts on the terminal."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("GIT_") or key in ("GIT_SSH", "GIT_SSH_COMMAND")
    }
    return {**kept, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8"}


_TAIL = 4096


@dataclass(frozen=True)
class CommitLog:
    """A folder of records by commit.

    Parameters
    ----------
    folder : Path
        The folder.
    """

    folder: Path

    def keep(self, commit: str, records: Sequence[Record], reason: str = "") -> None:
        """Store the records of a commit, or the reason why it was untestable."""
        lines = "".join(json.dumps(record, allow_nan=False) + "\n" for record in records)
        replace_files(
            {self._path(commit): lines.encode(), self._path(commit, ".why"): reason.encode("utf-8", "replace")}
        )

    def outcomes(self, commit: str) -> dict[Lane, LaneOutcome] | None:
        """Return the outcomes of a commit; empty if it was untestable, None if it was not tested."""
        path = self._path(commit)
        try:
            records = read_file(path, []) if path.is_file() else None
        except RecordError:
            return None  # written by another version of cumatrix
        if records is None:
            return None
        found = {Lane.of_commit(record): outcome_of(record) for record in records}
        return {lane: outcome for lane, outcome in found.items() if outcome}

    def reason(self, commit: str) -> str:
        """Return the reason why a commit was untestable."""
        try:
            return self._path(commit, ".why").read_text("utf-8")
        except OSError:
            return ""

    def forget_untestable(self) -> None:
        """Delete the results of untestable commits, since the machine may have been the reason."""
        for path in self.folder.glob("*.why"):
            if path.stat().st_size:
                with contextlib.suppress(OSError):
                    path.with_suffix(".jsonl").unlink()
                    path.unlink()

    def _path(self, commit: str, suffix: str = ".jsonl") -> Path:
        return self.folder / f"{commit}{suffix}"


def compare(old: Mapping[Lane, LaneOutcome], new: Mapping[Lane, LaneOutcome]) -> int:
    """Return the exit code of a commit for ``git bisect run``: it differs from the older end if at least one cell does."""
    common = [lane for lane in old if lane in new]
    if any(old[lane].key != new[lane].key for lane in common):
        return OTHER
    return SAME if len(common) == len(old) else UNTESTABLE


def build(command: str, folder: Path, seconds: float) -> str:
    """Run the project's own build command; return the reason of a failure, or an empty text."""
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
