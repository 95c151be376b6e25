"""Streams that are closed, full or not read, and other actions of a shell: a sentence and an exit code, never a traceback."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cells import write_library

from harness.engine.environment import look
from harness.errors import UsageError
from harness.toolkits import Installed

LIST = ("cases", "list")
RUN = ("run", "-b", "nvrtc", "-t", "12.4", "-a", "sm_80", "-j", "1")


@pytest.fixture
def shell(cumatrix: Any, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """Run a line of bash, in which ``$@`` is a command line of cumatrix."""
    write_library(tmp_path / "cases")

    def shell(line: str, *arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            ["bash", "-c", f"set -o pipefail; {line}", "bash", *cumatrix.argv(*arguments)],
            cwd=tmp_path, capture_output=True, stdin=subprocess.DEVNULL, timeout=800, check=False,
        )  # fmt: skip

    return shell


def plain(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return the output; it contains no traceback."""
    said = (done.stdout + done.stderr).decode()
    assert "Traceback" not in said
    assert "Exception ignored" not in said
    assert "fault of cumatrix" not in said
    return said


@pytest.mark.parametrize(
    ("closed", "command"), [(">&-", LIST), (">&-", (*LIST, "--json")), ("2>&-", ("cases", "check"))]
)
def test_a_closed_stream_leads_nowhere(shell: Any, closed: str, command: tuple[str, ...]) -> None:
    done = shell(f'"$@" {closed}', *command)
    plain(done)
    assert done.returncode == 0


@pytest.mark.compilers
def test_no_file_takes_the_place_of_a_closed_stream(
    shell: Any, tmp_path: Path, toolkit: Callable[[str], Installed]
) -> None:
    toolkit("12.4")
    done = shell('"$@" <&- >&- 2>&-', *RUN, "plain", "--out", "out.jsonl")
    assert done.returncode == 0
    lines = (tmp_path / "out.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == 4
    assert all(line.startswith("{") for line in lines)


@pytest.mark.parametrize("command", [LIST, (*LIST, "--json")])
def test_a_reader_that_has_gone(shell: Any, command: tuple[str, ...]) -> None:
    # The reader ends before the first line.
    done = shell('{ sleep 0; "$@"; } | true', *command)
    assert plain(done) == ""
    assert done.returncode in (0, 1)
    done = shell('("$@" 3>&1 >&2 2>&3) | true', "cases", "check", "nothing/there")
    plain(done)
    assert done.returncode in (1, 2)


@pytest.mark.parametrize("stream", ["", "2"])
def test_a_stream_that_is_full(shell: Any, stream: str) -> None:
    command = LIST if not stream else ("cases", "check")
    done = shell(f'"$@" {stream}>/dev/full', *command)
    said = plain(done)
    assert done.returncode == 2
    assert stream or said.startswith("cumatrix: No space left on device: make room where the output goes")


def test_an_encoding_without_a_character(shell: Any, tmp_path: Path) -> None:
    path = tmp_path / "cases/plain/one/case.toml"
    path.write_text(path.read_text("utf-8").replace('title = "', 'title = "Ω '), "utf-8")
    done = shell('PYTHONIOENCODING=ascii "$@"', *LIST, "plain")
    assert "\\u03a9 " in plain(done)
    assert done.returncode == 0


def test_a_time_limit_is_a_number_of_seconds(shell: Any) -> None:
    done = shell('"$@"', *RUN, "--timeout", "nan")
    assert "--timeout" in plain(done)
    assert done.returncode == 2


@pytest.mark.parametrize("name", ["../../x", "/x", "a/b", ".", "..", "a\x1b[31m", "a\nb", "x" * 300])
def test_an_environment_is_called_like_a_file(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be the name of an environment"):
        look(name=name)


@pytest.mark.parametrize("how", ["--environment", "CUMATRIX_ENVIRONMENT", "TOX_ENV_NAME"])
def test_nothing_is_written_outside_of_reports(shell: Any, tmp_path: Path, how: str) -> None:
    done = shell(f'"$@" {how} ../../x' if how.startswith("-") else f'{how}=../../x "$@"', *RUN)
    assert "cannot be the name of an environment" in plain(done)
    assert done.returncode == 2
    assert not (tmp_path / "reports").exists()


@pytest.mark.parametrize("place", ["/dev/null", "pipe"])
@pytest.mark.parametrize("command", ["run", "merge"])
def test_records_are_kept_in_files(shell: Any, tmp_path: Path, place: str, command: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "some.jsonl").touch()
    (tmp_path / "some.plan.json").write_text(
        '{"schema":1,"run":"r","environment":"e","started":"2026-01-31T12:00:00+00:00","machine":{},"argv":[],"cells":['
        '{"cell":"c","case":"c","variant":"","backend":"nvrtc","library":"","toolkit":"12.4","target":"sm_80",'
        '"environment":"e","title":"","topic":""}]}'
    )
    done = shell('"$@"', *(RUN if command == "run" else ("merge", "some.jsonl")), "--out", place)
    assert f"{place} is not a regular file" in plain(done)
    assert done.returncode == 2
    assert not Path("/dev/null").is_file()
    assert not list(Path("/dev").glob("*.plan.json"))


@pytest.mark.compilers
def test_names_that_are_no_unicode(shell: Any, tmp_path: Path, toolkit: Callable[[str], Installed]) -> None:
    toolkit("12.4")
    name = r"$'out\xff.jsonl'"
    done = shell(f'"$@" --out {name}', *RUN, "plain/one")
    assert "records: out" in plain(done)
    assert done.returncode == 0
    assert (tmp_path / os.fsdecode(b"out\xff.jsonl")).is_file()
    done = shell(f'"$@" {name} --out {name}.merged', "merge")
    assert "1 cells, 0 never arrived" in plain(done)
    assert done.returncode == 0


@pytest.mark.compilers
@pytest.mark.parametrize("limit", [8, 12])
def test_few_open_files(shell: Any, toolkit: Callable[[str], Installed], limit: int) -> None:
    toolkit("12.4")
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[1] > limit
    done = shell(f'ulimit -n {limit}; "$@"', *RUN, "plain/one", "--no-cache")
    said = plain(done)
    assert done.returncode in (0, 2, 4), said
    assert done.returncode == 0 or "Too many open files" in said
