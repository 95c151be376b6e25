"""Commands on the page of the published matrix and in its answers: pasted into a shell, they exit as printed."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.analysis.frame import outcome_of
from harness.protocol.text import one_line
from harness.records.failures import main_message_of
from harness.report.build import build_report

ROOT = Path(__file__).parents[2]
MATRIX = ROOT / "reports/matrix"
FEW = ("atomics/sixteen-bytes", "instructions/asm-labels")
MANY = {
    "nvrtc": 12, "nvcc": 6, "cupy-nvrtc": 4, "cupy-jitify": 1, "numba": 4, "numba-cuda": 3, "cuda-core": 2, "torch-nvcc": 1,
}  # fmt: skip
"""Commands of each backend that the second tier runs."""

pytestmark = pytest.mark.compilers


@dataclass(frozen=True)
class Printed:
    """Commands of a page under *Try it*."""

    page: str
    commands: str
    outcome: str
    message: str

    @property
    def backend(self) -> str:
        return re.search(r" -b (\S+)", self.commands)[1]  # type: ignore[index]


def printed_in(folder: Path) -> list[Printed]:
    """Yield the commands of every page, as a reader sees them."""
    found = []
    for path in sorted((folder / "cases").glob("*.html")):
        text = path.read_text("utf-8")
        section = re.search(r'<section aria-labelledby="try">(.*?)</section>', text, re.DOTALL)
        assert section, path
        outcome = re.search(r"Its outcome: <b>(.*?)</b>(?:, <q>(.*?)</q>)?\.</p>", section[1], re.DOTALL)
        commands = re.search(r"<pre [^>]*>(.*?)</pre>", section[1], re.DOTALL)
        assert outcome and commands, path
        found.append(Printed(path.stem, *(html.unescape(item or "") for item in (commands[1], *outcome.groups()))))
    return found


def shell(commands: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Paste commands into a shell, in a folder."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(["bash", "-e", "-c", commands], cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True)  # fmt: skip


def records_in(folder: Path) -> list[Mapping[str, str]]:
    lines = [line for path in (folder / "reports").glob("*.jsonl") for line in path.read_text().splitlines()]
    return [record for record in map(json.loads, lines) if "status" in record]


def check(printed: Printed, folder: Path) -> None:
    done = shell(printed.commands, folder)
    assert done.returncode == 0, (printed, done.stderr)
    (record,) = records_in(folder)
    message = "" if record["status"] == "built" else one_line(main_message_of(record), 200)
    assert (outcome_of(record), message) == (printed.outcome, printed.message), printed


def test_commands_of_two_pages_end_as_the_pages_say(tmp_path: Path) -> None:
    names = ", ".join(f'"{case}"' for case in FEW)
    build_report([], tmp_path / "page", ROOT / "cases", published=MATRIX, where=f"case in ({names})")
    found = printed_in(tmp_path / "page")
    assert len(found) == len(FEW)
    for each in found:
        (tmp_path / each.page).mkdir()
        check(each, tmp_path / each.page)


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> list[Printed]:
    folder = tmp_path_factory.mktemp("published")
    build_report([], folder / "page", ROOT / "cases", published=MATRIX)
    return printed_in(folder / "page")


@pytest.mark.slow
@pytest.mark.parametrize("backend", MANY)
def test_commands_of_many_pages_end_as_the_pages_say(every: list[Printed], backend: str, tmp_path: Path) -> None:
    # A machine may lack the host compiler.
    own = [each for each in every if each.backend == backend and "--host-compiler" not in each.commands]
    step = max(1, len(own) // MANY[backend])
    for each in own[::step][: MANY[backend]]:
        (tmp_path / each.page).mkdir()
        check(each, tmp_path / each.page)


def test_the_command_of_an_answer_makes_the_answer(tmp_path: Path) -> None:
    """After its commands have run, an untried answer becomes an answer."""
    for toolkit, target in (("13.0", "sm_89"), ("13.5", "sm_90")):
        made = shell(
            f"cumatrix run atomics/sixteen-bytes -b nvrtc -t {toolkit} -a {target} --out reports/{toolkit}.jsonl",
            tmp_path,
        )
        assert made.returncode == 0, made.stderr
    question = "cumatrix ask 'compare and swap of 16 bytes nvrtc cuda 13.5 sm_89' --results reports"
    before = shell(question, tmp_path)
    assert (before.returncode, "Not tried" in before.stdout) == (3, True)
    commands = re.findall(r"^  (cumatrix (?:run|try) .*)$", before.stdout, re.MULTILINE)
    assert [command.split(" ")[1] for command in commands] == ["run", "try"]
    (tmp_path / "kernel.cu").write_text("__global__ void k(float *a) { *a = undefined; }\n")
    done = [shell(command, tmp_path) for command in commands]
    assert [each.returncode for each in done] == [0, 1], [each.stderr for each in done]
    assert "undefined" in done[1].stderr
    after = shell(question, tmp_path)
    assert (after.returncode, after.stdout.partition(".")[0]) == (0, "No")
