"""Reduction of a reproduction's program with C-Vise or C-Reduce, while its outcome stays the same.

As a script, this module exits with 0 if the program still shows the same first message and no additional errors.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness.backends import BACKENDS
from harness.diagnostics import one_line, parse_log
from harness.errors import PartUnavailable, UsageError
from harness.protocol.process_output import cut
from harness.records import Record
from harness.repro.folder import RECORD, copied
from harness.repro.script import SCRIPT
from harness.toolkits.download import uv_program

_INSTALL_SECONDS = 1800
_LONGEST = 1 << 20
_MARGIN = 4
_DIED = re.compile(
    r"died due to signal|internal compiler error|internal error|signal terminated program|out of memory|Segmentation fault|Aborted"
)


@dataclass(frozen=True)
class Shown:
    """The outcome of a script.

    Parameters
    ----------
    code : int or None
        Exit code, negated signal number, or None at the deadline.
    printed : str
        Its output.
    """

    code: int | None
    printed: str

    @property
    def status(self) -> str:
        """The status as in records."""
        if self.code is None:
            return "timed_out"
        return "built" if self.code == 0 else "crashed" if self.code < 0 or self.code > 128 else "rejected"


def check_folder(folder: Path, tell: Callable[[str], None]) -> tuple[bool, str]:
    """Run a copy of a folder in its own environment.

    Return whether it shows the recorded outcome, and a sentence about that.

    `tell` receives a line for each step, because some steps take minutes.

    Raises
    ------
    PartUnavailable
        If a requirement cannot be installed.
    """
    with copied(folder) as (copy, home):
        record: Record = json.loads(copy.joinpath(RECORD).read_text("utf-8"))
        install(copy, tell)
        tell(f"running {SCRIPT}, for {seconds_for(record):.0f} s at most")
        shown = run(copy, home, seconds_for(record))
        different = difference(record, shown)
    if different:
        return False, f"{folder} does not show what was recorded: {different}"
    return (
        True,
        f"{folder} shows the same in a clean environment: {shown.status.replace('_', ' ')}{_exactly(record, shown)}",
    )


def install(folder: Path, tell: Callable[[str], None]) -> None:
    """Run the README's install commands exactly as written.

    Raises
    ------
    PartUnavailable
        If a command fails.
    """
    text = folder.joinpath("README.md").read_text("utf-8")
    for line in re.findall(r"^uv (venv .*|pip install .*)$", text, re.MULTILINE):
        tell(f"uv {line}")
        try:
            done = subprocess.run(
                [uv_program(), *line.split()], cwd=folder, env=_environ(uv_cache=True), timeout=_INSTALL_SECONDS,
                capture_output=True, text=True, errors="replace", check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise PartUnavailable(f"uv {line}: did not end in {_INSTALL_SECONDS} s") from None
        if done.returncode:
            raise PartUnavailable(f"uv {line}: {one_line(done.stderr, 600)}")


def run(folder: Path, home: Path, seconds: float) -> Shown:
    """Run the script of an installed folder with an empty home folder and none of this process's variables."""
    python = (folder / ".venv" / "bin" / "python").absolute()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [python, SCRIPT], cwd=folder, env=_environ(home=home), stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        code: int | None
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            # Kill the script's children too.
            try:
                os.killpg(process.pid, 9)
            except ProcessLookupError:
                pass
            process.wait()
        output.seek(0)
        return Shown(code, cut(output.read(16 * _LONGEST).decode("utf-8", "replace"), _LONGEST))


def seconds_for(record: Record) -> float:
    """Return a script's time limit in seconds; it may have to repeat a search that cumatrix had cached."""
    least = BACKENDS[record["backend"]].repro_seconds
    return least if record["status"] == "timed_out" else max(least, _MARGIN * record["seconds"])


def difference(record: Record, shown: Shown) -> str:
    """Describe the difference between a script's outcome and a record; empty if there is none."""
    status = shown.status
    if record["status"] == "crashed" and status == "rejected" and _DIED.search(shown.printed):
        status = "crashed"  # a driver such as nvcc exits normally and reports its child's death
    if status != record["status"]:
        last = next((line for line in reversed(shown.printed.splitlines()) if line.strip()), "")
        return (
            f"{shown.status.replace('_', ' ')} instead of {record['status'].replace('_', ' ')} ({one_line(last, 300)})"
        )
    if record["status"] == "built":
        return ""
    return "" if says(record, shown.printed) else "its first message is another one"


def _exactly(record: Record, shown: Shown) -> str:
    """Describe whether the artifact equals the recorded artifact byte for byte.

    Relocatable code differs if its compiler derives names from folders.
    """
    found = re.search(r"^built: \d+ bytes, sha256 ([0-9a-f]{64})$", shown.printed, re.MULTILINE)
    if not found or not record["artifact"]:
        return ""
    return ", byte for byte" if found[1] == record["artifact"]["sha256"] else ", though not byte for byte"


def says(record: Record, printed: str) -> bool:
    """Return whether a text contains the record's main message or its fingerprint."""
    first = next((item for item in record["diagnostics"] if item["severity"] in ("error", "fatal")), None)
    wanted = first.get("fingerprint", "") if first else ""
    if first is None or wanted in ("", "crash"):
        return True
    # A traceback prefixes an exception with its module, and a tool's own message may have no known form.
    words = first["message"].split(" | ")[0].removesuffix("…")
    return words in one_line(printed, len(printed)) or any(
        item.fingerprint == wanted for item in parse_log(printed, record["case"])
    )


def errors_of(printed: str, record: Record) -> list[str]:
    """Return the fingerprints of the errors in a text, most significant first."""
    found = parse_log(printed, record["case"])
    return [item.fingerprint for item in found if item.severity in ("error", "fatal")]


def _environ(home: Path | None = None, *, uv_cache: bool = False) -> dict[str, str]:
    """Return the variables of a fresh login, or for uv those of this process without its virtual environment."""
    if uv_cache:
        mine = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "UV_PROJECT", "CONDA_PREFIX")
        return {name: value for name, value in os.environ.items() if name not in mine}
    path = os.pathsep.join(["/usr/local/bin", "/usr/bin", "/bin"])
    # Only a local CUDA or ROCm is not installed from wheels.
    own = {name: os.environ[name] for name in ("CUDA_HOME", "ROCM_PATH") if os.environ.get(name)}
    return {**own, "PATH": path, "HOME": str(home), "LANG": "C.UTF-8", "TMPDIR": tempfile.gettempdir()}


TOOLS = ("cvise", "creduce")
GOAL = "goal.json"
"""The file with the input of a reduction's test, next to the reduced folder."""

_SECONDS = 3600.0
_ENDING = 10.0


def reducer() -> str:
    """Return the path of an installed reduction tool.

    Raises
    ------
    PartUnavailable
        If neither tool is installed.
    """
    found = next(filter(None, map(shutil.which, TOOLS)), None)
    if found is None:
        raise PartUnavailable(
            "--reduce needs C-Vise or C-Reduce, and neither cvise nor creduce is on the path: apt install cvise"
        )
    return found


def reduce_folder(folder: Path, programs: Sequence[str], tell: Callable[[str], None], seconds: float = _SECONDS) -> str:
    """Reduce the program while the script shows the same first message and no additional errors.

    The original program is kept as ``NAME.orig``. At the deadline or at an interruption, the current state is kept.

    Parameters
    ----------
    folder : Path
        A folder that `harness.repro.folder.make_folder` wrote.
    programs : sequence of str
        Paths of the program's files in the folder.
    tell : callable
        Receives progress lines.
    seconds : float
        Time limit in seconds.

    Returns
    -------
    str
        A sentence about the result.

    Raises
    ------
    PartUnavailable
        If no tool is installed, or the folder's requirements cannot be installed.
    UsageError
        If the folder does not show the recorded outcome, or the cell was built.
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
    summary = f"{' and '.join(programs)} {have} {after} bytes instead of {before}, by {Path(tool).name}"
    whole = f"{programs[0]}.orig is" if len(programs) == 1 else "the files that end with .orig are"
    readme = folder / "README.md"
    note = f"{summary}; {whole} what it was made of. Lines that are named below are those of the original.\n\n## Expected\n"
    readme.write_text(readme.read_text("utf-8").replace("## Expected\n", note, 1), "utf-8")
    return summary


def check_reducible(record: Record) -> None:
    """Raise `UsageError` if the record has no message that a reduction could preserve."""
    if record["status"] not in ("rejected", "crashed"):
        raise UsageError(
            f"{record['cell']} is {record['status'].replace('_', ' ')}: --reduce makes programs smaller that a compiler refuses or dies on"
        )


def _test(copy: Path) -> Path:
    """Write the test that the tool calls.

    The test is an executable file that exits with 0 if the program in the current folder is still interesting.
    """
    test = copy.parent / "interesting.sh"
    words = [sys.executable, "-m", "harness.repro.reduce", str(copy)]
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
    # On SIGINT, the tool ends its own children and keeps the smallest program found.
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


def main() -> int:
    """Run a folder's script on the program in the current folder."""
    folder, here = Path(sys.argv[1]), Path.cwd()
    goal = json.loads(folder.parent.joinpath("goal.json").read_text("utf-8"))
    record: Record = json.loads(folder.joinpath(RECORD).read_text("utf-8"))
    link_other_files(folder, here, list(map(Path, goal["programs"])))
    shown = run(here, Path(goal["home"]), goal["seconds"])
    errors, wanted = errors_of(shown.printed, record), goal["errors"]
    same = not difference(record, shown) and errors[:1] == wanted[:1] and set(errors) <= set(wanted)
    return 0 if same else 1


def link_other_files(folder: Path, here: Path, programs: Sequence[Path]) -> None:
    """Link everything in a folder except the program's files into the current folder."""
    own = {place for program in programs for place in (program, *program.parents)}
    for below in own - set(programs):
        for path in (folder / below).iterdir():
            place = here / below / path.name
            if below / path.name not in own and not place.is_symlink() and not place.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                place.symlink_to(path)


if __name__ == "__main__":
    sys.exit(main())
