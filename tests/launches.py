"""Small programs with a launch and a reference, run on the given device."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cells import run_all, write_case

from harness.cases.discovery import load_cases
from harness.engine.context import RunContext, RunRequest
from harness.engine.environment import look
from harness.engine.machine import Devices
from harness.engine.plan import choose_backends, plan
from harness.model import Target
from harness.protocol.messages import Limits
from harness.toolkits import ToolkitStore, parse_toolkits

LAUNCH = """
[entry]
{language} = {entry}

[[launch]]
block = 32
{more}
arguments = [{{ name = "out", type = "float32[]", size = 32, fill = "sequence" }}, {{ type = "int32", value = 3 }}]

[[verify]]
reference = "reference.py"
"""


def write_launched(root: Path, name: str, body: str, *, reference: str = "pass", more: str = "") -> None:
    """Write a CUDA C++ case whose kernel has an array ``out`` of 32 floats and a number ``n``."""
    kernel = name.replace("-", "_")
    source = f'extern "C" __global__ void {kernel}(float *out, int n)\n{{\n    {body}\n}}\n'
    table = LAUNCH.format(language="cuda", entry=f'["{kernel}"]', more=more)
    _write(root, name, source, table, reference, "kernel.cu")


def write_launched_python(root: Path, name: str, body: str, *, reference: str = "pass", more: str = "") -> None:
    """Write the same case for Numba."""
    kernel = name.replace("-", "_")
    source = f"from numba import cuda\n\n\n@cuda.jit(**JIT_OPTIONS)\ndef {kernel}(out, n):\n    {body}\n"
    entry = f'{{ {kernel} = "void(float32[:], int32)" }}'
    _write(root, name, source, LAUNCH.format(language="python", entry=entry, more=more), reference, "kernel.py")


def write_launched_triton(root: Path, name: str, body: str, *, reference: str = "pass") -> None:
    """Write the same case for Triton; each block handles 32 floats."""
    kernel = name.replace("-", "_")
    head = "import triton\nimport triton.language as tl\n\n\n@triton.jit\n"
    source = f"{head}def {kernel}(out, n, B: tl.constexpr):\n    place = out + tl.arange(0, B)\n    {body}\n"
    table = LAUNCH.format(language="triton", entry=f'{{ {kernel} = "*fp32, i32, 32" }}', more="")
    _write(root, name, source, table, reference, "kernel.py", "triton")


def write_launched_extension(root: Path, name: str, body: str, *, reference: str = "pass") -> None:
    """Write the same case as a PyTorch extension with a function ``call``."""
    kernel = name.replace("-", "_")
    source = (
        "#include <torch/types.h>\n"
        f'extern "C" __global__ void {kernel}(float *out, int n)\n{{\n    {body}\n}}\n'
        "void call(torch::Tensor out, int64_t n)\n{\n"
        f"    {kernel}<<<1, 32>>>(out.data_ptr<float>(), n);\n}}\n"
    )
    more = '[[options]]\ndepth = "extension"\nfunctions = ["call"]\n'
    more += 'declarations = "void call(torch::Tensor out, int64_t n);"\n'
    table = LAUNCH.format(language="torch", entry=f'["{kernel}"]', more="").replace("[[launch]]", more + "\n[[launch]]")
    _write(root, name, source, table, reference, "kernel.cu", "torch")


def _write(root: Path, name: str, source: str, table: str, reference: str, file: str, language: str = "") -> None:
    path = write_case(root, f"made/{name}", source, table, file=file, language=language)
    (path.parent / "reference.py").write_text(f"def {name.replace('-', '_')}(out, n):\n    {reference}\n")


def run_launched(
    root: Path, devices: Devices, targets: list[str], *,
    store: ToolkitStore, release: str, backends: str = "nvrtc", python: str | None = None,
    jobs: int = 2, seconds: float = 15, sanitizer: str = "",
) -> dict[tuple[str, str, str], Mapping[str, Any]]:  # fmt: skip
    """Return records by case, backend and target."""
    environment = look(python)
    context = RunContext(
        environment, store, None, RunRequest(limits=Limits(seconds=seconds)), devices=devices, sanitizer=sanitizer
    )
    cells = plan(
        load_cases(root), choose_backends(backends, environment), parse_toolkits(release),
        [Target.parse(target) for target in targets], environment, devices=devices,
    )  # fmt: skip
    records = run_all(cells, context, jobs).values()
    return {(record["case"].split("/")[1], record["backend"], record["target"]): record for record in records}


def outcome(record: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return status and stage."""
    return record["status"], record["stage"]


def messages(record: Mapping[str, Any]) -> str:
    """Return all diagnostics, one per line."""
    return "\n".join(item["message"] for item in record["diagnostics"])
