"""Compilers as child processes: exit code, output, and which tool failed.

A driver (nvcc, gcc) hides crashes of its children behind an exit code. Here each tool is a direct child.
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
# gcc reports its child's signal: `gcc: internal compiler error: Segmentation fault signal terminated program cc1plus`
_GCC_CHILD = re.compile(r"error: (?P<signal>[A-Z][\w ]*?) signal terminated program (?P<program>\S+)")
_INTERNAL = re.compile(r"\binternal (?:compiler )?error: (?P<what>[^\n]{0,200})", re.IGNORECASE)
_NO_MEMORY = re.compile(
    r"catastrophic error: out of memory|virtual memory exhausted|out of memory allocating|Memory allocation failure"
)


class Hidden:
    """Placeholders for characters that nvcc passes to a shell unquoted or changes; tools receive the original ones.

    Parameters
    ----------
    macros : iterable of str
        Macros with literal values; in others, nvcc splits at commas.
    """

    def __init__(self, macros: Iterable[str] = ()) -> None:
        self._macros = tuple(f"-D{name}=" for name in macros)
        number = secrets.token_hex(4)
        self._names = {
            "$": f"dollar{number}", "`": f"grave{number}", "\\": f"backslash{number}", '"': f"quote{number}", ",": f"comma{number}",
        }  # fmt: skip

    def hide(self, word: str) -> str:
        """Replace special characters in an option.

        Quotes, backslashes and commas are replaced in macros only; elsewhere nvcc interprets them.
        """
        comma = self._names[","]
        if word.startswith("-D"):
            word = _QUOTED.sub(lambda found: found[0].replace(",", comma), word)
        characters = self._names if word.startswith(self._macros) else '$`\\"' if word.startswith("-D") else "$`"
        for character in characters:
            word = word.replace(character, self._names[character])
        return word

    def back(self, text: str) -> str:
        """Restore the original characters in a text from nvcc."""
        for character, name in self._names.items():
            text = text.replace(name, character)
        return text


@dataclass(frozen=True)
class Step:
    """One run of a tool.

    Parameters
    ----------
    words : sequence of str
        The program and its arguments.
    env : Mapping
        Variables in addition to those of this process.
    """

    words: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_line(cls, line: str, env: Mapping[str, str] | None = None, hidden: Hidden | None = None) -> Step:
        """Parse a driver's command line, which needs no shell except for quotes and the driver's own variables.

        Parameters
        ----------
        line : str
            The command line.
        env : Mapping
            Variables that the driver has printed; only these are expanded in ``$NAME``.
        hidden : Hidden
            Restores the characters that were hidden from the driver.
        """
        given = env or {}
        words = (_VARIABLE.sub(lambda found: given.get(found[1], found[0]), word) for word in shlex.split(line))
        return cls([hidden.back(word) if hidden else word for word in words], given)

    @property
    def line(self) -> str:
        """The command line, quoted for a shell."""
        return shlex.join(self.words)

    @property
    def program(self) -> str:
        """The name of the program, such as ``cicc``."""
        return os.path.basename(self.words[0])

    @cached_property
    def path(self) -> str | None:
        """Path of the program, as a shell would find it."""
        return shutil.which(self.words[0], path=self.env.get("PATH", os.environ.get("PATH")))

    @property
    def stage(self) -> str:
        """The stage of the tool."""
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
    """Return the word after the last `option`, or None."""
    for place in range(len(words) - 2, -1, -1):
        if words[place] == option:
            return words[place + 1]
    return None


def ask(*argv: str) -> str:
    """Return what a tool prints, such as its version.

    Raises
    ------
    Unavailable
        If the tool cannot be run or fails.
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
    """Run one tool in the current folder; log its output and return it.

    Raises
    ------
    Crashed
        If the tool, or a child that it reports, was ended by a signal, aborted, or ran out of memory.
    Rejected
        If the tool ended with a nonzero exit code.
    Unavailable
        If the tool cannot be started.
    """
    done = start(step)
    tell(job, step, done)
    check(step, done.code, done.output)
    return done.output


def start(step: Step) -> Finished:
    """Run one tool to its end, with standard error merged into standard output.

    Raises
    ------
    Unavailable
        If the tool cannot be started.
    """
    if step.path is None:
        raise Unavailable(f"{step.words[0]} is not there", stage=step.stage)
    try:
        return process_output.run(step.words, path=step.path, env={**os.environ, **step.env})
    except OSError as error:
        raise Unavailable(f"{step.path} cannot be run: {error.strerror}", stage=step.stage) from None


def tell(job: Job, step: Step, done: Finished) -> None:
    """Log a tool's output, with a note if it is incomplete."""
    job.say(done.output)
    if not done.whole:
        job.notes.append(f"{step.program} printed {done.total} bytes, of which the first and the last part are kept")


def check(step: Step, code: int, output: str) -> None:
    """Raise the exception for an exit code and the tool's output; return if the tool succeeded."""
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
    """Return the version that ``ptxas --version`` prints, such as ``"12.4.131"``."""
    return _release(_ask(setup, "--version"))


def architectures(setup: Setup) -> list[str]:
    """Return the names that ``ptxas --help`` lists for ``--gpu-name``, including virtual architectures."""
    text = _ask(setup, "--help")
    start = text.find("--gpu-name")
    return sorted(set(re.findall(r"'((?:sm|compute)_\d+[af]?)'", text[start : start + 6000])))


def assemble(setup: Setup, job: Job, ptx: Path, *, relocatable: bool = False) -> Path:
    """Assemble for the job's target, as stage ``assemble``, with the ptxas of the job's other toolkit if it has one.

    Raises
    ------
    Rejected, Crashed
        If ptxas fails.
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
