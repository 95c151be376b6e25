"""Every library that is installed next to the tests runs a kernel to a checked result."""

from __future__ import annotations

from pathlib import Path

import pytest
from launches import (
    messages,
    outcome,
    run_launched,
    write_launched,
    write_launched_extension,
    write_launched_python,
    write_launched_triton,
)

from harness.engine.machine import Devices
from harness.toolkits import ToolkitStore

pytestmark = pytest.mark.gpu

TARGETS = ("", "a")  # numba-cuda builds sm_90a if possible, CuPy sm_90
PYTHON_ADD = "i = cuda.threadIdx.x\n    out[i] += n"


@pytest.mark.parametrize("backend", ["nvrtc", "nvcc", "cupy-nvrtc", "numba", "numba-cuda", "torch-nvcc", "triton"])
def test_a_kernel_gets_to_a_checked_result(
    backend: str, root: Path, devices: Devices, own: str, release: str, store: ToolkitStore
) -> None:
    write_launched(root, "right", "out[threadIdx.x] += n;", reference="out += n")
    write_launched(root, "wrong", "out[threadIdx.x] += n;", reference="out += 2 * n")
    write_launched_python(root, "right-python", PYTHON_ADD, reference="out += n")
    write_launched_python(root, "wrong-python", PYTHON_ADD, reference="out += 2 * n")
    write_launched_triton(root, "right-triton", "tl.store(place, tl.load(place) + n)", reference="out += n")
    write_launched_triton(root, "wrong-triton", "tl.store(place, tl.load(place) + n)", reference="out += 2 * n")
    targets = [own + suffix for suffix in TARGETS]
    records = run_launched(root, devices, targets, store=store, release=release, backends=backend, seconds=300)
    reasons = {record["reason"] for record in records.values()}
    done = {
        case.split("-")[0]: record
        for (case, _, _), record in records.items()
        if record["status"] in ("built", "rejected")
    }
    if not done:
        pytest.skip(f"{backend} cannot be used here: {'; '.join(sorted(reasons))}")
    assert outcome(done["right"]) == ("built", "verify"), messages(done["right"])
    assert outcome(done["wrong"]) == ("rejected", "verify"), messages(done["wrong"])
    assert "out[0] is 3.0, expected 6.0" in messages(done["wrong"])


def test_an_extension_is_imported_and_called(
    root: Path, devices: Devices, own: str, release: str, store: ToolkitStore
) -> None:
    write_launched_extension(root, "right", "out[threadIdx.x] += n;", reference="out += n")
    write_launched_extension(root, "wrong", "out[threadIdx.x] += n;", reference="out += 2 * n")
    write_launched_extension(root, "trap", "__trap();")
    records = run_launched(
        root, devices, [own], store=store, release=release, backends="torch-nvcc", jobs=3, seconds=400
    )
    found = {case: record for (case, _, _), record in records.items()}
    if found["right"]["status"] == "unavailable":
        pytest.skip(found["right"]["reason"])
    assert outcome(found["right"]) == ("built", "verify"), messages(found["right"])
    assert found["right"]["stages"][-4:] == ["link", "load", "launch", "verify"]
    assert outcome(found["wrong"]) == ("rejected", "verify")
    assert outcome(found["trap"]) == ("rejected", "launch")
    assert "unspecified launch failure" in messages(found["trap"])
