"""Compilers as child processes: exit code, output, and which tool failed.

A driver (nvcc, gcc) hides its children's deaths behind an exit code. Here each tool is waited for by itself.
"""

from __future__ import annotations

import os
import re
import secrets
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from harness.protocol import process_output
from harness.protocol.backend import Crashed, Job, Rejected, Setup, Unavailable
from harness.protocol.messages import Product
from harness.protocol.process_output import Finished

_QUOTED = re.compile(r'"(?:\\.|[^"\\])*"')
_VARIABLE = re.compile(r"\$(\w+)")
_STAGES = {"cudafe++": "compile", "cicc": "compile", "ptxas": "assemble", "fatbinary": "assemble", "nvlink": "link"}
# gcc tells of its child: `gcc: internal compiler error: Segmentation fault signal terminated program cc1plus`
_GCC_CHILD = re.compile(r"error: (?P<signal>[A-Z][\w ]*?) signal terminated program (?P<program>\S+)")
_INTERNAL = re.compile(r"\binternal (?:compiler )?error: (?P<what>[^\n]{0,200})", re.IGNORECASE)
_NO_MEMORY = re.compile(
    r"catastrophic error: out of memory|virtual memory exhausted|out of memory allocating|Memory allocation failure"
)


class Hidden:
    """Characters that nvcc would hand to a shell as they are, or change: it sees names for them, and the tools that it calls get them back.

    Parameters
    ----------
    macros : iterable of str
        Macros whose texts count as they are; elsewhere a comma begins the next one, as nvcc has it.
    """

    def __init__(self, macros: Iterable[str] = ()) -> None:
        self._macros = tuple(f"-D{name}=" for name in macros)
        number = secrets.token_hex(4)
        self._names = {
            "$": f"dollar{number}", "`": f"grave{number}", "\\": f"backslash{number}", '"': f"quote{number}", ",": f"comma{number}",
        }  # fmt: skip

    def hide(self, word: str) -> str:
        """An option without them; quotes, backslashes and commas are hidden in macros alone, elsewhere they are nvcc's to read."""
        comma = self._names[","]
        if word.startswith("-D"):
            word = _QUOTED.sub(lambda found: found[0].replace(",", comma), word)
        characters = self._names if word.startswith(self._macros) else '$`\\"' if word.startswith("-D") else "$`"
        for character in characters:
            word = word.replace(character, self._names[character])
        return word

    def back(self, text: str) -> str:
        """A text of nvcc's as it would have been."""
        for character, name in self._names.items():
            text = text.replace(name, character)
        return text


@dataclass(frozen=True)
class Step:
    """One tool that runs.

    Parameters
    ----------
    words : sequence of str
        The program and its arguments, as it gets them.
    env : Mapping
        Variables in addition to those of this process.
    """

    words: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_line(cls, line: str, env: Mapping[str, str] | None = None, hidden: Hidden | None = None) -> Step:
        """The tool of a command line that a driver prints, where no shell is needed but for quotes and the driver's own variables.

        Parameters
        ----------
        line : str
            The command line.
        env : Mapping
            Variables that the driver has told; each ``$NAME`` of them is expanded, no other.
        hidden : Hidden
            What was hidden from the driver comes back here.
        """
        given = env or {}
        words = (_VARIABLE.sub(lambda found: given.get(found[1], found[0]), word) for word in shlex.split(line))
        return cls([hidden.back(word) if hidden else word for word in words], given)

    @property
    def line(self) -> str:
        """The command line, as one would write it."""
        return shlex.join(self.words)

    @property
    def program(self) -> str:
        """``cicc``."""
        return os.path.basename(self.words[0])

    @cached_property
    def path(self) -> str | None:
        """The shell's path of the program."""
        return shutil.which(self.words[0], path=self.env.get("PATH", os.environ.get("PATH")))

    @property
    def stage(self) -> str:
        """The stage that it belongs to."""
        if self.program in _STAGES:
            return _STAGES[self.program]
        words = set(self.words)
        return (
            "preprocess" if "-E" in words else "compile" if words & {"-c", "-S", "-cc1", "-cubin", "-ptx"} else "link"
        )

    @property
    def output(self) -> str | None:
        """The file after ``-o``."""
        return after(self.words, "-o")


def after(words: Sequence[str], option: str) -> str | None:
    """The word after the last `option`, or None."""
    for place in range(len(words) - 2, -1, -1):
        if words[place] == option:
            return words[place + 1]
    return None


def ask(*argv: str) -> str:
    """The version that a tool prints.

    Raises
    ------
    Unavailable
        When it cannot be run, or says no.
    """
    try:
        done = process_output.run(argv, seconds=60, errors=process_output.Errors.DROPPED)
    except (OSError, subprocess.SubprocessError) as error:
        raise Unavailable(f"cannot run {shlex.join(argv)}: {error}") from None
    if done.code:
        raise Unavailable(f"cannot run {shlex.join(argv)}: it ended with {done.code}")
    if not done.whole:
        raise Unavailable(f"cannot run {shlex.join(argv)}: it printed {done.total} bytes")
    return done.output


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
    tell(job, step, done)
    check(step, done.code, done.output)
    return done.output


def start(step: Step) -> Finished:
    """Run one tool to its end; standard output and errors come together.

    Raises
    ------
    Unavailable
        When it cannot be started.
    """
    if step.path is None:
        raise Unavailable(f"{step.words[0]} is not there", stage=step.stage)
    try:
        return process_output.run(step.words, path=step.path, env={**os.environ, **step.env})
    except OSError as error:
        raise Unavailable(f"{step.path} cannot be run: {error.strerror}", stage=step.stage) from None


def tell(job: Job, step: Step, done: Finished) -> None:
    """Keep what a tool printed in the job's log, with a note where that is not all of it."""
    job.say(done.output)
    if not done.whole:
        job.notes.append(f"{step.program} printed {done.total} bytes, of which the first and the last part are kept")


def check(step: Step, code: int, output: str) -> None:
    """Raise what an exit code and the tool's words mean; nothing where it ended well."""
    if code == 0:
        return
    program = step.program
    if code < 0:
        raise Crashed(
            f"{program} was ended by signal {-code} ({signal.strsignal(-code)})", signal=-code, stage=step.stage
        )
    if match := _GCC_CHILD.search(output):
        number = _number(match["signal"])
        name = match["program"].strip("'`\"").rpartition("/")[2]
        raise Crashed(
            f"{name}, run by {program}, was ended by {_named(number, match['signal'])}", signal=number, stage=step.stage
        )
    if match := _INTERNAL.search(output):
        number = _number(match["what"].split(" signal")[0].strip())
        raise Crashed(
            f"{program} stopped with an internal error: {match['what'].strip()}", signal=number, stage=step.stage
        )
    if _NO_MEMORY.search(output):
        raise Crashed(
            f"{program} ran out of memory, under the limit of each process (see --memory)",
            signal=None,
            stage=step.stage,
        )
    raise Rejected(f"{program} ended with exit code {code}", stage=step.stage)


def _number(name: str) -> int | None:
    return next((int(number) for number in signal.Signals if signal.strsignal(number) == name), None)


def _named(number: int | None, name: str) -> str:
    return f"signal {number} ({name})" if number else f"a signal ({name})"


def version(setup: Setup) -> str:
    """``"12.4.131"``, as ``ptxas --version`` says."""
    return _release(_ask(setup, "--version"))


def architectures(setup: Setup) -> list[str]:
    """Names that ``ptxas --help`` lists for ``--gpu-name``, virtual ones included."""
    text = _ask(setup, "--help")
    start = text.find("--gpu-name")
    return sorted(set(re.findall(r"'((?:sm|compute)_\d+[af]?)'", text[start : start + 6000])))


def assemble(setup: Setup, job: Job, ptx: Path, *, relocatable: bool = False) -> Path:
    """Assemble for the job's target, as stage ``assemble``, with another toolkit's ptxas where the job has one.

    Raises
    ------
    Rejected, Crashed
        As ptxas ended.
    """
    job.enter("assemble")
    kind = "object" if relocatable else "cubin"
    out = job.scratch / f"artifact.{kind}"
    home = job.assembler.home if job.assembler else setup.home
    if job.assembler:
        job.observed["ptxas"] = _release(ask(str(home / "bin" / "ptxas"), "--version"))
    argv = [str(home / "bin" / "ptxas"), f"-arch=sm_{job.arch}", "-v", *job.options.get("ptxas", [])]
    argv += ["-c"] if relocatable else []
    argv += [str(ptx), "-o", str(out)]
    job.command.append(" ".join(argv))
    step = Step(argv)
    done = start(step)
    tell(job, step, done)
    if done.code < 0:
        raise Crashed(f"ptxas was ended by signal {-done.code}", signal=-done.code, stage="assemble")
    if done.code:
        raise Rejected("ptxas refused the PTX", stage="assemble")
    job.artifact = Product(str(out), kind)
    return out


def _ask(setup: Setup, flag: str) -> str:
    return ask(str(setup.home / "bin" / "ptxas"), flag)


def _release(text: str) -> str:
    found = re.search(r"V(\d+\.\d+\.\d+)", text)
    if not found:
        raise Unavailable("ptxas does not say its version")
    return found[1]
