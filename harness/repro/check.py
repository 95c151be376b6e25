"""Runs a folder in a clean environment, and holds what it shows against what was recorded."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import uv

from harness.diagnostics import one_line, parse_log
from harness.errors import PartUnavailable
from harness.protocol.printed import cut
from harness.records import Record
from harness.repro.folder import RECORD, copied
from harness.repro.script import SCRIPT

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
        How it ended: an exit code, a signal below zero, None at the deadline.
    printed : str
        What it printed.
    """

    code: int | None
    printed: str

    @property
    def status(self) -> str:
        """In the words of records."""
        if self.code is None:
            return "timed_out"
        return "built" if self.code == 0 else "crashed" if self.code < 0 or self.code > 128 else "rejected"


def check_folder(folder: Path, tell: Callable[[str], None]) -> tuple[bool, str]:
    """Run a folder in a copy and in an environment of its own; whether it shows what its record tells, and a sentence on that.

    `tell` takes a line for each step, since some take minutes.

    Raises
    ------
    PartUnavailable
        When what it needs cannot be installed.
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
    """Do what the README says before the script is run, by the very lines that it has there.

    Raises
    ------
    PartUnavailable
        When that fails.
    """
    text = folder.joinpath("README.md").read_text("utf-8")
    for line in re.findall(r"^uv (venv .*|pip install .*)$", text, re.MULTILINE):
        tell(f"uv {line}")
        try:
            done = subprocess.run(
                [uv.find_uv_bin(), *line.split()], cwd=folder, env=_environ(uv_cache=True), timeout=_INSTALL_SECONDS,
                capture_output=True, text=True, errors="replace", check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise PartUnavailable(f"uv {line}: did not end in {_INSTALL_SECONDS} s") from None
        if done.returncode:
            raise PartUnavailable(f"uv {line}: {one_line(done.stderr, 600)}")


def run(folder: Path, home: Path, seconds: float) -> Shown:
    """Run the script of a folder that has been installed, with an empty home and nothing of this process's variables."""
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
            # What it has started goes with it.
            try:
                os.killpg(process.pid, 9)
            except ProcessLookupError:
                pass
            process.wait()
        output.seek(0)
        return Shown(code, cut(output.read(16 * _LONGEST).decode("utf-8", "replace"), _LONGEST))


def seconds_for(record: Record) -> float:
    """Time limit of a script: Jitify searches for headers that cumatrix has found before."""
    least = 1800.0 if record["backend"] in ("cupy-jitify", "torch-nvcc") else 300.0
    return least if record["status"] == "timed_out" else max(least, _MARGIN * record["seconds"])


def difference(record: Record, shown: Shown) -> str:
    """The difference between a script's outcome and a record; empty if there is none."""
    status = shown.status
    if record["status"] == "crashed" and status == "rejected" and _DIED.search(shown.printed):
        status = "crashed"  # a driver such as nvcc ends by itself, and tells of its child
    if status != record["status"]:
        last = next((line for line in reversed(shown.printed.splitlines()) if line.strip()), "")
        return f"{shown.status.replace('_', ' ')} in the place of {record['status'].replace('_', ' ')} ({one_line(last, 300)})"
    if record["status"] == "built":
        return ""
    return "" if says(record, shown.printed) else "its first message is another one"


def _exactly(record: Record, shown: Shown) -> str:
    """Return whether artifacts are equal byte for byte. Relocatable code is not, if its compiler makes names out of folders."""
    found = re.search(r"^built: \d+ bytes, sha256 ([0-9a-f]{64})$", shown.printed, re.MULTILINE)
    if not found or not record["artifact"]:
        return ""
    return ", byte for byte" if found[1] == record["artifact"]["sha256"] else ", though not byte for byte"


def says(record: Record, printed: str) -> bool:
    """Return whether a text has the record's main message, by its fingerprint."""
    first = next((item for item in record["diagnostics"] if item["severity"] in ("error", "fatal")), None)
    wanted = first.get("fingerprint", "") if first else ""
    if first is None or wanted in ("", "crash"):
        return True
    # In a traceback an exception has its module in front; a tool's own first words are in no known form at all.
    words = first["message"].split(" | ")[0].removesuffix("…")
    return words in one_line(printed, len(printed)) or any(
        item.fingerprint == wanted for item in parse_log(printed, record["case"])
    )


def errors_of(printed: str, record: Record) -> list[str]:
    """Fingerprints of the errors of a text, the most telling first."""
    found = parse_log(printed, record["case"])
    return [item.fingerprint for item in found if item.severity in ("error", "fatal")]


def _environ(home: Path | None = None, *, uv_cache: bool = False) -> dict[str, str]:
    """Variables as a fresh login has them; for uv those of this process, but for an environment that it is in."""
    if uv_cache:
        mine = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "UV_PROJECT", "CONDA_PREFIX")
        return {name: value for name, value in os.environ.items() if name not in mine}
    path = os.pathsep.join(["/usr/local/bin", "/usr/bin", "/bin"])
    # A CUDA of this machine's own is the one thing that no wheel brings.
    own = {name: os.environ[name] for name in ("CUDA_HOME",) if os.environ.get(name)}
    return {**own, "PATH": path, "HOME": str(home), "LANG": "C.UTF-8", "TMPDIR": tempfile.gettempdir()}
