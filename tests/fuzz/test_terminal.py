"""The only door to the terminal: hostile text in every field of cases, records and logs, through every command."""

from __future__ import annotations

import copy
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import commands_of
from fuzzing import good, write
from in_process import ACTING, Called, call, commands
from mutations import HOSTILE

from harness.cli.main import cumatrix
from harness.records.plan import check_plan
from harness.records.record import RecordError
from harness.records.schema import check_record
from harness.toolkits import Installed

BAD = "".join(character for character in HOSTILE if character not in "\0\r\n") + "\x85\x9bm\u061c\u202d"
HIDDEN = "\u061c\u202d\u2066\ufeff"  # cases must not contain control characters
CASE = """title = "::error::title {bad}"
features = ["wmma"]
links = ["https://example.org/"]
[source]
cuda = "kernel.cu"
[parameters]
word = ["one"]
[[expect]]
status = "rejected"
diagnostic = "never said {bad}"
reason = "::error::because {bad} ##[error]x"
"""


def hostile(value: Any, check: Callable[[Any], object]) -> Any:
    """Return a value with hostile text around each free text in it."""
    value = copy.deepcopy(value)

    def spoil(holder: Any) -> None:
        for key in list(holder) if isinstance(holder, dict) else range(len(holder)):
            old = holder[key]
            if isinstance(old, dict | list):
                spoil(old)
            elif isinstance(old, str):
                for text in (f"::error::x {old}{HOSTILE}", old + HOSTILE, old):
                    holder[key] = text
                    try:
                        check(value)
                        break
                    except RecordError:
                        continue

    spoil(value)
    return value


def fine(called: Called, *codes: int) -> Called:
    assert called.problem() == "", called
    assert called.code in (codes or (0, 1)), called
    return called


@pytest.fixture(autouse=True)
def in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Write records and a plan with hostile texts everywhere, including file names."""
    records, planned = good()
    lines = b"".join(json.dumps(hostile(each, check_record)).encode() + b"\n" for each in records)
    return write(
        tmp_path / f"in {BAD.replace('/', '')}",
        records=lines,
        planned=json.dumps(hostile(planned, check_plan)).encode(),
    )


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    folder = tmp_path / "cases/odd/case"
    folder.mkdir(parents=True)
    (folder / "case.toml").write_text(CASE.replace("{bad}", HIDDEN), "utf-8")
    (folder / "kernel.cu").write_text(f'#error "{BAD}"\n#line 1 "::error::"\n#error "{BAD}"\n', "utf-8")
    return tmp_path / "cases"


def test_what_reads_records(results: Path, tmp_path: Path) -> None:
    none = tmp_path / "none"
    history = tmp_path / f"history {BAD.replace('/', '')}"
    merged = fine(call("merge", results, results, "--out", tmp_path / f"merged {BAD.replace('/', '')}.jsonl"))
    assert "never arrived: " in merged.err
    said = fine(call("report", results, "--out", tmp_path / "site", "--cases", none))
    assert "not as expected" in said.err
    for name in ("matrix.md", "matrix.csv", "junit.xml", "index.html"):
        found = ACTING.search((tmp_path / "site" / name).read_text("utf-8"))
        assert found is None, (name, found)
    for page in (tmp_path / "site").rglob("*.html"):
        assert ACTING.search(page.read_text("utf-8")) is None, page
    fine(call("report", results, "--out", tmp_path), 2)
    fine(call("diff", results, write(tmp_path / "good"), "--cases", none))
    fine(call("diff", results, results, "--cases", none, "--json"))
    fine(call("explain", "sm_", "--results", results), 2)  # several, which are named
    for target in ("sm_75", "sm_80", "sm_90", "compute_90a"):
        told = fine(
            call("explain", "--where", f'target == "{target}" and status != "x"', "--results", results), 0, 1, 2
        )
        assert told.out or told.code == 2
    fine(call("explain", "nothing like it", "--results", results), 2)
    fine(call("history", "add", results, "--history", history))
    for argv in (
        ["list"],
        ["list", "--json"],
        ["cell", "sm_75"],
        ["cell", "sm_75", "--json"],
        ["broken"],
        ["broken", "--json"],
        ["cell", BAD],
    ):
        fine(call("history", *argv, "--history", history), 0, 2)
    fine(call("bless", results, "--cases", none, "--diff"), 2, 3)
    for form in ("sarif", "gitlab"):
        assert fine(call("annotate", results, "--format", form)).out
    told = call("annotate", results)
    own = re.compile(r"^::(?:error|warning) (?:file=[^:,]*,line=\d+,)?title=[^:]*::")
    # The commands are cumatrix's own, one per line; no text after a command is one.
    assert told.code == 0 and all(own.match(line) for line in told.out.splitlines())
    assert told.out and fine(
        Called(told.argv, 0, "".join(own.sub("said: ", line) for line in told.out.splitlines()), told.err)
    )
    fine(call("ask", BAD, "--results", results), 0, 2, 3)
    fine(call("publish", results, "--out", tmp_path / "matrix", "--cases", Path(__file__).parents[2] / "cases"), 2, 3)
    fine(call("ask", "sm_75", "--results", results), 0, 2, 3)
    fine(call("repro", BAD, "--results", results, "--out", tmp_path / "repro"), 2)
    fine(call("repro", "sm_", "--results", results, "--out", tmp_path / "repro"), 2)  # several, which are named
    fine(call("repro", "*sm_75*", "--results", results, "--out", tmp_path / "repro"), 0, 2, 4)
    (results / "half.jsonl").write_text('{"cell": ' + json.dumps(HOSTILE), "utf-8")
    fine(call("merge", results, "--out", tmp_path / "m.jsonl"))
    (results / "bad.jsonl").write_text(json.dumps({**good()[0][0], "status": HOSTILE}) + "\n", "utf-8")
    fine(call("merge", results, "--out", tmp_path / "m.jsonl"), 2)


def test_what_writes_cases(cases: Path, tmp_path: Path) -> None:
    """`bless` prints the text of a case and quotes compilers, both hostile."""
    of = {
        **good()[0][0],
        "case": "odd/case",
        "variant": "word=one",
        "cell": "odd/case[word=one] x",
        "status": "rejected",
    }
    said = {
        "severity": "error",
        "code": None,
        "message": f"no {HOSTILE}",
        "file": "k.cu",
        "line": 1,
        "fingerprint": "f",
    }
    line = json.dumps({**of, "stage": "compile", "diagnostics": [said], "artifact": None, "signal": None})
    told = fine(
        call("bless", write(tmp_path / "odd", records=line.encode() + b"\n"), "--cases", cases, "--diff"), 0, 1, 2, 3
    )
    assert told.out or told.err


def test_what_reads_cases_and_logs(cases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    fine(call("cases", "list", "--cases", cases))
    assert "title " in fine(call("cases", "list", "odd", "--cases", cases)).out
    fine(call("cases", "list", "--cases", cases, "--json"))
    fine(call("cases", "check", "--cases", cases), 0, 2)
    fine(call("cases", "list", BAD, "--cases", cases), 2)
    (cases / "odd/case/case.toml").write_text(f"{json.dumps(BAD)} = {json.dumps(BAD)}\n", "utf-8")
    fine(call("cases", "check", "--cases", cases), 2)
    fine(call("cases", "copy", tmp_path / f"copy {BAD.replace('/', '')}"), 0, 2)
    (tmp_path / "log").write_text(f"k.cu(3): error: {HOSTILE}\n{HOSTILE}.cu:1:2: error: x {HOSTILE}\n", "utf-8")
    fine(call("explain", "log"))
    fine(call("explain", "log", "--json"))


def test_what_looks_at_projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / f"src {BAD.replace('/', '')}"
    folder.mkdir()
    (folder / f"k {BAD.replace('/', '')}.cu").write_text(f"// {BAD}\n__global__ void k() {{}}\n", "utf-8")
    (tmp_path / "setup.py").write_text(
        f"CUDAExtension({BAD!r}, sources=[{BAD!r} + x, {BAD!r}], include_dirs=[{BAD!r}])\n", "utf-8"
    )
    (tmp_path / "compile_commands.json").write_text(
        json.dumps([{"directory": ".", "file": f"{BAD}.cu", "command": f"nvcc {BAD} -c {BAD}.cu"}]), "utf-8"
    )
    (tmp_path / "kernels.py").write_text(f"@cuda.jit\ndef k(x):\n    {BAD!r}\n", "utf-8")
    told = call("init", "--dry-run")
    assert "control characters" in told.err and told.code == 3
    assert fine(Called(told.argv, 3, told.out, told.err), 3)
    (tmp_path / "plain.cu").write_text("__global__ void k() {}\n", "utf-8")
    assert '"plain.cu"' in fine(call("init", "--own")).out
    fine(call("config"), 0, 2)
    fine(call("cases", "new", BAD), 2)
    fine(call("cases", "new", "odd/case", "--from", f"{BAD}.cu"), 2)
    for text in (f"{json.dumps(BAD)} = 1\n", f"backends = [{json.dumps(BAD)}]\n", f"# {HIDDEN}\n= {HIDDEN}\n"):
        (tmp_path / "cumatrix.toml").write_text(text, "utf-8")
        fine(call("config"), 0, 2)
        fine(call("run", "--dry-run"), 2, 3)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    (tmp_path / "cumatrix.toml").write_text(f'sources = ["plain.cu"]\npython = {json.dumps("./" + BAD)}\n', "utf-8")
    for argv in (["config"], ["trust"], ["trust", "--list"], ["trust", BAD], ["trust", "--revoke"]):
        fine(call(*argv), 0, 2)


@pytest.mark.parametrize(
    "argv",
    [
        *(["run", "-b", BAD], ["run", "-t", BAD], ["run", "-a", BAD], ["run", "--where", BAD], ["run", BAD], [BAD]),
        *(["run", "--python", BAD], ["run", "--require", BAD], ["run", "--environment", BAD], ["run", "--device", BAD], ["try", BAD], ["run", f"--{BAD}"]),
        *(["toolkits", "install", BAD], ["toolkits", "path", BAD], ["toolkits", "remove", BAD], ["doctor", "-t", BAD], ["diff", BAD, BAD], ["report", BAD]),
        *(["bisect", BAD, "--over", "cuda"], ["bisect", "odd/case", "--over", BAD], ["bisect", "odd/case", "--over", "cuda", "--good", BAD], ["try", "k.cu", "--with", BAD], ["try", "k.cu", "--library", BAD]),
        *(["libraries", "install", BAD], ["libraries", "path", BAD], ["libraries", "remove", BAD], ["libraries", "list", BAD], ["help", BAD]),
        *(["arch", BAD], ["arch", "H100", "-t", BAD], ["wheel", BAD], ["wheel", "k.cu", "--require", BAD]),
    ],
)  # fmt: skip
def test_what_users_write(cases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argv: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    fine(call(*argv), 2, 3, 4)


SILENT = {"toolkits list", "cache info", "cache prune"}


def test_every_command_is_here() -> None:
    """Every command has hostile texts here; some commands print only cumatrix's own words."""
    text = Path(__file__).read_text("utf-8")
    for words, _ in commands_of(cumatrix):
        name, _, word = words.partition(" ")
        called = rf'"{name}", "{word}"' if word else rf'\["{name}"|call\("{name}"'
        inner = rf'"{name}", \*argv.*' if name == "history" else called
        assert re.search(called, text) or re.search(inner, text) or words in SILENT, words


def test_nobody_prints_by_another_way() -> None:
    """All output to the terminal passes harness/cli/terminal.py."""
    root = Path(sys.modules["harness"].__file__ or "").parent
    for path in [
        *root.glob("cli/*.py"),
        *root.glob("engine/*.py"),
        *root.glob("records/*.py"),
        *root.glob("report/*.py"),
        *root.glob("analysis/*.py"),
    ]:
        if path.name != "terminal.py":
            found = re.search(
                r"\bclick\.s?echo\(|(?<![.\w])print\(|(?<!\w)Console\(|sys\.std(out|err)\.write",
                path.read_text("utf-8"),
            )
            assert found is None, (path, found)


@pytest.mark.slow
@pytest.mark.compilers
def test_what_compiles(
    cases: Path, tmp_path: Path, toolkit: Callable[[str], Installed], monkeypatch: pytest.MonkeyPatch
) -> None:
    toolkit("12.4")
    monkeypatch.chdir(tmp_path)
    axes = ("-b", "nvrtc", "-t", "12.4", "-a", "sm_80")
    name = f"k{BAD.replace('/', '')}.cu"
    (tmp_path / name).write_text((cases / "odd/case/kernel.cu").read_text("utf-8"), "utf-8")
    script = str(Path(sys.executable).with_name("cumatrix"))
    pytests = [sys.executable, "-m", "pytest", "cases", "-v", "-rA", "-p", "no:cacheprovider", "--cumatrix-backend", "nvrtc", "--cumatrix-toolkit", "12.4", "--cumatrix-target", "sm_80"]  # fmt: skip
    for argv in ([script, "run", *axes], [script, "run", *axes, "--json"], [script, "try", name, *axes], pytests):
        done = subprocess.run(argv, capture_output=True, timeout=800, env=os.environ, check=False)
        said = (done.stdout + done.stderr).decode()
        assert "Traceback" not in said
        assert "never said" in said or "error" in said
        found = ACTING.search(said)
        assert found is None, (argv, said[max(0, found.start() - 80) : found.end() + 80])
        assert commands(said) == [], argv
