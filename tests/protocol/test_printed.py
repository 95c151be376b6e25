"""Output of processes is kept in part, and counted as a whole."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.nvidia.tools import Step, run
from harness.protocol.backend import Job, Rejected
from harness.protocol.process_output import KEPT, Errors, Printed, cut, read_file
from harness.protocol.process_output import run as run_process

# More than the memory limit of this process.
MUCH = 600 << 20
ROOM = 400 << 20
FLOOD = f"import os\nfor _ in range({MUCH} >> 20): os.write(1, b'x' * ((1 << 20) - 1) + b'\\n')\nos.write(2, b'the end')\nraise SystemExit(3)"


def test_little_is_kept_whole() -> None:
    printed = Printed(10)
    for part in (b"abc", b"", b"defg", b"hij"):
        printed.add(part)
    assert (printed.text, printed.total, printed.left_out) == ("abcdefghij", 10, 0)


def test_of_much_the_first_and_the_last_part_are_kept() -> None:
    printed = Printed(10)
    for number in range(1000):
        printed.add(b"%03d" % number)
    assert (printed.text, printed.total) == ("00000\n[... 2990 bytes left out ...]\n98999", 3000)


def test_a_process_may_print_more_than_there_is_memory(tmp_path: Path) -> None:
    """Under a limit of address space: reading everything into memory would raise an exception."""
    code = (
        "import resource, sys\n"
        f"resource.setrlimit(resource.RLIMIT_AS, ({ROOM}, {ROOM}))\n"
        "from harness.protocol.process_output import run\n"
        f"done = run([sys.executable, '-c', {FLOOD!r}])\n"
        f"assert (done.code, done.total, done.whole) == (3, {MUCH + 7}, False)\n"
        "assert len(done.output) < 3 << 20 and done.output.endswith('the end')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_errors_are_kept_apart_where_that_is_asked_for() -> None:
    """Either of the two may be full first: no process waits for the other."""
    code = "import os\nfor n in (1, 2) * 500: os.write(n, b'ab'[n - 1 : n] * 9999 + b'\\r\\n')\nraise SystemExit(4)"
    done = run_process([sys.executable, "-c", code], errors=Errors.APART, keep=1000)
    assert (done.code, done.total, done.whole) == (4, 500 * 10001, False)
    assert set(done.output.replace(f"{500 * 10001 - 1000} bytes left out", "")) == set("a[.] \n")
    assert done.errors.endswith("b" * 498 + "\n")
    assert run_process([sys.executable, "-c", code], errors=Errors.DROPPED, keep=1000).errors == ""


def test_a_file_of_any_size_is_read(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("wb") as file:
        file.write(b"first\r\n")
        file.truncate(50 << 20)
    assert len(read_file(path, 1000)) < 1100
    assert read_file(path, 1000).startswith("first\n\0")


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(
        cell="x",
        source=tmp_path / "k.cu",
        entries={},
        definitions={},
        target="sm_80",
        options={},
        include=[],
        scratch=tmp_path,
    )


def test_a_tool_that_floods_says_so_in_notes_and_log(job: Job, tmp_path: Path) -> None:
    code = FLOOD.replace(str(MUCH), str(20 << 20))
    with pytest.raises(Rejected, match="exit code 3"):
        run(job, Step([sys.executable, "-c", code]))
    name = Path(sys.executable).name
    assert job.notes == [f"{name} printed {(20 << 20) + 7} bytes, of which the first and the last part are kept"]
    (log,) = job.logs
    assert f"[... {(20 << 20) + 7 - KEPT} bytes left out ...]" in log
    assert (tmp_path / "log").stat().st_size < 3 << 20


def test_a_deadline_ends_a_process() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        run_process([sys.executable, "-c", "print('x', flush=True)\nimport time\ntime.sleep(10000)"], seconds=1)


@pytest.mark.parametrize(("seconds", "first"), [(None, ""), (3600, ""), (3600, "exec >&-; ")])
def test_a_process_that_is_stopped_goes_on(seconds: float | None, first: str) -> None:
    """Also with closed output, if there is a deadline."""
    done = run_process(["sh", "-c", f"echo begun; {first}kill -STOP $$; exit 7"], seconds=seconds)
    assert (done.code, done.output) == (7, "begun\n")


def test_a_job_says_no_more_than_somebody_reads(job: Job, tmp_path: Path) -> None:
    for _ in range(40):
        job.say("y" * (1 << 20))
    assert sum(map(len, job.logs)) < 14 << 20
    assert (tmp_path / "log").read_text().endswith("[... further output left out ...]\n")


@pytest.mark.parametrize("length", [1001, 1030, 1040, 1968, 1969, 1970, 1971, 10_968, 10_969, 10_970, 100_000])
def test_a_text_is_cut_to_exactly_its_limit(length: int) -> None:
    text = cut("x" * length, 1000)
    assert len(text) == 1000
    found = re.search(r"\n\[\.\.\. (\d+) characters left out \.\.\.\]\n", text)
    assert found and int(found[1]) == length - 1000 + len(found[0])


def test_a_text_as_long_as_the_limit_is_whole() -> None:
    assert cut("x" * 1000, 1000) == "x" * 1000


def test_what_was_left_out_before_counts() -> None:
    text = cut("a" * 2000 + "\n[... 15000000000 bytes left out ...]\n" + "b" * 2000, 1000)
    assert len(text) == 1000
    assert "[... 150000030" in text
