"""The assignment of cells to devices. The devices are fakes; tests/gpu uses real ones."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from harness.engine import machine as module
from harness.engine.machine import Device, DevicePool, Devices, find_devices
from harness.engine.plan import with_native
from harness.errors import PartUnavailable, UsageError
from harness.model import Target
from harness.protocol.messages import DeviceProperties, Driver


def device(number: int, name: str = "NVIDIA H200", capability: str = "9.0") -> Device:
    return Device(token=str(number), name=name, capability=capability, facts={"ordinal": number})


TWO = Devices((device(0), device(1, "NVIDIA L4", "8.9")))


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("sm_90", "NVIDIA H200"), ("sm_90a", "NVIDIA H200"), ("sm_89", "NVIDIA L4"), ("sm_80", ""), ("compute_90", ""),
        ("sm_100", ""), ("sm_100f", ""),
    ],
)  # fmt: skip
def test_a_device_runs_its_own_targets_only(target: str, name: str) -> None:
    assert TWO.name_for(Target.parse(target)) == name


def test_native_on_the_axis_of_targets(capfd: pytest.CaptureFixture[str]) -> None:
    assert with_native("native", TWO) == "sm_89,sm_90,sm_90a"
    assert with_native("sm_75,native", TWO) == "sm_75,sm_89,sm_90,sm_90a"
    assert with_native("sm_75", Devices()) == "sm_75"
    assert capfd.readouterr().err == ""


def test_native_without_a_device_is_told() -> None:
    with pytest.raises(PartUnavailable, match=r"the target native needs a CUDA device.*no driver"):
        with_native("native", Devices(problem="no driver"))


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver with two devices."""
    devices = [DeviceProperties(name, "9.0", 1 << 30, 4, 1 << 16, True) for name in ("one", "two")]
    told = Driver(devices, driver="1.2", cuda="13.0")
    monkeypatch.setattr(module, "_ask", lambda: told)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.mark.usefixtures("answer")
@pytest.mark.parametrize(
    ("choice", "names"),
    [("auto", ["one", "two"]), ("1", ["two"]), ("1,0", ["two", "one"]), ("0,0", ["one"]), ("none", [])],
)
def test_devices_are_chosen(choice: str, names: list[str]) -> None:
    assert [item.name for item in find_devices(choice).items] == names


@pytest.mark.usefixtures("answer")
@pytest.mark.parametrize("choice", ["", "x", "-1", "0,", "0;1", "1.5"])
def test_a_choice_that_cannot_be_read(choice: str) -> None:
    with pytest.raises(UsageError, match="auto, none, or numbers"):
        find_devices(choice)


@pytest.mark.usefixtures("answer")
def test_a_device_that_is_not_there() -> None:
    with pytest.raises(PartUnavailable, match="no CUDA device 2: 2 are visible"):
        find_devices("0,2")


@pytest.mark.usefixtures("answer")
def test_the_users_choice_of_visible_devices_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,GPU-8e4c")
    assert [item.token for item in find_devices().items] == ["5", "GPU-8e4c"]


@pytest.mark.usefixtures("answer")
def test_records_say_what_the_driver_said() -> None:
    assert find_devices("1").items[0].facts == {
        "virtual": False, "driver": "1.2", "cuda": "13.0", "name": "two", "compute_capability": "9.0", "memory": 1 << 30,
        "multiprocessors": 4, "shared_opt_in": 1 << 16, "cooperative": True, "ordinal": 1,
    }  # fmt: skip


def test_a_driver_is_there_or_the_reason() -> None:
    found = find_devices()
    assert bool(found.items) != bool(found.problem)
    assert "cannot be queried" not in found.problem


FAKE = """
#include <string.h>
int cuInit(unsigned flags) { return 0; }
int cuDriverGetVersion(int *version) { *version = 12090; return 0; }
int cuDeviceGetCount(int *count) { *count = 2; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
int cuDeviceGetName(char *name, int size, int device) { strcpy(name, device ? "two" : "one"); return 0; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = (size_t)80 << 30; return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) { *value = attribute; return 0; }
"""


def test_what_a_driver_says_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fake driver, for the path from its library to records, which a machine without a driver never takes."""
    if not find_devices().problem.startswith("no driver"):
        pytest.skip("this machine has a driver of its own (tests/gpu)")
    (tmp_path / "fake.c").write_text(FAKE)
    library = tmp_path / "libcuda.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "fake.c"], check=True)
    monkeypatch.setattr(module, "_FOLDERS", (str(tmp_path),))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    found = find_devices()
    assert (found.problem, found.folder) == ("", str(tmp_path))
    assert [(each.token, each.name, each.capability) for each in found.items] == [
        ("0", "one", "75.76"),
        ("1", "two", "75.76"),
    ]
    expected = {"cuda": "12.9", "memory": 80 << 30, "multiprocessors": 16, "shared_opt_in": 97, "cooperative": True}
    assert expected.items() <= found.items[1].facts.items()


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (None, "No such file"),
        ("kill -11 $$", "its process ended with signal 11"),
        ('echo \'{"devices": [{"name": "x"}]}\'', "Driver.devices[0]: compute_capability is missing"),
        ("echo '{\"problem\": null}'", "Driver.problem: not str but None"),
    ],
)
def test_a_driver_that_gives_no_answer(
    script: str | None, words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    python = tmp_path / "python"
    if script:
        python.write_text(f"#!/bin/sh\n{script}\n")
        python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    found = find_devices()
    assert not found.items
    assert found.problem.startswith("the driver cannot be queried: ")
    assert words in found.problem


def test_cells_spread_over_devices_and_wait_for_a_slot() -> None:
    pool = DevicePool(Devices((device(0), device(1))))
    assigned = [pool.assigned("NVIDIA H200") for _ in range(8)]
    devices = [each.__enter__() for each in assigned]
    assert [each.token for each in devices] == ["0", "1"] * 4
    assigned[1].__exit__(None, None, None)
    with pool.assigned("NVIDIA H200") as found:
        assert found.token == "1"
    slots = [pool.slot(devices[0]) for _ in range(4)]
    for slot in slots:
        slot.__enter__()
    later: list[str] = []

    def wait() -> None:
        with pool.slot(devices[0]):
            later.append("0")

    thread = threading.Thread(target=wait)
    thread.start()
    with pool.slot(devices[1]):
        assert not later
    slots[0].__exit__(None, None, None)
    thread.join(10)
    assert later == ["0"]
