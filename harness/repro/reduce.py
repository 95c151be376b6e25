"""Makes the program of a folder smaller while its outcome stays, with C-Vise or C-Reduce."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from harness.diagnostics import one_line
from harness.errors import PartUnavailable, UsageError
from harness.records import Record
from harness.repro.check import difference, errors_of, install, run, seconds_for
from harness.repro.folder import RECORD, copied

TOOLS = ("cvise", "creduce")
GOAL = "goal.json"
"""Input of a reduction's test, next to the reduced folder."""

_SECONDS = 3600.0
_ENDING = 10.0


def reducer() -> str:
    """The tool that is there.

    Raises
    ------
    PartUnavailable
        When there is none.
    """
    found = next(filter(None, map(shutil.which, TOOLS)), None)
    if found is None:
        raise PartUnavailable(
            "--reduce needs C-Vise or C-Reduce, and neither cvise nor creduce is on the path: apt install cvise"
        )
    return found


def reduce_folder(folder: Path, programs: Sequence[str], tell: Callable[[str], None], seconds: float = _SECONDS) -> str:
    """Make the program smaller, as long as the script shows the same first message and no other errors than before.

    The original program stays as ``NAME.orig``. The state at the deadline, or at an interruption, is kept.

    Parameters
    ----------
    folder : Path
        A folder of `harness.repro.folder.make_folder`.
    programs : sequence of str
        Places of the program's files in it.
    tell : callable
        Takes a line of progress now and then.
    seconds : float
        How long it may take.

    Returns
    -------
    str
        A sentence about the result.

    Raises
    ------
    PartUnavailable
        Without a tool, and when what the folder needs cannot be installed.
    UsageError
        When there is nothing to hold on to: the folder does not show what was recorded, or it was built.
    """
    tool = reducer()
    record: Record = json.loads(folder.joinpath(RECORD).read_text("utf-8"))
    check_reducible(record)
    with copied(folder) as (copy, home):
        install(copy, tell)
        shown = run(copy, home, seconds_for(record))
        if different := difference(record, shown):
            raise UsageError(f"there is nothing to reduce, since {folder} does not show what was recorded: {different}")
        goal = {
            "programs": list(programs),
            "seconds": seconds_for(record),
            "home": str(home),
            "errors": errors_of(shown.printed, record),
        }
        copy.parent.joinpath(GOAL).write_text(json.dumps(goal), "utf-8")
        work = copy.parent / "work"
        for program in programs:
            (work / program).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(copy / program, work / program)
        before = _bytes(work, programs)
        _run(tool, work, programs, _test(copy), tell, seconds)
        after = _bytes(work, programs)
        if after >= before:
            return f"{Path(tool).name} found nothing to leave out of {' and '.join(programs)}"
        for program in programs:
            shutil.copyfile(folder / program, folder / f"{program}.orig")
            shutil.copyfile(work / program, folder / program)
    have = "has" if len(programs) == 1 else "have"
    told = f"{' and '.join(programs)} {have} {after} bytes in the place of {before}, by {Path(tool).name}"
    whole = f"{programs[0]}.orig is" if len(programs) == 1 else "the files that end with .orig are"
    readme = folder / "README.md"
    note = (
        f"{told}; {whole} what it was made of. Lines that are named below are those of the original.\n\n## Expected\n"
    )
    readme.write_text(readme.read_text("utf-8").replace("## Expected\n", note, 1), "utf-8")
    return told


def check_reducible(record: Record) -> None:
    """Raise `UsageError` where no message says what has to stay."""
    if record["status"] not in ("rejected", "crashed"):
        raise UsageError(
            f"{record['cell']} is {record['status'].replace('_', ' ')}: --reduce makes programs smaller that a compiler refuses or dies on"
        )


def _test(copy: Path) -> Path:
    """The test that the tool calls: a file that ends with 0 where the program in the current folder is still of interest."""
    test = copy.parent / "interesting.sh"
    words = [sys.executable, "-m", "harness.repro.interesting", str(copy)]
    test.write_text(f"#!/bin/sh\nexec {shlex.join(words)}\n", "utf-8")
    test.chmod(0o755)
    return test


def _bytes(folder: Path, files: Sequence[str]) -> int:
    return sum((folder / name).stat().st_size for name in files)


def _run(
    tool: str, work: Path, programs: Sequence[str], test: Path, tell: Callable[[str], None], seconds: float
) -> None:
    argv = [tool, *(["--not-c"] if programs[0].endswith(".py") else []), str(test), *programs]
    process = subprocess.Popen(
        argv, cwd=work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", start_new_session=True,
    )  # fmt: skip
    # It ends its own children when it is asked to, and leaves the smallest program that it has found.
    timer = threading.Timer(seconds, process.send_signal, [signal.SIGINT])
    timer.start()
    try:
        assert process.stdout is not None
        last = ""
        for line in process.stdout:
            if "%" in line:
                tell(one_line(line, 120))
            last = line if line.strip() else last
        code = process.wait()
    except KeyboardInterrupt:
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_ENDING)
        return
    finally:
        ended_in_time = timer.is_alive()
        timer.cancel()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if code and ended_in_time:
        raise UsageError(f"{Path(tool).name} ended with exit code {code}: {one_line(last, 300)}")
