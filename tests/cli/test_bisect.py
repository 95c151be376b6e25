"""``cumatrix bisect``, with real compilers, a real checkout and real releases."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cells import write_case
from command import Command
from in_process import call

from harness.toolkits import Installed

CASES = Path(__file__).parents[2] / "cases"
KERNEL = "__global__ void twice(float *a) { a[threadIdx.x] *= 2; }\n"


def found(command: Command, *arguments: str | Path, code: int = 0) -> dict[str, Any]:
    done = command("bisect", *arguments, "--json")
    assert done.returncode == code, done.stderr
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def borders(value: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each["before"], each["after"]) for each in value["borders"]]


@pytest.mark.slow
@pytest.mark.compilers
def test_a_history_of_cuda_that_comes_back_to_where_it_was(cumatrix: Command) -> None:
    releases = "12.0,12.3,12.4,12.6,12.8,12.9"
    value = found(cumatrix, "shared-memory/static[bytes=49156]", "--cases", CASES, "--over", "cuda", "--releases", releases,
                  "-b", "nvrtc", "-a", "sm_80", "--out", "found.jsonl")  # fmt: skip
    assert borders(value) == [("12.3", "12.4"), ("12.6", "12.8")]
    first, second = value["borders"]
    assert first["sentence"].startswith("CUDA 12.4 builds it; 12.3: rejected at assemble: ")
    assert second["sentence"].startswith("CUDA 12.8 rejects it again at assemble: ")
    assert "/archive/12.4.0/" in first["notes"]
    assert value["command"].endswith("--releases 12.3,12.4,12.6,12.8")
    assert len((cumatrix.folder / "found.jsonl").read_text().splitlines()) == sum(
        each["tried"] for each in value["releases"]
    )


@pytest.mark.compilers
def test_targets_are_told_apart(cumatrix: Command, toolkit: Callable[[str], Installed]) -> None:
    (cumatrix.folder / "twice.cu").write_text(KERNEL)
    done = cumatrix(
        "bisect", "twice.cu", "--over", "cuda", "-t", "12.4,12.9,13.0", "-b", "nvrtc", "-a", "sm_50,sm_80,sm_100"
    )
    assert done.returncode == 0, done.stderr
    assert "sm_100: CUDA 12.9 builds it; 12.4: not applicable (CUDA 12.4 knows no sm_100" in done.stdout
    assert "sm_50: CUDA 13.0 does not take it any more (CUDA 13.0 knows no sm_50" in done.stdout
    assert "sm_80: nothing changes from CUDA 12.4 to 13.0: built" in done.stdout


def test_offline_says_once_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUMATRIX_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "twice.cu").write_text(KERNEL)
    words = ["bisect", "twice.cu", "--offline", "-b", "nvrtc", "-a", "sm_80"]
    for more, command in {
        ("--over", "cuda", "-t", "12.4,12.9"): "12.4 12.9",
        ("--over", "headers", "-t", "13.0", "--releases", "12.9,13.0"): "13.0 12.9",
        ("--over", "cutlass", "-t", "12.9", "--releases", "3.5.1,4.2.0"): "12.9 cutlass==3.5.1 cutlass==4.2.0",
    }.items():
        done = call(*words, *more)
        assert (done.code, done.out) == (4, "")
        assert done.err.count("To install it, run") == 1
        assert f"To install it, run `cumatrix toolkits install {command}`\n" in done.err
        assert "releases could be tried: not installed, and --offline downloads nothing\n" in done.err


@pytest.mark.compilers
def test_what_contradicts_the_user_is_said(cumatrix: Command) -> None:
    (cumatrix.folder / "twice.cu").write_text(KERNEL)
    axes = ("twice.cu", "--over", "cuda", "--releases", "12.4,12.9", "-b", "nvrtc", "-a", "sm_80")
    value = found(cumatrix, *axes, "--good", "12.4", "--bad", "12.9", code=1)
    assert value["borders"] == []
    assert value["contradiction"] == "12.4, which --good names, and 12.9, which --bad names, show the same: built"
    assert found(cumatrix, *axes)["contradiction"] == ""


@pytest.mark.compilers
def test_headers_of_other_releases_under_one_compiler(cumatrix: Command) -> None:
    (cumatrix.folder / "new.cu").write_text(
        "#include <cuda_fp8.h>\n__global__ void copy(__nv_fp8_e8m0 *a) { a[1] = a[0]; }\n"
    )
    value = found(
        cumatrix, "new.cu", "--over", "headers", "-t", "12.9", "--releases", "12.4,12.9", "-b", "nvrtc", "-a", "sm_90"
    )
    (border,) = value["borders"]
    assert (border["before"], border["after"], border["kind"]) == ("12.4", "12.9", "fixed")
    assert border["sentence"].startswith("headers of CUDA 12.9 (compiler: 12.9) fixed it: built; 12.4: rejected at ")


@pytest.mark.slow
@pytest.mark.compilers
def test_an_interrupted_bisect_goes_on(cumatrix: Command, tmp_path: Path, toolkit: Callable[[str], Installed]) -> None:
    for release in ("12.4", "12.9", "13.0"):
        toolkit(release)
    terms = " + ".join(f"a[{n}]" for n in range(1_500))
    (tmp_path / "slow.cu").write_text(f"__global__ void slow(int *a) {{ *a = {terms}; }}\n")
    out = tmp_path / "found.jsonl"
    argv = (
        "bisect",
        "slow.cu",
        "--over",
        "cuda",
        "--releases",
        "12.4,12.9,13.0",
        "-b",
        "nvrtc",
        "-a",
        "sm_80",
        "-j",
        "1",
        "--out",
        out,
    )
    # Background tests of a shell inherit ignored signals, and so would the command.
    process = subprocess.Popen(
        ["env", "--default-signal=INT", *cumatrix.argv(*argv)], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )  # fmt: skip
    while process.poll() is None and not (out.is_file() and out.read_bytes().count(b"\n")):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert "interrupted: the same command goes on from here" in said
    before = out.read_text().splitlines()
    assert 0 < len(before) < 3
    done = cumatrix(*argv)
    assert done.returncode == 0, done.stderr
    assert "nothing changes from CUDA 12.4 to 13.0: built" in done.stdout
    records = {record["toolkit"]: record["cached"] for record in map(json.loads, out.read_text().splitlines())}
    assert len(records) == 3
    assert all(records[json.loads(line)["toolkit"]] for line in before)


@pytest.mark.slow
@pytest.mark.compilers
def test_releases_of_a_library(cumatrix: Command) -> None:
    value = found(cumatrix, "cooperative/numba-9432[cache=true]", "--cases", CASES, "--over", "numba",
                  "--releases", "0.58.1,0.59.0,0.59.1", "-a", "sm_80")  # fmt: skip
    assert [(each["after"], each["kind"]) for each in value["borders"]] == [("0.59.0", "broke"), ("0.59.1", "fixed")]
    assert value["borders"][0]["notes"] == "https://github.com/numba/numba/releases/tag/0.59.0"


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    return subprocess.run(
        ["git", "-C", str(folder), *who, *words], check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """Create a checkout of a header library that a generator writes; the fifth commit breaks a kernel, the third cannot be built."""
    folder = tmp_path / "library"
    (folder / "include").mkdir(parents=True)
    git(tmp_path, "init", "-q", "-b", "trunk", str(folder))
    (folder / ".gitignore").write_text("include/\n")
    for number in range(1, 8):
        name = "scale" if number < 5 else "scaled"
        (folder / "make.sh").write_text(
            f"{'exit 3' if number == 3 else ''}\necho '__device__ float {name}(float x) {{ return {number} * x; }}' > include/scale.h\n"
        )
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", f"Change {number}")
        git(folder, "tag", f"v{number}")
    (tmp_path / "kernel.cu").write_text("#include <scale.h>\n__global__ void k(float *a) { *a = scale(*a); }\n")
    return folder


@pytest.mark.slow
@pytest.mark.compilers
def test_commits_of_a_checkout(cumatrix: Command, library: Path, toolkit: Callable[[str], Installed]) -> None:
    toolkit("12.9")
    argv = ("bisect", "kernel.cu", "-I", "library/include", "--over", "git:library", "--build", "sh make.sh",
            "-b", "nvrtc", "-t", "12.9", "-a", "sm_80")  # fmt: skip
    done = cumatrix(*argv, "--good", "v1", "--json")
    assert done.returncode == 0, done.stderr
    value = json.loads(done.stdout)
    assert borders(value) == [(git(library, "rev-parse", "v4"), git(library, "rev-parse", "v5"))]
    assert (
        '(Change 5) broke it: rejected at compile: identifier "scale" is undefined' in value["borders"][0]["sentence"]
    )
    assert git(library, "rev-parse", "--abbrev-ref", "HEAD") == "trunk"
    done = cumatrix(*argv, "--good", "v3")
    assert done.returncode == 4
    assert "which --good names, cannot be tested: the build ended with 3" in done.stderr
    assert not (library / ".git" / "BISECT_START").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--over", "numba"], "name the case or the file to compile"),
        (["--over", "bitsandbytes"], "cumatrix wheel bitsandbytes --require sm_120 --since"),
        (["case/one", "--over", "cudaa"], 'no such axis (did you mean "cuda"?)'),
        (
            ["case/one", "--over", "cuda", "-t", "12.4", "--releases", "12.4"],
            "with -t or with --releases, not with both",
        ),
        (["case/one", "--over", "cuda", "--good", "12.7"], "CUDA has no release '12.7'"),
        (["case/one", "--over", "cuda", "--good", "12.4", "--bad", "12.4"], "there is nothing between"),
        (["case/one", "--over", "headers", "-t", "12.4,12.9"], "--over headers takes one compiler"),
        (["case/one", "--over", "cutlass"], "case/one does not use cutlass"),
        (["case/one", "--over", "cuda", "--build", "make"], "--build is for --over git:PATH"),
        (["case/one", "--over", "cuda", "-DN=1"], "options of compilers are for files"),
        (["case/one", "--over", "git:nowhere", "--good", "v1"], "there is no such folder"),
        (["case/one[n=9]", "--over", "cuda"], "case/one has no variant with 'n=9' (did you mean"),
        (["case", "--over", "cuda"], "bisect takes one case, and case matches 2"),
        (["kernel.cu", "--over", "cuda"], "there is no file kernel.cu"),
        (["case/one", "--over", "numba"], "case/one is not for numba"),
        (
            ["case/one", "--over", "cutlass", "--library", "cutlass=4.2.0"],
            "name them with --releases, and not with --library",
        ),
        (
            ["case/one", "--over", "cupy", "-b", "nvrtc"],
            "-b nvrtc is no backend of cupy; it has cupy-nvrtc, cupy-jitify",
        ),
        (["case/one", "--over", "cupy", "--with", "cupy=13"], "and not with --with, which takes commits"),
    ],
)
def test_what_cannot_be_asked(words: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        write_case(tmp_path / "cases", f"case/{name}", KERNEL, "[parameters]\nn = [1, 2]\n")
    monkeypatch.chdir(tmp_path)
    said = call("bisect", *words)
    assert (said.code, said.problem()) == (2, "")
    assert sentence in said.err
