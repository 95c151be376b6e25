"""nvcc as PyTorch's extensions call it: the same outcomes as `torch.utils.cpp_extension` itself."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cells import Place, lasting, make_case, run_all

from harness.model import Outcome, Stage, Status
from harness.toolkits import Installed, ToolkitStore

# Installing PyTorch and compiling with its headers take minutes each.
pytestmark = [pytest.mark.compilers, pytest.mark.slow, pytest.mark.timeout(2700)]

TORCH = ("torch==2.11.0", "ninja==1.13.0", "numpy==2.2.6", "setuptools==80.9.0")
CASE = Path(__file__).parents[2] / "cases" / "exceptions" / "torchao-1648"
WORDS = "device code does not support exception handling"
# Found by trying broken programs on CUDA 13.0 and 13.5: an assertion of nvcc's front end, and a null pointer in cicc.
SEGFAULTS = "__attribute__(()) k() { l = []<T a({ a[0"

EXTENSION = """
#include <torch/types.h>
__global__ void add(float *x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] += 1; }
torch::Tensor plus_one(torch::Tensor x) {
  add<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), x.numel());
  return x;
}
"""

ITSELF = """
import sys, tempfile
from torch.utils import cpp_extension
# Here nothing can be imported that needs a driver: only the build is asked for.
cpp_extension._import_module_from_library = lambda *a, **k: None
with tempfile.TemporaryDirectory() as folder:
    cpp_extension.load("kernel", [sys.argv[1]], extra_cuda_cflags=sys.argv[2:], with_cuda=True, build_directory=folder)
"""


@pytest.fixture(scope="module")
def python(venv: Callable[..., str]) -> str:
    return venv(*TORCH)


@pytest.fixture
def place(python: str, store: ToolkitStore, toolkit: Callable[[str], Installed]) -> Place:
    toolkit("13.0")
    return Place(python, store, seconds=2000)


def lean(place: Place, form: int, target: str) -> Outcome:
    case = make_case(CASE / "kernel.cu", "made/lean", definitions={"CHECK_IN_KERNEL": form, "FULL_HEADERS": 0})
    return place.result(place.cell(case, "torch-nvcc", "13.0", target)).outcome


@pytest.mark.parametrize(("form", "number"), [(1, "75"), (1, "80"), (0, "75")])
def test_pytorch_itself_says_the_same(
    place: Place, python: str, toolkit: Callable[[str], Installed], tmp_path: Path, form: int, number: str
) -> None:
    outcome = lean(place, form, f"sm_{number}")
    home = toolkit("13.0").home
    (tmp_path / "itself.py").write_text(ITSELF)
    flags = [f"-DCHECK_IN_KERNEL={form}", "-DFULL_HEADERS=0"]
    done = subprocess.run(
        [python, tmp_path / "itself.py", CASE / "kernel.cu", *flags], capture_output=True, text=True, cwd=tmp_path,
        env={
            "PATH": f"{home}/bin:{Path(python).parent}:/usr/bin:/bin", "CUDA_HOME": str(home), "HOME": str(tmp_path),
            "TORCH_CUDA_ARCH_LIST": f"{number[0]}.{number[1]}",
        },
    )  # fmt: skip
    assert (outcome.status is Status.BUILT) == (done.returncode == 0), done.stderr[-2000:]
    assert (WORDS in done.stderr + done.stdout) == any(WORDS in item.message for item in outcome.diagnostics)
    if number == "75" and form:
        assert (outcome.status, outcome.stage) == (Status.REJECTED, Stage.COMPILE)
        assert outcome.diagnostics[0].file == "kernel.cu"


def test_a_whole_extension_with_one_host_pass(place: Place, tmp_path: Path) -> None:
    (tmp_path / "kernel.cu").write_text(EXTENSION)
    options = {
        "depth": "extension", "functions": ["plus_one"], "declarations": "torch::Tensor plus_one(torch::Tensor x);",
    }  # fmt: skip
    case = make_case(tmp_path / "kernel.cu", "made/extension", options=options)
    cells = [place.cell(case, "torch-nvcc", "13.0", target) for target in ("sm_80", "sm_90")]
    first, second = run_all(cells, place.context).values()
    for record, target in ((first, "sm_80"), (second, "sm_90")):
        assert record["artifact"] is not None, record["log"][-2000:]
        assert (record["status"], record["artifact"]["target"]) == ("built", target), record["log"][-2000:]
        assert record["stages"] == ["compile", "preprocess", "assemble", "link"]
        assert record["toolchain"]["observed"]["torch"].startswith("2.11.0")
    assert sorted(second["shared_steps"]) == ["c++", "cudafe++", "gcc"] and not first["shared_steps"]
    assert lasting(first)["notes"] == lasting(second)["notes"]
    assert any(line.startswith("load_inline(") for line in first["command"])


def test_a_macro_is_what_the_program_sees(place: Place, tmp_path: Path) -> None:
    """The option passes through PyTorch's build file, ninja and nvcc, each with special characters of its own."""
    text = rf"a $(touch {tmp_path}/made) `touch {tmp_path}/made` $HOME $$ 'b' \"c\" \\d; e:f|g"
    same = "constexpr bool same(const char *a, const char *b) { return *a == *b && (!*a || same(a + 1, b + 1)); }\n"
    kernel = 'extern "C" __global__ void size(int *a) { *a = sizeof(TEXT); }\n'
    source = tmp_path / "kernel.cu"
    source.write_text(f'{same}static_assert(same(TEXT, "{text}"), "");\n{kernel}')
    case = make_case(source, "made/macro", definitions={"TEXT": f'"{text}"'})
    (record,) = run_all([place.cell(case, "torch-nvcc", "13.0", "sm_80")], place.context).values()
    assert record["status"] == "built", record["log"][-2000:]
    assert not (tmp_path / "made").exists()


def test_a_compiler_that_dies_under_pytorch(place: Place, tmp_path: Path) -> None:
    cells = []
    for name, text in (("dies", SEGFAULTS), ("lives", "__global__ void one(int *a) { *a = 1; }")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "kernel.cu").write_text(text)
        case = make_case(tmp_path / name / "kernel.cu", f"made/{name}", options={"std": "c++20"})
        cells.append(place.cell(case, "torch-nvcc", "13.0", "sm_80"))
    dies, lives = run_all(cells, place.context).values()
    assert (dies["status"], dies["signal"]) == ("crashed", 11)
    assert "cicc was ended by signal 11" in dies["reason"]
    assert lives["status"] == "built"


@pytest.mark.parametrize(
    ("target", "options", "words"),
    [
        ("compute_80", {}, "TORCH_CUDA_ARCH_LIST has no word for PTX alone"),
        ("sm_80", {"arch": "implicit"}, "whatever devices it sees"),
        ("sm_80", {"rdc": True}, "CUDAExtension"),
    ],
)
def test_what_is_not_applicable(place: Place, tmp_path: Path, target: str, options: dict[str, Any], words: str) -> None:
    (tmp_path / "kernel.cu").write_text("__global__ void one(int *a) { *a = 1; }")
    case = make_case(tmp_path / "kernel.cu", "made/nothing", options=options)
    outcome = place.result(place.cell(case, "torch-nvcc", "13.0", target)).outcome
    assert outcome.status is Status.UNSUPPORTED and words in outcome.reason


def test_another_cuda_than_pytorch_was_built_with(
    place: Place, toolkit: Callable[[str], Installed], tmp_path: Path
) -> None:
    toolkit("12.4")
    (tmp_path / "kernel.cu").write_text("__global__ void one(int *a) { *a = 1; }")
    case = make_case(tmp_path / "kernel.cu", "made/old")
    outcome = place.result(place.cell(case, "torch-nvcc", "12.4", "sm_80")).outcome
    assert outcome.status is Status.UNAVAILABLE and "has no nvcc" in outcome.reason
