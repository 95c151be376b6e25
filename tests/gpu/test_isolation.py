"""Failures on a real device affect only the cell that caused them."""

from __future__ import annotations

from pathlib import Path

import pytest
from launches import messages, outcome, run_launched, write_launched

from harness.engine.machine import Devices, find_sanitizer
from harness.errors import PartUnavailable
from harness.toolkits import ToolkitStore

pytestmark = pytest.mark.gpu

ADD = "out[threadIdx.x] += n;"


def test_every_way_to_fail_has_its_own_cell(
    root: Path, devices: Devices, own: str, release: str, store: ToolkitStore
) -> None:
    neighbours = [f"neighbour-{number}" for number in range(6)]
    for name in neighbours:
        write_launched(root, name, ADD, reference="out += n")
    write_launched(root, "illegal", "*(volatile float *)(n - 3ll) = 1.0f;")
    write_launched(root, "trap", "__trap();")
    write_launched(root, "never-ends", "while (*(volatile float *)out == 0.0f) { }")
    write_launched(root, "wrong", "out[threadIdx.x] += n + (threadIdx.x == 7);", reference="out += n")
    write_launched(root, "too-many-blocks", ADD, more="grid = [1, 1, 65536]")
    write_launched(root, "greedy", ADD, more="shared = 1048576\nopt_in = true")
    records = run_launched(root, devices, [own], store=store, release=release, jobs=4, seconds=20)
    found = {case: record for (case, _, _), record in records.items()}
    for name in neighbours:
        assert outcome(found[name]) == ("built", "verify"), messages(found[name])
    assert outcome(found["illegal"]) == ("rejected", "launch")
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in messages(found["illegal"])
    assert outcome(found["trap"]) == ("rejected", "launch")
    assert outcome(found["never-ends"]) == ("timed_out", "launch")
    assert outcome(found["wrong"]) == ("rejected", "verify")
    assert "out[7] is 11.0, expected 10.0 (1 of 32 elements" in messages(found["wrong"])
    assert outcome(found["too-many-blocks"]) == ("rejected", "launch")
    assert outcome(found["greedy"]) == ("rejected", "launch")


def test_the_record_names_the_device(root: Path, devices: Devices, own: str, release: str, store: ToolkitStore) -> None:
    write_launched(root, "add", ADD, reference="out += n")
    (record,) = run_launched(root, devices, [own], store=store, release=release).values()
    device, first = record["device"], devices.items[0]
    assert (device["virtual"], device["name"]) == (False, first.name)
    assert device["compute_capability"] == first.capability
    assert device["driver"]
    assert record["stages"][-3:] == ["load", "launch", "verify"]


def test_every_device_gets_cells(root: Path, devices: Devices, own: str, release: str, store: ToolkitStore) -> None:
    if len(devices.items) < 2:
        pytest.skip("one device only")
    for number in range(8 * len(devices.items)):
        write_launched(root, f"add-{number}", ADD, reference="out += n")
    records = run_launched(root, devices, [own], store=store, release=release, jobs=4 * len(devices.items))
    assert {record["device"]["ordinal"] for record in records.values()} == set(range(len(devices.items)))


def test_compute_sanitizer_finds_what_the_launch_survives(
    root: Path, devices: Devices, own: str, release: str, store: ToolkitStore
) -> None:
    try:
        tool = find_sanitizer([toolkit.home for toolkit in store.installed()])
    except PartUnavailable as error:
        pytest.skip(str(error))
    write_launched(root, "clean", ADD, reference="out += n")
    write_launched(root, "past-the-end", f"{ADD} if (threadIdx.x == 0) out[32] = 1.0f;", reference="out += n")
    records = run_launched(root, devices, [own], store=store, release=release, seconds=120, sanitizer=tool)
    found = {case: record["device"]["sanitizer"] for (case, _, _), record in records.items()}
    assert found["clean"]["errors"] == 0
    assert found["past-the-end"]["errors"] > 0
    assert "Invalid __global__ write" in found["past-the-end"]["found"][0]
