"""From load to verify, without a device: a fake driver fails in every way that a real driver can.

tests/gpu has the tests with real drivers and kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from launches import messages, outcome, run_launched, write_launched

from harness.engine import machine as devices_module
from harness.engine.machine import find_devices
from harness.toolkits import Installed, ToolkitStore

pytestmark = pytest.mark.compilers


Launch = Callable[[Path], Mapping[Any, Any]]


@pytest.fixture(scope="module")
def launch(fake_driver: Path, toolkit: Callable[[str], Installed], store: ToolkitStore) -> Launch:
    """Run all cases of a folder on the fake device; return records by case and target."""
    toolkit("12.9")

    def run(root: Path) -> Mapping[Any, Any]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(devices_module, "_FOLDERS", (str(fake_driver),))
            found = find_devices()
        records = run_launched(root, found, ["sm_75", "sm_80"], store=store, release="12.9")
        return {(case, target): record for (case, _, target), record in records.items()}

    return run


@pytest.fixture(scope="module")
def fake_records(launch: Launch, tmp_path_factory: pytest.TempPathFactory) -> Mapping[Any, Any]:
    root = tmp_path_factory.mktemp("cases")
    for name in ("idle", "absent", "refused-image", "illegal", "aborts"):
        write_launched(root, name, "out[threadIdx.x] += n;")
    write_launched(root, "wrong", "out[threadIdx.x] += n;", reference="out += n")
    write_launched(root, "broken", "out[threadIdx.x] += n;", reference="raise KeyError('x')")
    write_launched(root, "greedy", "out[threadIdx.x] += n;", more="shared = 200000\nopt_in = true")
    write_launched(root, "together", "out[threadIdx.x] += n;", more="cooperative = true")
    return launch(root)


def test_only_a_devices_own_target_goes_on_to_it(fake_records: dict[Any, Any]) -> None:
    other, own = fake_records["idle", "sm_75"], fake_records["idle", "sm_80"]
    assert outcome(other) == ("built", "assemble")
    assert not other["device"]
    assert outcome(own) == ("built", "verify")
    assert own["stages"] == ["compile", "assemble", "load", "launch", "verify"]
    assert own["cell"] == f"{other['cell'].replace('sm_75', 'sm_80')} on Fake device"


def test_a_record_names_the_device(fake_records: dict[Any, Any]) -> None:
    device = fake_records["idle", "sm_80"]["device"]
    assert (device["virtual"], device["name"], device["compute_capability"]) == (False, "Fake device", "8.0")
    assert device["cuda"] == "12.9"


def test_a_wrong_result_shows_the_worst_element(fake_records: dict[Any, Any]) -> None:
    record = fake_records["wrong", "sm_80"]
    assert outcome(record) == ("rejected", "verify")
    assert "wrong: out[0] is 0.0, expected 3.0 (32 of 32 elements differ" in messages(record)


@pytest.mark.parametrize(
    ("case", "stage", "words"),
    [
        ("absent", "load", "CUDA_ERROR_NOT_FOUND: the fake says no (cuModuleGetFunction)"),
        ("refused-image", "load", "error 209: the fake says no (cuModuleLoadDataEx)"),
        ("illegal", "launch", "CUDA_ERROR_ILLEGAL_ADDRESS: the fake says no (cuCtxSynchronize)"),
        ("greedy", "launch", "CUDA_ERROR_INVALID_VALUE: the fake says no (cuFuncSetAttribute)"),
        ("together", "launch", "error 720: the fake says no (cuLaunchCooperativeKernel)"),
    ],
)
def test_the_drivers_refusals_have_their_stage(fake_records: dict[Any, Any], case: str, stage: str, words: str) -> None:
    record = fake_records[case, "sm_80"]
    assert outcome(record) == ("rejected", stage)
    assert words in messages(record).splitlines()


def test_the_drivers_log_is_kept(fake_records: dict[Any, Any]) -> None:
    assert "the fake dislikes this image" in fake_records["refused-image", "sm_80"]["log"]


@pytest.mark.slow
def test_a_kernel_that_never_ends_costs_one_cell(launch: Launch, tmp_path: Path) -> None:
    for name in ("never-ends", "idle"):
        write_launched(tmp_path, name, "out[threadIdx.x] += n;")
    records = launch(tmp_path)
    assert outcome(records["idle", "sm_80"]) == ("built", "verify")
    record = records["never-ends", "sm_80"]
    assert outcome(record) == ("timed_out", "launch")
    assert record["device"]["name"] == "Fake device"


def test_a_process_that_dies_in_the_launch(fake_records: dict[Any, Any]) -> None:
    record = fake_records["aborts", "sm_80"]
    assert outcome(record) == ("crashed", "launch")
    assert record["signal"] == 6
    assert messages(record).startswith("the program's process was ended by signal 6")


def test_a_broken_reference_is_nobodys_verdict(fake_records: dict[Any, Any]) -> None:
    record = fake_records["broken", "sm_80"]
    assert record["status"] == "harness_error"
    assert "reference.py of the case failed: KeyError" in record["reason"]
