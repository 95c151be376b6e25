"""Compilers as processes of their own: which one ended how, and what it had said before.

A driver (nvcc, gcc) hides its children's deaths behind an exit code. Here each tool is waited for by itself.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from harness.protocol.backend import Crashed, Job, Rejected, Unavailable

_STAGES = {"cudafe++": "compile", "cicc": "compile", "ptxas": "assemble", "fatbinary": "assemble", "nvlink": "link"}
# gcc tells of its child: `gcc: internal compiler error: Segmentation fault signal terminated program cc1plus`
_GCC_CHILD = re.compile(r"error: (?P<signal>[A-Z][\w ]*?) signal terminated program (?P<program>\S+)")
_INTERNAL = re.compile(r"\binternal (?:compiler )?error: (?P<what>[^\n]{0,200})", re.IGNORECASE)
_NO_MEMORY = re.compile(
    r"catastrophic error: out of memory|virtual memory exhausted|out of memory allocating|Memory allocation failure"
)


@dataclass(frozen=True)
class Step:
    """One tool that runs.

    Parameters
    ----------
    line : str
        Its command line, for the shell.
    env : Mapping
        Variables beside those of this process.
    """

    line: str
    env: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def words(self) -> list[str]:
        """The command line's words, with variables as the shell expands them."""
        known = {**os.environ, **self.env}
        return [re.sub(r"\$(\w+)", lambda match: known.get(match[1], ""), word) for word in shlex.split(self.line)]

    @property
    def program(self) -> str:
        """``cicc``."""
        return os.path.basename(self.words[0])

    @property
    def path(self) -> str | None:
        """Where the shell finds the program."""
        return shutil.which(self.words[0], path=self.env.get("PATH", os.environ.get("PATH")))

    @property
    def stage(self) -> str:
        """The stage that it belongs to."""
        if self.program in _STAGES:
            return _STAGES[self.program]
        words = set(self.words)
        return "preprocess" if "-E" in words else "compile" if words & {"-c", "-S"} else "link"

    @property
    def output(self) -> str | None:
        """The file after ``-o``."""
        return after(self.words, "-o")


def after(words: list[str], option: str) -> str | None:
    """The word after the last `option`, or None."""
    for place in range(len(words) - 2, -1, -1):
        if words[place] == option:
            return words[place + 1]
    return None


def ask(*argv: str) -> str:
    """What a tool prints of itself.

    Raises
    ------
    Unavailable
        When it cannot be run, or says no.
    """
    try:
        return subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise Unavailable(f"cannot run {shlex.join(argv)}: {error}") from None


def run(job: Job, step: Step) -> str:
    """Run one tool in the current folder; what it prints is kept in the job's log and returned.

    Raises
    ------
    Crashed
        When it, or a child that it tells of, was ended by a signal, aborted, or ran out of memory.
    Rejected
        When it ended with another exit code than 0.
    Unavailable
        When it cannot be started.
    """
    done = start(step)
    job.say(done.stdout)
    check(step, done.returncode, done.stdout)
    return done.stdout


def start(step: Step) -> subprocess.CompletedProcess[str]:
    """Run one tool to its end; standard output and errors come together."""
    if step.path is None:
        raise Unavailable(f"{step.words[0]} is not there", stage=step.stage)
    # `exec`, so that the exit status is the tool's own and not that of a shell which reports a signal as 128 + number.
    return subprocess.run(
        ["/bin/sh", "-c", f"exec {step.line}"], env={**os.environ, **step.env}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
    )  # fmt: skip


def check(step: Step, code: int, said: str) -> None:
    """Raise what an exit code and the tool's words mean; nothing where it ended well."""
    if code == 0:
        return
    program = step.program
    if code < 0:
        raise Crashed(
            f"{program} was ended by signal {-code} ({signal.strsignal(-code)})", signal=-code, stage=step.stage
        )
    if match := _GCC_CHILD.search(said):
        number = _number(match["signal"])
        name = match["program"].strip("'`\"").rpartition("/")[2]
        raise Crashed(
            f"{name}, run by {program}, was ended by {_named(number, match['signal'])}", signal=number, stage=step.stage
        )
    if match := _INTERNAL.search(said):
        number = _number(match["what"].split(" signal")[0].strip())
        raise Crashed(
            f"{program} stopped with an internal error: {match['what'].strip()}", signal=number, stage=step.stage
        )
    if _NO_MEMORY.search(said):
        raise Crashed(f"{program} ran out of memory (see --memory)", signal=None, stage=step.stage)
    raise Rejected(f"{program} ended with exit code {code}", stage=step.stage)


def _number(name: str) -> int | None:
    return next((int(number) for number in signal.Signals if signal.strsignal(number) == name), None)


def _named(number: int | None, name: str) -> str:
    return f"signal {number} ({name})" if number else f"a signal ({name})"
