"""User errors: a sentence, a remedy, an exit code, never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cells import write_case, write_library
from command import Command

from harness.toolkits import Installed

pytestmark = pytest.mark.called

COMMANDS = ["run", "try", "ask", "publish", "report", "merge", "diff", "explain", "repro", "bisect", "bless", "cache", "libraries", "history", "history add", "history list", "history cell", "history broken", "cases", "toolkits", "doctor", "init", "config", "cases list", "cases check", "cases new", "cases copy", "toolkits list", "toolkits install",
            "toolkits path", "toolkits remove"]  # fmt: skip


@pytest.mark.parametrize("command", ["", *COMMANDS])
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help(cumatrix: Command, command: str, option: str) -> None:
    done = cumatrix(*command.split(), option)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"Usage: cumatrix {command}".rstrip())
    assert done.stderr == ""
    assert max(map(len, done.stdout.splitlines())) <= 110


@pytest.mark.parametrize("command", ["try", "ask", "bisect", "repro", "explain", "wheel", "arch", "merge", "diff"])
def test_a_command_without_arguments_says_what_is_missing(cumatrix: Command, command: str) -> None:
    sentence(cumatrix(command), 2, f"cumatrix {command} --help")


def test_help_lists_what_works_and_the_exit_codes(cumatrix: Command) -> None:
    words = cumatrix("--help").stdout
    for command in (
        "run",
        "try",
        "report",
        "merge",
        "diff",
        "history",
        "explain",
        "repro",
        "cases",
        "toolkits",
        "doctor",
    ):
        assert f"\n  {command} " in words
        assert f"cumatrix {command} is not" not in words
    for code in ("0 all as expected", "1 some cell", "2 bad usage", "3 nothing to run", "4 a part", "130 interrupted"):
        assert code in " ".join(words.split())


def sentence(done: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    """Check for one plain sentence on stderr that contains `words`."""
    assert done.returncode == code, (done.stdout, done.stderr)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("cumatrix: ")
    for word in words:
        assert word.replace('"', "") in lines[0].replace('"', "")


@pytest.fixture
def library(tmp_path: Path) -> Path:
    write_library(tmp_path / "cases")
    return tmp_path / "cases"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["run", "--timeout", "inf"], 2, ["--timeout", "604800"]),
        (["run", "-b", "nvrct"], 2, ["unknown backend 'nvrct'", "did you mean nvrtc"]),
        (["run", "-t", "12.44"], 2, ["unknown CUDA release '12.44'", "did you mean 12.4"]),
        (["run", "-t", "13.0..12.0"], 2, ["no CUDA release is in"]),
        (["run", "-a", "sm80"], 2, ["'sm80' is not a target", "write sm_80"]),
        (["run", "-a", "sm_90..sm_80"], 2, ["no known target is in"]),
        (["run", "-a", "sm_76"], 2, ["no CUDA release knows sm_76; the nearest are sm_75 and sm_80"]),
        (["run", "-a", "sm_80,sm_90f"], 2, ["sm_90f; the nearest are sm_90 and sm_90a"]),
        (["try", "cases/plain/one/kernel.cu", "-a", "sm_200"], 2, ["no CUDA release knows sm_200; the nearest is sm_121"]),
        (["run", "-a", "native", "--device", "none"], 4, ["the target native needs a CUDA device, and there is none"]),
        (["run", "-t", "14"], 2, ["unknown CUDA release '14'"]),
        (["run", "plain/onee"], 2, ['no case is called "plain/onee"', 'did you mean "plain/one"']),
        (["run", "one"], 2, ['did you mean "plain/one"']),
        (["run", "--where", 'virtual or bakend == "nvrtc"'], 2, ["--where, character 12: unknown name 'bakend'", "did you mean backend"]),
        (["run", "--where", " "], 2, ["--where has no condition: write one"]),
        (["run", "--where", "N == 4"], 2, ["--where, character 6: N is never 4"]),
        (["run", "--where", 'cc < "5.0"', "-b", "nvrtc"], 3, ["no cell is left of", "--where cc < 5.0"]),
        (["run", "--where", 'cc < "9"', "--where", "virtual"], 2, ["--where is given 2 times"]),
        (["try", "cases/plain/one/kernel.cu", "--where", "cc"], 2, ["--where, character 1: 'cc'", "not true or false by itself"]),
        (["run", "-b", "numba"], 3, ["nothing to run"]),
        (["run", "--cases", "nowhere"], 2, ["there is no folder of cases at nowhere: `cumatrix cases copy nowhere` puts"]),
        (["run", "-j", "0"], 2, ["0", "cumatrix run --help"]),
        (["run", "--memory", "much"], 2, ["'much' is not a size such as 8G"]),
        (["run", "--timeout", "-3"], 2, ["-3"]),
        (["run", "--python", "/nowhere/python"], 4, ["cannot list the packages of /nowhere/python"]),
        (["run", "--require", "numba=1"], 2, ["is not a requirement such as numba==0.59.1"]),
        (["run", "--bakend", "nvrtc"], 2, ["--bakend", "--backend"]),
        (["run", "--out", "/proc/nowhere/x.jsonl"], 2, ["/proc/nowhere"]),
        (["run", "--out", "cases"], 2, ["cases"]),
        (["try", "nowhere.cu"], 2, ["nowhere.cu"]),
        (["try", "cases/plain/none"], 2, ["cases/plain/none"]),
        (["try", "cases/plain/one/case.toml"], 2, ["neither CUDA C++ (.cu) nor HIP (.hip) nor Python (.py)"]),
        (["try", "cases/plain/one/kernel.cu", "-D", "1X=2"], 2, ["'1X' is not the name of a macro"]),
        (["try", "cases/plain/one/kernel.cu", "-I", "nowhere"], 2, ["nowhere"]),
        (["try", "cases/plain/one/kernel.cu", "--signature", "axpy"], 2, ["--signature", "NAME="]),
        (["try", "cases/plain/one/kernel.cu", "-b", "numba"], 3, ["nothing to run"]),
        (["report", "nowhere.jsonl"], 2, ["nowhere.jsonl"]),
        (["merge", "cases", "--out", "merged.jsonl"], 3, ["no records"]),
        (["toolkits", "path", "99"], 2, ["unknown CUDA release '99'"]),
        (["toolkits", "install", "12.44"], 2, ["did you mean 12.4"]),
        (["cases", "list", "nowhere"], 2, ['no case is called "nowhere"']),
        (["frobnicate"], 2, ["frobnicate"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)  # fmt: skip
def test_one_sentence(cumatrix: Command, library: Path, arguments: list[str], code: int, words: list[str]) -> None:
    sentence(cumatrix(*arguments), code, *words)


def test_a_part_that_is_not_installed_is_named_with_its_remedy(cumatrix: Command, tmp_path: Path) -> None:
    env = {"CUMATRIX_HOME": str(tmp_path / "empty")}
    sentence(
        cumatrix("toolkits", "path", "12.4", env=env), 4, "CUDA 12.4 is not installed", "cumatrix toolkits install 12.4"
    )
    (tmp_path / "kernel.cu").write_text("__global__ void k() {}")
    (record,) = cumatrix.records("try", "kernel.cu", "-b", "nvrtc", "-t", "12.4", "-a", "sm_80", "--offline", env=env)
    assert record["status"] == "unavailable"
    assert "cumatrix toolkits install 12.4" in record["reason"]
    done = cumatrix("try", "kernel.cu", "-b", "nvrtc", "-t", "12.4", "-a", "sm_80", "--offline", env=env)
    assert done.returncode == 4
    assert done.stderr.count("--offline downloads nothing: CUDA 12.4") == 1


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('fetures = ["x"]', ["fetures", "features"]),
        ('[expectt]\nstatus = "built"', ["expectt", "expect"]),
        ('[[expect]]\nstatus = "build"', ["build", "built"]),
        ('[[expect]]\nstatus = "rejected"\nreason = "r"\nwhen = "bakend == \'nvrtc\'"', ["bakend", "backend"]),
    ],
)
def test_a_misspelt_key_is_named_with_its_line(cumatrix: Command, tmp_path: Path, line: str, words: list[str]) -> None:
    if line.startswith("["):
        path = write_case(tmp_path / "cases", "some/case", "__global__ void k() {}", line)
    else:
        path = write_case(tmp_path / "cases", "some/case", "__global__ void k() {}")
        path.write_text(f"{line}\n{path.read_text()}")
    for arguments in (["run", "-b", "nvrtc"], ["cases", "check"], ["cases", "list"]):
        sentence(cumatrix(*arguments), 2, "case.toml", "did you mean", *words)


def test_a_damaged_line_of_records_is_named(cumatrix: Command, tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text('{"schema": 1, "cell": "x"\n{"schema": 1}\n')
    for arguments in (["report", "r.jsonl", "--out", "html"], ["merge", "r.jsonl", "--out", "m.jsonl"]):
        done = cumatrix(*arguments)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr
        assert "r.jsonl: line 1: not JSON" in done.stderr
    assert not (tmp_path / "m.jsonl").exists()


@pytest.mark.compilers
class TestWithRecords:
    @pytest.fixture(autouse=True)
    def _toolkit(self, toolkit: Callable[[str], Installed]) -> None:
        toolkit("12.4")

    def run(self, cumatrix: Command, *arguments: str) -> Any:
        return cumatrix("run", "-b", "nvrtc", "-t", "12.4", "-a", "sm_50,sm_80", *arguments)

    def test_as_expected(self, cumatrix: Command, library: Path, tmp_path: Path) -> None:
        done = self.run(cumatrix)
        assert done.returncode == 0, done.stderr
        assert done.stdout == ""
        assert "14 of 14 cells" in done.stderr
        assert len((tmp_path / "reports" / "local.jsonl").read_text().splitlines()) == 14

    def test_json_is_all_there_is_on_stdout(self, cumatrix: Command, library: Path, tmp_path: Path) -> None:
        done = self.run(cumatrix, "--json")
        assert done.returncode == 0
        records = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(records) == len({record["cell"] for record in records}) == 14
        for record in records:
            for key in ("schema", "cell", "case", "variant", "backend", "target", "toolkit", "toolchain", "status", "stage", "verdict",
                        "diagnostics", "artifact", "signal", "seconds", "cached", "command", "log", "fingerprint"):  # fmt: skip
                assert key in record
            if record["status"] == "built":
                assert record["toolchain"]["observed"]["nvrtc"] == "12.4"
                assert record["artifact"]["target"] == record["target"]
                assert record["artifact"]["kernels"]
        assert not (tmp_path / "reports").exists()

    def test_cells_that_a_condition_leaves_out_are_neither_run_nor_missed(
        self, cumatrix: Command, library: Path, tmp_path: Path
    ) -> None:
        done = self.run(cumatrix, "--where", 'cc >= "8.0" and (topic == "wrong" or N == 2)', "--out", "r.jsonl")
        assert done.returncode == 0
        assert "3 of 3 cells" in done.stderr
        assert "sm_50" not in done.stderr
        cells = [json.loads(line)["cell"] for line in (tmp_path / "r.jsonl").read_text().splitlines()]
        names = ["plain/two[N=2]", "wrong/known", "wrong/name"]
        assert sorted(cells) == [f"{name} nvrtc cuda12.4 sm_80" for name in names]
        merged = cumatrix("merge", "r.jsonl", "--out", "merged.jsonl")
        assert (merged.returncode, merged.stderr) == (0, "3 cells, 0 never arrived, 0 disagreed\n")

    def test_not_as_expected(self, cumatrix: Command, library: Path) -> None:
        (library / "plain/one/kernel.cu").write_text("__global__ void one() { wrong; }")
        done = self.run(cumatrix)
        assert done.returncode == 1
        assert "not as expected ×2: plain/one: nvrtc, CUDA 12.4, sm_50, sm_80" in done.stderr
        assert 'identifier "wrong" is undefined' in done.stderr

    def test_a_known_fault_that_is_gone(self, cumatrix: Command, library: Path) -> None:
        (library / "wrong/known/kernel.cu").write_text("__global__ void known() {}")
        done = self.run(cumatrix, "wrong")
        assert done.returncode == 1
        assert "unexpectedly built ×2: wrong/known: nvrtc" in done.stderr

    def test_only_what_is_not_applicable(
        self, cumatrix: Command, library: Path, toolkit: Callable[[str], Installed]
    ) -> None:
        toolkit("13.0")
        (record,) = cumatrix.records("run", "plain/one", "-b", "nvrtc", "-t", "13.0", "-a", "sm_50")
        assert (record["status"], record["verdict"]) == ("unsupported", "unsupported")
        assert "13.0" in record["reason"]
        done = cumatrix("run", "plain/one", "-b", "nvrtc", "-t", "13.0", "-a", "sm_50")
        assert done.returncode == 3
        assert "no compiler answered the one cell: CUDA 13.0 knows no sm_50" in done.stderr

    def test_what_was_named_and_not_answered_is_said(
        self, cumatrix: Command, library: Path, toolkit: Callable[[str], Installed]
    ) -> None:
        toolkit("13.0")
        write_case(
            library,
            "python/only",
            "from numba import cuda\n",
            '[entry]\npython = { k = "void(int32[:])" }\n',
            file="kernel.py",
        )
        argv = ("run", "plain/one", "python", "-b", "nvrtc,numba", "-t", "12.4,13.0", "-a", "sm_50,sm_80,sm_100")
        done = cumatrix(*argv)
        assert done.returncode == 4
        said = [line for line in done.stderr.splitlines() if line.startswith("no compiler answered")]
        assert [line.partition(":")[0] for line in said] == [
            "no compiler answered for the case python",
            "no compiler answered for the backend numba",
        ]
        assert "numba needs numba, which is not installed" in said[1]
        done = cumatrix("run", "plain/one", "-b", "nvrtc", "-t", "12.4", "-a", "sm_80,sm_100..sm_121")
        assert done.returncode == 0
        assert "no compiler answered for the target sm_100..sm_121: CUDA 12.4 knows no sm_100" in done.stderr
        done = cumatrix("run", "plain/one", "-b", "nvrtc", "-t", "12.4,13.0", "-a", "sm_50")
        assert "no compiler answered for the toolkit 13.0: CUDA 13.0 knows no sm_50" in done.stderr
        assert "no compiler answered" not in self.run(cumatrix).stderr  # every cell is answered

    def test_a_library_that_is_not_there(self, cumatrix: Command, library: Path) -> None:
        (record,) = cumatrix.records("run", "plain/one", "-b", "cupy-nvrtc", "-t", "12.4", "-a", "sm_80")
        assert record["status"] == "unavailable"
        assert "cupy-cuda12x" in record["reason"]

    def test_a_truncated_file_of_records_keeps_the_rest(self, cumatrix: Command, library: Path, tmp_path: Path) -> None:
        assert self.run(cumatrix, "--out", "r.jsonl").returncode == 0
        data = (tmp_path / "r.jsonl").read_bytes()
        (tmp_path / "r.jsonl").write_bytes(data[:-100])
        done = cumatrix("merge", "r.jsonl", "--out", "m.jsonl")
        assert done.returncode == 1  # a planned cell never arrived
        assert "line 14: cut off" in done.stderr
        assert "13 cells, 1 never arrived" in done.stderr
        assert "Traceback" not in done.stderr
        # As the warning says, repeating the run completes the file.
        assert self.run(cumatrix, "--out", "r.jsonl").returncode == 0
        done = cumatrix("merge", "r.jsonl", "--out", "m.jsonl")
        assert (done.returncode, "cut off" in done.stderr) == (0, False)

    @pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
    def test_a_folder_that_may_not_be_written(self, cumatrix: Command, library: Path, tmp_path: Path) -> None:
        (tmp_path / "locked").mkdir(mode=0o500)
        sentence(self.run(cumatrix, "--out", "locked/r.jsonl"), 2, "locked/r.jsonl")

    def test_doctor_says_what_can_be_used(self, cumatrix: Command) -> None:
        done = cumatrix("doctor", "-t", "12.4")
        assert done.returncode == 0, done.stderr
        assert "✓ nvrtc       CUDA 12.4\n" in done.stdout
        assert "✗ cupy-nvrtc  CUDA 12.4: cupy-nvrtc needs cupy-cuda12x" in done.stdout
