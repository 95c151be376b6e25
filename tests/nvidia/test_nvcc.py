"""nvcc tool by tool: the same artifacts and messages as nvcc itself."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Callable
from itertools import product
from pathlib import Path
from uuid import uuid4

import pytest
from cells import Place, lasting, make_case, run_all
from command import Command

from harness.engine.context import RunContext, RunRequest
from harness.model import Outcome, Stage, Status
from harness.nvidia.nvcc import device_only
from harness.protocol.messages import Limits
from harness.toolkits import Installed, ToolkitStore

RELEASES = ("13.0", "13.5")
BUILT = 'extern "C" __global__ void scale(float *a) { __shared__ float s[32]; s[threadIdx.x] = *a; *a = s[3]; }'
PROGRAMS = {
    "built": BUILT,
    "device": "__global__ void scale(float *a) { throw 1; }",
    "host": BUILT + "\nint main() { return missing; }",
    "both": "__global__ void scale(float *a) { *a = missing; }",
    "preprocessor": "#include <no-such-header.h>\n" + BUILT,
    "assembler": 'extern "C" __global__ void scale(float *a) { asm("nonsense;"); }',
    "shared": 'extern "C" __global__ void scale(float *a) { __shared__ float s[20000]; s[threadIdx.x] = *a; *a = s[3]; }',
}
# Found by trying broken programs on CUDA 13.0 and 13.5: an assertion of the front end, and a null pointer in cicc.
ABORTS = "template <T> __attribute__ struct {"
SEGFAULTS = "__attribute__(()) k() { l = []<T a({ a[0"


# All other tests run nvcc twice, with all passes, and are slow.
SAME_QUICKLY = {
    ("built", "unit", "13.0"),
    ("host", "unit", "13.0"),
    ("assembler", "unit", "13.0"),
    ("device", "device", "13.0"),
}
SAME = [
    pytest.param(*each, marks=() if each in SAME_QUICKLY else pytest.mark.slow)
    for each in product(PROGRAMS, ("unit", "device"), RELEASES)
]


def test_options_of_the_device_pass_alone() -> None:
    words = [
        "-std=c++17",
        "--dependency-output",
        "k.d",
        "--generate-dependencies-with-compile",
        "-c",
        "k.cu",
        "-o",
        "k.o",
    ]
    assert device_only(words, "cubin") == ["-std=c++17", "k.cu", "-cubin", "-o", "kernel.cubin"]


@pytest.mark.compilers
@pytest.mark.parametrize(("program", "depth", "release"), SAME)
def test_nvcc_itself_says_the_same(
    run_cell: Callable[..., Outcome],
    toolkit: Callable[[str], Installed],
    tmp_path: Path,
    release: str,
    depth: str,
    program: str,
) -> None:
    source = tmp_path / "kernel.cu"
    source.write_text(PROGRAMS[program])
    outcome = run_cell("", "nvcc", release, source, "sm_80", options={"depth": depth})
    home = toolkit(release).home
    flags = ["-c", "-o", "k.o", "--keep"] if depth == "unit" else ["-cubin", "-o", "k.cubin", "--keep"]
    done = subprocess.run(
        [home / "bin" / "nvcc", "-gencode=arch=compute_80,code=sm_80", "-Xptxas", "-v", str(source), *flags],
        cwd=tmp_path, capture_output=True, text=True, env={"PATH": f"{home}/bin:/usr/bin:/bin"},
    )  # fmt: skip
    assert (outcome.status is Status.BUILT) == (done.returncode == 0), outcome.log
    if done.returncode == 0:
        cubin = next(path for name in ("k.cubin", "kernel.cubin") if (path := tmp_path / name).is_file())
        assert outcome.artifact and outcome.artifact.sha256 == hashlib.sha256(cubin.read_bytes()).hexdigest()
    else:
        errors = [
            line for line in (done.stdout + done.stderr).splitlines() if "error" in line and "detected in" not in line
        ]
        assert errors
        for line in errors:
            assert line.rpartition("error")[2] in outcome.log


@pytest.mark.compilers
@pytest.mark.parametrize(
    ("program", "status", "stage"),
    [
        ("built", Status.BUILT, Stage.ASSEMBLE), ("device", Status.REJECTED, Stage.COMPILE),
        ("host", Status.REJECTED, Stage.COMPILE), ("preprocessor", Status.REJECTED, Stage.PREPROCESS),
        ("assembler", Status.REJECTED, Stage.ASSEMBLE), ("shared", Status.REJECTED, Stage.ASSEMBLE),
    ],
)  # fmt: skip
def test_stages(run_cell: Callable[..., Outcome], program: str, status: Status, stage: Stage) -> None:
    outcome = run_cell("", "nvcc", "13.0", PROGRAMS[program], "sm_80")
    if program == "built":
        assert (outcome.status, Stage.ASSEMBLE in outcome.stages) == (status, True)
    else:
        assert (outcome.status, outcome.stage) == (status, stage)


@pytest.mark.compilers
def test_the_host_pass_can_be_left_out(run_cell: Callable[..., Outcome]) -> None:
    program = "#ifndef __CUDA_ARCH__\n#error the host is not welcome\n#endif\n" + BUILT
    assert run_cell("", "nvcc", "13.0", program, "sm_80", options={"depth": "device"}).status is Status.BUILT
    assert run_cell("", "nvcc", "13.0", program, "sm_80", options={"depth": "unit"}).status is Status.REJECTED


@pytest.mark.compilers
@pytest.mark.parametrize(
    ("program", "depth", "tool", "signal"), [(ABORTS, "unit", "cudafe++", 6), (SEGFAULTS, "device", "cicc", 11)]
)
def test_a_tool_that_dies_is_named_and_its_neighbours_are_built(
    store: ToolkitStore,
    toolkit: Callable[[str], Installed],
    tmp_path: Path,
    program: str,
    depth: str,
    tool: str,
    signal: int,
) -> None:
    toolkit("13.0")
    place = Place(None, store)
    texts = {"before": BUILT, "dies": program, "after": BUILT.replace("32", "64")}
    cells = []
    for name, text in texts.items():
        source = tmp_path / name / "kernel.cu"
        source.parent.mkdir()
        source.write_text(text)
        cells.append(
            place.cell(
                make_case(source, f"made/{name}", options={"depth": depth, "std": "c++20"}), "nvcc", "13.0", "sm_80"
            )
        )
    records = run_all(cells, RunContext(place.environment, store, None), jobs=2)
    dies = records[cells[1].id]
    assert (dies["status"], dies["signal"]) == ("crashed", signal)
    assert f"{tool} was ended by signal {signal}" in dies["reason"]
    assert any(item["severity"] == "error" for item in dies["diagnostics"]) or tool == "cicc"
    assert [records[cell.id]["status"] for cell in (cells[0], cells[2])] == ["built", "built"]


@pytest.mark.compilers
def test_the_host_pass_is_done_once_for_all_architectures(
    store: ToolkitStore, toolkit: Callable[[str], Installed], tmp_path: Path
) -> None:
    toolkit("13.0")
    place = Place(None, store)
    source = tmp_path / "kernel.cu"
    source.write_text(BUILT + "\nint host() { return 1; }")
    case = make_case(source, "made/host")
    cells = [place.cell(case, "nvcc", "13.0", target) for target in ("sm_80", "sm_90", "sm_120")]
    records = list(run_all(cells, place.context).values())
    assert [record["status"] for record in records] == ["built"] * 3
    # The first one ran the step.
    assert sorted(len(record["shared_steps"]) for record in records) == [0, 2, 2]


@pytest.mark.slow
@pytest.mark.compilers
def test_records_do_not_depend_on_the_order_of_cells(
    store: ToolkitStore, toolkit: Callable[[str], Installed], tmp_path: Path
) -> None:
    """A built, a warned and a rejected program, in two orders: only `shared_steps` shows the steps of other cells."""
    toolkit("13.0")
    place = Place(None, store)
    texts = {
        "built": BUILT + "\nint host() { return 1; }",
        "warned": BUILT + "\nint host() { int unused; return 1 / 0; }",
        "refused": BUILT + "\nint host() { return missing; }",
        "assembled": BUILT + '\nint host() { asm("nonsense"); return 1; }',
    }
    cells = []
    for name, text in texts.items():
        (tmp_path / name).mkdir()
        source = tmp_path / name / "kernel.cu"
        source.write_text(text)
        case = make_case(source, f"made/{name}")
        cells += [place.cell(case, "nvcc", "13.0", target) for target in ("sm_80", "sm_90")]
    forwards = run_all(cells, place.context)
    backwards = run_all(cells[::-1], place.context)
    for cell in cells:
        one, other = lasting(forwards[cell.id]), lasting(backwards[cell.id])
        assert {key for key in one if one[key] != other[key]} == set(), [one["log"], other["log"]]
    shared = [[bool(records[cell.id]["shared_steps"]) for cell in cells] for records in (forwards, backwards)]
    assert shared == [[False, True] * 4, [True, False] * 4]
    assert not any(
        word in str(record["notes"]) for record in forwards.values() for word in ("same input", "another cell")
    )


@pytest.mark.compilers
def test_a_memory_limit_is_no_refusal_of_the_program(
    store: ToolkitStore, toolkit: Callable[[str], Installed], tmp_path: Path
) -> None:
    toolkit("13.0")
    place = Place(None, store)
    source = tmp_path / "kernel.cu"
    source.write_text("template <int N> struct S { char a[N]; S<N - 1> next; };\ntemplate <> struct S<0> {};\n"
                      "__global__ void k() { S<100000> s; }")  # fmt: skip
    context = RunContext(place.environment, store, None, RunRequest(limits=Limits(memory=300 << 20, seconds=60)))
    case = make_case(source, "made/large", options={"flags": ["-ftemplate-depth=200000"], "depth": "device"})
    (record,) = run_all([place.cell(case, "nvcc", "13.0", "sm_80")], context).values()
    assert record["status"] in ("crashed", "timed_out"), record["log"][-500:]


@pytest.mark.compilers
def test_wheels_without_nvcc(run_cell: Callable[..., Outcome]) -> None:
    outcome = run_cell("", "nvcc", "12.4", BUILT, "sm_80")
    assert outcome.status is Status.UNAVAILABLE
    assert "has no nvcc" in outcome.reason and "--toolkit local" in outcome.reason


@pytest.mark.slow
@pytest.mark.compilers
def test_a_deadline_ends_the_whole_tree(
    store: ToolkitStore, toolkit: Callable[[str], Installed], tmp_path: Path
) -> None:
    toolkit("13.0")
    place = Place(None, store)
    source = tmp_path / f"endless-{uuid4().hex}.cu"
    source.write_text("__global__ void k(int *x) { x[0] = " + "x[0] ? 1 : " * 200_000 + "0; }")
    plain = tmp_path / "plain.cu"
    plain.write_text("__global__ void k(int *x) { x[0] = 1; }")
    cells = [place.cell(make_case(path, f"made/{path.stem}", options={"depth": "device"}), "nvcc", "13.0", "sm_80")
             for path in (plain, source)]  # fmt: skip
    (built,) = run_all(
        cells[:1], RunContext(place.environment, store, None, RunRequest(limits=Limits(seconds=600)))
    ).values()
    # Long enough to reach the compiler, even on a busy machine.
    limits = Limits(seconds=4 + 4 * built["seconds"])
    (record,) = run_all(cells[1:], RunContext(place.environment, store, None, RunRequest(limits=limits))).values()
    assert (record["status"], record["stage"]) == ("timed_out", "compile")
    assert source.name not in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout


@pytest.mark.compilers
def test_a_limit_of_the_users(cumatrix: Command, toolkit: Callable[[str], Installed], tmp_path: Path) -> None:
    toolkit("13.0")
    (tmp_path / "deep.cu").write_text(
        "__global__ void k(int *x) { x[0] = " + "(" * 100_000 + "1" + ")" * 100_000 + "; }"
    )
    arguments = ("try", "deep.cu", "-b", "nvcc", "-t", "13.0", "-a", "sm_80", "--device-only")
    (built,) = cumatrix.records(*arguments)
    (crashed,) = cumatrix.records(*arguments, "--limit", "stack=512K")
    assert built["status"] == "built"
    assert (crashed["status"], crashed["signal"]) == ("crashed", 11) and "cicc was ended by signal 11" in crashed[
        "reason"
    ]
    done = cumatrix(*arguments, "--limit", "heap=1G")
    assert done.returncode == 2 and "'heap' is no limit; known are cpu, data" in done.stderr
