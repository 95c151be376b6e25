"""Which cell runs on which device. The devices are made up; real ones are asked in tests/gpu."""

from __future__ import annotations

import re
import subprocess
import threading
from typing import Any

import pytest

from harness.engine import devices as module
from harness.engine.devices import Device, DevicePool, Devices, find_devices
from harness.engine.session import with_own
from harness.errors import PartUnavailable, UsageError
from harness.hints import hint
from harness.model import Target


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
    assert with_own("native", TWO) == "sm_89,sm_90,sm_90a"
    assert with_own("sm_75,native", TWO) == "sm_75,sm_89,sm_90,sm_90a"
    assert with_own("sm_75", None) == "sm_75"
    assert capfd.readouterr().err == ""


def test_the_word_of_before_still_works_and_is_told_of_once(capfd: pytest.CaptureFixture[str]) -> None:
    hint.cache_clear()
    assert [with_own(targets, TWO) for targets in ("sm_75, own", "own,native")] == [
        "sm_75,sm_89,sm_90,sm_90a",
        "sm_89,sm_90,sm_90a",
    ]
    assert re.fullmatch(r"cumatrix: [^\n]*own is called native[^\n]*\n", capfd.readouterr().err)


@pytest.mark.parametrize("word", ["native", "own"])
def test_native_without_a_device_is_told(word: str) -> None:
    with pytest.raises(PartUnavailable, match=r"the target native needs a CUDA device.*no driver"):
        with_own(word, Devices(problem="no driver"))


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that knows of two devices."""
    fields = [{"name": name, "compute_capability": "9.0"} for name in ("one", "two")]
    told = {"devices": fields, "problem": "", "folder": "", "driver": "1.2", "cuda": "13.0"}
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
    with pytest.raises(PartUnavailable, match="no CUDA device 2: 2 can be seen"):
        find_devices("0,2")


@pytest.mark.usefixtures("answer")
def test_the_users_choice_of_visible_devices_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,GPU-8e4c")
    assert [item.token for item in find_devices().items] == ["5", "GPU-8e4c"]


def test_without_a_driver_the_reason_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(*_: Any, **__: Any) -> Any:
        raise OSError("no such file")

    monkeypatch.setattr(subprocess, "run", ask)
    found = find_devices()
    assert not found.items
    assert "cannot be asked: no such file" in found.problem


def test_cells_spread_over_devices_and_wait_for_one() -> None:
    pool = DevicePool(Devices((device(0), device(1))))
    taken = [pool.take("NVIDIA H200") for _ in range(8)]
    tokens = [each.__enter__().token for each in taken]
    assert (tokens.count("0"), tokens.count("1")) == (4, 4)
    assert tokens[:2] == ["0", "1"]
    later: list[str] = []

    def wait() -> None:
        with pool.take("NVIDIA H200") as found:
            later.append(found.token)

    thread = threading.Thread(target=wait)
    thread.start()
    assert not later
    taken[1].__exit__(None, None, None)
    thread.join(10)
    assert later == ["1"]
