"""A small PyTorch extension, from an empty machine to a gate and a page: five lines of configuration, one command."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Command

from harness.toolkits import Installed

pytestmark = pytest.mark.compilers

TORCH = ("torch==2.11.0", "ninja==1.13.0", "numpy==2.2.6", "setuptools==80.9.0")
"""As in tests/backends/test_torch.py, which uses the same environment."""

SETUP = """
import os
from glob import glob

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

here = os.path.dirname(os.path.abspath(__file__))
setup(
    name="mine",
    ext_modules=[
        CUDAExtension(
            "mine._C",
            sources=["csrc/bind.cpp", *sorted(glob("csrc/*.cu"))],
            include_dirs=[os.path.join(here, "csrc", "include")],
            define_macros=[("MINE_VERSION", "1")],
            extra_compile_args={"cxx": ["-O2"], "nvcc": ["-O3", "--use_fast_math"]},
        )
    ],
    cmdclass={"build_ext": BuildExtension},
)
"""
HEADER = """
#pragma once
constexpr int THREADS = 256;
inline int blocks_for(int count) { return (count + THREADS - 1) / THREADS; }
"""
KERNEL = """
%s#include "launch.h"
extern "C" __global__ void NAME(float *values, float by, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        values[i] = values[i] OP by + MINE_VERSION;
}
"""
LAUNCH = """
void launch_NAME(at::Tensor values, double by)
{
    NAME<<<blocks_for(values.numel()), THREADS>>>(values.data_ptr<float>(), by, values.numel());
}
"""
CONFIG = """[tool.cumatrix]
extension = "setup.py"
toolkit = "{toolkit}"
target = "{target}"
page = "reports/html"
{more}
"""


def _write(folder: Path, config: str, *, torch: bool) -> None:
    files = {"setup.py": SETUP, "csrc/include/launch.h": HEADER, "csrc/bind.cpp": "", "pyproject.toml": config}
    for name, operator in (("scale", "*"), ("shift", "+")):
        text = KERNEL % ("#include <ATen/core/Tensor.h>\n" if torch else "") + (LAUNCH if torch else "")
        files[f"csrc/{name}.cu"] = text.replace("NAME", name).replace("OP", operator)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def _records(folder: Path, name: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "reports" / f"{name}.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_its_device_code_has_a_gate_and_a_page(
    tmp_path: Path, cumatrix: Command, toolkit: Callable[[str], Installed]
) -> None:
    toolkit("13.0")
    more = 'language = "cuda"\nbackend = "nvcc"\ndevice-only = true'  # without PyTorch's headers
    _write(tmp_path, CONFIG.format(toolkit="13.0", target="sm_75,sm_90,sm_120", more=more), torch=False)
    done = cumatrix("run")
    assert done.returncode == 0, done.stderr
    records = _records(tmp_path, "local")
    assert {(record["case"], record["target"]) for record in records} == {
        (f"csrc/{name}.cu", target) for name in ("scale", "shift") for target in ("sm_75", "sm_90", "sm_120")
    }
    assert {record["status"] for record in records} == {"built"}
    assert "-Icsrc/include" in str(records[0]["command"]) and "--use_fast_math" in str(records[0]["command"])
    assert (tmp_path / "reports" / "html" / "index.html").is_file()
    # The gate fails if a kernel breaks: the header counts, and the message names the line of the project's own file.
    (tmp_path / "csrc" / "include" / "launch.h").write_text(HEADER.replace("256", "none"))
    broken = cumatrix("run", "-a", "sm_90")
    assert broken.returncode == 1
    assert "at csrc/include/launch.h:3" in broken.stderr


# Read at import, since tests run without cumatrix's variables.
EVERYTHING = bool(os.environ.get("CUMATRIX_TESTS_ALL"))
CORNERS = {("csrc/scale.cu", "13.0", "sm_75"), ("csrc/shift.cu", "13.5", "sm_120")}


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_with_pytorch_five_lines_and_one_command_are_a_green_gate_and_a_page(
    tmp_path: Path, cumatrix: Command, toolkit: Callable[[str], Installed], venv: Callable[..., str]
) -> None:
    """Every file, for the first and last target and toolkit. With CUMATRIX_TESTS_ALL=1 every combination, which takes minutes."""
    toolkit("13.0")
    toolkit("13.5")
    # PyTorch is already installed for other tests; `with = "torch=2.11"` in the file would install it.
    python = {"CUMATRIX_PYTHON": venv(*TORCH)}
    config = CONFIG.format(toolkit="13.0,13.5", target="sm_75..sm_120", more="")
    assert len(config.strip().splitlines()) - 1 <= 4
    _write(tmp_path, config, torch=True)
    where = " or ".join(
        f'case == "{case}" and toolkit == "{release}" and target == "{target}"' for case, release, target in CORNERS
    )
    done = cumatrix("run", *(() if EVERYTHING else ("--where", where)), env=python, timeout=7200)
    assert done.returncode == 0, done.stderr
    records = _records(tmp_path, "local")
    built = {(record["case"], record["toolkit"], record["target"]) for record in records if record["status"] == "built"}
    assert built >= CORNERS
    assert {record["status"] for record in records} <= {"built", "unsupported"}
    assert {record["backend"] for record in records} == {"torch-nvcc"}
    assert "-DMINE_VERSION=1" in str(records[0]["command"]) and "--use_fast_math" in str(records[0]["command"])
    assert (tmp_path / "reports" / "html" / "index.html").is_file()
